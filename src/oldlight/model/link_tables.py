"""A policy of nodes as arrays: what a controller reads, and what a file holds.

The tables are those of `oldlight.model.age_layers`: a block of time h belongs to a node and a queue of L actions (ROOT: nothing has
been seen yet and h < D). Its actions stand at `offset`, entry s·A^L + code, where the state of step h − L is known; at `blind`, entry
code, where only its law is. Where the plan was made more precise for some laws, `beliefs` has them with their actions. A is the
number of actions that differ; `number` says which of them each action is, `kept` which action stands for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, files
from oldlight.arrays import Floats, Ints
from oldlight.model.age_layers import ROOT as ROOT
from oldlight.model.channels.automaton import ChannelAutomaton, News
from oldlight.model.held_steps import HeldSteps

SAME = 1e-9  # laws this close are one: the plan's own differ by rounding from those that are met


@dataclass(frozen=True, eq=False)
class LinkTables:
    """See the module's text.

    sizes: (depth D, number of nodes). blocks[b]: (h, node, L or ROOT, offset, blind), −1 where a block has no blind actions; prior[b]: how
    likely it is that the block is met at its time. steps: the transitions of the A different actions, initial[s]: to count laws along. beliefs[g]: (block, code, action, first place in `support` and `mass`), and one row more for the end.
    ticks[i]: (node, age, next node), the start being the node after the last; news[i]: (node, next node, first place in `said`), one row
    more for the end; said: ages that arrive, and −1 − age for those that are announced as lost.
    """

    sizes: Ints
    number: Ints
    kept: Ints
    blocks: Ints
    prior: Floats
    actions: NDArray[Any]
    blind: NDArray[Any]
    steps: HeldSteps
    initial: Floats
    beliefs: Ints
    support: Ints
    mass: Floats
    ticks: Ints
    news: Ints
    said: Ints

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by the names that a file gives them."""
        held = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "steps"}
        return {f"link_{name}": array for name, array in (held | self.steps.to_arrays()).items()}

    @classmethod
    def from_arrays(cls, held: files.Arrays, H: int, S: int, A: int) -> LinkTables:
        """What `to_arrays` wrote, out of a file that is open; `parts` says whether it fits together."""

        def ints(name: str, *shape: int | None) -> Ints:
            return held.array(f"link_{name}", "iu", shape).astype(np.int64)

        def floats(name: str, *shape: int | None) -> Floats:
            return held.array(f"link_{name}", "f", shape)

        kept = ints("kept", None)
        return cls(
            ints("sizes", 2), ints("number", A), kept, ints("blocks", None, 5), floats("prior", None),
            held.array("link_actions", "iu", (None,)), held.array("link_blind", "iu", (None,)),
            HeldSteps.read(held, "link_", (S, len(kept)), (1, H)), floats("initial", S), ints("beliefs", None, 4), ints("support", None),
            floats("mass", None), ints("ticks", None, 3), ints("news", None, 3), ints("said", None),
        )  # fmt: skip

    def parts(self, H: int, S: int, A: int) -> Iterator[tuple[str, bool]]:
        """The arrays by name, and whether each fits those before it."""
        (D, N), K = self.sizes.tolist(), len(self.kept)
        yield "link_sizes", 0 <= D < H and N >= 1
        yield "link_kept", K >= 1 and checks.within(self.kept, 0, A)
        yield "link_number", checks.within(self.number, 0, K)
        h, node, length, offset, blind = self.blocks.T
        yield (
            "link_blocks",
            len(h) > 0 and checks.within(h, 0, H) and checks.within(node, 0, N) and checks.within(length, ROOT, D + 1),
        )
        yield "link_blocks", set(range(H)) == set(h.tolist()) and bool((np.where(length == ROOT, h, length) <= h).all())
        with np.errstate(over="ignore"):
            codes = float(K) ** np.where(length == ROOT, h, length)
        yield "link_blocks", bool(((offset >= 0) & (offset + S * codes <= len(self.actions))).all())
        yield "link_blocks", bool(((blind + codes <= len(self.blind)) & (blind >= -1)).all())
        yield "link_blocks", bool((blind[length == ROOT] >= 0).all())
        yield (
            "link_prior",
            len(self.prior) == len(h) and bool((self.prior >= 0).all() and (self.prior <= 1 + 1e-6).all()),
        )
        yield "link_actions", checks.within(self.actions, 0, K)
        yield "link_blind", checks.within(self.blind, 0, K)
        with np.errstate(over="ignore", invalid="ignore"):
            whole = float(self.initial.sum())
        yield "link_initial", bool((self.initial >= 0).all() and abs(whole - 1) <= checks.SUM_TOLERANCE)
        yield from self._laws(len(h), K, S)
        yield from self._links(N)

    def _laws(self, blocks: int, K: int, S: int) -> Iterator[tuple[str, bool]]:
        yield "link_beliefs", len(self.beliefs) >= 1 and _rising(self.beliefs[:, 3], len(self.support))
        block, _, action, _ = self.beliefs[:-1].T
        yield "link_beliefs", checks.within(block, 0, blocks) and checks.within(action, 0, K)
        yield "link_support", checks.within(self.support, 0, S)
        yield "link_mass", len(self.mass) == len(self.support) and bool(np.isfinite(self.mass).all())

    def _links(self, N: int) -> Iterator[tuple[str, bool]]:
        node, age, target = self.ticks.T
        yield "link_ticks", checks.within(node, 0, N + 1) and checks.within(target, 0, N) and bool((age >= -1).all())
        yield "link_news", len(self.news) >= 1 and _rising(self.news[:, 2], len(self.said))
        yield "link_news", checks.within(self.news[:-1, 0], 0, N + 1) and checks.within(self.news[:-1, 1], 0, N)


def link_arrays(automaton: ChannelAutomaton) -> dict[str, Ints]:
    """ticks, news and said of `LinkTables`; of several ticks with one age the most likely is kept."""
    N = len(automaton.nodes)
    ticks: dict[tuple[int, int], tuple[float, int]] = {}
    news: list[tuple[int, int, int]] = []
    said: list[int] = []
    for n in range(N + 1):
        for p, target, age in automaton.row(n):
            ticks[n, age] = max(ticks.get((n, age), (-1.0, 0)), (p, target))
        for heard, (_, target, _) in automaton.news(n).items():
            news.append((n, target, len(said)))
            said += [*heard.arrived, *(-1 - age for age in heard.lost)]
    news.append((0, 0, len(said)))
    rows = [(n, age, target) for (n, age), (_, target) in ticks.items()]
    return {"ticks": np.array(rows), "news": np.array(news), "said": np.array(said, dtype=np.int64)}


def heard_of(said: list[int]) -> News:
    """What `LinkTables.said` holds for one tick."""
    return News(tuple(x for x in said if x >= 0), tuple(-1 - x for x in said if x < 0))


def _rising(first: Ints, end: int) -> bool:
    """Do these places begin at 0, never fall, and end at `end`?"""
    return bool(first[0] == 0 and first[-1] == end and (np.diff(first) >= 0).all())
