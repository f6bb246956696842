"""The versions and the machine behind a result, as text for its page."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from oldlight import machine

PACKAGES = ("oldlight", "numpy", "scipy", "numba", "gymnasium", "pyarrow", "plotly", "matplotlib", "distributed")


def versions() -> dict[str, str]:
    """Python and the packages that matter, those that are there."""
    import oldlight

    found = {"Python": platform.python_version(), "oldlight": oldlight.__version__}
    for name in PACKAGES[1:]:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def this_machine() -> dict[str, str]:
    """Processor, cores, memory and system; nothing that names the machine or its owner."""
    memory = 2 * machine.default_limit()
    return {
        "processor": _processor(),
        "cores": f"{machine.thread_count()} used of {os.cpu_count() or 1}",
        "memory": machine.format_bytes(memory),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
