"""What a learning run will need, in bytes, computed before anything is made: what `learn` refuses by.

Behind a delay the tables over the N information states decide: with A actions in i bytes each and E = Σ_m S·A^m entries for the queues after the last action,

    learners that plan (DelayedUCBVI, PosteriorSampling)     values 8·(N + E), actions and two copies of them 3·i·N
    learners on the augmented process                        numbers 4·(N + E'), E' up to one action more, actions and copies 5·i·N
    learners on the newest observation (Memoryless..)        places 8·N, actions and a copy 2·i·N
    LinkLearner                                              the same with a state more, and three tables over (t, s, a, s2): 28·H·S·A·S
    what values the policies                                 all times of the values where they are few (N ≤ 2^22), else two times, as a plan has

and before it the plan for the optimum. Learners of one's own, and those that keep what they have met, are counted by the last line alone.

Behind a link that loses, and for `LinkLearner` behind every link that is planned by its nodes, `learners.lossy_memory` has the arithmetic.
"""

from __future__ import annotations

from typing import Any

from oldlight.arrays import action_type
from oldlight.checks import TooLarge
from oldlight.learners.augmented_q_learning import AugmentedQLearning
from oldlight.learners.augmented_ucbvi import AugmentedUCBVI
from oldlight.learners.base import acts_on_nodes
from oldlight.learners.delayed_ucbvi import DelayedUCBVI
from oldlight.learners.link_learner import LinkLearner
from oldlight.learners.lossy_memory import lossy_bytes
from oldlight.learners.memoryless import MemorylessQLearning, MemorylessUCBVI
from oldlight.learners.policy_evaluator import TABLE
from oldlight.learners.posterior_sampling import PosteriorSampling
from oldlight.machine import default_limit, format_bytes, power
from oldlight.model.information import Layout
from oldlight.model.problem import ImpairedMDP

LONGEST_CODE = 2**62  # codes of queues are whole numbers of 64 bits


def run_bytes(problem: ImpairedMDP, learner: Any, evaluate: str = "exact", episodes: int | None = None) -> int:
    """The most bytes that `learn` holds at once, the plan for the optimum aside; episodes: how many are played, for learners that keep what they meet."""
    if acts_on_nodes(learner, problem) or problem.arrival_probability is not None:
        return lossy_bytes(problem, learner, episodes)
    layout = Layout.of(problem)
    S, A, H, N = (int(n) for n in (layout.n_states, layout.n_actions, layout.horizon, layout.size))
    i = int(action_type(A).itemsize)
    sizes = layout.entries
    longest = H if layout.root[H - 1] >= 0 else max(block.m for block in layout.blocks(H - 1))
    after = S * power(A, longest)
    ends = sum(S * power(A, m) for m in range(longest + 1))
    two_times = 8 * max(x + y for x, y in zip(sizes, [*sizes[1:], after], strict=True))
    valued = 0 if evaluate != "exact" else 8 * (sum(sizes) + after) + 2 * i * N if N <= TABLE else two_times
    rows = H + problem.warmup
    if isinstance(learner, DelayedUCBVI | PosteriorSampling):
        counted: int = (1 if getattr(learner, "pooled", False) else rows) * 20 * S * S * A
        if getattr(learner, "planning", None) == "greedy" and ends * A < LONGEST_CODE:
            return valued + counted
        return valued + counted + 8 * (N + ends) + 3 * i * N
    if isinstance(learner, LinkLearner):
        more = (S + 1) / S  # the state that is added
        return valued + 28 * H * S * S * A + int(more * (8 * (N + ends) + 3 * i * N))
    if isinstance(learner, AugmentedUCBVI | AugmentedQLearning):
        return valued + 4 * (N + ends + S * power(A, longest + 1)) + 5 * i * N
    if isinstance(learner, MemorylessUCBVI | MemorylessQLearning):
        return valued + 8 * N + 2 * i * N
    return valued


def refuse_memory(problem: ImpairedMDP, learner: Any, evaluate: str = "exact", episodes: int | None = None) -> None:
    """Refuse a run whose tables take more than half of the memory."""
    need, limit = run_bytes(problem, learner, evaluate, episodes), default_limit()
    if need > limit:
        lossy = problem.arrival_probability is not None or acts_on_nodes(learner, problem)
        out = "a shorter delay (channel.capped(k)), a shorter horizon, or DelayedUCBVI(planning='greedy') with evaluate='sampled' and best=..."
        out = "fewer states, pooled=True where the learner has it, or LossUCBVI()" if lossy else out
        raise TooLarge(
            f"{type(learner).__name__} behind {problem.channel!r} on S={problem.n_states}, A={problem.n_actions}, H={problem.horizon} needs "
            f"{format_bytes(need)} for its tables; the limit is {format_bytes(limit)}, half of the memory. Ways out: {out}: it keeps what it has met"
        )
