"""The practitioner's way through oldlight: python docs/guides/practitioner.py OUT"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import oldlight as ol
from oldlight.envs import AugmentedObservation, ImpairedObservation, learn_in, play


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)

    # 1. Any environment behind a bad link: 2 steps late, 20% lost.
    env = ImpairedObservation(gym.make("CartPole-v1"), "constant:2+loss:0.2", queue=8)
    shown, _ = env.reset(seed=1)
    print("nothing has come through yet:", {key: np.asarray(value).tolist() for key, value in shown.items()})
    for _ in range(4):
        shown, _reward, _ended, _cut, info = env.step(env.action_space.sample())
    print("later:", {key: np.asarray(value).round(3).tolist() for key, value in shown.items()}, info["arrivals"])

    # 2. As one vector that a library's learner accepts.
    flat = AugmentedObservation(env)
    print("one vector:", flat.observation_space.shape)
    flat.channel = "constant:3"  # a better link from the next episode on, in the same space
    flat.reset(seed=2)

    # 3. The package's own environments know their exact optimum.
    chain = gym.make("oldlight/SensingChain-v0", channel="constant:2")
    best = ol.solve(chain.unwrapped.problem)
    returns = play(chain, best.policy, 2000, seed=1)
    print(
        f"{chain.spec.id}: the best executable policy is worth {best.value:.3f}; 2,000 episodes of it earned {returns.mean():.3f}"
    )

    # 4. A tabular learner in a Gymnasium environment behind a link.
    lake = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=20), "constant:1")
    returns = learn_in(lake, ol.learners.DelayedUCBVI(pooled=True), 2000, seed=1)
    value = ol.solve(ol.ImpairedMDP(ol.TabularMDP.from_gymnasium("FrozenLake-v1", 20), ol.ConstantDelay(1))).value
    print(
        f"FrozenLake behind a delay of 1: the last 1,000 episodes earned {returns[-1000:].mean():.3f}, the optimum is {value:.3f}"
    )

    # 5. Many environments at once, for learners that want throughput.
    envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=64, channel="constant:3")
    envs.reset(seed=1)
    total = sum(float(envs.step(envs.action_space.sample())[1].sum()) for _ in range(1000))
    print(f"64 environments, 1,000 steps each, {total:.0f} earned at random")

    # 6. A deep learner, if stable-baselines3 is there.
    if importlib.util.find_spec("stable_baselines3"):
        from stable_baselines3 import PPO

        PPO(
            "MlpPolicy", AugmentedObservation(gym.make("oldlight/SensingChain-v0", channel="constant:2")), n_steps=256
        ).learn(1000)
        print("PPO has trained for 1,000 steps behind the link")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/practitioner"))
