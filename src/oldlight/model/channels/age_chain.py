"""A Markov chain of the age: what can be counted in any recording of a link, tick by tick, whatever its cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, SILENCE, ChannelAutomaton, News, Tick
from oldlight.model.channels.messages import AgeLink
from oldlight.model.channels.pmfs import drawn, pmf_of, written

SHOWN = 12  # ages of `first` that are written out


class AgeChain(AgeLink):
    """The age of the newest visible observation is a Markov chain.

    Parameters
    ----------
    kernel : array_like, shape (M + 1, ≥ M + 2), or list of rows of growing length
        `kernel[m][k]` = P(next age = k) for k = 0..m, `kernel[m][m + 1]` = P(nothing newer), zeros after it. Beyond the last row the ages 0..M
        keep their probabilities, and the last entry is that of nothing newer.
    first : array_like or {age: probability}, optional
        pmf of the link's age at time 0. Age 0, the default: s_0 is seen at once. Age m ≥ 1: nothing of this episode is seen, and the
        newest message so far was sent m steps ago.

    Examples
    --------
    >>> from oldlight import AgeChain
    >>> link = AgeChain([[0.8, 0.2], [0.5, 0.3, 0.2]])
    >>> link.automaton(horizon=10)
    ChannelAutomaton(2 nodes, 5 ticks, longest delay 1, horizon 10)
    """

    begins_before = True

    def __init__(
        self, kernel: ArrayLike | Sequence[Sequence[float]], *, first: ArrayLike | Mapping[int, float] | None = None
    ) -> None:
        rows: list[Floats] = []
        for m, row in enumerate(kernel):  # type: ignore[arg-type]
            p = checks.probability_rows(f"AgeChain: kernel[m={m}]", row, ("k",))
            if p[m + 2 :].any() or len(p) < m + 2:
                raise ValueError(
                    f"AgeChain: kernel[m={m}] has {len(p)} entries, the last positive one at {int(np.flatnonzero(p)[-1])}; expected "
                    f"probabilities of the ages 0..{m} and of nothing newer (entry {m + 1})"
                )
            rows.append(checks.frozen(p[: m + 2]))
        if not rows:
            raise ValueError(
                "AgeChain: kernel has no rows; expected at least that of age 0: [P(seen), P(nothing newer)]"
            )
        self.kernel = tuple(rows)
        self.first = pmf_of("AgeChain: first", [1.0] if first is None else first)

    def automaton(self, horizon: int) -> ChannelAutomaton:
        M = len(self.kernel) - 1

        def step(node: Any) -> list[Tick]:
            # (h, m): at time h, nothing of the episode is seen
            h, m = node if isinstance(node, tuple) else (None, node)
            row = self.kernel[min(m, M)].tolist()
            out: list[Tick] = []
            for k, p in [*enumerate(row[:-1]), (m + 1, row[-1])]:
                if h is None:
                    out.append((p, min(k, M), NOTHING_NEWER if k == m + 1 or k > M else k))
                else:  # a message of before the episode is news of the link only
                    heard = SILENCE if k == m + 1 else News((k,))
                    waiting = (h + 1, k) if h + 1 < M else M  # from time M on every message is of this episode
                    out.append((p, waiting, NOTHING_NEWER, heard) if k > h + 1 else (p, min(k, M), k, heard))
            return out

        first: list[Tick] = [
            (float(p), (0, m) if m else 0, NOTHING_NEWER if m else 0, News((m,))) for m, p in enumerate(self.first)
        ]
        return ChannelAutomaton.explore(first, step, horizon)

    @property
    def longest(self) -> int:
        return len(self.kernel) - 1

    @property
    def oldest(self) -> int | None:
        return None if self.kernel[-1][-1] else self.longest

    def shown(self, h: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """The link's state is the age, that of a message of before the episode while it is more than h."""
        wide = np.zeros((len(self.kernel), len(self.kernel) + 1))
        for m, row in enumerate(self.kernel):
            wide[m, : m + 1], wide[m, -1] = row[:-1], row[-1]
        k = np.where(h > 0, drawn(wide[np.minimum(link, self.longest)], u[0]), drawn(self.first, u[0]))
        nothing = (h > 0) & (k == len(self.kernel))
        return np.where(nothing, NOTHING_NEWER, k), np.where(nothing, link + 1, k)

    def _parameters(self) -> tuple[Any, ...]:
        return (*(row.tobytes() for row in self.kernel), self.first.tobytes())

    def _written(self) -> str:
        rows, ages = [np.round(row, 6).tolist() for row in self.kernel], np.flatnonzero(self.first)
        first = written(self.first) if len(ages) <= SHOWN else f"<ages {ages[0]}..{ages[-1]}>"
        return f"{rows if len(rows) <= 4 else f'<{len(rows)} rows>'}, first={first}"
