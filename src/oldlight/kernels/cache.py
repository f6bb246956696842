"""How every loop is compiled, and how the compiled code is kept on disk.

numba keeps compiled code in files, next to the source or in NUMBA_CACHE_DIR, and uses them again while the file of the *called* function
is unchanged. It does not notice that a function which this one calls, in another file, has changed. So `compiled` stamps every file with a
hash of all sources in this folder: after any change of any of them the old code is not used again, and is overwritten.

**Loading.** Before it loads what was compiled, numba imports everything that it could compile with, SciPy's linear algebra included: as long again as
its own import. Nothing of that is needed to run compiled code but numba's runtime, so `_CompiledBefore` starts that alone. What is not found is
compiled, and for that numba loads the rest by itself.

Where no folder can be written, the loops are compiled in memory, in every process anew, and one warning says so.
"""

import hashlib
import warnings
from pathlib import Path

import numba as nb
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


def _hash_of_sources():
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


STAMP = _hash_of_sources()
_warned = False


class _CompiledBefore(FunctionCache):
    """Compiled code on disk; see the module's text."""

    def __init__(self, function):
        super().__init__(function)
        self._cache_file._source_stamp = STAMP

    def load_overload(self, sig, target_context):
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def compiled(function=None, **options):
    """Decorator: `@compiled`, or `@compiled(...)` with options of numba.njit."""
    if function is None:
        return lambda function: compiled(function, **options)
    if function.__name__.startswith(
        "_"
    ):  # never called from Python: without the code for that, compiling takes half as long
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
    loop = nb.njit(nogil=True, **options)(function)
    if hasattr(loop, "enable_caching"):  # not with NUMBA_DISABLE_JIT=1
        try:
            loop._cache = _CompiledBefore(function)
        except RuntimeError:  # numba's way to say that no folder can be written
            _warn()
    return loop


def _warn():
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled code cannot be kept: {Path(__file__).parent}/__pycache__ and the user's cache folder cannot be written, so that every "
            "process compiles anew, which takes seconds to minutes. Set NUMBA_CACHE_DIR to a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )
