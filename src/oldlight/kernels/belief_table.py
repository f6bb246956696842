"""Numbers that the compiled search under loss and `oldlight.planning.loss` share; without numba, so that they can be read before it is loaded."""

HEAD = 4  # columns of the belief table before the belief
SHIFT = 7  # low bits of the hash that do not choose the slot
GAP = 1.05  # a node whose bounds are within this many slacks is settled (the rest is rounding)
