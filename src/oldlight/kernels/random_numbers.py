"""The uniform numbers of NumPy's SFC64, bit by bit, compiled: NumPy calls a function for each of them, which takes as long again as making it.

A state is three words and a counter, which three words of a `SeedSequence` begin (`begin`; `oldlight.random_streams.words` makes them). A number is the upper 53 of
the 64 bits that come next:

    x = a + b + n,   (a, b, c, n) ← (b ⊕ (b ≫ 11), c + (c ≪ 3), (c turned left by 24) + x, n + 1)

The bits of some numbers are drawn one after the other, and then made into numbers many at once.
"""

import numba as nb
import numpy as np
from numba.core.cgutils import ir
from numba.extending import intrinsic

from oldlight.kernels.cache import borrowing, compiled

ROUNDS = 12  # before the first number
SOME = 512  # whose bits are drawn before they are made into numbers
_ONE, _3, _11, _24, _40 = (np.uint64(i) for i in (1, 3, 11, 24, 40))
_SMALLEST = 1.0 / 9007199254740992.0  # 2⁻⁵³


@intrinsic
def _as_it_is(typing, x):
    """x, made before anything that follows: LLVM would take several draws at once apart into sums of products, which is more to do."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        return builder.asm(ir.FunctionType(word, [word]), "", "=r,0", arguments, False)

    return nb.uint64(nb.uint64), code


@compiled(inline="always")
def _next(a, b, c, n):
    x = _as_it_is(a + b + n)
    return x, b ^ (b >> _11), c + (c << _3), ((c << _24) | (c >> _40)) + x, n + _ONE


@compiled
def begin(words):
    """The state that these three words begin."""
    a, b, c, n = words[0], words[1], words[2], _ONE
    for _ in range(ROUNDS):
        _, a, b, c, n = _next(a, b, c, n)
    state = np.empty(4, np.uint64)
    state[0], state[1], state[2], state[3] = a, b, c, n
    return state


@borrowing
def _draw(state, bits):
    a, b, c, n = state[0], state[1], state[2], state[3]
    for e in range(len(bits)):
        bits[e], a, b, c, n = _next(a, b, c, n)
    state[0], state[1], state[2], state[3] = a, b, c, n


@compiled(inline="always")
def _number(bits):
    return np.float64(np.int64(bits >> _11)) * _SMALLEST


@compiled
def fill(state, out):
    """The next numbers, out[row, e] row by row; the state goes on."""
    bits = np.empty(SOME, np.uint64)
    for row in range(out.shape[0]):
        for low in range(0, out.shape[1], SOME):
            some = out[row, low : low + SOME]
            _draw(state, bits[: len(some)])
            _number_each(bits, some)


@borrowing
def _number_each(bits, out):
    for e in range(len(out)):
        out[e] = _number(bits[e])


@compiled
def lose(state, seen, lost):
    """lost[row, e]: is the next number not below seen[row]? One number stands for all rows; the state goes on."""
    bits = np.empty(SOME, np.uint64)
    for row in range(lost.shape[0]):
        for low in range(0, lost.shape[1], SOME):
            some = lost[row, low : low + SOME]
            _draw(state, bits[: len(some)])
            _lose_each(seen[min(row, len(seen) - 1)], bits, some)


@borrowing
def _lose_each(seen, bits, lost):
    for e in range(len(lost)):
        lost[e] = _number(bits[e]) >= seen
