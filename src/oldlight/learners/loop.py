"""The loop that runs a learner and measures its regret.

For each episode k: the learner's policy π^k is fixed, its value V^{π^k} is computed (again only when the policy has
changed; exactly, unless that is too much work: `learners.judge`), one episode is played with it, and the learner sees what
the protocol reveals. Cumulative regret is

    Regret(K) = Σ_k ( max_π V^π − V^{π^k} ),

against one best executable policy, in expectation over the start. (The paper prints a comparator that knows s_1^k even where
the agent does not; then no delay could ever cost anything where only the start is hidden. `by_start=True` measures that form
too: `LearningRun.printed_regret`, see `learners.run`.)

One seed decides everything: the process, the link and the learner draw from generators made from it, so runs with the same
seed see the same luck, in this process or another. A checkpoint holds arrays and generator states, no pickle; a run that is
killed continues from it to the identical result.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, files
from oldlight.learners.base import Episode, Learner, Setting
from oldlight.learners.policy_evaluator import Judge, best_by_start
from oldlight.learners.run import LearningRun
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.planning import solve
from oldlight.progress import shown
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation import CHUNK, World


def learn(
    problem: ImpairedMDP,
    learner: Learner,
    episodes: int,
    *,
    seed: Seed = 0,
    evaluate: Literal["exact", "sampled"] = "exact",
    every: int = 1,
    best: float | None = None,
    failure: float = 0.1,
    by_start: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
    progress: bool | Callable[[int, int], None] | None = None,
) -> LearningRun:
    """Run `learner` for `episodes` episodes and measure its regret.

    evaluate: "exact": each policy is valued exactly, unless that would be far too much work: a policy that randomises behind loss and has
        to be asked at more than some 10,000 information states is valued by played episodes (see `learners.judge`). "sampled": all are.
        `run.sampled` says how many values were sampled, and `run.half_widths` carries their 95% intervals.
    every: value the policy of every n-th episode only; those between take the value before them, and the run says so.
    best: the value of the best executable policy, if it is known already (else it is planned first).
    failure: γ, the failure probability of the bonuses.
    by_start: record where each episode began and what its policy is worth from there, and measure `run.printed_regret` too,
        the paper's form with a comparator that knows the start. One plan for each first state, once, where it is hidden.
    checkpoint: a file to write every `checkpoint_every` seconds, and to continue from if it exists.

    Ctrl-C returns what there is.
    """
    checked_problem(problem, "learn")
    K = checks.whole("episodes", episodes, least=1)
    seed = seed_number(seed, must_repeat=None if checkpoint is None else "checkpoint=")
    checks.whole("every", every, least=1)
    if evaluate not in ("exact", "sampled"):
        raise ValueError(f'evaluate is {evaluate!r}, expected "exact" or "sampled"')
    if by_start and evaluate != "exact":
        raise ValueError(
            f'by_start=True takes the exact value of each policy from each start; evaluate is {evaluate!r}, expected "exact"'
        )
    name = learner.__name__ if isinstance(learner, type) else type(learner).__name__
    if isinstance(learner, type):
        raise TypeError(f"{name} is a class, expected a learner; write {name}(...)")
    for method in ("start", "see", "act" if not hasattr(learner, "policy") else "policy"):
        if not hasattr(learner, method):
            other = " and no policy()" if method == "act" else ""
            raise TypeError(f"{name} is not a learner: it has no {method}(){other}; see oldlight.learners.base")
    if checkpoint is not None and not Path(checkpoint).absolute().parent.is_dir():
        raise FileNotFoundError(f"checkpoint: {Path(checkpoint).parent}: no such folder; make it first")
    gamma = checks.probability("failure", failure)
    if gamma == 0:
        raise ValueError("failure is 0, expected a probability in (0, 1]: no bonus is large enough for certainty")
    optimum = solve(problem).value if best is None else checks.real("best", best)
    world, judge = World(problem), Judge(problem, evaluate, seed, by_start)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0, 3))))
    learner.start(Setting.of(problem, K, gamma, world.layout), rng)
    known = best_by_start(problem) if by_start else None
    run = LearningRun.empty(type(learner).__name__, repr(problem), K, seed, optimum, every, evaluate, known)
    done = 0
    if checkpoint is not None and Path(checkpoint).exists():
        done = _restore(Path(checkpoint), run, learner, rng, judge)
    saved = time.monotonic()
    policy: Policy | None = None
    latest: Policy
    player = None
    itself = hasattr(learner, "play_episode")  # a learner that plays in compiled code of its own
    draws, chunk = None, -1
    spoken = 0.0
    with shown(progress, f"{type(learner).__name__}") as tell, _asked_to_stop() as asked:
        try:
            for k in range(done, K):
                began = time.perf_counter()
                if k // CHUNK != chunk:
                    chunk = k // CHUNK
                    draws = world.draw(seed, chunk)
                assert draws is not None
                judged = k % every == 0
                if not itself or judged:
                    latest = _policy(learner, problem)
                judging = time.perf_counter()
                if judged:
                    run.values[k], run.half_widths[k] = judge.value(latest, k)
                else:
                    run.values[k], run.half_widths[k] = run.values[k - 1], run.half_widths[k - 1]
                judging = time.perf_counter() - judging
                if itself:
                    paid, states, actions, arrivals = learner.play_episode(world, draws.one(k % CHUNK))  # type: ignore[attr-defined]
                else:
                    if player is None or latest is not policy:
                        policy, player = latest, world.player(latest)
                    paid, _, _, states, actions, arrivals = world.play(player, draws.one(k % CHUNK), 1)
                learnt = time.perf_counter() - began - judging
                began = time.perf_counter()
                learner.see(_episode(problem, states[:, 0], actions[:, 0], arrivals[:, 0]))
                run.returns[k] = paid[0]
                if run.starts is not None and run.start_values is not None:
                    run.starts[k], run.start_values[k] = states[0, 0], judge.starts[states[0, 0]]
                run.estimates[k] = getattr(learner, "estimate", np.nan)
                run.seconds[k] = learnt + time.perf_counter() - began
                run.done = k + 1
                now = time.monotonic()
                if checkpoint is not None and now - saved >= checkpoint_every:
                    _save(Path(checkpoint), run, learner, rng, judge)
                    saved = now
                if tell is not None and now - spoken > 0.1:
                    tell(k + 1, K)
                    spoken = now
                if asked():  # Ctrl-C, heard between two episodes
                    run.interrupted = True
                    break
        except KeyboardInterrupt:  # in the middle of one: the last checkpoint stands
            run.interrupted = True
            return run.cut()
    if checkpoint is not None:
        _save(Path(checkpoint), run, learner, rng, judge)
    return run.cut()


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is heard, and the episode finished first; a second one stops at once."""
    heard = False

    def hear(number: int, frame: Any) -> None:
        nonlocal heard
        if heard:
            raise KeyboardInterrupt
        heard = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: heard
    finally:
        signal.signal(signal.SIGINT, before)


def _policy(learner: Any, problem: ImpairedMDP) -> Policy:
    """The policy of this episode: the learner's own, or its answers."""
    if hasattr(learner, "policy"):
        found: Policy = learner.policy()
        return found
    return FunctionPolicy(learner.act, problem.n_actions)


def _episode(problem: ImpairedMDP, states: Any, actions: Any, arrivals: Any) -> Episode:
    warmup, H = problem.warmup, problem.horizon
    paid = np.zeros(warmup + H)
    paid[warmup:] = problem.mdp.rewards[_steps(H), states[warmup:], actions[warmup:]]
    if problem.loss is not None:
        lost = arrivals == -1
        states, paid[lost] = np.where(lost, -1, states), np.nan
    return Episode(states.astype(np.int64), actions.astype(np.int64), arrivals.astype(np.int64), paid, warmup)


@lru_cache
def _steps(H: int) -> NDArray[np.int64]:
    return np.arange(H)


def learn_seeds(
    problem: ImpairedMDP,
    make: Callable[[], Learner],
    episodes: int,
    *,
    seeds: Iterable[Seed],
    workers: int = 1,
    **options: Any,
) -> list[LearningRun]:
    """One run per seed, in `workers` processes: the same runs, in the same order, as one after the other. Ctrl-C returns what there is.

    `make()` makes a new learner; with several workers it must be importable (a class, or functools.partial of one).
    """
    options.setdefault("best", solve(problem).value)
    repeats = "several workers" if workers > 1 else None
    tasks = [(problem, make, episodes, seed_number(seed, must_repeat=repeats), options) for seed in seeds]
    if workers > 1:
        return _in_processes(tasks, checks.whole("workers", workers, least=1))
    runs: list[LearningRun] = []
    for task in tasks:
        runs.append(_one(task))
        if runs[-1].interrupted:
            break
    return runs


def _in_processes(tasks: list[tuple[Any, ...]], workers: int) -> list[LearningRun]:
    """Ctrl-C ends the runs that are under way, as in one process, and starts no others."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
    left, running = dict(enumerate(tasks)), dict[Future[LearningRun], int]()
    runs: dict[int, LearningRun] = {}
    stopping = False
    try:
        while left or running:
            for worker in (
                active_children() if stopping else ()
            ):  # again and again: a worker that begins does not hear it yet
                if worker.pid is not None:
                    os.kill(worker.pid, signal.SIGINT)
            try:
                while left and len(running) < workers:  # no more: one that waits in the pool could not be called back
                    k = min(left)
                    running[pool.submit(_one, left.pop(k))] = k
                for future in wait(running, 0.5 if stopping else None, FIRST_COMPLETED).done:
                    runs[running.pop(future)] = future.result()
            except KeyboardInterrupt:
                stopping = True
                left.clear()
    finally:
        pool.shutdown(cancel_futures=True)
    return [runs[k] for k in sorted(runs)]


def _one(task: tuple[Any, ...]) -> LearningRun:
    problem, make, episodes, seed, options = task
    return learn(problem, make(), episodes, seed=seed, **options)


def _save(path: Path, run: LearningRun, learner: Any, rng: np.random.Generator, judge: Judge) -> None:
    if not hasattr(learner, "state"):
        raise TypeError(f"{type(learner).__name__} has no state() and restore(); it cannot be checkpointed")
    state = {f"learner.{name}": array for name, array in learner.state().items()}
    if run.starts is not None:
        state["judged"] = judge.starts  # of the last policy valued: with every=n those after it take its value
    state["held"] = np.array(hasattr(learner, "policy") and judge.holds(learner.policy()))  # it is not valued again
    checks.save_arrays(path, generator=np.array(json.dumps(rng.bit_generator.state)), **run.arrays(), **state)


def _restore(path: Path, run: LearningRun, learner: Any, rng: np.random.Generator, judge: Judge) -> int:
    with files.arrays_in(path) as held:
        run.fill(held, str(path))
        if run.starts is not None:
            judge.starts = held.array("judged", "f", judge.starts.shape)
        rng.bit_generator.state = files.json_of(held.words("generator"))
        state = {name: held.array(name, "biufU") for name in held.beginning("learner.")}
        learner.restore({name.removeprefix("learner."): array for name, array in state.items()})
        if "held" in held and held.array("held", "b", ()):
            judge.hold(learner.policy(), run.values[run.done - 1], run.half_widths[run.done - 1])
    return run.done
