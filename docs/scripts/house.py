"""The house in numbers and as a picture.

    python docs/scripts/house.py measure [FOLDER ...]    files, lines, longest function, most arguments, what stands twice
    python docs/scripts/house.py draw docs/imports.svg   which package imports which, as a picture
    python docs/scripts/house.py same [--guides] OLD NEW lines of code that two clones need for the same features

`measure` reads Python files below `src` of each folder (this clone if none is given) as text, so it can compare two commits in
two work trees; a kernel may have the name of the module that it serves. `draw` needs grimp, which comes with import-linter; the order of the packages is that of the import rule in
pyproject.toml.

`same` does the jobs of docs/scripts/same_features.py in each clone and counts the lines of code that were executed, and those of all functions
that were entered. Its tiny jobs run with NUMBA_DISABLE_JIT=1, so that the loops of the kernels are counted line by line; with --guides the guides of
each clone and the paper's quick study are run too, compiled. A definition counts if its function was entered; tables and constants of a module count once it is imported;
docstrings, comments, imports and blank lines never do. It needs `coverage` (in the extra `dev`), takes some minutes and works in a temporary folder.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
BY_FEATURE = """what serves only features that came after the packages
    links without a delay law: model/channels/age_chain.py model/channels/automaton.py model/channels/capped_link.py model/channels/fifo.py
        model/channels/held_lag.py model/channels/hidden.py model/channels/in_order.py model/channels/link_text.py model/channels/messages.py
        model/channels/packets.py model/channels/periodic.py model/channels/renewal.py model/channels/without_law.py model/channels/later_link.py
        model/age_layers.py model/link_*.py kernels/ages.py kernels/graph.py kernels/search.py kernels/belief_table.py control/link_choice.py
        planning/ages.py planning/group_walk.py planning/link_*.py planning/search.py planning/table_walk.py planning/walk.py planning/informed.py
        simulation/link_*.py simulation/channel_check.py envs/typical_age.py envs/outside.py
    recordings: traces/age_plan.py traces/candidates.py traces/comparison.py traces/counted.py traces/following.py traces/measured.py
        traces/replay.py traces/ticks.py traces/read_json.py traces/read_table.py testbed/recorded.py
    for ever: planning/stationary*.py model/stationary_policy.py model/channels/endless.py planning/holding.py simulation/cut.py kernels/stationary_tables.py
    size: model/transitions.py model/table_size.py planning/large_loss.py planning/law_rows.py planning/scratch.py
        learners/run_memory.py simulation/simulated_bytes.py model/sources.py model/log_*.py model/cassandra.py model/prism.py instances/icu.py
    compiled blocks of episodes: learners/episode_blocks.py kernels/episode_blocks.py kernels/short_blocks.py kernels/long_blocks.py kernels/augmented_blocks.py
        kernels/optimistic_now.py planning/table_values.py cli/compiling.py
    requirements and the explorer: planning/requirement*.py planning/impairments.py planning/neighbouring_links.py planning/known_points.py
        planning/frontier.py planning/sensitivity.py traces/links_compared.py traces/channel_comparison.py cli/need.py cli/explorer.py explore/*
    practice: cli/grids.py envs/impaired_parts.py envs/action_link.py envs/late_part.py deep/grid_plan.py deep/forward_model.py deep/link_log.py
        envs/drawn_link.py envs/grid*.py envs/impaired_action.py envs/impaired_vector.py envs/link_statistics.py envs/model_policy.py model/channels/milliseconds.py
    learning behind links, certificates, tidy tables: learners/default_learner.py learners/hidden_steps.py learners/learnt_*.py learners/link_*.py
        kernels/link_counts.py kernels/link_learner.py kernels/optimistic_model.py
        learners/optimistic_model.py learners/stopping.py simulation/link_world.py studies/frames.py
    trust: own_code.py studies/trust.py files.py cli/terminal.py kernels/cache.py testing.py
    the paper's figure anew: paper/paper_regret.py
"""
LATER = tuple(word for word in BY_FEATURE.split() if "/" in word or word.endswith(".py"))
SURFACE = ("to_dict", "plot", "__repr__", "__str__")  # which every result has since


def code_of(text: str) -> list[str]:
    """The lines that are code: no docstrings, comments and blank lines; nor lines of imports and lists of names."""
    skipped = not_code(text)
    return [line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in skipped]


def not_code(text: str) -> set[int]:
    """The numbers of the other lines."""
    skipped = {i for i, line in enumerate(text.splitlines(), 1) if not line.strip() or line.strip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node):
            skipped.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return skipped


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def length(function: ast.FunctionDef) -> int:
    """Lines without the docstring."""
    said = function.body[0]
    documented = ast.get_docstring(function) is not None
    return (function.end_lineno or 0) - function.lineno + 1 - documented * ((said.end_lineno or 0) - said.lineno + 1)


def statements(text: str) -> int:
    """Statements but imports and docstrings, those of SURFACE left out: a number that does not depend on where lines are broken."""

    def counted(node: ast.AST) -> int:
        if isinstance(node, ast.Import | ast.ImportFrom) or getattr(node, "name", "") in SURFACE:
            return 0
        return (isinstance(node, ast.stmt) and not is_docstring(node)) + sum(map(counted, ast.iter_child_nodes(node)))

    return counted(ast.parse(text))


def repeated(codes: dict[str, list[str]], run: int = 6) -> int:
    """Lines of code that stand in a run of six or more which stands elsewhere too."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for name, code in codes.items():
        for i in range(len(code) - run + 1):
            places.setdefault(tuple(code[i : i + run]), []).append((name, i))
    twice = [place for found in places.values() if len(found) > 1 for place in found]
    return len({(name, i + k) for name, i in twice for k in range(run)})


def measure(folder: Path) -> dict[str, str]:
    """What a maintainer would look at first; modules that only name where one has moved are left out."""
    root = folder / "src" / "oldlight"
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    texts = {name: text for name, text in texts.items() if not text.startswith('"""Renamed: ')}
    functions: list[tuple[int, str]] = []
    arguments: list[tuple[int, str]] = []
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                functions.append((length(node), f"{name}:{node.name}"))
                arguments.append((len(node.args.posonlyargs) + len(node.args.args), f"{name}:{node.name}"))
    codes = {name: code_of(text) for name, text in texts.items()}
    lengths = {name: len(text.splitlines()) for name, text in texts.items()}
    names = Counter(Path(name).name for name in texts if not name.startswith("kernels/") and "__" not in name)
    longest = max(lengths, key=lambda name: lengths[name])
    same = [name for name in texts if not any(fnmatch(name, pattern) for pattern in LATER)]
    return {
        "files": str(len(texts)),
        "lines": f"{sum(lengths.values()):,}",
        "lines of code (no docstrings, comments, imports)": f"{sum(map(len, codes.values())):,}",
        "the same without modules of later features": f"{sum(len(codes[name]) for name in same):,}",
        "its statements, without `to_dict`, `plot`, `__repr__`": f"{sum(statements(texts[name]) for name in same):,}",
        "longest file": f"{longest} ({lengths[longest]})",
        "longest function, without its docstring": "{1} ({0})".format(*max(functions)),
        "functions over 60 lines": str(sum(n > 60 for n, _ in functions)),
        "most positional arguments": "{1} ({0})".format(*max(arguments)),
        "functions with more than 8": str(sum(n > 8 for n, _ in arguments)),
        "lines of code in runs of six that stand twice": str(repeated(codes)),
        "file names used twice": ", ".join(sorted(name for name, n in names.items() if n > 1)) or "none",
    }


def run_jobs(folder: Path, kinds: tuple[str, ...]) -> dict[str, set[int]]:
    """The jobs of same_features.py in a clone, child processes included: the lines of each of its modules that were executed."""
    from coverage import CoverageData

    root, script = folder.resolve() / "src", Path(__file__).with_name("same_features.py")
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch, "coverage.ini")
        settings.write_text(
            f"[run]\nparallel = true\npatch = subprocess, _exit\nsigterm = true\ndata_file = {scratch}/lines\ninclude = {root}/*\n",
            encoding="utf-8",
        )
        for kind in kinds:
            place = Path(scratch, kind)
            place.mkdir()
            command = [
                sys.executable,
                "-m",
                "coverage",
                "run",
                f"--rcfile={settings}",
                str(script),
                kind,
                str(folder.resolve()),
            ]
            env = os.environ | {
                "PYTHONPATH": str(root),
                "NUMBA_DISABLE_JIT": str(int(kind == "tiny")),
            }
            subprocess.run(command, cwd=place, env=env, check=True, stdout=subprocess.DEVNULL)
        found: dict[str, set[int]] = {}
        for file in Path(scratch).glob("lines.*"):
            data = CoverageData(basename=str(file))
            data.read()
            for name in data.measured_files():
                found.setdefault(name, set()).update(data.lines(name) or ())
    return {Path(name).relative_to(root).as_posix(): lines for name, lines in found.items()}


def needed(text: str, executed: set[int]) -> tuple[int, int]:
    """Lines of code of the statements that were executed, and of the functions that were entered with what surrounds them."""
    tree, skipped = ast.parse(text), not_code(text)

    def lines(first: int, last: int) -> set[int]:
        return set(range(first, last + 1)) - skipped

    def entered(node: ast.AST) -> bool:
        body = [child for child in getattr(node, "body", ()) if not is_docstring(child)]
        return any(executed & set(range(child.lineno, child.end_lineno + 1)) for child in body)

    def header(node: ast.stmt) -> set[int]:
        """A statement without those inside it."""
        inner = [
            child for child in ast.walk(node) if child is not node and isinstance(child, ast.stmt | ast.ExceptHandler)
        ]
        own = lines(min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]), node.end_lineno or 0)
        return own.difference(*(range(child.lineno, (child.end_lineno or 0) + 1) for child in inner))

    run: set[int] = set()
    whole: set[int] = set()

    def visit(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                if entered(child):
                    run.update(header(child))
                    whole.update(lines(child.lineno, child.end_lineno or 0))
                    visit(child, True)
            else:
                if isinstance(child, ast.stmt) and executed & set(range(child.lineno, (child.end_lineno or 0) + 1)):
                    mine = header(child)
                    if executed & mine or isinstance(child, ast.ClassDef | ast.Try):
                        run.update(mine)
                        whole.update(mine)
                visit(child, inside)

    visit(tree, False)
    return len(run), len(whole | run)


def same(folders: list[Path], kinds: tuple[str, ...]) -> None:
    """Print what each clone needs for the same jobs, package by package."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for i, folder in enumerate(folders):
        for name, executed in run_jobs(folder, kinds).items():
            text = (folder / "src" / name).read_text(encoding="utf-8")
            part = Path(name).parts[1] if len(Path(name).parts) > 2 else "single modules"
            row = rows.setdefault(part, [(0, 0)] * len(folders))
            row[i] = tuple(map(sum, zip(row[i], needed(text, executed), strict=True)))  # type: ignore[assignment]
    print("| | " + " | ".join(f"{folder.resolve().name}: executed | functions entered" for folder in folders) + " |")
    print("|---|" + "---|---|" * len(folders))
    rows["all"] = [tuple(sum(row[i][k] for row in rows.values()) for k in (0, 1)) for i in range(len(folders))]  # type: ignore[misc]
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(f"{a:,} | {b:,}" for a, b in row) + " |")


def layers() -> list[str]:
    """The packages in the order of the import rule, those that others build on first."""
    rules = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    order = next(rule["layers"] for rule in rules if rule["type"] == "layers")
    return [name.removeprefix("oldlight.") for name in reversed(order)]


def draw(target: Path) -> None:
    """One box per package from left (what others build on) to right; a line's width grows with the number of imports."""
    import grimp
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    order = layers()
    graph = grimp.build_graph("oldlight", exclude_type_checking_imports=True)
    counts: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = tuple([*name.split("."), "", ""][1] for name in (importer, imported))
            if pair[0] != pair[1] and all(name in order for name in pair):
                counts[pair[0], pair[1]] += 1
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "oldlight"}
    figure, axes = plt.subplots(figsize=(13, 5.5))
    place = {name: i for i, name in enumerate(order)}
    for (importer, imported), n in sorted(counts.items()):
        a, b = place[imported], place[importer]
        middle, reach = (a + b) / 2, abs(b - a) / 2
        up = 1 if b > a else -1
        axes.add_patch(
            plt.matplotlib.patches.Arc(
                (middle, 0), 2 * reach, 1.1 * reach * up, theta1=0, theta2=180, lw=0.4 + 0.25 * n**0.7,
                color="#356" if up > 0 else "#c22", alpha=0.55,
            )
        )  # fmt: skip
    for name, i in place.items():
        axes.plot(i, 0, "o", ms=9, color="#135", zorder=3)
        axes.text(i, -0.35, name, rotation=45, ha="right", va="top", fontsize=10)
    axes.set_xlim(-1.2, len(order))
    axes.set_ylim(-3.2, 0.3 * len(order))
    axes.set_title(
        "Imports between packages: each arc leads from a package (right) to one that it imports (left); red would break the rule",
        fontsize=10,
    )
    axes.axis("off")
    figure.savefig(target, bbox_inches="tight", metadata={"Date": None})


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["draw"] and len(arguments) == 2:
        draw(Path(arguments[1]))
    elif arguments[:1] == ["measure"]:
        folders = [Path(name) for name in arguments[1:]] or [HERE]
        found = [measure(folder) for folder in folders]
        print("| | " + " | ".join(folder.resolve().name for folder in folders) + " |\n|---|" + "---|" * len(folders))
        for key in found[0]:
            print(f"| {key} | " + " | ".join(row[key] for row in found) + " |")
    elif arguments[:1] == ["same"] and len(arguments) > 1:
        same(
            [Path(name) for name in arguments[1:] if name != "--guides"],
            ("tiny", "guides") if "--guides" in arguments else ("tiny",),
        )
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
