"""A policy on the recording itself, as it came: late messages are used, losses are not announced.

From a starting tick j of a session the process is played for H ticks; at time h the agent has what had arrived by tick j + h of the
messages sent since tick j (`oldlight.traces.ticks`). Episodes begin at every tick of every phase that has H − 1 ticks after it, or at a stated
stride; with more episodes than that, each start is played several times.

**What the agent knows** is what its policy was made for:
- behind a link that is planned by its automaton, the node follows what arrives: the newest observation whose age is possible at the
  node (an observation is held until its age is; what is older than any possible age is not used). Of several nodes the most
  probable one, or for an age chain that of the age of the link;
- a plan for a constant delay d with loss acts on observations that are exactly d ticks old: what comes later counts as lost;
- a plan for a delay law acts on the newest observation, at the nearest place of its table, as `oldlight.control` does.
Where the plan has no place for what happened (nothing newer, although the link always delivers), the state of the nearest younger
step is *counted along* by the most likely successors; `guessed` is the share of decisions that needed it.

**The interval.** Windows that begin near each other share most of their messages, and outages last. So the spread is that of blocks of
time, a block bootstrap whose variance has a closed form: with B blocks of L ticks and D_b the sum over block b of the deviations
from the mean of all n episodes, the variance is B/(B−1)·Σ_b D_b²/n², and the half-width is Student's 97.5 % quantile for B − 1 degrees times
its root. It is the widest over L = H, 2H, 4H, .. with at least `BLOCKS` blocks; a recording of fewer has no interval (infinite).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.information import Information, Layout
from oldlight.model.link_information import LinkInformation
from oldlight.model.policies import BlackoutPolicy, MarkovPolicy, Policy, TablePolicy, probabilities_at
from oldlight.model.policy_check import check_made_for, not_a_policy
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.model.successors import likely_successors, successor_sums
from oldlight.random_streams import Seed, seed_number, stream
from oldlight.simulation.link_episodes import by_automaton, decide
from oldlight.traces.following import NOTHING, View, follow_automaton, follow_deadline, follow_table
from oldlight.traces.ticks import NEVER, Run, ages_of, runs_of
from oldlight.traces.trace import Trace

EPISODES = 20_000
BLOCKS = 8
CHUNK = 20_000  # episodes at once


@dataclass(frozen=True, eq=False)
class Replay:
    """The value of a policy on a recording.

    Parameters
    ----------
    returns : ndarray, shape (episodes,)
        Of each episode, in the order of time.
    at : ndarray, shape (episodes,)
        When it began, in ticks since the recording began.
    half_width : float
        Of a 95 % interval that respects that windows overlap; infinite where the recording is too short for one.
    block : int
        The length of the time blocks behind it, in ticks.
    stride : float
        Ticks between the starting points (of all phases together).
    guessed : float
        The share of decisions at states that were counted along.
    horizon : int
        Ticks of an episode.
    period_ms : float
        Milliseconds of a tick.
    source : str
        The recording.

    Examples
    --------
    >>> import oldlight as ol
    >>> trace = ol.Trace([20.0] * 300, sent_ms=[20.0 * i for i in range(300)], source="link")
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1, 4), ol.ConstantDelay(1))
    >>> ol.replay(problem, ol.solve(problem).policy, trace, period_ms=20, episodes=100, per_tick=True)
    Replay(1 ± 0 (95%), 100 episodes of 4 ticks of 20 ms, a start every 2.95 ticks)
    """

    returns: Floats
    at: Floats
    half_width: float
    block: int
    stride: float
    guessed: float
    horizon: int
    period_ms: float
    source: str

    @property
    def value(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"Replay({self.value:.6g} ± {self.half_width:.3g} (95%), {len(self.returns):,} episodes of {self.horizon} ticks of {self.period_ms:g} ms, "
            f"a start every {self.stride:.3g} ticks)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, without the returns."""
        wide = None if np.isinf(self.half_width) else self.half_width
        names = ("value", "block", "stride", "guessed", "horizon", "period_ms", "source")
        return {name: getattr(self, name) for name in names} | {"half_width": wide, "episodes": len(self.returns)}

    def plot(self, ax: Any = None) -> Any:
        """The return by the time at which an episode began, as means of blocks of H ticks; on new axes if None are given."""
        from matplotlib.figure import Figure

        ax = Figure(figsize=(7.0, 3.2), layout="constrained").subplots() if ax is None else ax
        place = (self.at // self.horizon).astype(np.int64)
        count = np.bincount(place)
        mean = np.bincount(place, self.returns) / np.maximum(count, 1)
        when = (np.arange(len(count)) + 0.5) * self.horizon * self.period_ms / 1e3
        ax.plot(when[count > 0], mean[count > 0], drawstyle="steps-mid", color="#1f6f8b")
        ax.axhline(self.value, color="#c8553d", lw=1)
        ax.set_xlabel("began after (s)")
        ax.set_ylabel("return")
        return ax


def replay(
    problem: ImpairedMDP,
    policy: Policy,
    trace: Trace,
    *,
    period_ms: float | None = None,
    episodes: int = EPISODES,
    seed: Seed = 0,
    per_tick: bool = False,
) -> Replay:
    """The value of `policy` on the recording as it came.

    Parameters
    ----------
    problem : ImpairedMDP
        The process, with a cold start, and the channel that the policy was made for.
    policy : Policy
        Any executable policy of that problem.
    trace : Trace
        The recording.
    period_ms : float, optional
        Milliseconds of a tick; the period of the channel, else the sending interval, if None.
    episodes : int
        How many, evenly over all starting ticks.
    seed : int, SeedSequence or Generator
        Random seed, for the process and the policy.
    per_tick : bool
        One message at each tick instead of the recording's own (`oldlight.traces.ticks`).

    Returns
    -------
    Replay
        `.value` and `.half_width`.

    Examples
    --------
    >>> import numpy as np, oldlight as ol
    >>> rng = np.random.default_rng(0)
    >>> trace = ol.Trace(np.where(rng.random(3000) < 0.2, np.nan, 15.0), sent_ms=20.0 * np.arange(3000))
    >>> chain = trace.fit(40).age_chain(horizon=10)
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), chain)
    >>> found = ol.replay(problem, ol.solve(problem, tolerance=0.05).policy, trace, period_ms=40, episodes=4000)
    >>> bool(abs(found.value - ol.solve(problem, tolerance=0.05).value) < found.half_width)
    True
    """
    checked_problem(problem, "replay")
    n = checks.whole("episodes", episodes, least=2)
    if problem.warmup:
        raise ValueError(
            "replay: a warm start knows a past that came over the planned link; a recording has none: use start=None"
        )
    if problem.actuation:
        raise ValueError(
            f"replay: actions take effect {problem.actuation} steps late; late actions are not replayed, use oldlight.run_testbed"
        )
    runs, T = recorded(trace, problem.period_ms if period_ms is None else period_ms, per_tick)
    H = problem.horizon
    begins, at = starting_points(runs, H, trace.source, T)
    pick = np.arange(n) * len(begins) // n
    player = Player(problem, policy, runs)
    number = seed_number(seed)
    parts = [player.play(begins[pick[i : i + CHUNK]], number, i // CHUNK) for i in range(0, n, CHUNK)]
    returns = np.concatenate([part.returns for part in parts])
    guessed = sum(int(part.guessed.sum()) for part in parts) / (n * H)
    phases = len({run.phase for run in runs})
    half_width, block = interval(returns, at[pick], H)
    stride = max(len(begins) / n, 1.0) / phases
    return Replay(returns, at[pick], half_width, block, stride, guessed, H, T, trace.source)


def recorded(trace: Trace, period_ms: float | None, per_tick: bool) -> tuple[list[Run], float]:
    """The runs of a recording and its period, the sending interval if none is given."""
    T = trace.period_of(period_ms)
    return runs_of(trace, T, per_tick=per_tick)[0], T


def starting_points(runs: list[Run], horizon: int, source: str, period_ms: float) -> tuple[Ints, Floats]:
    """Where episodes can begin: places in the runs put end to end, and times in ticks; in the order of time."""
    first = np.cumsum([0, *map(len, runs)])
    begins = [np.arange(run.skip, len(run) - horizon + 1) + first[i] for i, run in enumerate(runs)]
    if not sum(map(len, begins)):
        raise ValueError(
            f"{source} has at most {max(map(len, runs))} ticks of {period_ms:g} ms in a session, fewer than an episode of {horizon}; measure "
            "longer, or give a shorter period_ms"
        )
    at = [np.arange(run.skip, len(run) - horizon + 1) + run.begin for run in runs]
    order = np.argsort(np.concatenate(at), kind="stable")
    return np.concatenate(begins)[order], np.concatenate(at)[order]


def interval(returns: Floats, at: Floats, horizon: int) -> tuple[float, int]:
    """The half-width of the module's text, and the length of its blocks."""
    from scipy.stats import t as student

    deviation = returns - returns.mean()
    widest, chosen, L = -1.0, horizon, horizon
    while (at.max() - at.min()) / L >= BLOCKS:
        sums = np.bincount(((at - at.min()) // L).astype(np.int64), deviation)
        sums = sums[np.unique(((at - at.min()) // L).astype(np.int64))]
        B = len(sums)
        if B < BLOCKS:
            break
        wide = float(student.ppf(0.975, B - 1) * np.sqrt(B / (B - 1) * (sums**2).sum()) / len(returns))
        if wide > widest:
            widest, chosen = wide, L
        L *= 2
    return (widest, chosen) if widest >= 0 else (np.inf, horizon)


class Played(NamedTuple):
    """Episodes on a recording: their returns, shape (n,), and by step and episode, axes (h, n), the states, the actions, the time at which the
    observation could be used (`NEVER` or later: not), and whether the state acted on was counted along."""

    returns: Floats
    states: Ints
    actions: Ints
    arrivals: Ints
    guessed: NDArray[np.bool_]


class Player:
    """Plays episodes of one problem with one policy on one recording, or on runs of a link that were drawn."""

    def __init__(self, problem: ImpairedMDP, policy: Any, runs: list[Run]) -> None:
        if isinstance(policy, MarkovPolicy):
            raise TypeError(
                "replay: a MarkovPolicy sees the current state, which no recording delivers; give an executable policy"
            )
        if not hasattr(policy, "probabilities"):
            raise not_a_policy(policy)
        self.problem, self.policy = problem, policy
        self.late = np.concatenate([run.late for run in runs])
        self.nodes = by_automaton(problem, policy)
        self.view: Callable[[Ints], View]
        if self.nodes:
            check_made_for(problem, policy)
            self.names = problem.automaton.nodes
            oldest, ages = problem.automaton.longest, None
            if problem.channel.begins_before:
                ages = np.concatenate([ages_of(np.where(run.late > oldest, NEVER, run.late)) for run in runs])
            self.view = lambda begins: follow_automaton(problem.automaton, self.late, ages, begins)
        elif problem.arrival_probability is not None:
            if isinstance(policy, BlackoutPolicy):
                check_made_for(problem, policy)
            d = problem.law.constant
            if d is None:
                raise ValueError(
                    f"replay: {problem.channel!r} has a random delay and announces losses, which no recording does; plan for an age chain"
                )
            self.view = lambda begins: follow_deadline(d, problem.horizon, self.late, begins)
        else:
            layout = policy.layout if isinstance(policy, TablePolicy) else Layout.of(problem)
            self.view = lambda begins: follow_table(layout, problem.horizon, self.late, begins)
        self.successors = successor_sums(problem.mdp, likely_first=False)
        self.likely = likely_successors(problem.mdp)
        self.first = running_sums(problem.initial)
        self._known: dict[Any, Floats] = {}

    @property
    def asked(self) -> tuple[Any, ...]:
        """The different information states that the policy was asked with so far, in that order."""
        return tuple(self._known)

    def play(self, begins: Ints, seed: int, chunk: int) -> Played:
        """The episodes that begin at these places."""
        problem, H, n = self.problem, self.problem.horizon, len(begins)
        moves, choice = (stream(seed, chunk, purpose).random((H, n)) for purpose in (0, 2))
        view = self.view(begins)
        states, actions = np.zeros((2, H, n), dtype=np.int64)
        returns = np.zeros(n)
        states[0] = np.searchsorted(self.first, moves[0], side="right")
        for h in range(H):
            actions[h] = self._choose(h, view, begins, states, actions, choice[h])
            returns += problem.mdp.rewards[h][states[h], actions[h]]
            if h + 1 < H:
                states[h + 1] = self.successors.drawn(h, states[h] * problem.n_actions + actions[h], moves[h + 1])
        step = np.arange(H)[:, None]
        return Played(returns, states, actions, step + self.late[begins[None, :] + step], view.guessed)

    def _choose(self, h: int, view: View, begins: Ints, states: Ints, actions: Ints, u: Floats) -> Ints:
        """The actions of time h: each different information state is asked once."""
        t = view.step[h]
        s = self._states(h, t, begins, states, actions)
        since = np.where(np.arange(h)[:, None] >= t, actions[:h], -1)
        rows = np.ascontiguousarray(np.vstack([view.tag[h], t, s, since]).T)
        _, one, inverse = np.unique(
            rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel(),
            return_index=True,
            return_inverse=True,
        )
        laws = np.array([self._law(h, rows[i].tolist()) for i in one])
        return np.asarray((laws[inverse] <= u[:, None]).sum(axis=1))

    def _law(self, h: int, row: list[int]) -> Floats:
        tag, t, s, *done = row
        seen = t != NOTHING
        queue = tuple(done[t:]) if seen else tuple(done)
        info: Any
        if self.nodes:
            info = LinkInformation(h, self.names[tag], t if seen else None, s if seen else None, queue)
        else:
            info = Information(h, t, s, queue, tag) if seen else Information.nothing_seen(queue)
        law = self._known.get(info)
        if law is None:
            given = (
                decide(self.problem, self.policy, info)
                if self.nodes
                else probabilities_at(self.problem, self.policy, info)
            )
            law = self._known[info] = running_sums(given)
        return law

    def _states(self, h: int, t: Ints, begins: Ints, states: Ints, actions: Ints) -> Ints:
        """The state of step t as the agent has it at time h: as seen, or counted along from the last step that was."""
        here = np.arange(len(t))
        out = np.where(t >= 0, states[np.maximum(t, 0), here], NOTHING)
        guess = here[(t >= 0) & (t + self.late[begins + np.maximum(t, 0)] > h)]
        if not len(guess):
            return out
        base = t[guess].copy()
        unseen = np.ones(len(guess), dtype=bool)
        while unseen.any():
            base[unseen] -= 1
            unseen &= base >= 0
            unseen[unseen] = base[unseen] + self.late[begins[guess[unseen]] + base[unseen]] > h
        s = np.where(base >= 0, states[np.maximum(base, 0), guess], int(self.problem.initial.argmax()))
        base = np.maximum(base, 0)
        while (going := base < t[guess]).any():
            i = base[going] if len(self.likely) > 1 else 0
            s[going] = self.likely[i, s[going], actions[base[going], guess[going]]]
            base[going] += 1
        out[guess] = s
        return out
