"""What the page may choose, what is refused and how, and the problem that a position means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.explore.menu import FIELDS, Menu, menu_of, slider_values
from oldlight.explore.positions import axis_levels, channel_at, position_of, problem_at, shaped


@pytest.fixture(scope="module")
def menu() -> Menu:
    return menu_of("inventory:horizon=6")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"delay": 99}, "delay is 99; allowed is a whole number from 0 to 8 steps"),
        ({"delay": 1.5}, "a whole number from 0 to 8"),
        ({"delay": "2"}, "'2'; allowed"),
        ({"delay": True}, "allowed is a whole number"),
        ({"delay": None}, "allowed is a whole number"),
        ({"loss": float("nan")}, "allowed is a number from 0 to 90 %"),
        ({"loss": -1}, "loss is -1; allowed"),
        ({"jitter": 2, "delay": 1}, "jitter is 2 around a mean delay of 1 steps: allowed is 0 to 1"),
        ({"horizon": 51}, "horizon is 51; allowed is a whole number from 1 to 50"),
        ({"plant": "dichotomy:2,5", "horizon": 50}, "changes from step to step"),
        ({"plant": "/etc/passwd"}, "process is '/etc/passwd'; allowed is one of inventory"),
        ({"plant": ["sensing_chain"]}, "allowed is one of"),
        ({"link": "trace:/etc/passwd"}, "link is 'trace:/etc/passwd'; allowed is one of sliders"),
        ({"start": "hot"}, "allowed is one of cold, warm"),
        ({"speed": 3}, "'speed' is no slider"),
    ],
)
def test_what_is_not_allowed_is_refused_in_a_sentence(menu: Menu, given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|no slider|changes") as refused:
        position_of(menu, given)
    assert says in str(refused.value)


def test_a_position_means_the_problem_that_one_would_write(menu: Menu) -> None:
    given = {"plant": "sensing_chain:0.8", "delay": 2, "loss": 10, "horizon": 7}
    problem = problem_at(menu, position_of(menu, given))
    assert problem.horizon == 7
    mine = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=7), "constant:2+loss:0.1")
    assert ol.solve(problem).value == pytest.approx(ol.solve(mine).value, abs=1e-12)
    everything = {"delay": 2, "jitter": 1, "loss": 20, "burst": 3, "period": 2}
    link = channel_at(menu, position_of(menu, everything))
    assert isinstance(link, ol.HiddenLink)
    assert link.delays.shape == (4, 4)  # two phases, in a blackout or not; delays 1..3
    assert link.delays[0].round(9).tolist() == pytest.approx([0, 0.8 / 3, 0.8 / 3, 0.8 / 3])


def test_a_discount_and_a_horizon_shape_the_process() -> None:
    mdp = ol.instances.sensing_chain(0.8)
    cut = shaped(mdp, 4, 0.9)
    assert cut.horizon == 4
    np.testing.assert_allclose(cut.rewards, 0.9 ** np.arange(4)[:, None, None] * mdp.rewards[:4])
    assert shaped(mdp, 10, 1) is mdp
    changing = ol.instances.dichotomy(2, 5)
    assert shaped(changing, 3, 1).horizon == 3
    np.testing.assert_array_equal(shaped(changing, 3, 1).transitions, changing.transitions[:3])
    endless = ol.TabularMDP(mdp.transitions[0], mdp.rewards[0], horizon=None, discount=0.9)
    assert shaped(endless, 5, 1).horizon == 5


def test_the_link_of_the_command_moves_the_sliders_where_they_can_say_it() -> None:
    assert slider_values(ol.ConstantDelay(3)) == {"delay": 3, "jitter": 0, "loss": 0, "burst": 0, "period": 1}
    found = slider_values(ol.Lossy(ol.ConstantDelay(1), rate=0.2))
    assert found is not None
    assert (found["delay"], found["loss"]) == (1, 20)
    found = slider_values(ol.Periodic(3, delay=2))
    assert found is not None
    assert (found["period"], found["delay"]) == (3, 2)
    for other in (ol.GeometricDelay(0.5), ol.ConstantDelay(30), ol.Periodic(3, offset=1), ol.BurstyLoss(0.1, 0.5)):
        assert slider_values(other) is None
    menu = menu_of(channel="geometric:0.4")
    assert list(menu.links) == ["sliders", "given"]
    assert menu.defaults()["link"] == "given"
    assert channel_at(menu, position_of(menu, {})) is menu.link


def test_every_slider_has_a_curve_through_its_position(menu: Menu) -> None:
    position = position_of(menu, {"loss": 13, "delay": 3, "jitter": 1})
    for name in FIELDS:
        levels = axis_levels(menu, position, name)
        assert getattr(position, name) in levels
        assert levels == sorted(set(levels))
        for x in levels:
            if name not in ("delay", "period_ms"):
                position_of(menu, position.moved(name, x).to_dict())
    assert axis_levels(menu, position, "jitter") == [0, 1, 2, 3]
