"""The uniform numbers of NumPy's SFC64, bit by bit, compiled: NumPy calls a function for each of them, which takes as long again as making it.

A state is three words and a counter, which three words of a `SeedSequence` begin (`begin`; `oldlight.random_streams.words` makes them). A number is the upper 53 of
the 64 bits that come next:

    x = a + b + n,   (a, b, c, n) ← (b ⊕ (b ≫ 11), c + (c ≪ 3), (c turned left by 24) + x, n + 1)
"""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled

ROUNDS = 12  # before the first number
_ONE, _3, _11, _24, _40 = (np.uint64(i) for i in (1, 3, 11, 24, 40))
_SMALLEST = 1.0 / 9007199254740992.0  # 2⁻⁵³


@compiled(inline="always")
def _next(a, b, c, n):
    x = a + b + n
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


@compiled
def fill(state, out):
    """The next numbers, out[row, e] row by row; the state goes on."""
    for row in range(len(out)):
        _fill_row(state, out[row])


@borrowing
def _fill_row(state, out):
    a, b, c, n = state[0], state[1], state[2], state[3]
    for e in range(len(out)):
        x, a, b, c, n = _next(a, b, c, n)
        out[e] = np.float64(x >> _11) * _SMALLEST
    state[0], state[1], state[2], state[3] = a, b, c, n


@compiled
def lose(state, seen, lost):
    """lost[row, e]: is the next number not below seen[row]? One number stands for all rows; the state goes on."""
    for row in range(len(lost)):
        _lose_row(state, seen[min(row, len(seen) - 1)], lost[row])


@borrowing
def _lose_row(state, seen, lost):
    a, b, c, n = state[0], state[1], state[2], state[3]
    for e in range(len(lost)):
        x, a, b, c, n = _next(a, b, c, n)
        lost[e] = np.float64(x >> _11) * _SMALLEST >= seen
    state[0], state[1], state[2], state[3] = a, b, c, n
