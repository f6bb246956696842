"""Products of a dense process with the values of the next time, compiled: tiles of sums that never leave the registers.

    product[row, j] = Σ_k matrix[row, k]·columns[k, j]                      row = s·A + q1, k = s2, j a choice and a queue

The library for products of matrices is made for large ones. Ours are short (k has S places) and what is made of them is small (a maximum over the
action), so that the library spends much of its time on writing products down and on arranging what it reads. Here a tile of `ROWS` rows and `COLUMNS`
columns is summed over all k in registers (`tile_of_sums`, the one place where vectors are written out: the compiler finds them in loops over j, and then loads
and stores every sum again for each k). The columns of a tile are copied next to each other before (`pack`): all rows read them.

Every sum goes over k = 0, 1, .. in this order, whatever tile it is in: so values do not depend on how the work is shared among threads.

A search has one law at a time, and needs the mean of some rows, whose sums stay in registers alike (`mean_of_rows`):

    mean[j] = Σ_k law[support[k]]·matrix[first + step·support[k], j]
"""

import numba as nb
import numpy as np
from numba.core.cgutils import ir
from numba.core.codegen import ll as llvm  # llvmlite, as `ir` is, in the version that this numba comes with
from numba.extending import intrinsic

from oldlight.kernels.cache import borrowing, compiled


def _lanes():
    """Numbers in a vector register: 8 with AVX-512, else 4 (two registers where they are shorter than that)."""
    try:
        return 8 if llvm.get_host_cpu_features().get("avx512f", False) else 4
    except RuntimeError:  # LLVM cannot say on this machine
        return 4


LANES = _lanes()
VECTORS = 3  # with ROWS rows: 12 sums, 3 vectors of columns and one number of the matrix are the 16 registers of AVX2
ROWS, COLUMNS = 4, VECTORS * LANES
MOST = 12  # vectors of a mean that are summed at once
LINE = 8  # numbers in a line of the cache
PACKED = (
    2**14
)  # numbers of the next time that are packed at once: a row of them is read as one piece, and they stay in cache


@intrinsic
def tile_of_sums(typing, matrix, rows, columns, sums):
    """sums[i·COLUMNS + j] = Σ_k matrix[rows[i], k]·columns[k·COLUMNS + j], i < ROWS, j < COLUMNS; rows: four numbers, of which some may be equal."""
    signature = nb.types.void(matrix, rows, columns, sums)
    return signature, _tile_of_sums


def _tile_of_sums(context, builder, signature, arguments):
    number, integer = ir.DoubleType(), ir.IntType(64)
    vector = ir.VectorType(number, LANES)
    matrix, columns, sums = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2, 3))
    K = builder.extract_value(matrix.shape, 1)
    starts = [builder.gep(matrix.data, [builder.mul(builder.extract_value(arguments[1], i), K)]) for i in range(ROWS)]

    def place(array, i):
        return builder.bitcast(builder.gep(array, [i]), vector.as_pointer())

    before, loop, after = builder.block, builder.append_basic_block("k"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(integer)
    k.add_incoming(integer(0), before)
    totals = [[builder.phi(vector) for _ in range(VECTORS)] for _ in range(ROWS)]
    column = builder.gep(columns.data, [builder.mul(k, integer(COLUMNS))])
    values = [builder.load(place(column, integer(v * LANES)), align=8) for v in range(VECTORS)]
    grown = []
    for i in range(ROWS):
        p = builder.insert_element(vector(ir.Undefined), builder.load(builder.gep(starts[i], [k])), integer(0))
        p = builder.shuffle_vector(p, vector(ir.Undefined), ir.VectorType(ir.IntType(32), LANES)([0] * LANES))
        products = [builder.fmul(p, value, flags=["contract"]) for value in values]
        grown.append([builder.fadd(x, y, flags=["contract"]) for x, y in zip(products, totals[i], strict=True)])
    following = builder.add(k, integer(1))
    k.add_incoming(following, loop)
    for i in range(ROWS):
        for v in range(VECTORS):
            totals[i][v].add_incoming(vector([0.0] * LANES), before)
            totals[i][v].add_incoming(grown[i][v], loop)
    builder.cbranch(builder.icmp_signed("<", following, K), loop, after)
    builder.position_at_end(after)
    for i in range(ROWS):
        for v in range(VECTORS):
            builder.store(grown[i][v], place(sums.data, integer(i * COLUMNS + v * LANES)), align=8)
    return context.get_dummy_value()


@intrinsic
def _sum_of_rows(typing, matrix, first, step, law, support, n, j, width, out):
    """out[j..j + width] of `mean_of_rows`, LANES ≤ width ≤ MOST·LANES; the last vector may overlap the one before it, with the same sums."""
    signature = nb.types.void(matrix, first, step, law, support, n, j, width, out)
    return signature, _sum_of_rows_code


def _sum_of_rows_code(context, builder, signature, arguments):
    number, integer = ir.DoubleType(), ir.IntType(64)
    vector = ir.VectorType(number, LANES)
    first, step, n, j, width = (arguments[i] for i in (1, 2, 5, 6, 7))
    matrix, law, support, out = (
        context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 3, 4, 8)
    )
    wide = builder.extract_value(matrix.shape, 1)
    tail = builder.sub(width, integer(LANES))

    def places(array, count):
        """Where the vectors of a row begin."""
        starts = [integer(v * LANES) for v in range(count - 1)] + [tail]
        return [builder.bitcast(builder.gep(array, [x]), vector.as_pointer()) for x in starts]

    after, before = builder.append_basic_block("summed"), builder.block
    how_many = builder.udiv(builder.add(width, integer(LANES - 1)), integer(LANES))
    choice = builder.switch(how_many, after)
    for count in range(1, MOST + 1):
        loop, done = builder.append_basic_block(f"vectors{count}"), builder.append_basic_block(f"written{count}")
        choice.add_case(integer(count), loop)
        builder.position_at_end(loop)
        k = builder.phi(integer)
        k.add_incoming(integer(0), before)
        totals = [builder.phi(vector) for _ in range(count)]
        s = builder.load(builder.gep(support.data, [k]))
        row = builder.add(builder.mul(builder.add(first, builder.mul(step, s)), wide), j)
        p = builder.insert_element(vector(ir.Undefined), builder.load(builder.gep(law.data, [s])), integer(0))
        p = builder.shuffle_vector(p, vector(ir.Undefined), ir.VectorType(ir.IntType(32), LANES)([0] * LANES))
        grown = []
        for total, place in zip(totals, places(builder.gep(matrix.data, [row]), count), strict=True):
            product = builder.fmul(p, builder.load(place, align=8), flags=["contract"])
            grown.append(builder.fadd(product, total, flags=["contract"]))
            total.add_incoming(vector([0.0] * LANES), before)
            total.add_incoming(grown[-1], loop)
        following = builder.add(k, integer(1))
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, n), loop, done)
        builder.position_at_end(done)
        for total, place in zip(grown, places(builder.gep(out.data, [j]), count), strict=True):
            builder.store(total, place, align=8)
        builder.branch(after)
    builder.position_at_end(after)
    return context.get_dummy_value()


@borrowing
def mean_of_rows(matrix, first, step, law, support, n, out):
    """out[j] = Σ_k law[support[k]]·matrix[first + step·support[k], j], k < n, of all columns j of the matrix."""
    wide = matrix.shape[1]
    if n == 0 or wide < LANES:
        for j in range(wide):
            out[j] = 0.0
        for k in range(n):
            s = support[k]
            for j in range(wide):
                out[j] += law[s] * matrix[first + step * s, j]
        return
    j = 0
    while j < wide:
        width = min(wide - j, MOST * LANES)
        if width < LANES:  # the last few: a whole vector again
            j, width = wide - LANES, LANES
        _sum_of_rows(matrix, first, step, law, support, n, j, width, out)
        j += width


@compiled
def aligned_room(n):
    """n numbers that begin with a line of the cache. A vector of eight is else read from two lines each time: a plan takes half as long again."""
    room = np.empty(n + LINE)
    first = -(np.int64(room.ctypes.data) // room.itemsize) % LINE
    return room[first : first + n]


@compiled
def room_for_columns(S, choices, n):
    """Scratch for `pack`, [panel, a, k·COLUMNS + j]: no more panels than n columns have or `PACKED` numbers hold."""
    panels = max(1, min(-(-n // COLUMNS), PACKED // max(S * choices * COLUMNS, 1)))
    return aligned_room(panels * choices * S * COLUMNS).reshape(panels, choices, S * COLUMNS)


@borrowing
def pack(v_next, w0, n, columns):
    """columns[i, a, k·COLUMNS + j] = v_next[k, a, w0 + i·COLUMNS + j], of n columns, and 0 for the rest of the last panel."""
    S, choices, _ = v_next.shape
    for k in range(S):
        for a in range(choices):
            row = v_next[k, a, w0 : w0 + n]
            for i in range(-(-n // COLUMNS)):
                to = columns[i, a, k * COLUMNS : (k + 1) * COLUMNS]
                wide = min(COLUMNS, n - i * COLUMNS)
                for j in range(wide):
                    to[j] = row[i * COLUMNS + j]
                for j in range(wide, COLUMNS):
                    to[j] = 0.0


@borrowing
def rows_of_tile(row, last):
    """The rows of a tile that begins at `row`: the last one stands for those that are missing."""
    return row, min(row + 1, last), min(row + 2, last), min(row + 3, last)


@borrowing
def multiply(matrix, v_next, w0, n, columns, sums, product):
    """product[row, a·n + j] = Σ_s2 matrix[row, s2]·v_next[s2, a, w0 + j], j < n; scratch: columns as `room_for_columns` makes them, sums[ROWS·COLUMNS]."""
    choices, rows, tile = v_next.shape[1], len(matrix), len(columns) * COLUMNS
    for w in range(0, n, COLUMNS):
        if w % tile == 0:
            pack(v_next, w0 + w, min(tile, n - w), columns)
        wide, packed = min(COLUMNS, n - w), columns[w % tile // COLUMNS]
        for row in range(0, rows, ROWS):
            for a in range(choices):
                tile_of_sums(matrix, rows_of_tile(row, rows - 1), packed[a], sums)
                for i in range(min(ROWS, rows - row)):
                    for j in range(wide):
                        product[row + i, a * n + w + j] = sums[i * COLUMNS + j]
