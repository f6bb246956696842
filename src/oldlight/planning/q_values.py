"""Q-values at information states: the recursion of `oldlight.planning.delay` for a few queues, from the next time's values.

The law of s_t is pushed through the head of the queue before the next time's values are read, so that one information state costs a product of
a law with P_t(·|·, q1) and one with the S × A values of its queue, and many of them, with equal queues together, are products of matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.model.information import advance, push
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.delay import DelayModel, Stage


def back_up_rows(
    model: DelayModel, h: int, t: int | None, laws: Floats, queues: NDArray[Any], waited: int, following: Stage
) -> Floats:
    """E[X_h[s, q1..qm, a]] of the module's text, s_t ~ laws[i] (s_0 at the root), for each row i of the queues: axes [i, a]."""
    layout = model.layout
    A, H, m = layout.n_actions, layout.horizon, queues.shape[1]
    codes = queues.astype(np.int64) @ A ** np.arange(m) if m else np.zeros(len(laws), np.int64)
    out = np.zeros((len(laws), A))
    if t is None:
        first = 1.0 if h == H - 1 else model.first_theta(h)
        seen = following.root if h == H - 1 else following.values.get((h + 1, 0))
        _add(out, first * laws, seen, codes, A)
        if h < H - 1:
            _add(out, (1 - first) * laws, following.root, codes, A)
        return out
    reward, theta = model.reward(t, waited), model.theta(t, m, waited)
    if h == H - 1:
        theta = np.ones_like(theta)
    after = following.values.get((m, 0))
    if m == 0:
        out += laws @ reward
        if after is not None:
            out += laws @ (theta * (model.problem.matrix_at(t) @ after[:, 0]).reshape(theta.shape))
        if h < H - 1 and (1, waited + 1) in following.values:
            out += laws @ ((1 - theta) * following.values[1, waited + 1])
        return out
    head = queues[:, 0].astype(np.int64)
    arrives = laws * theta[:, head].T
    out += (laws * reward[:, head].T).sum(axis=1, keepdims=True)
    _add(out, advance(arrives, head, model.problem.matrix_at(t)), after, codes // A, A)
    if h < H - 1:
        _add(out, laws - arrives, following.values.get((m + 1, waited + 1)), codes, A)
    return out


def _add(out: Floats, laws: Floats, values: Floats | None, codes: NDArray[np.int64], A: int) -> None:
    """out[i, a] += Σ_s laws[i, s]·values[s, (codes[i], a)]; rows of one code are one product."""
    if values is None:
        return
    by_action = values.reshape(len(values), A, -1)
    if len(laws) == 1:
        out[0] += laws[0] @ by_action[:, :, int(codes[0])]
        return
    order = np.argsort(codes, kind="stable")
    different, begin = np.unique(codes[order], return_index=True)
    for code, rows in zip(different.tolist(), np.split(order, begin[1:]), strict=True):
        out[rows] += laws[rows] @ by_action[:, :, code]


def q_values(
    model: DelayModel, h: int, t: int | None, b: Floats, queue: tuple[int, ...], waited: int, following: Stage
) -> Floats:
    """E[rewards of steps h, h+1, ... | s_t ~ b, queue, wait, a], from the stage of time h + 1; at the root s_0 ~ b."""
    skip = 1 if waited and t is not None else 0
    queues = np.array(queue, dtype=np.int64).reshape(1, -1)
    found: Floats = back_up_rows(model, h, t, b[None], queues, waited, following)[0]
    return found - earned(model.problem, b, t or 0, queue, skip)


def earned(problem: ImpairedMDP, b: Floats, t: int, queue: tuple[int, ...], skip: int = 0) -> float:
    """What the steps of the queue are expected to earn, without the first `skip` of them."""
    total = 0.0
    for i, a in enumerate(queue):
        if i >= skip:
            total += float(b @ problem.rewards_at(t + i)[:, a])
        b = push(problem, b, t + i, (a,))
    return total
