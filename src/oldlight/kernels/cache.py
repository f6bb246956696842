"""How every loop is compiled, and how the compiled code is kept on disk.

numba keeps compiled code in files, next to the source or in NUMBA_CACHE_DIR, and uses them again while the file of the *called* function
is unchanged. It does not notice that a function which this one calls, in another file, has changed. So `compiled` stamps every file with a
hash of all sources in this folder: after any change of any of them the old code is not used again, and is overwritten.

**Loading.** Before it loads what was compiled, numba imports everything that it could compile with, SciPy's linear algebra included: as long again as
its own import. Nothing of that is needed to run compiled code but the addresses of numba's runtime (`_tell_runtime`). What is not found is
compiled, and for that numba loads the rest by itself. Neither are needed: numba's extensions, for which it reads the metadata of all installed packages (they
are asked when something is compiled); its libraries of array functions, which it imports to name them as the origin of what was inlined (`_origin`); and numpy.ma, which
it imports to find that an array is not masked (`_kind`). Code is kept twice, as the machine runs it and as LLVM's bitcode, which only a loop that calls it is
compiled from: numba reads both and lists every name in the bitcode, half of the time of a first plan. Here the names stand in the file, and the bitcode is read
when it is asked for (`_Kept`).

Where no folder can be written, or the disk is full, the loops are compiled in memory, in every process anew, and one warning says so.

**References.** numba counts the references to an array wherever a function takes it, makes a slice of it or ends: two calls for each array of a named
tuple, which is more than a short function does. A function of loops, indices and slices alone, which makes no array, returns none and calls nothing that
does (numpy's own functions of arrays do), needs no counts: `borrowing` compiles it without. Only other compiled functions call it.

**Constants.** numba compiles a function once more for a constant that another one hands over: f(x, 0) and f(x, n) are two. Where one would do, loops write
f(x, np.int64(0)), and np.bool_(True).

Every file begins with the SHA-256 digest of the rest of it, and holds the key that it was written for. A file that is empty, cut off, damaged, of
another version, or another process's code under the same name (two that compile one function for two signatures at once) counts as absent:
the loop is compiled and the file written again. So damaged machine code is never run.

**Ctrl-C.** The compiler calls Python back in the middle of its work, and whatever is raised there is lost: a KeyboardInterrupt, and with it the code that
was being handed over ("no compiled object yet"). Python raises it in the main thread only. So a call of the main thread has its loop compiled, or loaded, by
another (`InAThread`), and waits: Ctrl-C ends the waiting at once, and never the compiler's work; what was compiled meanwhile is there for the next call.

One moment is left. A loop that takes a random generator has numba read the generator's addresses through ctypes at each call, some microseconds in which what is
raised is lost too: a first Ctrl-C there is not heard, the next one is. Workers of studies are told again (`oldlight.workers`); in one's own process only the
handler of the signal could know of it, and that belongs to whoever calls the library.
"""

import functools
import hashlib
import io
import pickle
import sys
import threading
import warnings
from pathlib import Path

import numba as nb
import numpy as np
from numba.core import entrypoints, environment
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.codegen import ll as llvm  # llvmlite, in the version that this numba comes with
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import _nrt_python
from numba.np import numpy_support


def _hash_of_sources():
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


STAMP = _hash_of_sources()
DIGEST = hashlib.sha256().digest_size
_warned = False


class _Loaded(pickle.Unpickler):
    """What numba wrote, without importing its own modules that inlined code came from."""

    def find_class(self, module, name):
        found = super().find_class(module, name)
        return _origin if found is environment._rebuild_env else found


def _origin(module, constants, name):
    """numba's `_rebuild_env`: the module's names and constants of a compiled function. Code without Python objects, which all of ours is, reads no names."""
    if module.startswith("numba.") and module not in sys.modules and environment.lookup_environment(name) is None:
        made = environment.Environment({"__name__": module})
        made.consts[:] = constants
        made.env_name = name
        environment.Environment._memo[name] = made
        return made
    return environment._rebuild_env(module, constants, name)


class CheckedFiles(IndexDataCacheFile):
    """numba's files of one function, an index and one file per signature: what is not as it was written counts as absent."""

    def save(self, key, data):
        try:
            super().save(key, (key, data))
        except OSError:
            _warn()

    def load(self, key):
        written_for, data = super().load(key) or (None, None)
        return data if written_for == key else None

    def _load_index(self):
        version, stamp, signatures = self._read(self._index_path) or (None, None, {})
        return signatures if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, signatures):
        self._write(self._index_path, (self._version, self._source_stamp, signatures))

    def _load_data(self, name):
        return self._read(self._data_path(name))

    def _save_data(self, name, data):
        self._write(self._data_path(name), data)

    def _read(self, path):
        """What was written there; None if the file is missing or is not as it was written."""
        try:
            content = Path(path).read_bytes()
        except OSError:
            return None
        whole = hashlib.sha256(content[DIGEST:]).digest() == content[:DIGEST]
        return _Loaded(io.BytesIO(content[DIGEST:])).load() if whole else None

    def _write(self, path, what):
        content = self._dump(what)
        with self._open_for_write(path) as stream:
            stream.write(hashlib.sha256(content).digest() + content)


@functools.cache
def _tell_runtime():
    """The addresses of the functions of numba's runtime that compiled code calls; numba itself tells the same and then compiles its own inner functions."""
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Kept(CompileResultCacheImpl):
    """What numba writes of a compiled function, with the names that its code defines; see the module's text."""

    def reduce(self, result):
        module = result.library._get_module_for_linking()
        names = [x.name for x in (*module.functions, *module.global_variables) if not x.is_declaration]
        return names, super().reduce(result)

    def rebuild(self, target_context, kept):
        names, ((name, kind, (code, bitcode)), *others) = kept
        target_context.codegen()._engine._defined_symbols.update(names)
        found = super().rebuild(target_context, ((name, kind, (code, _no_bitcode())), *others))
        found.library._get_module_for_linking = functools.partial(_read_bitcode, found.library, bitcode)
        return found


@functools.cache
def _no_bitcode():
    return llvm.parse_assembly("").as_bitcode()


def _read_bitcode(library, bitcode):
    """The library's code for a function that is compiled now and calls it: numba's `_get_module_for_linking`, which it is from then on."""
    library._shared_module = llvm.parse_bitcode(bitcode)
    library.__dict__.pop("_get_module_for_linking", None)
    return library._shared_module


class _CompiledBefore(FunctionCache):
    """Compiled code on disk; see the module's text."""

    def __init__(self, function):
        self._name, self._py_func = repr(function), function
        self.enable()

    @functools.cached_property
    def _impl(
        self,
    ):  # looked for when it is needed: most functions of a file only serve others, whose code is kept with theirs
        try:
            return _Kept(self._py_func)
        except RuntimeError:  # numba's way to say that no folder can be written
            _warn()
            self.disable()
            return None

    @functools.cached_property
    def _cache_path(self):
        return self._impl.locator.get_cache_path()

    @functools.cached_property
    def _cache_file(self):
        return CheckedFiles(self._cache_path, self._impl.filename_base, STAMP)

    def load_overload(self, sig, target_context):
        _tell_runtime()
        found = None
        if self._impl is not None:
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        if found is None:
            entrypoints.init_all()
        return found


class _Borrowing(_CompiledBefore):
    """The same for functions without reference counts, which may not return an array: whoever called would give back what was never taken."""

    def save_overload(self, sig, data):
        if _holds_array(data.signature.return_type):
            raise TypeError(f"{self._name} borrows its arrays and returns one; use @compiled")
        super().save_overload(sig, data)


def _holds_array(kind):
    parts = kind if isinstance(kind, nb.types.BaseTuple) else ()
    return isinstance(kind, nb.types.Array) or any(_holds_array(part) for part in parts)


def borrowing(function=None, **options):
    """`compiled` for a function that makes no array and returns none: without reference counts; see the module's text."""
    return compiled(function, _nrt=False, no_cpython_wrapper=True, **options)


class InAThread(threading.Thread):
    """compile(signature), in a thread of its own; see the module's text. `wait` for it in the main thread.

    One that nobody waits for any more ends before the next loop that it would compile. Python waits for it when it ends: LLVM cannot be left alone.
    """

    def __init__(self, compile_now, signature):
        super().__init__()
        self._todo = (compile_now, signature)
        self._done = threading.Lock()
        self._found, self._error, self.wanted = None, None, True

    def run(self):
        try:
            compile_now, signature = self._todo
            self._found = compile_now(signature)
        except BaseException as error:  # it is raised where it is waited for
            self._error = error
        self._done.release()

    def wait(self):
        self._done.acquire()
        try:
            self.start()
            self._done.acquire()
        except BaseException:
            self.wanted = False
            raise
        if self._error is not None:
            raise self._error
        return self._found


def _kind(kind_of, value):
    """numba's type of an argument, by `kind_of` if it is neither an array nor a tuple of such things."""
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        layout, fixed = numpy_support.map_layout(value), not value.flags.writeable
        return nb.types.Array(numpy_support.from_dtype(value.dtype), value.ndim, layout, readonly=fixed)
    if isinstance(value, tuple):
        return nb.types.BaseTuple.from_types([_kind(kind_of, x) for x in value], type(value))
    return kind_of(value)


def _nothing():
    """In the place of numba's look for extensions."""


def _compile(compile_now, signature):
    """numba's `compile(signature)`, in a thread where the main thread asks for it and is not in the middle of compiling something else."""
    thread = threading.current_thread()
    if thread is threading.main_thread() and not global_compiler_lock.is_locked():
        return InAThread(compile_now, signature).wait()
    if not getattr(thread, "wanted", True):
        raise KeyboardInterrupt
    return compile_now(signature)


def still_compiling():
    """Whether a loop is being compiled that nobody waits for any more."""
    return any(isinstance(thread, InAThread) for thread in threading.enumerate())


def compiled(function=None, **options):
    """Decorator: `@compiled`, or `@compiled(...)` with options of numba.njit."""
    if function is None:
        return lambda function: compiled(function, **options)
    inner = function.__name__.startswith(
        "_"
    )  # never called from Python: without the code for that, compiling takes half as long
    loop = nb.njit(**{"nogil": True, "no_cpython_wrapper": inner, "no_cfunc_wrapper": True, **options})(function)
    if hasattr(loop, "enable_caching"):  # not with NUMBA_DISABLE_JIT=1
        loop._cache = (_CompiledBefore if options.get("_nrt", True) else _Borrowing)(function)
        loop._compilation_chain_init_hook = _nothing
        loop.typeof_pyval = functools.partial(_kind, loop.typeof_pyval)
        loop.compile = functools.partial(_compile, loop.compile)
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
