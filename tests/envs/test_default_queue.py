"""The law of the age against episodes that were played, against closed forms, and the default queue that follows from it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scipy import stats

import oldlight as ol
from conftest import random_mdp
from counting_env import CountingEnv
from oldlight import registry as words
from oldlight.cli.problems import list_
from oldlight.envs import AugmentedObservation, ImpairedObservation
from oldlight.envs.typical_age import age_law, typical_age
from oldlight.model.channels.losses import LossChannel
from oldlight.simulation.link_sampler import LawSampler, LinkSampler
from played import chi_square
from repeats import repeats

STEPS, MOST = 30, 12
FALLING = np.linspace(0.9, 0.1, STEPS)


class EveryOther(LossChannel):
    """Losses that are drawn together: every second one, from a random one on."""

    independent = False

    def arrival_probabilities(self, horizon: int) -> Any:
        return np.full(horizon, 0.5)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> Any:
        return (np.arange(horizon)[:, None] + rng.integers(2, size=n)) % 2 == 1


def law_of(channel: Any, steps: int = STEPS, most: int = MOST, **how: Any) -> Any:
    """P(age at time h = m) for m = 0..most, and in the last column what is left; one row for each time."""
    law, times = age_law(LawSampler(channel, horizon=steps, sizes=None, **how), steps, most)
    law = np.repeat(law, times.astype(int), axis=0)
    assert len(law) == steps + 1
    return np.diff(law, axis=1, prepend=0.0, append=1.0)


CHANNELS: dict[str, tuple[Any, bool]] = {
    "geometric": (ol.GeometricDelay(0.7), True),
    "geometric, first too": (ol.GeometricDelay(0.4, first="same"), True),
    "heavy": (ol.HeavyTailedDelay(1.5), True),
    "bernoulli": (ol.BernoulliDelay(0.6, steps=10), True),
    "capped": (ol.GeometricDelay(0.5).capped(4), True),
    "wifi": (ol.wifi(), True),
    "loss": (ol.Loss(rate=0.4), True),
    "loss per step": (ol.Loss(seen=FALLING), True),
    "bursty": (ol.BurstyLoss(0.2, 0.3, 0.9, 0.1), True),
    "late and lossy": (ol.Lossy(ol.ConstantDelay(2), rate=0.3), True),
    "geometric and lossy": (ol.Lossy(ol.GeometricDelay(0.8, first="same"), rate=0.3), True),
    "capped and bursty": (ol.Lossy(ol.GeometricDelay(0.6).capped(3), loss=ol.BurstyLoss(0.3, 0.4)), True),
    "out of order": (ol.EmpiricalDelay({0: 0.2, 2: 0.3, 5: 0.5}), False),
    "out of order, per step and lossy": (ol.Lossy(ol.BernoulliDelay(0.3, steps=9), rate=0.4), False),
    "out of order and bursty": (ol.Lossy(ol.GeometricDelay(0.4), loss=ol.BurstyLoss(0.3, 0.4)), False),
}


@pytest.mark.parametrize("kind", CHANNELS)
def test_the_law_of_the_age_is_that_of_the_wrapper(kind: str) -> None:
    """χ² at a few times, from independent episodes."""
    channel, in_order = CHANNELS[kind]
    exact = law_of(channel, in_order=in_order)
    env = ImpairedObservation(TimeLimit(CountingEnv(99), STEPS), channel, in_order=in_order, queue=0)
    n, times = repeats(120, 800), (1, 5, 13, STEPS)
    found: dict[int, Counter[int]] = {h: Counter() for h in times}
    for e in range(n):
        env.reset(seed=1 if e == 0 else None)
        for h in range(1, STEPS + 1):
            shown = env.step(0)[0]
            if h in found:
                found[h][min(int(shown["age"][0]), MOST + 1)] += 1
    for h in times:
        assert exact[h].min() > -1e-12
        assert chi_square(found[h], {m: float(p) for m, p in enumerate(exact[h]) if p > 1e-12}) > 1e-5, h


def test_closed_forms() -> None:
    """Geometric delays: the age is Binomial(h, 1 − p), 60 on average after 200 steps. Loss: at least m with probability rate^m."""
    law = law_of(ol.GeometricDelay(0.7), 200, 199)
    for h in (0, 1, 50, 200):
        assert law[h, :200] == pytest.approx(stats.binom.pmf(np.arange(200), h, 0.3), abs=1e-12)
    assert law[200] @ np.arange(201) == pytest.approx(60, abs=1e-9)
    late = np.cumsum(law_of(ol.Lossy(ol.ConstantDelay(2), rate=0.2), 500, 60), axis=1)
    assert late[400, 2:60] == pytest.approx(1 - 0.2 ** np.arange(1, 59), abs=1e-12)
    assert late[400, 1] == 0


@pytest.mark.parametrize(
    "channel", ["constant:2+loss:0.2", "geometric:0.9", "bernoulli:0.5,7", "constant:1+bursty:0.2,0.5"]
)
def test_times_after_which_nothing_changes_are_counted_once(channel: str) -> None:
    """The long episode's shares are those of a loop over all its times."""
    steps, most = 3000, 20
    traffic = LawSampler(
        ol.envs.ImpairedObservation(CountingEnv(9), channel, queue=0).channel, horizon=steps, sizes=None
    )
    law, times = age_law(traffic, steps, most)
    assert times.sum() == steps + 1
    near = [age_law(traffic, h, most)[0][-1] for h in (40, 500, 2999, steps)]
    for h, row in zip((40, 500, 2999, steps), near, strict=True):
        assert law[min(h, len(law) - 1)] == pytest.approx(row, abs=1e-12)


def test_a_law_that_depends_on_state_and_action_is_bounded_by_its_slowest() -> None:
    slow, quick = [0.5, 0.3, 0.2], [0.9, 0.1, 0.0]
    table = np.array([[slow, quick], [quick, quick]])
    mdp = random_mdp(np.random.default_rng(0), 2, 2, STEPS)
    bound, exact = (
        age_law(LawSampler(ol.StochasticDelay(rows), horizon=STEPS, sizes=(2, 2)), STEPS, MOST)[0]
        for rows in (table, slow)
    )
    assert np.array_equal(bound, exact)
    env = ImpairedObservation(ol.envs.TabularEnv(mdp), ol.StochasticDelay(table), queue=0)
    luck, n = np.random.default_rng(2), repeats(200, 500)
    older = np.zeros(MOST + 1)
    for e in range(n):
        env.reset(seed=3 if e == 0 else None)
        for _ in range(STEPS):
            shown = env.step(int(luck.integers(2)))[0]
        older += shown["age"][0] > np.arange(MOST + 1)
    for m in range(MOST + 1):  # P(age > m) is at most 1 − bound
        assert stats.binomtest(int(older[m]), n, float(1 - bound[-1, m]), alternative="greater").pvalue > 1e-5


def test_losses_that_are_drawn_together_count_as_total() -> None:
    assert typical_age(LinkSampler(EveryOther(), horizon=30, sizes=None), 64) == (30, 1.0)


@pytest.mark.parametrize(
    ("channel", "places", "size"),
    [
        ("constant:2+loss:0.2", 6, 28),
        ("loss:0.2", 4, 22),
        ("wifi", 6, 28),
        ("bursty:0.1,0.5", 8, 34),
        ("geometric:0.7", 64, 202),
    ],
)
def test_the_default_queue_of_cartpole(channel: str, places: int, size: int) -> None:
    """It was 64 places, and the vector 202 long, behind every channel that loses anything."""
    env = ImpairedObservation(gym.make("CartPole-v1"), channel)
    assert env.queue == places
    assert AugmentedObservation(env).observation_space.shape == (size,)
    law = np.cumsum(law_of(env.channel, 500, 500), axis=1)
    shares = law.mean(axis=0)
    assert shares[places] >= 0.999 or places == 64
    assert shares[places - 1] < 0.999


def test_a_note_names_the_queue_where_it_does_not_hold_everything(recwarn: pytest.WarningsRecorder) -> None:
    def note(*how: Any, **more: Any) -> str:
        recwarn.clear()
        ImpairedObservation(*how, **more)
        return " ".join(str(w.message) for w in recwarn.list)

    lossy = note(gym.make("CartPole-v1"), "constant:2+loss:0.2")
    assert "the last 6 actions" in lossy
    assert "99.97 % of the steps of an episode of 500" in lossy
    assert "queue=6" in lossy
    assert str(__file__) in recwarn.list[0].filename  # where it was made, not inside the package
    assert "of an episode of 200" in note(CountingEnv(9), "loss:0.2")
    assert "43.25 % of the steps" in note(gym.make("CartPole-v1"), "geometric:0.7")
    for channel in ("constant:3", "wifi", "geometric:0.5+cap:4", "bernoulli:0.5,3", "none"):
        assert note(gym.make("CartPole-v1"), channel) == ""
    assert (
        note(gym.make("CartPole-v1"), "loss:0.2", queue=3) == note(gym.make("CartPole-v1"), "loss:0.2", queue=0) == ""
    )


def test_age_is_scaled_by_the_ages_that_occur() -> None:
    """Before, it was a share of the time limit: 6 of 500 steps looked like 0.012."""
    for channel, how, scale in (
        ("constant:2+loss:0.2", {}, 6),
        ("constant:2+loss:0.2", {"queue": 8}, 8),
        ("constant:2+loss:0.2", {"queue": 0}, 6),
        ("constant:4", {"actuation": 1}, 5),
        ("none", {}, 1),
    ):
        for inner in (gym.make("CartPole-v1"), CountingEnv(40)):
            plain = ImpairedObservation(inner, channel, **how)
            flat = AugmentedObservation(plain, keys=["age", "waited"])
            flat.reset(seed=0)
            shown, _ = plain.reset(seed=0)
            for _ in range(8):
                expected = [shown["age"][0] / scale, shown["waited"][0] / scale]
                assert flat.observation(shown).tolist() == pytest.approx(expected, rel=1e-6)
                assert flat.observation(shown) in flat.observation_space
                shown = plain.step(plain.action_space.sample() * 0)[0]
    native = gym.make("oldlight/SensingChain-v0", channel="constant:2")
    native.reset(seed=0)
    shown = [native.step(0)[0] for _ in range(3)][-1]
    assert AugmentedObservation(native, keys=["age"]).observation(shown).tolist() == [1.0]


def test_the_packages_own_agents_see_all_actions_whatever_the_default() -> None:
    """Ages beyond the 99.9 % quantile occur in a thousand episodes, and a policy of the table needs every action since."""
    lake = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=12), "loss:0.5")
    assert lake.queue < 12
    policy = ol.FunctionPolicy(lambda info: 0 if len(info.queue) == info.h - (info.t or 0) else -1, 4)
    assert len(ol.envs.play(lake, policy, 1000, seed=0)) == 1000


def test_what_surprises_practitioners_is_said_where_they_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence itself, in bold, on both pages and in `oldlight list`; its figure is that of the law (`test_closed_forms`)."""
    docs = Path(__file__).parents[2] / "docs"
    for page in ("envs.md", "guides/practitioner.md"):
        assert f"**{words.IN_ORDER}**" in (docs / page).read_text(encoding="utf-8")
    list_()
    shown = " ".join(capsys.readouterr().out.split())
    assert words.IN_ORDER in shown
    assert "one delay of 1..6 steps per episode" in shown
