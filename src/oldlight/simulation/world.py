"""A problem, its policy and its random numbers as the compiled loops of a simulation read them; `oldlight.simulation.episodes` has the protocol."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints
from oldlight.machine import thread_count
from oldlight.model.channels.losses import LossChannel
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.information import Information, Layout
from oldlight.model.policies import (
    BlackoutPolicy,
    MarkovPolicy,
    Policy,
    TablePolicy,
    probabilities_at,
)
from oldlight.model.policy_check import check_made_for
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import successor_sums
from oldlight.random_streams import stream, words
from oldlight.simulation.asked import ask_at_once
from oldlight.simulation.simulated_bytes import CHUNK as CHUNK


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

    def rule(self) -> Any:
        """As the kernels read it."""
        from oldlight.kernels import episodes as kernels

        return kernels.Rule(self.table, self.action_probabilities, self.offset, self.root, self.pending)

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

    def some(self, first: int, n: int) -> Draws:
        """Those of n episodes alone."""
        parts: tuple[Any, ...] = (self.state, self.link, self.action, self.lost)
        return Draws(*(np.ascontiguousarray(x[:, first : first + n]) if x.shape[1] > 1 else x for x in parts))

    def one(self, e: int) -> Draws:
        """Those of episode e alone."""
        return self.some(e, 1)


KEPT = 2**23  # bytes of memory that a simulation leaves for the next one, for each thread


class Room:
    """Memory for the random numbers of one chunk after the other, and for its states, actions and arrivals where nobody keeps them.

    What one simulation leaves, the next of the same size takes (`of`, `leave`): to touch new pages would take as long as to play a chunk."""

    _left: ClassVar[list[Room]] = []

    def __init__(self, world: World) -> None:
        self.sizes = H, steps, losses = self._sizes(world)
        self.state, self.action, self.link = np.empty((steps, CHUNK)), np.empty((steps, CHUNK)), np.zeros((H, CHUNK))
        self.whole, self.agent = np.empty((3, steps, CHUNK), dtype=np.int32), np.empty((5, CHUNK), dtype=np.int64)
        self.lost = np.empty((losses, CHUNK), dtype=np.bool_)

    @staticmethod
    def _sizes(world: World) -> tuple[int, int, int]:
        H = world.problem.horizon
        return H, world.problem.warmup + H, max(H, 2) if world.draws_losses else 0  # one row means that nothing is lost

    @classmethod
    def of(cls, world: World) -> Room:
        try:
            room = cls._left.pop()
        except IndexError:
            return cls(world)
        if room.sizes != cls._sizes(world):
            return cls(world)
        room.link[:] = 0.0  # steps for which nothing is drawn
        return room

    def leave(self) -> None:
        arrays = (self.state, self.action, self.link, self.whole, self.agent, self.lost)
        if sum([x.nbytes for x in arrays]) <= KEPT and len(self._left) < thread_count():
            self._left.append(self)


_GIVEN = 4
_NO_TABLE = np.zeros(0, dtype=np.uint8)


class World:
    """A problem as the arrays that the kernels read."""

    def __init__(self, problem: ImpairedMDP) -> None:
        from oldlight.kernels import chunks
        from oldlight.kernels import episodes as kernels

        self.problem, self.kernels, self.chunks = problem, kernels, chunks
        mdp, law = problem.mdp, problem.law
        H, A = problem.horizon, problem.n_actions
        self.index, self.cumulative = successor_sums(mdp)
        self.rewards = np.array(mdp.rewards, order="C")
        self.initial = running_sums(problem.initial)
        first = running_sums(law.first)
        # of delays that are certain no numbers are drawn: the loops read none where a law has one entry
        links = running_sums(law.interarrival) if law.constant is None else np.ones((1, 1, 1, 1))
        late = -1 if law.constant is None else law.constant
        self.late = problem.warmup or late  # a law ends at the horizon, a warm start may be longer
        self.draws_link = law.constant is None or (problem.loss is not None and len(first) > 1)
        self.layout = None if problem.arrival_probability is not None else Layout.of(problem)
        self._arrival_probabilities = np.zeros(0) if problem.loss is None else _drawn_here(problem.loss, H)
        self.draws_losses = len(self._arrival_probabilities) > 0
        self.draws_here = problem.loss is None or self.draws_losses  # or the channel has a draw of its own
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
            self.late,
        )

    def player(self, policy: Policy | MarkovPolicy) -> Player:
        """The policy, ready to be played here; refused if it was made for another problem."""
        k, problem = self.kernels, self.problem
        check_made_for(problem, policy)
        H, A = problem.horizon, problem.n_actions
        none, offset, root = np.zeros((0, 0)), np.zeros((1, 1, 1), dtype=np.int64), np.zeros(H, dtype=np.int64)
        pending = np.array(problem.pending[:H], dtype=np.int64)
        if isinstance(policy, MarkovPolicy):
            return Player(k.MARKOV, policy, _flat(policy.actions, A), none, offset, root, pending[:0])
        if isinstance(policy, TablePolicy):
            offset, root = policy.layout.offset, policy.layout.root
            if policy.actions is not None:
                return Player(k.TABLE, policy, _flat(policy.actions), none, offset, root, pending)
            assert policy.action_probabilities is not None
            return Player(
                k.PROBABILITIES,
                policy,
                _NO_TABLE,
                np.ascontiguousarray(policy.action_probabilities),
                offset,
                root,
                pending,
            )
        if isinstance(policy, BlackoutPolicy):
            return Player(k.BLACKOUT, policy, _flat(policy.sequences, A), none, offset, root, pending)
        return Player(k.GIVEN, policy, _NO_TABLE, none, offset, root, pending)

    def draw(self, seed: int, chunk: int, player: Player | None = None, room: Room | None = None) -> Draws:
        """The random numbers of chunk number `chunk`; always that of a full chunk, so that more episodes do not change the first. room: memory to
        use again."""
        problem, H = self.problem, self.problem.horizon
        draws, rows = self._draws_in(room or Room(self), player)
        self.chunks.draw_chunk(self._numbers(seed, rows), chunk, draws.arrays())
        if self.draws_here:
            return draws
        assert problem.loss is not None
        rng = stream(seed, chunk, 1)
        if self.draws_link:
            rng.random(out=draws.link)
        lost = problem.loss.lost(rng, H, CHUNK)
        return replace(
            draws, lost=np.concatenate([lost, lost]) if H == 1 else lost
        )  # two rows: one means that nothing is lost

    def _draws_in(self, room: Room, player: Player | None) -> tuple[Draws, int]:
        """Where the numbers of a chunk will stand, and for how many steps the policy draws."""
        problem, none = self.problem, np.zeros((1, 1))
        asks = player is None or player.mode in (self.kernels.PROBABILITIES, self.kernels.GIVEN)
        # of a policy that does not randomise only the steps before step 0
        rows = problem.warmup + problem.horizon if asks else problem.warmup
        link, action = room.link if self.draws_link else none, room.action[:rows] if rows else none
        return Draws(room.state, link, action, room.lost if self.draws_losses else none > 0), rows

    def _numbers(self, seed: int, rows: int) -> Any:
        """Which numbers each chunk draws, of the policy those of `rows` steps."""
        steps = self.problem.law.uncertain_steps if self.problem.loss is None else self.problem.horizon
        link = steps if self.draws_link and self.draws_here else 0
        return self.chunks.Numbers(words(seed), self._arrival_probabilities, link, rows)

    def play(
        self, player: Player, draws: Draws, n: int, room: Room | None = None, returns: Floats | None = None
    ) -> tuple[Any, ...]:
        """n episodes with the given random numbers: returns, rewards by step, ages, and states, actions, arrivals (step, episode); of these three nothing
        that lasts with `room`, memory to use again. returns: where the returns are added, zeros before."""
        k, problem, played = self.kernels, self.problem, self.played(n, room, returns)
        H, warmup = problem.horizon, problem.warmup
        returns, states, actions, arrivals = played.returns, played.states, played.actions, played.settles
        if player.asks:
            rule, random = player.rule(), draws.arrays()
            k.begin(self.arrays, random, played)
            for h in range(H):
                now = self._ask(player.policy, h, draws.action[warmup + h, :n], states, actions, played.agent)
                actions[warmup + h] = now
                k.play(k.GIVEN, h, h + 1, self.arrays, rule, random, played)
        else:
            drawn = self.chunks.Numbers(np.zeros(0, np.uint32), np.zeros(0), 0, 0)
            self._play(player, draws, played, drawn, (0, 1))
        if room is not None:
            return returns, played.earned, played.ages, states, actions, arrivals
        if self.late >= 0:
            when = np.arange(-warmup, H, dtype=np.int32)[:, None] + np.int32(self.late)
            arrivals = np.broadcast_to(when, states.shape)
        if problem.loss is not None:
            arrivals = np.where(draws.lost[:H, :n], np.int32(-1), arrivals)
        return returns, played.earned, played.ages, states, actions, arrivals

    def play_chunks(
        self, player: Player, seed: int, chunks: tuple[int, int], room: Room, returns: Floats, earned: Floats
    ) -> Ints:
        """The chunks from chunks[0] to before chunks[1] of a policy that is not asked in Python: their ages. Filled, zeros before: `returns`, of each episode, and earned[chunk,
        step]. Nobody may keep what they leave in `room`."""
        draws, rows = self._draws_in(room, player)
        played = self.played(CHUNK, room, returns)._replace(
            earned=earned.reshape(-1), settles=self._settles(player, room)
        )
        self._play(player, draws, played, self._numbers(seed, rows), chunks)
        ages: Ints = played.ages
        return ages

    def _settles(self, player: Player, room: Room) -> NDArray[np.int32]:
        """Where it stands when observations arrive; behind random delays only for as many of them as the others follow from."""
        from oldlight.kernels import random_delays

        rows = len(room.whole[2])
        if self._loop_of(player) is random_delays.play_random:
            rows = random_delays.certain_from(self.arrays.interarrival, rows)
        return room.whole[2, :rows]

    def _play(self, player: Player, draws: Draws, played: Any, numbers: Any, chunks: tuple[int, int]) -> None:
        loop = self._loop_of(player)
        if loop is None:
            loop = partial(self.chunks.play_chunks, player.mode)
        loop(self.arrays, player.rule(), draws.arrays(), played, numbers, chunks)

    def _loop_of(self, player: Player) -> Any:
        """The loop for this policy behind this link, if there is one of its own (`kernels.independent_links`, `kernels.random_delays`)."""
        from oldlight.kernels import independent_links as loops
        from oldlight.kernels import random_delays

        k, problem, waits = self.kernels, self.problem, self.arrays.interarrival
        if player.mode == k.BLACKOUT:
            return loops.play_blackouts
        if player.mode != k.TABLE or problem.loss is not None:
            return None
        if self.late >= 0:
            return loops.play_late
        small = player.table.size * problem.n_actions < random_delays.CODES
        return random_delays.play_random if small and problem.warmup == 0 and waits.shape[1:3] == (1, 1) else None

    def played(self, n: int, room: Room | None = None, returns: Floats | None = None) -> Any:
        """Room for n episodes; states, actions and arrivals only in `room` if that is given and n is a whole chunk, returns in `returns`."""
        H, steps = self.problem.horizon, self.problem.warmup + self.problem.horizon
        if room is None or n < CHUNK:
            whole, agent = np.zeros((3, steps, n), dtype=np.int32), np.zeros((5, n), dtype=np.int64)
        else:
            whole, agent = room.whole, room.agent
        ages = np.zeros((H, steps + 1), dtype=np.int64)
        returns = np.zeros(n) if returns is None else returns
        return self.kernels.Played(whole[0], whole[1], whole[2], agent, returns, np.zeros(H), ages)

    def _ask(self, policy: Policy, h: int, u: Floats, states: Any, actions: Any, agent: Ints) -> Ints:
        """The actions of a policy written in Python: each different information state of the chunk is asked once."""
        warmup = self.problem.warmup
        if h < self.problem.actuation:
            return np.full(len(u), self.problem.pending[h])
        if hasattr(policy, "actions_at"):
            return ask_at_once(policy, h, warmup, states, actions, agent)
        known: dict[Information, list[float]] = {}
        chosen = np.empty(len(u), dtype=np.int64)
        for e, ((t, m, _, waited, _), x) in enumerate(zip(agent.T.tolist(), u.tolist(), strict=True)):
            queue = tuple(actions[warmup + h - m : warmup + h, e].tolist())
            if t < -warmup:
                info = Information.nothing_seen(queue)
            else:
                info = Information(h, t, int(states[warmup + t, e]), queue, waited)
            cumulative = known.get(info)
            if cumulative is None:
                cumulative = known[info] = running_sums(probabilities_at(self.problem, policy, info)).tolist()
            chosen[e] = bisect_right(cumulative, x)
        return chosen


def _drawn_here(loss: LossChannel, horizon: int) -> Floats:
    """λ_h of independent losses that `LossChannel.lost` would draw, or one number where they are the same; empty for others."""
    modes = loss.modes(horizon)
    if modes is None or len(modes.first) > 1 or type(loss).lost is not LossChannel.lost:
        return np.zeros(0)
    seen = loss.arrival_probabilities(horizon)
    return np.array(seen[:1] if (seen == seen[0]).all() else seen)


def _flat(table: NDArray[Any], n_actions: int | None = None) -> NDArray[Any]:
    """n_actions: as the type that planned tables have, since the kernels would be compiled once more for another."""
    kind = table.dtype if n_actions is None else np.min_scalar_type(n_actions - 1)
    flat: NDArray[Any] = np.ascontiguousarray(table, kind).reshape(-1)
    return flat if flat.flags.writeable else flat.copy()
