"""What a controller remembers: what was done, what has arrived and when, and the information state that follows.

The newest step seen, t, decides: τ_h = (t, s_t, the actions since, h − the time when it came). Observations of earlier steps are
kept, because the state of a step that was not seen is *counted along*: from the last one seen before it (or from the most likely
first state), by the most likely successor of each state and action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oldlight.control.plan_tables import Tables

if TYPE_CHECKING:
    from oldlight.model.information import Information

MEMORY = 100_000  # steps that an endless run remembers


class Memory:
    """h: the step that the next action acts on; actions[i − base]: what was done at step i; seen[i]: (state, h of its arrival).

    nothing: nothing has been seen; else t, s, arrived are the newest step seen, its state and when it came. code is the code of
    the actions since t, while they are at most `coded`. disturbed: an observation has come since the last choice that began a
    sequence, or an action was changed, or done by nobody's choice.
    longest: how old a step can be and still be asked for.
    """

    def __init__(self, tables: Tables, longest: int, coded: int) -> None:
        self.tables, self.longest, self.coded = tables, longest, coded
        self.powers: list[int] = [tables.n_actions**m for m in range(coded + 1)]
        self.begin([0] * tables.warmup or list(tables.pending))

    def begin(self, actions: list[int]) -> None:
        """A new episode, after the actions of the steps −warmup..−1, or the ones that are under way."""
        self.h = len(self.tables.pending)
        self.actions, self.base = actions, -self.tables.warmup
        self.seen: dict[int, tuple[int, int]] = {}
        self.lost: set[int] = set()
        self.nothing, self.disturbed = True, False
        self.t, self.s, self.arrived = self.base, 0, -1
        # a step, at most h − longest unless the first, and its state
        self._floor = (self.base, self.tables.first_state)
        self._origin = self.base - 1  # the step seen from which the floor was counted along; base − 1: none
        self._recode()

    def see(self, i: int, s: int) -> bool:
        """Step i was in state s; is it the newest now?"""
        self.seen[i] = (s, self.h)
        self.lost.discard(i)
        if self._origin < i <= self._floor[0]:
            self._floor, self._origin = (i, s), i
        if self.nothing or i > self.t:
            self.nothing, self.disturbed = False, True
            self.t, self.s, self.arrived = i, s, self.h
            self._recode()
            return True
        return False

    def hear(self, i: int, lost: bool = False) -> None:
        """Something was heard of step i, for the first time or again: its observation, or that it is lost."""

    def do(self, a: int) -> None:
        """Action a is that of step h; the clock moves on."""
        m = self.h - self.t
        if m < self.coded:
            self.code += a * self.powers[m]
        self.actions.append(a)
        self.h += 1

    def skip(self, a: int | None, n: int) -> None:
        """n steps went by, at which a was done, or if None what was done before."""
        if a is None:
            a = self.actions[-1] if self.actions else 0
        self.actions += [a] * n
        self.h += n
        self.disturbed = True
        self._recode()

    def change(self, i: int, a: int) -> None:
        """It was a that was done at step i."""
        if self.actions[i - self.base] == a:
            return
        self.actions[i - self.base] = a
        self.disturbed = True
        if self._origin <= i < self._floor[0]:
            if self._origin in self.seen:
                self._floor = (self._origin, self.seen[self._origin][0])
            elif self.base == -self.tables.warmup:
                self._floor = (self.base, self.tables.first_state)
        self._recode()

    def queue(self, t: int) -> list[int]:
        """The actions of the steps t..h−1."""
        return self.actions[max(t - self.base, 0) :]

    def encoded(self, queue: list[int]) -> int:
        """The code of a queue of at most `coded` actions."""
        return sum(a * p for a, p in zip(queue, self.powers, strict=False))

    def _recode(self) -> None:
        queue = self.queue(self.t)
        self.code = self.encoded(queue) if len(queue) <= self.coded else 0

    @property
    def information(self) -> Information:
        """τ_h."""
        from oldlight.model.information import Information

        if self.nothing:
            return Information(self.h, None, None, tuple(self.actions), self.h + 1)
        return Information(self.h, self.t, self.s, tuple(self.queue(self.t)), self.h - self.arrived)

    def state_of(self, t: int) -> int:
        """The state of step t ≥ h − longest: as seen, or counted along. The floor follows the clock, so that this takes no longer
        the longer nothing has been seen."""
        likely, lowest = self.tables.likely, self.h - self.longest
        step, s = self._floor
        if step in self.seen:
            s, self._origin = self.seen[step][0], step
        while step < t:
            s = int(likely[min(max(step, 0), len(likely) - 1), s, self.actions[step - self.base]])
            step += 1
            if step in self.seen:
                s = self.seen[step][0]
            if step <= lowest:
                self._floor = (step, s)
                if step in self.seen:
                    self._origin = step
        return s

    def forget(self) -> None:
        """Let go of what is older than MEMORY steps, once in a while."""
        keep = max(MEMORY, self.longest)
        if len(self.actions) <= 2 * keep:
            return
        self.state_of(self.h - self.longest)
        base = self.h - keep
        del self.actions[: base - self.base]
        self.base = base
        self.seen = {i: x for i, x in self.seen.items() if i >= base}
        self.lost = {i for i in self.lost if i >= base}
