"""A number of which the compiler knows nothing, so that what follows from it is made where it stands: LLVM takes work apart or moves it to where it is done more often."""

import numba as nb
from numba.core.cgutils import ir
from numba.extending import intrinsic


@intrinsic
def as_it_is(typing, x):
    """The unsigned number x."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        return builder.asm(ir.FunctionType(word, [word]), "", "=r,0", arguments, False)

    return nb.uint64(nb.uint64), code
