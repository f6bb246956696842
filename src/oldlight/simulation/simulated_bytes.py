"""What `simulate` will need, in bytes, computed before anything is played."""

from __future__ import annotations

from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes, thread_count
from oldlight.model.problem import ImpairedMDP

CHUNK = 4096  # episodes that are played together


def simulated_bytes(problem: ImpairedMDP, episodes: int, record: bool = False, threads: int | None = None) -> int:
    """The most bytes that `simulate` holds at once, beside the policy: returns, rewards by chunk and step, records in parts and put together, and for each thread the random
    numbers and the steps of a chunk and its ages. threads: all cores if None."""
    H, steps = problem.horizon, problem.warmup + problem.horizon
    chunks = -(-episodes // CHUNK)
    threads = min(chunks, threads or thread_count())
    if problem.has_delay_law:
        chunk = (28 * steps + 8 * H + 40 + (0 if problem.loss is None else H)) * CHUNK  # numbers, steps, agents, losses
    else:  # `LinkEpisodes`
        threads, chunk = 1, 64 * H * CHUNK
    return (
        8 * (episodes + chunks * H)
        + (24 * steps * episodes if record else 0)
        + threads * (chunk + 16 * H * (steps + 1))
    )


def refuse_size(problem: ImpairedMDP, episodes: int, record: bool, threads: int) -> None:
    """Refuse what takes more than half of the memory."""
    need, limit = simulated_bytes(problem, episodes, record, threads), default_limit()
    if need > limit:
        raise TooLarge(
            f"simulate: {episodes:,} episodes of {problem.warmup + problem.horizon:,} steps{' with their record' if record else ''} take "
            f"{format_bytes(need)}; the limit is {format_bytes(limit)}, half of the memory. Play fewer at a time, with another seed each"
        )
