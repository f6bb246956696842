"""Tables of a run of the benchmark, written into a page between two marks."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BEGIN, END = "<!-- tables of make bench: begin -->", "<!-- tables of make bench: end -->"


def processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str:
    """The commit of the working copy, with a mark if something in it is not committed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def surroundings() -> dict[str, Any]:
    """What the numbers of a run depend on."""
    packages = {}
    for name in ("numpy", "scipy", "numba", "quantecon"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "none"
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else "unknown"
    return {"commit": commit(), "processor": processor(), "system": platform.system(), "python": platform.python_version(),
            **packages, "load before": load}  # fmt: skip


def markdown(sections: dict[str, tuple[str, list[Row]]], cell: Callable[[str, Any], str], about: dict[str, Any]) -> str:
    """Title, what is compared, and the table of each section."""
    parts = ["One run: " + ", ".join(f"{key} {value}" for key, value in about.items()) + "."]
    for title, (text, rows) in sections.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        lines = [f"### {title[:1].upper()}{title[1:]}", "", " ".join(text.split()), ""]
        if columns:
            lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
            lines += ["| " + " | ".join(cell(key, row.get(key)) for key in columns) + " |" for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def write(page: Path, text: str) -> None:
    """Put the text between the two marks of a page."""
    whole = page.read_text(encoding="utf-8")
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no lines {BEGIN} and {END}: the tables go between them")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
