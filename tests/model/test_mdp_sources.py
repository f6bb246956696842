"""TabularMDP from Gymnasium's tables, dictionaries and CSV files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import oldlight as ol
from mdp_cases import best

# -- Gymnasium --------------------------------------------------------------------------------------------------------


def table_value(env: Any, horizon: int) -> float:
    """The optimal value read straight off the table: an ending transition is worth its reward and nothing more."""
    base = env.unwrapped
    V = np.zeros(len(base.P))
    for _ in range(horizon):
        V = np.array(
            [
                max(sum(p * (r + (0.0 if done else V[s2])) for p, s2, r, done in outcomes) for outcomes in row.values())
                for row in base.P.values()
            ]
        )
    return float(np.asarray(base.initial_state_distrib) @ V)


def newest(name: str) -> str:
    """Gymnasium drops old versions: CliffWalking-v0 or -v1, Taxi-v3 or -v4."""
    return max(key for key in gymnasium.registry if key.startswith(f"{name}-v"))


TOYS = [
    ("FrozenLake-v1", {"is_slippery": True}, 20),
    ("FrozenLake-v1", {"is_slippery": False}, 8),
    ("FrozenLake-v1", {"map_name": "8x8"}, 15),
    (newest("CliffWalking"), {}, 14),
    (newest("Taxi"), {}, 12),
]


@pytest.mark.parametrize(("name", "options", "horizon"), TOYS)
def test_toy_text_values_against_the_table_itself(name: str, options: dict[str, Any], horizon: int) -> None:
    env = gymnasium.make(name, **options)
    mdp = ol.TabularMDP.from_gymnasium(env, horizon)
    assert mdp.horizon == horizon
    assert best(mdp) == pytest.approx(table_value(env, horizon), abs=1e-12)


@pytest.mark.parametrize(("name", "options", "horizon"), TOYS)
def test_toy_text_endings_absorb_without_reward(name: str, options: dict[str, Any], horizon: int) -> None:
    env = gymnasium.make(name, **options)
    mdp = ol.TabularMDP.from_gymnasium(env, horizon)
    table = env.unwrapped.P
    stays = np.array([(mdp.transitions[0, s, :, s] == 1).all() for s in range(mdp.n_states)])
    absorbing = stays & (mdp.rewards[0] == 0).all(axis=1)
    endings = 0
    for s, row in table.items():
        for a, outcomes in row.items():
            sure = sum(p for p, _, _, done in outcomes if done)
            if sure > 0 and not absorbing[s]:
                endings += 1
                assert mdp.transitions[0, s, a, absorbing].sum() == pytest.approx(sure, abs=1e-12)
    assert endings > 0


def test_a_name_is_enough() -> None:
    by_name = ol.TabularMDP.from_gymnasium("FrozenLake-v1", 5)
    assert by_name == ol.TabularMDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), 5)


def made_up(table: dict[int, Any], initial: list[float]) -> Any:
    env = SimpleNamespace(P=table, initial_state_distrib=np.array(initial))
    env.unwrapped = env
    return env


def test_a_state_that_also_goes_on_gets_an_end_beside_it() -> None:
    """State 1 ends the episode after action 0 and does not after action 1, where it earns 1 a step."""
    env = made_up(
        {
            0: {0: [(1.0, 1, 5.0, True)], 1: [(1.0, 1, 0.0, False)]},
            1: {0: [(1.0, 1, 1.0, False)], 1: [(0.5, 1, 1.0, False), (0.5, 1, 1.0, True)]},
        },
        [1.0, 0.0],
    )
    mdp = ol.TabularMDP.from_gymnasium(env, 8)
    assert mdp.states == ("0", "1", "end")
    assert mdp.initial.tolist() == [1, 0, 0]
    assert (mdp.transitions[0, 2, :, 2] == 1).all()
    assert (mdp.rewards[0, 2] == 0).all()
    assert mdp.transitions[0, 0, 0].tolist() == [0, 0, 1]
    assert mdp.transitions[0, 0, 1].tolist() == [0, 1, 0]
    for horizon in range(1, 9):
        value = best(ol.TabularMDP.from_gymnasium(env, horizon))
        assert value == pytest.approx(table_value(env, horizon), abs=1e-12)
        assert value == max(5, horizon - 1)


def test_going_on_is_followed_through_states_that_go_on() -> None:
    """State 2 is entered without ending only from state 1, which itself sometimes ends the episode."""
    env = made_up(
        {
            0: {0: [(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)], 1: [(1.0, 2, 0.0, True)]},
            1: {0: [(1.0, 2, 0.0, False)], 1: [(1.0, 2, 0.0, False)]},
            2: {0: [(1.0, 2, 1.0, False)], 1: [(1.0, 2, 1.0, False)]},
        },
        [1.0, 0.0, 0.0],
    )
    assert table_value(env, 6) == 2.0
    assert best(ol.TabularMDP.from_gymnasium(env, 6)) == 2.0


def test_an_episode_may_end_where_it_began() -> None:
    """A round trip: home, away, and home again, where the episode ends."""
    env = made_up({0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(0.5, 0, 1.0, True), (0.5, 1, 1.0, False)]}}, [1.0, 0.0])
    for horizon in range(1, 6):
        assert best(ol.TabularMDP.from_gymnasium(env, horizon)) == pytest.approx(table_value(env, horizon), abs=1e-12)


def test_an_end_that_is_only_ever_an_end_needs_no_extra_state() -> None:
    env = made_up({0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 3.0, True)]}, 1: {0: [(1.0, 0, 9.0, False)]}}, [1.0, 0.0])
    mdp = ol.TabularMDP.from_gymnasium(env, 3)
    assert mdp.n_states == 2
    assert mdp.transitions[0, 1, 0].tolist() == [0, 1]
    assert mdp.rewards[0].tolist() == [[2.0], [0.0]]
    assert best(mdp) == pytest.approx(2 * (1 + 0.5 + 0.25))


# -- tables of names --------------------------------------------------------------------------------------------------


WEATHER = {
    "sun": {"go": [(0.75, "sun", 2.0), (0.25, "rain", -1.0)], "stay": [(1.0, "sun", 0.5)]},
    "rain": {"go": [(1.0, "sun", 0.0)], "stay": [(0.5, "rain", 0.25), (0.5, "sun", 0.75)]},
}


def weather(horizon: int = 3) -> ol.TabularMDP:
    return ol.TabularMDP(
        [[[0.75, 0.25], [1, 0]], [[1, 0], [0.5, 0.5]]],
        [[1.25, 0.5], [0, 0.5]],
        horizon=horizon,
        initial=[0.1, 0.9],
        states=["sun", "rain"],
        actions=["go", "stay"],
    )


def test_from_dict() -> None:
    assert ol.TabularMDP.from_dict(WEATHER, horizon=3, initial={"rain": 0.9, "sun": 0.1}) == weather()
    assert ol.TabularMDP.from_dict(WEATHER, horizon=3).initial.tolist() == [0.5, 0.5]


def test_from_dict_takes_any_keys_and_adds_repeated_outcomes() -> None:
    mdp = ol.TabularMDP.from_dict({0: {(1, 2): [(0.5, 0, 1.0), (0.5, 0, 3.0)]}}, horizon=2)
    assert mdp.states == ("0",)
    assert mdp.actions == ("(1, 2)",)
    assert mdp.transitions[0].tolist() == [[[1.0]]]
    assert mdp.rewards[0].tolist() == [[2.0]]


CSV = """sun,go,sun,.75,2
sun,go,rain,.25,-1
sun,stay,sun,1,0.5
rain,go,sun,1,0
rain,stay,rain,.5,.25
rain,stay,sun,5e-1,.75
"""


@pytest.mark.parametrize("header", ["s,a,s',p,r", "s,a,s2,p,r", "s,a,next,p,r", " s , a ,s' , p,r "])
def test_from_csv(header: str, tmp_path: Path) -> None:
    file = tmp_path / "weather.csv"
    file.write_text(header + "\n" + CSV, encoding="utf-8")
    assert ol.TabularMDP.from_csv(file, horizon=3, initial={"sun": 0.1, "rain": 0.9}) == weather()


def test_from_csv_any_order_of_columns_other_columns_and_names_in_quotes(tmp_path: Path) -> None:
    file = tmp_path / "chain.csv"
    file.write_text(
        'note,r,p,s\',a,s\nx,1,1,"Zürich, HB",→,start\n,0,1,"Zürich, HB",→,"Zürich, HB"\n', encoding="utf-8"
    )
    mdp = ol.TabularMDP.from_csv(file, horizon=2, initial={"start": 1.0})
    assert mdp.states == ("start", "Zürich, HB")
    assert mdp.actions == ("→",)
    assert best(mdp) == 1.0


def test_from_csv_as_spreadsheets_write_it(tmp_path: Path) -> None:
    file = tmp_path / "weather.csv"
    file.write_text("s,a,s',p,r\n" + CSV, encoding="utf-8-sig", newline="\r\n")
    assert ol.TabularMDP.from_csv(file, horizon=3, initial={"sun": 0.1, "rain": 0.9}) == weather()
