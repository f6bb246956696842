"""The environments in Gymnasium's registry.

`import oldlight.envs` registers them, and so does `import oldlight` where Gymnasium is loaded already, as it always is when
`gym.make("oldlight:oldlight/SensingChain-v0")` imports this package. Whoever does not use Gymnasium does not wait for it.
"""

from __future__ import annotations

from typing import Any

NAMES: dict[str, str | None] = {  # of the environments, and of their function in `oldlight.instances`: the one list
    "CenterChain": "center_chain",
    "SensingChain": "sensing_chain",
    "Dichotomy": "dichotomy",
    "HardTree": "hard_tree",
    "Tabular": None,  # any process: mdp=
}
# oldlight/CartPole-v1, ..
CLASSICS = ("Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
DEFAULTS: dict[str, dict[str, Any]] = {"Dichotomy": {"d": 2}, "Tabular": {"mdp": "sensing_chain:0.8"}}


def named_classes(base: type, suffix: str, module: str) -> dict[str, type]:
    """A subclass of `base` for each environment that has a function in `oldlight.instances`, which is its `make`."""
    from oldlight import instances

    made = {}
    for name, function in NAMES.items():
        if function is not None:
            about = f"`oldlight/{name}-v0`: `oldlight.instances.{function}` by its own arguments."
            parts = {"make": staticmethod(getattr(instances, function)), "__doc__": about, "__module__": module}
            made[name + suffix] = type(name + suffix, (base,), parts)
    return made


def register() -> None:
    """Put oldlight/CenterChain-v0 and the others into Gymnasium's registry, once.

    Examples
    --------
    >>> import gymnasium
    >>> import oldlight.envs
    >>> oldlight.envs.register()
    >>> gymnasium.make("oldlight/SensingChain-v0").observation_space
    Discrete(20)
    """
    import gymnasium

    for name in NAMES:
        if f"oldlight/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                id=f"oldlight/{name}-v0",
                entry_point=f"oldlight.envs.tabular:{name}Env",
                vector_entry_point=f"oldlight.envs.vector:{name}VectorEnv",
                kwargs=dict(DEFAULTS.get(name, {})),
            )
    for name in CLASSICS:
        if f"oldlight/{name}" not in gymnasium.registry:
            gymnasium.register(
                id=f"oldlight/{name}", entry_point="oldlight.envs.registration:classic", kwargs={"of": name}
            )


def classic(of: str, channel: Any = "none", **how: Any) -> Any:
    """`oldlight/CartPole-v1` and the other classic ids: the environment inside `ImpairedObservation`, whose keywords it takes too; with
    `action_channel=`, `missing=` and `default=` its actions travel as well (`ImpairedAction`)."""
    import gymnasium

    from oldlight.envs.impaired_action import ImpairedAction
    from oldlight.envs.impaired_observation import ImpairedObservation

    own = {
        name: how.pop(name)
        for name in ("render_mode", "max_episode_steps", "goal_velocity", "g", "sutton_barto_reward")
        if name in how
    }
    made = gymnasium.make(of, **own)
    if (link := how.pop("action_channel", None)) is not None:
        acting = {name: how.pop(name) for name in ("missing", "default") if name in how}
        made = ImpairedAction(made, link, **acting)
    return ImpairedObservation(made, channel, **how)
