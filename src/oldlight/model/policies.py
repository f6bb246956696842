"""What an agent does with what it knows: executable policies, functions of the information state τ_h.

    policy.probabilities(info)  -> the probability of each action, shape (A,)
    policy.action(info)         -> the action, for a policy that does not randomise

`TablePolicy`      one action (or distribution of actions) per information state of a delayed problem.
`BlackoutPolicy`   for loss: one sequence of actions per newest seen (t, s_t), followed until the next observation. Every
                   deterministic policy under loss has this form, because between observations only its own actions pass.
`FunctionPolicy`   any function of the information state.
`BeliefPolicy`     any function of (h, belief).
`MarkovPolicy`     a function of (h, s_h): the plan of somebody who sees everything, not executable behind a link.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.arrays import Floats, action_type
from oldlight.model.held_steps import certain
from oldlight.model.information import Information, Layout, current, decode, encode, settled_late
from oldlight.model.problem import ImpairedMDP


@runtime_checkable
class Policy(Protocol):
    """What every executable policy has: `probabilities(info)`, the probability of each action, shape (A,).

    Examples
    --------
    >>> import numpy as np
    >>> import oldlight as ol
    >>> class Coin:
    ...     def probabilities(self, info):
    ...         return np.array([0.5, 0.5])
    >>> isinstance(Coin(), ol.Policy)
    True
    """

    def probabilities(self, info: Information) -> Floats:
        """The probability of each action for what the agent knows, shape (A,)."""


def _known_actions(name: str, table: NDArray[Any], n_actions: int) -> NDArray[Any]:
    """The table, if every entry is an action."""
    for worst in (table.argmin(), table.argmax()) if table.size else ():
        a = int(table.reshape(-1)[worst])
        if not 0 <= a < n_actions:
            where = ", ".join(str(i) for i in np.unravel_index(int(worst), table.shape))
            raise ValueError(f"{name}[{where}] is {a}, expected an action in 0..{n_actions - 1}")
    return table


def _only_action(given: Floats, info: Information) -> int:
    a = int(given.argmax())
    if given[a] < 1.0:
        raise ValueError(f"the policy randomises at {tuple(info)}; draw from policy.probabilities(info)")
    return a


class TablePolicy:
    """One entry per information state of a delayed problem.

    Parameters
    ----------
    layout : Layout
        Where each information state stands: `layout.index(info)`.
    actions : array_like of int, shape (size,)
        The action of each information state. Give exactly one of `actions` and `action_probabilities`.
    action_probabilities : array_like, shape (size, A)
        The probability of each action, for a policy that randomises.

    Examples
    --------
    >>> import numpy as np
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")
    >>> layout = ol.Layout.of(problem)
    >>> always_right = ol.TablePolicy(layout, np.zeros(layout.size, dtype=int))
    >>> always_right.action(ol.Information.seen(t=0, state=3, queue=(2,)))
    0
    """

    @checks.renamed_keywords(chances="action_probabilities")
    def __init__(
        self,
        layout: Layout,
        actions: ArrayLike | None = None,
        *,
        action_probabilities: ArrayLike | None = None,
    ) -> None:
        if (actions is None) == (action_probabilities is None):
            raise ValueError("TablePolicy takes exactly one of actions and action_probabilities")
        self.layout = layout
        self.actions: NDArray[Any] | None = None
        self.action_probabilities: Floats | None = None
        if actions is not None:
            table = np.asarray(actions)
            if table.shape != (layout.size,) or table.dtype.kind not in "ui":
                raise ValueError(
                    f"actions has shape {table.shape} and type {table.dtype}; expected {layout.size} integers"
                )
            known = _known_actions("actions", table, layout.n_actions)
            self.actions = np.ascontiguousarray(known, dtype=action_type(layout.n_actions))  # as a planner makes it
        else:
            rows = checks.probability_rows("action_probabilities", np.asarray(action_probabilities), ("index", "a"))
            if rows.shape != (layout.size, layout.n_actions):
                raise ValueError(
                    f"action_probabilities has shape {rows.shape}; expected {(layout.size, layout.n_actions)}"
                )
            self.action_probabilities = rows

    chances = checks.renamed_property("chances", "action_probabilities")

    @classmethod
    def trusted(cls, layout: Layout, actions: NDArray[Any]) -> TablePolicy:
        """A table that is known to be right (made by a planner), without looking at every entry again."""
        policy = cls.__new__(cls)
        policy.layout, policy.actions, policy.action_probabilities = layout, actions, None
        return policy

    def probabilities(self, info: Information) -> Floats:
        """The probability of each action, shape (A,)."""
        i = self.layout.index(info)
        if self.action_probabilities is not None:
            return np.array(self.action_probabilities[i])
        assert self.actions is not None
        return certain(self.layout.n_actions, int(self.actions[i]))

    def action(self, info: Information) -> int:
        """The action; refused where the policy randomises."""
        if self.actions is not None:
            return int(self.actions[self.layout.index(info)])
        return _only_action(self.probabilities(info), info)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the table as one npz file."""
        body = {name: x for name in ("actions", "action_probabilities") if (x := getattr(self, name)) is not None}
        sizes = np.array([self.layout.horizon, self.layout.n_states, self.layout.n_actions])
        kind = np.array("oldlight.TablePolicy")
        where = {"offset": self.layout.offset, "root": self.layout.root}
        return checks.save_arrays(path, kind=kind, sizes=sizes, **where, **body)

    def __repr__(self) -> str:
        return f"TablePolicy({self.layout.size:,} information states)"


class BlackoutPolicy:
    """For loss: after each observation one sequence of actions, followed while nothing more is seen.

    It is defined where the later actions are what the policy itself did; anywhere else `elsewhere(info)` is asked, if given.

    Parameters
    ----------
    sequences : array_like of int, shape (H + 1, S, A^late, H)
        [t + 1, s, q, j]: after step t was seen in state s with the queue of code q, the action j steps later. Row 0 (s = q = 0): nothing seen yet.
    n_actions : int
        A.
    late : int
        How late an observation is, and so the length of the queue: 0 under loss alone.
    elsewhere : function of an Information, optional
        The action off the plan. It is not saved.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), "loss:0.2")).policy
    BlackoutPolicy(H=4, S=20, late=0)
    """

    def __init__(
        self, sequences: ArrayLike, n_actions: int, late: int = 0, elsewhere: Callable[[Information], int] | None = None
    ) -> None:
        table = np.asarray(sequences)
        fits = (
            table.ndim == 4
            and table.shape[0] == table.shape[3] + 1
            and checks.is_power(table.shape[2], n_actions, late)
        )
        if not fits or table.dtype.kind not in "ui":
            raise ValueError(
                f"sequences has shape {table.shape}, type {table.dtype}; expected integers (H+1, S, {n_actions}^{late}, H)"
            )
        self.sequences = _known_actions("sequences", table, n_actions)
        self.n_actions, self.late, self.elsewhere = n_actions, late, elsewhere

    @classmethod
    def trusted(
        cls, sequences: NDArray[Any], n_actions: int, late: int, elsewhere: Callable[[Information], int] | None
    ) -> BlackoutPolicy:
        """Sequences that are known to be right (made by a planner), without looking at every entry again."""
        policy = cls.__new__(cls)
        policy.sequences, policy.n_actions, policy.late, policy.elsewhere = sequences, n_actions, late, elsewhere
        return policy

    def action(self, info: Information) -> int:
        """The action of the sequence that was begun at the newest observation."""
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
        """The probability of each action, shape (A,): 1 for that of the sequence."""
        return certain(self.n_actions, self.action(info))

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


class FunctionPolicy:
    """Any function of the information state; each information state is asked once.

    Parameters
    ----------
    choose : function of an Information
        Returns an action, or the probabilities of the actions, shape (A,).
    n_actions : int
        A.

    Examples
    --------
    >>> import oldlight as ol
    >>> wait_and_see = ol.FunctionPolicy(lambda info: 0 if info.t is None else 1, n_actions=2)
    >>> wait_and_see.action(ol.Information.nothing_seen())
    0
    """

    def __init__(self, choose: Callable[[Information], Any], n_actions: int) -> None:
        self.choose = choose
        self.n_actions = checks.whole("n_actions", n_actions, least=1)
        self._known: dict[Information, Floats] = {}

    def probabilities(self, info: Information) -> Floats:
        """The probability of each action, shape (A,)."""
        known = self._known.get(info)
        if known is None:
            known = self._known[info] = as_probabilities(
                self.choose(info), self.n_actions, f"the policy at {tuple(info)}"
            )
        return known

    def action(self, info: Information) -> int:
        """The action; refused where the policy randomises."""
        return _only_action(self.probabilities(info), info)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.choose, '__qualname__', self.choose)}, A={self.n_actions})"


class BeliefPolicy(FunctionPolicy):
    """Any function of the time and the belief.

    Parameters
    ----------
    problem : ImpairedMDP
        Says what the belief is.
    choose : function of (h, b)
        b is the distribution of the current state, shape (S,); returns an action or the probabilities of the actions, shape (A,).

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")
    >>> to_the_middle = ol.BeliefPolicy(problem, lambda h, b: int(b.argmax() > 9))
    >>> to_the_middle.action(ol.Information.seen(t=0, state=15, queue=(0,)))
    1
    """

    def __init__(self, problem: ImpairedMDP, choose: Callable[[int, Floats], Any]) -> None:
        super().__init__(partial(_on_belief, problem, choose), problem.n_actions)


def _on_belief(problem: ImpairedMDP, choose: Callable[[int, Floats], Any], info: Information) -> Any:
    return choose(info.h, current(problem, info))


class MarkovPolicy:
    """What somebody does who always sees the current state; plans with full information are compared and simulated by it.

    Parameters
    ----------
    actions : array_like of int, shape (H, S)
        The action of each step and state.
    n_actions : int
        A.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.MarkovPolicy([[0, 1], [1, 1]], n_actions=2)
    MarkovPolicy(H=2, S=2, A=2)
    """

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


def as_probabilities(given: Any, n_actions: int, who: str) -> Floats:
    """An action or the probabilities of the actions, as probabilities."""
    if np.ndim(given) == 0:
        return certain(n_actions, checks.whole(who, given, most=n_actions - 1))
    if isinstance(given, np.ndarray) and given.dtype == np.float64 and given.shape == (n_actions,):
        listed = given.tolist()  # for so few numbers plain Python is the quickest
        if min(listed) >= 0.0 and abs(sum(listed) - 1.0) <= checks.SUM_TOLERANCE:
            return given
    rows = checks.probability_rows(who, given, ("a",))
    if rows.shape != (n_actions,):
        raise ValueError(f"{who} gives {len(rows)} probabilities, expected one per action: {n_actions}")
    return rows


def probabilities_at(problem: ImpairedMDP, policy: Policy, info: Information) -> Floats:
    """What is done on `info`: what was under way before the start, then what the policy answers, checked."""
    A = problem.n_actions
    if info.h < problem.actuation:
        return certain(A, problem.pending[info.h])
    given = policy.probabilities(info)
    if isinstance(policy, TablePolicy | BlackoutPolicy | FunctionPolicy) and len(given) == A:
        return given  # checked when it was made
    return as_probabilities(given, A, f"the policy at {tuple(info)}")


def tabulate(problem: ImpairedMDP, policy: Policy, layout: Layout | None = None) -> TablePolicy:
    """Ask `policy` at every information state of a delayed problem and keep the answers."""
    if isinstance(policy, TablePolicy):
        return policy
    layout = Layout.of(problem) if layout is None else layout
    return TablePolicy(layout, action_probabilities=np.array([policy.probabilities(info) for info in layout]))


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
