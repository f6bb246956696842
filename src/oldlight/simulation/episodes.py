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
from oldlight.machine import thread_count
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.information import Information, Layout, same_layout
from oldlight.model.link_information import PolicyOfNodes
from oldlight.model.policies import (
    BlackoutPolicy,
    MarkovPolicy,
    Policy,
    TablePolicy,
    made_for_another,
    not_a_policy,
    probabilities_at,
)
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.model.successors import successor_sums
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation.asked import ask_at_once
from oldlight.simulation.simulated_bytes import CHUNK as CHUNK
from oldlight.simulation.simulated_bytes import refuse_size

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Simulation:
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

    lead = checks.renamed_property("lead", "warmup")

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def half_width(self) -> float:
        """Half of a 95% confidence interval of the mean return."""
        n = len(self.returns)
        return float(1.959963984540054 * self.returns.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")

    @property
    def revealed(self) -> NDArray[np.int32]:
        """The states the agent knows after the episode: all of them under delay; −1 for lost ones under loss."""
        if self.states is None or self.arrivals is None:
            raise ValueError("nothing was recorded; call simulate(..., record=True)")
        return np.where(self.arrivals == -1, np.int32(-1), self.states)

    def to_dict(self) -> dict[str, Any]:
        """Mean, half-width and every array as plain data for JSON."""
        return drawing.plain({"mean": self.mean, "half_width": self.half_width} | vars(self))  # type: ignore[no-any-return]

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
    from oldlight.simulation.link_episodes import by_automaton, simulate_link

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
        return simulate_link(problem, policy, N, number, record)
    world = World(problem)
    player = world.player(policy)
    chunks = [(c, min(CHUNK, N - c * CHUNK)) for c in range(-(-N // CHUNK))]
    workers = thread_count() if threads is None else checks.whole("threads", threads, least=1)
    if player.asks:
        workers = 1  # a Python policy is asked from one thread only

    def played(chunk: tuple[int, int]) -> tuple[Any, ...]:
        part = world.play(player, world.draw(number, chunk[0], player), chunk[1])
        return part if record else part[:3]

    pool = ThreadPoolExecutor(workers)
    try:
        parts = list(pool.map(played, chunks))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C waits for no more than what is being played
    joined: list[Any] = [np.concatenate([p[k].T for p in parts]) if record else None for k in (3, 4, 5)]
    return Simulation(
        np.concatenate([p[0] for p in parts]),
        np.sum([p[1] for p in parts], axis=0) / N,
        np.sum([p[2] for p in parts], axis=0),
        problem.warmup,
        *joined,
    )


@dataclass(frozen=True, eq=False)
class Player:
    """A policy as the arrays that the kernels read."""

    mode: int
    policy: Any
    table: NDArray[Any]
    action_probabilities: Floats
    offset: Ints
    root: Ints
    pending: Ints
    late: int = 0

    def rule(self) -> Any:
        """As the kernels read it."""
        from oldlight.kernels import episodes as kernels

        return kernels.Rule(self.table, self.action_probabilities, self.offset, self.root, self.pending, self.late)

    @property
    def asks(self) -> bool:
        """Must the policy be asked in Python?"""
        return self.mode == _GIVEN


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of a chunk of episodes, axes (step, episode): of the process, the link and the policy."""

    state: Floats
    link: Floats
    action: Floats
    lost: NDArray[np.bool_]

    def arrays(self) -> Any:
        """As the kernels read them."""
        from oldlight.kernels import episodes as kernels

        return kernels.Draws(self.lost, self.state, self.link, self.action)

    def one(self, e: int) -> Draws:
        """Those of episode e alone."""
        parts: tuple[Any, ...] = (self.state, self.link, self.action, self.lost)
        return Draws(*(np.ascontiguousarray(x[:, e : e + 1]) if x.shape[1] > 1 else x for x in parts))


_GIVEN = 4
_NO_TABLE = np.zeros(0, dtype=np.uint8)


class World:
    """A problem as the arrays that the kernels read."""

    def __init__(self, problem: ImpairedMDP) -> None:
        from oldlight.kernels import episodes as kernels

        self.problem, self.kernels = problem, kernels
        mdp, law = problem.mdp, problem.law
        H, A = problem.horizon, problem.n_actions
        self.index, self.cumulative = successor_sums(mdp)
        self.rewards = np.array(mdp.rewards, order="C")
        self.initial = running_sums(problem.initial)
        first, links = running_sums(law.first), running_sums(law.interarrival)
        self.draws_link = links.shape[3] > 1 or len(first) > 1
        self.layout = None if problem.arrival_probability is not None else Layout.of(problem)
        with np.errstate(over="ignore"):  # codes of queues too long for a table are never used
            powers = np.cumprod(np.append(1, np.full(problem.warmup + H, A)), dtype=np.int64)
        self.arrays = kernels.World(
            self.initial,
            self.index,
            self.cumulative,
            self.rewards,
            first,
            links,
            powers,
            law.longest_delay,
            problem.warmup,
        )

    def player(self, policy: Policy | MarkovPolicy) -> Player:
        """The policy, ready to be played here; refused if it was made for another problem."""
        k, problem = self.kernels, self.problem
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        none, offset, root = np.zeros((0, 0)), np.zeros((1, 1, 1), dtype=np.int64), np.zeros(H, dtype=np.int64)
        pending = np.array(problem.pending[:H], dtype=np.int64)
        if isinstance(policy, MarkovPolicy):
            _fits(policy.actions.shape == (H, S) and policy.n_actions == A, policy, problem)
            return Player(k.MARKOV, policy, _flat(policy.actions), none, offset, root, pending[:0])
        if isinstance(policy, TablePolicy):
            _fits(self.layout is not None and same_layout(policy.layout, self.layout), policy, problem)
            offset, root = policy.layout.offset, policy.layout.root
            if policy.actions is not None:
                return Player(k.TABLE, policy, _flat(policy.actions), none, offset, root, pending)
            assert policy.action_probabilities is not None
            mix = np.ascontiguousarray(policy.action_probabilities)
            return Player(k.PROBABILITIES, policy, _NO_TABLE, mix, offset, root, pending)
        if isinstance(policy, BlackoutPolicy):
            _fits(policy.fits(problem), policy, problem)
            return Player(k.BLACKOUT, policy, _flat(policy.sequences), none, offset, root, pending, policy.late)
        if isinstance(policy, PolicyOfNodes):
            raise made_for_another(policy, problem)
        if hasattr(policy, "probabilities"):
            return Player(k.GIVEN, policy, _NO_TABLE, none, offset, root, pending)
        raise not_a_policy(policy)

    def draw(self, seed: int, chunk: int, player: Player | None = None) -> Draws:
        """The random numbers of chunk number `chunk`; always that of a full chunk, so that more episodes do not change the first."""
        problem, H = self.problem, self.problem.horizon
        state_rng, link_rng, action_rng = (
            np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(chunk, purpose))))
            for purpose in range(3)
        )
        state = state_rng.random((problem.warmup + H, CHUNK))
        link = link_rng.random((H, CHUNK)) if self.draws_link else np.zeros((1, 1))
        lost = np.zeros((1, 1), dtype=np.bool_)
        if problem.loss is not None:
            lost = problem.loss.lost(link_rng, H, CHUNK)
            if H == 1:  # one row means that nothing is lost: two say which
                lost = np.concatenate([lost, lost])
        wanted = problem.warmup or player is None or player.mode in (self.kernels.PROBABILITIES, self.kernels.GIVEN)
        action = action_rng.random((problem.warmup + H, CHUNK)) if wanted else np.zeros((1, 1))
        return Draws(state, link, action, lost)

    def play(self, player: Player, draws: Draws, n: int) -> tuple[Any, ...]:
        """n episodes with the given random numbers: returns, rewards by step, ages, and states, actions, arrivals (step, episode)."""
        k, problem = self.kernels, self.problem
        H, warmup = problem.horizon, problem.warmup
        played, random = self.played(n), draws.arrays()
        returns, states, actions = played.returns, played.states, played.actions
        k.begin(self.arrays, random, played)
        if player.asks:
            for h in range(H):
                drawn = draws.action[warmup + h, :n]
                actions[warmup + h] = self._ask(player.policy, h, drawn, states, actions, played.agent)
                k.play(k.GIVEN, h, h + 1, self.arrays, player.rule(), random, played)
        else:
            k.play(player.mode, 0, H, self.arrays, player.rule(), random, played)
        settles = played.settles
        arrivals = settles if problem.loss is None else np.where(draws.lost[:H, :n], np.int32(-1), settles)
        return returns, played.earned, played.ages, states, actions, arrivals

    def played(self, n: int) -> Any:
        """Room for n episodes."""
        H, steps = self.problem.horizon, self.problem.warmup + self.problem.horizon
        states, actions, settles = np.zeros((3, steps, n), dtype=np.int32)
        agent, ages = np.zeros((5, n), dtype=np.int64), np.zeros((H, steps + 1), dtype=np.int64)
        return self.kernels.Played(states, actions, settles, agent, np.zeros(n), np.zeros(H), ages)

    def _ask(self, policy: Policy, h: int, u: Floats, states: Any, actions: Any, agent: Ints) -> Ints:
        """The actions of a policy written in Python: each different information state of the chunk is asked once."""
        warmup = self.problem.warmup
        if h < self.problem.actuation:
            return np.full(len(u), self.problem.pending[h])
        if hasattr(policy, "actions_at"):
            return ask_at_once(policy, h, warmup, states, actions, agent)
        known: dict[Information, Floats] = {}
        chosen = np.empty(len(u), dtype=np.int64)
        for e, (t, m, _, waited, _) in enumerate(agent.T.tolist()):
            queue = tuple(actions[warmup + h - m : warmup + h, e].tolist())
            if t < -warmup:
                info = Information.nothing_seen(queue)
            else:
                info = Information(h, t, int(states[warmup + t, e]), queue, waited)
            cumulative = known.get(info)
            if cumulative is None:
                cumulative = known[info] = running_sums(probabilities_at(self.problem, policy, info))
            chosen[e] = np.searchsorted(cumulative, u[e], side="right")
        return chosen


def _flat(table: NDArray[Any]) -> NDArray[Any]:
    flat = np.ascontiguousarray(table).reshape(-1)
    return flat if flat.flags.writeable else flat.copy()


def _fits(good: bool, policy: Any, problem: ImpairedMDP) -> None:
    if not good:
        raise made_for_another(policy, problem)
