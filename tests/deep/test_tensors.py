"""Vector environments of torch tensors behind links: what comes out are tensors, with the numbers of the same environments of numpy arrays."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from oldlight.envs import ImpairedVectorObservation

torch = pytest.importorskip("torch", reason="torch is not installed: make test-deep")


class Tensors(VectorWrapper):  # type: ignore[type-arg]
    """A vector environment whose observations, rewards and ends are tensors, and which takes tensors, as simulators on a GPU do."""

    def reset(self, **how: Any) -> Any:
        seen, info = self.env.reset(**how)
        return torch.as_tensor(seen, dtype=torch.float32), info

    def step(self, actions: Any) -> Any:
        assert isinstance(actions, torch.Tensor)
        seen, *told, info = self.env.step(actions.numpy())
        if "final_obs" in info:
            info["final_obs"] = np.array(
                [None if row is None else torch.as_tensor(row) for row in info["final_obs"]], dtype=object
            )
        return torch.as_tensor(seen, dtype=torch.float32), *(torch.as_tensor(x) for x in told), info


def poles(mode: AutoresetMode) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make("CartPole-v1", max_episode_steps=12)] * 3, autoreset_mode=mode)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("rewards", ["immediate", "delayed"])
def test_tensors_stay_tensors_with_the_same_numbers(mode: AutoresetMode, rewards: str) -> None:
    how: dict[str, Any] = {"queue": 3, "rewards": rewards, "horizon": 12}
    ours = ImpairedVectorObservation(Tensors(poles(mode)), "packets:0=.5,2=.5+loss:0.2", **how)
    known = ImpairedVectorObservation(poles(mode), "packets:0=.5,2=.5+loss:0.2", **how)
    rng = np.random.default_rng(0)
    shown, _ = ours.reset(seed=4)
    expected, _ = known.reset(seed=4)
    for _ in range(40):
        assert shown.keys() == expected.keys()
        for name, value in shown.items():
            assert isinstance(value, torch.Tensor), name
            assert np.array_equal(value.numpy(), expected[name]), name
        actions = rng.integers(2, size=3)
        shown, paid, over, _, infos = ours.step(torch.as_tensor(actions))
        expected, reward, ends, cuts, known_infos = known.step(actions)
        for last, other in zip(infos.get("final_obs", ()), known_infos.get("final_obs", ()), strict=True):
            assert (last is None) == (other is None)
            for name in last or ():
                assert isinstance(last[name], torch.Tensor)
                assert np.array_equal(last[name].numpy(), other[name]), name
        assert isinstance(paid, torch.Tensor)
        assert isinstance(over, torch.Tensor)
        assert paid.numpy() == pytest.approx(reward)
        assert over.tolist() == ends.tolist()
        if mode is AutoresetMode.DISABLED and (ends | cuts).any():
            mask = {"reset_mask": ends | cuts}
            shown, _ = ours.reset(options=mask)
            expected, _ = known.reset(options=mask)


def test_what_was_shown_is_not_changed_by_what_follows() -> None:
    envs = ImpairedVectorObservation(Tensors(poles(AutoresetMode.NEXT_STEP)), "none", queue=2)
    first, _ = envs.reset(seed=0)
    before = first["observation"].clone()
    envs.step(torch.zeros(3, dtype=torch.int64))
    assert torch.equal(first["observation"], before)
