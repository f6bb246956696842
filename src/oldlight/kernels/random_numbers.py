"""The uniform numbers of NumPy's SFC64 behind a `SeedSequence`, bit by bit, compiled: NumPy calls a function for each number, which takes as long again as making it, and
what a stream begins with takes NumPy as long as thousands of its numbers.

A `SeedSequence` mixes the words of 32 bits of a seed and of its spawn key into a pool of four, and makes others of them (`begin`); they are the first state, three words of 64 bits
and a counter. A number is the upper 53 of the 64 bits that come next:

    x = a + b + n,   (a, b, c, n) ← (b ⊕ (b ≫ 11), c + (c ≪ 3), (c turned left by 24) + x, n + 1)

The bits of some numbers are drawn one after the other, and then made into numbers many at once.
"""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.opaque import as_it_is

ROUNDS = 12  # before the first number
SOME = 512  # whose bits are drawn before they are made into numbers
POOL = 4  # words of a SeedSequence
_ONE, _3, _11, _16, _24, _32, _40 = (np.uint64(i) for i in (1, 3, 11, 16, 24, 32, 40))
_LOW = np.uint64(0xFFFFFFFF)
_IN, _IN_FACTOR, _OUT, _OUT_FACTOR = (np.uint64(i) for i in (0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED))
_LEFT, _RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
_SMALLEST = 1.0 / 9007199254740992.0  # 2⁻⁵³


@compiled(inline="always")
def _next(a, b, c, n):
    x = as_it_is(
        a + b + n
    )  # else several draws at once would be taken apart into sums of products, which is more to do
    return x, b ^ (b >> _11), c + (c << _3), ((c << _24) | (c >> _40)) + x, n + _ONE


@compiled(inline="always")
def _hashed(word, constant, factor):
    """The word's hash, and the constant of the next one."""
    following = (constant * factor) & _LOW
    word = ((word ^ constant) * following) & _LOW
    return word ^ (word >> _16), following


@borrowing
def _mix_in(word, constant, pool, but):
    """Mix a word into every word of the pool but one; the constant of the next hash."""
    for i in range(POOL):
        if i != but:
            hashed, constant = _hashed(word, constant, _IN_FACTOR)
            mixed = (_LEFT * pool[i] - _RIGHT * hashed) & _LOW
            pool[i] = mixed ^ (mixed >> _16)
    return constant


@compiled
def begin(seed, chunk, purpose, state):
    """The state of `oldlight.random_streams.stream(seed, chunk, purpose)` before its first number. seed: as words of 32 bits; chunk and purpose have one each."""
    pool, constant = np.empty(POOL, np.uint64), _IN
    for i in range(POOL):
        pool[i], constant = _hashed(np.uint64(seed[i] if i < len(seed) else 0), constant, _IN_FACTOR)
    for i in range(POOL):
        constant = _mix_in(pool[i], constant, pool, i)
    for i in range(POOL, len(seed)):
        constant = _mix_in(np.uint64(seed[i]), constant, pool, -1)
    constant = _mix_in(np.uint64(chunk), constant, pool, -1)
    _mix_in(np.uint64(purpose), constant, pool, -1)
    constant = _OUT
    for i in range(3):
        low, constant = _hashed(pool[2 * i % POOL], constant, _OUT_FACTOR)
        high, constant = _hashed(pool[(2 * i + 1) % POOL], constant, _OUT_FACTOR)
        state[i] = low | (high << _32)
    a, b, c, n = state[0], state[1], state[2], _ONE
    for _ in range(ROUNDS):
        _, a, b, c, n = _next(a, b, c, n)
    state[0], state[1], state[2], state[3] = a, b, c, n


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
