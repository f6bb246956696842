"""Can an accounting error explain the paper's Table 1? Every error that one can name, and their combinations, exactly.

    python docs/scripts/table1.py

The stated process has gap 0 for every delay law, and the table prints 18 to 3,280 (× 10⁻⁴). Each *account* below is a way to
get the table wrong: one reading of the chain, one start, one treatment of the rewards, one executable policy, one scale, one
meaning of the column D. For every combination the 16 entries are computed exactly (no simulation) and compared with the
printed ones: how many are within two printed standard deviations, and the mean of |computed − printed|/printed.
Actions that do the same are merged, with their share of the five as weight; so the models are small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

import oldlight as ol
from oldlight.planning.augmented import AugmentedMDP, past_reward

Floats = NDArray[np.float64]
Layers = list[tuple[NDArray[np.int64], Any]]  # states of one time, and their transitions
S, H = 20, 10
DELAYS, BERNOULLI = (0, 1, 2, 3, 4), (0.9, 0.7, 0.5, 0.3)
PRINTED = np.array([[18, 1361, 2083, 2124, 185, 501, 684, 808], [71, 1781, 3232, 3280, 185, 636, 882, 1185]])
DEVIATION = np.array([[8, 19, 15, 24, 49, 50, 17, 16], [16, 69, 11, 11, 97, 57, 50, 32]])


ALL, CONSTANT, STOCHASTIC = slice(0, 8), slice(0, 4), slice(4, 8)


class Chain(NamedTuple):
    """P[s, a, s2], R[s, a], and the share of the five actions that each a stands for."""

    P: Floats
    R: Floats
    share: Floats


# -- readings of the chain ---------------------------------------------------------------------------------------------


def chain(
    p: float,
    *,
    turn: int = S // 2,
    pays: tuple[int, ...] = (S // 2 - 1, S // 2),
    others: str = "outward",
    ends: str = "stay",
    on_arrival: bool = False,
) -> Chain:
    """States below `turn` have their centre on the right. others: what actions 2 to 5 do; ends: what a move off an end does."""
    inward = np.array([1 if s < turn else -1 for s in range(S)])
    right = np.ones(S, dtype=int)
    moves, share = {
        "outward": ([inward, -inward], [1, 4]),
        "to an end at once": ([inward, inward * -S], [1, 4]),
        "left; the first right": ([right, -right], [1, 4]),
        "left, stay; the first right": ([right, -right, 0 * right], [1, 1, 3]),
        "outward; the first right, the second left": ([right, -right, -inward], [1, 1, 3]),
    }[others]
    P = np.zeros((S, len(moves), S))
    for a, move in enumerate(moves):
        for s in range(S):
            for step, weight in ((int(move[s]), p), (-int(np.sign(move[s])), 1 - p)):
                to = (s + step) % S if ends == "wrap" and abs(step) == 1 else min(max(s + step, 0), S - 1)
                P[s, a, to] += weight
    r = np.isin(np.arange(S), pays).astype(float)
    R = P @ r if on_arrival else np.repeat(r[:, None], len(moves), axis=1)
    return Chain(P, R, np.array(share) / 5)


CHAINS: dict[str, dict[str, Any]] = {
    f"turns at {turn}, pays in {pays[0] + 1} and {pays[1] + 1}": {"turn": turn, "pays": pays}
    for turn in (9, 10, 11)  # 10 and (9, 10), counted from 0, are the printed ones
    for pays in ((8, 9), (9, 10), (10, 11))
} | {
    "one rewarded state": {"pays": (9,)},
    "reward of the next state": {"on_arrival": True},
    "ends wrap round": {"ends": "wrap"},
    "other actions go to an end at once": {"others": "to an end at once"},
    "first action right, others left": {"others": "left; the first right"},
    "right, left, others outward": {"others": "outward; the first right, the second left"},
    "right, left, stay (the sensing chain)": {"others": "left, stay; the first right"},
}
STARTS = (
    "past",
    "past, full information from uniform",
    "uniform, unseen",
    "uniform, seen",
    "at the end",
    "at the centre",
)
FIRST = {"uniform": np.full(S, 1 / S), "at the end": np.eye(S)[0], "at the centre": np.eye(S)[S // 2 - 1]}
POLICIES = (
    "best executable", "full-information plan on the newest state", "best executable, at random until something is seen",
)  # fmt: skip
SCALES = ("total", "per step (H)", "per step (H + d)", "per step (2H)", "share of the value")


# -- one problem, every account ----------------------------------------------------------------------------------------


def full_plan(x: Chain, rewards: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """V[s] with full information, and the first best action for each (h, s)."""
    v, plan = np.zeros(S), np.zeros((H, S), dtype=np.int64)
    for h in range(H - 1, -1, -1):
        q = rewards[h] + x.P @ v
        plan[h], v = (q >= q.max(axis=1, keepdims=True) - 1e-12).argmax(axis=1), q.max(axis=1)
    return v, plan


def kind_of(start: str, delay: int | None) -> str:
    """What the agent knows at first: "warm" (a known past), "unseen" (nothing) or "seen" (the first state)."""
    if delay and start in ("past", "uniform, unseen"):
        return "warm" if start == "past" else "unseen"
    return "seen"


def model_of(x: Chain, kind: str, delay: int | None, p_zero: float) -> AugmentedMDP:
    """The past-reward twin of the chain behind a constant delay, or behind Bernoulli waits (delay None); the first state is uniform."""
    channel: ol.channels.Channel
    if delay is None:
        channel = ol.BernoulliDelay(p_zero, steps=3)
    elif kind != "seen":
        channel = ol.ConstantDelay(delay)
    else:  # the first state is seen at once, all others d late
        waits = np.zeros((H, 1, 1, delay + 1))
        waits[0, ..., delay] = waits[1:, ..., 0] = 1.0
        channel = ol.StochasticDelay(waits, first=[1.0])
    mdp = ol.TabularMDP(x.P, x.R, horizon=H, initial=FIRST["uniform"])
    return past_reward(ol.ImpairedMDP(mdp, channel, start=ol.WarmStart() if kind == "warm" else None))


def first_law(x: Chain, kind: str, start: str, delay: int) -> Floats:
    """The law of the first information state, actions of the past drawn by their share of the five."""
    if kind == "unseen":
        return np.ones(1)
    law = FIRST.get(start, FIRST["uniform"])
    for _ in range(delay if kind == "warm" else 0):
        law = np.kron(law, x.share)
    return law


def layers(model: AugmentedMDP) -> Layers:
    """The states of each time, the last time first, with their transitions."""
    A = model.problem.n_actions
    states = [np.flatnonzero(model.times == h) for h in np.unique(model.times)[::-1]]
    return [(at, model.transitions[(at[:, None] * A + np.arange(A)).ravel()]) for at in states]


def tied(steps: Layers, rewards: Floats) -> NDArray[np.bool_]:
    """[i, a, k]: is a among the best actions of state i, if these are the rewards [i, a, k]?"""
    v, q = np.zeros((len(rewards), rewards.shape[-1])), np.empty_like(rewards)
    for at, moves in steps:
        q[at] = rewards[at] + (moves @ v).reshape(rewards[at].shape)
        v[at] = q[at].max(axis=1)
    return q >= v[:, None] - 1e-12


def worth(steps: Layers, policies: Floats, rewards: Floats) -> Floats:
    """v[i, k] of each policy [i, a, k] with its rewards [i, a, k]."""
    v = np.zeros((len(rewards), rewards.shape[-1]))
    for at, moves in steps:
        v[at] = (policies[at] * (rewards[at] + (moves @ v).reshape(rewards[at].shape))).sum(axis=1)
    return v


def stale(model: AugmentedMDP, plan: NDArray[np.int64]) -> Floats:
    """The full-information plan played on the newest state that has been seen; the first action before that."""
    A = model.problem.n_actions
    acts = np.zeros(model.size, dtype=np.int64)
    for y in model.segments:
        if y.h < H and y.t is not None:
            acts[y.offset : y.offset + y.size] = plan[y.h, np.repeat(np.arange(S), A**y.m)]
    return np.eye(A)[acts]


@cache
def values(reading: str, p: float, kind: str, delay: int | None, p_zero: float) -> dict[tuple[str, str], Floats]:
    """What each executable policy earns from each first information state, by (policy, account)."""
    x = chain(p, **CHAINS[reading])
    model = model_of(x, kind, delay, p_zero)
    steps = layers(model)
    A, everything = len(x.share), model.rewards
    kept = np.where(model.times[:, None] >= H, 0.0, everything)  # what arrives after the last step is lost
    ties = tied(steps, np.stack([everything, kept], axis=-1))
    best, short = np.eye(A)[ties[..., 0].argmax(axis=1)], ties[..., 1]
    idle = best.copy()
    for y in model.segments:
        if y.t is None:
            idle[y.offset : y.offset + y.size] = x.share
    mixed = short * x.share
    chosen = {
        "first": np.eye(A)[short.argmax(axis=1)],
        "last": np.eye(A)[A - 1 - short[:, ::-1].argmax(axis=1)],
        "random": mixed / mixed.sum(axis=1, keepdims=True),
    }
    plans: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    for name, policy in zip(POLICIES, (best, stale(model, full_plan(x, rewards_of(x))[1]), idle), strict=True):
        plans[name, "all rewards"] = (policy, everything)
        plans[name, "late rewards lost"] = (policy, kept)
    plans[POLICIES[0], "late rewards lost"] = (chosen["first"], kept)
    for how, policy in chosen.items():
        plans[POLICIES[0], f"planned without late rewards, ties: {how}"] = (policy, everything)
    policies, rewards = (np.stack(parts, axis=-1) for parts in zip(*plans.values(), strict=True))
    (first,) = (y for y in model.segments if y.h == 0)
    v = worth(steps, policies, rewards)[first.offset : first.offset + first.size]
    return {key: v[:, k] for k, key in enumerate(plans)}


def executed(reading: str, p: float, start: str, delay: int | None, p_zero: float) -> dict[tuple[str, str], float]:
    """What each executable policy earns, by (policy, account)."""
    kind, x = kind_of(start, delay), chain(p, **CHAINS[reading])
    law = first_law(x, kind, start, delay or 0)
    return {key: float(law @ v) for key, v in values(reading, p, kind, delay, p_zero).items()}


def rewards_of(x: Chain, lost: int = 0) -> Floats:
    """R[h, s, a], without those of the last `lost` steps."""
    R = np.repeat(x.R[None], H, axis=0)
    R[H - lost :] = 0.0
    return R


def gaps(reading: str, p: float, start: str, delay: int | None, p_zero: float) -> dict[tuple[str, str, str], float]:
    """The gap by (policy, account, scale)."""
    x, lag = chain(p, **CHAINS[reading]), 3 if delay is None else delay
    begin = "past" if start.startswith("past") else start
    if delay is None and not begin.startswith("at"):
        begin = "uniform, seen"  # the first delay is 0
    law, earlier = FIRST.get(begin, FIRST["uniform"]), 0.0
    for _ in range(lag if begin == "past" else 0):
        earlier += float(law @ x.R @ x.share)
        law = law @ np.einsum("a,sat->st", x.share, x.P)
    if start == "past, full information from uniform":
        law = FIRST["uniform"]
    full, short = (float(law @ full_plan(x, rewards_of(x, lost))[0]) for lost in (0, lag))
    length = {"total": 1.0, "per step (H)": H, "per step (H + d)": H + lag, "per step (2H)": 2 * H}
    found = {}
    for (policy, account), value in executed(reading, p, begin, delay, p_zero).items():
        sides = {account: (full, value)}
        if account == "all rewards":
            sides["past rewards paid too"] = (full, value + earlier)
        if account == "late rewards lost":
            sides["late rewards lost on both sides"] = (short, value)
        for name, (above, below) in sides.items():
            for scale in SCALES:
                found[policy, name, scale] = (above - below) / length.get(scale, above or 1.0)
    return found


# -- all of them against the table ---------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """An account and its 16 entries × 10⁴, axes (process, column)."""

    account: tuple[str, ...]
    entries: Floats

    def error(self, columns: slice = ALL) -> float:
        """The mean of |computed − printed|/printed."""
        return float((np.abs(self.entries - PRINTED) / PRINTED)[:, columns].mean())

    def close(self, columns: slice = ALL) -> int:
        """How many entries are within two printed standard deviations."""
        return int((np.abs(self.entries - PRINTED) <= 2 * DEVIATION)[:, columns].sum())


def fits(readings: Iterable[str] = CHAINS) -> list[Fit]:
    """Every combination, of some readings of the chain."""
    found = []
    for reading, start in itertools.product(readings, STARTS):
        each = []
        for p in (0.99, 0.8):
            late = [gaps(reading, p, start, d, 0.0) for d in DELAYS]
            each.append((late, [gaps(reading, p, start, None, q) for q in BERNOULLI]))
        for key in each[0][0][0]:
            for skip, column in ((1, "D = d"), (0, "D = d + 1")):
                rows = [[g[key] for g in late[skip : skip + 4]] + [g[key] for g in waits] for late, waits in each]
                found.append(Fit((reading, start, *key, column), 1e4 * np.array(rows)))
    return found


def tables(entries: np.ndarray, apart: float = 1e-5) -> int:
    """How many rows of `entries` differ by more than `apart`; rounding alone, which is another on every processor, makes no table of its own."""
    rows = np.unique(np.round(entries, 9), axis=0)
    near = cKDTree(rows).query_pairs(apart, p=np.inf, output_type="ndarray")
    return int(connected_components(coo_array((np.ones(len(near)), near.T), shape=(len(rows), len(rows))))[0])


def main(readings: Iterable[str] = CHAINS) -> None:
    found = fits(readings)
    different = tables(np.array([fit.entries.reshape(-1) for fit in found]))
    nothing = sum(bool(np.abs(fit.entries).max() < 1e-6) for fit in found)
    best, most = min(fit.error() for fit in found), max(fit.close() for fit in found)
    print(
        f"{len(found):,} accounts, {different:,} different tables, {nothing:,} accounts with gap 0 throughout; "
        f"best fit off by {best:.0%}, at most {most} of 16 entries agree"
    )
    for title, columns in (("all", ALL), ("constant delay", CONSTANT), ("stochastic delay", STOCHASTIC)):
        n = PRINTED[:, columns].size
        nearest = min(found, key=lambda fit: fit.error(columns))
        agrees = max(found, key=lambda fit: (fit.close(columns), -fit.error(columns)))
        print(
            f"{title}: best fit off by {nearest.error(columns):.0%}; at most {agrees.close(columns)} of {n} entries agree"
        )
        for name, fit in (("best fit", nearest), ("most entries", agrees)):
            print(f"  {name}: {'; '.join(fit.account)}")
            print(
                "    " + " / ".join(" ".join(f"{x:.0f}" for x in np.round(row[columns]) + 0.0) for row in fit.entries)
            )


if __name__ == "__main__":
    main()
