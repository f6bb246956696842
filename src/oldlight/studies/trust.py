"""Folders whose studies may run code: asked once, remembered in a file of the user's.

A study that names code of its own (`module:name`) runs that code when it is loaded, with everything that its user may do. So
`oldlight run` asks before it imports anything for a study from a folder that is not in the list, or wants `--trust`. The list is
`$XDG_CONFIG_HOME/oldlight/trusted.json` (`~/.config/oldlight/trusted.json`):

    {"format": 1, "folders": ["/home/me/studies"]}

A folder is trusted as a whole, without the folders in it, and stays so when its files change; take its line out of the file to be
asked again. A list that is damaged counts as empty, and one that cannot be written is left alone: a warning says so, and work goes on.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from oldlight.checks import write_text

FORMAT = 1


def trust_file() -> Path:
    """Where the list is kept."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".config"
    return base / "oldlight" / "trusted.json"


def is_trusted(folder: str | os.PathLike[str]) -> bool:
    """Has this folder been trusted before?"""
    return os.path.realpath(folder) in _folders()


def remember(folder: str | os.PathLike[str]) -> None:
    """Trust this folder from now on."""
    path = trust_file()
    folders = sorted({*_folders(), os.path.realpath(folder)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"format": FORMAT, "folders": folders}, indent=1, ensure_ascii=False) + "\n")
    except (OSError, UnicodeError) as error:
        warnings.warn(
            f"{path} could not be written ({error}); this time {folder} is trusted all the same", stacklevel=2
        )


def _folders() -> list[str]:
    path = trust_file()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT or not all(isinstance(folder, str) for folder in found["folders"]):
            raise ValueError(f"expected format {FORMAT} and a list of folders")
        return list(found["folders"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        warnings.warn(f"{path} is damaged or cannot be read ({error!r}): no folder counts as trusted", stacklevel=3)
        return []
