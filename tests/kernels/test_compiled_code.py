"""Compiled code on disk: a changed kernel is noticed by those that call it, and where nothing can be written it still runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oldlight.kernels.cache import STAMP, CheckedFiles
from repeats import is_thorough

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


def in_a_new_process(package: Path, script: str, **where: str) -> tuple[list[str], str]:
    """The words that a new process prints, and its warnings."""
    environment = surroundings(package) | where
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def surroundings(package: Path) -> dict[str, str]:
    keep = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    return keep | {"PYTHONPATH": str(package.parents[1])}


TWINS = """
import gc, json, os, sys, threading
import numba
numba.njit(lambda x: x + 1)(1.0)  # imports all that compiling needs: two thirds of what such a process does
gc.freeze()
for line in sys.stdin:
    asked, out, err = json.loads(line), os.pipe(), os.pipe()
    twin = os.fork()
    if not twin:
        break
    os.close(out[1]), os.close(err[1])
    said = {}
    other = threading.Thread(target=lambda: said.update(err=open(err[0]).read()))
    other.start()
    said["out"] = open(out[0]).read()
    other.join()
    said["code"] = os.waitstatus_to_exitcode(os.waitpid(twin, 0)[1])
    print(json.dumps(said), flush=True)
else:
    sys.exit()
os.dup2(out[1], 1), os.dup2(err[1], 2), os.close(out[0]), os.close(err[0]), os.close(out[1]), os.close(err[1])
os.environ.clear()
os.environ.update(asked["environment"])
numba.config.reload_config()
sys.path.insert(0, os.environ["PYTHONPATH"])
assert not any(name.startswith("oldlight") for name in sys.modules)
exec(compile(asked["script"], "<script>", "exec"), {"__name__": "__main__"})
"""
Run = Callable[..., tuple[list[str], str]]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """`in_a_new_process`, for what need not import numba itself: each process is the twin of one that has imported numba and nothing of ours."""
    parent = subprocess.Popen([sys.executable, "-c", TWINS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin is not None
    assert parent.stdout is not None

    def in_a_twin(package: Path, script: str, **where: str) -> tuple[list[str], str]:
        parent.stdin.write(json.dumps({"script": script, "environment": surroundings(package) | where}) + "\n")
        parent.stdin.flush()
        said = json.loads(parent.stdout.readline())
        assert said["code"] == 0, said["err"]
        return said["out"].split(), said["err"]

    yield in_a_twin
    parent.stdin.close()
    parent.wait(60)


def test_a_caller_notices_that_a_called_kernel_has_changed(package: Path, run: Run) -> None:
    assert run(package, RUN)[0][:2] == ["2.0", "0"]
    value, hits, folder = run(package, RUN)[0]
    assert (value, hits) == ("2.0", "1")  # the second process compiles nothing
    assert Path(folder).is_relative_to(package)
    longer = CALLED.format(number=50)  # Python's own bytecode takes a file of the same second and length for unchanged
    (package / "called.py").write_text(longer, encoding="utf-8")
    assert run(package, RUN)[0][:2] == ["51.0", "0"]
    assert run(package, RUN)[0][:2] == ["51.0", "1"]


def test_damaged_files_in_a_folder_of_ones_own_are_compiled_again(package: Path, run: Run, tmp_path: Path) -> None:
    """From one process to the next, as after a disk that was full: neither an exception nor the damaged code."""
    kept = tmp_path / "kept"
    value, hits, folder = run(package, RUN, NUMBA_CACHE_DIR=str(kept))[0]
    assert (value, hits) == ("2.0", "0")
    assert Path(folder).is_relative_to(kept)
    paths = [*kept.rglob("*.nbi"), *kept.rglob("*.nbc")]
    assert len(paths) == 4
    for path, size in zip(paths, (0, 100, 0, 500), strict=True):
        path.write_bytes(path.read_bytes()[:size])
    assert run(package, RUN, NUMBA_CACHE_DIR=str(kept))[0][:2] == ["2.0", "0"]
    assert run(package, RUN, NUMBA_CACHE_DIR=str(kept))[0][:2] == ["2.0", "1"]  # what was written again is used again


def test_without_a_folder_to_write_it_runs_and_says_once_what_to_set(package: Path, run: Run, tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.touch()
    (package / "__pycache__").touch()  # a file: no folder of this name can be made, even by root
    where = {"NUMBA_CACHE_DIR": str(nowhere / "kept"), "XDG_CACHE_HOME": str(nowhere), "HOME": str(nowhere)}
    found, said = run(package, "from oldlight.kernels.caller import caller\nprint(caller(1.0))\n", **where)
    assert found == ["2.0"]
    assert said.count("RuntimeWarning") == 1
    assert "NUMBA_CACHE_DIR" in said


DAMAGE = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "one byte": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "rubbish": lambda data: b"\x80\x05K\x01." + b"rubbish" * 9,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("damaged", ["*.nbi", "*.nbc", "*.nb?"])
def test_damaged_files_count_as_absent(tmp_path: Path, damage: str, damaged: str) -> None:
    """And what is saved next is found again. A file of numba's own begins with no digest, and counts as damaged too."""
    kept = CheckedFiles(str(tmp_path), "loop", STAMP)
    kept.save("of floats", b"code" * 99)
    assert kept.load("of floats") == b"code" * 99
    for path in tmp_path.glob(damaged):
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert kept.load("of floats") is None
    kept.save("of floats", b"again" * 99)
    assert kept.load("of floats") == b"again" * 99
    assert CheckedFiles(str(tmp_path), "loop", "other sources").load("of floats") is None


def test_code_that_another_process_wrote_under_the_same_name_is_not_used(tmp_path: Path) -> None:
    """Two processes that each compile a signature at once both take the number 1: the last index to be written wins, as does the last code."""
    kept = CheckedFiles(str(tmp_path), "loop", STAMP)
    kept.save("of floats", b"of floats")
    [index] = tmp_path.glob("*.nbi")
    of_floats = index.read_bytes()
    index.unlink()
    kept.save("of numbers", b"of numbers")
    index.write_bytes(of_floats)  # the index of one, the code of the other
    assert kept.load("of floats") is None
    assert kept.load("of numbers") is None


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from oldlight.kernels.caller import caller
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
print(caller(1.0), caller(1))
"""


def test_on_a_full_disk_it_runs_and_says_so_once(package: Path, run: Run) -> None:
    """As a full disk answers: files can be made, but nothing can be written into them."""
    found, said = run(package, FULL)
    assert found == ["2.0", "2"]
    assert said.count("RuntimeWarning") == 1
    assert "NUMBA_CACHE_DIR" in said
    assert list((package / "__pycache__").glob("*.tmp.*")) == []


CTRL_C = """
import os, signal
from llvmlite.binding.executionengine import ExecutionEngine

signal.signal(signal.SIGINT, signal.default_int_handler)
given, left = ExecutionEngine.set_object_cache, [1]

def set_object_cache(engine, notify, getbuffer):
    def interrupted(module, code):  # the compiler hands over what it has compiled: the moment in which a Ctrl-C was lost
        if left:
            left.pop()
            os.kill(os.getpid(), signal.SIGINT)
        notify(module, code)

    given(engine, interrupted, getbuffer)

ExecutionEngine.set_object_cache = set_object_cache
"""
TWICE = """
from oldlight.kernels.caller import caller
for _ in range(2):
    try:
        print(caller(1.0))
    except KeyboardInterrupt:
        print("interrupted")
"""
COMMAND = """
import sys
sys.argv = ["oldlight", "plan", "sensing_chain:horizon=3", "-c", "constant:1"]
from oldlight.__main__ import main
main()
"""


def test_ctrl_c_while_compiling_is_heard_and_leaves_a_process_that_can_go_on(package: Path, run: Run) -> None:
    assert in_a_new_process(package, CTRL_C + TWICE) == (["interrupted", "2.0"], "")
    assert run(package, RUN)[0][:2] == ["2.0", "1"]  # and what was compiled is kept


def test_ctrl_c_ends_a_command_that_compiles(tmp_path: Path) -> None:
    """At once: the loop is not finished, nor left to the end of the process, which would abort."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CTRL_C + COMMAND], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_code_of_ones_own_that_is_being_compiled_may_call_a_loop(package: Path, run: Run) -> None:
    """The main thread then has the compiler's lock: another thread would wait for it for ever."""
    mine = (
        "import numba\nfrom oldlight.kernels.caller import caller\n\n@numba.njit\ndef mine(x):\n    return caller(x)\n"
    )
    (package / "mine.py").write_text(mine, encoding="utf-8")
    assert run(package, "from oldlight.kernels.mine import mine\nprint(mine(1.0))")[0] == ["2.0"]


def test_the_part_that_only_compiling_needs_is_read_when_something_that_calls_it_is_compiled(
    package: Path, run: Run
) -> None:
    script = (
        "import numba\nfrom oldlight.kernels.caller import caller\nprint(caller(1.0), sum(caller.stats.cache_hits.values()))\n"
        "(compiled,) = caller.overloads.values()\nprint('_get_module_for_linking' in vars(compiled.library))\n"
        "print(numba.njit(lambda x: 10 * caller(x))(1.0), '_get_module_for_linking' in vars(compiled.library))\n"
    )
    assert run(package, script)[0] == ["2.0", "0", "False", "20.0", "False"]
    assert run(package, script)[0] == ["2.0", "1", "True", "20.0", "False"]


def test_loading_imports_nothing_that_only_compiling_needs_and_compiling_still_works(package: Path, run: Run) -> None:
    """A loop that makes, slices and reshapes arrays, from disk: numba's functions of arrays stay where they are; it raises what it should, and code of
    one's own is compiled afterwards. If thorough it also writes a slice at once, which takes numba five seconds to compile."""
    write = "made[1:3] = x[:2]" if is_thorough() else "part = x[:2]\n    made[1], made[2] = part[0], part[1]"
    (package / "caller.py").write_text(
        "import numpy as np\nfrom oldlight.kernels.cache import compiled\n\n\n@compiled\ndef caller(pair, n):\n"
        f"    x, y = pair\n    made = np.zeros(n)\n    {write}\n    return made.reshape(2, n // 2) * y\n",
        encoding="utf-8",
    )
    first = (
        "import sys\nimport numpy as np\nof_numpy = {*sys.modules}\nfrom oldlight.kernels.caller import caller\n"
        "print(caller((np.arange(1.0, 4.0), np.ones(3)), 6).ravel().tolist(), sum(caller.stats.cache_hits.values()))\n"
    )
    second = first + (
        "print([name for name in ('numpy.ma', 'numba.np.arrayobj', 'numba.np.linalg', 'scipy.linalg') if name in {*sys.modules} - of_numpy])\n"
        "try:\n    caller((np.arange(1.0, 4.0), np.ones(3)), 7)\nexcept ValueError as error:\n    print('refused')\n"
        "import numba\nprint(numba.njit(lambda x: x[::-1].sum())(np.arange(4.0)))\n"
    )
    values = ["[0.0,", "1.0,", "2.0,", "0.0,", "0.0,", "0.0]"]
    assert run(package, first)[0] == [*values, "0"]
    assert in_a_new_process(package, second)[0] == [*values, "1", "[]", "refused", "6.0"]


def test_the_kind_of_an_argument_is_that_of_numba() -> None:
    import numba
    import numpy as np

    from oldlight.kernels.cache import _kind
    from oldlight.kernels.delay import NO_OPTIMISM

    fixed = np.zeros((2, 3), order="F")
    fixed.setflags(write=False)
    arrays = [np.zeros(3, kind) for kind in ("f8", "f4", "i8", "u1", "?", "i4", "c16", "M8[s]", "U3")]
    more = (np.zeros((4, 4))[::2, ::2], fixed, np.zeros(()), np.random.default_rng(0), 3, 2.5, True, None, "text")
    for value in (*arrays, *more, (1, np.zeros(2)), (fixed, (np.zeros(1), 2.0)), NO_OPTIMISM, ()):
        assert _kind(numba.typeof, value) == numba.typeof(value)
    with pytest.raises(numba.errors.NumbaTypeError, match="MaskedArray"):
        _kind(numba.typeof, (np.ma.zeros(2),))


def test_every_kernel_is_compiled_by_the_one_decorator() -> None:
    for path in KERNELS.glob("*.py"):
        if path.name != "cache.py":
            assert "njit" not in path.read_text(encoding="utf-8"), path.name


def test_a_function_that_borrows_arrays_may_not_return_one(package: Path, run: Run) -> None:
    """It counts no references, so its caller would free what it never owned: refused when it is compiled."""
    (package / "caller.py").write_text(
        "from oldlight.kernels.cache import borrowing, compiled\n\n\n@borrowing\ndef _first(x):\n    return x[0]\n\n\n"
        "@borrowing\ndef _part(x):\n    return x[1:], 1\n\n\n@compiled\ndef first(x):\n    return _first(x)\n\n\n"
        "@compiled\ndef part(x):\n    return _part(x)[1]\n",
        encoding="utf-8",
    )
    script = (
        "import numpy as np\nfrom oldlight.kernels.caller import first, part\nprint(first(np.arange(3.0)))\n"
        "try:\n    part(np.arange(3.0))\nexcept Exception as error:\n    print(error)\n"
    )
    words, _ = run(package, script)
    assert words[0] == "0.0"
    assert "borrows its arrays and returns one" in " ".join(words)


def test_numba_tells_named_tuples_apart_whatever_their_length() -> None:
    """numba 0.60 lost the first 40 bytes of what it knows the type of a tuple by: a loop was then called with arrays of another type, or not at all
    ("can't unbox array"), depending on what the memory held before. The lowest version that pyproject.toml declares must not."""
    from collections import namedtuple

    import numpy as np
    from numba._dispatcher import compute_fingerprint

    Many = namedtuple("Many", [f"field{i}" for i in range(9)])
    known_by = {compute_fingerprint(Many(np.zeros(2, kind), *[np.zeros(2)] * 8)) for kind in ("u1", "i8", "f8")}
    assert len(known_by) == 3
    assert all(b"Many(field0" in one for one in known_by)
