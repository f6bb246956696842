"""Threads that share one level of a backward induction after the other, compiled: each does its part of a level, then waits for the others.

To wake a thread that sleeps takes as long as a level of a small plan. So the threads of a plan do not sleep between levels: each is in one compiled call for
many of them, and says in its place of `turns` how far it has come (`take_turn`). Who waits reads those places again and again, with a pause between two looks, for
which processors have an instruction: two threads may share one core's units, and who only waits shall not keep them from the other. After `PATIENCE` looks, some
tenth of a millisecond, it sleeps for a moment between two: then the machine has other work, and the other thread may be waiting for this one's core. A thread that
ends early, because of an error or Ctrl-C, writes `GONE`, so that nobody waits for it.
"""

import ctypes
import platform
import sys

import numba as nb
from numba.core.cgutils import ir
from numba.core.codegen import ll as llvm  # llvmlite, as `ir` is, in the version that this numba comes with
from numba.extending import intrinsic

from oldlight.kernels.cache import borrowing

APART = 8  # places between two threads: no two write to one line of the cache
PATIENCE = 2**12
GONE = 2**62  # more than any level

if sys.platform == "win32":
    _sleep, MOMENT = ctypes.windll.kernel32.Sleep, 0  # milliseconds; 0: only if another thread can run
else:
    _sleep, MOMENT = ctypes.CDLL(None).usleep, 50  # microseconds
_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "AMD64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}
PAUSE = _PAUSES.get(platform.machine())  # a name of LLVM's, and what it is called with
llvm.add_symbol("oldlight_sleep", ctypes.cast(_sleep, ctypes.c_void_p).value)


@intrinsic
def _read(typing, turns, i):
    """turns[i], as another thread wrote it, and with it all that was written before."""

    def code(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(builder.gep(array.data, [arguments[1]]), "acquire", 8)

    return nb.int64(turns, nb.int64), code


@intrinsic
def _write(typing, turns, i, number):
    """turns[i] = number, after all that this thread has written before."""

    def code(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        builder.store_atomic(arguments[2], builder.gep(array.data, [arguments[1]]), "release", 8)
        return context.get_dummy_value()

    return nb.void(turns, nb.int64, nb.int64), code


@intrinsic
def _pause(typing):
    def code(context, builder, signature, arguments):
        if PAUSE is not None:
            _call(builder, PAUSE[0], ir.VoidType(), PAUSE[1])
        return context.get_dummy_value()

    return nb.void(), code


@intrinsic
def _sleep_a_moment(typing):
    def code(context, builder, signature, arguments):
        _call(builder, "oldlight_sleep", ir.IntType(32), (MOMENT,))
        return context.get_dummy_value()

    return nb.void(), code


def _call(builder, name, result, numbers):
    """Call a function of LLVM's or one whose address it was told."""
    integer = ir.IntType(32)
    kind = ir.FunctionType(result, [integer] * len(numbers))
    found = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(found, [integer(x) for x in numbers])


@borrowing
def take_turn(turns, part, parts, number):
    """This part has done what comes before level `number` (from 1 on): say so, and wait until all have. turns: [part·APART], from 0 on."""
    _write(turns, part * APART, number)
    for other in range(parts):
        looks = 0
        while _read(turns, other * APART) < number:
            looks += 1
            _pause()
            if looks > PATIENCE:
                _sleep_a_moment()
