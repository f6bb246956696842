"""The decision process under the impairment: a finite, episodic MDP.

An episode has H steps. At step h the process is in state s_h, the agent acts a_h, the reward is r_h(s_h, a_h) and the
next state is drawn from p_h(·|s_h, a_h):

    s_1 ~ rho,    s_{h+1} ~ P[h, s_h, a_h, :],    value = E[ Σ_h R[h, s_h, a_h] ].

The paper counts steps from 1; **code counts from 0**, here and in the whole package: `transitions[0]` is the paper's
p_1. Arrays always carry the step axis, `transitions[h, s, a, s2]` and `rewards[h, s, a]`; for a stationary process
that axis is a view that repeats one step and costs no memory.

A discounted process with discount u is the episodic one with rewards u^h·r, cut off where the rest cannot matter
(Corollary 1 of the paper: an effective horizon of about log(1/ε)/(1−u)). Or it is not cut off: with ``horizon=None`` a
stationary process runs **for ever**, and its value is

    discount=u        E[ Σ_h u^h·r(s_h, a_h) ]
    average=True      lim inf of E[ Σ_{h<n} r(s_h, a_h) ] / n, the reward per step

Then the step axis has length one, and whatever needs a number of steps refuses (`TabularMDP.finite_horizon`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model import readers as tables
from oldlight.model import span
from oldlight.model.held_steps import pushed
from oldlight.model.sources import Sources
from oldlight.model.transitions import stored, trusted


class TabularMDP(Sources):
    """A finite episodic MDP, validated and immutable.

    Parameters
    ----------
    transitions : array_like, shape (S, A, S) or (H, S, A, S), or sparse
        Probability of each next state: of a stationary process, or one for each step. Rows sum to one. Sparse: a scipy.sparse matrix
        (S·A × S) with the rows s·A + a, a list of A matrices (S × S), a list of H of either, or
        ``{"s": .., "a": .., "s2": .., "p": ..}``, a successor for each entry (see `oldlight.model.transitions`).
    rewards : array_like, shape (S, A) or (H, S, A)
        Any numbers whose sums over an episode are finite.
    horizon : int or None
        H, the number of steps; None for a stationary process that runs for ever, with `discount` or `average`.
    initial : array_like, shape (S,), optional
        Distribution of the first state; uniform if None.
    states, actions : sequence of str, optional
        Names for tables, files and pictures.
    truncation_error : float
        How far values may be off because a longer process was cut at H (see `discounted`).
    discount : float, optional
        u in [0, 1). For ever: the value is E[Σ_h u^h·r]. With a finite horizon the rewards of step h become u^h·r, and the process is
        an ordinary one from then on.
    average : bool
        For ever, valued by the reward per step.

    Examples
    --------
    >>> import oldlight as ol
    >>> stay_or_swap = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]  # [s, a, next s]
    >>> mdp = ol.TabularMDP(stay_or_swap, rewards=[[0, 0], [1, 1]], horizon=3)
    >>> mdp
    TabularMDP(S=2, A=2, H=3, stationary)
    >>> mdp.transitions.shape, mdp.rewards.shape
    ((3, 2, 2, 2), (3, 2, 2))
    >>> from scipy.sparse import csr_array
    >>> ol.TabularMDP([csr_array([[1, 0], [0, 1]]), csr_array([[0, 1], [1, 0]])], mdp.rewards[0], horizon=3)  # one for each action
    TabularMDP(S=2, A=2, H=3, stationary, sparse)
    >>> ol.TabularMDP(stay_or_swap, rewards=[[0, 0], [1, 1]], horizon=None, discount=0.9)
    TabularMDP(S=2, A=2, for ever, discount 0.9)
    """

    rewards: Floats  # [h, s, a]
    initial: Floats  # [s]
    horizon: int | None
    discount: float | None
    average: bool
    n_states: int
    n_actions: int
    sparse: bool

    def __init__(
        self,
        transitions: ArrayLike | Any,
        rewards: ArrayLike,
        *,
        horizon: int | None,
        initial: ArrayLike | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        truncation_error: float = 0.0,
        discount: float | None = None,
        average: bool = False,
    ) -> None:
        u = span.checked_span(horizon, discount, average)
        H = 1 if horizon is None else span.checked_horizon(horizon)
        R = checks.numbers("rewards", rewards)
        P = self._stored = stored(transitions, None if horizon is None else H, R.shape)
        S, A = P.n_states, P.n_actions
        span.check_shapes(P.stationary, S, A, R, None if horizon is None else H)
        if horizon is not None and u is not None:
            R, u = u ** np.arange(H)[:, None, None] * checks.numbers("rewards", R), None
        self.horizon, self.discount, self.average = None if horizon is None else H, u, bool(average)
        self.n_states, self.n_actions = S, A
        self.sparse, self.stationary_transitions, self.stationary_rewards = P.sparse, P.stationary, R.ndim == 2
        R = checks.frozen(checks.finite_array("rewards", R, ("s", "a") if R.ndim == 2 else ("h", "s", "a")))
        largest = np.abs(R).max(axis=(-2, -1))  # of each step, or of all
        with np.errstate(over="ignore"):
            most = largest / (1 - u) if u is not None else largest.sum() if R.ndim == 3 else H * largest
            span.check_sums(R, float(most), f"{H} steps" if horizon is not None else "for ever")
        self.stationary = P.stationary and R.ndim == 2
        self.rewards = np.broadcast_to(R, (H, S, A))
        if initial is None:
            rho = np.full(S, 1.0 / S)
        else:
            rho = checks.probability_rows("initial", initial, ("s",))
            if rho.shape != (S,):
                raise ValueError(f"initial has {rho.shape[0]} entries, expected one per state: {S}")
        self.initial = checks.frozen(rho)
        self.states = checks.names("states", states, S)
        self.actions = checks.names("actions", actions, A)
        self.truncation_error = checks.at_least("truncation_error", truncation_error, 0)
        self._cache: dict[Any, Any] = {}  # what others make of the transitions once, by step
        self._sealed = True

    @property
    def transitions(self) -> Floats:
        """P[h, s, a, s2]. Of a sparse process the array is made on request, and refused where it is large: use `matrix`."""
        return self._stored.dense(self.horizon or 1)

    def matrix(self, h: int = 0) -> Any:
        """P_h with the rows s·A + a, shape (S·A, S): an array, or a `scipy.sparse.csr_array` if the process is `sparse`.

        Products with it are all that planning needs: ``(mdp.matrix(h) @ v).reshape(S, A)`` is the mean of v after a step from (s, a), and
        ``b @ mdp.matrix(h)[a::A]`` the law of the next state after action a in a state with the law b.
        """
        if h < 0 or (self.horizon is not None and h >= self.horizon):
            raise IndexError(f"h is {h}, expected a step in 0..{'' if self.horizon is None else self.horizon - 1}")
        return self._stored.matrix(h)

    def advanced(self, b: Floats, h: int, a: int) -> Floats:
        """b P_a: the law of s_{h+1} when s_h has the law b, axes (.., s), and action a is done."""
        matrix = self._stored.matrix(h)
        if self.sparse and b.ndim == 1:
            return pushed(b, (matrix.indptr, matrix.indices, matrix.data), a, self.n_actions)
        return np.asarray(b @ matrix[a :: self.n_actions])

    def expected(self, v: Floats, h: int) -> Floats:
        """P V: the mean of v, axes (s2, ..), after a step from (s, a); axes (s, a, ..)."""
        found = np.asarray(self._stored.matrix(h) @ (v if v.ndim == 1 else v.reshape(self.n_states, -1)))
        return found.reshape(self.n_states, self.n_actions, *v.shape[1:])

    def row(self, h: int, s: int, a: int) -> tuple[NDArray[Any], Floats]:
        """The states that follow (s, a) at step h, and their probabilities."""
        matrix, i = self._stored.matrix(h), s * self.n_actions + a
        if self.sparse:
            part = slice(matrix.indptr[i], matrix.indptr[i + 1])
            return matrix.indices[part], matrix.data[part]
        found = np.flatnonzero(matrix[i])
        return found, matrix[i, found]

    def triples(self) -> dict[str, NDArray[Any]]:
        """The transitions as four lists of one length, a successor in each entry: {"s", "a", "s2", "p"}, with "h" where they change with the
        step. `TabularMDP` takes them.

        Examples
        --------
        >>> import oldlight as ol
        >>> sorted(ol.instances.center_chain(0.8).triples())
        ['a', 'p', 's', 's2']
        """
        steps = [self.matrix(h) for h in range(1 if self.stationary_transitions else self.finite_horizon)]
        found = [x.nonzero() if isinstance(x, np.ndarray) else (x.tocoo().row, x.indices) for x in steps]
        p = [x[at] if isinstance(x, np.ndarray) else x.data for x, at in zip(steps, found, strict=True)]
        row, s2 = (np.concatenate([at[i] for at in found]) for i in range(2))
        out = {"s": row // self.n_actions, "a": row % self.n_actions, "s2": s2, "p": np.concatenate(p)}
        h = {} if self.stationary_transitions else {"h": np.repeat(np.arange(len(p)), [len(x) for x in p])}
        return out | h

    @property
    def nbytes(self) -> int:
        """Memory that the transitions and rewards take, in bytes."""
        rewards = self.rewards[:1] if self.stationary_rewards else self.rewards
        return self._stored.nbytes + int(rewards.nbytes)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_sealed", False):
            raise AttributeError(f"a TabularMDP does not change; make a new one (tried to set {name!r})")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return self._parts()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        kind = f"H={self.horizon}, {'stationary' if self.stationary else 'per-step'}"
        if self.horizon is None:
            kind = "for ever, " + ("average reward" if self.average else f"discount {self.discount:.12g}")
        return f"TabularMDP(S={self.n_states}, A={self.n_actions}, {kind}{', sparse' if self.sparse else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TabularMDP):
            return NotImplemented
        return (
            (self.horizon, self.states, self.actions) == (other.horizon, other.states, other.actions)
            and (self.discount, self.average) == (other.discount, other.average)
            and self.truncation_error == other.truncation_error
            and self._stored.same(other._stored)
            and np.array_equal(self.rewards, other.rewards)
            and np.array_equal(self.initial, other.initial)
        )

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> dict[str, Any]:
        """The constructor's arguments, without the repeated step axis."""
        return {
            "transitions": self._stored.argument(),
            "rewards": self.rewards[0] if self.stationary_rewards else self.rewards,
            "horizon": self.horizon,
            "initial": self.initial,
            "states": self.states,
            "actions": self.actions,
            "truncation_error": self.truncation_error,
            "discount": self.discount,
            "average": self.average,
        }

    @property
    def finite_horizon(self) -> int:
        """H; a process that runs for ever refuses, with the way out."""
        if self.horizon is None:
            raise ValueError(
                f"{self!r} runs for ever, and a number of steps is needed here; give it one: mdp.replace(horizon=H), or simulate(..., steps=n)"
            )
        return self.horizon

    def replace(self, **changes: Any) -> TabularMDP:
        """A copy with some constructor arguments changed, for example ``mdp.replace(initial=[1, 0, 0])``.

        A process that runs for ever is cut by ``mdp.replace(horizon=H)``: with a discount its rewards become u^h·r, and what is left out
        is in `truncation_error`; with average reward the total of H steps is left.
        """
        parts = self._parts()
        unknown = set(changes) - set(parts)
        if unknown:
            raise TypeError(f"replace() does not know {sorted(unknown)[0]!r}; it takes {sorted(parts)}")
        parts |= changes
        if self.horizon is None and parts["horizon"] is not None:
            parts["average"] = changes.get("average", False)
            if self.discount is not None and not {"discount", "truncation_error"} & set(changes):
                H, u = checks.whole("horizon", parts["horizon"], least=1), self.discount
                parts["truncation_error"] = (
                    u**H * float(np.abs(checks.numbers("rewards", parts["rewards"])).max()) / (1 - u)
                )
        return TabularMDP(**parts)

    def _moved_by(self, transitions: Floats) -> TabularMDP:
        """This dense process with other transitions, axes [h, s, a, s2], one h if its own are stationary: for learners, which make one for every episode. The array
        is kept as it is, and nothing is checked: it is contiguous, of this size, and its rows are laws."""
        other = TabularMDP.__new__(TabularMDP)
        vars(other).update(vars(self) | {"_stored": trusted(transitions, self.stationary_transitions), "_cache": {}})
        return other

    # -- other ways to make one ---------------------------------------------------------------------------------

    @classmethod
    def discounted(
        cls,
        transitions: ArrayLike,
        rewards: ArrayLike,
        *,
        discount: float,
        tolerance: float,
        initial: ArrayLike | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
    ) -> TabularMDP:
        """An infinite-horizon process with discount u, cut off where what is left is at most `tolerance`.

        The horizon is the smallest H with u^H·max|r|/(1−u) ≤ tolerance, at most Corollary 1's
        log(max|r|/(tolerance·(1−u)))/(1−u) rounded up. Values of the result differ from those of the infinite
        process by at most `truncation_error` = u^H·max|r|/(1−u), for every policy.

        A plan for each of H steps costs time and memory that grow with 1/(1−u); ``TabularMDP(..., horizon=None, discount=u)`` is the
        same process without the cut, for which `solve` makes one stationary plan.
        """
        u = span.checked_discount(discount)
        epsilon = checks.positive("tolerance", tolerance)
        R = checks.finite_array("rewards", rewards, ("s", "a"))
        largest = float(np.abs(R).max())
        span.check_sums(R, largest / (1 - u), f"discount {u:.12g}")
        H = 1
        if u > 0 and largest / (1 - u) > epsilon:
            H = max(1, math.ceil(math.log(epsilon * (1 - u) / largest) / math.log(u)))
            while u**H * largest / (1 - u) > epsilon:  # rounding of the logarithms
                H += 1
        powers = u ** np.arange(H)
        return cls(
            transitions,
            powers[:, None, None] * R,
            horizon=H,
            initial=initial,
            states=states,
            actions=actions,
            truncation_error=u**H * largest / (1 - u),
        )

    @classmethod
    def from_gymnasium(
        cls, env: Any, horizon: int | None, *, discount: float | None = None, average: bool = False
    ) -> TabularMDP:
        """A Gymnasium environment with a transition table (`env.unwrapped.P`), or its name: FrozenLake, CliffWalking, Taxi, ...

        A state that ends the episode absorbs: every action stays there with reward zero. If such a state is also
        entered without the episode ending, the ending goes to one extra state named "end".
        """
        return cls(**tables.gymnasium_table(env), horizon=horizon, discount=discount, average=average)

    @classmethod
    def from_dict(
        cls,
        table: Mapping[Any, Mapping[Any, Iterable[Sequence[Any]]]],
        *,
        horizon: int | None,
        initial: Mapping[Any, float] | None = None,
        discount: float | None = None,
        average: bool = False,
    ) -> TabularMDP:
        """``{state: {action: [(p, next_state, reward), ...]}}``; keys may be any names.

        Every state needs every action. `initial` maps states to probabilities (uniform if None).
        """
        return cls(**tables.dict_table(table, initial), horizon=horizon, discount=discount, average=average)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        horizon: int | None,
        initial: Mapping[Any, float] | None = None,
        discount: float | None = None,
        average: bool = False,
    ) -> TabularMDP:
        """A CSV file with the columns s, a, s', p, r (a header line; ``s2`` or ``next`` also name the next state)."""
        return cls(**tables.csv_table(path, initial), horizon=horizon, discount=discount, average=average)

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path`.npz (the arrays) and `path`.toml (sizes, names and where the arrays are, for people)."""
        from oldlight.model import mdp_files

        return mdp_files.save(self, self._parts(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TabularMDP:
        """Read what `save` wrote; `path` with or without .toml/.npz."""
        from oldlight.model import mdp_files

        return mdp_files.load(cls, path)
