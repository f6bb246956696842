"""Pictures written for people (PNG) and for print (SVG), moved into place when they are complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oldlight.checks import write_file


def save(figure: Any, folder: str | Path, name: str) -> Path:
    """Write `name`.svg and `name`.png into `folder` (made if need be); returns the path of the PNG."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    write_file(target / f"{name}.svg", lambda stream: figure.savefig(stream, format="svg"))
    return write_file(target / f"{name}.png", lambda stream: figure.savefig(stream, format="png", dpi=160))
