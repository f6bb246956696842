"""Text that a script writes into a page of the docs: each part stands between its marks `<!-- NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from pathlib import Path

from oldlight.checks import write_text


def filled(text: str, parts: dict[str, str]) -> str:
    """The page with each part between its marks; each mark must be there once."""
    for name, part in parts.items():
        text, n = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, part=part: f"{m[1]}{part}\n{m[2]}", text, flags=re.S
        )
        if n != 1:
            raise ValueError(f"<!-- {name} --> is {n} times in the page, expected once")
    return text


def fill(page: Path, parts: dict[str, str]) -> Path:
    """Write the parts into the page; what stands outside their marks stays."""
    return write_text(page, filled(page.read_text(encoding="utf-8"), parts))
