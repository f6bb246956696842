"""Brute-force oracle for finite decision processes with delayed or lost observations.

It works on raw histories.  A decision conditions on everything seen so far (all arrivals and all actions);
for each such history the oracle carries the unnormalised weight of every hidden trajectory that agrees with
it.  Hidden trajectories are merged when they agree on the current state, the current delay and the
observations still under way: nothing else of the hidden past can matter later.  Histories are never merged.

Steps are zero-based, i = 0..H-1.

* s_0 ~ rho;  s_{i+1} ~ P[i, s_i, a_i, :];  reward R[i, s_i, a_i].
* Delay: the observation of step i arrives at time i + d_i, before the action of that time is chosen.
  d_0 ~ first;  d_{i+1} = d_i + k with probability inter[i, s_i, a_i, k], independently of s_{i+1}.
  `first` alone means a delay that stays at d_0; `inter` alone means d_0 = 0.
* Loss: the observation of step i is lost with probability 1 - seen[i], independently of everything else.
  The agent learns of the loss at the time at which the observation would have arrived.
* Actuation delay k: the action chosen at time h is applied at step h + k; the steps 0..k-1 apply
  `initial_actions`.  Choices at times h with h + k >= H have no effect: no policy is asked for them.
* Warm start with constant delay d = `warm_delay`: the process has run the steps -d..-1 from a uniform state
  under uniform actions and the transitions P[0], without reward; at time 0 the agent knows s_{-d} and
  a_{-d}..a_{-1}; the observation of each step i >= -d arrives at time i + d.  `rho` is ignored.
  `warm_delay=0` only makes s_0 uniform, and goes with loss and with every law that has d_0 = 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Arrivals = tuple[tuple[int, int | None], ...]


class Entry(NamedTuple):
    """What the agent gets to know at one time; a history is a tuple of them, one for each time 0..h."""

    arrivals: Arrivals  # (step, state) of each observation that arrives; (step, None) is the notice of a loss
    action: int | None  # the action chosen at the previous time; None at time 0
    past: tuple[int, ...] = ()  # warm start, time 0 only: the actions of the steps -d..-1


History = tuple[Entry, ...]
Policy = Callable[[History], Sequence[float] | Array]


class Hidden(NamedTuple):
    """A class of hidden trajectories up to some time h."""

    state: int  # s_h
    delay: int  # d_h, or H once h + d_h >= H
    under_way: tuple[tuple[int, int, int | None], ...]  # (arrival time < H, step, state or None if lost)
    log: tuple[float, ...]  # what a law asks for (arrival times or rewards so far); empty for values


Weights = dict[Hidden, float]
Actions = tuple[int | None, ...]


def _support(pmf: Any) -> list[tuple[int, float]]:
    chances: list[float] = np.asarray(pmf, float).tolist()  # a list: these are short, and asked for at every history
    assert min(chances) >= 0, "a negative probability"
    assert abs(sum(chances) - 1) < 1e-9, "probabilities that do not sum to one"
    return [(k, p) for k, p in enumerate(chances) if p > 0]


class _Process:
    """The process of the module docstring.  `log`: "" for nothing, "arrivals" or "rewards"."""

    def __init__(
        self,
        P: Any,
        R: Any,
        rho: Any,
        first: Any,
        inter: Any,
        seen: Any,
        warm_delay: int | None,
        actuation: int,
        initial_actions: Sequence[int],
        log: str = "",
    ) -> None:
        P, R = np.asarray(P, float), np.asarray(R, float)
        H, S, A = R.shape
        first = np.ones(1) if first is None else np.asarray(first, float)
        inter = np.ones((H, S, A, 1)) if inter is None else np.asarray(inter, float)
        seen = np.ones(H) if seen is None else np.asarray(seen, float)
        assert (P.shape, inter.shape[:3], seen.shape) == ((H, S, A, S), (H, S, A), (H,)), "shapes"
        assert len(initial_actions) == actuation, "one initial action for each step of actuation delay"
        if warm_delay is not None:
            rho = np.full(S, 1 / S)
            assert first[0] == 1, "a warm start fixes the first delay"
            if warm_delay > 0:
                assert (inter[..., 0] == 1).all(), "a warm start from before step 0 has a constant delay"
                assert (seen == 1).all(), "a warm start from before step 0 has no loss"
        self.H, self.S, self.A, self.log = H, S, A, log
        self.warm, self.k, self.initial = warm_delay or 0, actuation, tuple(initial_actions)
        self.R: list[list[list[float]]] = R.tolist()
        self.seen: list[float] = seen.tolist()
        self.rho, self.first = _support(rho), _support(first)
        each = [(i, s, a) for i in range(H) for s in range(S) for a in range(A)]
        self.P = {isa: _support(P[isa]) for isa in each}
        self.inter = {isa: _support(inter[isa]) for isa in each}

    def starts(self) -> Iterator[tuple[Actions, Weights]]:
        """Each sequence of actions fixed before time 0 (steps -d..k-1), with the hidden weights at time 0."""
        if self.warm == 0:
            weights: Weights = defaultdict(float)
            for s, p in self.rho:
                for d, q in self.first:
                    for hidden, r in self.send(0, s, d, (), ()):
                        weights[hidden] += p * q * r
            yield self.initial, weights
            return
        d = self.warm
        runs: dict[Actions, Weights] = {(): {Hidden(s, d, ((0, -d, s),), ()): p for s, p in self.rho}}
        for i in range(-d, 0):
            longer: dict[Actions, Weights] = {}
            for past, weights in runs.items():
                for a in range(self.A):
                    after: Weights = defaultdict(float)
                    for hidden, w in weights.items():
                        for s, p in self.P[0, hidden.state, a]:
                            for sent, q in self.send(i + 1, s, d, hidden.under_way, ()):
                                after[sent] += w / self.A * p * q
                    longer[(*past, a)] = after
            runs = longer
        for past, weights in runs.items():
            yield past + self.initial, weights

    def send(
        self, i: int, s: int, d: int, under_way: tuple[Any, ...], log: tuple[float, ...]
    ) -> Iterator[tuple[Hidden, float]]:
        """Step i is reached in state s with delay d: its observation is sent, and perhaps lost."""
        if i + d >= self.H:
            d = self.H - min(i, 0)  # too late, and so is every later one: delays only grow
        seen = self.seen[i] if i >= 0 else 1.0
        for state, p in ((s, seen), (None, 1 - seen)):
            if p > 0:
                sent = (*under_way, (i + d, i, state)) if i + d < self.H else under_way
                time = -1 if state is None else min(i + d, self.H)
                yield Hidden(s, d, sent, (*log, time) if self.log == "arrivals" and i >= 0 else log), p

    def advance(self, h: int, weights: Weights, a: int) -> Weights:
        """Apply action a at step h: the hidden weights at time h + 1, before anything arrives there."""
        after: Weights = defaultdict(float)
        for hidden, w in weights.items():
            log = self.logged(h, hidden, a)
            for s, p in self.P[h, hidden.state, a]:
                for more, q in self.inter[h, hidden.state, a]:
                    for sent, r in self.send(h + 1, s, hidden.delay + more, hidden.under_way, log):
                        after[sent] += w * p * q * r
        return after

    def logged(self, h: int, hidden: Hidden, a: int) -> tuple[float, ...]:
        return (*hidden.log, self.R[h][hidden.state][a]) if self.log == "rewards" else hidden.log

    def split(self, h: int, weights: Weights) -> dict[Arrivals, Weights]:
        """Sort the hidden weights by what arrives at time h."""
        parts: dict[Arrivals, Weights] = defaultdict(lambda: defaultdict(float))
        for hidden, w in weights.items():
            arrivals = tuple((i, s) for time, i, s in hidden.under_way if time == h)
            rest = tuple(message for message in hidden.under_way if message[0] > h)
            parts[arrivals][hidden._replace(under_way=rest)] += w
        return parts

    def entry(self, h: int, arrivals: Arrivals, actions: Actions) -> Entry:
        if h == 0:
            return Entry(arrivals, None, actions[: self.warm])  # type: ignore[arg-type]
        return Entry(arrivals, actions[-1])

    def applied(self, h: int, actions: Actions) -> int:
        a = actions[self.warm + h]
        assert a is not None
        return a

    def value(
        self,
        h: int,
        weights: Weights,
        history: History,
        actions: Actions,
        policy: Policy | None,
    ) -> float:
        """Weighted reward of the steps h.. under the policy; under the best one if the policy is None.

        `actions` are those of the steps -d..h+k-1, that is, all that are fixed before the choice of time h.
        """
        total = 0.0
        for arrivals, part in self.split(h, weights).items():
            known = (*history, self.entry(h, arrivals, actions))

            def worth(choice: int | None, part: Weights = part, known: History = known) -> float:
                chosen = (*actions, choice)
                a = self.applied(h, chosen)
                gain = sum(w * self.R[h][hidden.state][a] for hidden, w in part.items())
                if h == self.H - 1:
                    return gain
                return gain + self.value(h + 1, self.advance(h, part, a), known, chosen, policy)

            if h + self.k >= self.H:
                total += worth(None)
            elif policy is None:
                total += max(worth(a) for a in range(self.A))
            else:
                total += sum(p * worth(a) for a, p in _support(policy(known)))
        return total

    def collect(
        self,
        h: int,
        weights: Weights,
        history: History,
        actions: Actions,
        policy: Policy,
        law: dict[Any, float],
    ) -> None:
        """Add the weight of every complete log to the law."""
        for arrivals, part in self.split(h, weights).items():
            known = (*history, self.entry(h, arrivals, actions))
            choices = _support(policy(known)) if h + self.k < self.H else [(None, 1.0)]
            for choice, p in choices:
                chosen = (*actions, choice)
                a = self.applied(h, chosen)
                share = {hidden: w * p for hidden, w in part.items()}
                if h < self.H - 1:
                    self.collect(h + 1, self.advance(h, share, a), known, chosen, policy, law)
                else:
                    for hidden, w in share.items():
                        law[self.logged(h, hidden, a)] += w


def _law(process: _Process, policy: Policy) -> dict[tuple[Any, ...], float]:
    law: dict[tuple[Any, ...], float] = defaultdict(float)
    for actions, weights in process.starts():
        process.collect(0, weights, (), actions, policy, law)
    return dict(law)


def optimal_value(
    P: Any,
    R: Any,
    rho: Any,
    *,
    first: Any = None,
    inter: Any = None,
    seen: Any = None,
    warm_delay: int | None = None,
    actuation: int = 0,
    initial_actions: Sequence[int] = (),
) -> float:
    """The best expected total reward over all policies that act on the observable history."""
    process = _Process(P, R, rho, first, inter, seen, warm_delay, actuation, initial_actions)
    return sum(process.value(0, weights, (), actions, None) for actions, weights in process.starts())


def policy_value(
    P: Any,
    R: Any,
    rho: Any,
    policy: Policy,
    *,
    first: Any = None,
    inter: Any = None,
    seen: Any = None,
    warm_delay: int | None = None,
    actuation: int = 0,
    initial_actions: Sequence[int] = (),
) -> float:
    """The expected total reward of policy(history) -> probabilities of the A actions."""
    process = _Process(P, R, rho, first, inter, seen, warm_delay, actuation, initial_actions)
    return sum(process.value(0, weights, (), actions, policy) for actions, weights in process.starts())


def arrival_law(
    P: Any,
    rho: Any,
    policy: Policy,
    *,
    first: Any = None,
    inter: Any = None,
    seen: Any = None,
    warm_delay: int | None = None,
    actuation: int = 0,
    initial_actions: Sequence[int] = (),
) -> dict[tuple[int, ...], float]:
    """The law of the arrival times of the observations of the steps 0..H-1.

    A time is H if it lies after the episode, and -1 if the observation is lost (whenever its notice comes).
    """
    R = np.zeros(np.shape(P)[:3])
    process = _Process(P, R, rho, first, inter, seen, warm_delay, actuation, initial_actions, "arrivals")
    return _law(process, policy)


def return_law(
    P: Any,
    R: Any,
    rho: Any,
    policy: Policy,
    *,
    first: Any = None,
    inter: Any = None,
    seen: Any = None,
    warm_delay: int | None = None,
    actuation: int = 0,
    initial_actions: Sequence[int] = (),
) -> dict[float, float]:
    """The law of the total reward, the totals rounded to 9 digits."""
    process = _Process(P, R, rho, first, inter, seen, warm_delay, actuation, initial_actions, "rewards")
    law: dict[float, float] = defaultdict(float)
    for rewards, p in _law(process, policy).items():
        law[round(math.fsum(rewards), 9)] += p
    return dict(law)


def random_pmf(rng: np.random.Generator, n: int) -> Array:
    """A distribution on 0..n-1: a point mass one time in four, otherwise some entries may be zero."""
    pmf: Array = np.eye(n)[rng.integers(n)]
    if rng.random() < 0.25:
        return pmf
    pmf = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.7)
    return pmf / pmf.sum() if pmf.any() else np.full(n, 1 / n)


def random_instance(
    rng: np.random.Generator, S: int, A: int, H: int, *, stationary: bool = False, sparse: bool = False
) -> tuple[Array, Array, Array]:
    """Random P, R in [0, 1] and rho; sparse: with zero probabilities, and rewards 0, 1/2 or 1 (so ties)."""
    n = 1 if stationary else H
    P = rng.dirichlet(np.ones(S), size=(n, S, A))
    R = rng.random((n, S, A))
    rho = rng.dirichlet(np.ones(S))
    if sparse:
        P = np.array([random_pmf(rng, S) for _ in range(n * S * A)]).reshape(n, S, A, S)
        R = rng.choice([0.0, 0.0, 0.5, 1.0], size=(n, S, A))
        rho = random_pmf(rng, S)
    if stationary:
        P, R = np.repeat(P, H, axis=0), np.repeat(R, H, axis=0)
    return P, R, rho


def random_law(rng: np.random.Generator, H: int, S: int, A: int, K: int, *, kind: str) -> tuple[Array, Array]:
    """Random (first, inter) of shapes (K,) and (H, S, A, K).

    kind "constant": d_0 is a point mass and the delay stays; "iid": one law for every increment, and another
    one for d_0; "state_action": a law of its own for each (i, s, a).
    """
    if kind == "constant":
        return np.eye(K)[rng.integers(K)], np.broadcast_to(np.eye(K)[0], (H, S, A, K)).copy()
    if kind == "iid":
        return random_pmf(rng, K), np.broadcast_to(random_pmf(rng, K), (H, S, A, K)).copy()
    if kind == "state_action":
        inter = np.array([random_pmf(rng, K) for _ in range(H * S * A)]).reshape(H, S, A, K)
        return random_pmf(rng, K), inter
    raise ValueError(f"unknown kind {kind!r}")


def random_policy(rng: np.random.Generator, A: int) -> Policy:
    """A random policy of the whole history; it gives the same answer each time it is asked."""
    table: dict[History, Array] = {}

    def policy(history: History) -> Array:
        if history not in table:
            table[history] = random_pmf(rng, A)
        return table[history]

    return policy
