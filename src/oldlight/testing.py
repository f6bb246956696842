"""Checks for learners, policies and channels of one's own: what those of the package pass.

from oldlight.testing import check_channel, check_learner
check_channel(MyChannel())                  # does its automaton fit together, and does the sampler draw what it says?
check_learner(MyLearner())                  # on a small delayed problem; raises AssertionError and says what is wrong
check_learner(MyLearner(), problem)         # on yours: small, because every information state is visited
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.learners.base import Setting, acts_on_nodes, current_policy, has_hook
from oldlight.learners.loop import learn
from oldlight.learners.run import LearningRun
from oldlight.learners.uniform import UniformRandom
from oldlight.model.channels import ConstantDelay
from oldlight.model.episode import Episode
from oldlight.model.information import Information, Layout
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import solve
from oldlight.planning.evaluation import evaluate, visits
from oldlight.planning.link_walk import reached
from oldlight.simulation.channel_check import check_channel
from oldlight.simulation.link_episodes import decide

EPISODES, BEFORE_STOP = 16, 6
ROUNDING = 1e-9
MAX_STATES = 100_000  # information states that are visited
COLUMNS = ("values", "returns", "estimates")


def check_learner(learner: Any, problem: ImpairedMDP | None = None) -> None:
    """Does `learner` keep the contract of `oldlight.learners.base`? It is copied, and not changed itself.

    Between two episodes its answers are one policy: probabilities of the actions, the same each time, those of `policy()` if it has one,
    without drawing from the run's generator. One seed gives one run. With `state()` and `restore()`, a run that is interrupted goes on
    from its checkpoint to the identical result.

    Parameters
    ----------
    learner
        An object with `start`, `act` (or `policy`) and `see`.
    problem
        What to learn: small, because every information state that the learner can reach is visited. By default three states, two
        actions, horizon 4 and a delay of one step.

    Raises
    ------
    AssertionError
        What the learner does, and what was expected. Refusals of the learner itself are passed on.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.testing import check_learner
    >>> check_learner(ol.learners.DelayedUCBVI(pooled=True))
    >>> class Restless:
    ...     def start(self, setting, rng): self.rng = rng
    ...     def act(self, info): return int(self.rng.integers(2))
    ...     def see(self, episode): ...
    >>> check_learner(Restless())
    Traceback (most recent call last):
        ...
    AssertionError: Restless: between two episodes act(...) draws from the run's generator; draw in start() and see() only
    """
    problem = _small_problem() if problem is None else problem
    _check_one_policy(copy.deepcopy(learner), problem)
    name, best = type(learner).__name__, solve(problem).value
    one, again = (learn(problem, copy.deepcopy(learner), EPISODES, seed=3, best=best, progress=False) for _ in range(2))
    _check_same(one, again, f"{name}: two runs with the same seed differ")
    for k in np.flatnonzero(one.values - one.half_widths > best + ROUNDING)[:1].tolist():
        raise AssertionError(
            f"{name}: the policy of episode {k} is worth {one.values[k]:.10g}, more than the best executable one, {best:.10g}"
        )
    if has_hook(learner, "state"):
        _check_checkpoint(learner, problem, one)


def check_policy(policy: Policy, problem: ImpairedMDP) -> None:
    """Is `policy` an executable policy of `problem`? Asked wherever its own actions lead, it gives probabilities, the same each time,
    and it is worth no more than the best one.

    Parameters
    ----------
    policy
        An object with `probabilities(info)`, shape (A,); its `action(info)`, if it has one, must fit.
    problem
        Small: every information state that the policy reaches is visited, and the best policy is planned.

    Raises
    ------
    AssertionError
        Where the policy fails, what it answers, and what was expected.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.testing import check_policy
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8, horizon=4), ol.ConstantDelay(1))
    >>> check_policy(ol.solve(problem).policy, problem)
    >>> check_policy(ol.FunctionPolicy(lambda info: info.h % 2, problem.n_actions), problem)
    """
    name = type(policy).__name__
    for info in _reached(policy, problem):
        found = _probabilities(policy.probabilities(info), problem.n_actions, f"{name}: probabilities({info!r})")
        if not np.array_equal(policy.probabilities(info), found):
            raise AssertionError(
                f"{name}: probabilities({info!r}) change from one call to the next; expected one policy"
            )
        if found.max() == 1.0 and hasattr(policy, "action") and policy.action(info) != found.argmax():
            raise AssertionError(
                f"{name}: action({info!r}) is {policy.action(info)}, but probabilities say {int(found.argmax())}"
            )
    value, best = evaluate(problem, policy), solve(problem).value
    if value.value - value.half_width > best + ROUNDING:
        raise AssertionError(f"{name} is worth {value.value:.10g}, more than the best executable policy, {best:.10g}")


def _small_problem() -> ImpairedMDP:
    rng = np.random.default_rng(81)
    transitions = 0.9 * rng.dirichlet(0.5 * np.ones(3), size=(3, 2)) + 0.1 / 3
    return ImpairedMDP(TabularMDP(transitions, rng.random((3, 2)), horizon=4), ConstantDelay(1))


def _check_one_policy(learner: Any, problem: ImpairedMDP) -> None:
    """Between two episodes the answers of `act` and of `policy()` are one policy, and nothing is drawn."""
    name, rng = type(learner).__name__, np.random.default_rng(0)
    nodes = acts_on_nodes(learner, problem)
    layout = None if nodes or problem.arrival_probability is not None else Layout.of(problem)
    learner.start(Setting.of(problem, EPISODES, 0.1, layout), rng)
    for episode in [None, *_episodes(problem, 4)]:
        if episode is not None:
            learner.see(episode)
        state = rng.bit_generator.state
        policy = current_policy(learner, problem.n_actions)
        for info in _reached_nodes(policy, problem) if nodes else _reached(policy, problem):
            found = _probabilities(
                policy.probabilities(info), problem.n_actions, f"{name}: policy().probabilities({info!r})"
            )
            for _ in range(2 if hasattr(learner, "act") else 0):
                answer = _probabilities(learner.act(info), problem.n_actions, f"{name}: act({info!r})")
                if not np.array_equal(answer, found) and rng.bit_generator.state == state:
                    raise AssertionError(
                        f"{name}: between two episodes act({info!r}) is {answer} and {found}; expected one policy"
                    )
        if rng.bit_generator.state != state:
            raise AssertionError(
                f"{name}: between two episodes act(...) draws from the run's generator; draw in start() and see() only"
            )


def _check_checkpoint(learner: Any, problem: ImpairedMDP, whole: LearningRun) -> None:
    """Interrupted and continued is the same as never interrupted."""

    def run(stop_after: int, path: Path, every: float) -> LearningRun:
        stopping: Any = _Stopping(copy.deepcopy(learner), stop_after)
        return learn(
            problem,
            stopping,
            EPISODES,
            seed=3,
            best=whole.best,
            checkpoint=path,
            checkpoint_every=every,
            progress=False,
        )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        try:
            run(BEFORE_STOP, path, 0.0)  # seconds: after each episode, so that the last one is in the file
        except KeyboardInterrupt as stop:
            if not hasattr(stop, "partial"):
                raise
        continued = run(EPISODES, path, 1e9)
    _check_same(whole, continued, f"{type(learner).__name__}: a run that continues from state() and restore() differs")


class _Stopping:
    """A learner that is interrupted after so many episodes."""

    def __init__(self, learner: Any, episodes: int) -> None:
        self._learner, self._left = learner, episodes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def see(self, episode: Episode) -> None:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        self._learner.see(episode)


def _check_same(one: LearningRun, other: LearningRun, what: str) -> None:
    for column in COLUMNS:
        a, b = getattr(one, column), getattr(other, column)
        if not np.array_equal(a, b, equal_nan=True):
            k = int(np.flatnonzero(~((a == b) | (np.isnan(a) & np.isnan(b))))[0])
            raise AssertionError(f"{what}: {column}[{k}] is {a[k]:.10g} and {b[k]:.10g}")


def _episodes(problem: ImpairedMDP, count: int) -> list[Episode]:
    """Episodes with actions at random, as the protocol reveals them."""
    played: list[Episode] = []

    class Recorder(UniformRandom):
        def see(self, episode: Episode) -> None:
            played.append(episode)

    learn(problem, Recorder(), count, seed=1, best=0.0, every=count, progress=False)
    return played


def _reached(policy: Policy, problem: ImpairedMDP) -> Iterator[Information]:
    """Every information state where the policy's own actions can lead."""
    yield from _each(problem, visits(problem, FunctionPolicy(policy.probabilities, problem.n_actions), MAX_STATES))


def _reached_nodes(policy: Policy, problem: ImpairedMDP) -> Iterator[Any]:
    """The same where the policy is asked with the nodes of the link's automaton."""
    choose = cache(partial(decide, problem, policy))
    found = reached(problem.mdp, problem.automaton, choose, initial=problem.initial, max_states=MAX_STATES)
    yield from (info for info in _each(problem, found) if info.h >= problem.actuation)


def _each(problem: ImpairedMDP, found: Iterable[Mapping[Any, float] | None]) -> Iterator[Any]:
    for at in found:
        if at is None:
            raise ValueError(
                f"{problem!r} has more than {MAX_STATES:,} information states to visit; check on a smaller problem"
            )
        yield from at


def _probabilities(answer: Any, n_actions: int, where: str) -> Floats:
    """An action or the probabilities of all, as probabilities."""
    if np.ndim(answer) == 0:
        if int(answer) != answer or not 0 <= answer < n_actions:
            raise AssertionError(f"{where} is {answer!r}, expected an action in 0..{n_actions - 1}")
        return np.asarray(np.eye(n_actions)[int(answer)])
    found = np.asarray(answer, dtype=np.float64)
    if found.shape != (n_actions,) or not found.min() >= 0 or abs(found.sum() - 1.0) > ROUNDING:
        raise AssertionError(f"{where} is {answer!r}, expected {n_actions} probabilities with sum 1")
    return found


__all__ = ["check_channel", "check_learner", "check_policy"]
