"""A policy against a clock and a network: feed it what arrives, ask it what to do.

    controller = Controller(problem, solve(problem).policy)
    controller.reset()                      # an episode begins; the next action is that of tick 0
    controller.observe(step=0, state=4)     # a message has arrived: the process was in state 4 at step 0
    action = controller.act()               # the action of this tick; the clock moves on to the next

**Ticks.** `act()` decides for the current tick and moves the clock one on. `tick(k)` sets which tick it is, before the messages of
that tick are fed; `act(k)` is `tick(k)` and `act()` in one. A *repeated* tick (the one just decided) gets the same action again,
for it may have been carried out. At *skipped* ticks the process is taken to have repeated the action before (or to have done
`skipped=a`); `did(step, action)` reports what was really done, where it was something else. With late actions the
action of tick k acts at step k + actuation.

**Messages** may come late, twice, in any order, or never. What counts is the newest step seen, t, and the tick at which it came.
So the information state is τ = (t, s_t, actions since, ticks waited since it came), and `act` is the policy's action there. An
observation older than the newest is kept for learning (`episode`), not for acting. A loss that is known is reported by `lost`; it
changes nothing in what is done, because a plan for a link that loses is a plan for silence; only a plan that was made by the nodes of
the link's automaton (`solve` behind `PacketChannel`, `BurstyLoss`, `Lossy` of a random delay ..) reads it, as it reads every other
message that comes, older ones and repeated ones too: they tell of the link.

**Impossible messages** are refused by a ValueError that names what is allowed, and change nothing: a message from the future, a state that does
not exist, two different states for one step, a clock that runs backwards. They are counted; go on with the next message.

**When the link does what the plan did not expect**, the information state has no place in the plan. Then, in this order:
1. the same state and queue, with the nearest wait (or the likeliest node of the link with this age) that has a place;
2. after a silence longer than the plan knows: the nearest younger step that has a place, its state counted along from the newest
   seen by most likely successors. So the information is held as old as the plan allows;
3. an observation that comes sooner than the plan expects is held until it is due: the nearest older step that has a place.
Such a choice is always an action, not always the best one; `report()` counts them. Behind the planned link there are none.

**Without end.** A plan for a discounted process goes on past its horizon for ever; `loss_bound` is what it can lose by that
(derived in `oldlight.control.policy_arrays`). Other plans end after H steps: `act` then asks for `reset()`.

**Files.** `save` writes one npz file without pickle, `Controller.load` reads it with numpy alone. One controller belongs to one
thread; a decision takes about a microsecond.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oldlight import checks
from oldlight.control.choice import chooser
from oldlight.control.link_choice import LinkMemory
from oldlight.control.plan_tables import Tables
from oldlight.control.report import Report

if TYPE_CHECKING:
    from oldlight.model.episode import Episode
    from oldlight.model.information import Information
    from oldlight.model.policies import Policy
    from oldlight.model.problem import ImpairedMDP
    from oldlight.random_streams import Seed

LEAP = 100_000  # ticks that may be skipped at once


class Controller:
    """A policy on a problem, event by event; see the module's text.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    policy : Policy
        A TablePolicy, BlackoutPolicy or LinkPolicy (what `solve` and the learners' `policy()` return), or any other executable policy, which is then
        asked at every tick.
    skipped : int, optional
        What the process does at a tick that nobody decided: this action, or if None the action before (the first, before any).
    seed : int, SeedSequence or Generator
        Random seed for a policy that randomises.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")
    >>> controller = ol.Controller(problem, ol.solve(problem).policy)
    >>> controller.act(), controller.step  # nothing has arrived yet
    (2, 1)
    >>> controller.observe(step=0, state=15)
    >>> problem.mdp.actions[controller.act()]
    'left'
    """

    def __init__(self, problem: ImpairedMDP, policy: Policy, *, skipped: int | None = None, seed: Seed = 0) -> None:
        from oldlight.control.policy_arrays import tables_of  # a loaded controller needs no model of a problem

        self._prepare(tables_of(problem, policy), policy, skipped, seed)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, skipped: int | None = None, seed: Seed = 0) -> Controller:
        """A controller from a file that `save` wrote, ready for its first episode."""
        controller = cls.__new__(cls)
        controller._prepare(Tables.load(path), None, skipped, seed)
        return controller

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plan (not what has happened so far) as one npz file."""
        return self.tables.save(path)

    def _prepare(self, tables: Tables, policy: Any, skipped: int | None, seed: Seed) -> None:
        self.tables = tables
        self._skipped = None if skipped is None else checks.whole("skipped", skipped, most=tables.n_actions - 1)
        self._actuation = len(tables.pending)
        self._end = tables.horizon if tables.hold < 0 else None  # of the steps that can be acted on
        self._report = Report()
        self._chooser = chooser(tables, policy, self._report, random.Random(_number(seed)))
        self._memory = self._chooser.memory
        self._again = False  # is the current tick the one just decided?
        self._begun = tables.warmup == 0

    # -- what can be looked at ----------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The tick of the next action."""
        return self._memory.h - self._actuation

    @property
    def information(self) -> Information:
        """τ as it stands, with all that has arrived: what the next action is chosen on."""
        return self._memory.information

    @property
    def loss_bound(self) -> float | None:
        """What acting so for ever can lose, at any time, against the best endless policy; None if the plan ends at H."""
        return self.tables.loss_bound if self._end is None else None

    def report(self) -> Report:
        """Counts of what happened since the controller was made; a copy."""
        return Report(**self._report.to_dict())

    def episode(self, problem: ImpairedMDP) -> Episode:
        """What this episode has revealed so far, as learners take it (`learner.see`): every step that has been acted on. States
        that never came are −1, like lost ones. `problem` has the rewards."""
        from oldlight.model.episode import Episode
        from oldlight.model.problem import checked_problem

        checked_problem(problem, "Controller.episode")
        self._must_have_begun()
        memory, warmup = self._memory, self.tables.warmup
        sizes = (problem.horizon, problem.n_states, problem.n_actions, problem.warmup)
        if self._end is None or sizes != (self._end, self.tables.n_states, self.tables.n_actions, warmup):
            raise ValueError(
                f"{self!r} was made for another problem than {problem!r}, or runs for ever: it has no such episode"
            )
        n = len(memory.actions)
        states, arrivals, rewards = np.full(n, -1), np.full(n, -1), np.full(n, np.nan)
        for i in range(n):
            if i - warmup in memory.seen:
                states[i], arrivals[i] = memory.seen[i - warmup]
                rewards[i] = problem.rewards_at(i - warmup)[states[i], memory.actions[i]]
        return Episode(states, np.array(memory.actions, dtype=np.int64), arrivals, rewards, warmup)

    def __repr__(self) -> str:
        ends = "runs for ever" if self._end is None else f"H={self._end}"
        return f"Controller({self.tables.kind}, S={self.tables.n_states}, A={self.tables.n_actions}, {ends}, tick {self.step})"

    # -- events -------------------------------------------------------------------------------------------------------

    def reset(self, past: Sequence[int] = ()) -> None:
        """An episode begins. After a warm start `past` is the actions of the steps −warmup..−1; the first thing to observe is then
        the state of step −warmup."""
        warmup, A = self.tables.warmup, self.tables.n_actions
        try:
            given = list(past)
        except TypeError:
            raise self._no(
                f"past is {past!r}, expected a list of actions, one per step before the start: {warmup}"
            ) from None
        if len(given) != warmup:
            raise self._no(f"past has {len(given)} actions, expected one per step before the start: {warmup}")
        done = [self._whole(f"past[{i}]", a, 0, A - 1) for i, a in enumerate(given)]
        self._memory.begin(done or list(self.tables.pending))
        self._again, self._begun = False, True

    def observe(self, step: int, state: int) -> None:
        """The observation of `step` has arrived: the process was in `state` then. Behind a link without a delay law a step before 0 is a
        message of before the episode: it tells of the link, its state of nothing."""
        memory, report = self._memory, self._report
        if self._before_the_episode(step):
            memory.hear(int(step))
            return
        i = self._begun_step("observe: step", step)
        s = self._whole("observe: state", state, 0, self.tables.n_states - 1)
        if i in memory.seen:
            before = memory.seen[i][0]
            if before != s:
                raise self._no(f"the observation of step {i} had state {before}, now it has {s}; the first is kept")
            memory.hear(i)
            report.duplicates += 1
        elif i < memory.base:
            report.forgotten += 1
        else:
            report.observations += 1
            report.came_after_lost += i in memory.lost
            report.out_of_order += not memory.see(i, s)
            memory.hear(i)

    def lost(self, step: int) -> None:
        """The observation of `step` is known to be lost."""
        i = self._begun_step("lost: step", step)
        if i in self._memory.seen or i in self._memory.lost:
            self._report.duplicates += 1
            return
        self._memory.lost.add(i)
        self._memory.hear(i, lost=True)
        self._report.lost += 1

    def did(self, step: int, action: int) -> None:
        """What the process really did at `step`, where it was not what `act` said."""
        self._must_have_begun()
        memory = self._memory
        if not memory.actions:
            raise self._no("did: nothing has been done yet")
        i = self._whole("did: step", step, memory.base, memory.base + len(memory.actions) - 1)
        memory.change(i, self._whole("did: action", action, 0, self.tables.n_actions - 1))

    def tick(self, step: int) -> None:
        """It is tick `step` now. Ticks may be skipped, and the one just decided may be repeated."""
        self._must_have_begun()
        now = self._whole("tick", step, 0, None if self._end is None else self._end - self._actuation - 1)
        ahead = now - self.step
        if ahead < -1:
            raise self._no(f"tick {now} is over: the clock is at {self.step}. A new episode begins with reset()")
        if ahead > LEAP:
            raise self._no(f"tick {now} is {ahead:,} ahead of the clock; at most {LEAP:,} can be skipped at once")
        if ahead > 0:
            self._memory.skip(self._skipped, ahead)
            self._report.skipped += ahead
        self._again = ahead == -1

    def act(self, step: int | None = None) -> int:
        """The action of this tick (of tick `step`, if it is given); the clock moves on."""
        if step is not None:
            self.tick(step)
        memory, report = self._memory, self._report
        if self._again:
            self._again = False
            report.repeated += 1
            return memory.actions[-1]
        if not self._begun:
            self._must_have_begun()
        if self._end is None:
            memory.forget()
        elif memory.h >= self._end:
            why = f" ({self.tables.why_it_ends})" if self.tables.why_it_ends else ""
            raise self._no(f"the episode has ended after {self._end} steps{why}; call reset()")
        a = self._chooser.choose()
        memory.do(a)
        report.ticks += 1
        return a

    # -- refusals -----------------------------------------------------------------------------------------------------

    def _no(self, why: str) -> ValueError:
        self._report.refused += 1
        return ValueError(why)

    def _whole(self, name: str, value: Any, least: int, most: int | None) -> int:
        try:
            return checks.whole(name, value, least=least, most=most)
        except ValueError:
            self._report.refused += 1
            raise

    def _must_have_begun(self) -> None:
        if not self._begun:
            raise self._no(f"a warm start begins with reset(past): the {self.tables.warmup} actions before the start")

    def _before_the_episode(self, step: Any) -> bool:
        """Is it a message of before the episode, which tells a policy of nodes something of the link?"""
        follows = isinstance(self._memory, LinkMemory)
        return (
            follows
            and type(step) is not bool
            and isinstance(step, int | np.integer)
            and -LEAP <= int(step) < -self.tables.warmup
        )

    def _begun_step(self, name: str, step: Any) -> int:
        """A step that has begun: −warmup up to the current tick; after the last decision, up to the last step."""
        self._must_have_begun()
        newest = self.step if self._end is None or self._memory.h < self._end else self._end - 1
        return self._whole(name, step, -self.tables.warmup, newest)


def _number(seed: Seed) -> int:
    """As `oldlight.random_streams.seed_number`; numpy's generators, which a robot may not need, are loaded for them alone."""
    if isinstance(seed, int):
        return checks.whole("seed", seed)
    from oldlight.random_streams import seed_number

    return seed_number(seed)


__all__ = ["Controller", "Report"]
