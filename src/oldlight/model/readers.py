"""Transition tables from elsewhere, as the arguments of `TabularMDP`: Gymnasium's, a dictionary's, a CSV file's.

They are read as triples; a process whose dense array would be large, and larger than the sparse form, is sparse
(`oldlight.model.transitions.smaller`).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oldlight import checks, files, machine
from oldlight.model.transitions import COLUMNS, smaller

Arguments = dict[str, Any]


def gymnasium_table(env: Any) -> Arguments:
    """A Gymnasium environment with a transition table (`env.unwrapped.P`): FrozenLake, CliffWalking, Taxi, ...

    A state that ends the episode absorbs: every action stays there with reward zero. If such a state is also
    entered without the episode ending, the ending goes to one extra state named "end".
    """
    if isinstance(env, str):
        import gymnasium

        try:
            env = gymnasium.make(env)
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"there is no Gymnasium environment {env!r}: {error}") from error
    base = getattr(env, "unwrapped", env)
    table = getattr(base, "P", None)
    if not isinstance(table, Mapping):
        raise ValueError(
            f"{type(base).__name__} has no transition table `P`; from_gymnasium reads toy-text environments such "
            "as FrozenLake-v1. For any other environment build the arrays and call TabularMDP(...)"
        )
    S, A = len(table), len(table[0])
    initial = getattr(base, "initial_state_distrib", None)
    rho = np.full(S, 1.0 / S) if initial is None else np.asarray(initial, dtype=np.float64)
    outcomes = {
        (s, a): [(int(s2), bool(done)) for p, s2, _, done in table[s][a] if p > 0] for s in table for a in table[s]
    }
    open_states = {int(s) for s in np.flatnonzero(rho)}  # entered while the episode goes on
    todo = list(open_states)
    while todo:
        s = todo.pop()
        fresh = {s2 for a in range(A) for s2, done in outcomes[s, a] if not done} - open_states
        open_states |= fresh
        todo += fresh
    ends = {s2 for s in open_states for a in range(A) for s2, done in outcomes[s, a] if done}
    mixed = ends & open_states
    n = S + (1 if mixed else 0)
    moves: list[tuple[int, int, int, float]] = []
    R = np.zeros((n, A))
    for s in range(S):
        for a in range(A):
            if s not in open_states:  # an end, or never entered
                moves.append((s, a, s, 1.0))
                continue
            for p, s2, r, done in table[s][a]:
                moves.append((s, a, S if done and int(s2) in mixed else int(s2), p))
                R[s, a] += p * r
    states = None
    if mixed:
        moves += [(S, a, S, 1.0) for a in range(A)]
        rho = np.append(rho, 0.0)
        states = [*(str(s) for s in range(S)), "end"]
    columns = dict(zip(COLUMNS, map(np.array, zip(*moves, strict=True)), strict=True))
    return {"transitions": smaller(columns, n, A), "rewards": R, "initial": rho / rho.sum(), "states": states}


def dict_table(
    table: Mapping[Any, Mapping[Any, Iterable[Sequence[Any]]]], initial: Mapping[Any, float] | None
) -> Arguments:
    """``{state: {action: [(p, next_state, reward), ...]}}``; keys may be any names.

    Every state needs every action. `initial` maps states to probabilities (uniform if None).
    """
    rows = []
    for s, acts in table.items():
        for a, outcomes in acts.items():
            for outcome in outcomes:
                if not isinstance(outcome, Sequence) or len(outcome) != 3:
                    raise ValueError(f"table[{s!r}][{a!r}] has {outcome!r}, expected (p, next state, reward)")
                p, s2, r = outcome
                rows.append(
                    (
                        s,
                        a,
                        s2,
                        checks.probability(f"table[{s!r}][{a!r}]: p", p),
                        checks.real(f"table[{s!r}][{a!r}]: r", r),
                    )
                )
    return _from_rows(rows, list(table), initial)


def csv_table(path: str | os.PathLike[str], initial: Mapping[Any, float] | None) -> Arguments:
    """A CSV file with the columns s, a, s', p, r (a header line; ``s2`` or ``next`` also name the next state)."""
    text = files.read_text(path)
    with files.reading(path, "table in CSV"):
        reader = csv.DictReader(text.splitlines())
        header = [c.strip() for c in reader.fieldnames or []]
        reader.fieldnames = header
        lines = [(reader.line_num, line) for line in reader]
    following = next((c for c in ("s'", "s2", "next") if c in header), None)
    missing = [c for c in ("s", "a", "p", "r") if c not in header] + ([] if following else ["s'"])
    if missing or following is None:
        raise ValueError(f"{path}: column {missing[0]!r} is missing; expected the columns s, a, s', p, r")
    rows = []
    for number, line in lines:
        where = f"{path}, line {number}"
        cells = [line[c] for c in ("s", "a", following)]
        if None in cells or line["p"] is None or line["r"] is None:
            raise ValueError(f"{where}: too few columns; expected s, a, s', p, r")
        p, r = checks.probability(f"{where}: p", line["p"]), checks.real(f"{where}: r", line["r"])
        rows.append((*(cell.strip() for cell in cells), p, r))
    try:
        return _from_rows(rows, [], initial)
    except ValueError as error:
        raise type(error)(f"{path}: {error}") from None


def _from_rows(rows: list[Any], order: list[Any], initial: Mapping[Any, float] | None) -> Arguments:
    if not rows:
        raise ValueError("the table has no transitions; expected at least one (s, a, s', p, r)")
    states = list(dict.fromkeys([*order, *(row[0] for row in rows), *(row[2] for row in rows)]))
    actions = list(dict.fromkeys(row[1] for row in rows))
    s_of = {s: i for i, s in enumerate(states)}
    a_of = {a: i for i, a in enumerate(actions)}
    size, limit = 8 * len(states) * len(actions), machine.default_limit()
    if size > limit:
        raise checks.TooLarge(
            f"{len(states):,} states and {len(actions):,} actions make a table of rewards of {machine.format_bytes(size)}; it may take "
            f"{machine.format_bytes(limit)}, half of the memory. Are the columns of states right?"
        )
    S, A = len(states), len(actions)
    s = np.array([s_of[row[0]] for row in rows])
    a = np.array([a_of[row[1]] for row in rows])
    s2 = np.array([s_of[row[2]] for row in rows])
    p, r = (np.array([row[i] for row in rows], dtype=np.float64) for i in (3, 4))
    pair = s * A + a
    R, totals = (np.bincount(pair, x, S * A).reshape(S, A) for x in (p * r, p))
    wrong = np.abs(totals - 1.0) > checks.SUM_TOLERANCE
    if wrong.any():
        i, j = (int(x) for x in np.argwhere(wrong)[0])
        raise ValueError(
            f"probabilities of (s={states[i]}, a={actions[j]}) sum to {totals[i, j]:.12g}, expected 1 ± "
            f"{checks.SUM_TOLERANCE:g}; every state needs every action (a state that ends the episode: stay, p=1, r=0)"
        )
    rho = None
    if initial is not None:
        rho = np.zeros(len(states))
        for name, weight in initial.items():
            if name not in s_of:
                raise ValueError(f"initial names the unknown state {name!r}; the states are {states[:8]}")
            rho[s_of[name]] = checks.probability(f"initial[{name!r}]", weight)
    names = ([str(s) for s in states], [str(a) for a in actions])
    P = smaller({"s": s, "a": a, "s2": s2, "p": p}, S, A)
    return {"transitions": P, "rewards": R, "initial": rho, "states": names[0], "actions": names[1]}
