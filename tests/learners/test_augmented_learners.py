"""The augmented learners against their specification.

Two independent implementations must agree: `Reference` below does both augmented learners with dictionaries, from
`Episode.information` alone, and never uses a layout, a code or a compiled loop.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from baseline_cases import GAMMA, Random, problems, process, setting_of
from oldlight.learners import Setting, learn
from oldlight.learners.augmented_q_learning import AugmentedQLearning
from oldlight.learners.augmented_ucbvi import AugmentedUCBVI
from oldlight.learners.base import Episode
from oldlight.model.information import Information
from oldlight.simulation import World
from repeats import is_thorough

NAMES = (
    "none", "changing", "cold", "warm", "warm, long", "never", "geometric", "by pair", "two or none", "bernoulli",
    "late actions",
)  # fmt: skip


class Reference:
    """Both augmented learners from their specification, with dictionaries."""

    def __init__(self, problem: ol.ImpairedMDP, setting: Setting, pooled: bool, c: float) -> None:
        self.problem, self.setting, self.pooled, self.c = problem, setting, pooled, c
        self.H, self.A, self.R = setting.horizon, setting.n_actions, setting.rewards
        self.N: dict[Any, int] = defaultdict(int)  # (cell, a) → visits
        self.after: dict[Any, dict[Any, int]] = defaultdict(lambda: defaultdict(int))  # (cell, a) → {cell': times}
        self.Q: dict[Any, float] = {}  # (h, cell, a) → Q, and ("rest", ..) → G
        self.samples: dict[Any, list[Any]] = {}

    # a cell is ("rest", s, queue), ("root", queue) or ("node", h or step class, s, queue, δ)
    def cell(self, info: Information) -> Any:
        if info.t is None:
            return ("root", info.queue)
        when: Any = info.h
        if self.pooled:
            law = self.setting.law.interarrival
            laws = [law[min(i, len(law) - 1)] for i in range(self.H)]
            settled = min(i for i in range(self.H) if all(np.array_equal(x, laws[-1]) for x in laws[i:]))
            when = min(max(info.t, 0), settled)
        return ("node", when, info.state, info.queue, info.waited)

    @cached_property
    def infos(self) -> list[Information]:
        return list(ol.Layout.of(self.problem))

    @cached_property
    def longest(self) -> int:
        last = [i for i in self.infos if i.h == self.H - 1]
        return max(self.H if i.t is None else len(i.queue) + 1 for i in last)

    @cached_property
    def possible(self) -> set[tuple[int, int, int]]:
        return {(i.h, len(i.queue), i.waited) for i in self.infos if i.t is not None}

    def remaining(self, t: int) -> float:
        return float(sum(self.R[i].max() for i in range(max(t, 0), self.H)))

    def reward(self, t: int, s: int, a: int) -> float:
        return float(self.R[t, s, a]) if t >= 0 else 0.0

    def most(self, info: Information) -> float:
        if info.t is None:
            return self.remaining(0)
        return self.remaining(info.t + (1 if info.waited else 0))

    def moves(self, episode: Episode) -> tuple[list[Any], list[Any]]:
        """Of what is left after the last action, shortest queue first; and of the times, last first."""
        H, warmup = self.H, episode.warmup
        s, a, when = (x.tolist() for x in (episode.states, episode.actions, episode.arrivals))
        rest = []
        for j in range(2, self.longest + 1):
            for t in range(H - 2, -warmup - 1, -1):
                good = t + j <= H if self.pooled else t + j == H
                if good and when[t + 1 + warmup] > t + j - 1:
                    queue = tuple(a[t + warmup : t + j + warmup])
                    rest.append((("rest", s[t + warmup], queue), 0, ("rest", s[t + 1 + warmup], queue[1:])))
        infos = [episode.information(h) for h in range(H)]
        steps = []
        if infos[-1].t is None:
            steps.append((H - 1, infos[-1], a[H - 1], ("rest", s[0], tuple(a))))
        for h in range(H - 2, -1, -1):
            steps.append((h, infos[h], a[h + warmup], infos[h + 1]))
        return rest, steps

    def certain(self, info: Information) -> bool:
        """Is it known beforehand that nothing can arrive?"""
        if info.h == self.H - 1:
            return False
        m = info.h + 1 if info.t is None else len(info.queue)
        return (info.h + 1, m, 0) not in self.possible

    # -- UCBVI -----------------------------------------------------------------------------------------------------

    def count(self, episode: Episode) -> None:
        rest, steps = self.moves(episode)
        for x, a, y in rest:
            self.N[x, a] += 1
            self.after[x, a][y] += 1
        for _, info, a, follows in steps:
            x = self.cell(info)
            self.N[x, a] += 1
            self.after[x, a][follows if isinstance(follows, tuple) and follows[0] == "rest" else self.key(follows)] += 1

    def key(self, info: Information) -> Any:
        """What is enough to find `info` again from any time: is it an arrival of which state, or none?"""
        return ("none",) if info.waited > 0 else ("arrives", info.state)

    def next_info(self, info: Information, a: int, key: Any) -> Information:
        queue = (*info.queue, a)
        if key[0] == "none":
            return Information(info.h + 1, info.t, info.state, queue, info.waited + 1)
        if info.t is None:
            return Information(info.h + 1, 0, key[1], queue, 0)
        return Information(info.h + 1, info.t + 1, key[1], queue[1:], 0)

    def bonus(self, n: int) -> float:
        return self.c * self.H * math.sqrt(self.setting.log_term / n)

    def left(self, s: int, queue: tuple[int, ...]) -> float:
        t = self.H - len(queue)
        x = ("rest", s, queue)
        if len(queue) == 1:
            return self.reward(t, s, queue[0])
        if self.N[x, 0] == 0:
            return self.remaining(t)
        mean = sum(k * self.left(y[1], y[2]) for y, k in self.after[x, 0].items()) / self.N[x, 0]
        return min(self.remaining(t), self.reward(t, s, queue[0]) + self.bonus(self.N[x, 0]) + mean)

    def values(self, info: Information, known: dict[Information, Any]) -> list[float]:
        """X_h(τ, ·)."""
        if info in known:
            return list(known[info])
        out = []
        for a in range(self.A):
            n, queue = self.N[self.cell(info), a], (*info.queue, a)
            if info.h < self.setting.actuation and a != self.setting.pending[info.h]:
                out.append(-math.inf)
                continue
            r = 0.0
            if info.t is not None and info.state is not None:
                head = self.reward(info.t, info.state, queue[0])
                r = head if info.waited == 0 else 0.0
                if info.h == self.H - 1:
                    met = len(queue) == 1 or self.N[("rest", info.state, queue), 0] > 0
                    x = self.left(info.state, queue) - (head - r) if met else math.inf
                    out.append(min(self.most(info), x))
                    continue
            if n == 0:
                out.append(self.most(info))
                continue
            follows = self.after[self.cell(info), a]
            if info.h == self.H - 1:
                mean = sum(k * self.left(y[1], y[2]) for y, k in follows.items()) / n
            else:
                mean = sum(k * max(self.values(self.next_info(info, a, y), known)) for y, k in follows.items()) / n
            b = 0.0 if self.certain(info) else self.bonus(n)
            out.append(min(self.most(info), r + b + mean))
        known[info] = out
        return out

    def start(self, values: dict[Information, Any]) -> float:
        return sum(p * max(self.values(info, values)) for p, info in ol.model.information.beginnings(self.problem))

    # -- Q-learning ------------------------------------------------------------------------------------------------

    def q_left(self, s: int, queue: tuple[int, ...]) -> float:
        t = self.H - len(queue)
        if len(queue) == 1:
            return self.reward(t, s, queue[0])
        return min(self.remaining(t), self.Q.get(("rest", s, queue), math.inf))

    def q_values(self, info: Information) -> list[float]:
        out = []
        for a in range(self.A):
            queue = (*info.queue, a)
            if info.h < self.setting.actuation and a != self.setting.pending[info.h]:
                out.append(-math.inf)
            elif info.h == self.H - 1 and info.t is not None and info.state is not None:
                paid = self.reward(info.t, info.state, queue[0]) if info.waited else 0.0
                met = len(queue) == 1 or ("rest", info.state, queue) in self.Q
                x = self.q_left(info.state, queue) - paid if met else math.inf
                out.append(min(self.most(info), x))
            else:
                out.append(min(self.most(info), self.Q.get((info.h, self.cell(info), a), math.inf)))
        return out

    def learn(self, episode: Episode) -> None:
        H = self.H
        scale = self.c * math.sqrt(H**3 * self.setting.log_term)
        rest, steps = self.moves(episode)
        numbered = []
        for x, a, _ in rest:
            self.N[x, a] += 1
            numbered.append(self.N[x, a])
        for (x, _, y), n in zip(rest, numbered, strict=True):
            target = self.reward(H - len(x[2]), x[1], x[2][0]) + self.q_left(y[1], y[2]) + scale / math.sqrt(n)
            old, rate = self.Q.get(x, 0.0), (H + 1) / (H + n)
            self.Q[x] = (1 - rate) * old + rate * target
        numbered = []
        for _, info, a, _ in steps:
            self.N[self.cell(info), a] += 1
            numbered.append(self.N[self.cell(info), a])
        for u in range(H - 1, -1, -1):
            for (h, info, a, follows), n in zip(steps, numbered, strict=True):
                shifted = info
                if h != u:
                    if not self.pooled or info.t is None or u == H - 1:
                        continue
                    shifted = info._replace(h=u, t=u - len(info.queue))
                    if shifted not in self.infos_set or self.cell(shifted) != self.cell(info):
                        continue
                v = (
                    self.q_left(follows[1], follows[2])
                    if follows[0] == "rest"
                    else max(self.q_values(self.next_info(shifted, a, self.key(follows))))
                )
                r = 0.0
                if shifted.t is not None and shifted.state is not None and shifted.waited == 0:
                    r = self.reward(shifted.t, shifted.state, (*shifted.queue, a)[0])
                name = (u, self.cell(shifted), a)
                if self.certain(shifted):
                    self.Q[name] = r + v
                else:
                    rate = (H + 1) / (H + n)
                    self.Q[name] = (1 - rate) * self.Q.get(name, 0.0) + rate * (r + v + scale / math.sqrt(n))

    @cached_property
    def infos_set(self) -> set[Information]:
        return set(self.infos)


# -- the augmented learners against the reference ---------------------------------------------------------------------


def is_greedy(policy: ol.TablePolicy, values: dict[Information, list[float]]) -> None:
    for info, x in values.items():
        assert x[policy.action(info)] >= max(x) - 1e-9, info


@pytest.mark.parametrize(
    ("name", "pooled"), [(n, p) for n in NAMES for p in (False, True) if (n, p) != ("changing", True)]
)
def test_augmented_ucbvi_is_its_specification(name: str, pooled: bool) -> None:
    problem, c = problems(name), 0.03
    played = Random(problem, 40, seed=1)
    learner = AugmentedUCBVI(c, pooled=pooled)
    learner.start(played.setting, np.random.default_rng(0))
    reference = Reference(problem, played.setting, pooled, c)
    for k, episode in enumerate(played.episodes):
        learner.see(episode)
        reference.count(episode)
        if k in ((0, 1, 5, 39) if is_thorough() else (1, 39)):
            values: dict[Information, list[float]] = {}
            assert learner.estimate == pytest.approx(reference.start(values), abs=1e-9)
            for h in range(problem.horizon):  # wherever it has been, even if the plan's start does not lead there
                reference.values(episode.information(h), values)
            is_greedy(learner.policy(), {i: x for i, x in values.items() if learner.table.cell(i) >= 0})


@pytest.mark.parametrize(
    ("name", "pooled"), [(n, p) for n in NAMES for p in (False, True) if (n, p) != ("changing", True)]
)
def test_augmented_q_learning_is_its_specification(name: str, pooled: bool) -> None:
    problem, c = problems(name), 0.02
    played = Random(problem, 40, seed=2)
    learner = AugmentedQLearning(c, pooled=pooled)
    learner.start(played.setting, np.random.default_rng(0))
    reference = Reference(problem, played.setting, pooled, c)
    for k, episode in enumerate(played.episodes):
        learner.see(episode)
        reference.learn(episode)
        if k in (0, 1, 5, 39):
            start = sum(p * max(reference.q_values(info)) for p, info in ol.model.information.beginnings(problem))
            assert learner.estimate == pytest.approx(start, abs=1e-9)
            met = {i: reference.q_values(i) for i in reference.infos if learner.table.cell(i) >= 0}
            is_greedy(learner.policy(), met)


def test_counts_by_hand() -> None:
    """Two states, delay 1 from a warm start: s = 0, 1, 1, 0 at steps −1..2 and a = 1, 0, 1, 1."""
    problem = ol.ImpairedMDP(process(1, 2, 2, 3), ol.ConstantDelay(1), start=ol.WarmStart())
    states, actions = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 1])
    episode = Episode(states, actions, np.array([0, 1, 2, 3]), np.zeros(4), 1)
    setting = setting_of(problem, 10)
    alone, together = AugmentedUCBVI(), AugmentedUCBVI(pooled=True)
    for learner in (alone, together):
        learner.start(setting, np.random.default_rng(0))
        learner.see(episode)
    # τ_0 = (s_{−1} = 0, queue 1), a = 0;  τ_1 = (1, queue 0), a = 1;  at time 2 what is left is (1; 1, 1), then (0; 1)
    assert alone.visited(Information(0, -1, 0, (1,)), 0) == 1
    assert alone.visited(Information(1, 0, 1, (0,)), 1) == 1
    assert alone.visited(Information(1, 0, 0, (1,)), 0) == 0  # the pair of time 0 is not one of time 1
    assert alone.visits.sum() == 3
    assert together.visited(Information(1, 0, 0, (1,)), 0) == 1
    assert together.visited(Information(1, 0, 0, (1,)), 1) == 0
    # pooled: two pairs of times 0 and 1, and three queues of length two: (0; 1, 0), (1; 0, 1), (1; 1, 1)
    assert together.visits.sum() == 2 + 3
    alone.see(episode)
    assert alone.visited(Information(0, -1, 0, (1,)), 0) == 2


def test_a_plan_by_hand() -> None:
    """One state, two actions, delay 1 from a warm start, H = 2, reward 1 for action 0: values in closed form."""
    mdp = ol.TabularMDP(np.ones((1, 2, 1)), np.array([[1.0, 0.25]]), horizon=2)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start=ol.WarmStart())
    setting = setting_of(problem, 100)
    learner = AugmentedUCBVI(c=0.01)
    learner.start(setting, np.random.default_rng(0))
    assert learner.estimate == 2.0
    learner.see(Episode(np.zeros(3, int), np.array([0, 1, 1]), np.array([0, 1, 2]), np.zeros(3), 1))
    b = 0.01 * 2 * math.sqrt(math.log(1 * 2 * 2 * 100 / GAMMA))
    # at time 1 with queue (1): action 1 is known to give ¼ + b + ¼, action 0 was not met and could give 2
    assert learner.policy().action(Information(1, 0, 0, (1,))) == 0
    # at time 0 with queue (0): action 1 gives b + 2, clipped at 2, action 0 was not met: 2. So is the mean over queues
    assert learner.estimate == 2.0
    for last in ((0, 1, 0), (0, 0, 0), (0, 0, 1), (1, 1, 1), (1, 0, 0), (1, 1, 0), (1, 0, 1)):
        learner.see(Episode(np.zeros(3, int), np.array(last), np.array([0, 1, 2]), np.zeros(3), 1))
    # every pair of time 0 was met twice (b/√2) and every queue of two actions twice; 0, 0 is best and gives 2 − clipped
    assert learner.estimate == 2.0
    assert learner.policy().action(Information(1, 0, 0, (1,))) == 0
    assert learner.policy().action(Information(1, 0, 0, (0,))) == 0
    left = learner.values[0][learner.table.number[learner.table.shape.base[learner.table.shape.rest[2]] + 3]]
    assert left == pytest.approx(0.25 + 0.25 + b / math.sqrt(2), abs=1e-12)  # the queue (1, 1)


def test_what_is_left_is_counted_without_bias() -> None:
    """Pooled counts of (s_t, a_t..a_{t+j−1}) → s_{t+1}, under a policy whose actions copy the newest visible state: the
    later actions give s_{t+1} away as soon as it was seen. Every estimate is within Hoeffding's distance of P (total
    risk 1e-6)."""
    problem = problems("geometric")
    P, world, layout = np.array(problem.mdp.transitions[0]), World(problem), ol.Layout.of(problem)
    policy = ol.TablePolicy(layout, [0 if info.state is None else info.state for info in layout])
    learner = AugmentedUCBVI(pooled=True, planning="doubling")
    learner.start(setting_of(problem, 3000), np.random.default_rng(0))
    draws, player = world.draw(9, 0), world.player(policy)
    for k in range(3000):
        *_, states, actions, arrivals = world.play(player, draws.one(k), 1)
        learner.see(Episode(*(x[:, 0].astype(np.int64) for x in (states, actions, arrivals)), np.zeros(4), 0))
    table, checked = learner.table, 0
    for j in range(2, 5):
        for place in range(2 * 2**j):
            i = table.number[table.shape.base[table.shape.rest[j]] + place]
            n = int(learner.visits[i, 0]) if i >= 0 else 0
            if n < 100:
                continue
            k, share = learner.first[i, 0], 0.0
            while k >= 0:  # the successor's state is what its place is, without the queue
                share += learner.times[k] / n * (table.local[learner.follow[k]] // 2 ** (j - 1) == 1)
                k = learner.link[k]
            assert abs(share - P[place // 2**j, place % 2, 1]) < math.sqrt(math.log(2 * 56 / 1e-6) / (2 * n))
            checked += 1
    assert checked >= 8


def test_planning_by_doubling_plans_less_and_learns_the_same() -> None:
    problem = ol.ImpairedMDP(process(11, 3, 2, 4), ol.ConstantDelay(1), start=ol.WarmStart())
    full = learn(problem, AugmentedUCBVI(0.01), 1500, seed=1)
    seldom = learn(problem, AugmentedUCBVI(0.01, planning="doubling"), 1500, seed=1)
    changes = int((np.diff(seldom.estimates) != 0).sum())
    assert changes < 500
    assert seldom.shortfalls[-100:].mean() < 0.02 * seldom.best
    assert seldom.regret[-1] < 2 * full.regret[-1]
