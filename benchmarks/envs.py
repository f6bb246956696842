"""Steps a second of the Gymnasium environments: `python benchmarks/envs.py [--quick]`, and a section of `benchmarks/bench.py`.

Uniform actions, episodes reset as they end. Rates are the best of several repeats, taken in turn. "Theirs" is 64 copies of the
same chain in `SyncVectorEnv`, each behind Gymnasium's own `DelayObservation(3)`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import DelayObservation

from oldlight.envs import AugmentedObservation, ImpairedObservation

Row = dict[str, Any]
COPIES = 64


def one(env: gym.Env[Any, Any], steps: int) -> Callable[[], float]:
    """How to measure the steps a second of a single environment."""
    actions = np.random.default_rng(0).integers(int(env.action_space.n), size=steps).tolist()  # type: ignore[attr-defined]

    def measure() -> float:
        env.reset(seed=0)
        began = time.perf_counter()
        for a in actions:
            _, _, terminated, truncated, _ = env.step(a)
            if terminated or truncated:
                env.reset()
        return steps / (time.perf_counter() - began)

    return measure


def many(envs: Any, steps: int) -> Callable[[], float]:
    """The same for a vector environment; a step of all counts once for each."""
    n = envs.num_envs
    actions = np.random.default_rng(0).integers(int(envs.single_action_space.n), size=(steps, n))

    def measure() -> float:
        envs.reset(seed=0)
        began = time.perf_counter()
        for row in actions:
            envs.step(row)
        return steps * n / (time.perf_counter() - began)

    return measure


def fastest(repeats: int, **work: Callable[[], float]) -> dict[str, float]:
    """The best rate of each, measured in turn after one round to warm up."""
    for measure in work.values():
        measure()
    rates = dict.fromkeys(work, 0.0)
    for _ in range(repeats):
        for name, measure in work.items():
            rates[name] = max(rates[name], measure())
    return rates


def environments(quick: bool) -> Iterator[Row]:
    """Steps a second, one thread; ratio: to 64 copies in SyncVectorEnv behind DelayObservation(3), or to the bare environment. Goals on CartPole: half the
    pace of the bare environment behind a link (a ratio of 0.5), 0.4 as one flat vector."""
    repeats, k = (2, 1) if quick else (20, 1)
    name = "oldlight/SensingChain-v0"

    def vector(n: int, **how: Any) -> Callable[[], float]:
        return many(gym.make_vec(name, num_envs=n, **how), k * max(100, 20_000 // n))

    theirs = gym.make_vec(
        name, num_envs=COPIES, vectorization_mode="sync", wrappers=[lambda env: DelayObservation(env, 3)]
    )
    rates = fastest(
        repeats,
        theirs=many(theirs, 100 * k),
        delay=vector(COPIES, channel="constant:3"),
        geometric=vector(COPIES, channel="geometric:0.5"),
        lossy=vector(COPIES, channel="constant:2+loss:0.2", rewards="delayed"),
        same_step=vector(COPIES, channel="constant:3", autoreset_mode="SameStep"),
        plain=vector(COPIES),
        large=vector(1024, channel="constant:3"),
    )
    yield _row(f"SyncVectorEnv, {COPIES} × DelayObservation(3)", rates["theirs"])
    for key, what in (
        ("delay", f"native vector, {COPIES}, delay 3"),
        ("geometric", f"native vector, {COPIES}, geometric delay"),
        ("lossy", f"native vector, {COPIES}, delay 2 and loss, late rewards"),
        ("same_step", f"native vector, {COPIES}, delay 3, same-step resets"),
        ("plain", f"native vector, {COPIES}, no link"),
        ("large", "native vector, 1024, delay 3"),
    ):
        yield _row(what, rates[key], rates["theirs"])

    def single(**how: Any) -> Callable[[], float]:
        return one(gym.make(name, disable_env_checker=True, **how), 3000 * k)

    rates = fastest(repeats, none=single(), delay=single(channel="constant:3"))
    yield _row("single sensing chain, no link", rates["none"])
    yield _row("single sensing chain, delay 3", rates["delay"], rates["none"])

    for name in ("FrozenLake", "CartPole"):
        yield from _wrapped(name, 8 * repeats, 1000 * k)  # many short turns: each meets the machine at its best


def _wrapped(name: str, repeats: int, steps: int) -> Iterator[Row]:
    """An environment of Gymnasium's, bare and behind links."""

    def made() -> gym.Env[Any, Any]:
        return gym.make(f"{name}-v1", disable_env_checker=True)

    rates = fastest(
        repeats,
        bare=one(made(), steps),
        theirs=one(DelayObservation(made(), 3), steps),
        delay=one(ImpairedObservation(made(), "constant:3"), steps),
        lossy=one(ImpairedObservation(made(), "geometric:0.5+loss:0.2", queue=8), steps),
        flat=one(AugmentedObservation(ImpairedObservation(made(), "constant:3")), steps),
    )
    yield _row(name, rates["bare"])
    for key, what in (
        ("theirs", f"{name}, DelayObservation(3)"),
        ("delay", f"{name}, ImpairedObservation, delay 3"),
        ("lossy", f"{name}, ImpairedObservation, geometric delay and loss"),
        ("flat", f"{name}, the same with delay 3, flat"),
    ):
        yield _row(what, rates[key], rates["bare"])


def _row(what: str, rate: float, beside: float | None = None) -> Row:
    return {"what": what, "steps/s": f"{rate:,.0f}", "ratio": None if beside is None else rate / beside}


def main() -> None:
    for row in environments("--quick" in sys.argv[1:]):
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.3g}×"
        print(f"{row['what']:58} {row['steps/s']:>12} {ratio:>8}")


if __name__ == "__main__":
    main()
