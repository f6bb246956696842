"""A policy as the arrays that a `Controller` reads, in one file without pickle.

A delayed problem's policy is the flat table of `oldlight.model.information.Layout`; a lossy one's is the table of sequences of
`oldlight.model.policies.BlackoutPolicy`. Beside it stand the sizes, what was under way at the start, and for the case that the link
does what the plan did not expect, the most likely successor of each state and action and the most likely first state.

**A discounted plan without end.** `TabularMDP.discounted` cuts an endless process with discount u off after H steps. If
transitions and link do not change with time, let V_n be the best value of n more steps, at any information state, in rewards of
the time when they begin; M = (max r − min r)/2 and V the best endless value. Adding a constant to all rewards changes no
choice, so take |r| ≤ M: then |V_{n+1} − V_n| ≤ u^n·M, and |V − V_n| ≤ u^n·M/(1−u).

The plan at time h acts best for n = H − h more steps. *Turn its clock back* whenever you like, so that n goes on to n − 1 or to
any larger number that the plan has. Then the value W of what is done differs from V_n by at most u^n·M/(1−u): with n' ≥ n − 1
the next number, the same choice stands in both, and

    |W − V_n| ≤ u·( |W' − V_n'| + |V_n' − V_{n−1}| ) ≤ u·( u^n'·M/(1−u) + (u^{n−1} − u^n')·M/(1−u) ) = u^n·M/(1−u).

Hence at a time when the plan's clock has n steps to go, acting so for ever loses at most

    u^n·(max r − min r)/(1−u)

against the best endless policy; from time 0 on that is at most twice the process's `truncation_error`. The rule here is:
- delay: the clock stands still at time `hold`, the first at which every information state of the long run has its place in the
  table (constant delay d: hold = d after a cold start, 0 after a warm one). So n = H − hold for ever.
- loss: the clock goes back to the beginning at each observation (n = H − late), and counts on through a blackout.
`loss_bound` is that number for n = H − hold. It holds for an exact plan behind the link that was planned for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, files
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.information import Layout, same_layout
from oldlight.model.link_information import PolicyOfNodes
from oldlight.model.link_tables import LinkTables
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import BlackoutPolicy, MarkovPolicy, TablePolicy, made_for_another, not_a_policy
from oldlight.model.policy_files import RENAMED_MEMBER, places
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.model.stationary_policy import StationaryPolicy
from oldlight.model.successors import likely_successors

Ints = NDArray[np.int64]
KIND, VERSION = "oldlight.Controller", 1
ACTIONS, PROBABILITIES, SEQUENCES, NODES, ASKED = "actions", "action_probabilities", "sequences", "nodes", "asked"
STATIONARY = "stationary"
ENDS_BY_NODES = "a plan made by the nodes of a link's automaton has no table whose clock could stand still"
_NONE: Ints = np.zeros(0, dtype=np.int64)


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
                link=LinkTables.from_arrays(held, S, A) if what == NODES else None,
                stationary=StationaryPolicy.read(held, "stationary_") if what == STATIONARY else None,
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
        if self.stationary is not None:
            yield "numbers", self.hold == 0 and (self.stationary.n_states, self.stationary.n_actions) == (S, A)
            yield "pending", all(0 <= a < A for a in self.pending)
            yield "likely", _all_below(self.likely, S)
            return
        if self.link is not None:
            yield "numbers", self.warmup == 0 and self.late == 0 and self.hold == -1
            yield "pending", all(0 <= a < A for a in self.pending)
            yield "likely", _all_below(self.likely, S)
            yield from self.link.parts(H, S, A)
            return
        yield "numbers", self.warmup <= (self.late if self.kind == SEQUENCES else self.offset.shape[1] - 1)
        yield "bound", 0 <= self.discount <= 1 and 0 <= self.loss_bound < np.inf
        yield "pending", all(0 <= a < A for a in self.pending)
        yield "likely", _all_below(self.likely, S)
        if self.kind == PROBABILITIES:
            sums = table.sum(axis=1)
            yield "table", bool((table >= 0).all() and (np.abs(sums - 1) <= checks.SUM_TOLERANCE).all())
        else:
            yield "table", _all_below(table, A)
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


def _all_below(values: NDArray[Any], n: int) -> bool:
    """Are all of these in 0..n−1?"""
    return bool((values >= 0).all() and (values < n).all())


def tables_of(problem: ImpairedMDP, policy: Any) -> Tables:
    """The arrays for `policy` on `problem`; refused if it was made for another problem."""
    checked_problem(problem, "Controller")
    if problem.forever:
        return _stationary(problem, policy)
    by_nodes = not problem.has_delay_law or isinstance(policy, PolicyOfNodes)
    mdp, H = problem.mdp, problem.horizon
    u = discount_of(mdp)
    hold, why = (-1, "") if u is None else standstill(problem) if not by_nodes else (-1, ENDS_BY_NODES)
    parts: dict[str, Any] = {
        "horizon": H,
        "n_states": problem.n_states,
        "n_actions": problem.n_actions,
        "warmup": problem.warmup,
        "pending": problem.pending,
        "likely": checks.frozen(likely_successors(mdp).astype(np.min_scalar_type(problem.n_states))),
        "first_state": int(problem.initial.argmax()),
        "hold": hold,
        "why_it_ends": why,
    }
    if u is not None and hold >= 0:
        span = float(np.ptp(mdp.rewards[0]))
        parts |= {"discount": u, "loss_bound": u ** (H - hold) * span / (1.0 - u)}
    if isinstance(policy, MarkovPolicy):
        raise TypeError(
            f"{policy!r} acts on the current state, which a controller does not see; plan: oldlight.solve(problem)"
        )
    if by_nodes:
        return _of_nodes(problem, policy, parts)
    if isinstance(policy, TablePolicy):
        if problem.arrival_probability is not None or not same_layout(policy.layout, Layout.of(problem)):
            raise made_for_another(policy, problem)
        kind, body = (
            (ACTIONS, policy.actions) if policy.actions is not None else (PROBABILITIES, policy.action_probabilities)
        )
        assert body is not None
        offset, root = policy.layout.offset, policy.layout.root
        if hold >= 0:
            offset, root, body = _up_to(policy.layout, body, hold)
        return Tables(kind=kind, table=body, offset=offset, root=root, late=0, **parts)
    if isinstance(policy, BlackoutPolicy):
        if not policy.fits(problem):
            raise made_for_another(policy, problem)
        table = policy.sequences if hold < 0 else np.array(policy.sequences[:2])
        return Tables(kind=SEQUENCES, table=table, offset=_NONE, root=_NONE, late=policy.late, **parts)
    if not hasattr(policy, "probabilities"):
        raise not_a_policy(policy)
    if u is not None:
        parts |= {"hold": -1, "why_it_ends": "a policy that is asked has no table whose clock could stand still"}
    return Tables(kind=ASKED, table=_NONE, offset=_NONE, root=_NONE, late=0, **parts)


def _stationary(problem: ImpairedMDP, policy: Any) -> Tables:
    """A plan of a process that runs for ever."""
    if not isinstance(policy, StationaryPolicy):
        raise TypeError(
            f"a controller of a process that runs for ever takes the plan of oldlight.solve(problem), not a {type(policy).__name__}"
        )
    if not policy.fits(problem):
        raise made_for_another(policy, problem)
    likely = likely_successors(problem.mdp).astype(np.min_scalar_type(problem.n_states))
    return Tables(
        kind=STATIONARY, horizon=1, n_states=problem.n_states, n_actions=problem.n_actions, warmup=problem.warmup,
        pending=problem.pending, table=_NONE, offset=_NONE, root=_NONE, late=0, likely=checks.frozen(likely),
        first_state=int(problem.initial.argmax()), hold=0, discount=policy.discount,
        loss_bound=max(policy.upper - policy.lower, 0.0), stationary=policy,
    )  # fmt: skip


def _of_nodes(problem: ImpairedMDP, policy: Any, parts: dict[str, Any]) -> Tables:
    """A policy that reads the nodes of the link's automaton: its tables, or the automaton to ask it by."""
    if isinstance(policy, TablePolicy | BlackoutPolicy) or (
        isinstance(policy, PolicyOfNodes) and not policy.fits(problem)
    ):
        raise made_for_another(policy, problem)
    if not hasattr(policy, "probabilities"):
        raise not_a_policy(policy)
    link = policy.as_arrays() if hasattr(policy, "as_arrays") else None
    kind, automaton = (ASKED, problem.automaton) if link is None else (NODES, None)
    return Tables(kind=kind, table=_NONE, offset=_NONE, root=_NONE, late=0, **parts, link=link, automaton=automaton)


def discount_of(mdp: TabularMDP) -> float | None:
    """u, if `mdp` is an endless discounted process cut off (`TabularMDP.discounted`), else None."""
    H, R = mdp.finite_horizon, mdp.rewards
    largest = float(np.abs(R[0]).max())
    if mdp.truncation_error <= 0 or not mdp.stationary_transitions or largest == 0:
        return None
    low, high = 0.0, 1.0  # u^H·max|r|/(1−u) = truncation_error, which grows with u
    for _ in range(200):
        u = (low + high) / 2
        low, high = (u, high) if u**H * largest < mdp.truncation_error * (1 - u) else (low, u)
    scaled = u ** np.arange(H)[:, None, None] * R[0]
    return u if np.abs(R - scaled).max() <= 1e-9 * largest else None


def standstill(problem: ImpairedMDP) -> tuple[int, str]:
    """(hold, ""): where the clock of a discounted plan can stand still; or (−1, why not)."""
    law, H = problem.law, problem.horizon
    if law.interarrival.shape[0] != 1:
        return -1, f"the law of {problem.channel!r} changes with time"
    if problem.arrival_probability is not None:
        if (
            law.constant is None
            or np.ptp(problem.arrival_probability) > 0
            or not (problem.loss and problem.loss.independent)
        ):
            return -1, f"the law of {problem.channel!r} changes with time, or its losses are not independent"
        return (law.constant, "") if law.constant < H else (-1, "the delay is not shorter than the plan")
    if problem.warmup:
        return 0, ""
    possible = law.feasible_delays  # [i, d]
    steady = law.longest_wait(0) == 0 or (H > 1 and bool((possible[-1] == possible[-2]).all()))
    if not steady or law.max_delay >= H:
        return (
            -1,
            f"delays behind {problem.channel!r} grow without bound, or beyond the plan's {H} steps; cap them: .capped(k)",
        )
    offset, root = Layout.of(problem).offset, Layout.of(problem).root
    longest = min(law.longest_delay, law.max_delay + law.longest_wait(0))
    wanted = [(m, w) for m in range(longest + 1) for w in range(min(m, law.longest_wait(0)) + 1) if possible[-1, m - w]]
    for h in range(H):
        fits = longest < offset.shape[1] and all(offset[h, m, w] >= 0 for m, w in wanted)
        if root[h] < 0 and fits:
            return h, ""
    return -1, f"the plan's {H} steps are too few for a queue of {longest} actions; a smaller tolerance plans further"


def _up_to(layout: Layout, body: NDArray[Any], hold: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """The part of a table for times 0..hold."""
    offset, root = layout.offset[: hold + 1].copy(), layout.root[: hold + 1].copy()
    pieces: list[NDArray[Any]] = []
    size = 0

    def take(start: int, n: int) -> int:
        nonlocal size
        pieces.append(body[start : start + n])
        size += n
        return size - n

    for h in range(hold + 1):
        for block in layout.blocks(h):
            offset[h, block.m, block.waited] = take(block.offset, layout.block_size(block.m))
        if root[h] >= 0:
            root[h] = take(int(root[h]), layout.n_actions**h)
    return offset, root, np.concatenate(pieces)
