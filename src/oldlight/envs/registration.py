"""The environments in Gymnasium's registry, as soon as there is a Gymnasium.

`import oldlight` registers them if Gymnasium is loaded, as it always is when `gym.make("oldlight:oldlight/SensingChain-v0")`
imports this package. If not, it leaves a note with the import system, and they are registered the moment Gymnasium is
imported. So the order of the two imports does not matter, and whoever does not use Gymnasium does not wait for it (nor for
`importlib.abc`, whose base classes the two classes below do without).
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAMES = ("CenterChain", "SensingChain", "Dichotomy", "HardTree", "Tabular")
DEFAULTS: dict[str, dict[str, Any]] = {"Dichotomy": {"d": 2}, "Tabular": {"mdp": "sensing_chain:0.8"}}


def register() -> None:
    """Put oldlight/CenterChain-v0 and the others into Gymnasium's registry, once."""
    import gymnasium

    for name in NAMES:
        if f"oldlight/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                id=f"oldlight/{name}-v0",
                entry_point=f"oldlight.envs.tabular:{name}Env",
                vector_entry_point=f"oldlight.envs.vector:{name}VectorEnv",
                kwargs=dict(DEFAULTS.get(name, {})),
            )


def announce() -> None:
    """Register now, or when Gymnasium is imported."""
    if hasattr(sys.modules.get("gymnasium"), "register"):
        register()
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported:
    """Lets the others find Gymnasium, and registers after it has been loaded (being looked for is not enough)."""

    _asking = False

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "gymnasium" or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenRegister(spec.loader, self)  # type: ignore[assignment]
        return spec


class _ThenRegister:
    """Another loader, and `register` after it."""

    def __init__(self, loader: Any, finder: _WhenImported) -> None:
        self._loader, self._finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        register()
