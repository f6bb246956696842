"""Where the blocks of a table stand in a file: what is checked of every file that holds one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

RENAMED_MEMBER = "chances"  # action_probabilities, in files of before


def places(offset: NDArray[Any], root: NDArray[Any], S: int, A: int, size: int) -> Iterator[tuple[str, bool]]:
    """The places of blocks in a table (see `Layout`) by name, and whether each block ends before the table does."""
    m, h = np.arange(offset.shape[1]), np.arange(len(root))
    with np.errstate(over="ignore"):
        block_ends, root_ends = offset + S * float(A) ** m[:, None], root + float(A) ** h
    yield "offset", bool(((block_ends <= size) | (offset < 0)).all())
    yield "root", bool(((root_ends <= size) | (root < 0)).all())
