"""Gymnasium: tabular environments behind a link, and wrappers that put any environment behind one. See docs/envs.md.

    gym.make("oldlight:oldlight/SensingChain-v0", channel="constant:2")      gym.make_vec("oldlight:oldlight/SensingChain-v0", num_envs=64)
    ImpairedObservation(gym.make("CartPole-v1"), "constant:2+loss:0.2")      AugmentedObservation(env)
    learn_in(env, learner, episodes, seed=0)                                  play(env, policy, episodes, seed=0)
    GridProcess.from_env(gym.make("CartPole-v1")).controller("constant:3")     # planned on a grid, played on the real one

Importing this package registers the environments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oldlight._exports import lazily
from oldlight.envs.registration import register

if TYPE_CHECKING:
    from oldlight.envs.agents import information, learn_in, play
    from oldlight.envs.augmented_observation import AugmentedObservation, AugmentedVectorObservation
    from oldlight.envs.drawn_link import LinkPerEpisode
    from oldlight.envs.fixed_length import FixedLength
    from oldlight.envs.grid import GridProcess
    from oldlight.envs.impaired_action import ImpairedAction
    from oldlight.envs.impaired_observation import ImpairedObservation
    from oldlight.envs.impaired_parts import ImpairedParts
    from oldlight.envs.impaired_vector import ImpairedVectorObservation
    from oldlight.envs.late_part import LatePart
    from oldlight.envs.model_policy import policy_of
    from oldlight.envs.tabular import TabularEnv
    from oldlight.envs.vector import TabularVectorEnv

_WHERE = {
    "agents": "information learn_in play",
    "augmented_observation": "AugmentedObservation AugmentedVectorObservation",
    "drawn_link": "LinkPerEpisode",
    "fixed_length": "FixedLength",
    "grid": "GridProcess",
    "impaired_action": "ImpairedAction",
    "impaired_observation": "ImpairedObservation",
    "impaired_parts": "ImpairedParts",
    "impaired_vector": "ImpairedVectorObservation",
    "late_part": "LatePart",
    "model_policy": "policy_of",
    "tabular": "TabularEnv",
    "vector": "TabularVectorEnv",
}

__all__ = [
    "AugmentedObservation",
    "AugmentedVectorObservation",
    "FixedLength",
    "GridProcess",
    "ImpairedAction",
    "ImpairedObservation",
    "ImpairedParts",
    "ImpairedVectorObservation",
    "LatePart",
    "LinkPerEpisode",
    "TabularEnv",
    "TabularVectorEnv",
    "information",
    "learn_in",
    "play",
    "policy_of",
    "register",
]


__getattr__ = lazily(__name__, {module: names.split() for module, names in _WHERE.items()})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register()
