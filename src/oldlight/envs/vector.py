"""Many tabular environments at once, compiled: what `gym.make_vec("oldlight/SensingChain-v0", num_envs=N)` returns.

Environment e does exactly what a single one with the seed of e does, in each of Gymnasium's three autoreset modes
(`autoreset_mode="NextStep"`, `"SameStep"` or `"Disabled"`), and so does a partial reset: `reset(options={"reset_mask": mask})`
begins new episodes where the mask says so and leaves the others, their random streams included, as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from oldlight import checks
from oldlight.envs.batch_simulator import NO_STEP
from oldlight.envs.registration import named_classes
from oldlight.envs.rendering import Scene, ansi, rgb_array
from oldlight.envs.tabular import TabularEnv
from oldlight.envs.tabular_setup import LINK, LinkOptions, OneProblem, TabularSetup, refuse_channel, split_keywords
from oldlight.model.mdp import TabularMDP

Mask = NDArray[np.bool_]
MODES = tuple(mode.value for mode in AutoresetMode)


class TabularVectorEnv(OneProblem, VectorEnv[Any, Any, Any]):
    """Copies of one process behind one kind of link, played in compiled code.

    Parameters
    ----------
    mdp : TabularMDP, str or mapping
        As `TabularEnv` takes it.
    num_envs : int
        How many copies.
    autoreset_mode : AutoresetMode, "NextStep", "SameStep" or "Disabled"
        As Gymnasium has it.
    render_mode : "ansi" or "rgb_array", optional
        As Gymnasium has it.
    **link
        As `TabularEnv` takes it.

    Examples
    --------
    >>> import oldlight as ol
    >>> envs = ol.envs.TabularVectorEnv("sensing_chain:0.8", num_envs=3, channel="loss:0.2")
    >>> observations, _ = envs.reset(seed=0)
    >>> observations["observation"].shape
    (3,)
    """

    metadata: dict[str, Any] = TabularEnv.metadata | {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        mdp: TabularMDP | Mapping[str, Any] | str,
        *,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | Literal["NextStep", "SameStep", "Disabled"] = AutoresetMode.NEXT_STEP,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
        **link: Unpack[LinkOptions],
    ) -> None:
        if not isinstance(autoreset_mode, AutoresetMode):
            autoreset_mode = AutoresetMode(checks.one_of("autoreset_mode", autoreset_mode, MODES))
        if render_mode is not None:
            checks.one_of("render_mode", render_mode, self.metadata["render_modes"])
        self.num_envs = checks.whole("num_envs", num_envs, least=1)
        self.autoreset_mode, self.render_mode = autoreset_mode, render_mode
        self.metadata = self.metadata | {"autoreset_mode": autoreset_mode}
        split_keywords(TabularSetup, link, LINK)
        self._setup = TabularSetup(mdp, **link)
        self._simulator = self._setup.simulator(self.num_envs)
        self.single_observation_space = self._setup.observation_space
        self.single_action_space = self._setup.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        self._seeded = np.zeros(self.num_envs, dtype=np.bool_)
        self._earned = np.zeros(self.num_envs)

    # -- episodes -----------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """New episodes, everywhere or where options["reset_mask"] says so. A seed s means s, s + 1, ...; or one for each."""
        if (options or {}).get("channel") is not None:
            refuse_channel((options or {})["channel"])
        who = self._asked_for(options)
        for e, one in enumerate(self._seeds(seed)):
            if who[e] and (one is not None or not self._seeded[e]):
                self._simulator.seed(e, seeding.np_random(one)[0])
                self._seeded[e] = True
        self._begin(who)
        return self._observations(), self._infos(who)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of every environment. In the mode "NextStep" one that has ended is reset, and its action ignored."""
        if not self._seeded.all():
            raise gym.error.ResetNeeded(f"environment {int(self._seeded.argmin())} was never reset: call reset() first")
        chosen, waiting = self._checked(actions), self._over
        if self.autoreset_mode is AutoresetMode.DISABLED and waiting.any():
            raise gym.error.ResetNeeded(
                f"environment {int(waiting.argmax())} has ended: call reset(options={{'reset_mask': mask}}) first"
            )
        rewards, over = self._simulator.step(chosen, waiting)
        done = self._simulator.done()
        if waiting.any():
            self._begin(waiting)
        self._earned += rewards
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        if not over.any():
            observations, infos = self._observations(), self._infos(everyone) | _masked(done, ~waiting)
        elif self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = self._observations()
            infos = {"final_obs": self._one_by_one(final, over), "_final_obs": over.copy()}
            infos |= {"final_info": self._infos(over, over) | _masked(done, over), "_final_info": over.copy()}
            self._begin(over)
            observations = self._observations()
            infos |= self._infos(everyone) | _masked(done, ~over)
        else:
            observations, infos = self._observations(), self._infos(everyone, over) | _masked(done, ~waiting)
        self._over = over.copy() if self.autoreset_mode is not AutoresetMode.SAME_STEP else np.zeros_like(over)
        return observations, rewards, over, np.zeros(self.num_envs, dtype=np.bool_), infos

    def _begin(self, who: Mask) -> None:
        self._simulator.begin(who)
        self._over = self._over & ~who
        self._earned[who] = 0.0

    def _asked_for(self, options: Mapping[str, Any] | None) -> Mask:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if (
            not isinstance(mask, np.ndarray)
            or mask.dtype != np.bool_
            or mask.shape != (self.num_envs,)
            or not mask.any()
        ):
            raise ValueError(
                f"options['reset_mask'] is {mask!r}, expected a numpy array of {self.num_envs} booleans, at least one of them True"
            )
        return mask.copy()

    def _seeds(self, seed: int | list[int | None] | None) -> list[int | None]:
        if seed is None or isinstance(seed, int | np.integer):
            return [None if seed is None else int(seed) + e for e in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed has {len(seed)} entries, expected one per environment: {self.num_envs}")
        return list(seed)

    def _checked(self, actions: Any) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise ValueError(
                f"actions has shape {chosen.shape} and type {chosen.dtype}; expected {self.num_envs} whole numbers"
            )
        return np.ascontiguousarray(chosen, dtype=np.int64)

    # -- what is shown ------------------------------------------------------------------------------------------

    def _observations(self) -> Any:
        return self._simulator.states if self._setup.plain else self._simulator.show()

    def _one_by_one(self, shown: Any, who: Mask) -> NDArray[Any]:
        """The observations of the environments in `who`, as an array of objects (Gymnasium's form of final_obs)."""
        rows = np.full(self.num_envs, None, dtype=object)
        each = np.flatnonzero(who).tolist()
        if self._setup.plain:
            for e in each:
                rows[e] = shown[e]
        else:
            for e, values in zip(each, zip(*(array[each] for array in shown.values()), strict=True), strict=True):
                rows[e] = dict(zip(shown, values, strict=True))
        return rows

    def _infos(self, who: Mask, ended: Mask | None = None) -> dict[str, Any]:
        """Infos as Gymnasium batches them: a mask "_key" beside each key."""
        if self._setup.plain:
            return {}
        infos: dict[str, Any] = {"arrival": np.where(who, self._simulator.arrival, 0), "_arrival": who.copy()}
        if (arrived := self._simulator.arrivals) is not None:
            infos |= {"arrivals": np.where(who[:, None], arrived, NO_STEP), "_arrivals": who.copy()}
        if ended is not None:
            revealed: dict[str, Any] = {}
            for name, array in self._simulator.hindsight().items():
                array[~ended] = 0
                revealed |= {name: array, f"_{name}": ended.copy()}
            infos |= {"hindsight": revealed, "_hindsight": ended.copy()}
        return infos

    def render(self) -> tuple[Any, ...] | None:
        """One frame per environment."""
        if self.render_mode is None:
            gym.logger.warn('render() does nothing without a render_mode, e.g. gym.make_vec(..., render_mode="ansi")')
            return None
        draw: Any = ansi if self.render_mode == "ansi" else rgb_array
        scenes = (Scene.of(self._simulator, e, self._setup.plain, float(self._earned[e])) for e in range(self.num_envs))
        return tuple(draw(scene) for scene in scenes)


def _masked(found: Mapping[str, NDArray[Any]], who: Mask) -> dict[str, Any]:
    """Numbers of the environments in `who` as Gymnasium batches them."""
    masked: dict[str, Any] = {}
    for name, values in found.items():
        masked |= {name: np.where(who, values, 0), f"_{name}": who.copy()}
    return masked


class _NamedVectorEnv(TabularVectorEnv):
    make: ClassVar[Any]

    def __init__(self, *args: Any, **keywords: Any) -> None:
        own, others = split_keywords(self.make, keywords, (*LINK, "num_envs", "autoreset_mode", "render_mode"))
        super().__init__(self.make(*args, **own), **others)


globals().update(named_classes(_NamedVectorEnv, "VectorEnv", __name__))
