"""The arrays that a `Controller` reads, in one file without pickle. `oldlight.control.policy_arrays` makes them of a problem and a policy.

A delayed problem's policy is the flat table of `oldlight.model.information.Layout`; a lossy one's is the table of sequences of
`oldlight.model.policies.BlackoutPolicy`. Beside it stand the sizes, what was under way at the start, and for the case that the link
does what the plan did not expect, the most likely successor of each state and action and the most likely first state.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, files
from oldlight.arrays import Ints
from oldlight.model.link_tables import LinkTables
from oldlight.model.table_places import RENAMED_MEMBER, places

if TYPE_CHECKING:
    from oldlight.model.channels.automaton import ChannelAutomaton
    from oldlight.model.stationary_policy import StationaryPolicy

KIND, VERSION = "oldlight.Controller", 1
ACTIONS, PROBABILITIES, SEQUENCES, NODES, ASKED = "actions", "action_probabilities", "sequences", "nodes", "asked"
STATIONARY = "stationary"


@dataclass(frozen=True, eq=False)
class Tables:
    """What a controller needs of a plan. `h` is the step that an action acts on, as in `oldlight.model.information`.

    kind: "actions" (table[index]), "action_probabilities" (table[index, a]), "sequences" (table[row, s, q, j]), "nodes" (`link` has the tables), or
    "asked" (no table; automaton: of the link, if the policy is asked with its nodes).
    offset[h, m, δ], root[h]: where the blocks of a table begin, −1 where there is none. late: the constant delay of sequences.
    likely[h, s, a]: the most likely next state (one h if it does not matter); first_state: the most likely one of step −warmup.
    hold: where the plan's clock stands still, −1 for an episode that ends at H; why_it_ends is the reason.
    """

    kind: str
    horizon: int
    n_states: int
    n_actions: int
    warmup: int
    pending: tuple[int, ...]
    table: NDArray[Any]
    offset: Ints
    root: Ints
    late: int
    likely: NDArray[Any]
    first_state: int
    hold: int = -1
    discount: float = 1.0
    loss_bound: float = 0.0
    why_it_ends: str = ""
    link: LinkTables | None = None
    automaton: ChannelAutomaton | None = None
    stationary: StationaryPolicy | None = None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one npz file."""
        if self.kind == ASKED:
            raise ValueError(
                "a policy written in Python cannot be saved with a controller; make a table of it first: "
                "oldlight.model.policies.tabulate(problem, policy) under delay, blackout_of(problem, policy) under loss"
            )
        numbers = [
            VERSION,
            self.horizon,
            self.n_states,
            self.n_actions,
            self.warmup,
            self.late,
            self.first_state,
            self.hold,
        ]
        return checks.save_arrays(
            path,
            kind=np.array(KIND),
            policy=np.array(self.kind),
            numbers=np.array(numbers),
            pending=np.array(self.pending, dtype=np.int64),
            bound=np.array([self.discount, self.loss_bound]),
            why_it_ends=np.array(self.why_it_ends),
            table=self.table,
            offset=self.offset,
            root=self.root,
            likely=self.likely,
            **({} if self.link is None else self.link.to_arrays()),
            **({} if self.stationary is None else self.stationary.to_arrays("stationary_")),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tables:
        """Read what `save` wrote; numpy is all that it needs."""
        with files.arrays_in(path) as held:
            kind = held.words("kind", 100)
            if kind != KIND:
                policy = kind in ("oldlight.TablePolicy", "oldlight.BlackoutPolicy")
                out = f"; make one of this policy and its problem: Controller(problem, load_policy({str(path)!r})).save(FILE)"
                out += ", or plan again with oldlight plan --controller FILE"
                raise files.UnreadableFile(
                    f"{path}: kind is {kind!r}, expected a saved oldlight Controller{out if policy else ''}"
                )
            version, H, S, A, warmup, late, first_state, hold = held.numbers("numbers", 8)
            if version != VERSION:
                raise files.UnreadableFile(f"{path}: version is {version}; this oldlight reads version {VERSION}")
            u, bound = (float(x) for x in held.array("bound", "f", (2,)))
            what = held.words("policy", 100)
            what = PROBABILITIES if what == RENAMED_MEMBER else what
            checks.one_of("policy", what, (ACTIONS, PROBABILITIES, SEQUENCES, NODES, STATIONARY))
            shape = {ACTIONS: (None,), PROBABILITIES: (None, A), SEQUENCES: (None, S, None, H)}.get(what, (0,))
            blocks: tuple[files.Shape, ...] = (
                ((0,), (0,)) if what in (SEQUENCES, NODES, STATIONARY) else ((None, None, None), (None,))
            )
            found = cls(
                kind=what, horizon=H, n_states=S, n_actions=A, warmup=warmup,
                pending=tuple(held.array("pending", "iu", (None,)).tolist()),
                table=held.array("table", "f" if what == PROBABILITIES else "iu", shape),
                offset=held.array("offset", "iu", blocks[0]).astype(np.int64),
                root=held.array("root", "iu", blocks[1]).astype(np.int64),
                late=late, likely=held.array("likely", "iu", (1, S, A), (H, S, A)), first_state=first_state, hold=hold,
                discount=u, loss_bound=bound, why_it_ends=held.words("why_it_ends"),
                link=LinkTables.from_arrays(held, H, S, A) if what == NODES else None,
                stationary=_stationary_in(held) if what == STATIONARY else None,
            )  # fmt: skip
            found._check()
            return found

    def _check(self) -> None:
        """Refuse arrays that do not fit together: a controller must not find out while it runs."""
        for name, good in self._parts():
            if not good:
                raise ValueError(f"its arrays do not fit together: {name!r} is wrong")

    def _parts(self) -> Iterator[tuple[str, bool]]:
        """The parts of a file by name, and whether each fits those before it."""
        H, S, A, table = self.horizon, self.n_states, self.n_actions, self.table
        yield "numbers", min(H, S, A) >= 1 and self.warmup >= 0 and 0 <= self.late <= H and -1 <= self.hold < H
        yield "numbers", 0 <= self.first_state < S
        yield "pending", all(0 <= a < A for a in self.pending)
        yield "likely", checks.within(self.likely, 0, S)
        if self.stationary is not None:
            yield "numbers", self.hold == 0 and (self.stationary.n_states, self.stationary.n_actions) == (S, A)
            return
        if self.link is not None:
            yield "numbers", self.warmup == 0 and self.late == 0 and self.hold == -1
            yield from self.link.parts(H, S, A)
            return
        yield "numbers", self.warmup <= (self.late if self.kind == SEQUENCES else self.offset.shape[1] - 1)
        yield "bound", 0 <= self.discount <= 1 and 0 <= self.loss_bound < np.inf
        if self.kind == PROBABILITIES:
            sums = table.sum(axis=1)
            yield "table", bool((table >= 0).all() and (np.abs(sums - 1) <= checks.SUM_TOLERANCE).all())
        else:
            yield "table", checks.within(table, 0, A)
        if self.kind == SEQUENCES:
            rows, states, queues, steps = table.shape
            yield "table", (rows, states, steps) == (H + 1 if self.hold < 0 else 2, S, H)
            yield "table", checks.is_power(queues, A, self.late)
            return
        times = H if self.hold < 0 else self.hold + 1
        yield "offset", len(self.offset) == times
        yield "root", len(self.root) == times
        h, m = np.arange(times), np.arange(self.offset.shape[1])
        yield from places(self.offset, self.root, S, A, len(table))
        has_block = np.any((self.offset >= 0).any(axis=2) & (m <= h[:, None] + self.warmup), axis=1)
        has_place = has_block | (self.root >= 0)
        yield "offset", bool(has_place[len(self.pending) :].all() and (self.hold < 0 or has_block[-1]))


def _stationary_in(held: files.Arrays) -> StationaryPolicy:
    """The plan of a process that runs for ever, which brings the model of its link along."""
    from oldlight.model.stationary_policy import StationaryPolicy

    return StationaryPolicy.read(held, "stationary_")
