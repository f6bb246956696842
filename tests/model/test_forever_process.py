"""A process that runs for ever: how it is made, cut, saved and compared."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from mdp_cases import A, S, arrays

P, R, RHO = (array[0] if array.ndim > 1 else array for array in arrays())
WAYS: list[dict[str, Any]] = [{"discount": 0.9}, {"discount": 0.0}, {"average": True}]


def forever(**more: Any) -> ol.TabularMDP:
    return ol.TabularMDP(P, R, horizon=None, initial=RHO, **more)


@pytest.mark.parametrize("way", WAYS)
def test_parts(way: dict[str, Any]) -> None:
    mdp = forever(**way)
    assert mdp.horizon is None
    assert (mdp.discount, mdp.average) == (way.get("discount"), way.get("average", False))
    assert (mdp.transitions.shape, mdp.rewards.shape) == ((1, S, A, S), (1, S, A))
    assert mdp.stationary
    assert "for ever" in repr(mdp)


@pytest.mark.parametrize("way", WAYS)
def test_save_load_pickle_and_compare(way: dict[str, Any], tmp_path: Path) -> None:
    mdp = forever(**way, states=["a", "b", "c"])
    mdp.save(tmp_path / "plant")
    assert ol.TabularMDP.load(tmp_path / "plant") == mdp
    assert pickle.loads(pickle.dumps(mdp)) == mdp
    assert mdp.replace() == mdp
    for other in WAYS:
        assert (forever(**other) == forever(**way)) == (other == way)
    assert mdp != mdp.replace(horizon=4)


def test_a_discount_with_a_horizon_is_in_the_rewards() -> None:
    mdp = ol.TabularMDP(P, R, horizon=4, initial=RHO, discount=0.9)
    assert mdp.discount is None
    assert np.array_equal(mdp.rewards, 0.9 ** np.arange(4)[:, None, None] * R)
    assert mdp.replace(initial=RHO) == mdp
    per_step = ol.TabularMDP(P, arrays()[1], horizon=4, discount=0.5)
    assert np.array_equal(per_step.rewards, 0.5 ** np.arange(4)[:, None, None] * arrays()[1])


def test_cut_at_a_horizon() -> None:
    cut = forever(discount=0.9).replace(horizon=30)
    known = ol.TabularMDP.discounted(P, R, discount=0.9, tolerance=0.9**29.5 * np.abs(R).max() / 0.1, initial=RHO)
    assert cut == known
    assert cut.truncation_error == pytest.approx(0.9**30 * np.abs(R).max() / 0.1, rel=1e-15)
    assert forever(average=True).replace(horizon=7) == ol.TabularMDP(P, R, horizon=7, initial=RHO)


def test_other_ways_to_make_one(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    assert ol.TabularMDP.from_gymnasium("FrozenLake-v1", None, discount=0.99).discount == 0.99
    table = {"up": {"go": [(1, "up", 1.0)]}}
    assert ol.TabularMDP.from_dict(table, horizon=None, average=True).average
    (tmp_path / "plant.csv").write_text("s,a,s',p,r\nup,go,up,1,1\n")
    assert ol.TabularMDP.from_csv(tmp_path / "plant.csv", horizon=None, discount=0.5).discount == 0.5


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({}, "needs discount=u"),
        ({"discount": 1.0}, "discount is 1"),
        ({"discount": -0.1}, "discount is -0.1"),
        ({"discount": 0.9, "average": True}, "average is True and discount is 0.9"),
        ({"average": 1}, "average is 1"),
    ],
)
def test_refusals(kinds: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        forever(**kinds)


def test_a_file_that_does_not_say_how_long_is_refused(tmp_path: Path) -> None:
    forever(average=True).save(tmp_path / "plant")
    text = (tmp_path / "plant.toml").read_text()
    (tmp_path / "plant.toml").write_text(text.replace("average = true", "average = false"))
    with pytest.raises(ol.UnreadableFile, match="horizon is missing"):
        ol.TabularMDP.load(tmp_path / "plant")
