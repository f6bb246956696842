"""TabularMDP: how it is made, that it does not change, discounting."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from mdp_cases import A, H, S, arrays, best, per_step, stationary

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
