"""A link that is drawn anew for each episode: mixtures of links, domain randomisation.

    LinkPerEpisode(["constant:1", "constant:4", "packets:0=.5,2=.5"], weights=[0.5, 0.25, 0.25])
    "constant:1 | constant:4 | packets:0=.5,2=.5"        the same with equal weights, as text

`ImpairedObservation` and `ImpairedVectorObservation` take either in the place of a channel. The link of an episode is drawn at its reset, from the
link's own random stream, and `info["channel"]` of the reset says which one it is. `once=True` draws it at the first reset only: in a vector
each environment then has a link of its own.

A planner has no such thing: behind an unknown one of several links the age of an observation tells of the link, and the best policy remembers all
ages so far. Plan for each of them, or for a `HiddenLink` whose mode never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.model.channels import Channel
from oldlight.registry import channel_data, channel_of


class LinkPerEpisode:
    """One of several channels, drawn for each episode.

    Parameters
    ----------
    channels : sequence of Channel, str or mapping
        At least one.
    weights : sequence of float, optional
        How often each is drawn, in proportion; equally often if None.
    once : bool
        Draw at the first reset only.

    Examples
    --------
    >>> import numpy as np
    >>> from oldlight.envs import LinkPerEpisode
    >>> links = LinkPerEpisode(["constant:1", "constant:4"], weights=[1, 3])
    >>> [links.draw(np.random.default_rng(seed)) for seed in range(3)]
    [ConstantDelay(d=4), ConstantDelay(d=4), ConstantDelay(d=4)]
    """

    def __init__(
        self,
        channels: Sequence[Channel | Mapping[str, Any] | str],
        weights: Sequence[float] | None = None,
        *,
        once: bool = False,
    ) -> None:
        if not channels:
            raise ValueError("channels is empty, expected at least one link to draw from")
        self.channels = [channel_of(channel) for channel in channels]
        given = np.ones(len(channels)) if weights is None else checks.finite_array("weights", list(weights), ("i",))
        if given.shape != (len(channels),) or bool((given < 0).any()) or not given.sum() > 0:
            raise ValueError(
                f"weights is {weights!r}, expected a number ≥ 0 for each of the {len(channels)} channels, and not all of them 0"
            )
        self.weights, self.once = given / given.sum(), bool(once)

    def draw(self, rng: np.random.Generator) -> Channel:
        """The link of an episode."""
        return self.channels[self.number(rng)]

    def number(self, rng: np.random.Generator) -> int:
        """Which of the channels it is."""
        return int(rng.choice(len(self.channels), p=self.weights))

    def to_data(self) -> dict[str, Any]:
        """As plain JSON values, which `drawn_link` reads back."""
        return {
            "links": [channel_data(channel) for channel in self.channels],
            "weights": self.weights.tolist(),
            "once": self.once,
        }

    def __repr__(self) -> str:
        shares = ", ".join(f"{p:.3g}: {channel!r}" for p, channel in zip(self.weights, self.channels, strict=True))
        return f"LinkPerEpisode({shares})"


def drawn_link(given: Any) -> LinkPerEpisode | None:
    """The links to draw from, if `given` is some: an object, text with "|", or data with "links"; else None."""
    if isinstance(given, LinkPerEpisode):
        return given
    if isinstance(given, str) and "|" in given:
        return LinkPerEpisode([part.strip() for part in given.split("|")])
    if isinstance(given, Mapping) and "links" in given:
        return LinkPerEpisode(given["links"], given.get("weights"), once=bool(given.get("once", False)))
    return None
