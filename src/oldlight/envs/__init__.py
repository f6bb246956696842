"""Gymnasium: tabular environments behind a link, and wrappers that put any environment behind one. See docs/envs.md.

    gym.make("oldlight:oldlight/SensingChain-v0", channel="constant:2")      gym.make_vec("oldlight:oldlight/SensingChain-v0", num_envs=64)
    ImpairedObservation(gym.make("CartPole-v1"), "constant:2+loss:0.2")      AugmentedObservation(env)
    learn_in(env, learner, episodes, seed=0)                                  play(env, policy, episodes, seed=0)
    GridProcess.from_env(gym.make("CartPole-v1")).controller("constant:3")     # planned on a grid, played on the real one

Importing this package registers the environments.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "policy_of": "model_policy",
    "LatePart": "late_part",
    "LinkPerEpisode": "drawn_link",
    "ImpairedVectorObservation": "impaired_vector",
    "ImpairedParts": "impaired_parts",
    "ImpairedAction": "impaired_action",
    "AugmentedObservation": "augmented_observation",
    "AugmentedVectorObservation": "augmented_observation",
    "FixedLength": "fixed_length",
    "GridProcess": "grid",
    "ImpairedObservation": "impaired_observation",
    "TabularEnv": "tabular",
    "TabularVectorEnv": "vector",
    "information": "agents",
    "learn_in": "agents",
    "play": "agents",
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


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"oldlight.envs.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


register()
