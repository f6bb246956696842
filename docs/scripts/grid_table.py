"""Plans on a grid beside PPO, DQN and SAC that are given the same time: the table of docs/grid.md.

    python docs/scripts/grid_table.py                        all rows, at T and 10 T, 3 seeds; needs: pip install 'oldlight[deep]'
    python docs/scripts/grid_table.py --env CartPole-v1 --times 1 --seeds 3 --out runs/grid_table.json
    python docs/scripts/grid_table.py --show                 what is finished, into docs/grid.md

For each environment behind the link (constant:3 unless --channel says otherwise): the grid is sampled and planned, which takes T seconds; then each learner is
trained for T and for 10 T seconds behind the same link, on all that an agent there can know (`AugmentedObservation`, settings of `oldlight.deep`). Every mean
is of episodes on the real environment behind the link. Examinations do not count. The clock is that of the wall or, with --clock processor, the seconds of
the processor that one thread used, which another program on the machine does not change. What is finished is kept in --out and is not computed again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OLDLIGHT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import gymnasium as gym  # noqa: E402
import numpy as np  # noqa: E402
from marks import fill  # noqa: E402
from scipy.stats import t  # noqa: E402

from oldlight.deep import SETTINGS, make  # noqa: E402
from oldlight.envs import GridProcess, ImpairedObservation, play  # noqa: E402

LEARNERS = {
    "MountainCar-v0": ("PPO", "DQN"),
    "CartPole-v1": ("PPO", "DQN"),
    "Pendulum-v1": ("PPO", "SAC"),
    "Acrobot-v1": ("PPO", "DQN"),
}
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}
PLANNED, EXAMINED = 100, 20  # episodes of a plan, and of a learner at each time


def planned(env: str, channel: str, clock: Callable[[], float]) -> dict[str, Any]:
    """Sample, plan, play."""
    GridProcess.from_env(gym.make("MountainCar-v0"), bins=(5, 5), progress=False).controller(
        channel, progress=False
    )  # compiled
    began = clock()
    grid = GridProcess.from_env(gym.make(env), progress=False)
    sampled = clock()
    controller = grid.controller(channel, progress=False)
    seconds = clock() - began
    behind = ImpairedObservation(gym.make(env), channel, queue=0, hindsight=False)
    returns = play(behind, controller, PLANNED, seed=0, grid=grid)
    return {"seconds": seconds, "sampling": sampled - began, "returns": returns.tolist(), "points": grid.mdp.n_states}


def trained(
    env: str, channel: str, algorithm: str, seed: int, limits: list[float], clock: Callable[[], float]
) -> list[dict[str, Any]]:
    """Train until the last of `limits` seconds; at each of them the steps so far and the mean return of the greedy policy."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    exam = make(env, channel, "augmented", seed=1000 + seed)
    model = getattr(stable_baselines3, algorithm)(
        "MlpPolicy", make(env, channel, "augmented", seed=seed), seed=seed, device="cpu", **SETTINGS[algorithm]
    )
    found: list[dict[str, Any]] = []

    class Clock(BaseCallback):  # type: ignore[misc]
        """Ends the training after the last limit, and examines at each; the examinations do not count."""

        began, paused = 0.0, 0.0

        def _on_training_start(self) -> None:
            self.began = clock()

        def _on_step(self) -> bool:
            while len(found) < len(limits) and clock() - self.began - self.paused >= limits[len(found)]:
                stopped = clock()
                found.append({"steps": int(self.num_timesteps), "mean": examined(model, exam)})
                self.paused += clock() - stopped
            return len(found) < len(limits)

    model.learn(10**9, callback=Clock())
    return found


def examined(model: Any, env: Any) -> float:
    """The mean return of the greedy policy."""
    total = 0.0
    for _ in range(EXAMINED):
        seen, _ = env.reset()
        over = False
        while not over:
            action, _ = model.predict(seen, deterministic=True)
            seen, reward, terminated, truncated, _ = env.step(action if np.ndim(action) else int(action))
            total, over = total + float(reward), bool(terminated or truncated)
    return total / EXAMINED


def row(found: dict[str, Any]) -> list[str]:
    """The lines of one environment."""
    plan, values = found["plan"], np.array(found["plan"]["returns"])
    half = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    head = f"| {found['env']} | "
    lines = [f"{head}plan, {plan['points']:,} states | {plan['seconds']:.1f} | | {values.mean():.1f} ± {half:.1f} |"]
    for algorithm, seeds in found["learners"].items():
        for k in sorted({run["times"] for runs in seeds.values() for run in runs}):
            runs = [run for some in seeds.values() for run in some if run["times"] == k]
            means, steps = np.array([run["mean"] for run in runs]), [run["steps"] for run in runs]
            n = len(means)
            noise = f" ± {t.ppf(0.975, n - 1) * means.std(ddof=1) / math.sqrt(n):.1f}" if n > 1 else ""
            who = f"{algorithm}, {n} seed{'s' if n > 1 else ''}"
            reached = f"{min(steps):,} to {max(steps):,}" if n > 1 else f"{steps[0]:,}"
            lines.append(f"{head}{who} | {k * plan['seconds']:.1f} | {reached} | {means.mean():.1f}{noise} |")
    return lines


def table(kept: dict[str, Any]) -> str:
    """Every row that is kept, as Markdown."""
    lines = ["| environment | who | seconds | steps of training | mean return |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(line for found in kept.values() for line in row(found))])


def show(kept: dict[str, Any]) -> None:
    """Write the table into docs/grid.md."""
    fill(Path(__file__).parents[1] / "grid.md", {"grid": table(kept)})


def measure(env: str, kept: dict[str, Any], given: argparse.Namespace) -> None:
    """Plan and train on one environment; what is kept is not computed again."""
    clock, key = CLOCKS[given.clock], f"{env} {given.channel} {given.clock}"
    if key not in kept:
        plan = planned(env, given.channel, clock)
        kept[key] = {"env": env, "plan": plan, "learners": {name: {} for name in LEARNERS[env]}}
        keep(kept, given.out)
    T = kept[key]["plan"]["seconds"]
    for seed in range(given.seeds):
        for algorithm in LEARNERS[env]:
            runs = kept[key]["learners"][algorithm]
            if {run["times"] for run in runs.get(str(seed), [])} >= set(given.times):
                continue
            found = trained(env, given.channel, algorithm, seed, [x * T for x in given.times], clock)
            runs[str(seed)] = [run | {"times": x} for x, run in zip(given.times, found, strict=True)]
            keep(kept, given.out)


def keep(kept: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part")
    part.write_text(json.dumps(kept))
    part.replace(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", action="append", choices=list(LEARNERS), help="several times; all if none is given")
    parser.add_argument("--channel", default="constant:3")
    parser.add_argument("--times", type=float, nargs="+", default=[1.0, 10.0], help="in units of T, rising")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--out", type=Path, default=Path("runs/grid_table.json"))
    parser.add_argument("--show", action="store_true", help="compute nothing, write what is kept into docs/grid.md")
    given = parser.parse_args()
    kept: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    if given.show:
        show(kept)
        return
    for env in given.env or LEARNERS:
        measure(env, kept, given)
    print(table(kept))


if __name__ == "__main__":
    main()
