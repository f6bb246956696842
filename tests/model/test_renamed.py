"""What was renamed still answers to its old name, with a DeprecationWarning that names the new one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners.base import Episode, Setting
from oldlight.model.channels import LossChannel

LATE = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm")
LOSSY = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "loss:0.2")


def old_and_new() -> list[tuple[Any, str, str]]:
    played = ol.simulate(LATE, ol.FunctionPolicy(lambda info: 0, LATE.n_actions), 2, seed=0)
    none = np.zeros(0, dtype=np.int64)
    return [
        (LATE, "lead", "warmup"),
        (LOSSY, "seen", "arrival_probability"),
        (LATE.law, "cap", "longest_delay"),
        (Setting.of(LATE, 1, 0.1, None), "lead", "warmup"),
        (Setting.of(LOSSY, 1, 0.1, None), "seen", "arrival_probability"),
        (Episode(none, none, none, np.zeros(0), 2), "lead", "warmup"),
        (played, "lead", "warmup"),
    ]


@pytest.mark.parametrize("number", range(7))
def test_attributes(number: int) -> None:
    thing, old, new = old_and_new()[number]
    kind = type(thing).__name__
    with pytest.warns(DeprecationWarning, match=rf"^{kind}\.{old} is now {kind}\.{new}$") as caught:
        value = getattr(thing, old)
    assert caught[0].filename == __file__  # the warning points at the line to change
    assert np.array_equal(value, getattr(thing, new))
    assert value is not None


@pytest.mark.parametrize("loss", [ol.Loss(rate=0.2), ol.BurstyLoss(0.1, 0.5)], ids=repr)
def test_the_rates_of_a_loss_are_arrival_probabilities(loss: LossChannel) -> None:
    name = type(loss).__name__
    with pytest.warns(DeprecationWarning, match=rf"{name}\.rates is now {name}\.arrival_probabilities") as caught:
        rates = loss.rates(3)
    assert caught[0].filename == __file__
    assert np.array_equal(rates, loss.arrival_probabilities(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ol.Loss(rate=0.2).arrival_probabilities(3).tolist() == [0.8, 0.8, 0.8]


class EveryOther(LossChannel):
    """A channel of one's own, written when the method was called rates."""

    def rates(self, horizon: int) -> Any:
        return np.arange(horizon) % 2 * 1.0


def test_a_loss_of_ones_own_that_defines_rates_still_works() -> None:
    with pytest.warns(DeprecationWarning, match=r"EveryOther\.rates is now arrival_probabilities"):
        problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), EveryOther())
    assert problem.arrival_probability is not None
    assert problem.arrival_probability.tolist() == [0, 1, 0, 1]


def test_a_policy_that_randomises_still_takes_its_old_name(tmp_path: Path) -> None:
    """As a keyword, as an attribute, and in the files of policies and controllers from before."""
    problem = ol.ImpairedMDP(LATE.mdp, "constant:1")
    layout = ol.Layout.of(problem)
    rows = np.random.default_rng(1).dirichlet(np.ones(problem.n_actions), layout.size)
    with pytest.warns(
        DeprecationWarning, match=r"TablePolicy\(chances=...\) is now TablePolicy\(action_probabilities="
    ) as caught:
        policy = ol.TablePolicy(layout, chances=rows)  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="TablePolicy.chances is now TablePolicy.action_probabilities"):
        assert np.array_equal(policy.chances, rows)
    new, old = policy.save(tmp_path / "new.npz"), tmp_path / "old.npz"
    with np.load(new) as data:
        held = dict(data)
    np.savez(old, **{"chances" if name == "action_probabilities" else name: x for name, x in held.items()})
    for path in (new, old):
        assert np.array_equal(ol.load_policy(path).action_probabilities, rows)  # type: ignore[union-attr]
    saved = ol.Controller(problem, policy).save(tmp_path / "controller.npz")
    with np.load(saved) as data:
        held = dict(data)
    assert str(held["policy"]) == "action_probabilities"
    np.savez(old, **held | {"policy": np.array("chances")})
    assert [ol.Controller.load(path, seed=3).act() for path in (saved, old)] == [
        ol.Controller(problem, policy, seed=3).act()
    ] * 2


def test_the_draws_of_a_task() -> None:
    keys: dict[str, Any] = {"name": "t", "instances": ["dichotomy:1"], "channels": ["constant:1"], "seeds": 1}
    ids = [
        ol.studies.load_study(keys | {"tasks": [{"name": "simulate", "draws": "paired"}]}).jobs()[0].id,
    ]
    with pytest.warns(DeprecationWarning, match="luck of the task simulate is now draws"):
        ids += [ol.studies.load_study(keys | {"tasks": [{"name": "simulate", "luck": "paired"}]}).jobs()[0].id]
    assert ids[0] == ids[1]
