"""PRISM's explicit files, as the arguments of `TabularMDP`.

    .tra    "states choices transitions", then "state choice next probability [action]" per line (an MDP);
            "states transitions", then "state next probability" (a Markov chain: one action)
    .lab    0="init" 1="deadlock" .., then "state: label label .."; the first state is one of those called init, uniformly, or state 0
    .sta    "(x,y)", then "0:(0,1)": the names of the states
    .srew   "states entries", then "state reward": earned at every step spent there
    .trew   "states choices entries", then "state choice next reward" (a chain: "states entries", "state next reward")

Lines that begin with ``#`` are comments. The reward of a step is that of its state plus that of its transition, averaged over next states:
what PRISM calls C<=H. Choices are matched across states by their action where every choice of a state has one of its own, else by their number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from oldlight import checks, files
from oldlight.arrays import Floats
from oldlight.model.table_size import check_room

BESIDE = ("lab", "sta", "srew", "trew")
MISSING = ("first", "stay")
LABEL = re.compile(r'(\d+)="([^"]*)"')


def wrong(path: str | os.PathLike[str], line: int, words: str) -> NoReturn:
    """The one refusal of such a file."""
    raise ValueError(f"{path}, line {line}: {words}")


def prism_table(
    path: str | os.PathLike[str], missing: str, others: Mapping[str, str | os.PathLike[str] | None]
) -> dict[str, Any]:
    """The process of a .tra file and those beside it; see the module's text."""
    checks.one_of("missing", missing, MISSING)
    for name in others:
        checks.one_of("a file beside the .tra file", name, BESIDE)
    beside = {kind: Path(path).with_suffix(f".{kind}") for kind in BESIDE}
    found: dict[str, Any] = {kind: file if file.is_file() else None for kind, file in beside.items()} | dict(others)
    S, rows, labels = _transitions(path)
    choices = _choices(rows, labels)
    actions = list(dict.fromkeys(choices.values()))
    if all(isinstance(a, int) for a in actions):
        actions.sort()
    a_of, A = {a: i for i, a in enumerate(actions)}, len(actions)
    check_room(path, f"a table of {S:,} states and {A:,} actions", S, A, S)
    P, R = np.zeros((S, A, S)), np.zeros((S, A))
    for s, c, s2, p, _ in rows:
        P[s, a_of[choices[s, c]], s2] += p
    _check_sums(path, P, choices, a_of)
    P /= np.where(P.sum(axis=-1, keepdims=True) > 0, P.sum(axis=-1, keepdims=True), 1.0)
    if found["trew"] is not None:
        for number, (s, c, s2, r) in _entries(found["trew"], S):
            if (s, c) not in choices:
                wrong(found["trew"], number, f"state {s} has no choice {c} in {path}")
            R[s, a_of[choices[s, c]]] += P[s, a_of[choices[s, c]], s2] * r
    state_reward = np.zeros(S) if found["srew"] is None else _state_rewards(found["srew"], S)
    for s in range(S):
        here = sorted(c for c in range(A + 1) if (s, c) in choices)
        lacking = sorted(set(range(A)) - {a_of[choices[s, c]] for c in here})
        if here and missing == "first":
            first = a_of[choices[s, here[0]]]
            P[s, lacking], R[s, lacking] = P[s, first], R[s, first]
        else:  # or a state without any choice: a deadlock
            P[s, lacking, s] = 1.0
    R += state_reward[:, None]
    names = None if found["sta"] is None else _state_names(found["sta"], S)
    words = None if all(isinstance(a, int) for a in actions) else [str(a) for a in actions]
    initial = np.eye(S)[0] if found["lab"] is None else _initial(found["lab"], S)
    return {"transitions": P, "rewards": R, "initial": initial, "states": names, "actions": words}


def _lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    lines = [(i, line.strip()) for i, line in enumerate(files.read_text(path).splitlines(), start=1)]
    lines = [(i, line) for i, line in lines if line and not line.startswith("#")]
    return lines or wrong(path, 1, "the file is empty")


def _parse(path: str | os.PathLike[str], number: int, line: str, whole: int, form: str) -> list[Any]:
    """`whole` numbers of states and choices, and one real number after them; the rest are words."""
    words = line.split()
    if len(words) < whole + 1:
        wrong(path, number, f"{line!r}, expected {form}")
    try:
        return [*map(int, words[:whole]), float(words[whole]), *words[whole + 1 :]]
    except ValueError:
        wrong(path, number, f"{line!r}, expected {form}")


def _header(path: str | os.PathLike[str], line: tuple[int, str], allowed: tuple[int, ...]) -> list[int]:
    words = line[1].split()
    if len(words) not in allowed or not all(map(str.isdigit, words)):
        wrong(
            path,
            line[0],
            f"{line[1]!r}, expected {' or '.join(map(str, allowed))} whole numbers: states, choices, entries",
        )
    return list(map(int, words))


def _state(path: str | os.PathLike[str], number: int, s: int, S: int) -> int:
    return s if 0 <= s < S else wrong(path, number, f"state {s}, expected 0..{S - 1}")


def _transitions(
    path: str | os.PathLike[str],
) -> tuple[int, list[tuple[int, int, int, float, int]], dict[tuple[int, int], str]]:
    """(S, (state, choice, next, probability, line), the action of each choice that has one)."""
    head, *lines = _lines(path)
    sizes = _header(path, head, (2, 3))
    S, chain = sizes[0], len(sizes) == 2
    form = "state next probability" if chain else "state choice next probability [action]"
    rows, labels = [], {}
    for number, line in lines:
        *place, p, _word = [*_parse(path, number, line, 2 if chain else 3, form), ""][: 4 if chain else 5]
        s, c, s2 = (place[0], 0, place[1]) if chain else place
        words = line.split()
        if not chain and len(words) > 4:
            labels[s, c] = words[4]
        if not 0.0 <= p <= 1.0:
            wrong(path, number, f"probability {p:.12g}, expected a number in [0, 1]")
        rows.append((_state(path, number, s, S), c, _state(path, number, s2, S), p, number))
    if len(rows) != sizes[-1]:
        wrong(path, head[0], f"{sizes[-1]} transitions are announced, {len(rows)} are there; is the file complete?")
    return S, rows, labels


def _choices(
    rows: list[tuple[int, int, int, float, int]], labels: dict[tuple[int, int], str]
) -> dict[tuple[int, int], Any]:
    """The action of each (state, choice): its label where these tell all choices of every state apart, else its number."""
    pairs = dict.fromkeys((s, c) for s, c, *_ in rows)
    named = [(s, labels.get((s, c))) for s, c in pairs]
    if all(label is not None for _, label in named) and len(set(named)) == len(named):
        return {pair: labels[pair] for pair in pairs}
    return {(s, c): c for s, c in pairs}


def _check_sums(
    path: str | os.PathLike[str], P: Floats, choices: dict[tuple[int, int], Any], a_of: dict[Any, int]
) -> None:
    for (s, c), action in choices.items():
        total = float(P[s, a_of[action]].sum())
        if abs(total - 1.0) > 1e-5:  # such files have few digits
            wrong(path, 1, f"probabilities of state {s}, choice {c} sum to {total:.9g}, expected 1")


def _entries(path: Any, S: int) -> list[tuple[int, list[Any]]]:
    """The lines of a .trew file: (line, [state, choice, next, reward])."""
    head, *lines = _lines(path)
    chain = len(_header(path, head, (2, 3))) == 2
    out = []
    for number, line in lines:
        found = _parse(
            path, number, line, 2 if chain else 3, "state next reward" if chain else "state choice next reward"
        )
        s, c, s2, r = (found[0], 0, *found[1:3]) if chain else found[:4]
        out.append(
            (
                number,
                [
                    _state(path, number, s, S),
                    c,
                    _state(path, number, s2, S),
                    checks.real(f"{path}, line {number}: reward", r),
                ],
            )
        )
    return out


def _state_rewards(path: Any, S: int) -> Floats:
    head, *lines = _lines(path)
    _header(path, head, (2,))
    values = np.zeros(S)
    for number, line in lines:
        s, r = _parse(path, number, line, 1, "state reward")[:2]
        values[_state(path, number, s, S)] += checks.real(f"{path}, line {number}: reward", r)
    return values


def _initial(path: Any, S: int) -> Floats:
    head, *lines = _lines(path)
    init = next((int(number) for number, name in LABEL.findall(head[1]) if name == "init"), None)
    weights = np.zeros(S)
    for number, line in lines:
        s, colon, labels = line.partition(":")
        if not colon or not s.strip().isdigit() or not all(word.isdigit() for word in labels.split()):
            wrong(path, number, f"{line!r}, expected state: label label ..")
        weights[_state(path, number, int(s), S)] = float(str(init) in labels.split())
    if not weights.any():
        wrong(path, head[0], 'no state is called "init"')
    return np.asarray(weights / weights.sum())


def _state_names(path: Any, S: int) -> list[str]:
    head, *lines = _lines(path)
    names = [""] * S
    for number, line in lines:
        s, colon, name = line.partition(":")
        if not colon or not s.strip().isdigit():
            wrong(path, number, f"{line!r}, expected state:{head[1]}")
        names[_state(path, number, int(s), S)] = name.strip()
    if "" in names:
        wrong(path, head[0], f"state {names.index('')} has no name")
    return names
