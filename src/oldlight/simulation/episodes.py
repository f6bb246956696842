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
from oldlight.simulation.simulated_bytes import refuse_size
from oldlight.simulation.spans import Spans


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
        The seed decides the result, whatever their number; all cores if None. What takes less than a few milliseconds, or asks a policy written in Python, is played by one.
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
    workers = thread_count() if threads is None else checks.whole("threads", threads, least=1)
    refuse_size(problem, N, record, workers)
    played = Spans(problem, policy, number, N, record)
    played.play(workers)
    joined: list[Any] = [np.concatenate([p[k].T for p in played.parts]) if record else None for k in range(3)]
    return Simulation(played.returns, played.earned.sum(axis=0) / N, played.ages, played.warmup, *joined)
