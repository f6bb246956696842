"""The checkpoint of a run: what is needed to continue it to the identical result. Arrays and generator states, no pickle.

A learner is between two states while it looks at an episode, so an interrupted run cannot write what it finds. Instead the state
after a complete episode is kept in memory: after every episode while that is cheap, and else so seldom that it takes at most 5% of the
time. The file is written from what is kept, every so many seconds and at the end, whatever the end is.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from oldlight import checks, files
from oldlight.learners.base import has_hook
from oldlight.learners.policy_evaluator import PolicyEvaluator
from oldlight.learners.run import LearningRun

PAUSE = 0.2  # seconds between two states that are kept, or twenty times as long as it takes to keep one


class Checkpoint:
    """The file of one run, and the last complete state of it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: float,
        run: LearningRun,
        learner: Any,
        rng: np.random.Generator,
        evaluator: PolicyEvaluator,
    ) -> None:
        if not has_hook(learner, "state"):
            raise TypeError(f"{type(learner).__name__} has no state() and restore(); it cannot be checkpointed")
        self.path, self.every = Path(path), every
        self.run, self.learner, self.rng, self.evaluator = run, learner, rng, evaluator
        self._kept: dict[str, Any] = {}  # nothing that is not in the file already
        self._keep_at, self._write_at = 0.0, time.monotonic() + every

    def episode_done(self, last: bool) -> None:
        """Keep the state and write the file, if it is time to."""
        now = time.monotonic()
        write = last or now >= self._write_at
        if write or now >= self._keep_at:
            self._kept = self._state()
            took = time.monotonic() - now
            self._keep_at = now + took + max(PAUSE, 20 * took)
        if write:
            self.write()

    def write(self) -> None:
        """Write the last complete state, if the file does not hold it already."""
        if self._kept:
            checks.save_arrays(self.path, **self._kept)
        self._kept, self._write_at = {}, time.monotonic() + self.every

    def _state(self) -> dict[str, Any]:
        learner, evaluator = self.learner, self.evaluator
        state = {f"learner.{name}": np.array(array) for name, array in learner.state().items()}
        if self.run.starts is not None:
            state["judged"] = evaluator.starts.copy()  # with every=n the policies after it take its value
        held = has_hook(learner, "policy") and evaluator.holds(learner.policy())  # it is not valued again
        generator = np.array(json.dumps(self.rng.bit_generator.state))
        return {"generator": generator, **self.run.arrays(), **state, "held": np.array(held)}

    def restore(self) -> None:
        """Continue from the file, if there is one."""
        if not self.path.exists():
            return
        run, learner, evaluator = self.run, self.learner, self.evaluator
        with files.arrays_in(self.path) as held:
            run.fill(held, str(self.path))
            if run.starts is not None:
                evaluator.starts = held.array("judged", "f", evaluator.starts.shape)
            self.rng.bit_generator.state = files.json_of(held.words("generator"))
            state = {name: held.array(name, "biufU") for name in held.beginning("learner.")}
            learner.restore({name.removeprefix("learner."): array for name, array in state.items()})
            if "held" in held and held.array("held", "b", ()):
                evaluator.hold(learner.policy(), run.values[run.done - 1], run.half_widths[run.done - 1])
