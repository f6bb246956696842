"""The practitioner's way through oldlight: python docs/guides/practitioner.py OUT"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import oldlight as ol
from oldlight.envs import AugmentedObservation, GridProcess, ImpairedObservation, learn_in, play, policy_of


class Greedy:
    """Stands for a trained model where stable-baselines3 is not installed: towards the middle from the newest state, if it is seen."""

    def predict(self, row: np.ndarray, deterministic: bool = True) -> tuple[int, None]:
        newest = int(row[ROOM : ROOM + 21].argmax())
        return (2 if newest == 20 else int(newest >= 10)), None


ROOM = 2 * 6 + 1 + 2  # entries of the vector before the newest state: two actions, the age, whether it is fresh


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)

    # 1. Wrap: any environment behind a bad link, two steps of 20 ms late, a fifth lost.
    env = ImpairedObservation(gym.make("CartPole-v1"), "constant:40ms@20+loss:0.2", queue=8, reveal=True)
    shown, _ = env.reset(seed=1)
    print("nothing has come through yet:", {key: np.asarray(value).tolist() for key, value in shown.items()})
    over = False
    while not over:
        shown, _reward, over, _cut, info = env.step(env.action_space.sample())
    print("what the link did in this episode:", info["link"])
    env.channel = "constant:1 | constant:3"  # from now on one of these, drawn for each episode

    # 2. Train: as one vector that a library's learner accepts; on a process with a table the package's own learners train too.
    chain = AugmentedObservation(gym.make("oldlight/SensingChain-v0", channel="constant:2"))
    model = Greedy()
    if importlib.util.find_spec("stable_baselines3"):
        from stable_baselines3 import PPO

        model = PPO("MlpPolicy", chain, n_steps=256, seed=1).learn(1000)
    lake = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=20), "constant:1")
    returns = learn_in(lake, ol.learners.default(), 1000, seed=1)
    value = ol.solve(ol.ImpairedMDP(ol.TabularMDP.from_gymnasium("FrozenLake-v1", 20), ol.ConstantDelay(1))).value
    print(f"FrozenLake: the last 500 episodes earned {returns[-500:].mean():.3f}, the optimum is {value:.3f}")

    # 3. Compare with the optimum: the model's exact value behind the link, beside the best that can be executed.
    problem = chain.unwrapped.problem
    policy = policy_of(model, chain)
    best, mine = ol.solve(problem), ol.evaluate(problem, policy).value
    print(
        f"oldlight/SensingChain-v0: the model is worth {mine:.3f}, {100 * mine / best.value:.0f} % of the optimum {best.value:.3f}"
    )

    # 4. Compare where there is no table: a plan on a grid, played on the real environment behind the link.
    grid = GridProcess.from_env(gym.make("CartPole-v1"), bins=(3, 7, 9, 9), discount=0.97)
    planned = grid.controller("constant:1")
    real = ImpairedObservation(gym.make("CartPole-v1"), "constant:1", queue=0)
    returns = play(real, planned, 5, seed=1, grid=grid)
    print(
        f"{grid}: the plan earned {returns.mean():.0f} ± {1.96 * returns.std(ddof=1) / 5**0.5:.0f} on the real CartPole"
    )

    # 5. Deploy: a controller is one file, decides in microseconds, and copes with what the link does.
    file = planned.save(out / "cartpole.npz")
    controller = ol.Controller.load(file)
    seen, _ = gym.make("CartPole-v1").reset(seed=2)
    controller.act()  # nothing has arrived yet
    controller.observe(step=0, state=grid.cell(seen))
    print("the first informed action of the controller in", file.name, "is", grid.action(controller.act()))
    print("the model runs as a controller too:", ol.Controller(problem, policy).act())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/practitioner"))
