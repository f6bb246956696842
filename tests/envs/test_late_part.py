"""Two components, one seen at once and one late: the plan against a search over raw histories, which knows of no information state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.envs import LatePart


def random_process(seed: int, X: int, Y: int, A: int, horizon: int, zeros: bool = False) -> ol.TabularMDP:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(X * Y, 0.3 if zeros else 1.0), size=(X * Y, A))
    if zeros:
        P = np.where(P < 0.1, 0.0, P)
        P /= P.sum(axis=2, keepdims=True)
    initial = rng.dirichlet(np.ones(X * Y))
    return ol.TabularMDP(P, rng.random((X * Y, A)), horizon=horizon, initial=initial)


def by_raw_histories(mdp: ol.TabularMDP, X: int, d: int) -> float:
    """max over all policies of raw histories: each history (what was seen, what was done) with the weights of all hidden paths that fit it."""
    S, A, Y = mdp.n_states, mdp.n_actions, mdp.n_states // X

    def seen(path: tuple[int, ...]) -> tuple[int, Any]:
        y_step = len(path) - 1 - d
        return path[-1] // Y, path[y_step] % Y if y_step >= 0 else None

    def value(paths: dict[tuple[int, ...], float], h: int) -> float:
        if h == mdp.horizon:
            return 0.0
        best = -np.inf
        for a in range(A):
            earned = sum(w * mdp.rewards[h, path[-1], a] for path, w in paths.items())
            split: dict[Any, dict[tuple[int, ...], float]] = {}
            for path, w in paths.items():
                for s in range(S):
                    p = w * mdp.transitions[h, path[-1], a, s]
                    if p > 0:
                        split.setdefault(seen((*path, s)), {})[(*path, s)] = p
            best = max(best, earned + sum(value(part, h + 1) for part in split.values()))
        return best

    begin: dict[Any, dict[tuple[int, ...], float]] = {}
    for s in range(S):
        if mdp.initial[s] > 0:
            begin.setdefault(seen((s,)), {})[(s,)] = float(mdp.initial[s])
    return sum(value(paths, 0) for paths in begin.values())


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("d", "sizes"), [(0, (2, 2, 2, 3)), (1, (2, 2, 2, 4)), (1, (3, 2, 2, 3)), (2, (2, 2, 2, 4)), (3, (2, 2, 2, 3)), (2, (1, 3, 2, 4)), (2, (3, 1, 2, 3))])  # fmt: skip
def test_the_plan_is_that_of_raw_histories(d: int, sizes: tuple[int, int, int, int], zeros: bool) -> None:
    X, Y, A, H = sizes
    mdp = random_process(d + 10 * X, X, Y, A, H, zeros)
    part = LatePart(mdp, at_once=X, delay=d)
    assert ol.solve(ol.ImpairedMDP(part.mdp, "none")).value == pytest.approx(by_raw_histories(mdp, X, d), abs=1e-10)
    if X == 1:  # nothing is seen at once: the delay alone
        assert ol.solve(ol.ImpairedMDP(part.mdp, "none")).value == pytest.approx(ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d))).value, abs=1e-10)  # fmt: skip


def test_the_plan_earns_its_value_on_the_process_itself() -> None:
    """Played with what an agent really sees, within four standard errors; more than behind a delay of both, less than with both at once."""
    mdp, X, d = random_process(3, 3, 4, 3, 6), 3, 2
    part = LatePart(mdp, at_once=X, delay=d)
    best = ol.solve(ol.ImpairedMDP(part.mdp, "none"))
    rng, Y = np.random.default_rng(1), 4
    returns = np.zeros(3000)
    for k in range(len(returns)):
        states, actions = [int(rng.choice(12, p=mdp.initial))], []
        for h in range(mdp.horizon):
            first = max(h - d, 0)
            known = part.state(states[first] % Y if h >= d else None, [s // Y for s in states[first:]], actions[first:])
            a = best.policy.action(ol.Information.seen(h, known, (), 0))
            returns[k] += mdp.rewards[h, states[-1], a]
            actions.append(a)
            states.append(int(rng.choice(12, p=mdp.transitions[h, states[-1], a])))
    assert abs(returns.mean() - best.value) < 4 * returns.std(ddof=1) / np.sqrt(len(returns))
    late, full = (ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(k))).value for k in (d, 0))
    assert late < best.value < full


def test_what_is_refused() -> None:
    mdp = random_process(0, 2, 3, 2, 3)
    with pytest.raises(ValueError, match="a divisor of the 6 states"):
        LatePart(mdp, at_once=4, delay=1)
    with pytest.raises(ValueError, match=r"expected at most 200,000; give a shorter delay"):
        LatePart(mdp, at_once=2, delay=12)
    changing = ol.TabularMDP(np.stack([mdp.transitions[0]] * 3), mdp.rewards, horizon=3)
    with pytest.raises(ValueError, match="the same at every step"):
        LatePart(changing, at_once=2, delay=1)
    part = LatePart(mdp, at_once=2, delay=1)
    assert repr(part) == f"LatePart(2 × 3 values, the second late by 1, {part.mdp.n_states} states of what is known)"
    assert part.known[part.state(1, [0, 1], [1])] == (1, (0, 1), (1,))
    with pytest.raises(ValueError, match="cannot be known"):
        part.state(None, [0, 1], [1])
