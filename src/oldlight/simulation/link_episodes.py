"""Episodes behind a channel that is planned by its automaton: messages are drawn, whatever the process does, and nodes follow.

The process draws what it draws behind any other channel: the same seed gives it the same random numbers. Messages are those of
`oldlight.model.channels.messages`; what is heard at each time leads from node to node of the automaton. A policy is asked once for each
different information state. With record=True `arrivals` has the time at which each observation arrived, in the time of the step that an action acts on
(H or later: after the episode; −1: lost, or never shown).

Channels whose messages are not drawn here (a delay law with a plan made by its automaton, a class of one's own that has nothing but an
automaton) draw nodes and ages; `arrivals` is then the time at which an observation became the newest visible one. Of those that never did, behind a delay law
without loss all are late and arrive one by one after the episode; behind a constant delay with independent losses each of the last ones is lost, or late, with the
channel's probability; else, where only the nodes would tell, they count as lost: −1.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, SILENCE, ChannelAutomaton, News
from oldlight.model.channels.messages import NEVER, SteppedLink
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.held_steps import certain
from oldlight.model.link_information import LinkInformation, PolicyOfNodes
from oldlight.model.link_policy import LinkPolicy
from oldlight.model.policies import (
    MarkovPolicy,
    Policy,
    as_probabilities,
)
from oldlight.model.policy_check import check_made_for
from oldlight.model.problem import ImpairedMDP
from oldlight.model.stationary_policy import StationaryPolicy
from oldlight.model.successors import successor_sums
from oldlight.random_streams import stream
from oldlight.simulation.world import CHUNK


def by_automaton(problem: ImpairedMDP, policy: Any) -> bool:
    """Is the policy asked with the nodes of the automaton? Always where there is no delay law, else if it was planned so."""
    return not problem.has_delay_law or (isinstance(policy, PolicyOfNodes) and policy.fits(problem))


def decide(problem: ImpairedMDP, policy: Any, info: LinkInformation) -> Floats:
    """What is done on `info`: what was under way before the start, then what the policy answers, checked."""
    if info.h < problem.actuation:
        return certain(problem.n_actions, problem.pending[info.h])
    return as_probabilities(policy.probabilities(info), problem.n_actions, f"the policy at {tuple(info)}")


def link_of(problem: ImpairedMDP, policy: Any) -> ChannelAutomaton:
    """The link that a policy is valued and played on: that of the problem, or of a plan for merged laws the true one."""
    link = policy.link_for(problem) if isinstance(policy, LinkPolicy | StationaryPolicy) else None
    return problem.automaton if link is None else link


class LinkDraws(NamedTuple):
    """The random numbers of the process and the policy, and what the link did, axes (step, episode)."""

    state: Floats
    action: Floats
    nodes: Ints
    ages: Ints
    arrivals: Ints

    @classmethod
    def of(cls, problem: ImpairedMDP, link: ChannelAutomaton, seed: int, chunk: int) -> LinkDraws:
        """Those of a chunk."""
        state, runs, action = (stream(seed, chunk, purpose) for purpose in range(3))
        shape = (problem.horizon, CHUNK)
        return cls(state.random(shape), action.random(shape), *link_runs(problem, link, runs, CHUNK))

    def some(self, episodes: slice) -> LinkDraws:
        """Those of some episodes alone."""
        return LinkDraws(*(x[:, episodes] for x in self))  # type: ignore[arg-type]

    def one(self, e: int) -> LinkDraws:
        """Those of episode e alone."""
        return self.some(slice(e, e + 1))


class LinkEpisodes:
    """Plays chunks of episodes of one problem with one policy."""

    def __init__(self, problem: ImpairedMDP, policy: Policy | MarkovPolicy) -> None:
        check_made_for(problem, policy)
        self.problem, self.policy = problem, policy
        self.link = link_of(problem, policy)
        self.successors, self.initial = successor_sums(problem.mdp), running_sums(problem.initial)
        self._known: dict[LinkInformation, Floats] = {}

    def following(self, policy: Policy | MarkovPolicy) -> LinkEpisodes:
        """The same with another policy."""
        check_made_for(self.problem, policy)
        other = copy(self)
        other.policy, other.link, other._known = policy, link_of(self.problem, policy), {}
        return other

    def law(self, info: LinkInformation) -> Floats:
        """What the policy does on `info`, as running sums; it is asked once."""
        law = self._known.get(info)
        if law is None:
            law = self._known[info] = running_sums(decide(self.problem, self.policy, info))
        return law

    def forget(self, most: int) -> None:
        """Drop the answers where they are more than that: the policy is asked again."""
        if len(self._known) > most:
            self._known = {}

    @property
    def asked(self) -> tuple[LinkInformation, ...]:
        """The different information states that the policy was asked with so far, in that order."""
        return tuple(self._known)

    def play(self, seed: int, chunk: int, n: int) -> tuple[Any, ...]:
        """As `World.play`: returns, rewards by step, ages, and states, actions, arrivals (step, episode)."""
        problem, H = self.problem, self.problem.horizon
        uniform, choice, nodes, ages, arrivals = LinkDraws.of(problem, self.link, seed, chunk).some(slice(n))
        states, actions = np.zeros((2, H, n), dtype=np.int32)
        counts = np.zeros((H, H + 1), dtype=np.int64)
        returns, earned = np.zeros(n), np.zeros(H)
        states[0] = np.searchsorted(self.initial, uniform[0], side="right")
        for h in range(H):
            counts[h] = np.bincount(np.where(ages[h] < 0, H, ages[h]), minlength=H + 1)
            actions[h] = self._choose(h, nodes[h], ages[h], states, actions, choice[h])
            reward = problem.mdp.rewards[h, states[h], actions[h]]
            returns += reward
            earned[h] = reward.sum()
            if h + 1 < H:
                pair = states[h].astype(np.int64) * problem.n_actions + actions[h]
                states[h + 1] = self.successors.drawn(h, pair, uniform[h + 1])
        return returns, earned, counts, states, actions, arrivals.astype(np.int32)

    def _choose(self, h: int, nodes: Ints, ages: Ints, states: Any, actions: Any, u: Floats) -> Ints:
        """The actions of time h: each different information state of the chunk is asked once."""
        if isinstance(self.policy, MarkovPolicy):
            return np.asarray(self.policy.actions[h, states[h]], dtype=np.int64)
        n = len(nodes)
        t = np.where(ages < 0, -1, h - ages)
        since = np.where(np.arange(h)[:, None] >= t, actions[:h], -1)  # what was done before step t no longer counts
        state = np.where(t < 0, -1, states[np.maximum(t, 0), np.arange(n)])
        rows = np.vstack([nodes, t, state, since])
        one, inverse = _different(rows)
        different = rows[:, one].T
        names = self.link.nodes
        laws = np.empty((len(different), self.problem.n_actions))
        for i, (node, step, s, *done) in enumerate(different.tolist()):
            seen = step >= 0
            queue = tuple(done[step:]) if seen else tuple(done)
            info = LinkInformation(h, names[node], step if seen else None, s if seen else None, queue)
            laws[i] = self.law(info)
        return np.asarray((laws[inverse] <= u[:, None]).sum(axis=1))


def link_runs(
    problem: ImpairedMDP, automaton: ChannelAutomaton, rng: np.random.Generator, n: int
) -> tuple[Ints, Ints, Ints]:
    """n runs of the link, axes (h, run): the node, the age of the newest visible step (−1: nothing seen), and when the observation of
    step h arrived."""
    H, k, channel = problem.horizon, problem.actuation, problem.channel
    arrivals, each = np.full((H, n), NEVER), np.arange(n)
    if not isinstance(channel, SteppedLink) or automaton.nodes != problem.automaton.nodes:
        nodes, ages = automaton.sample(rng, n)
        for h in range(H):
            seen = np.flatnonzero(ages[h] >= 0)
            steps = h - ages[h, seen]
            new = arrivals[steps, seen] < 0
            arrivals[steps[new], seen[new]] = h
        return nodes, ages, _after_the_episode(problem, arrivals, rng)
    shown, link = np.full((H, n), NOTHING_NEWER), np.zeros(n, dtype=np.int64)
    for i in range(H):
        step, when, link = channel.tell(np.full(n, i), link, rng.random((channel.draws, n)))
        shown[i] = np.where(when == i, i - step, NOTHING_NEWER)
        told = np.flatnonzero((step >= 0) & (when >= 0))
        told = told[arrivals[step[told], told] < 0]
        arrivals[step[told], each[told]] = when[told]
    nodes, ages = np.empty((H, n), dtype=np.int64), np.empty((H, n), dtype=np.int64)
    at, newest = np.full(n, -1), np.full(n, -1)
    for h in range(H):
        w = h - k  # the time at which the action of step h is chosen
        rows = _heard(channel, w, arrivals, shown)
        step = np.full(n, -1)
        for age, there in rows:
            step = np.where(there & (w - age > step) & (age <= w), w - age, step)
        new = step > newest
        newest = np.where(new, step, newest)
        now = np.where(new, h - newest, NOTHING_NEWER)
        at = _followed(problem, at, now, [] if problem.automaton.tells_by_age else rows)
        nodes[h], ages[h] = at, np.where(newest < 0, -1, h - newest)
    return nodes, ages, np.where(arrivals < 0, NEVER, arrivals + k)


def _after_the_episode(problem: ImpairedMDP, arrivals: Ints, rng: np.random.Generator) -> Ints:
    """The same, with what arrives after the episode where the channel has a delay law; see the module's text."""
    channel, (H, n) = problem.channel, arrivals.shape
    if not channel.has_delay_law:
        return arrivals
    if channel.loss is None:  # in order and none is lost: what was never seen are the last ones
        first = (arrivals >= 0).sum(axis=0)
        return np.where(arrivals < 0, H + np.arange(H)[:, None] - first, arrivals)
    late, modes = problem.law.constant, channel.loss.modes(H)
    if late is None or modes is None or len(modes.first) > 1:
        return arrivals
    last = np.arange(max(H - late, 0), H)
    seen = rng.random((len(last), n)) < channel.loss.arrival_probabilities(H)[last, None]
    arrivals[last] = np.where(seen, last[:, None] + late, NEVER)
    return arrivals


def _heard(link: SteppedLink, w: int, arrivals: Ints, shown: Ints) -> list[tuple[int, NDArray[np.bool_]]]:
    """The ages that arrive at time w, youngest first, each with the runs where it does."""
    if w < 0:
        return []
    if not link.sends_messages:
        ages = np.unique(shown[w])
        return [(age, shown[w] == age) for age in ages[ages >= 0].tolist()]
    return [(age, arrivals[w - age] == w) for age in range(min(w, link.longest) + 1)]


def _followed(problem: ImpairedMDP, at: Ints, age: Ints, rows: list[tuple[int, NDArray[np.bool_]]]) -> Ints:
    """The next node of each run; each different case is looked up once."""
    table = np.vstack([at, age, *(there for _, there in rows)])
    one, inverse = _different(table)
    found = np.empty(len(one), dtype=np.int64)
    for j, (n, newest, *there) in enumerate(table[:, one].T.tolist()):
        heard = tuple(k + problem.actuation for (k, _), yes in zip(rows, there, strict=True) if yes)
        node = problem.automaton.follow(n, newest, News(heard) if heard else SILENCE)
        assert node is not None, "messages and automaton of one channel agree"
        found[j] = node
    return found[inverse]


def _different(rows: Ints) -> tuple[Ints, Ints]:
    """The columns that differ: where one of each is, and which of them each column is."""
    key, bound = np.zeros(rows.shape[1], dtype=np.int64), 1
    for row in rows:
        low, size = int(row.min()), int(row.max()) - int(row.min()) + 1
        if bound * size >= 2**62:
            key, bound = np.unique(key, return_inverse=True)[1], len(key)
        key, bound = key * size + (row - low), bound * size
    _, one, inverse = np.unique(key, return_index=True, return_inverse=True)
    return one, inverse
