"""`ImpairedVectorObservation`: a whole vector environment behind links, one for each of its environments.

    ImpairedVectorObservation(gym.make_vec("CartPole-v1", num_envs=8), "constant:2+loss:0.2")
    ImpairedVectorObservation(envs, "constant:1 | constant:4")                         a link drawn for each episode of each environment
    ImpairedVectorObservation(envs, LinkPerEpisode([...], once=True))                  .. for each environment

Environment e is shown exactly what it would be shown inside `ImpairedObservation` with its seed (s + e, or its entry of a list of seeds), in each of
Gymnasium's three autoreset modes: each row goes through such a wrapper of its own. Observations that are torch tensors stay tensors, of the same
device: the rows go through the processor, the Dict comes back where the observations were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from oldlight.envs.impaired_observation import ImpairedObservation, Link
from oldlight.envs.tabular_setup import as_data

if TYPE_CHECKING:
    _VectorWrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _VectorWrapper = VectorWrapper


class _Row(gym.Env[Any, Any]):
    """One environment of a vector: it says what it was given."""

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        self.observation_space, self.action_space = envs.single_observation_space, envs.single_action_space
        self.given: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.given, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return *self.given, {}


class ImpairedVectorObservation(_VectorWrapper, RecordConstructorArgs):
    """The environments of a vector behind links.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        Any vector environment, of numpy arrays or torch tensors.
    channel : Channel, LinkPerEpisode, str or mapping
        As `ImpairedObservation` takes it; each environment has its own.
    **how
        As `ImpairedObservation` takes it: rewards, actuation, pending, in_order, queue, clock, horizon, hindsight, reveal. A horizon is the longest
        episode; a vector does not say its own.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from oldlight.envs import ImpairedVectorObservation
    >>> envs = ImpairedVectorObservation(gym.make_vec("CartPole-v1", num_envs=3), "constant:2")
    >>> shown, _ = envs.reset(seed=0)
    >>> shown["observation"].shape, shown["seen"].tolist()
    ((3, 4), [0, 0, 0])
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], channel: Link, **how: Any) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(f"{env} is not a vector environment; ImpairedObservation(env, channel) wraps a single one")
        if how.get("ends", "immediate") != "immediate":
            raise ValueError(
                'ends="delayed" needs an environment that waits for the agent, and a vector resets it: wrap each one, '
                "gym.make_vec(id, num_envs=N, vectorization_mode='sync', wrappers=[lambda env: ImpairedObservation(env, channel, ends=\"delayed\")])"
            )
        RecordConstructorArgs.__init__(self, channel=as_data(channel), **as_data(how))
        VectorWrapper.__init__(self, env)
        self._rows = [_Row(env) for _ in range(env.num_envs)]
        self._links = [ImpairedObservation(row, channel, **how) for row in self._rows]
        self.single_observation_space = self._links[0].observation_space
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._over = np.zeros(env.num_envs, dtype=np.bool_)
        self._shown: list[Any] = [None] * env.num_envs
        self._tensor: Any = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """New episodes, everywhere or where options["reset_mask"] says so; a seed decides what the links draw too."""
        mask = (options or {}).get("reset_mask")
        who = np.ones(self.num_envs, dtype=np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)
        seen, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + e for e in range(self.num_envs)]
        rows = self._unpacked(seen)
        for e in np.flatnonzero(who).tolist():
            infos = self._begin(e, rows[e], infos, seeds[e])
        return self._packed(), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of every environment; one that the vector resets begins anew behind its link."""
        seen, rewards, terminated, truncated, infos = self.env.step(actions)
        rows, chosen = self._unpacked(seen), list(iterate(self.env.action_space, _array(actions)))
        paid, ends, cuts = (np.array(_array(x)) for x in (rewards, terminated, truncated))
        same = self._mode is AutoresetMode.SAME_STEP
        final = np.full(self.num_envs, None, dtype=object)
        last: dict[str, Any] = {}
        for e in range(self.num_envs):
            if self._over[e] and self._mode is AutoresetMode.NEXT_STEP:
                infos = self._begin(e, rows[e], infos, None)
                continue
            over = bool(ends[e] or cuts[e])
            after = _array(infos["final_obs"][e]) if over and same else rows[e]
            self._rows[e].given = (after, float(paid[e]), bool(ends[e]), bool(cuts[e]))
            self._shown[e], paid[e], _, _, info = self._links[e].step(chosen[e])
            if over and same:
                final[e], last = self._as_given(self._shown[e]), self._add_info(last, info, e)
                infos = self._begin(e, rows[e], infos, None)
            else:
                infos = self._add_info(infos, info, e)
        if last:
            infos = infos | {"final_obs": final, "final_info": infos.get("final_info", {}) | last}
        self._over = (ends | cuts) if not same else np.zeros_like(self._over)
        kind = getattr(rewards, "dtype", np.float64)
        paid = paid.astype(kind) if self._tensor is None else self._back(paid)
        return self._packed(), paid, terminated, truncated, infos

    def _begin(self, e: int, row: Any, infos: dict[str, Any], seed: int | None) -> dict[str, Any]:
        self._rows[e].given = row
        self._shown[e], info = self._links[e].reset(seed=seed)
        self._over[e] = False
        return self._add_info(infos, info, e)

    def _unpacked(self, seen: Any) -> list[Any]:
        """The observation of each environment, as numpy arrays that are nobody else's."""
        self._tensor = seen if hasattr(seen, "detach") else None
        return list(iterate(self.env.observation_space, np.array(_array(seen)) if self._tensor is not None else seen))

    def _packed(self) -> Any:
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return self._as_given(concatenate(self.single_observation_space, self._shown, empty))

    def _as_given(self, shown: Any) -> Any:
        """A Dict of arrays, of tensors where the observations are tensors."""
        return shown if self._tensor is None else {name: self._back(array) for name, array in shown.items()}

    def _back(self, array: Any) -> Any:
        """An array as a tensor where the observations are."""
        import torch

        return torch.as_tensor(np.array(array), device=self._tensor.device)


def _array(values: Any) -> Any:
    """A tensor as a numpy array; anything else as it is."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values
