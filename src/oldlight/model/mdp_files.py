"""A process as two files: `name`.npz with the arrays, and `name`.toml with sizes, names and where the arrays are, for people.

A dense process has the array `transitions`, axes (s, a, s2) or (h, s, a, s2). A sparse one has three instead: step i (there is one if they do
not change with time), row s·A + a has the successors successor[first[i, row] : first[i, row + 1]] with the probabilities probability[..], and
the places count through all steps. Whatever the files hold, loading works or raises `UnreadableFile`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from oldlight import checks, files
from oldlight.model.held_steps import HeldSteps

if TYPE_CHECKING:
    from oldlight.model.mdp import TabularMDP

Process = TypeVar("Process", bound="TabularMDP")
# by `sparse`: an oldlight that knows dense ones alone refuses a sparse one by its version
VERSIONS = {False: 1, True: 2}


def save(mdp: TabularMDP, parts: dict[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write both files; parts: the arguments of the constructor."""
    arrays_path, text_path = _file_pair(path)
    arrays = {key: parts[key] for key in ("rewards", "initial")}
    arrays |= HeldSteps.of(mdp).to_arrays() if mdp.sparse else {"transitions": parts["transitions"]}
    checks.save_arrays(arrays_path, **arrays)
    lines = [
        "# a finite episodic decision process; the arrays are in the npz file beside this one",
        'kind = "oldlight.TabularMDP"',
        f"version = {VERSIONS[mdp.sparse]}",
        f"arrays = {_quote(arrays_path.name)}",
        *([] if mdp.horizon is None else [f"horizon = {mdp.horizon}"]),
        *([] if mdp.discount is None else [f"discount = {mdp.discount!r}"]),
        *(["average = true"] if mdp.average else []),
        f"n_states = {mdp.n_states}",
        f"n_actions = {mdp.n_actions}",
        f"stationary = {'true' if mdp.stationary else 'false'}",
        f"truncation_error = {mdp.truncation_error!r}",
        f"reward_range = [{float(mdp.rewards.min())!r}, {float(mdp.rewards.max())!r}]",
    ]
    for key, labels in (("states", mdp.states), ("actions", mdp.actions)):
        if labels is not None:
            lines.append(f"{key} = [{', '.join(_quote(label) for label in labels)}]")
    return checks.write_text(text_path, "\n".join(lines) + "\n")


def load(kind: type[Process], path: str | os.PathLike[str]) -> Process:
    """The process of that class."""
    _, text_path = _file_pair(path)
    head = _head(text_path)
    H, S, A = head.get("horizon"), head["n_states"], head["n_actions"]
    source = files.inside(text_path, "arrays", head["arrays"])
    with files.arrays_in(source) as held:
        if head["version"] == VERSIONS[False]:
            found = held.shape("transitions")
            if found[-2:] != (A, S):
                raise _other(text_path, source, S, A, f"transitions of shape {found}")
            P: Any = held.array("transitions", "biuf", (S, A, S), *([] if H is None else [(H, S, A, S)]))
        else:
            rows = held.shape("first")
            if rows[-1:] != (S * A + 1,):
                raise _other(text_path, source, S, A, f"lists of successors of shape {rows}")
            P = _matrices(held, H, S, A)
        parts: dict[str, Any] = {
            "transitions": P,
            "rewards": held.array("rewards", "biuf", (S, A), *([] if H is None else [(H, S, A)])),
            "initial": held.array("initial", "biuf", (S,)),
        }
    with files.reading(f"{text_path} with {source.name}", "process file"):
        more = ("states", "actions", "truncation_error", "discount", "average")
        parts |= {key: head[key] for key in more if key in head}
        return kind(**parts, horizon=H)


def _matrices(held: files.Arrays, H: int | None, S: int, A: int) -> Any:
    """The sparse matrices, after the three arrays were found to fit together."""
    from scipy.sparse import csr_array

    first = held.array("first", "iu", (1, S * A + 1), *([] if H is None else [(H, S * A + 1)])).astype(np.int64)
    successor, p = held.array("successor", "iu", (None,)), held.array("probability", "f", (None,))
    whole = np.concatenate([first[:, 0], first[-1:, -1]])
    fits = whole[0] == 0 and whole[-1] == len(p) == len(successor) and np.array_equal(first[:-1, -1], first[1:, 0])
    if not fits or (np.diff(first, axis=1) < 0).any():
        raise ValueError("'first' does not say where each list of 'successor' and 'probability' begins")
    if not checks.within(successor, 0, S):
        raise ValueError(f"'successor' has states outside 0..{S - 1}")
    steps = [
        csr_array((p[row[0] : row[-1]], successor[row[0] : row[-1]].astype(np.int64), row - row[0]), shape=(S * A, S))
        for row in first
    ]
    return steps[0] if len(steps) == 1 else steps


def _other(text_path: Path, source: Path, S: int, A: int, found: str) -> files.UnreadableFile:
    return files.UnreadableFile(
        f"{text_path} has {S} states and {A} actions, but {source} has {found}: the two files do not belong together"
    )


def _head(path: Path) -> dict[str, Any]:
    """What the TOML file of a process holds, checked."""
    head = files.read_toml(path, "process file")
    if head.get("kind") != "oldlight.TabularMDP":
        raise files.UnreadableFile(f"{path}: kind is {head.get('kind')!r}, expected 'oldlight.TabularMDP'")
    if head.get("version") not in VERSIONS.values():
        raise files.UnreadableFile(f"{path}: version is {head.get('version')!r}; this oldlight reads versions 1 and 2")
    forever = "horizon" not in head and ("discount" in head or head.get("average") is True)
    for key, kind in (("arrays", str), ("horizon", int), ("n_states", int), ("n_actions", int)):
        if key == "horizon" and forever:
            continue
        if not isinstance(head.get(key), kind):
            found = f"is {head[key]!r}" if key in head else "is missing"
            expected = "word" if kind is str else "whole number"
            raise files.UnreadableFile(f"{path}: {key} {found}, expected a {expected}")
    return head


def _file_pair(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    base = Path(path)
    if base.suffix in (".toml", ".npz"):
        base = base.with_suffix("")
    return base.with_name(base.name + ".npz"), base.with_name(base.name + ".toml")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
