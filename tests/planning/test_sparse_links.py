"""A sparse process behind losses and every other link: the numbers of the dense one, and no dense array of it, however large it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import oldlight as ol
from oldlight.model.held_steps import HeldSteps
from oldlight.planning import blackout
from oldlight.planning.blackout import blackout_values
from oldlight.planning.informed import InformedBounds
from oracle import random_instance

pytestmark = pytest.mark.usefixtures("no_dense_array")


def pair(seed: int, H: int | None = 5, **options: Any) -> tuple[ol.TabularMDP, ol.TabularMDP]:
    """The same process twice: dense, sparse."""
    S, A = 5, 2
    stationary = H is None or seed % 2 == 0
    P, R, rho = random_instance(np.random.default_rng(seed), S, A, H or 1, stationary=stationary, sparse=seed % 3 > 0)
    steps = [sparse.csr_array(step.reshape(S * A, S)) for step in P]
    R = R[0] if H is None else R
    dense = ol.TabularMDP(P[0] if stationary else P, R, horizon=H, initial=rho, **options)
    return dense, ol.TabularMDP(steps[0] if stationary else steps, R, horizon=H, initial=rho, **options)


LINKS: dict[str, Any] = {
    "loss": ol.Loss(rate=0.3),
    "late and lossy": ol.Lossy(ol.ConstantDelay(1), rate=0.3),
    "bursts": ol.BurstyLoss(0.2, 0.5),
    "packets": ol.PacketChannel({0: 0.4, 1: 0.4, 2: 0.2}, lost=0.1),
    "in order": ol.FIFODelay({0: 0.5, 2: 0.5}),
    "hidden": ol.HiddenLink([[0.8, 0.2], [0.3, 0.7]], delays=[[0.5, 0.5], [0.2, 0.3]]),
    "renewal": ol.RenewalLoss([0.5, 0.2, 0.3]),
}


@pytest.mark.crossed("kind", "seed")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", LINKS)
def test_plans_policies_and_controllers_agree(kind: str, seed: int, tmp_path: Path) -> None:
    one, other = (ol.ImpairedMDP(mdp, LINKS[kind], actuation=seed % 2) for mdp in pair(seed))
    dense, plan = ol.solve(one), ol.solve(other)
    assert dense.exact
    assert plan.exact
    assert plan.value == pytest.approx(dense.value, abs=1e-12)
    assert float(ol.evaluate(other, plan.policy)) == pytest.approx(dense.value, abs=1e-12)
    assert plan.value_by_start == pytest.approx(dense.value_by_start, abs=1e-12)
    again = ol.load_policy(plan.policy.save(tmp_path / "policy.npz"))
    assert float(ol.evaluate(other, again)) == pytest.approx(dense.value, abs=1e-12)
    played = [ol.simulate(p, s.policy, 100, seed=1).returns for p, s in ((one, dense), (other, plan), (other, plan))]
    assert np.array_equal(played[0], played[1])
    assert ol.gap(other).gap == pytest.approx(ol.gap(one).gap, abs=1e-12)
    runs = [_driven(ol.Controller(p, s.policy), one, tmp_path) for p, s in ((one, dense), (other, plan))]
    assert runs[0] == runs[1]


def _driven(controller: ol.Controller, problem: ol.ImpairedMDP, folder: Path) -> list[int]:
    """What a controller does that hears some states late, some never; made, saved and loaded."""
    controller = ol.Controller.load(controller.save(folder / "controller.npz"))
    rng, out = np.random.default_rng(7), []
    for _ in range(20):
        controller.reset()
        for h in range(problem.horizon):
            if h >= problem.actuation and rng.random() < 0.6:
                controller.observe(h - problem.actuation, int(rng.integers(problem.n_states)))
            if h + problem.actuation < problem.horizon:
                out.append(controller.act())
    return out


@pytest.mark.crossed("kind", "how")
@pytest.mark.parametrize("kind", ["loss", "late and lossy", "bursts", "packets"])
@pytest.mark.parametrize("how", [{"discount": 0.8}, {"average": True}])
def test_plans_for_ever_agree(kind: str, how: dict[str, Any], tmp_path: Path) -> None:
    one, other = (ol.ImpairedMDP(mdp, LINKS[kind]) for mdp in pair(2, None, **how))
    dense, plan = (ol.solve(problem, tolerance=1e-3) for problem in (one, other))
    assert (plan.lower, plan.upper) == pytest.approx((dense.lower, dense.upper), abs=1e-12)
    again = ol.load_policy(plan.policy.save(tmp_path / "policy.npz"))
    played = [
        ol.simulate(p, policy, 50, steps=40, seed=3).returns
        for p, policy in ((one, dense.policy), (other, plan.policy), (other, again))
    ]
    assert np.array_equal(played[0], played[1])
    assert np.array_equal(played[0], played[2])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["loss", "late and lossy"])
def test_bounds_by_products_agree(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pass after pass, also the value of the policy: by its words, and where these are too many by lists that go forward."""
    one, other = (ol.ImpairedMDP(mdp, LINKS[kind]) for mdp in pair(seed))
    dense, lists = InformedBounds(one), InformedBounds(other)
    for _ in range(4):
        dense.run(0.0)
        lists.run(0.0)
        assert (lists.lower, lists.upper) == pytest.approx((dense.lower, dense.upper), abs=1e-12)
        assert lists.low_by_start == pytest.approx(blackout_values(other, lists.policy()), abs=1e-12)
    assert blackout_values(one, dense.policy()) == pytest.approx(dense.low_by_start, abs=1e-12)
    monkeypatch.setattr(blackout, "ROOM", 7)
    assert lists.low_by_start == pytest.approx(blackout_values(other, lists.policy()), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_held_steps_are_those_of_the_process(seed: int) -> None:
    dense, lists = pair(seed)
    one, other = HeldSteps.of(dense), HeldSteps.of(lists)
    kept = np.array([1])
    rng = np.random.default_rng(seed)
    for t in range(5):
        b, v = rng.dirichlet(np.ones(5)), rng.normal(size=5)
        b[rng.integers(5)] = 0.0
        for a in range(2):
            assert other.push(b, t, a) == pytest.approx(b @ dense.transitions[t, :, a], abs=1e-15)
            assert lists.advanced(b, t, a) == pytest.approx(dense.advanced(b, t, a), abs=1e-15)
        for steps in (one, other):
            assert steps.of_actions(kept).push(b, t, 0) == pytest.approx(dense.advanced(b, t, 1), abs=1e-15)
            t_held = min(t, len(steps) - 1)
            assert steps.expected(v, t_held) == pytest.approx(dense.expected(v, t_held), abs=1e-15)
    assert all(good for steps in (one, other, other.of_actions(kept)) for _, good in steps.parts())


def test_lists_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    policy = ol.solve(ol.ImpairedMDP(pair(1)[1], LINKS["packets"])).policy
    good = dict(policy.arrays)
    for name, change in {
        "first": lambda x: x + (x == x[0, 1]),
        "successor": lambda x: np.where(np.arange(len(x)) == 3, 5, x),
        "probability": lambda x: x * (1 + 1e-3 * (np.arange(len(x)) == 0)),
    }.items():
        policy.arrays = good | {name: change(good[name])}
        with pytest.raises(ol.UnreadableFile, match=r"first|successor|probability"):
            ol.load_policy(policy.save(tmp_path / "damaged.npz"))


def large(S: int, H: int) -> ol.TabularMDP:
    rng = np.random.default_rng(0)
    A, K = 3, 3
    row, column = np.repeat(np.arange(S * A), K), rng.integers(S, size=S * A * K)
    P = sparse.csr_array((rng.dirichlet(np.ones(K), size=S * A).reshape(-1), (row, column)), shape=(S * A, S))
    return ol.TabularMDP(P, rng.random((S, A)), horizon=H)


@pytest.mark.parametrize(
    ("link", "S"), [("loss:0.1", 20_000), ("constant:1+loss:0.1", 5_000), ("packets:0=0.6,1=0.4", 5_000)]
)
def test_thousands_of_states_have_certified_bounds(link: str, S: int) -> None:
    """A dense array of 20,000 states would have 9 GB. The certificate is checked by play and by links that are better and worse."""
    problem = ol.ImpairedMDP(large(S, 6), link)
    plan = ol.solve(problem, tolerance=0.02)
    assert plan.upper - plan.lower <= 0.02
    played = ol.simulate(problem, plan.policy, 4_000, seed=0)
    assert played.half_width * 2 > abs(played.mean - plan.lower)  # four standard errors
    better, worse = (ol.solve(problem.behind(other)).value for other in ("constant:0", "constant:2"))
    assert worse < plan.upper
    assert plan.lower < better
