"""Episodes a second of rlberry's UCBVI, with no delay: `python benchmarks/rlberry_ucbvi.py PROCESS.npz EPISODES`.

Runs in an environment of its own (`make .venv-rlberry/.done`): rlberry 0.6.0, the last with a compiled backward induction,
wants an old Gymnasium. bench.py calls it in turn with ours, on the same process, counts per step in both. Prints JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")


def main(file: str, episodes: int) -> None:
    from rlberry.agents import UCBVIAgent
    from rlberry.envs.finite import FiniteMDP

    logging.disable(logging.CRITICAL)
    data = np.load(file)
    env = FiniteMDP(data["rewards"], data["transitions"], initial_state_distribution=data["initial"])
    agent = UCBVIAgent(env, horizon=int(data["horizon"]), gamma=1.0, stage_dependent=True, bonus_scale_factor=0.02)
    agent.fit(20)  # compiles
    agent.reset()
    blocks = []
    for _ in range(10):
        began = time.perf_counter()
        agent.fit(episodes // 10)
        blocks.append((time.perf_counter() - began) / (episodes // 10))
    print(json.dumps({"per episode": float(np.median(blocks))}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
