"""The chunks of a simulation, shared by threads: spans of many chunks, each in one compiled call, where no Python is asked and nothing is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Ints
from oldlight.model.policies import MarkovPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.simulation.link_episodes import LinkEpisodes, by_automaton
from oldlight.simulation.simulated_bytes import CHUNK
from oldlight.simulation.world import Room, World
from oldlight.threads import lent_threads

MOST = 2**21  # steps that are played without a look at Ctrl-C
FEW = 2**19  # steps that are played in less time than it takes to start threads


class Spans:
    """What the episodes of a simulation leave: `returns` of each, earned[chunk, step], `ages`, and parts[chunk] = (states, actions, arrivals), axes (step, episode),
    if they are recorded."""

    def __init__(
        self, problem: ImpairedMDP, policy: Policy | MarkovPolicy, seed: int, episodes: int, record: bool
    ) -> None:
        self._links = LinkEpisodes(problem, policy) if by_automaton(problem, policy) else None
        self.warmup = 0 if self._links is not None else problem.warmup
        self._seed, self._record, self._steps = seed, record, self.warmup + problem.horizon
        self._world, self._player, self._together = None, None, False
        if self._links is None:
            self._world = World(problem)
            self._player = self._world.player(policy)
            self._together = self._world.draws_here and not (record or self._player.asks)
        self.returns, self.earned = np.zeros(episodes), np.zeros((-(-episodes // CHUNK), problem.horizon))
        self._ages: list[Ints] = []  # of each thread
        self.parts: list[Any] = [None] * len(self.earned)

    def play(self, workers: int) -> None:
        """Play them all."""
        if self._player is None or self._player.asks or len(self.returns) * self._steps < FEW:
            workers = 1  # Python policies are asked from one thread only
        todo = self.spans(workers)[::-1]
        others = min(workers, len(todo)) - 1  # this thread plays too
        if others == 0:
            self._work(todo)
            return
        with lent_threads(others) as pool:
            working = [pool.submit(self._work, todo) for _ in range(others)]
            try:
                self._work(todo)
            finally:
                todo.clear()  # Ctrl-C waits for no more than the spans that are being played
            for other in working:
                other.result()

    @property
    def ages(self) -> Ints:
        """As in `Simulation`."""
        found: Ints = np.sum(self._ages, axis=0)
        return found

    def spans(self, workers: int) -> list[tuple[int, int]]:
        """Chunks that are played in one call, first and end: many at first, fewer towards the end, so that all threads end at the same time."""
        most = max(1, MOST // (CHUNK * self._steps)) if self._together else 1
        found, first, number = [], 0, len(self.earned)
        while first < number:
            left = number - first
            share = left if workers == 1 else left // (2 * workers)
            found.append((first, first + min(most, max(1, share))))
            first = found[-1][1]
        return found

    def _work(self, todo: list[tuple[int, int]]) -> None:
        """Play what is there to do; several threads take from one list."""
        room, ages = (
            None if self._world is None else Room.of(self._world),
            np.zeros((self.earned.shape[1], self._steps + 1), np.int64),
        )
        while todo:
            try:
                span = todo.pop()
            except IndexError:  # another thread has taken it
                break
            ages += self._play(span, room)
        if room is not None:
            room.leave()
        self._ages.append(ages)

    def _play(self, span: tuple[int, int], room: Room | None) -> Ints:
        """The ages of a span, whose returns and rewards are written where they stay."""
        first, end = span
        returns, world, player = self.returns[first * CHUNK : end * CHUNK], self._world, self._player
        if world is None or player is None:
            assert self._links is not None
            played = self._links.play(self._seed, first, len(returns))
            returns[:] = played[0]
        elif self._together:
            assert room is not None
            return world.play_chunks(player, self._seed, span, room, returns, self.earned[first:end])
        else:
            room = None if self._record else room
            played = world.play(player, world.draw(self._seed, first, player, room), len(returns), room, returns)
        self.earned[first] = played[1]
        if self._record:
            self.parts[first] = played[3:]
        ages: Ints = played[2]
        return ages
