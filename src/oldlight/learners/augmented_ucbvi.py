"""UCBVI on the augmented table: what one gets by calling the information state a state and learning it as a black box.

The table has one cell per information state τ_h = (t, s_t, queue a_t..a_{h−1}, δ), the root while nothing has been
seen, and after the last action one per (s_t, what is left of the queue): the past-reward model with 2H steps
(`oldlight.planning.delay`). Steps t and times h are 0..H−1. For each episode:

  1. play the greedy policy of the last plan;
  2. count N_h(τ, a, τ'): τ' is the arrival of some s_{t+1}, or no arrival. That s_{t+1} depends on (s_t, a_t) alone,
     and not on the rest of the queue, is what this learner does not know: it pays for S·A^d cells;
  3. p̂ = N(τ, a, τ')/N(τ, a), with the bonus  b = c·H·√(ι/N_h(τ, a)),  ι = log(S·A·H·K/γ);
  4. from the last time to the first,

       X_h(τ, a) = min( M_τ, 1{δ=0}·r_t(s_t, head) + b + Σ_τ' p̂(τ'|τ, a)·U_{h+1}(τ') ),   U_h(τ) = max_a X_h(τ, a),
       G(s, q1..qj) = min( M, r_{H−j}(s, q1) + b + Σ_s' p̂(s'|s, q1..qj)·G(s', q2..qj) ),  G(s, q1) = r_{H−1}(s, q1).

     At the last time X(τ, a) is G of the queue with a at its end, less the reward of step t if δ > 0, which is then
     behind. The head is the oldest action of the queue, or a itself if the queue is empty. M_τ = Σ_{i ≥ t} max r_i
     (from t + 1 on if δ > 0) is what can still be earned, and what a pair is worth that was never met.

Only cells that were met take any work, and of those only the ones whose counts or successors' values have changed
since the last plan: the others would come out the same.

Rewards are known, and zero before step 0. Where nothing has to be learned there is no bonus: at the last step of all,
and where the support of the delay law says that nothing can arrive yet. Ties (closer than 1e-12) are broken at random
by the run's generator, whenever a cell is computed. A cell that was not met keeps a draw from the start, and a cell
that was not computed again its last one: nobody has acted on it since, so that has the same law as a fresh draw.

Options
    bonus      "hoeffding" (above) or "bernstein": b = c·( √(2·Var_p̂(U)·ι/N) + H·ι/(3N) ).
    planning   "full": after every episode; "doubling": only when some N(τ, a) has come to a power of two.
    pooled     for stationary transitions: one count for the same (s, queue, δ, a) at all times from which on the delay
               law no longer changes, steps before 0 included; and for the queues that are left after the last action
               one count for all steps t, provided that s_{t+1} was not yet seen when the last of these actions was
               chosen (otherwise the action tells of it).

**The default c** was chosen by docs/scripts/tune.py, like that of every learner here; docs/learning.md has the figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.checks import TooLarge
from oldlight.information import Information
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.protocol import Episode, Setting
from oldlight.machine import default_limit, human
from oldlight.planning.delay import action_type
from oldlight.policies import TablePolicy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class AugmentedTable:
    """The cells of the augmented table that were met, the policy over the whole layout, and an episode as moves.

    The arrays are those of `learners.augmented_kernels`, which says what each holds.
    """

    def __init__(self, setting: Setting, rng: np.random.Generator, pooled: bool, who: str) -> None:
        from oldlight.learners import augmented_kernels as kernels

        layout = setting.layout
        if layout is None:
            raise ValueError(f"{setting.channel!r} loses observations; {who} has a table for delay alone")
        if pooled and not setting.stationary:
            raise ValueError(f"{who}: pooled=True needs transitions that do not change from step to step")
        rewards_in_unit_interval(setting)
        self.setting, self.layout, self.pooled, self.rng = setting, layout, pooled, rng
        H, S, A, lead = setting.horizon, setting.n_states, setting.n_actions, setting.lead
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
                f"information states and needs {human(need)}; the limit is {human(limit)}. DelayedUCBVI counts in the "
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
        self.rules = kernels.Rules(rewards, most, pending, layout.offset, layout.root, pooled)
        self.weights = _start_weights(setting)
        self.moves = np.zeros(((left - 1) * (H + lead) + H, 3), dtype=np.int64)
        self.path = np.zeros(H, dtype=np.int64)
        self.actions = rng.integers(A, size=layout.size, dtype=action_type(A).type)
        for h, a in enumerate(setting.pending[:H]):
            self.actions[layout.root[h] : layout.root[h] + A**h] = a
        self.room = 0

    def walk(self, episode: Episode) -> int:
        """Fill `moves` and `path` from an episode; returns the number of moves. Call `make_room` first."""
        from oldlight.learners import augmented_kernels as kernels

        found: int = kernels.walk(
            episode.states, episode.actions, episode.arrivals, self.setting.lead, self.pooled, self.shape, self.cells(),
            self.moves, self.path,
        )  # fmt: skip
        return found

    def cells(self) -> Any:
        from oldlight.learners import augmented_kernels as kernels

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
    """How likely the root is at time 0, then each first state."""
    at_once = 1.0 if setting.lead else float(setting.law.first[0])
    return np.concatenate([[1.0 - at_once], at_once * setting.initial])


def grown(array: NDArray[Any], rows: int, fill: float = 0) -> NDArray[Any]:
    """A longer copy; new rows hold `fill`."""
    longer = np.full((rows, *array.shape[1:]), fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


_OUTCOMES = ("owner", "follow", "times", "link", "back")


class AugmentedUCBVI:
    """UCBVI on the augmented table; see the module's text for the options."""

    def __init__(
        self, c: float | None = None, *, pooled: bool = False, bonus: str = "hoeffding", planning: str = "full"
    ) -> None:
        self.bonus = checks.one_of("bonus", bonus, ("hoeffding", "bernstein"))
        self.c = checks.real("c", 0.01 if c is None else c)
        if self.c < 0:
            raise ValueError(f"c is {self.c:.12g}, expected a number ≥ 0")
        self.pooled = bool(pooled)
        self.planning = checks.one_of("planning", planning, ("full", "doubling"))

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting = setting
        self.table = AugmentedTable(setting, rng, self.pooled, type(self).__name__)
        H, A = setting.horizon, setting.n_actions
        self.visits, self.first = np.zeros((2, 0, A), dtype=np.int64)
        self.into = np.zeros(0, dtype=np.int64)
        self.owner, self.follow, self.times, self.link, self.back = np.zeros((5, 0), dtype=np.int64)
        self.outcomes = np.zeros(1, dtype=np.int64)  # how many
        rows = H + 1 if self.pooled else 1
        self.values = np.zeros((rows, 0))
        self.after, self.queued = np.zeros((rows, 0), dtype=np.int64), np.zeros((rows, 0), dtype=np.bool_)
        self.head = np.full(H + len(self.table.shape.rest), -1, dtype=np.int64)
        self.estimate = float(self.table.rules.remaining[0])
        self._policy = self.table.policy()
        self._make_room()

    # -- the three parts of an episode ------------------------------------------------------------------------------

    def policy(self) -> TablePolicy:
        return self._policy

    def act(self, info: Information) -> int:
        return self._policy.action(info)

    def see(self, episode: Episode) -> None:
        from oldlight.learners import augmented_kernels as kernels

        self._make_room()
        table = self.table
        n = table.walk(episode)
        doubled = kernels.count(
            table.moves, n, table.path, table.shape, table.cells(), self._counts(), self._work()
        )  # fmt: skip
        if doubled or self.planning == "full":
            self._plan()

    def _plan(self) -> None:
        from oldlight.learners import augmented_kernels as kernels

        table, setting = self.table, self.setting
        self.estimate = kernels.plan(
            table.shape, table.cells(), self._counts(), table.rules, self._work(), self.c, setting.log_term,
            self.bonus == "bernstein", table.weights, self.values, table.rng, table.actions,
        )  # fmt: skip
        self._policy = table.policy()

    def _counts(self) -> Any:
        from oldlight.learners import augmented_kernels as kernels

        return kernels.Counts(
            self.visits, self.first, self.into, self.owner, self.follow, self.times, self.link, self.back, self.outcomes
        )

    def _work(self) -> Any:
        from oldlight.learners import augmented_kernels as kernels

        return kernels.Work(self.head, self.after, self.queued)

    def _make_room(self) -> None:
        if self.table.make_room():
            self._lengthen_cells()
        need = int(self.outcomes[0]) + len(self.table.moves)
        if need > len(self.follow):
            for name in _OUTCOMES:
                setattr(self, name, grown(getattr(self, name), max(1024, 2 * need)))

    def _lengthen_cells(self) -> None:
        room = self.table.room
        self.visits, self.first, self.into = (
            grown(self.visits, room),
            grown(self.first, room, -1),
            grown(self.into, room, -1),
        )
        self.values = np.stack([grown(x, room, np.nan) for x in self.values])
        self.after, self.queued = (np.stack([grown(x, room) for x in rows]) for rows in (self.after, self.queued))

    # -- what was counted ------------------------------------------------------------------------------------------

    def visited(self, info: Information, a: int) -> int:
        """N(τ, a), over all times when pooled. (At the last time what is left of the queue is counted, not τ.)"""
        i = self.table.cell(info)
        return 0 if i < 0 else int(self.visits[i, a])

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        n, k = int(self.table.met[0]), int(self.outcomes[0])
        cells = {name: getattr(self, name)[:n] for name in ("visits", "first", "into")}
        rows = {name: getattr(self, name)[:, :n] for name in ("values", "after", "queued")}
        outcomes = {name: getattr(self, name)[:k] for name in _OUTCOMES}
        return self.table.state() | cells | rows | outcomes | {"head": self.head, "estimate": np.array(self.estimate)}

    def restore(self, state: dict[str, Any]) -> None:
        self.table.restore(state)
        for name in ("visits", "first", "into", "values", "after", "queued", "head", *_OUTCOMES):
            setattr(self, name, np.array(state[name]))
        self._lengthen_cells()
        self.outcomes[0] = len(self.follow)
        self.estimate = float(state["estimate"])
        self._policy = self.table.policy()
