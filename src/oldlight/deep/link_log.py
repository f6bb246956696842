"""`link_callback`: what the link did, in the log of stable-baselines3.

At the end of each rollout it records the means, over the episodes that ended in it, of what `info["link"]` says: `link/mean_age`, `link/lost`,
`link/longest_blackout`; of an environment with a link for each part `link/camera/mean_age`, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def link_callback() -> Any:
    """A callback for `model.learn(steps, callback=link_callback())`; needs the extra `deep`.

    Returns
    -------
    stable_baselines3.common.callbacks.BaseCallback
        Its `history` has the means of every rollout in which an episode ended.
    """
    from stable_baselines3.common.callbacks import BaseCallback

    class LinkCallback(BaseCallback):  # type: ignore[misc]
        """Records the means of info["link"]."""

        def __init__(self) -> None:
            super().__init__()
            self.history: list[dict[str, float]] = []
            self._episodes: dict[str, list[float]] = {}

        def _on_step(self) -> bool:
            for info in self.locals.get("infos", ()):
                for name, value in numbers(info.get("link", {}), "link"):
                    self._episodes.setdefault(name, []).append(value)
            return True

        def _on_rollout_end(self) -> None:
            if self._episodes:
                means = {name: sum(values) / len(values) for name, values in self._episodes.items()}
                self.history.append(means)
                for name, mean in means.items():
                    self.logger.record(name, mean)
                self._episodes = {}

    return LinkCallback()


def numbers(found: Mapping[str, Any], name: str) -> Iterator[tuple[str, float]]:
    """The numbers of info["link"] by name, those of parts below their part."""
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{name}/{key}")
        else:
            yield f"{name}/{key}", float(value)
