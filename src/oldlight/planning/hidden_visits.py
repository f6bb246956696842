"""What an impaired observer would know while somebody who sees everything plays: the law ρ_h of the information state at each time h.

P(s_t, d_t) is carried forward; from each s_t the queues that the policy can produce are followed with the law of the hidden state, so
that under delay

    ρ_h(t, s, q, δ) = P(s_t = s, d_t = h − t − δ)·P(Δ_t ≥ δ | s, q_1)·P(actions q from s_t = s on),

and under loss, with λ the arrival probabilities,

    ρ_h(t, s, q) = P(s_t = s)·λ_t·Π_{t < i ≤ h} (1 − λ_i)·P(actions q from s_t = s on).

Before anything is seen there is no t, and the law of the start takes the place of P(s_t = s). The actions before a warm start are uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np

from oldlight.arrays import Floats
from oldlight.checks import TooLarge
from oldlight.model.held_steps import certain
from oldlight.model.information import Information
from oldlight.model.policies import MarkovPolicy
from oldlight.model.problem import ImpairedMDP

Measure = dict[Information, float]
# a time h, the wait then, and for each first action the probability of still knowing only t
Stay = tuple[int, int, Floats]
Seen = tuple[int | None, int | None]  # t and s_t; None before anything is seen


def hidden_visits(problem: ImpairedMDP, policy: MarkovPolicy, max_states: int) -> list[Measure]:
    """ρ_h, h = 0..H − 1, of a policy that acts on the true state."""
    walk = _Walk(problem, policy, max_states)
    if problem.arrival_probability is not None:
        sightings = _under_loss(walk, problem.arrival_probability)
    else:
        sightings = _after_warmup(walk) if problem.warmup else _under_delay(walk)
    for seen, law, stays in sightings:
        walk.follow(seen, law, stays)
    return walk.measures


class _Walk:
    def __init__(self, problem: ImpairedMDP, policy: MarkovPolicy, max_states: int) -> None:
        self.problem, self.policy, self.max_states = problem, policy, max_states
        self.measures: list[Measure] = [{} for _ in range(problem.horizon)]
        self.met = 0

    def acts(self, t: int, b: Floats) -> Iterator[tuple[int, Floats]]:
        """Each action taken at step t with the (unnormalised) law of s_t that goes with it."""
        A = self.problem.n_actions
        for a in range(A):
            chosen = b / A if t < 0 else np.where(self.policy.actions[t] == a, b, 0.0)
            if chosen.any():
                yield a, chosen

    def step(self, t: int, b: Floats) -> Floats:
        """The law of s_{t+1} after the law b of s_t."""
        return sum((self.advanced(chosen, t, a) for a, chosen in self.acts(t, b)), np.zeros(len(b)))

    def advanced(self, b: Floats, t: int, a: int) -> Floats:
        """The law of s_{t+1} after the law b of s_t and action a; before a warm start the process moves as at step 0."""
        return self.problem.mdp.advanced(b, max(t, 0), a)

    def follow(self, seen: Seen, b: Floats, stays: Iterable[Stay]) -> None:
        """Follow every queue from step t with the law b of s_t, and count what is known at each time of `stays`."""
        t, s = seen
        known: dict[int, list[tuple[int, Floats]]] = {}
        for h, wait, p in stays:
            known.setdefault(h, []).append((wait, p))
        level: dict[tuple[int, ...], Floats] = {(): b}
        for h in range(0 if t is None else t, max(known, default=-1) + 1):
            for wait, p in known.get(h, ()):
                for queue, vector in level.items():
                    mass = float(vector.sum() * p[queue[0] if queue else 0])
                    if mass > 0:
                        info = Information(h, t, s, queue, wait)
                        self.met += info not in self.measures[h]
                        self.measures[h][info] = self.measures[h].get(info, 0.0) + mass
            level = {
                (*queue, a): self.advanced(chosen, h, a)
                for queue, vector in level.items()
                for a, chosen in self.acts(h, vector)
            }
            if self.met + len(level) > self.max_states:
                refuse_size(self.max_states)


Sightings = Iterator[tuple[Seen, Floats, list[Stay]]]


def _each_state(t: int, b: Floats, stays: list[Stay]) -> Sightings:
    """Each state that s_t can be, seen."""
    for s in np.flatnonzero(b).tolist():
        yield (t, s), b[s] * certain(len(b), s), stays


def _under_loss(walk: _Walk, seen: Floats) -> Sightings:
    H, every = walk.problem.horizon, np.ones(walk.problem.n_actions)
    b = walk.problem.initial
    unseen = np.cumprod(1.0 - seen)
    yield (None, None), b, [(h, h + 1, unseen[h] * every) for h in range(H) if unseen[h] > 0]
    for t in range(H):
        lost = np.append(1.0, np.cumprod(1.0 - seen[t + 1 :]))
        if seen[t] > 0:
            yield from _each_state(t, b, [(t + j, j, seen[t] * lost[j] * every) for j in range(H - t) if lost[j] > 0])
        b = walk.step(t, b)


def _after_warmup(walk: _Walk) -> Sightings:
    """The delay is the warm-up, from the first step on."""
    H, d = walk.problem.horizon, walk.problem.warmup
    b = walk.problem.initial
    for t in range(-d, H - d):
        yield from _each_state(t, b, [(t + d, 0, np.ones(walk.problem.n_actions))])
        b = walk.step(t, b)


def _under_delay(walk: _Walk) -> Sightings:
    problem, law = walk.problem, walk.problem.law
    H, S, A, most = problem.horizon, problem.n_states, problem.n_actions, law.longest_delay
    later = [(h, h + 1, np.full(A, float(law.first[h + 1 :].sum()))) for h in range(H)]
    yield (None, None), problem.initial, [stay for stay in later if stay[2][0] > 0]
    mu = np.zeros((S, most + 1))  # [s, d]
    mu[:, : len(law.first)] = problem.initial[:, None] * law.first[: most + 1]
    for t in range(H):
        risk = np.broadcast_to(law.at_step(law.at_risk, t), (S, A, law.at_risk.shape[-1]))
        for s, d in np.argwhere(mu).tolist():
            longest = min(most - d, risk.shape[-1] - 1)
            stays = [(t + d + w, w, risk[s, :, w]) for w in range(longest + 1) if t + d + w < H]
            yield (t, s), mu[s, d] * certain(S, s), stays
        pmf = np.broadcast_to(law.at_step(law.interarrival, t), (S, A, law.interarrival.shape[-1]))
        following = np.zeros_like(mu)
        for d in range(most + 1):
            for a, chosen in walk.acts(t, mu[:, d]):
                for k in range(pmf.shape[-1]):
                    following[:, min(d + k, most)] += walk.advanced(chosen * pmf[:, a, k], t, a)
        mu = following


def refuse_size(max_states: int) -> NoReturn:
    raise TooLarge(
        f"the visitation measures of Proposition 4 have more than {max_states:,} information states; raise max_states in "
        "gap(problem, max_states=...), or take a shorter horizon or delay. The gap itself does not need them"
    )
