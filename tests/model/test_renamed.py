"""What was renamed still answers to its old name, with a DeprecationWarning that names the new one."""

from __future__ import annotations

import warnings
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
