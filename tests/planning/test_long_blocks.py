"""Blocks of the backward induction where the best is taken and nothing waits, beside the same maximum written with numpy.

The compiled loops take five, two or one actions at a time, share what twins have in common, and cut w into tiles: every remainder occurs here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oldlight.kernels import block as kernels
from oldlight.model.successors import Successors

NONE, NO_WAIT = np.empty((0, 0)), np.empty((0, 0, 0, 0))
CASES = {  # S, A, queue length, successors of a pair, heads that are twins of the first
    "two successors, twins": (4, 5, 5, 2, (2, 4)),
    "two successors, a tile and a rest": (3, 2, 10, 2, ()),
    "one or two successors, seven actions": (3, 7, 4, 1, (1,)),
    "three successors": (5, 3, 6, 3, ()),
    "six successors, four actions": (8, 4, 5, 6, (3,)),
    "matrix": (12, 3, 6, 12, (1,)),
    "matrix, one queue": (9, 4, 1, 9, ()),
    "few queues": (5, 3, 3, 2, (2,)),
    "no queue": (6, 5, 0, 3, ()),
}


def rows(rng: np.random.Generator, S: int, A: int, K: int, twins: tuple[int, ...]) -> Any:
    """Transitions with the rows s·A + a."""
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            n = K if K != 1 else 1 + (s + a) % 2
            P[s, a, rng.choice(S, n, replace=False)] = rng.dirichlet(np.ones(n))
        for a in twins:
            P[s, a] = P[s, 0]
    return P.reshape(S * A, S)


@pytest.mark.parametrize("name", CASES)
def test_the_best_action_of_every_queue(name: str) -> None:
    S, A, m, K, twins = CASES[name]
    rng = np.random.default_rng(S + A + m)
    P, R, theta = rows(rng, S, A, K, twins), rng.random((S, A)), rng.random((S, A))
    W, heads, choices = A ** max(m - 1, 0), A if m else 1, A if m else 1
    v = np.round(rng.random((S, choices, W)), 2)  # ties: the first action wins
    step = Successors.of(P)
    assert step.dense == name.startswith("matrix")
    lists = (step.index, step.weight, step.first, step.count, step.matrix)
    means = np.einsum("rs,saw->raw", P, v).reshape(S, A, choices, W)
    if m:
        expected = R[:, :, None] + theta[:, :, None] * means.max(axis=2)  # [s, q1, w]
    else:
        expected = (R[:, :, None] + theta[:, :, None] * means[:, :, 0]).max(axis=1, keepdims=True)
    expected = expected.swapaxes(1, 2)

    def found(*parts: tuple[int, int, int, int]) -> tuple[Any, Any]:
        value, action = np.full((S, W, heads), np.nan), np.full((S, W, heads), 255, np.uint8)
        given = kernels.Step(*lists, R, theta, NONE, NONE, np.inf)
        blocks, choice = kernels.Block(v, NO_WAIT, value), kernels.Choice(kernels.BEST, action, NO_WAIT)
        for s_from, s_to, w_from, w_to in parts:
            if m:
                kernels.back_up(given, blocks, choice, s_from, s_to, w_from, w_to)
            else:
                kernels.back_up_now(given, blocks, choice, s_from, s_to)
        return value, action

    value, action = found((0, S, 0, W))
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)
    for s, w, q in np.ndindex(S, W, heads):
        x = means[s, q, :, w] if m else R[s] + theta[s] * means[s, :, 0, 0]
        assert x[action[s, w, q]] >= x.max() - 1e-12
    half = W // 2 if W > 32 else W
    for parts in (((0, 1, 0, W), (1, S, 0, W)), ((0, S, 0, half), *(((0, S, half, W),) if half < W else ()))):
        again, again_action = found(*parts)
        np.testing.assert_allclose(again, value, rtol=0, atol=1e-12 if step.dense else 0)
        if not step.dense:
            np.testing.assert_array_equal(again_action, action)
