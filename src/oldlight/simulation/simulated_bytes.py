"""What `simulate` will need, in bytes, computed before anything is played."""

from __future__ import annotations

from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes, thread_count
from oldlight.model.problem import ImpairedMDP

CHUNK = 4096  # episodes that are played together


def simulated_bytes(problem: ImpairedMDP, episodes: int, record: bool = False) -> int:
    """The most bytes that `simulate` holds at once, beside the policy: returns and records, in parts and put together, and the chunks being played."""
    steps = problem.warmup + problem.horizon
    drawn = (
        1
        + (not problem.has_delay_law or problem.loss is not None or problem.law.constant is None)
        + (problem.warmup > 0)
    )
    chunks = min(-(-episodes // CHUNK), thread_count()) * (8 * drawn + 12) * steps * CHUNK
    return 16 * episodes + (24 * steps * episodes if record else 0) + chunks


def refuse_size(problem: ImpairedMDP, episodes: int, record: bool) -> None:
    """Refuse what takes more than half of the memory."""
    need, limit = simulated_bytes(problem, episodes, record), default_limit()
    if need > limit:
        raise TooLarge(
            f"simulate: {episodes:,} episodes of {problem.warmup + problem.horizon:,} steps{' with their record' if record else ''} take "
            f"{format_bytes(need)}; the limit is {format_bytes(limit)}, half of the memory. Play fewer at a time, with another seed each"
        )
