"""The interaction protocol (Protocol 1 of the paper), compiled: thousands of episodes at a time.

For each time h = 0..H−1 of an episode:
  1. what arrives at time h reaches the agent, in order and at most one: the next observation, or the news that it is lost
     (under loss alone, that of step h itself);
  2. the agent acts a_h on what it knows;
  3. the process moves: s_{h+1} ~ P_h(·|s_h, a_h); the link decides when, or whether, that state is seen.
At the end of the episode, under delay every observation still under way is revealed; under loss nothing is.

Episodes are played in chunks of fixed size, each with its own generators made from (seed, chunk, purpose). So the seed
alone decides the result, whatever the number of threads, and the process, the link and the policy draw from separate
streams: the same seed gives the same luck to two channels or two policies.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.information import Information, Layout
from oldlight.machine import thread_count
from oldlight.policies import (
    BlackoutPolicy,
    MarkovPolicy,
    Policy,
    TablePolicy,
    chances_of,
    made_for_another,
    not_a_policy,
    same_layout,
)
from oldlight.problem import ImpairedMDP, checked_problem
from oldlight.successors import Successors

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Simulation:
    """Played episodes. `returns[e]`; mean_reward[h]: earned at step h on average; ages[h, m]: how often the newest visible
    state was m steps old at time h, last column: nothing seen yet.

    With record=True also states[e, i], actions[e, i], arrivals[e, i] for step i − lead: the truth, what was done, and
    when the observation arrived (at H or later: after the episode; −1: lost).
    """

    returns: Floats
    mean_reward: Floats
    ages: Ints
    lead: int
    states: NDArray[np.int32] | None = None
    actions: NDArray[np.int32] | None = None
    arrivals: NDArray[np.int32] | None = None

    @property
    def mean(self) -> float:
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

    def __repr__(self) -> str:
        return f"Simulation({len(self.returns):,} episodes, mean return {self.mean:.6g} ± {self.half_width:.2g})"


def simulate(
    problem: ImpairedMDP,
    policy: Policy | MarkovPolicy,
    episodes: int,
    *,
    seed: int,
    record: bool = False,
    threads: int | None = None,
) -> Simulation:
    """Play `episodes` episodes. A MarkovPolicy is played as if nothing were impaired (it sees the current state)."""
    checked_problem(problem, "simulate")
    N = checks.whole("episodes", episodes, least=1)
    checks.whole("seed", seed)
    world = _World(problem, policy)
    chunks = [(c, min(CHUNK, N - c * CHUNK)) for c in range(-(-N // CHUNK))]
    workers = thread_count() if threads is None else checks.whole("threads", threads, least=1)
    if world.mode == _GIVEN:
        workers = 1  # a Python policy is asked from one thread only
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(lambda chunk: world.play(seed, chunk[0], chunk[1], record), chunks))
    joined: list[Any] = [np.concatenate([p[k] for p in parts]) if record else None for k in (3, 4, 5)]
    return Simulation(
        np.concatenate([p[0] for p in parts]),
        np.sum([p[1] for p in parts], axis=0) / N,
        np.sum([p[2] for p in parts], axis=0),
        problem.lead,
        *joined,
    )


_GIVEN = 4
_NO_TABLE = np.zeros(0, dtype=np.uint8)


class _World:
    """A problem and a policy as the arrays that the kernels read."""

    def __init__(self, problem: ImpairedMDP, policy: Policy | MarkovPolicy) -> None:
        from oldlight import simulation_kernels as kernels

        self.problem, self.policy, self.kernels = problem, policy, kernels
        mdp, law = problem.mdp, problem.law
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        steps = [Successors.of(P) for P in (mdp.transitions[:1] if mdp.stationary_transitions else mdp.transitions)]
        width = max(step.index.shape[1] for step in steps)
        self.index = np.zeros((len(steps), S * A, width), dtype=np.int64)
        self.cumulative = np.full((len(steps), S * A, width), 2.0)
        for i, step in enumerate(steps):
            order = np.argsort(-step.weight, axis=1, kind="stable")  # likely successors are found first
            n = order.shape[1]
            self.index[i, :, :n] = np.take_along_axis(step.index, order, axis=1)
            self.cumulative[i, :, :n] = _cumulative(np.take_along_axis(step.weight, order, axis=1))
        self.rewards = np.array(mdp.rewards)
        self.initial = _cumulative(problem.initial)
        self.first, self.links, self.cap = _cumulative(law.first), _cumulative(law.interarrival), law.cap
        self.draws_link = self.links.shape[3] > 1 or len(self.first) > 1
        self.pending = np.array(problem.pending[:H], dtype=np.int64)
        self.late = 0
        with np.errstate(over="ignore"):  # codes of queues too long for a table are never used
            self.powers = np.cumprod(np.append(1, np.full(problem.lead + H, A)), dtype=np.int64)
        self.offset, self.root = np.zeros((1, 1, 1), dtype=np.int64), np.zeros(H, dtype=np.int64)
        self.table: NDArray[Any] = _NO_TABLE
        self.chances = np.zeros((0, 0))
        if isinstance(policy, MarkovPolicy):
            _fits(policy.actions.shape == (H, S) and policy.n_actions == A, policy, problem)
            self.mode, self.table, self.pending = kernels.MARKOV, _flat(policy.actions), self.pending[:0]
        elif isinstance(policy, TablePolicy):
            _fits(problem.seen is None, policy, problem)
            mine = Layout.of(problem)
            _fits(same_layout(policy.layout, mine), policy, problem)
            self.offset, self.root = mine.offset, mine.root
            if policy.actions is not None:
                self.mode, self.table = kernels.TABLE, _flat(policy.actions)
            else:
                assert policy.chances is not None
                self.mode, self.chances = kernels.CHANCES, np.ascontiguousarray(policy.chances)
        elif isinstance(policy, BlackoutPolicy):
            _fits(policy.fits(problem), policy, problem)
            self.mode, self.table, self.late = kernels.BLACKOUT, _flat(policy.sequences), policy.late
        elif hasattr(policy, "probabilities"):
            self.mode = kernels.GIVEN
        else:
            raise not_a_policy(policy)

    def play(self, seed: int, chunk: int, n: int, record: bool) -> tuple[Any, ...]:
        """One chunk of n episodes: returns, rewards by step, ages, and the record."""
        k, problem = self.kernels, self.problem
        H, A, lead = problem.horizon, problem.n_actions, problem.lead
        state_rng, link_rng, action_rng = (
            np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(chunk, purpose))))
            for purpose in range(3)
        )
        draw_state = state_rng.random((lead + H, CHUNK))
        draw_link = link_rng.random((H, CHUNK)) if self.draws_link else np.zeros((1, 1))
        lost = np.zeros((1, 1), dtype=np.bool_)
        if problem.loss is not None:
            lost = problem.loss.lost(link_rng, H, CHUNK)
            if H == 1:  # one row means that nothing is lost: two say which
                lost = np.concatenate([lost, lost])
        wants_action = lead or self.mode in (k.CHANCES, k.GIVEN)
        draw_action = action_rng.random((lead + H, CHUNK)) if wants_action else np.zeros((1, 1))
        states = np.zeros((lead + H, n), dtype=np.int32)
        actions = np.zeros((lead + H, n), dtype=np.int32)
        settles = np.zeros((lead + H, n), dtype=np.int32)
        agent = np.zeros((5, n), dtype=np.int64)
        returns, earned = np.zeros(n), np.zeros(H)
        ages = np.zeros((H, lead + H + 1), dtype=np.int64)
        k.begin(
            self.initial, self.index, self.cumulative, self.first, self.cap, lead, A, lost,
            draw_state, draw_link, draw_action, states, actions, settles, agent,
        )  # fmt: skip
        model = (self.index, self.cumulative, self.rewards, self.links, self.cap, lead, self.late, self.powers)
        table = (self.pending, self.offset, self.root, self.table, self.chances)
        rows = (lost, draw_state, draw_link, draw_action, states, actions, settles, agent, returns, earned, ages)
        if self.mode == k.GIVEN:
            for h in range(H):
                actions[lead + h] = self._ask(h, draw_action[lead + h, :n], states, actions, agent)
                k.play(k.GIVEN, h, h + 1, *model, *table, *rows)
        else:
            k.play(self.mode, 0, H, *model, *table, *rows)
        if not record:
            return returns, earned, ages
        arrivals = settles if problem.loss is None else np.where(lost[:H, :n], np.int32(-1), settles)
        return returns, earned, ages, states.T, actions.T, arrivals.T

    def _ask(self, h: int, u: Floats, states: Any, actions: Any, agent: Ints) -> Ints:
        """The actions of a policy written in Python: each different information state of the chunk is asked once."""
        lead = self.problem.lead
        if h < self.problem.actuation:
            return np.full(len(u), self.problem.pending[h])
        known: dict[Information, Floats] = {}
        chosen = np.empty(len(u), dtype=np.int64)
        for e, (t, m, _, waited, _) in enumerate(agent.T.tolist()):
            queue = tuple(actions[lead + h - m : lead + h, e].tolist())
            if t < -lead:
                info = Information.nothing_seen(queue)
            else:
                info = Information(h, t, int(states[lead + t, e]), queue, waited)
            cumulative = known.get(info)
            if cumulative is None:
                assert not isinstance(self.policy, MarkovPolicy)
                cumulative = known[info] = _cumulative(chances_of(self.problem, self.policy, info))
            chosen[e] = np.searchsorted(cumulative, u[e], side="right")
        return chosen


def _cumulative(pmf: Floats) -> Floats:
    """Running sums along the last axis; from the last positive entry on, more than any draw."""
    total = np.cumsum(pmf, axis=-1)
    left = np.cumsum(pmf[..., ::-1] > 0, axis=-1)[..., ::-1]  # positive entries from here on
    return np.ascontiguousarray(np.where(left <= 1, np.where(pmf > 0, 2.0, total), total) + 2.0 * (left == 0))


def _flat(table: NDArray[Any]) -> NDArray[Any]:
    flat = np.ascontiguousarray(table).reshape(-1)
    return flat if flat.flags.writeable else flat.copy()


def _fits(good: bool, policy: Any, problem: ImpairedMDP) -> None:
    if not good:
        raise made_for_another(policy, problem)
