"""Compiled code on disk: a changed kernel is noticed by those that call it, and where nothing can be written it still runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "src" / "oldlight" / "kernels"
CALLED = "from oldlight.kernels.cache import compiled\n\n\n@compiled\ndef called(x):\n    return x + {number}\n"
CALLER = (
    "from oldlight.kernels.cache import compiled\nfrom oldlight.kernels.called import called\n\n\n"
    "@compiled\ndef caller(x):\n    return called(x)\n"
)
RUN = (
    "from oldlight.kernels.caller import caller\n"
    "print(caller(1.0), sum(caller.stats.cache_hits.values()), caller._cache.cache_path)\n"
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package's folder of kernels with two small ones, one of which calls the other."""
    kernels = tmp_path / "src" / "oldlight" / "kernels"
    kernels.mkdir(parents=True)
    (kernels.parent / "__init__.py").touch()
    for name in ("__init__.py", "cache.py"):
        shutil.copy(KERNELS / name, kernels)
    (kernels / "called.py").write_text(CALLED.format(number=1), encoding="utf-8")
    (kernels / "caller.py").write_text(CALLER, encoding="utf-8")
    return kernels


def run(package: Path, script: str, **where: str) -> tuple[list[str], str]:
    """The words that a new process prints, and its warnings."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    environment = keep | {"PYTHONPATH": str(package.parents[1]), **where}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize("own_folder", [False, True])
def test_a_caller_notices_that_a_called_kernel_has_changed(package: Path, own_folder: bool, tmp_path: Path) -> None:
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")} if own_folder else {}
    assert run(package, RUN, **where)[0][:2] == ["2.0", "0"]
    value, hits, folder = run(package, RUN, **where)[0]
    assert (value, hits) == ("2.0", "1")  # the second process compiles nothing
    assert Path(folder).is_relative_to(tmp_path / "kept" if own_folder else package)
    (package / "called.py").write_text(CALLED.format(number=5), encoding="utf-8")
    assert run(package, RUN, **where)[0][:2] == ["6.0", "0"]
    assert run(package, RUN, **where)[0][:2] == ["6.0", "1"]


def test_without_a_folder_to_write_it_runs_and_says_once_what_to_set(package: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.touch()
    (package / "__pycache__").touch()  # a file: no folder of this name can be made, even by root
    where = {"NUMBA_CACHE_DIR": str(nowhere / "kept"), "XDG_CACHE_HOME": str(nowhere), "HOME": str(nowhere)}
    found, said = run(package, "from oldlight.kernels.caller import caller\nprint(caller(1.0))\n", **where)
    assert found == ["2.0"]
    assert said.count("RuntimeWarning") == 1
    assert "NUMBA_CACHE_DIR" in said


def test_every_kernel_is_compiled_by_the_one_decorator() -> None:
    for path in KERNELS.glob("*.py"):
        if path.name != "cache.py":
            assert "njit" not in path.read_text(encoding="utf-8"), path.name
