"""Random seeds: the one place where `seed=` of a call is read.

Every call that draws makes its generators from one whole number, with `numpy.random.SeedSequence(number, spawn_key=...)`: one stream for
each purpose (the process, the link, the policy, the learner). `seed_number` gives that number for whatever may stand after `seed=`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from oldlight import checks

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator
LARGEST = 2**63 - 1  # fits in every file format


def stream(seed: int | None, *purpose: int) -> np.random.Generator:
    """The generator of one purpose, which others with this seed know nothing of; None: another one each time."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=purpose)))


def words(seed: int) -> NDArray[np.uint32]:
    """The seed as `stream` reads it, 32 bits at a time, for compiled loops that draw the same numbers (`oldlight.kernels.random_numbers`)."""
    return np.frombuffer(seed.to_bytes(4 * max(1, -(-seed.bit_length() // 32)), "little"), "<u4").astype(np.uint32)


def seed_number(seed: Seed, *, must_repeat: str | None = None) -> int:
    """The whole number from which the random streams of a call are made.

    Parameters
    ----------
    seed : int, SeedSequence or Generator
        A whole number ≥ 0 stands for itself, and `SeedSequence(5)` for 5. Another SeedSequence (a spawned one, say) gives a number that
        depends on its entropy and spawn key only. A Generator draws one number, so a second call with it gives other results.
    must_repeat : str, optional
        What needs the same number again later or elsewhere, e.g. "checkpoint="; a Generator is then refused.

    Returns
    -------
    int
        In 0..2**63−1 unless a larger int was given.

    Examples
    --------
    >>> import numpy as np
    >>> from oldlight.random_streams import seed_number
    >>> seed_number(5), seed_number(np.random.SeedSequence(5))
    (5, 5)
    >>> generator = np.random.default_rng(0)
    >>> seed_number(generator) == seed_number(generator)
    False
    """
    if isinstance(seed, np.random.Generator):
        if must_repeat is not None:
            raise ValueError(
                f"seed is a Generator, which gives another number each time; with {must_repeat} the seed must be an int or a SeedSequence"
            )
        return int(seed.integers(LARGEST, endpoint=True))
    if isinstance(seed, np.random.SeedSequence):
        entropy = seed.entropy
        if not seed.spawn_key and isinstance(entropy, int | np.integer) and entropy <= LARGEST:
            return int(entropy)
        return int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(seed, bool) or not isinstance(seed, int | float | np.number):
        raise ValueError(f"seed is {seed!r}, expected a whole number ≥ 0, a numpy SeedSequence or a Generator")
    return checks.whole("seed", seed)
