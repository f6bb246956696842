"""`oldlight/Tabular-v0` and the named processes: a finite decision process, alone or behind a link, as a Gymnasium environment.

Documentation in Gymnasium's headings: docs/envs.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import gymnasium as gym
import numpy as np

from oldlight import checks
from oldlight.envs.batch_simulator import NO_STEP
from oldlight.envs.outside import take_channel, wrappers_around
from oldlight.envs.registration import named_classes
from oldlight.envs.rendering import Scene, ansi, rgb_array
from oldlight.envs.tabular_setup import LINK, LinkOptions, OneProblem, TabularSetup, refuse_channel, split_keywords
from oldlight.model.mdp import TabularMDP


class TabularEnv(OneProblem, gym.Env[Any, Any]):
    """A finite process, alone or behind a link; without a channel the state itself is seen.

    Parameters
    ----------
    mdp : TabularMDP, str or mapping
        The process, as text ("sensing_chain:0.8") or as data.
    render_mode : "ansi" or "rgb_array", optional
        As Gymnasium has it.
    **link
        channel, start, rewards, actuation, pending, queue, action_channel, missing, default: see docs/envs.md.

    Examples
    --------
    >>> import oldlight as ol
    >>> env = ol.envs.TabularEnv("sensing_chain:0.8", channel="constant:2", start="warm")
    >>> round(ol.solve(env.problem).value, 6)  # the exact optimum behind this link
    3.669276
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        mdp: TabularMDP | Mapping[str, Any] | str,
        *,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
        **link: Unpack[LinkOptions],
    ) -> None:
        if render_mode is not None:
            checks.one_of("render_mode", render_mode, self.metadata["render_modes"])
        split_keywords(TabularSetup, link, LINK)
        self._setup = TabularSetup(mdp, **link)
        self._simulator = self._setup.simulator(1)
        self.observation_space = self._setup.observation_space
        self.action_space = self._setup.action_space
        self.render_mode = render_mode
        self._playing = False
        self._seeded = False
        self._earned = 0.0

    @property
    def horizon(self) -> int:
        """H."""
        return self._setup.problem.horizon

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode. A seed decides it and all that follow; without one the streams go on."""
        given = (options or {}).get("channel", take_channel(wrappers_around(self)))
        if given is not None:
            refuse_channel(given)
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._simulator.seed(0, self.np_random)
            self._seeded = True
        self._simulator.begin(_ALL)
        self._playing, self._earned = True, 0.0
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; the episode ends (`terminated`) after H."""
        if not self._playing:
            raise gym.error.ResetNeeded("the episode has ended, or never begun: call reset() first")
        chosen = checks.whole("action", action, most=self._setup.problem.n_actions - 1)
        rewards, over = self._simulator.step(np.array([chosen]), _NONE)
        reward, ended = float(rewards[0]), bool(over[0])
        self._earned += reward
        self._playing = not ended
        info = self._info()
        info |= {name: int(value[0]) for name, value in self._simulator.done().items()}
        if ended and not self._setup.plain:
            info["hindsight"] = {name: array[0] for name, array in self._simulator.hindsight().items()}
        return self._observation(), reward, ended, False, info

    def _observation(self) -> Any:
        if self._setup.plain:
            return self._simulator.states[0]
        return {name: array[0] for name, array in self._simulator.show().items()}

    def _info(self) -> dict[str, Any]:
        if self._setup.plain:
            return {}
        info: dict[str, Any] = {"arrival": int(self._simulator.arrival[0])}
        if (arrived := self._simulator.arrivals) is not None:
            info["arrivals"] = [i for i in arrived[0].tolist() if i != NO_STEP]
        return info

    def render(self) -> Any:
        """The true state, what the agent sees, what is under way, the queue: as text or as a picture."""
        if self.render_mode is None:
            gym.logger.warn('render() does nothing without a render_mode, e.g. gym.make(..., render_mode="ansi")')
            return None
        scene = Scene.of(self._simulator, 0, self._setup.plain, self._earned)
        return ansi(scene) if self.render_mode == "ansi" else rgb_array(scene)


_ALL, _NONE = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.bool_)


class _NamedEnv(TabularEnv):
    """A process of `oldlight.instances` by its own arguments."""

    make: ClassVar[Any]

    def __init__(self, *args: Any, **keywords: Any) -> None:
        own, others = split_keywords(self.make, keywords, (*LINK, "render_mode"))
        super().__init__(self.make(*args, **own), **others)


globals().update(named_classes(_NamedEnv, "Env", __name__))
