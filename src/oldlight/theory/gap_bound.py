from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oldlight.information import Information, beginnings, belief, moves
from oldlight.planning import solve
from oldlight.problem import ImpairedMDP

Floats = NDArray[np.float64]
Measure = dict[Information, float]
Choices = dict[Information, tuple[int, ...]]


def optimal_actions(problem: ImpairedMDP, tolerance: float = 1e-9) -> Choices:
    best = solve(problem)
    choices: Choices = {}
    waiting = [info for _, info in beginnings(problem)]
    while waiting:
        info = waiting.pop()
        if info in choices:
            continue
        q = best.q(info)
        choices[info] = tuple(np.flatnonzero(q >= q.max() - tolerance).tolist())
        if info.h + 1 < problem.horizon:
            waiting += [after for a in choices[info] for _, after in moves(problem, info, a)]
    return choices


def selections(
    choices: Choices, horizon: int, limit: int, rng: np.random.Generator
) -> Iterator[dict[Information, int]]:
    free = [info for info, acts in choices.items() if len(acts) > 1 and info.h + 1 < horizon]
    base = {info: acts[0] for info, acts in choices.items()}
    count = 1
    for info in free:
        count = min(count * len(choices[info]), limit + 1)
    if count <= limit:
        for picked in itertools.product(*(choices[info] for info in free)):
            yield base | dict(zip(free, picked, strict=True))
    else:
        for _ in range(limit):
            yield base | {info: choices[info][int(rng.integers(len(choices[info])))] for info in free}


def observed(problem: ImpairedMDP, full: Floats) -> list[Measure]:
    H, S = problem.horizon, problem.n_states
    measures: list[Measure] = [{} for _ in range(H)]
    reached: dict[tuple[Information, tuple[int, ...]], float] = {}
    for p, info in beginnings(problem):
        base = 0 if info.t is None else info.t
        paths = (
            {(info.state,): p} if info.state is not None else {(s,): p * float(problem.initial[s]) for s in range(S)}
        )
        for i, a in enumerate(info.queue):
            row = problem.transitions_at(base + i)[:, a]
            paths = {(*path, s2): w * float(row[path[-1], s2]) for path, w in paths.items() for s2 in range(S)}
        for path, w in paths.items():
            if w > 0:
                reached[info, path] = w
    for h in range(H):
        following = {}
        for (info, path), w in reached.items():
            measures[h][info] = measures[h].get(info, 0.0) + w
            if h + 1 == H:
                continue
            s = path[-1]
            for a in range(problem.n_actions):
                wa = w * float(full[h, s, a])
                if wa <= 0:
                    continue
                after = list(moves(problem, info, a))
                arrives = sum(p for p, i2 in after if i2.t != info.t)
                t2 = next((i2.t for _, i2 in after if i2.t != info.t), None)
                base = 0 if info.t is None else info.t
                for s2 in range(S):
                    ws = wa * float(problem.transitions_at(h)[s, a, s2])
                    if ws <= 0:
                        continue
                    longer = (*path, s2)
                    if arrives > 0:
                        k = t2 - base
                        key = (
                            Information(
                                h + 1, t2, longer[k], (*info.queue, a)[len(info.queue) + 1 - (h + 1 - t2) :], 0
                            ),
                            longer[k:],
                        )
                        following[key] = following.get(key, 0.0) + ws * arrives
                    if arrives < 1:
                        key = Information(h + 1, info.t, info.state, (*info.queue, a), info.waited + 1), longer
                        following[key] = following.get(key, 0.0) + ws * (1 - arrives)
        reached = following
    return measures


def terms(problem, of_full, of_exec):
    H = problem.horizon
    e1, e2 = np.zeros(H), np.zeros(H)
    for h in range(H):
        r = problem.mdp.rewards[h]
        one, two = of_full[h], of_exec[h]
        e2[h] = 0.5 * sum(abs(one.get(i, 0.0) - two.get(i, 0.0)) for i in one.keys() | two.keys())
        for info in one.keys() & two.keys():
            b = belief(problem, info)
            e1[h] += float(b @ r.max(axis=1) - (b @ r).max()) * min(one[info], two[info])
    return e1, e2
