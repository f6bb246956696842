"""Two commits in turn, row by row: `python benchmarks/compare.py REV [--with REV] [--rounds 2] [--quick] [--json FILE]`.

Both are unpacked into a temporary folder (what is not committed is not compared), run by this interpreter with the same benchmark (`benchmarks/rows.py`
of the working copy) and compiled code of their own, one after the other and again: what the machine does meanwhile, it does to both. The best time of
each row counts; a ratio above 1 says that the second commit is faster.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def unpacked(revision: str, folder: Path) -> str:
    """The sources of a commit in `folder`; returns its short name."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", revision, "src"))) as archive:
        archive.extractall(folder, filter="data")
    return git("rev-parse", "--short", revision).decode().strip()


def run(folder: Path, quick: bool) -> dict[str, float]:
    """The rows at the commit in `folder`."""
    out = folder / "rows.json"
    code = folder / "compiled"
    code.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "NUMBA_CACHE_DIR": str(code)}
    command = [sys.executable, str(ROOT / "benchmarks" / "rows.py"), str(out), *(["--quick"] if quick else [])]
    subprocess.run(command, env=environment, cwd=folder, check=True)
    found: dict[str, float] = json.loads(out.read_text(encoding="utf-8"))
    return found


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", help="the first commit: a hash, a branch, a tag")
    parser.add_argument("--with", dest="other", default="HEAD", help="the second commit")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is run")
    parser.add_argument("--quick", action="store_true", help="one repeat of each row")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / name for name in ("one", "other")]
        names = [
            unpacked(revision, folder)
            for revision, folder in zip((options.revision, options.other), folders, strict=True)
        ]
        best: list[dict[str, float]] = [{}, {}]
        for round_number in range(options.rounds):
            for name, folder, rows in zip(names, folders, best, strict=True):
                print(f"round {round_number + 1} of {options.rounds}: {name}", file=sys.stderr, flush=True)
                for row, seconds in run(folder, options.quick).items():
                    rows[row] = min(seconds, rows.get(row, seconds))
    table = Table("row", *names, "ratio", title=f"{names[0]} and {names[1]}, the best of {options.rounds} rounds")
    for row in dict.fromkeys([*best[0], *best[1]]):
        one, other = best[0].get(row), best[1].get(row)
        table.add_row(
            row, duration(one), duration(other), "–" if one is None or other is None else f"{one / other:.2f}×"
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    if options.json:
        Path(options.json).write_text(json.dumps(dict(zip(names, best, strict=True)), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
