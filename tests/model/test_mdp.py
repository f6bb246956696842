"""TabularMDP: how it is made, that it does not change, and that it survives files and processes."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import oldlight as ol

H, S, A = 4, 3, 2


def arrays(seed: int = 0) -> tuple[Any, Any, Any]:
    """Per-step transitions [h, s, a, s2], rewards [h, s, a] and a first law."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(S), size=(H, S, A)), rng.normal(size=(H, S, A)), rng.dirichlet(np.ones(S))


def stationary(**more: Any) -> ol.TabularMDP:
    P, R, rho = arrays()
    return ol.TabularMDP(P[0], R[0], horizon=H, initial=rho, **more)


def per_step(**more: Any) -> ol.TabularMDP:
    P, R, rho = arrays()
    return ol.TabularMDP(P, R, horizon=H, initial=rho, **more)


def best(mdp: ol.TabularMDP) -> float:
    """The optimal value when everything is seen at once."""
    return ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(0))).value


# -- construction -----------------------------------------------------------------------------------------------------


def test_stationary_arrays_get_a_step_axis_that_costs_nothing() -> None:
    P, R, rho = arrays()
    mdp = stationary()
    assert (mdp.horizon, mdp.n_states, mdp.n_actions) == (H, S, A)
    assert mdp.transitions.shape == (H, S, A, S)
    assert mdp.rewards.shape == (H, S, A)
    for h in range(H):
        assert np.array_equal(mdp.transitions[h], P[0])
        assert np.array_equal(mdp.rewards[h], R[0])
    assert mdp.transitions.strides[0] == 0
    assert mdp.rewards.strides[0] == 0
    assert np.array_equal(mdp.initial, rho)
    assert mdp.stationary
    assert mdp.stationary_transitions


def test_per_step_arrays_are_kept_as_they_are() -> None:
    P, R, _ = arrays()
    mdp = per_step()
    assert np.array_equal(mdp.transitions, P)
    assert np.array_equal(mdp.rewards, R)
    assert not mdp.stationary
    assert not mdp.stationary_transitions


def test_transitions_and_rewards_may_differ_in_kind() -> None:
    P, R, _ = arrays()
    one = ol.TabularMDP(P[0], R, horizon=H)
    assert one.stationary_transitions
    assert not one.stationary
    other = ol.TabularMDP(P, R[0], horizon=H)
    assert not other.stationary_transitions
    assert not other.stationary
    assert np.array_equal(other.rewards, np.repeat(R[:1], H, axis=0))


def test_the_first_law_is_uniform_unless_given() -> None:
    P, R, _ = arrays()
    assert ol.TabularMDP(P, R, horizon=H).initial.tolist() == [1 / 3] * 3


def test_lists_and_integers_will_do() -> None:
    mdp = ol.TabularMDP([[[0, 1]], [[1, 0]]], [[0], [1]], horizon=2, initial=[1, 0])
    assert mdp.transitions.dtype == np.float64
    assert best(mdp) == 1.0


def test_repr_says_what_it_is() -> None:
    assert repr(stationary()) == "TabularMDP(S=3, A=2, H=4, stationary)"
    assert repr(per_step()) == "TabularMDP(S=3, A=2, H=4, per-step)"


# -- it does not change -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["transitions", "rewards", "initial"])
@pytest.mark.parametrize("make", [stationary, per_step])
def test_arrays_are_private_and_read_only(make: Any, name: str) -> None:
    mdp = make()
    with pytest.raises(ValueError, match="read-only"):
        getattr(mdp, name)[:] = 0.0
    with pytest.raises(AttributeError, match=name):
        setattr(mdp, name, None)


def test_changing_the_callers_arrays_changes_nothing() -> None:
    P, R, rho = arrays()
    mdp = ol.TabularMDP(P, R, horizon=H, initial=rho)
    P[:], R[:], rho[:] = 0.0, 0.0, 0.0
    assert mdp == per_step()


@pytest.mark.parametrize("make", [stationary, per_step])
def test_pickling_keeps_everything_and_stays_small(make: Any) -> None:
    mdp = make(states=["a", "b", "c"], truncation_error=0.25)
    again = pickle.loads(pickle.dumps(mdp))
    assert again == mdp
    assert again.truncation_error == 0.25
    assert again.stationary == mdp.stationary
    assert not again.transitions.flags.writeable
    with pytest.raises(AttributeError):
        again.horizon = 1


def test_a_stationary_process_travels_without_its_repeated_axis() -> None:
    P, R, _ = arrays()
    short = ol.TabularMDP(P[0], R[0], horizon=10)
    long = ol.TabularMDP(P[0], R[0], horizon=10_000)
    assert len(pickle.dumps(long)) < len(pickle.dumps(short)) + 100


def test_replace_changes_what_is_named_and_nothing_else() -> None:
    mdp = stationary(states=["a", "b", "c"])
    other = mdp.replace(initial=[0, 1, 0], horizon=7)
    assert other.initial.tolist() == [0, 1, 0]
    assert other.horizon == 7
    assert other.stationary
    assert other.states == mdp.states
    assert np.array_equal(other.transitions[0], mdp.transitions[0])
    assert mdp.horizon == H


def test_replace_validates_like_the_constructor() -> None:
    with pytest.raises(ValueError, match=r"initial sums to 0\.5"):
        stationary().replace(initial=[0.5, 0, 0])


def test_equality_looks_at_contents() -> None:
    assert stationary() == stationary()
    assert per_step() != stationary()
    P, R, rho = arrays()
    written_out = ol.TabularMDP(np.repeat(P[:1], H, axis=0), R[0], horizon=H, initial=rho)
    assert written_out == stationary()
    assert stationary(states=["a", "b", "c"]) != stationary()
    assert stationary().replace(horizon=H + 1) != stationary()
    assert stationary().replace(initial=None) != stationary()
    assert stationary() != "a process"


# -- discounted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("tolerance", [10.0, 0.5, 1e-3, 1e-8])
@pytest.mark.parametrize("largest", [0.25, 1.0, 7.0])
def test_discounted_horizon_is_the_smallest_one(discount: float, tolerance: float, largest: float) -> None:
    P, _, _ = arrays()
    R = np.full((S, A), 0.1 * largest)
    R[1, 1] = -largest
    mdp = ol.TabularMDP.discounted(P[0], R, discount=discount, tolerance=tolerance)

    def left(steps: int) -> float:
        return discount**steps * largest / (1 - discount)

    assert mdp.truncation_error == left(mdp.horizon) <= tolerance
    assert mdp.horizon == 1 or left(mdp.horizon - 1) > tolerance
    assert mdp.horizon <= max(1, math.ceil(math.log(largest / (tolerance * (1 - discount))) / (1 - discount)))


def test_discounted_rewards_are_powers_of_the_discount() -> None:
    P, R, _ = arrays()
    mdp = ol.TabularMDP.discounted(P[0], R[0], discount=0.5, tolerance=0.1)
    for h in range(mdp.horizon):
        assert np.allclose(mdp.rewards[h], 0.5**h * R[0], atol=1e-15)
    assert mdp.stationary_transitions
    assert not mdp.stationary


def test_discount_zero_and_reward_zero_need_one_step() -> None:
    P, R, _ = arrays()
    now = ol.TabularMDP.discounted(P[0], R[0], discount=0.0, tolerance=1e-9)
    assert (now.horizon, now.truncation_error) == (1, 0.0)
    assert np.array_equal(now.rewards[0], R[0])
    nothing = ol.TabularMDP.discounted(P[0], 0 * R[0], discount=0.9, tolerance=1e-9)
    assert (nothing.horizon, nothing.truncation_error) == (1, 0.0)


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-6])
def test_discounted_value_is_within_the_truncation_error(tolerance: float) -> None:
    """One action: the infinite value is (I − uP)⁻¹ r."""
    P, R, rho = arrays()
    u = 0.8
    mdp = ol.TabularMDP.discounted(P[0, :, :1], R[0, :, :1], discount=u, tolerance=tolerance, initial=rho)
    closed = float(rho @ np.linalg.solve(np.eye(S) - u * P[0, :, 0], R[0, :, 0]))
    assert 0 < abs(best(mdp) - closed) <= mdp.truncation_error <= tolerance


@pytest.mark.parametrize("seed", range(5))
def test_discounted_optimum_against_long_value_iteration(seed: int) -> None:
    P, R, rho = arrays(seed)
    u = 0.9
    V = np.zeros(S)
    for _ in range(600):
        V = (R[0] + u * P[0] @ V).max(axis=1)
    mdp = ol.TabularMDP.discounted(P[0], R[0], discount=u, tolerance=1e-3, initial=rho)
    assert abs(best(mdp) - float(rho @ V)) <= mdp.truncation_error


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


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [stationary, per_step])
@pytest.mark.parametrize("asked", ["chain", "chain.toml", "chain.npz"])
def test_save_and_load(make: Any, asked: str, tmp_path: Path) -> None:
    mdp = make(truncation_error=1.5e-7)
    mdp.save(tmp_path / "chain")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["chain.npz", "chain.toml"]
    again = ol.TabularMDP.load(tmp_path / asked)
    assert again == mdp
    assert (again.stationary, again.truncation_error) == (mdp.stationary, 1.5e-7)


def test_a_dot_in_the_name_is_part_of_the_name(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain.v1")
    assert (tmp_path / "chain.v1.npz").exists()
    assert ol.TabularMDP.load(tmp_path / "chain.v1") == stationary()


def test_names_of_any_kind_survive(tmp_path: Path) -> None:
    states = ['say "hi"', "back\\slash and\nnew line\ttab", "état № 3 → 🦉"]
    mdp = stationary(states=states, actions=["[a]", "x = 1 # no comment"])
    mdp.save(tmp_path / "named")
    again = ol.TabularMDP.load(tmp_path / "named")
    assert again.states == tuple(states)
    assert again == mdp


def test_the_delete_character_survives_too(tmp_path: Path) -> None:
    mdp = stationary(states=["a\x7f", "b\x00\x1b", "c"])
    mdp.save(tmp_path / "odd")
    assert ol.TabularMDP.load(tmp_path / "odd") == mdp


def test_saving_twice_overwrites(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    per_step().save(tmp_path / "chain")
    assert ol.TabularMDP.load(tmp_path / "chain") == per_step()
    assert len(list(tmp_path.iterdir())) == 2


def test_saved_files_have_ordinary_permissions(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    (tmp_path / "plain").write_text("")
    ordinary = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "chain.npz").stat().st_mode == ordinary
    assert (tmp_path / "chain.toml").stat().st_mode == ordinary


def test_no_pickle_in_the_file(tmp_path: Path) -> None:
    mdp = per_step(states=["a", "b", "c"])
    mdp.save(tmp_path / "chain")
    with np.load(tmp_path / "chain.npz", allow_pickle=False) as data:
        assert set(data.files) == {"transitions", "rewards", "initial"}
        assert np.array_equal(data["transitions"], mdp.transitions)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    np.savez(tmp_path / "chain.npz", transitions=np.array([object()]), rewards=0, initial=0)
    with pytest.raises(ValueError, match=r"chain\.npz: damaged"):
        ol.TabularMDP.load(tmp_path / "chain")


@pytest.mark.parametrize("kept", [0, 1, 10, 100, -60, -1])
def test_a_file_cut_short_is_named(kept: int, tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    file = tmp_path / "chain.npz"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"chain\.npz: damaged"):
        ol.TabularMDP.load(tmp_path / "chain")


def test_a_flipped_byte_is_harmless_or_named(tmp_path: Path) -> None:
    mdp = stationary()
    mdp.save(tmp_path / "chain")
    file = tmp_path / "chain.npz"
    good = file.read_bytes()
    fine = 0
    for i in range(len(good)):
        file.write_bytes(good[:i] + bytes([good[i] ^ 0xFF]) + good[i + 1 :])
        try:
            again = ol.TabularMDP.load(tmp_path / "chain")
        except ValueError as error:
            fine += "chain.npz" in str(error)
        else:
            assert again == mdp, f"byte {i}: a wrong process was read"
            fine += 1
    assert fine == len(good)


def test_a_single_array_is_not_a_process(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    with open(tmp_path / "chain.npz", "wb") as stream:
        np.save(stream, np.ones(3))
    with pytest.raises(ValueError, match=r"chain\.npz"):
        ol.TabularMDP.load(tmp_path / "chain")


def test_two_files_that_do_not_belong_together(tmp_path: Path) -> None:
    stationary().save(tmp_path / "three")
    ol.TabularMDP([[[0, 1]], [[1, 0]]], [[0], [1]], horizon=H).save(tmp_path / "two")
    (tmp_path / "two.npz").replace(tmp_path / "three.npz")
    with pytest.raises(ValueError, match="do not belong together") as refusal:
        ol.TabularMDP.load(tmp_path / "three")
    assert "three.toml" in str(refusal.value)
    assert "three.npz" in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("horizon = 4", "horizon = 0"),
        ("horizon = 4", "horizon = 5"),
        ('states = ["a", "b", "c"]', 'states = ["a", "b"]'),
        ('arrays = "chain.npz"', "arrays = 3"),
        ("version = 1", "version = 2"),
    ],
)
def test_a_text_file_that_says_something_wrong_is_named(line: str, instead: str, tmp_path: Path) -> None:
    per_step(states=["a", "b", "c"]).save(tmp_path / "chain")
    file = tmp_path / "chain.toml"
    text = file.read_text(encoding="utf-8")
    assert line in text
    file.write_text(text.replace(line, instead), encoding="utf-8")
    with pytest.raises(ValueError, match=r"chain\.(toml|npz)"):
        ol.TabularMDP.load(tmp_path / "chain")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space left in the middle of a write: the message names the file, the old one stays, nothing else is left behind."""
    import errno

    from oldlight import checks

    target = tmp_path / "notes.txt"
    checks.write_text(target, "old")

    def full(stream: Any) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"notes\.txt could not be written \(No space left on device\)"):
        checks.write_file(target, full)
    assert target.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
