"""N copies of an impaired process in a few arrays: what the single and the vector environment both run on.

The protocol is that of `oldlight.simulation`, one step at a time: the process moves, the link decides when, or whether, the new
state is seen, and what arrives at the new time reaches the agent. An episode has H steps; the state after the last one is
drawn, and travels, like any other. With late actions the action chosen at time h acts at step h + k, the first k are given,
and the last k chosen never act.

Each copy has random streams of its own, seeded by its own seed; so a copy does the same alone, among others, and whatever
the others do or when they are reset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels.losses import BurstyLoss, Loss
from oldlight.model.problem import ImpairedMDP
from oldlight.simulation import World, cumulative_of
from oldlight.simulation.link_sampler import Traffic

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Engine:
    """`n` copies of `problem`; late_rewards: a reward travels with the observation that follows it; places: of the queue."""

    def __init__(self, problem: ImpairedMDP, n: int, *, late_rewards: bool, places: int) -> None:
        loss = problem.loss
        if loss is not None and not isinstance(loss, Loss | BurstyLoss):
            raise TypeError(
                f"{type(loss).__name__} is not compiled here; put ImpairedObservation(env, channel) around the environment "
                "without a channel"
            )
        self.problem, self.n, self.places = problem, n, places
        H, warmup, mdp = problem.horizon, problem.warmup, problem.mdp
        # the transitions, written out (and, with this channel, no table of information states)
        world = World(ImpairedMDP(mdp, Loss(seen=1.0)))
        # the law without the actuation delay: here actions really are late
        law = ImpairedMDP(mdp, problem.channel, start=problem.start).law
        seen, link = np.ones((2, H)), (0.0, 0.0, 0.0)
        if isinstance(loss, Loss):
            seen[:] = loss.arrival_probabilities(H)
        elif isinstance(loss, BurstyLoss):
            seen[0], seen[1], link = loss.seen_good, loss.seen_bad, (loss.bad, loss.to_bad, loss.to_good)
        self._start = (
            cumulative_of(problem.initial),
            cumulative_of(law.first),
            np.array(problem.pending, dtype=np.int64),
        )
        self.model = self._kernels.Model(
            world.index, world.cumulative, np.ascontiguousarray(world.rewards), cumulative_of(law.interarrival), seen, *link,
            loss is not None, law.longest_delay, warmup, problem.actuation, late_rewards,
        )  # fmt: skip
        self.past = np.zeros((4, warmup + H + 1 + problem.actuation, n), dtype=np.int32)
        self.agent = np.zeros((9, n), dtype=np.int64)
        self._streams = np.zeros((3, n), dtype=np.uint64)

    @property
    def _kernels(self) -> Any:
        """Imported when first needed, and not part of what is copied or pickled."""
        from oldlight.kernels import batch_simulator as kernels

        return kernels

    @staticmethod
    def longest_queue(problem: ImpairedMDP) -> int:
        """The most actions that can lie between the newest observation and now."""
        H, sizes = problem.horizon, (problem.n_states, problem.n_actions)
        if problem.warmup:
            return problem.warmup
        longest = Traffic(problem.channel, horizon=H, sizes=sizes).longest
        late = H if problem.loss is not None or longest is None else min(longest, H)
        return late + problem.actuation

    def seed(self, e: int, rng: np.random.Generator) -> None:
        """New streams for copy e."""
        self._streams[:, e] = rng.integers(2**64, size=3, dtype=np.uint64)

    def begin(self, who: Mask) -> None:
        """A new episode for the copies in `who`."""
        self._kernels.begin(who, *self._start, self.model, self.past, self.agent, self._streams)

    def step(self, actions: Ints, skip: Mask) -> tuple[NDArray[np.float64], Mask]:
        """(rewards, over); copies in `skip` stay as they are. An action that does not exist is refused before anything moves."""
        rewards, over = np.empty(self.n), np.empty(self.n, dtype=np.bool_)
        wrong = self._kernels.step(skip, actions, self.model, self.past, self.agent, self._streams, rewards, over)
        if wrong >= 0:
            where = f"actions[{wrong}]" if self.n > 1 else "action"
            raise ValueError(f"{where} is {int(actions[wrong])}, expected an action in 0..{self.problem.n_actions - 1}")
        return rewards, over

    @property
    def time(self) -> Ints:
        now: Ints = self.agent[self._kernels.CLOCK]
        return now

    @property
    def arrival(self) -> Ints:
        """The step whose observation arrived, or was reported lost, just now; −1 if none did."""
        settled: Ints = self.agent[self._kernels.ARRIVAL]
        return settled

    @property
    def states(self) -> Ints:
        """The true states."""
        true: Ints = self.past[self._kernels.STATE, self.time + self.problem.warmup, np.arange(self.n)].astype(np.int64)
        return true

    def show(self) -> dict[str, Any]:
        """What each agent sees: new arrays, one row per copy."""
        n, problem = self.n, self.problem
        numbers, actions = np.empty((6, n), dtype=np.int64), np.empty((n, self.places), dtype=np.int64)
        sizes = (problem.n_states, problem.n_actions, problem.warmup, problem.actuation)
        self._kernels.show(*sizes, self.past, self.agent, numbers, actions)
        observation, age, waited, fresh, seen, time = numbers
        shown = {
            "observation": observation,
            "age": age[:, None],
            "waited": waited[:, None],
            "fresh": fresh,
            "seen": seen,
        }
        if self.places:
            shown["actions"] = actions
        shown["time"] = time[:, None]
        return shown

    def hindsight(self) -> dict[str, NDArray[Any]]:
        """What is revealed after the episodes, axes (e, step −warmup..H−1): states (−1 if lost), actions by the step that they acted
        on, the times at which observations arrived (H or later: only now; −1: lost), rewards."""
        H, warmup = self.problem.horizon, self.problem.warmup
        states, actions, settles, lost = self.past[:, : warmup + H].transpose(0, 2, 1).astype(np.int64)
        rewards = np.zeros(states.shape)
        rewards[:, warmup:] = self.model.rewards[np.arange(H), states[:, warmup:], actions[:, warmup:]]
        states[lost > 0] = settles[lost > 0] = -1
        return {"observations": states, "actions": actions, "arrivals": settles, "rewards": rewards}
