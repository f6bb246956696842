"""The interaction protocol (Protocol 1 of the paper), compiled: thousands of episodes at a time.

For each time h = 0..H−1 of an episode:
  1. what arrives at time h reaches the agent, in order and at most one: the next observation, or the news that it is lost
     (under loss alone, that of step h itself);
  2. the agent acts a_h on what it knows;
  3. the process moves: s_{h+1} ~ P_h(·|s_h, a_h); the link decides when, or whether, that state is seen.
At the end of the episode, under delay every observation still under way is revealed; under loss nothing is.

Episodes are played in chunks of fixed size, each with its own generators made from (seed, chunk, purpose). So the seed
alone decides the result, whatever the number of threads, and the process, the link and the policy draw from separate
streams: two channels or two policies with the same seed meet the same random numbers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, drawing
from oldlight.arrays import Floats, Ints
from oldlight.machine import thread_count
from oldlight.model.policies import MarkovPolicy, Policy
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation.simulated_bytes import CHUNK, refuse_size
from oldlight.simulation.world import Player, Room, World


def half_width(values: Floats) -> float:
    """Half of the 95% interval of the mean of independent values."""
    return float(1.959963984540054 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


class PlayedReturns(drawing.Result):
    """A result with the returns of independent episodes."""

    returns: Floats

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def half_width(self) -> float:
        """Half of a 95% confidence interval of the mean return."""
        return half_width(self.returns)


@dataclass(frozen=True, eq=False)
class Simulation(PlayedReturns):
    """Played episodes.

    Parameters
    ----------
    returns : ndarray, shape (episodes,)
        What each episode earned.
    mean_reward : ndarray, shape (H,)
        Earned at each step on average.
    ages : ndarray of int, shape (H, warmup + H + 1)
        [h, m]: how often the newest visible state was m steps old at time h; last column: nothing seen yet.
    warmup : int
        Steps before step 0.
    states, actions, arrivals : ndarray of int, shape (episodes, warmup + H), optional
        With record=True, for step i − warmup: the truth, what was done, and when the observation arrived (at H or later: after the
        episode; −1: lost).

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1")
    >>> print(ol.simulate(problem, ol.solve(problem).policy, 1000))
    Simulation
      mean return  1 ± 0 (95%)
      returns      1 .. 1
      episodes     1,000 of 3 steps
      recorded     no
    """

    returns: Floats
    mean_reward: Floats
    ages: Ints
    warmup: int
    states: NDArray[np.int32] | None = None
    actions: NDArray[np.int32] | None = None
    arrivals: NDArray[np.int32] | None = None
    _data = "mean half_width returns mean_reward ages warmup states actions arrivals"

    lead = checks.renamed_property("lead", "warmup")

    @property
    def record(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """States, actions and arrivals; refused if they were not recorded."""
        if self.states is None or self.actions is None or self.arrivals is None:
            raise ValueError("nothing was recorded; call simulate(..., record=True)")
        return self.states, self.actions, self.arrivals

    @property
    def revealed(self) -> NDArray[np.int32]:
        """The states the agent knows after the episode: all of them under delay; −1 for lost ones under loss."""
        states, _, arrivals = self.record
        return np.where(arrivals == -1, np.int32(-1), states)

    def plot(self, ax: Any = None) -> Any:
        """Draw the histogram of the returns, with their mean; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        ax.hist(self.returns, bins=min(50, len(np.unique(self.returns))))
        ax.axvline(self.mean, color="black", linewidth=1, linestyle="--")
        ax.set_xlabel("return of an episode (dashed: mean)")
        ax.set_ylabel("episodes")
        return ax

    def __str__(self) -> str:
        """A small table."""
        rows = {
            "mean return": f"{self.mean:.6g} ± {self.half_width:.2g} (95%)",
            "returns": f"{self.returns.min():.6g} .. {self.returns.max():.6g}",
            "episodes": f"{len(self.returns):,} of {len(self.mean_reward)} steps",
            "recorded": "no" if self.states is None else "states, actions and arrivals",
        }
        return drawing.facts("Simulation", rows)

    def __repr__(self) -> str:
        return f"Simulation({len(self.returns):,} episodes, mean return {self.mean:.6g} ± {self.half_width:.2g})"


def simulate(
    problem: ImpairedMDP,
    policy: Policy | MarkovPolicy,
    episodes: int,
    *,
    seed: Seed = 0,
    record: bool = False,
    threads: int | None = None,
    steps: int | None = None,
) -> Simulation:
    """Play episodes of the interaction protocol, in compiled code.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    policy : Policy or MarkovPolicy
        A MarkovPolicy is played as if nothing were impaired: it sees the current state.
    episodes : int
        How many.
    seed : int, SeedSequence or Generator
        Random seed; a Generator draws one number.
    record : bool
        Keep states, actions and arrivals.
    threads : int, optional
        The seed decides the result, whatever their number; all cores if None.
    steps : int, optional
        Of a process that runs for ever: how many steps are played. A return is then the discounted sum of their rewards, or their mean for the average.

    Returns
    -------
    Simulation
        `.mean`, `.half_width`, `.returns` and more.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm")
    >>> played = ol.simulate(problem, ol.solve(problem).policy, 10_000, seed=1)
    >>> abs(played.mean - 3.669276) < 2 * played.half_width
    True
    """
    from oldlight.simulation.link_episodes import LinkEpisodes, by_automaton

    checked_problem(problem, "simulate")
    N = checks.whole("episodes", episodes, least=1)
    number = seed_number(seed)
    if problem.forever:
        from oldlight.simulation.cut import for_steps

        problem, policy = for_steps(problem, policy, steps)
    elif steps is not None:
        raise ValueError(
            f"steps is {steps!r}, but {problem!r} has its own number of steps; leave it out, or mdp.replace(horizon={steps!r})"
        )
    refuse_size(problem, N, record)
    if by_automaton(problem, policy):
        links, warmup = LinkEpisodes(problem, policy), 0
        parts = [links.play(number, c, min(CHUNK, N - c * CHUNK)) for c in range(-(-N // CHUNK))]
        returns, earned = np.concatenate([p[0] for p in parts]), np.array([p[1] for p in parts])
    else:
        world, warmup = World(problem), problem.warmup
        workers = thread_count() if threads is None else checks.whole("threads", threads, least=1)
        returns, earned = np.zeros(N), np.zeros((-(-N // CHUNK), problem.horizon))
        parts = _Chunks(world, world.player(policy), number, record, returns, earned).played(workers)
    joined: list[Any] = [np.concatenate([p[k].T for p in parts]) if record else None for k in (3, 4, 5)]
    return Simulation(returns, earned.sum(axis=0) / N, np.sum([p[2] for p in parts], axis=0), warmup, *joined)


MOST = 2**21  # steps that are played without a look at Ctrl-C
FEW = 2**19  # steps that are played in less time than it takes to start threads


@dataclass(eq=False)
class _Chunks:
    """The chunks of a simulation: `returns` of each episode and earned[chunk, step] are filled, zeros before."""

    world: World
    player: Player
    seed: int
    record: bool
    returns: Floats
    earned: Floats

    def played(self, workers: int) -> list[tuple[Any, ...]]:
        """What each span of chunks leaves, in order: nothing, nothing, ages, and with `record` states, actions and arrivals."""
        steps = self.world.problem.warmup + self.world.problem.horizon
        if self.player.asks or len(self.returns) * steps < FEW:  # a Python policy is asked from one thread only
            workers = 1
        spans = self._spans(workers)
        parts: list[Any] = [None] * len(spans)
        todo = list(enumerate(spans))[::-1]

        def work() -> None:
            room = Room.of(self.world)
            while todo:
                try:
                    i, span = todo.pop()
                except IndexError:  # another thread has taken it
                    break
                parts[i] = self._span(span, room)
            room.leave()

        if workers == 1 or len(spans) == 1:
            work()
            return parts
        pool = ThreadPoolExecutor(min(workers, len(spans)) - 1)  # this thread plays too
        try:
            others = [pool.submit(work) for _ in range(min(workers, len(spans)) - 1)]
            work()
            for other in others:
                other.result()
        finally:
            todo.clear()  # Ctrl-C waits for nothing: the others end after the span that they are playing
            pool.shutdown(wait=False)
        return parts

    def _spans(self, workers: int) -> list[tuple[int, int]]:
        """Chunks that are played in one call: many at first, fewer towards the end, so that all threads end at the same time."""
        number, steps = len(self.earned), self.world.problem.warmup + self.world.problem.horizon
        whole = not (self.record or self.player.asks) and self.world.draws_here
        most = max(1, MOST // (CHUNK * steps)) if whole else 1
        spans, first = [], 0
        while first < number:
            last = first + max(1, min(most, (number - first) // (2 * workers) if workers > 1 else most, number - first))
            spans.append((first, last))
            first = last
        return spans

    def _span(self, span: tuple[int, int], room: Room) -> tuple[Any, ...]:
        world, player, (first, last) = self.world, self.player, span
        returns = self.returns[first * CHUNK : last * CHUNK]
        if not (self.record or player.asks) and world.draws_here:
            ages = world.play_chunks(player, self.seed, span, room, returns, self.earned[first:last])
            return None, None, ages
        draws = world.draw(self.seed, first, player, None if self.record else room)
        part = world.play(player, draws, len(returns), None if self.record else room, returns)
        self.earned[first] = part[1]
        return part if self.record else part[:3]
