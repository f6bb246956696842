"""N copies of an impaired process in a few arrays: what the single and the vector environment both run on.

The protocol is that of `oldlight.simulation`, one step at a time: the process moves, the link decides when, or whether, the new
state is seen, and what arrives at the new time reaches the agent. A delay law is drawn in the compiled loop; every other link by the
sampler that all share (`oldlight.simulation.link_sampler`). An episode has H steps; the state after the last one is
drawn, and travels, like any other. With late actions the action chosen at time h acts at step h + k, the first k are given,
and the last k chosen never act. Behind a link of the actions (`oldlight.envs.action_link`) what is done is what has arrived; the agent is shown what it chose.

Each copy has random streams of its own, seeded by its own seed; so a copy does the same alone, among others, and whatever
the others do or when they are reset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Ints
from oldlight.envs.action_link import ActionLinks
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import successor_sums
from oldlight.simulation.link_sampler import LinkSampler, ManyLinks

Mask = NDArray[np.bool_]
NO_STEP = -(2**31)
_NO_NEWS: Ints = np.zeros((2, 1), dtype=np.int64)


class BatchSimulator:
    """`n` copies of `problem`; late_rewards: a reward travels with the observation that follows it; places: of the queue;
    actions: the links of the actions, if they have some."""

    def __init__(
        self, problem: ImpairedMDP, n: int, *, late_rewards: bool, places: int, actions: ActionLinks | None = None
    ) -> None:
        self.problem, self.n, self.places, self.actions = problem, n, places, actions
        H, mdp = problem.horizon, problem.mdp
        self.links: ManyLinks | None
        link, first, self.links = self._law() if problem.has_delay_law else self._told()
        self._start = self._kernels.Start(
            running_sums(problem.initial), first, np.array(problem.pending, dtype=np.int64)
        )
        self.model = self._kernels.Model(
            *successor_sums(mdp), np.array(mdp.rewards, order="C"), *link, problem.warmup, problem.actuation, late_rewards,
        )  # fmt: skip
        self.past = np.zeros((4, problem.warmup + H + 1 + problem.actuation, n), dtype=np.int32)
        self.agent = np.zeros((9, n), dtype=np.int64)
        self._streams = np.zeros((3, n), dtype=np.uint64)
        # what was chosen, and when what is done was chosen, by step
        self._chosen = None if actions is None else np.zeros_like(self.past[:2])

    def _law(self) -> tuple[tuple[Any, ...], NDArray[np.float64], None]:
        """A delay law for the compiled loop, without the actuation delay: here actions really are late."""
        problem, H = self.problem, self.problem.horizon
        loss = problem.loss
        modes = None if loss is None else loss.modes(H)
        if loss is not None and (modes is None or len(modes.first) > 2):
            raise TypeError(
                f"{type(loss).__name__} is not compiled here; put ImpairedObservation(env, channel) around the environment "
                "without a channel"
            )
        law = problem.channel.delay.law(H, problem.n_states, problem.n_actions)
        seen, switching = np.ones((2, H)), (0.0, 0.0, 0.0)
        if modes is not None:
            seen[:] = np.broadcast_to(modes.seen, (H, len(modes.first))).T
        if modes is not None and len(modes.first) == 2:
            switching = (float(modes.first[1]), float(modes.switch[0, 1]), float(modes.switch[1, 0]))
        link = (running_sums(law.interarrival), seen, *switching, loss is not None, True, law.longest_delay)
        return link, running_sums(law.first), None

    def _told(self) -> tuple[tuple[Any, ...], NDArray[np.float64], ManyLinks]:
        """A link without a delay law, which is played beside the compiled loop."""
        links = ManyLinks(self.problem.channel, self.problem.horizon, self.n)
        nothing = (np.full((1, 1, 1, 1), 2.0), np.ones((2, 1)), 0.0, 0.0, 0.0)
        return (*nothing, True, False, links.link.longest), np.full(1, 2.0), links

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
        return LinkSampler(problem.channel, horizon=H, sizes=sizes).oldest(H) + problem.actuation

    def seed(self, e: int, rng: np.random.Generator) -> None:
        """New streams for copy e."""
        self._streams[:, e] = rng.integers(2**64, size=3, dtype=np.uint64)
        if self.actions is not None:
            self.actions.seed(e, rng)

    def begin(self, who: Mask) -> None:
        """A new episode for the copies in `who`."""
        if self.links is not None:
            self.links.begin(who, self._streams[self._kernels.DELAY])
        self._kernels.begin(who, self._start, self._news, self.model, self.past, self.agent, self._streams)
        if self.actions is not None and self._chosen is not None:
            self.actions.begin(who)
            self._chosen[0][:, who] = self.past[self._kernels.ACTION][:, who]  # those under way
            self._chosen[1][:, who] = -1

    def step(self, actions: Ints, skip: Mask) -> tuple[NDArray[np.float64], Mask]:
        """(rewards, over); copies in `skip` stay as they are. An action that does not exist is refused before anything moves."""
        outcome = self._kernels.Outcome(np.empty(self.n), np.empty(self.n, dtype=np.bool_))
        wrong = self._kernels.first_wrong(skip, actions, self.problem.n_actions)
        if wrong >= 0:
            where = f"actions[{wrong}]" if self.n > 1 else "action"
            raise ValueError(f"{where} is {int(actions[wrong])}, expected an action in 0..{self.problem.n_actions - 1}")
        if self.links is not None:
            self.links.step(skip, self._streams[self._kernels.DELAY])
        if self.actions is not None and self._chosen is not None:
            who = np.flatnonzero(~skip)
            at = self.time[who] + self.problem.warmup + self.problem.actuation
            self._chosen[0][at, who] = actions[who]
            actions = self.actions.step(actions, skip)
            self._chosen[1][at, who] = self.actions.source[who]
        self._kernels.step(skip, actions, self._news, self.model, self.past, self.agent, self._streams, outcome)
        return outcome.rewards, outcome.over

    @property
    def _news(self) -> Ints:
        return _NO_NEWS if self.links is None else self.links.told

    @property
    def time(self) -> Ints:
        now: Ints = self.agent[self._kernels.CLOCK]
        return now

    @property
    def arrival(self) -> Ints:
        """The step whose observation arrived, or was reported lost, just now; −1 if none did. Behind a link without a delay law: the
        newest visible step, if it arrived just now."""
        settled: Ints = self.agent[self._kernels.ARRIVAL]
        return settled

    @property
    def arrivals(self) -> Ints | None:
        """Behind a link without a delay law: the steps whose observations arrived just now, newest first, in each row, filled with
        `NO_STEP`; a step before 0 is a message of before the episode. None behind a delay law, where `arrival` says it."""
        if self.links is None:
            return None
        link, now = self.links.link, self.time
        if not link.sends_messages:
            step, when = self.links.told
            return np.where(when == now, step, NO_STEP)[:, None]
        rows = now[:, None] - np.arange(link.longest + 1)
        who = np.arange(self.n)[:, None]
        there = (self.past[self._kernels.SETTLES, rows, who] == now[:, None]) & (rows >= 0)
        order = np.argsort(~there, axis=1, kind="stable")
        return np.take_along_axis(np.where(there, rows, NO_STEP), order, axis=1)

    @property
    def known(self) -> NDArray[np.int32]:
        """`past` as the agent knows it: with the actions that it chose, where others may have been done."""
        if self._chosen is None:
            return self.past
        past = self.past.copy()
        past[self._kernels.ACTION] = self._chosen[0]
        return past

    def done(self) -> dict[str, Ints]:
        """Behind a link of the actions: what was done at the last step, and when it was chosen (−1: the default, or under way at the start)."""
        if self._chosen is None:
            return {}
        row, who = self.time - 1 + self.problem.warmup, np.arange(self.n)
        acted, source = self.past[self._kernels.ACTION, row, who], self._chosen[1][row, who]
        return {"acted": acted.astype(np.int64), "acted_from": source.astype(np.int64)}

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
        self._kernels.show(*sizes, self.known, self.agent, numbers, actions)
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
        on, the times at which observations arrived (H or later: only now; −1: lost), rewards; behind a link of the actions the actions are those
        that were chosen, and `acted` are those that were done."""
        H, warmup = self.problem.horizon, self.problem.warmup
        states, actions, settles, lost = self.past[:, : warmup + H].transpose(0, 2, 1).astype(np.int64)
        rewards = np.zeros(states.shape)
        rewards[:, warmup:] = self.model.rewards[np.arange(H), states[:, warmup:], actions[:, warmup:]]
        states[lost > 0] = settles[lost > 0] = -1
        revealed = {"observations": states, "actions": actions, "arrivals": settles, "rewards": rewards}
        if self._chosen is not None:
            revealed |= {"actions": self._chosen[0][: warmup + H].T.astype(np.int64), "acted": actions}
        return revealed
