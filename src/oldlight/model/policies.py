"""What an agent does with what it knows: executable policies, functions of the information state τ_h.

    policy.probabilities(info)  -> the chance of each action, shape (A,)
    policy.action(info)         -> the action, for a policy that does not randomise

`TablePolicy`      one action (or one law of actions) per information state of a delayed problem.
`BlackoutPolicy`   for loss: one sequence of actions per newest seen (t, s_t), followed until the next observation. Every
                   deterministic policy under loss has this form, because between observations only its own actions pass.
`FunctionPolicy`   any function of the information state.
`BeliefPolicy`     any function of (h, belief).
`MarkovPolicy`     a function of (h, s_h): the plan of somebody who sees everything. Not executable under impairment;
                   it is what a plan with full information is compared by, and simulated by.

Tables are saved as npz files without pickle and load with numpy alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks, files
from oldlight.model.information import Information, Layout, current, decode, encode, settled_late
from oldlight.model.problem import ImpairedMDP

if TYPE_CHECKING:
    from oldlight.model.link_policy import LinkPolicy

Floats = NDArray[np.float64]


@runtime_checkable
class Policy(Protocol):
    """Anything that gives the chances of the actions for what the agent knows."""

    def probabilities(self, info: Information) -> Floats: ...


def _point(a: int, n_actions: int) -> Floats:
    chances = np.zeros(n_actions)
    chances[a] = 1.0
    return chances


def _known_actions(name: str, table: NDArray[Any], n_actions: int) -> NDArray[Any]:
    """The table, if every entry is an action."""
    for worst in (table.argmin(), table.argmax()) if table.size else ():
        a = int(table.reshape(-1)[worst])
        if not 0 <= a < n_actions:
            where = ", ".join(str(i) for i in np.unravel_index(int(worst), table.shape))
            raise ValueError(f"{name}[{where}] is {a}, expected an action in 0..{n_actions - 1}")
    return table


def _only_action(chances: Floats, info: Information) -> int:
    a = int(chances.argmax())
    if chances[a] < 1.0:
        raise ValueError(f"the policy randomises at {tuple(info)}; draw from policy.probabilities(info)")
    return a


class TablePolicy:
    """One entry per information state of a delayed problem.

    actions: [index] chosen actions, or chances: [index, a]; the index is `layout.index(info)`.
    """

    def __init__(self, layout: Layout, actions: ArrayLike | None = None, *, chances: ArrayLike | None = None) -> None:
        if (actions is None) == (chances is None):
            raise ValueError("TablePolicy takes exactly one of actions and chances")
        self.layout = layout
        self.actions: NDArray[Any] | None = None
        self.chances: Floats | None = None
        if actions is not None:
            table = np.asarray(actions)
            if table.shape != (layout.size,) or table.dtype.kind not in "ui":
                raise ValueError(
                    f"actions has shape {table.shape} and type {table.dtype}; expected {layout.size} integers"
                )
            self.actions = _known_actions("actions", table, layout.n_actions)
        else:
            self.chances = checks.probability_rows("chances", np.asarray(chances), ("index", "a"))
            if self.chances.shape != (layout.size, layout.n_actions):
                raise ValueError(f"chances has shape {self.chances.shape}; expected {(layout.size, layout.n_actions)}")

    @classmethod
    def trusted(cls, layout: Layout, actions: NDArray[Any]) -> TablePolicy:
        """A table that is known to be right (made by a planner), without looking at every entry again."""
        policy = cls.__new__(cls)
        policy.layout, policy.actions, policy.chances = layout, actions, None
        return policy

    def probabilities(self, info: Information) -> Floats:
        i = self.layout.index(info)
        if self.chances is not None:
            return np.array(self.chances[i])
        assert self.actions is not None
        return _point(int(self.actions[i]), self.layout.n_actions)

    def action(self, info: Information) -> int:
        if self.actions is not None:
            return int(self.actions[self.layout.index(info)])
        return _only_action(self.probabilities(info), info)

    def save(self, path: str | os.PathLike[str]) -> Path:
        body = {"actions": self.actions} if self.actions is not None else {"chances": self.chances}
        sizes = np.array([self.layout.horizon, self.layout.n_states, self.layout.n_actions])
        kind = np.array("oldlight.TablePolicy")
        return checks.save_arrays(
            path,
            kind=kind,
            sizes=sizes,
            offset=self.layout.offset,
            root=self.layout.root,
            **body,
        )

    def __repr__(self) -> str:
        return f"TablePolicy({self.layout.size:,} information states)"


class BlackoutPolicy:
    """sequences[t + 1, s, q, j]: after step t was seen in state s with the queue of code q, the action j steps later while
    nothing more is seen; row 0 (s = q = 0) is for nothing seen yet, from time 0 on. The queue has as many actions as an
    observation is late: none under loss alone.

    Defined where the later actions are what the policy itself did. Elsewhere `elsewhere(info)` is asked, if there is one.
    """

    def __init__(
        self, sequences: ArrayLike, n_actions: int, late: int = 0, elsewhere: Callable[[Information], int] | None = None
    ) -> None:
        table = np.asarray(sequences)
        fits = table.ndim == 4 and table.shape[0] == table.shape[3] + 1 and is_power(table.shape[2], n_actions, late)
        if not fits or table.dtype.kind not in "ui":
            raise ValueError(
                f"sequences has shape {table.shape}, type {table.dtype}; expected integers (H+1, S, {n_actions}^{late}, H)"
            )
        self.sequences = _known_actions("sequences", table, n_actions)
        self.n_actions = n_actions
        self.late = late
        self.elsewhere = elsewhere

    def action(self, info: Information) -> int:
        if info.t is None or info.state is None:
            planned, since = self.sequences[0, 0, 0], info.queue
        else:
            code = encode(info.queue[: self.late], self.n_actions)
            planned, since = self.sequences[info.t + 1, info.state, code], info.queue[self.late :]
        m = len(since)
        if tuple(planned[:m].tolist()) == tuple(since):
            return int(planned[m])
        if self.elsewhere is not None:
            return self.elsewhere(info)
        raise KeyError(f"{tuple(info)} is off the plan: after this observation the plan was {planned[:m].tolist()}")

    def probabilities(self, info: Information) -> Floats:
        return _point(self.action(info), self.n_actions)

    def fits(self, problem: ImpairedMDP) -> bool:
        """Was the policy made for a problem of these sizes?"""
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        late = problem.law.constant
        same = (self.sequences.shape[3], self.sequences.shape[1], self.n_actions, self.late) == (H, S, A, late)
        return problem.arrival_probability is not None and same

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the sequences; an `elsewhere` is not saved."""
        kind, sizes = np.array("oldlight.BlackoutPolicy"), np.array([self.n_actions, self.late])
        return checks.save_arrays(path, kind=kind, sequences=self.sequences, sizes=sizes)

    def __repr__(self) -> str:
        return f"BlackoutPolicy(H={self.sequences.shape[3]}, S={self.sequences.shape[1]}, late={self.late})"


def load_policy(path: str | os.PathLike[str]) -> TablePolicy | BlackoutPolicy | LinkPolicy:
    """Read a policy that `save` wrote."""
    from oldlight.model import link_policy

    with files.arrays_in(path) as held:
        kind = held.words("kind", 100)
        if kind == link_policy.KIND:
            return link_policy.LinkPolicy.read(held)
        if kind == "oldlight.BlackoutPolicy":
            n_actions, late = held.numbers("sizes", 2)
            return BlackoutPolicy(held.array("sequences", "iu", (None, None, None, None)), n_actions, late)
        if kind != "oldlight.TablePolicy":
            raise files.UnreadableFile(f"{path}: kind is {kind!r}, expected a saved oldlight policy")
        H, S, A = held.numbers("sizes", 3)
        offset = held.array("offset", "iu", (H, None, None)).astype(np.int64)
        root = held.array("root", "iu", (H,)).astype(np.int64)
        if "actions" in held:
            table = {"actions": held.array("actions", "iu", (None,))}
        else:
            table = {"chances": held.array("chances", "f", (None, A))}
        size = len(next(iter(table.values())))
        for name, good in places(offset, root, S, A, size):
            if not good:
                raise ValueError(f"{name!r} does not fit a table of {size} information states")
        return TablePolicy(Layout(H, S, A, offset, root, size), **table)


def places(offset: NDArray[Any], root: NDArray[Any], S: int, A: int, size: int) -> Iterator[tuple[str, bool]]:
    """The places of blocks in a table (see `Layout`) by name, and whether each block ends before the table does."""
    m, h = np.arange(offset.shape[1]), np.arange(len(root))
    with np.errstate(over="ignore"):
        block_ends, root_ends = offset + S * float(A) ** m[:, None], root + float(A) ** h
    yield "offset", bool(((block_ends <= size) | (offset < 0)).all())
    yield "root", bool(((root_ends <= size) | (root < 0)).all())


def is_power(n: int, base: int, exponent: int) -> bool:
    """n = base^exponent? Without a number of more digits than n has, whatever a file says."""
    if base < 1 or exponent < 0 or (base > 1 and exponent >= int(n).bit_length()):
        return False
    return bool(n == int(base) ** int(exponent))


class FunctionPolicy:
    """`choose(info)` gives an action or the chances of the actions; each information state is asked once."""

    def __init__(self, choose: Callable[[Information], Any], n_actions: int) -> None:
        self.choose = choose
        self.n_actions = checks.whole("n_actions", n_actions, least=1)
        self._known: dict[Information, Floats] = {}

    def probabilities(self, info: Information) -> Floats:
        known = self._known.get(info)
        if known is None:
            known = self._known[info] = as_chances(self.choose(info), self.n_actions, f"the policy at {tuple(info)}")
        return known

    def action(self, info: Information) -> int:
        return _only_action(self.probabilities(info), info)


class BeliefPolicy(FunctionPolicy):
    """`choose(h, b)` gives an action or the chances of the actions for the law b of the current state."""

    def __init__(self, problem: ImpairedMDP, choose: Callable[[int, Floats], Any]) -> None:
        super().__init__(partial(_on_belief, problem, choose), problem.n_actions)


def _on_belief(problem: ImpairedMDP, choose: Callable[[int, Floats], Any], info: Information) -> Any:
    return choose(info.h, current(problem, info))


class MarkovPolicy:
    """actions[h, s]: what somebody does who always sees the current state."""

    def __repr__(self) -> str:
        return f"MarkovPolicy(H={self.actions.shape[0]}, S={self.actions.shape[1]}, A={self.n_actions})"

    def __init__(self, actions: ArrayLike, n_actions: int) -> None:
        table = np.asarray(actions)
        if table.ndim != 2 or table.dtype.kind not in "ui" or table.size == 0:
            raise ValueError(
                f"actions has shape {table.shape}, type {table.dtype}; expected integers (H, S), at least one"
            )
        self.actions = _known_actions("actions", table, n_actions)
        self.n_actions = n_actions


def as_chances(given: Any, n_actions: int, who: str) -> Floats:
    """An action or a law of actions, as a law."""
    if np.ndim(given) == 0:
        return _point(checks.whole(who, given, most=n_actions - 1), n_actions)
    if isinstance(given, np.ndarray) and given.dtype == np.float64 and given.shape == (n_actions,):
        listed = given.tolist()  # for so few numbers plain Python is the quickest
        if min(listed) >= 0.0 and abs(sum(listed) - 1.0) <= checks.SUM_TOLERANCE:
            return given
    chances = checks.probability_rows(who, given, ("a",))
    if chances.shape != (n_actions,):
        raise ValueError(f"{who} gives {len(chances)} chances, expected one per action: {n_actions}")
    return chances


def chances_of(problem: ImpairedMDP, policy: Policy, info: Information) -> Floats:
    """What is done on `info`: what was under way before the start, then what the policy says, checked."""
    A = problem.n_actions
    if info.h < problem.actuation:
        return _point(problem.pending[info.h], A)
    given = policy.probabilities(info)
    if isinstance(policy, TablePolicy | BlackoutPolicy | FunctionPolicy) and len(given) == A:
        return given  # checked when it was made
    return as_chances(given, A, f"the policy at {tuple(info)}")


def same_layout(one: Layout, other: Layout) -> bool:
    """Do two tables index the same information states?"""
    if one is other:
        return True
    sizes = (one.horizon, one.n_states, one.n_actions) == (other.horizon, other.n_states, other.n_actions)
    return sizes and np.array_equal(one.offset, other.offset) and np.array_equal(one.root, other.root)


def made_for_another(policy: Any, problem: ImpairedMDP) -> ValueError:
    """The error for a policy whose table does not fit the problem."""
    return ValueError(f"{policy!r} was made for another problem than {problem!r}: sizes, channel or start differ")


def not_a_policy(policy: Any) -> TypeError:
    """The error for something that cannot be asked what to do."""
    return TypeError(
        f"policy is of type {type(policy).__name__}, without probabilities(info); wrap a function of the information state: "
        "oldlight.FunctionPolicy(choose, n_actions)"
    )


def tabulate(problem: ImpairedMDP, policy: Policy, layout: Layout | None = None) -> TablePolicy:
    """Ask `policy` at every information state of a delayed problem and keep the answers."""
    if isinstance(policy, TablePolicy):
        return policy
    layout = Layout.of(problem) if layout is None else layout
    return TablePolicy(layout, chances=np.array([policy.probabilities(info) for info in layout]))


def blackout_of(problem: ImpairedMDP, policy: Policy) -> BlackoutPolicy:
    """Any deterministic policy under loss, as its sequences."""
    if isinstance(policy, BlackoutPolicy):
        return policy
    H, S, A, late = problem.horizon, problem.n_states, problem.n_actions, settled_late(problem)
    table = np.zeros((H + 1, S, A**late, H), dtype=np.int32)
    for row, s, q in np.ndindex(table.shape[:3]):
        if row == 0 and s + q > 0:
            continue
        queue = decode(q, late, A) if row else ()
        for j in range(H - (row - 1 + late if row else 0)):
            info = Information.seen(row - 1, s, queue, j) if row else Information.nothing_seen(queue)
            a = (
                problem.pending[info.h]
                if info.h < problem.actuation
                else _only_action(policy.probabilities(info), info)
            )
            table[row, s, q, j] = a
            queue += (a,)
    return BlackoutPolicy(table, A, late)


__all__ = [
    "BeliefPolicy",
    "BlackoutPolicy",
    "FunctionPolicy",
    "MarkovPolicy",
    "Policy",
    "TablePolicy",
    "as_chances",
    "blackout_of",
    "chances_of",
    "load_policy",
    "same_layout",
    "tabulate",
]
