"""The loop that runs a learner and measures its regret.

For each episode k: the learner's policy π^k is fixed, its exact value V^{π^k} is computed (again only when the policy has
changed), one episode is played with it, and the learner sees what the protocol reveals. Cumulative regret is

    Regret(K) = Σ_k ( max_π V^π − V^{π^k} ),

against one best executable policy, in expectation over the start. (The paper prints a comparator that knows s_1^k even where
the agent does not; then no delay could ever cost anything where only the start is hidden.)

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
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.information import Layout
from oldlight.learners.protocol import Episode, Learner, Setting
from oldlight.learners.run import LearningRun
from oldlight.planning import solve
from oldlight.planning.delay import DelayModel, Induction, by_start
from oldlight.planning.evaluation import evaluate as value_of
from oldlight.planning.progress import shown
from oldlight.policies import FunctionPolicy, Policy, TablePolicy
from oldlight.problem import ImpairedMDP, checked_problem
from oldlight.simulation import CHUNK, World

Floats = NDArray[np.float64]


class _Judge:
    """The value of each policy that a learner plays; the same policy object is valued once."""

    def __init__(self, problem: ImpairedMDP, how: str, episodes: int, seed: int) -> None:
        self.problem, self.how, self.episodes, self.seed = problem, how, episodes, seed
        self._last: Policy | None = None
        self._value = (np.nan, 0.0)
        self._model = DelayModel(problem, Layout.of(problem)) if problem.seen is None else None

    def value(self, policy: Policy) -> tuple[float, float]:
        """(value, half-width of a 95% interval: 0 if exact)."""
        if policy is not self._last:
            self._last, self._value = policy, self._judge(policy)
        return self._value

    def _judge(self, policy: Policy) -> tuple[float, float]:
        if self.how == "sampled":
            found = value_of(self.problem, FunctionPolicy(policy.probabilities, self.problem.n_actions), max_states=0,
                             episodes=self.episodes, seed=self.seed)  # fmt: skip
            return found.value, found.half_width
        if self._model is not None and isinstance(policy, TablePolicy):
            first = Induction(self._model, given=policy.actions, mix=policy.chances).run()
            return float(self.problem.initial @ by_start(self.problem, first)), 0.0
        found = value_of(self.problem, policy, episodes=self.episodes, seed=self.seed)
        return found.value, found.half_width


def learn(
    problem: ImpairedMDP,
    learner: Learner,
    episodes: int,
    *,
    seed: int,
    evaluate: str = "exact",
    every: int = 1,
    best: float | None = None,
    failure: float = 0.1,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
    progress: bool | Callable[[int, int], None] | None = None,
) -> LearningRun:
    """Run `learner` for `episodes` episodes and measure its regret.

    evaluate: "exact", or "sampled" where the value of a policy is too dear (the run then carries half-widths).
    every: value the policy of every n-th episode only; those between take the value before them, and the run says so.
    best: the value of the best executable policy, if it is known already (else it is planned first).
    failure: γ, the failure probability of the bonuses.
    checkpoint: a file to write every `checkpoint_every` seconds, and to continue from if it exists.

    Ctrl-C returns what there is.
    """
    checked_problem(problem, "learn")
    K = checks.whole("episodes", episodes, least=1)
    checks.whole("seed", seed)
    checks.whole("every", every, least=1)
    if evaluate not in ("exact", "sampled"):
        raise ValueError(f'evaluate is {evaluate!r}, expected "exact" or "sampled"')
    for method in ("start", "see"):
        if not hasattr(learner, method):
            raise TypeError(
                f"{type(learner).__name__} is not a learner: it has no {method}(); see oldlight.learners.protocol"
            )
    gamma = checks.probability("failure", failure)
    optimum = solve(problem).value if best is None else checks.real("best", best)
    world, judge = World(problem), _Judge(problem, evaluate, 20_000, seed)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0, 3))))
    learner.start(Setting.of(problem, K, gamma, world.layout), rng)
    run = LearningRun.empty(type(learner).__name__, repr(problem), K, seed, optimum, every, evaluate)
    done = 0
    if checkpoint is not None and Path(checkpoint).exists():
        done = _restore(Path(checkpoint), run, learner, rng)
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
                judged = k % every == 0 or k == done
                if not itself or judged:
                    latest = _policy(learner, problem)
                judging = time.perf_counter()
                if judged:
                    run.values[k], run.half_widths[k] = judge.value(latest)
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
                run.estimates[k] = getattr(learner, "estimate", np.nan)
                run.seconds[k] = learnt + time.perf_counter() - began
                run.done = k + 1
                now = time.monotonic()
                if checkpoint is not None and now - saved >= checkpoint_every:
                    _save(Path(checkpoint), run, learner, rng)
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
        _save(Path(checkpoint), run, learner, rng)
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
    lead, H = problem.lead, problem.horizon
    paid = np.zeros(lead + H)
    paid[lead:] = problem.mdp.rewards[_steps(H), states[lead:], actions[lead:]]
    if problem.loss is not None:
        lost = arrivals == -1
        states, paid[lost] = np.where(lost, -1, states), np.nan
    return Episode(states.astype(np.int64), actions.astype(np.int64), arrivals.astype(np.int64), paid, lead)


@lru_cache
def _steps(H: int) -> NDArray[np.int64]:
    return np.arange(H)


def learn_seeds(
    problem: ImpairedMDP,
    make: Callable[[], Learner],
    episodes: int,
    *,
    seeds: Iterable[int],
    workers: int = 1,
    **options: Any,
) -> list[LearningRun]:
    """One run per seed, in `workers` processes: the same runs, in the same order, as one after the other.

    `make()` makes a new learner; with several workers it must be importable (a class, or functools.partial of one).
    """
    options.setdefault("best", solve(problem).value)
    tasks = [(problem, make, episodes, seed, options) for seed in seeds]
    if workers == 1:
        return [_one(task) for task in tasks]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_one, tasks))


def _one(task: tuple[Any, ...]) -> LearningRun:
    problem, make, episodes, seed, options = task
    return learn(problem, make(), episodes, seed=seed, **options)


def _save(path: Path, run: LearningRun, learner: Any, rng: np.random.Generator) -> None:
    if not hasattr(learner, "state"):
        raise TypeError(f"{type(learner).__name__} has no state() and restore(); it cannot be checkpointed")
    state = {f"learner.{name}": array for name, array in learner.state().items()}
    checks.save_arrays(path, generator=np.array(json.dumps(rng.bit_generator.state)), **run.arrays(), **state)


def _restore(path: Path, run: LearningRun, learner: Any, rng: np.random.Generator) -> int:
    data = checks.load_arrays(path, needs=("generator", "values", "head"))
    run.fill(data, str(path))
    rng.bit_generator.state = json.loads(str(data["generator"]))
    learner.restore({key.removeprefix("learner."): value for key, value in data.items() if key.startswith("learner.")})
    return run.done
