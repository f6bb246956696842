"""One row of numbers written into another, compiled.

`to[:] = source` does the same, and makes numba compile the message of a refusal of other shapes, with its own library of strings: three seconds in each
process that compiles it.
"""

from oldlight.kernels.cache import borrowing


@borrowing
def copy_into(to, source):
    """to[i] = source[i]."""
    for i in range(len(source)):
        to[i] = source[i]
