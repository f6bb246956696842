"""What an agent knows behind a channel that is planned by its automaton: a node, the newest visible state, the actions since."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, News
from oldlight.model.held_steps import certain
from oldlight.model.mdp import TabularMDP

if TYPE_CHECKING:
    from oldlight.model.problem import ImpairedMDP


class LinkInformation(NamedTuple):
    """What an agent knows at time h behind a channel that is planned by its automaton.

    Parameters
    ----------
    h : int
        The step that the action chosen now acts on.
    node : hashable
        The name of the automaton's node: what is known of the link.
    t, state : int or None
        The newest visible step and its state; None when nothing has been seen.
    queue : tuple of int
        The actions since step t (since step 0 when nothing has been seen), oldest first.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.Periodic(2))
    >>> problem.automaton.nodes
    (0, 1)
    >>> int(ol.belief(problem, ol.LinkInformation(h=0, node=0, t=0, state=4, queue=())).argmax())
    4
    """

    h: int
    node: Hashable
    t: int | None
    state: int | None
    queue: tuple[int, ...]


class PolicyOfNodes(ABC):
    """Base of the policies that are asked with a `LinkInformation`."""

    n_actions: int

    @abstractmethod
    def action(self, info: Any) -> int:
        """The action at `info`."""

    def probabilities(self, info: Any) -> Floats:
        """The probability of each action."""
        return certain(self.n_actions, self.action(info))

    @abstractmethod
    def fits(self, problem: ImpairedMDP) -> bool:
        """Was the policy made for a problem of these sizes behind a link of these nodes?"""


class NodePolicy(PolicyOfNodes):
    """`choose(info)` gives the action at a `LinkInformation` of one problem; each is asked once."""

    def __init__(self, problem: ImpairedMDP, choose: Callable[[LinkInformation], int]) -> None:
        self.problem, self.choose, self.n_actions = problem, choose, problem.n_actions
        self._known: dict[LinkInformation, int] = {}

    def action(self, info: LinkInformation) -> int:
        """The action at `info`."""
        if info not in self._known:
            self._known[info] = int(self.choose(info))
        return self._known[info]

    def fits(self, problem: ImpairedMDP) -> bool:
        mine = self.problem
        sizes = (mine.horizon, mine.n_states, mine.n_actions) == (problem.horizon, problem.n_states, problem.n_actions)
        return sizes and mine.automaton.nodes == problem.automaton.nodes


class NodeFollower:
    """The node of a link's automaton, followed by what is heard of it, episode by episode.

    Parameters
    ----------
    automaton : ChannelAutomaton
        That of the problem: later by the actuation delay.
    actuation : int
        How late actions are; time 0 is that of the first action that is chosen.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.model.link_information import NodeFollower
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "packets:0=.5,1=.5")
    >>> follower = NodeFollower(problem.automaton)
    >>> [follower.hear([]), follower.hear([0, 1]), follower.hear([])]  # nothing at time 0, two observations at time 1, then nothing
    [1, 0, 1]
    """

    def __init__(self, automaton: ChannelAutomaton, actuation: int = 0) -> None:
        self.automaton, self.actuation = automaton, actuation
        self.begin()

    def begin(self) -> None:
        """A new episode, before anything is heard at time 0."""
        self.node, self.h, self.newest = -1, -1, -1
        for _ in range(self.actuation):
            self.hear([])

    def hear(self, arrived: Sequence[int], lost: Sequence[int] = ()) -> int:
        """The next time: the steps whose observations arrive (those before the episode too), and those announced as lost. The number of
        the node; what the link cannot do is a ValueError."""
        self.h += 1
        step = max(arrived, default=-1)
        age = self.h - step if step > self.newest else NOTHING_NEWER
        news = News(tuple(sorted(self.h - i for i in arrived)), tuple(sorted(self.h - i for i in lost)))
        node = self.automaton.follow(self.node, age, news)
        if node is None:
            raise ValueError(
                f"at time {self.h} the observations of steps {list(arrived)} arrive, which cannot be after what was heard before; is this "
                f"the link that was planned for? {self.automaton!r}"
            )
        self.node, self.newest = node, max(step, self.newest)
        return node


def law_of_state(mdp: TabularMDP, info: LinkInformation, steps: int, initial: Floats | None = None) -> Floats:
    """The law of s_{t + steps} (of s_steps when nothing has been seen), from `info` and its first `steps` actions."""
    if info.t is None or info.state is None:
        b = mdp.initial if initial is None else initial
    else:
        b = certain(mdp.n_states, info.state)
    for i, a in enumerate(info.queue[:steps]):
        b = mdp.advanced(b, max((info.t or 0) + i, 0), a)
    return b


def ages_of(automaton: ChannelAutomaton, h: int) -> set[tuple[int, int | None]]:
    """(node, age of the newest visible observation; None: nothing is seen) that can be at time h."""
    return set(next(islice(automaton.age_laws(), h, None)))


def check_link(problem: ImpairedMDP, info: Any, automaton: ChannelAutomaton | None = None) -> None:
    """Raise ValueError if no episode of `problem` can lead to `info`; automaton: a merged one, if it is not the problem's own."""
    if not isinstance(info, LinkInformation):
        raise TypeError(
            f"behind {problem.channel!r} an information state is LinkInformation(h, node, t, state, queue), not {info!r}; its nodes are "
            "problem.automaton.nodes"
        )
    h, node, t, s, queue = info
    H, S, A, link = problem.horizon, problem.n_states, problem.n_actions, automaton or problem.automaton

    def no(why: str) -> ValueError:
        return ValueError(f"impossible information {tuple(info)}: {why}")

    if not 0 <= h < H:
        raise no(f"time h = {h} is outside 0..{H - 1}")
    if node not in link.nodes:
        raise no(f"{node!r} is not a node of problem.automaton, whose nodes are {str(list(link.nodes))[:80]}")
    if (t is None) != (s is None):
        raise no("t and state must both be given, or both be None when nothing has been seen")
    if t is not None and not 0 <= t <= h:
        raise no(f"the newest visible step t = {t} is outside 0..{h}")
    if len(queue) != h - (t or 0):
        raise no(f"from step t = {t or 0} to time h = {h} there are {h - (t or 0)} actions, not {len(queue)}")
    for i, a in enumerate(queue, t or 0):
        if not 0 <= a < A:
            raise no(f"action {a} in the queue is outside 0..{A - 1}")
        if i < problem.actuation and a != problem.pending[i]:
            raise no(f"the action of step {i} was under way before the start: it is {problem.pending[i]}, not {a}")
    if (link.nodes.index(node), None if t is None else h - t) not in ages_of(link, h):
        age = "before anything is seen" if t is None else f"with age {h - t}"
        raise no(f"at time {h} the link is never in node {node!r} {age}")
    if s is not None and t is not None:
        reached = problem.initial > 0
        for i in range(t):
            chosen = [problem.pending[i]] if i < problem.actuation else range(A)
            pairs = np.zeros((S, A))
            pairs[:, chosen] = reached[:, None]
            reached = np.asarray(pairs.reshape(-1) @ problem.matrix_at(i)) > 0
        if not 0 <= s < S or not reached[s]:
            raise no(f"no way of acting reaches state {s} at step {t}")


def check_endless_info(problem: ImpairedMDP, info: Any) -> None:
    """Raise ValueError if `info` cannot be known of a process that runs for ever; its time does not matter."""
    S, A, s, queue = problem.n_states, problem.n_actions, info.state, info.queue
    unknown = [a for a in queue if not 0 <= a < A]
    if (info.t is None) != (s is None) or (s is not None and not 0 <= s < S) or unknown:
        raise ValueError(
            f"impossible information {tuple(info)}: expected a state in 0..{S - 1}, or None together with t, and actions in 0..{A - 1}"
        )
