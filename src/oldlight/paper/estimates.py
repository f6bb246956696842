"""How fast p̂, θ̂, λ̂ and b̂ come to the truth, measured on a process that a policy plays.

Every estimate is the mean of a *stream* of independent draws with one law, in the order in which they were met:

    p̂_t(·|s, a)      the next states after (s_t, a_t) = (s, a);  under loss, where s_t and s_{t+1} were both seen
    θ̂_t(s, a, δ)     did the wait end at δ, among those still waiting at δ
    λ̂_h              was s_h seen
    b̂_h(·|τ_h)       the states s_h that were seen after the same parent (τ_{h−1}, a_{h−1})

The inequalities, for all streams and all lengths n = 1, 2, .. at once, with D = max delay + 1 (at most H),
ι = log(S·A·H·K/γ), and V* every value function that Q* looks ahead to:

    |(p̂ − p)·V*| ≤ H·√(D·ι/n)      |θ̂ − θ| ≤ √(D·ι/n)                                        under delay
    TV(p̂, p) ≤ √(S·ι/(2n))         |λ̂ − λ| ≤ 2·√(log(H·K/γ)/n)      |(b̂ − b)·r| ≤ √(H·ι/n)   under loss

The last divides by the number of draws behind b̂; the paper prints N_h(τ_h, a_h), which is another number (and then the
inequality is false: `counterexamples.optimism_missing_printed`). `left` of a claim is the share of runs in which all of
them hold, `right` is 1 − γ. `detail["rates"]` has, for each estimate, the slope of log(root mean square error) against
log n, which is −1/2 for independent draws, and the standard deviation of that slope: with M streams of errors that are close
to normal the logarithm of the root mean square has variance 1/(2M), and the errors of the first n and of the first n' > n
draws are correlated by √(n/n').
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.paper.bounds import log_term
from oldlight.paper.claims import Claim
from oldlight.planning.delay import DelayModel, Induction, Stage
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation import Simulation, simulate

SHORTEST = 16  # draws from which on errors are taken for normal


class Stream(NamedTuple):
    """Draws of one law: the error of the mean after 1..n draws ([n, parts]), what it is measured by ([parts, functions]),
    the most that the inequality allows after n draws times √n, and n·E|error|²."""

    estimate: str
    error: Floats
    measure: Floats
    bound: float
    variance: float


@dataclass
class Watched:
    """What was found of one kind of estimate."""

    good: list[bool] = field(default_factory=list)  # per run: does the inequality hold throughout?
    squares: list[Floats] = field(default_factory=list)  # per stream: |error|² after 1..n draws
    variances: list[float] = field(default_factory=list)


def estimates(
    problem: ImpairedMDP,
    episodes: int,
    *,
    c: float = 1.0,
    gamma: float = 0.1,
    runs: int = 1,
    seed: Seed = 0,
    policy: Policy | None = None,
) -> Claim:
    """The inequalities of the module's text, right sides times c, in runs of a policy.

    Parameters
    ----------
    problem : ImpairedMDP
        Under delay, or loss alone.
    episodes : int
        K.
    c, gamma : float
        The constant, γ.
    runs, seed : int; int, SeedSequence or Generator
        How many, and the random seed of the first.
    policy : Policy, optional
        Actions at random if None.

    Returns
    -------
    Claim
        left: the share of runs in which all of them hold; right: 1 − γ; `detail["rates"]`: how fast each estimate comes to the truth.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.estimates(ol.ImpairedMDP(ol.instances.dichotomy(1), "loss:0.2"), 100).holds
    True
    """
    K = checks.whole("episodes", episodes, least=1)
    checks.whole("runs", runs, least=1)
    A = problem.n_actions
    iota = log_term(problem.n_states, A, problem.horizon, K, gamma)
    played_by = FunctionPolicy(lambda _: np.full(A, 1.0 / A), A) if policy is None else policy
    stages: list[Stage] = []
    if problem.arrival_probability is None:
        Induction(DelayModel.of(problem), kept=stages).run()
    elif problem.law.constant != 0:
        raise ValueError(f"{problem.channel!r} delays and loses; this is about one of the two")
    found: dict[str, Watched] = defaultdict(Watched)
    first = seed_number(seed)
    for run in range(runs):
        played = simulate(problem, played_by, K, seed=first + run, record=True)
        streams = (
            _delay(problem, played, stages, iota)
            if problem.arrival_probability is None
            else _loss(problem, played, K, gamma, iota)
        )
        good: dict[str, bool] = defaultdict(lambda: True)
        for stream in streams:
            n = np.arange(1, len(stream.error) + 1)[:, None]
            good[stream.estimate] &= bool(
                (np.abs(stream.error @ stream.measure) <= c * stream.bound / np.sqrt(n) + 1e-12).all()
            )
            if stream.variance > 0:
                found[stream.estimate].squares.append((stream.error**2).sum(axis=1))
                found[stream.estimate].variances.append(stream.variance)
        for name, held in good.items():
            found[name].good.append(held)
    together = np.all([watched.good for watched in found.values()], axis=0)
    share = float(together.mean())
    detail = {
        "share of runs": {name: float(np.mean(watched.good)) for name, watched in found.items()},
        "rates": {name: slope(watched) for name, watched in found.items() if watched.squares},
    }
    return Claim("concentration of the estimates", share, 1.0 - gamma, share >= 1.0 - gamma, detail, "≥")


def slope(watched: Watched) -> tuple[float, float]:
    """(slope of log root mean square error against log n, its standard deviation if the rate is −1/2), from the longer half
    of the streams."""
    lengths = [len(x) for x in watched.squares if len(x) >= 4 * SHORTEST]
    if not lengths:
        return math.nan, math.nan  # too few draws
    longest = 2 ** int(math.log2(np.median(lengths)))
    n = np.array([2**i for i in range(int(math.log2(SHORTEST)), int(math.log2(longest)) + 1)])
    kept = [i for i, x in enumerate(watched.squares) if len(x) >= longest]
    rms = np.sqrt(np.mean([watched.squares[i][n - 1] for i in kept], axis=0))
    weights = np.log(n) - np.log(n).mean()
    weights /= (weights**2).sum()
    v = np.array([watched.variances[i] for i in kept])
    streams = v.sum() ** 2 / (v**2).sum()  # as many as there would be of equal variance
    covariance = np.minimum.outer(n, n) / np.maximum.outer(n, n) / (2 * streams)
    return float(weights @ np.log(rms)), float(np.sqrt(weights @ covariance @ weights))


def _stream(estimate: str, draws: NDArray[np.int64], truth: Floats, measure: Floats, bound: float) -> Stream:
    """The stream of draws 0..len(truth)−1, as shares of each."""
    means = np.cumsum(np.eye(len(truth))[draws], axis=0) / np.arange(1, len(draws) + 1)[:, None]
    return Stream(estimate, means - truth, measure, bound, float(1.0 - (truth**2).sum()))


def _delay(problem: ImpairedMDP, played: Simulation, stages: list[Stage], iota: float) -> Iterator[Stream]:
    H, A, warmup, law = problem.horizon, problem.n_actions, problem.warmup, problem.law
    states, actions, arrivals = played.record
    D = min(H, law.max_delay + 1)
    wide = math.sqrt(D * iota)
    for i in range(warmup + H - 1):
        t = i - warmup
        pair = states[:, i].astype(np.int64) * A + actions[:, i]
        late = arrivals[:, i] - t
        wait = arrivals[:, i + 1] - arrivals[:, i] - 1
        uncut = late + wait < law.longest_delay  # else the wait was cut short
        for sa in np.unique(pair).tolist():
            s, a = divmod(sa, A)
            here = pair == sa
            following = states[here, i + 1].astype(np.int64)
            yield _stream("p̂", following, problem.transitions_at(t)[s, a], ahead(stages, t), H * wide)
            table = law.at_step(law.hazard, t)
            hazard = table[min(s, table.shape[0] - 1), min(a, table.shape[1] - 1)]
            for delta in range(len(hazard)) if warmup == 0 else ():
                at_risk = here & ((wait > delta) | ((wait == delta) & uncut))
                if at_risk.any():
                    ended = (wait[at_risk] == delta).astype(np.int64)
                    truth = np.array([1.0 - hazard[delta], hazard[delta]])
                    yield _stream("θ̂", ended, truth, np.array([[0.0], [1.0]]), wide)


def ahead(stages: list[Stage], t: int) -> Floats:
    """The values that Q* expects after step t: V*[s_{t+1}, (queue, action)], for every time at which s_{t+1} may arrive."""
    found = [
        stages[h + 1].values[h - t, 0] for h in range(max(t, 0), len(stages) - 1) if (h - t, 0) in stages[h + 1].values
    ]
    return np.concatenate(found, axis=1)


def _loss(problem: ImpairedMDP, played: Simulation, K: int, gamma: float, iota: float) -> Iterator[Stream]:
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    P, R, rates = problem.mdp.transitions, problem.mdp.rewards, problem.arrival_probability
    assert rates is not None
    states, actions = played.revealed.astype(np.int64), played.record[1].astype(np.int64)
    # TV: half of the best choice of signs
    sides = 1.0 - 2.0 * ((np.arange(2**S)[None, :] >> np.arange(S)[:, None]) & 1)
    for h in range(H):
        arrived = (states[:, h] >= 0).astype(np.int64)
        truth = np.array([1.0 - rates[h], rates[h]])
        yield _stream("λ̂", arrived, truth, np.array([[0.0], [1.0]]), 2 * math.sqrt(math.log(H * K / gamma)))
        if h == H - 1:
            continue
        both = (states[:, h] >= 0) & (states[:, h + 1] >= 0)
        for s, a in np.ndindex(S, A):
            following = states[both & (states[:, h] == s) & (actions[:, h] == a), h + 1]
            if len(following):
                yield _stream("p̂", following, P[h, s, a], sides / 2, math.sqrt(S * iota / 2))
    # what the agent knows at time h, numbered: 0..S−1 a seen state, then what was known before and the action since
    known, beliefs = np.zeros(K, dtype=np.int64), problem.initial[None]
    for h in range(H):
        for one in np.unique(known).tolist():
            following = states[(known == one) & (states[:, h] >= 0), h]
            if len(following):
                yield _stream("b̂", following, beliefs[one], R[h], math.sqrt(H * iota))
        lost, number = np.unique(known, return_inverse=True)
        known = np.where(states[:, h] >= 0, states[:, h], S + number) * A + actions[:, h]
        beliefs = np.concatenate([np.eye(S), beliefs[lost]])
        beliefs = np.einsum("is,sat->iat", beliefs, P[h]).reshape(-1, S)
