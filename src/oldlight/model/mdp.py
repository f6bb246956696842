"""The decision process under the impairment: a finite, episodic MDP.

An episode has H steps. At step h the process is in state s_h, the agent acts a_h, the reward is r_h(s_h, a_h) and the
next state is drawn from p_h(·|s_h, a_h):

    s_1 ~ rho,    s_{h+1} ~ P[h, s_h, a_h, :],    value = E[ Σ_h R[h, s_h, a_h] ].

The paper counts steps from 1; **code counts from 0**, here and in the whole package: `transitions[0]` is the paper's
p_1. Arrays always carry the step axis, `transitions[h, s, a, s2]` and `rewards[h, s, a]`; for a stationary process
that axis is a view that repeats one step and costs no memory.

A discounted process with discount u is the episodic one with rewards u^h·r, cut off where the rest cannot matter
(Corollary 1 of the paper: an effective horizon of about log(1/ε)/(1−u)).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks, files
from oldlight.model import readers as tables
from oldlight.model.sources import Sources

Floats = NDArray[np.float64]


class TabularMDP(Sources):
    """A finite episodic MDP, validated and immutable.

    Parameters
    ----------
    transitions : array_like, shape (S, A, S) or (H, S, A, S)
        Probability of each next state: of a stationary process, or one for each step. Rows sum to one.
    rewards : array_like, shape (S, A) or (H, S, A)
        Any numbers whose sums over an episode are finite.
    horizon : int
        H, the number of steps.
    initial : array_like, shape (S,), optional
        Distribution of the first state; uniform if None.
    states, actions : sequence of str, optional
        Names for tables, files and pictures.
    truncation_error : float
        How far values may be off because a longer process was cut at H (see `discounted`).

    Examples
    --------
    >>> import oldlight as ol
    >>> stay_or_swap = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]  # [s, a, next s]
    >>> mdp = ol.TabularMDP(stay_or_swap, rewards=[[0, 0], [1, 1]], horizon=3)
    >>> mdp
    TabularMDP(S=2, A=2, H=3, stationary)
    >>> mdp.transitions.shape, mdp.rewards.shape
    ((3, 2, 2, 2), (3, 2, 2))
    """

    transitions: Floats  # [h, s, a, s2]
    rewards: Floats  # [h, s, a]
    initial: Floats  # [s]
    horizon: int
    n_states: int
    n_actions: int

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike,
        *,
        horizon: int,
        initial: ArrayLike | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        truncation_error: float = 0.0,
    ) -> None:
        H = checks.whole("horizon", horizon, least=1)
        P, R = checks.numbers("transitions", transitions), checks.numbers("rewards", rewards)
        if P.ndim not in (3, 4):
            raise ValueError(f"transitions has shape {P.shape}; expected (S, A, S) or (H, S, A, S)")
        S, A = P.shape[-3], P.shape[-2]
        if P.shape[-1] != S:
            raise ValueError(
                f"transitions has shape {P.shape}: {S} states on axis {P.ndim - 3} but {P.shape[-1]} on the last axis; "
                "the axes are (s, a, s'), after an optional step axis"
            )
        if P.ndim == 4 and P.shape[0] != H:
            raise ValueError(f"transitions has {P.shape[0]} steps on its first axis, expected horizon = {H}")
        if R.shape not in ((S, A), (H, S, A)):
            raise ValueError(f"rewards has shape {R.shape}; expected {(S, A)} or {(H, S, A)} to fit the transitions")
        self.horizon = H
        self.n_states = S
        self.n_actions = A
        self.stationary_transitions, self.stationary_rewards = P.ndim == 3, R.ndim == 2
        axes = ("s", "a", "s'") if P.ndim == 3 else ("h", "s", "a", "s'")
        P = checks.frozen(checks.probability_rows("transitions", P, axes))
        R = checks.frozen(checks.finite_array("rewards", R, ("s", "a") if R.ndim == 2 else ("h", "s", "a")))
        largest = np.abs(R).max(axis=(-2, -1))  # of each step, or of all
        with np.errstate(over="ignore"):
            _check_sums(R, float(largest.sum() if R.ndim == 3 else H * largest), f"{H} steps")
        self.stationary = P.ndim == 3 and R.ndim == 2
        self.transitions = np.broadcast_to(P, (H, S, A, S))
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
        self.truncation_error = checks.real("truncation_error", truncation_error)
        if self.truncation_error < 0:
            raise ValueError(f"truncation_error is {self.truncation_error:.12g}, expected a number ≥ 0")
        self._sealed = True

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_sealed", False):
            raise AttributeError(f"a TabularMDP does not change; make a new one (tried to set {name!r})")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return self._parts()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        kind = "stationary" if self.stationary else "per-step"
        return f"TabularMDP(S={self.n_states}, A={self.n_actions}, H={self.horizon}, {kind})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TabularMDP):
            return NotImplemented
        return (
            (self.horizon, self.states, self.actions) == (other.horizon, other.states, other.actions)
            and self.truncation_error == other.truncation_error
            and np.array_equal(self.transitions, other.transitions)
            and np.array_equal(self.rewards, other.rewards)
            and np.array_equal(self.initial, other.initial)
        )

    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> dict[str, Any]:
        """The constructor's arguments, without the repeated step axis."""
        return {
            "transitions": self.transitions[0] if self.stationary_transitions else self.transitions,
            "rewards": self.rewards[0] if self.stationary_rewards else self.rewards,
            "horizon": self.horizon,
            "initial": self.initial,
            "states": self.states,
            "actions": self.actions,
            "truncation_error": self.truncation_error,
        }

    def replace(self, **changes: Any) -> TabularMDP:
        """A copy with some constructor arguments changed, for example ``mdp.replace(initial=[1, 0, 0])``."""
        parts = self._parts()
        unknown = set(changes) - set(parts)
        if unknown:
            raise TypeError(f"replace() does not know {sorted(unknown)[0]!r}; it takes {sorted(parts)}")
        return TabularMDP(**(parts | changes))

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
        """
        u = checks.real("discount", discount)
        if not 0.0 <= u < 1.0:
            raise ValueError(f"discount is {u:.12g}, expected a number in [0, 1)")
        epsilon = checks.positive("tolerance", tolerance)
        R = checks.finite_array("rewards", rewards, ("s", "a"))
        largest = float(np.abs(R).max())
        _check_sums(R, largest / (1 - u), f"discount {u:.12g}")
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
    def from_gymnasium(cls, env: Any, horizon: int) -> TabularMDP:
        """A Gymnasium environment with a transition table (`env.unwrapped.P`), or its name: FrozenLake, CliffWalking, Taxi, ...

        A state that ends the episode absorbs: every action stays there with reward zero. If such a state is also
        entered without the episode ending, the ending goes to one extra state named "end".
        """
        return cls(**tables.gymnasium_table(env), horizon=horizon)

    @classmethod
    def from_dict(
        cls,
        table: Mapping[Any, Mapping[Any, Iterable[Sequence[Any]]]],
        *,
        horizon: int,
        initial: Mapping[Any, float] | None = None,
    ) -> TabularMDP:
        """``{state: {action: [(p, next_state, reward), ...]}}``; keys may be any names.

        Every state needs every action. `initial` maps states to probabilities (uniform if None).
        """
        return cls(**tables.dict_table(table, initial), horizon=horizon)

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], *, horizon: int, initial: Mapping[Any, float] | None = None
    ) -> TabularMDP:
        """A CSV file with the columns s, a, s', p, r (a header line; ``s2`` or ``next`` also name the next state)."""
        return cls(**tables.csv_table(path, initial), horizon=horizon)

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `path`.npz (the arrays) and `path`.toml (sizes, names and where the arrays are, for people)."""
        arrays_path, text_path = _file_pair(path)
        parts = self._parts()
        checks.save_arrays(arrays_path, **{k: parts[k] for k in ("transitions", "rewards", "initial")})
        lines = [
            "# a finite episodic decision process; the arrays are in the npz file beside this one",
            'kind = "oldlight.TabularMDP"',
            "version = 1",
            f"arrays = {_quote(arrays_path.name)}",
            f"horizon = {self.horizon}",
            f"n_states = {self.n_states}",
            f"n_actions = {self.n_actions}",
            f"stationary = {'true' if self.stationary else 'false'}",
            f"truncation_error = {self.truncation_error!r}",
            f"reward_range = [{float(self.rewards.min())!r}, {float(self.rewards.max())!r}]",
        ]
        for key, labels in (("states", self.states), ("actions", self.actions)):
            if labels is not None:
                lines.append(f"{key} = [{', '.join(_quote(label) for label in labels)}]")
        return checks.write_text(text_path, "\n".join(lines) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TabularMDP:
        """Read what `save` wrote; `path` with or without .toml/.npz."""
        _, text_path = _file_pair(path)
        head = _head(text_path)
        H, S, A = (head[key] for key in ("horizon", "n_states", "n_actions"))
        source = files.inside(text_path, "arrays", head["arrays"])
        with files.arrays_in(source) as held:
            found = held.shape("transitions")
            if found[-2:] != (A, S):
                raise files.UnreadableFile(
                    f"{text_path} has {S} states and {A} actions, but {source} has transitions of shape {found}: the two "
                    "files do not belong together"
                )
            parts: dict[str, Any] = {
                "transitions": held.array("transitions", "biuf", (S, A, S), (H, S, A, S)),
                "rewards": held.array("rewards", "biuf", (S, A), (H, S, A)),
                "initial": held.array("initial", "biuf", (S,)),
            }
        with files.reading(f"{text_path} with {source.name}", "process file"):
            parts |= {key: head[key] for key in ("states", "actions", "truncation_error") if key in head}
            return cls(**parts, horizon=H)


def _head(path: Path) -> dict[str, Any]:
    """What the TOML file of a process holds, checked."""
    head = files.read_toml(path, "process file")
    if head.get("kind") != "oldlight.TabularMDP":
        raise files.UnreadableFile(f"{path}: kind is {head.get('kind')!r}, expected 'oldlight.TabularMDP'")
    if head.get("version") != 1:
        raise files.UnreadableFile(f"{path}: version is {head.get('version')!r}; this oldlight reads version 1")
    for key, kind in (("arrays", str), ("horizon", int), ("n_states", int), ("n_actions", int)):
        if not isinstance(head.get(key), kind):
            found = f"is {head[key]!r}" if key in head else "is missing"
            expected = "word" if kind is str else "whole number"
            raise files.UnreadableFile(f"{path}: {key} {found}, expected a {expected}")
    return head


def _check_sums(R: Floats, most: float, over: str) -> None:
    """Refuse rewards whose sums, and differences of such sums, are too large for a number; `most` is the largest |Σ_h r_h|."""
    limit = float(np.finfo(np.float64).max) / 2
    if not most <= limit:
        index = [int(i) for i in np.unravel_index(int(np.abs(R).argmax()), R.shape)]
        where = ", ".join(f"{axis}={i}" for axis, i in zip(("h", "s", "a")[-R.ndim :], index, strict=True))
        raise ValueError(
            f"rewards[{where}] is {float(R[tuple(index)]):.12g}: the rewards of an episode ({over}) add up to {most:.6g}, expected "
            f"at most {limit:.6g} in absolute value; measure rewards in larger units"
        )


def _file_pair(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    base = Path(path)
    if base.suffix in (".toml", ".npz"):
        base = base.with_suffix("")
    return base.with_name(base.name + ".npz"), base.with_name(base.name + ".toml")


def _quote(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
