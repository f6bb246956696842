"""Checks for learners, policies and channels of one's own: what those of the package pass.

from oldlight.testing import check_channel, check_learner
check_channel(MyChannel())                  # does its automaton fit together, and does the sampler draw what it says?
check_learner(MyLearner())                  # on a small delayed problem; raises AssertionError and says what is wrong
check_learner(MyLearner(), problem)         # on yours: small, because every information state is visited
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.learners.base import Setting, current_policy, has_hook
from oldlight.learners.loop import learn
from oldlight.learners.run import LearningRun
from oldlight.learners.uniform import UniformRandom
from oldlight.model.channels import Channel, ConstantDelay
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.channels.messages import arrivals_of
from oldlight.model.channels.text import channel_data, channel_of
from oldlight.model.episode import Episode
from oldlight.model.information import Information, Layout
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import solve
from oldlight.planning.evaluation import evaluate, visits
from oldlight.simulation.link_sampler import LinkSampler

Floats = NDArray[np.float64]
EPISODES, BEFORE_STOP = 16, 6
ROUNDING = 1e-9
MAX_STATES = 100_000  # information states that are visited
LONGEST_PATH = 5  # times of which all paths of the age are counted
RUNS = 2000  # of the sampler
RARE = 1e-6  # a χ² that is exceeded this seldom is a difference
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
        _check_checkpoint(learner, problem, best)


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


def check_channel(channel: Channel | str, horizon: int = 8) -> None:
    """Is `channel` a link that can be planned and played? Its `automaton(horizon)` fits together, and the sampler draws what it says.

    The automaton has `horizon` times; the ticks of every node that is met before the last one sum to one; an observation that becomes
    visible is newer than the one before and was sent within the episode; what is heard tells the next node; a longer horizon changes
    nothing in the times before. The ages that the sampler draws have the automaton's law by a χ² test, with a fixed seed. The channel
    equals itself, shows its name, and comes back from its data if it can be written as data.

    Parameters
    ----------
    channel
        A channel, or one as text.
    horizon
        How many times to look at; all paths of the age of the first five are counted.

    Raises
    ------
    AssertionError
        Which node of the automaton, or which time, does not fit, and what was expected.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.testing import check_channel
    >>> check_channel("packets:0=.2,1=.6,2=.2+loss:0.1")
    >>> from oldlight.model.channels import NOTHING_NEWER, Channel
    >>> class EverySecond(Channel):
    ...     def automaton(self, horizon):
    ...         ticks = {"now": [(1.0, "later", NOTHING_NEWER)], "later": [(0.9, "now", 0)]}
    ...         return ol.ChannelAutomaton.explore([(1.0, "now", 0)], ticks.__getitem__, horizon)
    >>> check_channel(EverySecond())
    Traceback (most recent call last):
        ...
    AssertionError: EverySecond: automaton(8) is refused: ChannelAutomaton: the ticks of node 'later' sum to 0.9, expected 1 ± 1e-09
    """
    link = channel_of(channel)
    name = type(link).__name__
    short, long = (_automaton(link, name, times) for times in (horizon, horizon + 2))
    laws = [_age_laws(automaton, name) for automaton in (short, long)]
    for h, (one, other) in enumerate(zip(*laws, strict=False)):
        for age in one.keys() | other.keys():
            if abs(one.get(age, 0.0) - other.get(age, 0.0)) > ROUNDING:
                raise AssertionError(
                    f"{name}: age {age} has probability {one.get(age, 0.0):.10g} at time {h} in automaton({horizon}) and "
                    f"{other.get(age, 0.0):.10g} in automaton({horizon + 2}); a longer horizon must change nothing before it"
                )
    _check_draws(link, name, _automaton(link, name, min(horizon, LONGEST_PATH)))
    if link != link or hash(link) != hash(link):
        raise AssertionError(f"{name}: a channel must equal itself and have one hash")
    if name not in repr(link):
        raise AssertionError(f"{name}: repr is {link!r}, expected one that has the name of the class")
    try:
        data = channel_data(link)
    except TypeError:
        return  # a class of one's own that nobody registered
    if channel_of(data) != link:
        raise AssertionError(f"{name}: {link!r} is written as {data!r}, which is read as {channel_of(data)!r}")


def _automaton(link: Channel, name: str, horizon: int) -> ChannelAutomaton:
    """The channel's automaton, whose rows are all there."""
    try:
        automaton = link.automaton(horizon)
    except ValueError as error:
        raise AssertionError(f"{name}: automaton({horizon}) is refused: {error}") from error
    if not isinstance(automaton, ChannelAutomaton) or automaton.horizon != horizon:
        raise AssertionError(
            f"{name}: automaton({horizon}) is {automaton!r}, expected a ChannelAutomaton of horizon {horizon}"
        )
    for n, node in enumerate(automaton.nodes):
        targets: dict[int, set[int]] = {}
        for _, target, age in automaton.row(n):
            targets.setdefault(age, set()).add(target)
        for age, nodes in targets.items():
            if len(nodes) > 1 and not automaton.news(n):
                what = "nothing newer" if age == NOTHING_NEWER else f"age {age}"
                raise AssertionError(
                    f"{name}: node {node!r} has ticks with {what} to the {len(nodes)} nodes {[automaton.nodes[m] for m in sorted(nodes)]}; what is "
                    "heard must tell them apart: give each tick its News, (probability, node, age, News(arrived, lost))"
                )
    return automaton


def _age_laws(automaton: ChannelAutomaton, name: str) -> list[dict[int | None, float]]:
    """The law of the age at each time (None: nothing seen), checked on the way."""
    at: dict[tuple[int, int | None], float] = {(-1, None): 1.0}
    out = []
    for h in range(automaton.horizon):
        after: dict[tuple[int, int | None], float] = {}
        for (n, m), weight in at.items():
            row = automaton.row(n)
            where = "the start" if n < 0 else f"node {automaton.nodes[n]!r}"
            total = sum(p for p, _, _ in row)
            if abs(total - 1.0) > ROUNDING:
                raise AssertionError(
                    f"{name}: the ticks of {where}, which is met at time {h - 1}, sum to {total:.10g}, expected 1"
                )
            for p, target, age in row:
                if age > (h if m is None else m):
                    raise AssertionError(
                        f"{name}: at time {h} {where} makes an observation of age {age} visible, expected one in 0..{h if m is None else m} "
                        "or nothing newer"
                    )
                now = (None if m is None else m + 1) if age == NOTHING_NEWER else age
                after[target, now] = after.get((target, now), 0.0) + weight * p
        at = after
        law: dict[int | None, float] = {}
        for (_, m), weight in at.items():
            law[m] = law.get(m, 0.0) + weight
        out.append(law)
    return out


def _check_draws(link: Channel, name: str, automaton: ChannelAutomaton) -> None:
    """Do the ages of the sampler's runs have the law of the automaton?"""
    H = automaton.horizon
    paths: dict[tuple[tuple[int, ...], int], float] = {((), -1): 1.0}
    for _ in range(H):
        longer: dict[tuple[tuple[int, ...], int], float] = {}
        for (ages, n), weight in paths.items():
            for p, target, age in automaton.row(n):
                before = ages[-1] if ages else -1
                now = age if age >= 0 else before + 1 if before >= 0 else -1
                key = ((*ages, now), target)
                longer[key] = longer.get(key, 0.0) + weight * p
        paths = longer
    law: dict[tuple[int, ...], float] = {}
    for (ages, _), weight in paths.items():
        law[ages] = law.get(ages, 0.0) + weight
    drawn = _drawn_ages(link, H)
    for ages in drawn.keys() - law.keys():
        raise AssertionError(
            f"{name}: the sampler draws the ages {ages}, which the automaton says cannot be (−1: nothing seen)"
        )
    if (chance := _chi_square(drawn, law)) < RARE:
        raise AssertionError(
            f"{name}: the ages of {RUNS} runs of the sampler have the automaton's law with a chance of {chance:.2g} only (χ² test)"
        )


def _drawn_ages(link: Channel, horizon: int) -> dict[tuple[int, ...], int]:
    """How often each path of the age is drawn in `RUNS` runs."""
    sampler, rng = LinkSampler(link, horizon=horizon), np.random.default_rng(0)
    if sampler.link is not None:
        arrivals = arrivals_of(sampler.link, rng, horizon, RUNS)
    else:
        arrivals = np.full((horizon, RUNS), -1)
        for e in range(RUNS):
            for h in range(horizon):
                arrivals[(sampler.send() if h else sampler.begin(rng)).arrived, e] = h
    ages = np.full((horizon, RUNS), -1)
    for h in range(horizon):
        for i in range(h + 1):
            ages[h][(arrivals[i] >= 0) & (arrivals[i] <= h)] = h - i
    found: dict[tuple[int, ...], int] = {}
    for path in map(tuple, ages.T.tolist()):
        found[path] = found.get(path, 0) + 1
    return found


def _chi_square(drawn: dict[Any, int], law: dict[Any, float]) -> float:
    """The probability of a χ² at least as large; what is expected less than 5 times is put together."""
    n = sum(drawn.values())
    often = [(drawn.get(key, 0), p * n) for key, p in law.items() if p * n >= 5]
    rest = (n - sum(count for count, _ in often), n - sum(expected for _, expected in often))
    cells = [*often, rest] if rest[1] > 1 else often
    k = len(cells) - 1
    if k < 1:
        return 1.0
    from scipy.special import chdtrc

    return float(chdtrc(k, sum((count - expected) ** 2 / expected for count, expected in cells)))


def _small_problem() -> ImpairedMDP:
    rng = np.random.default_rng(81)
    transitions = 0.9 * rng.dirichlet(0.5 * np.ones(3), size=(3, 2)) + 0.1 / 3
    return ImpairedMDP(TabularMDP(transitions, rng.random((3, 2)), horizon=4), ConstantDelay(1))


def _check_one_policy(learner: Any, problem: ImpairedMDP) -> None:
    """Between two episodes the answers of `act` and of `policy()` are one policy, and nothing is drawn."""
    name, rng = type(learner).__name__, np.random.default_rng(0)
    layout = Layout.of(problem) if problem.arrival_probability is None else None
    learner.start(Setting.of(problem, EPISODES, 0.1, layout), rng)
    for episode in [None, *_episodes(problem, 4)]:
        if episode is not None:
            learner.see(episode)
        state = rng.bit_generator.state
        policy = current_policy(learner, problem.n_actions)
        for info in _reached(policy, problem):
            found = _probabilities(
                policy.probabilities(info), problem.n_actions, f"{name}: policy().probabilities({info!r})"
            )
            for _ in range(2 if hasattr(learner, "act") else 0):
                answer = _probabilities(learner.act(info), problem.n_actions, f"{name}: act({info!r})")
                if rng.bit_generator.state == state and not np.array_equal(answer, found):
                    raise AssertionError(
                        f"{name}: between two episodes act({info!r}) is {answer} and {found}; expected one policy"
                    )
        if rng.bit_generator.state != state:
            raise AssertionError(
                f"{name}: between two episodes act(...) draws from the run's generator; draw in start() and see() only"
            )


def _check_checkpoint(learner: Any, problem: ImpairedMDP, best: float) -> None:
    """Interrupted and continued is the same as never interrupted."""

    def run(stop_after: int, path: Path | None) -> LearningRun:
        stopping: Any = _Stopping(copy.deepcopy(learner), stop_after)
        return learn(
            problem, stopping, EPISODES, seed=3, best=best, checkpoint=path, checkpoint_every=0.0, progress=False
        )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        try:
            run(BEFORE_STOP, path)
        except KeyboardInterrupt as stop:
            if not hasattr(stop, "partial"):
                raise
        continued = run(EPISODES, path)
    _check_same(
        run(EPISODES, None),
        continued,
        f"{type(learner).__name__}: a run that continues from state() and restore() differs",
    )


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
    for reached in visits(problem, FunctionPolicy(policy.probabilities, problem.n_actions), MAX_STATES):
        if reached is None:
            raise ValueError(
                f"{problem!r} has more than {MAX_STATES:,} information states to visit; check on a smaller problem"
            )
        yield from reached


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
