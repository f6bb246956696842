"""The environments in Gymnasium's registry.

`import oldlight.envs` registers them, and so does `import oldlight` where Gymnasium is loaded already, as it always is when
`gym.make("oldlight:oldlight/SensingChain-v0")` imports this package. Whoever does not use Gymnasium does not wait for it.
"""

from __future__ import annotations

from typing import Any

NAMES = ("CenterChain", "SensingChain", "Dichotomy", "HardTree", "Tabular")
DEFAULTS: dict[str, dict[str, Any]] = {"Dichotomy": {"d": 2}, "Tabular": {"mdp": "sensing_chain:0.8"}}


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
