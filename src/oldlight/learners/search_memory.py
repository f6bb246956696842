"""How much memory the search of a learner's plan may take, behind a link that loses.

A search grows with what it meets. That of a learner may take an eighth of what its tables take, or 32 MiB: it stops with its bounds where that is not enough,
or, where every corner is settled and its plan is one of sequences, forgets what it can find again (`oldlight.planning.settling`). So what a run holds is known before it begins, to within an eighth.

With P = T·S·A·S entries over (s, a, s2), one for each of T = H steps or one for all where counts are pooled, a plan for an estimate holds the counts (8 bytes),
the last estimate and the new one (8 each), the process (8), its lists (12) and those of the search (16), so 60·P, and the tables of the link with what is known
of their corners.
"""

from __future__ import annotations

from oldlight.learners.base import Setting
from oldlight.model.age_layers import Layers
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.planning.link_memory import table_bytes

LEAST_ROOM = 2**25
SHARE = 8
ENTRY = 60  # bytes


def search_room(tables: int) -> int:
    """Bytes of a search beside tables of so many."""
    return max(tables // SHARE, LEAST_ROOM)


def corner_bytes(automaton: ChannelAutomaton, n_states: int, n_actions: int) -> int:
    """Tables of the link's longest delay, and what is known of their corners."""
    layers = Layers.of(automaton, n_states, n_actions, min(automaton.longest, automaton.horizon - 1))
    return table_bytes(layers, kept=True, bounded=True) + 8 * layers.blind_size * (n_actions + 3)


def planner_tables(automaton: ChannelAutomaton, n_states: int, n_actions: int, pooled: bool) -> int:
    """What a learner holds that plans for one estimate after the other behind the link `automaton`, without its search."""
    S, A, H = n_states, n_actions, automaton.horizon
    return ENTRY * (1 if pooled else H) * S * A * S + corner_bytes(automaton, S, A)


def setting_tables(setting: Setting, pooled: bool) -> int:
    """The same for what a learner is told."""
    automaton = setting.channel.automaton(setting.horizon).shifted(setting.actuation)
    return planner_tables(automaton, setting.n_states, setting.n_actions, pooled)
