"""What a learning run behind a link that loses will need, in bytes.

With W entries of the true process over (s, a, s2), its lists padded to the longest: they take 12 bytes an entry, what episodes are drawn with 16, and what values
policies 16, so 44·W. Beside that

    PosteriorSampling, OptimisticPlanning     tables and a search, see `learners.search_memory`; "alternating" has the set's centre and the best model as well, and
                                              posterior sampling under loss alone, which plays blocks, keeps its lists between two plans: 16 bytes an entry
    LossUCBVI                                 the sequences, the draws (the last and the new ones), the policy and the one before: 37·(H + 1)·S·H. The tree
                                              has a node for each information state met: at step h, j steps after an observation, no more than S·A^j, and no
                                              more than K episodes times the probability of such a blackout
    LinkLearner                               counts, those of now, the last model and the last process, the new ones: 56 bytes an entry; lists as long as what a pair was
                                              seen to lead to, 28 bytes an entry; the tables of the link twice, the plan's and those of the policy before
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oldlight.learners.learnt_plan import OPTIONS
from oldlight.learners.link_learner import LinkLearner
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning
from oldlight.learners.posterior_sampling import PosteriorSampling
from oldlight.learners.search_memory import corner_bytes, planner_tables, search_room
from oldlight.machine import power
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP

TRUE = 44  # bytes of an entry of the true process
KEPT = 16  # of an entry of lists that are kept between two plans
UNLISTED = 28  # of an entry that is 0, and so in no list
SMALLEST = math.log(np.nextafter(0.0, 1.0))  # of positive numbers
SEQUENCE = 37  # and of a sequence


def lossy_bytes(problem: ImpairedMDP, learner: Any, episodes: int | None) -> int:
    """The most that the run holds; episodes: how many are played, the first alone if None."""
    S, A, H = problem.n_states, problem.n_actions, problem.horizon
    width, steps = longest_list(problem.mdp)
    true = TRUE * steps * S * A * width
    if isinstance(learner, PosteriorSampling | OptimisticPlanning):
        tables, entries = (
            planner_tables(problem.automaton, S, A, learner.pooled),
            (1 if learner.pooled else H) * S * A * S,
        )
        unlisted = UNLISTED * entries * _zeros(learner, S)
        both = 16 * H * S * A * S if getattr(learner, "oracle", None) == "alternating" else 0
        if isinstance(learner, PosteriorSampling) and problem.automaton.longest == 0:
            both, unlisted = KEPT * entries, 0
        return int(true + tables + search_room(tables) + both - unlisted)
    if isinstance(learner, LossUCBVI):
        if not problem.has_delay_law:
            return 0  # it refuses such a link by name when it starts
        return true + SEQUENCE * (H + 1) * S * H + _tree(problem, width, episodes)
    if isinstance(learner, LinkLearner):
        return true + _link_learner(problem, learner, width, episodes)
    return 0


def _zeros(learner: Any, n_states: int) -> float:
    """The share of a posterior's draws that are too small for a number: a gamma variable with the parameter α is below x with a probability near x^α."""
    if not isinstance(learner, PosteriorSampling):
        return 0.0
    return math.exp(SMALLEST * (1.0 / n_states if learner.prior is None else learner.prior))


def longest_list(mdp: TabularMDP) -> tuple[int, int]:
    """(successors of the pair that has most, steps that differ)."""
    steps = [mdp.matrix(h) for h in range(1 if mdp.stationary_transitions else mdp.finite_horizon)]
    counts = (np.diff(P.indptr) if mdp.sparse else np.count_nonzero(P, axis=1) for P in steps)
    return max(int(count.max()) for count in counts), len(steps)


def _tree(problem: ImpairedMDP, width: int, episodes: int | None) -> int:
    """Of `LossUCBVI`: nodes with their rows of A, and the next states counted at them; a tenth of its room is not filled."""
    seen = problem.arrival_probability
    assert seen is not None
    S, A, H = problem.n_states, problem.n_actions, problem.horizon
    K = 1 if episodes is None else episodes
    nodes = entries = 1.0
    for h in range(H):
        hidden = 1.0
        for j in range(h + 2):  # the state of step h − j was seen, later ones were not; j = h + 1: none was
            visits = K * hidden * (seen[h - j] if j <= h else 1.0)
            met = min(float(power(A, j) * (S if j <= h else 1)), visits)
            nodes += met
            entries += min(met * A * width, visits * (seen[h + 1] if h + 1 < H else 0.0))
            hidden *= 1.0 - seen[h - j] if j <= h else 0.0
    return int(1.1 * (8 * (7 + 3 * A) * nodes + 24 * entries))


def _link_learner(problem: ImpairedMDP, learner: LinkLearner, width: int, episodes: int | None) -> int:
    """Of `LinkLearner`, without what the true process takes."""
    H, A = problem.horizon, problem.n_actions
    added = learner.optimism not in ("best", "posterior")  # one state more
    S = problem.n_states + added
    steps = 1 if learner.pooled is True and learner.optimism in ("prior", "posterior") and learner.draws == 1 else H
    pairs = S * A * S
    listed = S if learner.optimism == "posterior" else min(width, S, episodes or S) + 1
    tables = 8 * (3 * H + 1) * pairs + 32 * steps * pairs + 28 * steps * S * A * min(listed, S)
    links = 2 * corner_bytes(problem.automaton, S, A)
    room = search_room(planner_tables(problem.automaton, S - added, A, learner.pooled is True))
    ticks = max(len(problem.automaton.row(i)) for i in range(len(problem.automaton.nodes)))
    return tables + links + min(room, OPTIONS * ticks * (16 * S + 8 * (A + 17)))
