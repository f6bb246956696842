"""`seed=` is a whole number, a SeedSequence or a Generator, the same in simulate, evaluate and learn."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import learn_seeds
from oldlight.random_streams import seed_number

PROBLEM = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), "constant:1")
RANDOM = ol.FunctionPolicy(lambda info: np.full(PROBLEM.n_actions, 1 / PROBLEM.n_actions), PROBLEM.n_actions)
LEARNER = partial(ol.learners.AugmentedQLearning)


def returns(**seed: Any) -> list[float]:
    return ol.simulate(PROBLEM, RANDOM, 40, **seed).returns.tolist()


def values(**seed: Any) -> list[float]:
    run = ol.learn(PROBLEM, LEARNER(), 30, **seed)
    return run.values.tolist()


def sampled(**seed: Any) -> list[float]:
    return [ol.evaluate(PROBLEM, RANDOM, max_states=0, episodes=40, **seed).value]


@pytest.mark.parametrize("drawn", [returns, values, sampled])
def test_the_three_kinds_of_seed(drawn: Any) -> None:
    assert drawn() == drawn(seed=0) == drawn(seed=np.random.SeedSequence(0))
    assert drawn(seed=7) == drawn(seed=np.random.SeedSequence(7)) != drawn()
    first, second = np.random.SeedSequence(7).spawn(2)
    again = np.random.SeedSequence(7).spawn(2)[1]
    assert drawn(seed=second) == drawn(seed=again)
    assert drawn(seed=first) != drawn(seed=second)
    rng = np.random.default_rng(3)
    one, two = drawn(seed=rng), drawn(seed=rng)
    assert one != two
    assert one == drawn(seed=np.random.default_rng(3))


def test_the_streams_of_a_whole_number() -> None:
    """The first draw of the process comes from SeedSequence(seed, spawn_key=(0, 0)), as it always has."""
    from oldlight.simulation import World

    draws = World(PROBLEM).draw(seed_number(np.random.SeedSequence(11)), 0)
    stream = np.random.Generator(np.random.SFC64(np.random.SeedSequence(11, spawn_key=(0, 0))))
    assert draws.state[0, 0] == stream.random()


def test_spawned_and_large_sequences_have_numbers_of_their_own() -> None:
    children = np.random.SeedSequence(1).spawn(200)
    numbers = {seed_number(child) for child in children}
    assert len(numbers) == 200
    assert all(0 <= number < 2**63 for number in numbers)
    assert seed_number(np.random.SeedSequence(2**100)) < 2**63
    assert seed_number(np.random.SeedSequence([1, 2])) != seed_number(np.random.SeedSequence([1, 3]))


@pytest.mark.parametrize("seed", [-1, "x", None, 1.5, True, [1]])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"seed is .*expected a whole number ≥ 0") as refused:
        ol.simulate(PROBLEM, RANDOM, 2, seed=seed)
    assert ("SeedSequence" in str(refused.value)) == (
        seed not in (-1, 1.5)
    )  # what else it may be, where it is no number


def test_a_generator_is_refused_where_the_seed_is_needed_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueError, match=r"seed is a Generator.*with checkpoint= the seed must be an int or a SeedSequence"
    ):
        ol.learn(PROBLEM, LEARNER(), 2, seed=rng, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="with several workers the seed must be an int or a SeedSequence"):
        learn_seeds(PROBLEM, LEARNER, 2, seeds=[rng], workers=2)
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state
    assert len(learn_seeds(PROBLEM, LEARNER, 2, seeds=[rng, rng])) == 2
