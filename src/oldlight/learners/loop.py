"""The loop that runs a learner and measures its regret.

For each episode k: the learner's policy π^k is fixed, its value V^{π^k} is computed (again only when the policy has
changed; exactly, unless that is too much work: `learners.policy_evaluator`), one episode is played with it, and the learner sees what
the protocol reveals. Cumulative regret is

    Regret(K) = Σ_k ( max_π V^π − V^{π^k} ),

against one best executable policy, in expectation over the start. (The paper prints a comparator that knows s_1^k even where
the agent does not; then no delay could ever cost anything where only the start is hidden. `by_start=True` measures that form
too: `LearningRun.printed_regret`, see `learners.run`.)

One seed decides everything: the process, the link and the learner draw from generators made from it, so runs with the same
seed meet the same random numbers, in this process or another. A run that is killed or interrupted continues from its checkpoint to
the identical result (`learners.checkpoint`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oldlight import checks
from oldlight.learners.base import LearnerLike, Setting, acts_on_nodes, has_hook
from oldlight.learners.checkpoint import Checkpoint
from oldlight.learners.episode_loop import EpisodeLoop
from oldlight.learners.policy_evaluator import PolicyEvaluator, best_by_start
from oldlight.learners.run import COLUMNS, Every, LearningRun, checked_every
from oldlight.learners.run_memory import refuse_memory
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.model.table_size import check_room
from oldlight.planning import solve
from oldlight.progress import progress_bar
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation import World
from oldlight.simulation.link_world import LinkWorld
from oldlight.workers import Pool

Progress = bool | Callable[[int, int], None] | None


def learn(
    problem: ImpairedMDP,
    learner: LearnerLike,
    episodes: int,
    *,
    seed: Seed = 0,
    evaluate: Literal["exact", "sampled"] = "exact",
    every: Every = 1,
    best: float | None = None,
    failure: float = 0.1,
    by_start: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
    progress: Progress = None,
    stop: Callable[[Any], bool] | None = None,
) -> LearningRun:
    """Run `learner` for `episodes` episodes and measure its regret.

    Parameters
    ----------
    problem, learner, episodes
        What is learnt, by whom (see `oldlight.learners.base`), and for how long.
    seed
        Random seed of the process, the link and the learner.
    evaluate
        "exact": each policy is valued exactly, unless that would be far too much work: a policy that randomises behind loss and has to be
        asked at more than some 10,000 information states is valued by played episodes (see `learners.policy_evaluator`). "sampled": all
        are. `run.sampled` is how many values were sampled, and `run.half_widths` carries their 95% intervals.
    every
        Value the policy of every n-th episode only; those between take the value before them, and `run.every` is n. A large n lets the first
        policy, which knows nothing, count for n episodes: "growing" values each of the first 32, then every 2nd up to 64, every 4th up to 128, ..
    best
        The value of the best executable policy, if it is known already (else it is planned first).
    failure
        γ, the failure probability of the bonuses, in (0, 1].
    by_start
        Record where each episode began and what its policy is worth from there, and measure `run.printed_regret` too, the paper's form
        with a comparator that knows the start. One plan for each first state, once, where it is hidden.
    checkpoint, checkpoint_every
        A file to write every `checkpoint_every` seconds, and to continue from if it exists.
    progress
        A function callback(done, total), True or False for a progress bar; None: a bar on a terminal after two seconds, elsewhere a
        line every ten.
    stop
        A function of the learner, asked after each episode (or block of episodes): True ends the run there, and `run.done` says how many there
        were. `learners.WithinEpsilon(eps)` ends it when a policy is ε-optimal with probability 1 − failure.

    Returns
    -------
    LearningRun
        `.values`, `.regret`, `.returns`, each of shape (episodes,), and more.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, after writing the checkpoint. Its attribute `partial` is the LearningRun of the episodes that were complete.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), ol.ConstantDelay(1))
    >>> run = ol.learn(problem, ol.learners.DelayedUCBVI(), 20, seed=1)
    >>> run.regret.shape
    (20,)
    """
    _check(problem, learner, evaluate, by_start, checkpoint)
    K = checks.whole("episodes", episodes, least=1)
    seed = seed_number(seed, must_repeat=None if checkpoint is None else "checkpoint=")
    every = checked_every(every)
    gamma = _failure(failure)
    check_room("learn", f"a table of what is recorded of {K:,} episodes", len(COLUMNS), K)
    refuse_memory(problem, learner, evaluate, K)
    optimum = _optimum(problem, None) if best is None else checks.real("best", best)
    world = LinkWorld(problem) if acts_on_nodes(learner, problem) else World(problem)
    evaluator = PolicyEvaluator(problem, evaluate, seed, by_start)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0, 3))))
    learner.start(Setting.of(problem, K, gamma, world.layout), rng)
    known = best_by_start(problem) if by_start else None
    run = LearningRun.empty(
        K,
        known,
        learner=type(learner).__name__,
        problem=repr(problem),
        seed=seed,
        best=optimum,
        every=every,
        evaluate=evaluate,
    )
    saved = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_every, run, learner, rng, evaluator)
    if saved is not None:
        saved.restore()
    return _run_episodes(EpisodeLoop(world, learner, evaluator, run), saved, progress, stop)


def _optimum(problem: ImpairedMDP, nothing: Any) -> float:
    """The value that regret is measured against; Ctrl-C raises with `nothing` as its partial, because nothing is learnt yet."""
    try:
        return solve(problem).value
    except KeyboardInterrupt as stop:
        stop.partial = nothing  # type: ignore[attr-defined]
        raise


def _run_episodes(
    episodes: EpisodeLoop, checkpoint: Checkpoint | None, progress: Progress, stop: Callable[[Any], bool] | None
) -> LearningRun:
    """The episodes that are left; Ctrl-C ends them after the last complete one."""
    run, reported = episodes.run, 0.0
    try:
        with progress_bar(progress, run.learner) as callback:
            while run.done < run.episodes:
                episodes.some()
                if checkpoint is not None:
                    checkpoint.episode_done(last=run.done == run.episodes)
                if callback is not None and time.monotonic() - reported > 0.1:
                    callback(run.done, run.episodes)
                    reported = time.monotonic()
                if stop is not None and stop(episodes.learner):
                    break
    except KeyboardInterrupt as stop:
        if checkpoint is not None:
            checkpoint.write()
        run.interrupted = True
        stop.partial = run.cut()  # type: ignore[attr-defined]
        raise
    return run.cut()


def _check(problem: Any, learner: Any, evaluate: str, by_start: bool, checkpoint: Any) -> None:
    """Refuse before any work."""
    checked_problem(problem, "learn")
    if evaluate not in ("exact", "sampled"):
        raise ValueError(f'evaluate is {evaluate!r}, expected "exact" or "sampled"')
    if by_start and evaluate != "exact":
        raise ValueError(
            f'by_start=True takes the exact value of each policy from each start; evaluate is {evaluate!r}, expected "exact"'
        )
    name = learner.__name__ if isinstance(learner, type) else type(learner).__name__
    if isinstance(learner, type):
        raise TypeError(f"{name} is a class, expected a learner; write {name}(...)")
    for method in ("start", "see", "act" if not has_hook(learner, "policy") else "policy"):
        if not hasattr(learner, method):
            other = " and no policy()" if method == "act" else ""
            raise TypeError(f"{name} is not a learner: it has no {method}(){other}; see oldlight.learners.base")
    if checkpoint is not None and not Path(checkpoint).absolute().parent.is_dir():
        raise FileNotFoundError(f"checkpoint: {Path(checkpoint).parent}: no such folder; make it first")


def _failure(failure: float) -> float:
    gamma = checks.probability("failure", failure)
    if gamma == 0:
        raise ValueError("failure is 0, expected a probability in (0, 1]: no bonus is large enough for certainty")
    return gamma


def learn_seeds(
    problem: ImpairedMDP,
    make: Callable[[], LearnerLike],
    episodes: int,
    *,
    seeds: Iterable[Seed],
    workers: int = 1,
    **options: Any,
) -> list[LearningRun]:
    """One run per seed, in `workers` processes: the same runs, in the same order, as one after the other.

    Parameters
    ----------
    problem : ImpairedMDP
        As for `learn`.
    make : function
        Makes a new learner; with several workers it must be importable (a class, or functools.partial of one).
    episodes : int
        As for `learn`.
    seeds : iterable of seeds
        The seed of each run.
    workers : int
        How many processes; with 1, the runs are made in this one.
    **options
        Those of `learn`; `progress` is of the episodes of all runs together.

    Returns
    -------
    list of LearningRun
        In the order of the seeds.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C. Its attribute `partial` is the list of the runs so far; those that were under way hold their complete episodes.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), ol.ConstantDelay(1))
    >>> [run.seed for run in ol.learners.learn_seeds(problem, ol.learners.DelayedUCBVI, 20, seeds=range(3))]
    [0, 1, 2]
    """
    if "best" not in options:
        options["best"] = _optimum(problem, [])
    repeats = "several workers" if workers > 1 else None
    with progress_bar(options.pop("progress", None), "learning") as callback:
        numbers = [seed_number(seed, must_repeat=repeats) for seed in seeds]
        tasks = [(problem, make, episodes, seed, options, callback is not None) for seed in numbers]
        count = _EpisodeCount(len(tasks), callback)
        if workers > 1:
            return _in_processes(tasks, checks.whole("workers", workers, least=1), count)
        runs: list[LearningRun] = []
        try:
            for k, task in enumerate(tasks):
                runs.append(_one(task, partial(count, k)))
        except KeyboardInterrupt as stop:
            stop.partial = runs + [run for run in [getattr(stop, "partial", None)] if run is not None]  # type: ignore[attr-defined]
            raise
        return runs


class _EpisodeCount:
    """Counts the episodes of several runs for one callback(done, total)."""

    def __init__(self, n: int, callback: Callable[[int, int], None] | None) -> None:
        self._done, self._callback = [0] * n, callback

    def __call__(self, k: int, now: tuple[int, int]) -> None:
        self._done[k] = now[0]
        if self._callback is not None:
            self._callback(sum(self._done), now[1] * len(self._done))


def _in_processes(tasks: list[tuple[Any, ...]], workers: int, count: _EpisodeCount) -> list[LearningRun]:
    """Ctrl-C ends the runs that are under way, as in one process, and starts no others."""
    runs: dict[int, LearningRun] = {}
    with Pool(_one, workers) as pool:
        try:
            for kind, k, what in pool.run(tasks):
                if kind == "reported":
                    count(k, what)
                elif kind == "failed":
                    raise what
                elif kind == "died":
                    raise RuntimeError(f"seed {tasks[k][3]}: {what}")
                elif kind == "done":
                    runs |= {} if what is None else {k: what}
                    if what is None or what.interrupted:
                        raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            runs |= {k: run for k, run in pool.stop().items() if run is not None}
            stop.partial = [runs[k] for k in sorted(runs)]  # type: ignore[attr-defined]
            raise
    return [runs[k] for k in sorted(runs)]


def _one(task: tuple[Any, ...], report: Callable[[Any], None]) -> LearningRun:
    """One run, in this process or a worker; report((done, total)) if somebody wants to know."""
    problem, make, episodes, seed, options, wanted = task
    progress: Progress = (lambda done, total: report((done, total))) if wanted else False
    return learn(problem, make(), episodes, seed=seed, progress=progress, **options)
