"""Rows that become columns, compiled: what was found for each oldest action of a state, row by row, is written queue by queue, the oldest action the fastest.

    out[to + j·A + q] = rows[which[first + q], j]                                            `interleave`, also into numbers of fewer bytes
    out[to + j·A + q] = added[first + q] + scale[first + q]·rows[which[first + q], j]        `interleave_scaled`                        q < A, j < n

Written one after the other, these numbers stand A places apart, and every one is a store of its own. Up to `MOST` rows are written whole vectors at a time
instead: `LANES` numbers of each row are put in order in registers, which the compiler can do where it knows A, and so there is code for each A. Where an array
begins is given as a number: slices of many arrays would take as long as what is done with them.
"""

import numba as nb
import numpy as np
from numba.core.cgutils import ir
from numba.extending import intrinsic

from oldlight.kernels.cache import borrowing
from oldlight.kernels.products import LANES

MOST = 8  # rows that are put in order in registers
MANY = 64  # columns of which a few may be written one by one, so that the others begin with a line of the cache
BYTES = 64  # of such a line
_inner = borrowing(fastmath={"contract"})


def _in_order(builder, rows):
    """One long vector: the first number of each of some equal vectors, the second of each, .."""
    short, integer = rows[0].type, ir.IntType(32)
    nothing, wide = ir.Constant(short, ir.Undefined), [*rows]
    while len(wide) & (len(wide) - 1):
        wide.append(nothing)
    while len(wide) > 1:
        both = ir.VectorType(integer, 2 * wide[0].type.count)(list(range(2 * wide[0].type.count)))
        wide = [builder.shuffle_vector(x, y, both) for x, y in zip(wide[::2], wide[1::2], strict=True)]
    order = [q * short.count + j for j in range(short.count) for q in range(len(rows))]
    return builder.shuffle_vector(
        wide[0], ir.Constant(wide[0].type, ir.Undefined), ir.VectorType(integer, len(order))(order)
    )


def _code(context, builder, signature, arguments):
    """Of the arguments (rows, which, first, A, (begin, end), out, to), or with scale and added: columns begin..end, a multiple of `LANES` and not none, for A up
    to `MOST`."""
    rows, which, out, *factors = (
        context.make_array(signature.args[i])(context, builder, arguments[i])
        for i in (0, 1, 5, *range(7, len(arguments)))
    )
    first, heads, columns, to = (arguments[i] for i in (2, 3, 4, 6))
    begin, end = (builder.extract_value(columns, i) for i in range(2))
    number, kind = (context.get_value_type(signature.args[i].dtype) for i in (0, 5))
    integer, vector = ir.IntType(64), ir.VectorType(number, LANES)
    wide = builder.extract_value(rows.shape, 1)

    def own(array, q):
        return builder.load(builder.gep(array.data, [builder.add(first, integer(q))]))

    def all_lanes(one):
        one = builder.insert_element(vector(ir.Undefined), one, integer(0))
        return builder.shuffle_vector(one, vector(ir.Undefined), ir.VectorType(ir.IntType(32), LANES)([0] * LANES))

    after = builder.append_basic_block("written")
    choice = builder.switch(heads, after)
    for A in range(1, MOST + 1):
        before, loop = builder.append_basic_block(f"begin{A}"), builder.append_basic_block(f"rows{A}")
        choice.add_case(integer(A), before)
        builder.position_at_end(before)
        starts = [builder.gep(rows.data, [builder.mul(own(which, q), wide)]) for q in range(A)]
        scale_and_added = [[all_lanes(own(array, q)) for array in factors] for q in range(A)]
        builder.branch(loop)
        builder.position_at_end(loop)
        j = builder.phi(integer)
        j.add_incoming(begin, before)
        found = []
        for start, pair in zip(starts, scale_and_added, strict=True):
            place = builder.bitcast(builder.gep(start, [j]), vector.as_pointer())
            x = builder.load(place, align=context.get_abi_sizeof(number))
            if pair:
                x = builder.fadd(builder.fmul(x, pair[0], flags=["contract"]), pair[1], flags=["contract"])
            found.append(x if kind == number else builder.trunc(x, ir.VectorType(kind, LANES)))
        ordered = _in_order(builder, found)
        place = builder.gep(out.data, [builder.add(to, builder.mul(j, integer(A)))])
        builder.store(ordered, builder.bitcast(place, ordered.type.as_pointer()), align=context.get_abi_sizeof(kind))
        following = builder.add(j, integer(LANES))
        j.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, end), loop, after)
    builder.position_at_end(after)
    return context.get_dummy_value()


@intrinsic
def _lanes(typing, rows, which, first, A, columns, out, to):
    return nb.void(rows, which, nb.int64, nb.int64, columns, out, nb.int64), _code


@intrinsic
def _scaled_lanes(typing, rows, which, first, A, columns, out, to, scale, added):
    return nb.void(rows, which, nb.int64, nb.int64, columns, out, nb.int64, scale, added), _code


@intrinsic
def _in_line(typing, out, to):
    """Where in its line of the cache out[to] is: a number of bytes."""

    def code(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.ptrtoint(builder.gep(array.data, [arguments[1]]), ir.IntType(64))
        return builder.and_(place, ir.IntType(64)(BYTES - 1))

    return nb.int64(out, nb.int64), code


@_inner
def _whole(A, n, out, to):
    """The columns that are written as vectors, from and to. Many begin with a line of the cache where one does: a vector that lies in two lines waits for both."""
    begin = 0
    if A > MOST or n < LANES:
        return begin, begin
    if n >= MANY:
        place, size = _in_line(out, to), out.itemsize
        while begin < LANES and (place + begin * A * size) % BYTES != 0:
            begin += 1
        begin = begin if begin < LANES else 0
    return begin, n - (n - begin) % LANES


@_inner
def interleave(rows, which, first, A, n, out, to):
    """out[to + j·A + q] = rows[which[first + q], j]."""
    begin, end = _whole(A, n, out, to)
    if begin < end:
        _lanes(rows, which, first, A, (begin, end), out, to)
    for q in range(A if begin > 0 or end < n else 0):
        row, k = rows[which[np.uint64(first + q)]], np.uint64(to + q)
        for j in range(np.uint64(begin)):
            out[k + j * np.uint64(A)] = row[j]
        for j in range(np.uint64(end), np.uint64(n)):
            out[k + j * np.uint64(A)] = row[j]


@_inner
def interleave_scaled(rows, which, first, A, n, out, to, scale, added):
    """out[to + j·A + q] = added[first + q] + scale[first + q]·rows[which[first + q], j]."""
    begin, end = _whole(A, n, out, to)
    if begin < end:
        _scaled_lanes(rows, which, first, A, (begin, end), out, to, scale, added)
    for q in range(A if begin > 0 or end < n else 0):
        row, k = rows[which[np.uint64(first + q)]], np.uint64(to + q)
        th, r = scale[np.uint64(first + q)], added[np.uint64(first + q)]
        for j in range(np.uint64(begin)):
            out[k + j * np.uint64(A)] = r + th * row[j]
        for j in range(np.uint64(end), np.uint64(n)):
            out[k + j * np.uint64(A)] = r + th * row[j]
