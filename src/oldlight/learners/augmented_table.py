"""The augmented table that the learners to beat fill: its cells, the policy over the whole layout, and an episode as moves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints, action_type
from oldlight.checks import TooLarge
from oldlight.learners.base import Learner, Setting
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.episode_blocks import EpisodeBlock, played_block, room_for
from oldlight.machine import default_limit, format_bytes
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.policies import TablePolicy

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World


class AugmentedTable:
    """The cells of the augmented table that were met, the policy over the whole layout, and an episode as moves.

    The arrays are those of `kernels.augmented_ucbvi`, which describes each.
    """

    def __init__(self, setting: Setting, rng: np.random.Generator, pooled: bool, who: str) -> None:
        from oldlight.kernels import augmented_ucbvi as kernels

        layout = setting.layout
        if layout is None:
            raise ValueError(f"{setting.channel!r} loses observations; {who} has a table for delay alone")
        if pooled and not setting.stationary:
            raise ValueError(f"{who}: pooled=True needs transitions that do not change from step to step")
        rewards_in_unit_interval(setting)
        self.setting, self.layout, self.pooled, self.rng = setting, layout, pooled, rng
        H, S, A, warmup = setting.horizon, setting.n_states, setting.n_actions, setting.warmup
        left = max([block.m + 1 for block in layout.blocks(H - 1)] + [H if layout.root[H - 1] >= 0 else 1])
        groups = _Groups(S, A)
        node = np.full_like(layout.offset, -1)
        same_from = _law_settles(setting)
        for h, m, wait in np.argwhere(layout.offset >= 0).tolist():
            key = (min(max(h - m, 0), same_from), m, wait) if pooled else (h, m, wait)
            node[h, m, wait] = groups.number(kernels.NODE, key, m, wait, S)
        root = np.full(H, -1, dtype=np.int64)
        for h in np.flatnonzero(layout.root >= 0).tolist():
            root[h] = groups.number(kernels.ROOT, (h,), h, 0, 1)
        rest = np.full(left + 1, -1, dtype=np.int64)
        for j in range(1, left + 1):
            rest[j] = groups.number(kernels.REST, (j,), j, 0, S)
        item = action_type(A).itemsize
        need, limit = 4 * groups.size + 2 * item * layout.size, default_limit()
        if need > limit:
            raise TooLarge(
                f"{who}: the augmented table of {setting.channel!r} on S={S}, A={A}, H={H} has {layout.size:,} "
                f"information states and needs {format_bytes(need)}; the limit is {format_bytes(limit)}. DelayedUCBVI counts in the "
                "original process instead"
            )
        powers = np.array([A**m for m in range(max(left, 1) + 1)], dtype=np.int64)
        base, length, kind, wait_of = groups.arrays()
        self.shape = kernels.Shape(node, root, rest, base, length, kind, wait_of, powers)
        self.number = np.full(groups.size, -1, dtype=np.int32)
        self.newest = np.full(groups.count, -1, dtype=np.int64)
        self.met = np.zeros(1, dtype=np.int64)  # how many cells
        self.group, self.local, self.sibling = (np.zeros(0, dtype=np.int64) for _ in range(3))
        most = np.append(np.cumsum(setting.rewards.max(axis=(1, 2))[::-1])[::-1], 0.0)
        pending = np.array(setting.pending[:H], dtype=np.int64)
        rewards = np.ascontiguousarray(setting.rewards)
        self.rules = kernels.Rules(
            rewards, most, pending, layout.offset, layout.root, _start_weights(setting), warmup, pooled
        )
        self.moves = np.zeros(((left - 1) * (H + warmup) + H, 3), dtype=np.int64)
        self.path = np.zeros(H, dtype=np.int64)
        self.actions = rng.integers(A, size=layout.size, dtype=action_type(A).type)
        for h, a in enumerate(setting.pending[:H]):
            self.actions[layout.root[h] : layout.root[h] + A**h] = a
        self.room = 0

    def walk(self, episode: Episode) -> int:
        """Fill `moves` and `path` from an episode; returns the number of moves. Call `make_room` first."""
        from oldlight.kernels import augmented_ucbvi as kernels

        found: int = kernels.walk(
            episode.states, episode.actions, episode.arrivals, self.rules, self.shape, self.cells(), self.moves, self.path
        )  # fmt: skip
        return found

    def cells(self) -> Any:
        from oldlight.kernels import augmented_ucbvi as kernels

        return kernels.Cells(self.number, self.group, self.local, self.sibling, self.newest, self.met)

    def make_room(self) -> bool:
        """Have room for all cells that one more episode can meet. True if that took longer arrays: then whoever else
        keeps arrays by cell must lengthen them to `room` too."""
        if self.met[0] + 2 * len(self.moves) + 2 <= self.room:
            return False
        self.room = max(1024, 2 * self.room, int(self.met[0]) + 2 * len(self.moves) + 2)
        self.group, self.local, self.sibling = (grown(x, self.room) for x in (self.group, self.local, self.sibling))
        return True

    def policy(self) -> TablePolicy:
        """The policy as an object of its own."""
        return TablePolicy.trusted(self.layout, self.actions.copy())

    def cell(self, info: Information) -> int:
        """The number of the cell of an information state, −1 if it was not met."""
        local = self.layout.index(info)
        if info.t is None:
            g, begin = int(self.shape.root[info.h]), int(self.layout.root[info.h])
        else:
            at = (info.h, len(info.queue), info.waited)
            g, begin = int(self.shape.node[at]), int(self.layout.offset[at])
        return int(self.number[self.shape.base[g] + local - begin])

    def state(self) -> dict[str, Any]:
        n = int(self.met[0])
        return {"actions": self.actions, "group": self.group[:n], "local": self.local[:n]}

    def restore(self, state: dict[str, Any]) -> None:
        self.actions[:] = state["actions"]
        n = len(state["group"])
        self.met[0] = n
        self.make_room()
        self.group[:n], self.local[:n] = state["group"], state["local"]
        self.number[self.shape.base[self.group[:n]] + self.local[:n]] = np.arange(n)
        for i, g in enumerate(self.group[:n].tolist()):
            self.sibling[i] = self.newest[g]
            self.newest[g] = i


class AugmentedLearner(Learner):
    """What the learners on this table have in common: they act by a copy of its policy, count visits of its cells, and play blocks of episodes until they
    need more room (`_make_room`) for cells. A subclass plays one part of a block by `_play_some`."""

    table: AugmentedTable
    visits: Ints  # [cell, a]
    _policy: TablePolicy

    def _play_some(self, front: tuple[Any, ...], block: Any, going: Any) -> Any:
        """Episodes of a block from `going` on: how far it came."""
        raise NotImplementedError

    def _make_room(self) -> None:
        """For what one more episode can meet."""
        raise NotImplementedError

    def _block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels.augmented_blocks import Going, Table

        table = self.table
        block = room_for(draws, first, wanted, len(table.actions), table.actions.dtype)
        rule, played = world.player(TablePolicy.trusted(table.layout, table.actions)).rule(), world.played(1)
        going = Going(0, float(self.estimate), 0, False)
        while going.done < len(wanted):
            self._make_room()
            parts = Table(table.shape, table.cells(), table.rules, table.moves, table.path)
            going = self._play_some((world.arrays, rule, played, parts), block, going)
        self.estimate = going.estimate
        found = played_block(block, partial(TablePolicy.trusted, table.layout), self._policy)
        if going.plans:
            self._policy = table.policy()
        return found

    def policy(self) -> TablePolicy:
        return self._policy

    def act(self, info: Information) -> int:
        return self._policy.action(info)

    def visited(self, info: Information, a: int) -> int:
        """N(τ, a), over all times when pooled. (At the last time what is left of the queue is counted, not τ.)"""
        i = self.table.cell(info)
        return 0 if i < 0 else int(self.visits[i, a])


class _Groups:
    """Numbers for groups of cells: equal keys share one."""

    def __init__(self, n_states: int, n_actions: int) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.known: dict[tuple[int, ...], int] = {}
        self.rows: list[tuple[int, int, int, int]] = []  # base, length, kind, wait
        self.size = 0

    def number(self, kind: int, key: tuple[int, ...], length: int, wait: int, states: int) -> int:
        full = (kind, *key)
        if full not in self.known:
            self.known[full] = len(self.rows)
            self.rows.append((self.size, length, kind, wait))
            self.size += states * self.n_actions**length
        return self.known[full]

    @property
    def count(self) -> int:
        return len(self.rows)

    def arrays(self) -> tuple[Ints, ...]:
        table = np.array(self.rows, dtype=np.int64)
        return tuple(np.ascontiguousarray(table[:, k]) for k in range(4))


def _law_settles(setting: Setting) -> int:
    """The first step from which on the delay law no longer changes."""
    law = setting.law.interarrival
    last = len(law) - 1
    while last > 0 and np.array_equal(law[last - 1], law[-1]):
        last -= 1
    return last


def _start_weights(setting: Setting) -> Floats:
    """The probability of the root at time 0, then each first state."""
    at_once = 1.0 if setting.warmup else float(setting.law.first[0])
    return np.concatenate([[1.0 - at_once], at_once * setting.initial])


def grown(array: NDArray[Any], rows: int, fill: float = 0) -> NDArray[Any]:
    """A longer copy; new rows hold `fill`."""
    longer = np.full((rows, *array.shape[1:]), fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
