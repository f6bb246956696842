"""Prints the lowest versions that pyproject.toml declares for the base and the extra `studies`, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def lowest(pyproject: str) -> list[str]:
    """`name==version` of each dependency with a minimum."""
    project = tomllib.loads(pyproject)["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["studies"]]
    found = [re.fullmatch(r"([\w.-]+)\s*>=\s*([\w.]+).*", line) for line in needed]
    return [f"{one[1]}=={one[2]}" for one in found if one]


if __name__ == "__main__":
    print("\n".join(lowest((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))))
