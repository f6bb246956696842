"""The house in numbers and as a picture.

    python docs/scripts/house.py measure [FOLDER ...]    lines, files, largest function, longest argument list, names used twice
    python docs/scripts/house.py draw docs/imports.svg   which package imports which, as a picture

`measure` reads Python files below `src` of each folder (this clone if none is given) as text, so it can compare two commits in
two work trees. `draw` needs grimp, which comes with import-linter; the order of the packages is that of the import rule in
pyproject.toml.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]


def measure(folder: Path) -> dict[str, str]:
    """What a maintainer would look at first."""
    files = sorted((folder / "src").rglob("*.py"))
    functions: list[tuple[int, str]] = []
    arguments: list[tuple[int, str]] = []
    checks = 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        checks += text.count("isinstance(") if "channel" in text else 0
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                where = f"{path.name}:{node.name}"
                functions.append(((node.end_lineno or node.lineno) - node.lineno + 1, where))
                arguments.append((len(node.args.posonlyargs) + len(node.args.args), where))
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    names = Counter(path.name for path in files if path.name not in ("__init__.py", "__main__.py"))
    longest = max(lengths, key=lambda path: lengths[path])
    return {
        "files": str(len(files)),
        "lines": f"{sum(lengths.values()):,}",
        "longest file": f"{longest.name} ({lengths[longest]})",
        "longest function": "{1} ({0})".format(*max(functions)),
        "functions over 60 lines": str(sum(n > 60 for n, _ in functions)),
        "most positional arguments": "{1} ({0})".format(*max(arguments)),
        "functions with more than 8": str(sum(n > 8 for n, _ in arguments)),
        "file names used twice": ", ".join(sorted(name for name, n in names.items() if n > 1)) or "none",
    }


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
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
