"""What a first user gives by mistake is refused in words that name the cause; rounding is not shown as a price."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import oldlight as ol

P = np.full((2, 2, 2), 0.5)
R = np.eye(2)


@pytest.mark.parametrize("given", [0.1, [0.1, 0.2], np.array([0.1])])
def test_a_loss_says_what_its_number_is(given: Any) -> None:
    with pytest.raises(TypeError, match=r"rate=.* loss rate.*seen=.* arrival probability"):
        ol.Loss(given)
    with pytest.raises(TypeError, match=r"rate="):
        ol.Loss(given, rate=0.2)
    loss = ol.Loss(rate=0.25)
    assert loss == ol.Loss(seen=0.75)
    assert repr(loss) == "Loss(seen=0.75)"
    assert eval(repr(loss), {"Loss": ol.Loss}) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert dataclasses.replace(loss, seen=0.5) == ol.Loss(rate=0.5)


FORMS = [
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.coo_array,
    sparse.lil_array,
    sparse.dok_matrix,
]


@pytest.mark.parametrize("form", FORMS)
def test_sparse_rewards_are_refused_by_name(form: Any) -> None:
    for wrong in (form(R), [form(R)] * 3):
        with pytest.raises(ValueError, match=rf"^rewards (is|holds) a scipy.sparse {form.__name__} .*\.toarray\(\)"):
            ol.TabularMDP(P, wrong, horizon=3)
        with pytest.raises(ValueError, match=r"^rewards (is|holds) a scipy.sparse .*\.toarray\(\)"):
            ol.TabularMDP.discounted(P, wrong, discount=0.5, tolerance=0.1)
    with pytest.raises(ValueError, match=r"^initial is a scipy.sparse .*\.toarray\(\)"):
        ol.TabularMDP(P, R, horizon=3, initial=form(np.ones((1, 2)) / 2))


LARGEST = float(np.finfo(np.float64).max)


def test_rewards_whose_sums_overflow_are_refused(tmp_path: Path) -> None:
    large = R.copy()
    large[1, 0] = -LARGEST / 5
    with pytest.raises(
        ValueError, match=r"rewards\[s=1, a=0\] is -3.59.*\(3 steps\).*at most 8.98847e\+307.*larger units"
    ):
        ol.TabularMDP(P, large, horizon=3)
    per_step = np.zeros((3, 2, 2))
    per_step[:, 1, 0] = [0.2 * LARGEST, 0.1 * LARGEST, -0.21 * LARGEST]
    with pytest.raises(ValueError, match=r"rewards\[h=2, s=1, a=0\]"):
        ol.TabularMDP(P, per_step, horizon=3)
    with pytest.raises(ValueError, match=r"\(discount 0.9\)"):
        ol.TabularMDP.discounted(P, large, discount=0.9, tolerance=1.0)
    good = ol.TabularMDP(P, large, horizon=2)  # the largest sum is 0.4 of the largest number
    for channel in (ol.ConstantDelay(1), ol.Loss(rate=0.5)):
        gap = ol.gap(ol.ImpairedMDP(good, channel))
        assert np.isfinite([gap.full, gap.impaired, gap.gap, gap.problem.reward_span]).all()
    path = tmp_path / "mdp"
    good.save(path)
    text = path.with_suffix(".toml")
    text.write_text(text.read_text().replace("horizon = 2", "horizon = 3"))
    with pytest.raises(
        ValueError, match=r"mdp.toml with mdp.npz: damaged, or not a process file \(rewards\[s=1, a=0\]"
    ):
        ol.TabularMDP.load(path)
    table = tmp_path / "table.csv"
    table.write_text(f"s,a,s',p,r\nx,go,x,1,{LARGEST / 5!r}\n")
    with pytest.raises(ValueError, match=r"rewards\[s=0, a=0\]"):
        ol.TabularMDP.from_csv(table, horizon=3)
    with pytest.raises(ValueError, match=r"rewards\[s=0, a=0\]"):
        ol.TabularMDP.from_dict({"x": {"go": [(1.0, "x", LARGEST / 5)]}}, horizon=3)


@pytest.mark.parametrize("channel", [ol.ConstantDelay(0), ol.Loss(rate=0.0)], ids=repr)
@pytest.mark.parametrize("p", [0.5, 0.6, 0.7, 0.8])
def test_a_price_below_zero_by_rounding_is_zero(p: float, channel: Any) -> None:
    for mdp in (ol.instances.sensing_chain(p), ol.instances.center_chain(p)):
        gap = ol.gap(ol.ImpairedMDP(mdp, channel))
        assert gap.gap >= 0
        assert gap.relative >= 0
        rows = ol.sweep(mdp, channels=[ol.ConstantDelay(0), channel, ol.ConstantDelay(0)]).rows
        assert min(min(row["gap"], row["more"]) for row in rows) >= 0


def test_a_real_negative_price_is_shown() -> None:
    gap = ol.gap(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(0)))
    for wrong in (1e-9, 1e-11):  # rounding can do 2·2^-52·11·22·10 = 1.1e-12 there
        assert dataclasses.replace(gap, impaired=gap.full + wrong).gap == pytest.approx(-wrong, rel=1e-3)
    rows = ol.sweep(ol.instances.sensing_chain(0.8), delays=[2, 0]).rows
    assert rows[1]["more"] < -0.1
