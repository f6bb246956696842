"""A job: one thing to compute, whose content decides its id and its random numbers.

The *content* of a job is everything that decides its numbers, as plain JSON values: the problem (a fingerprint of the process's
arrays, the channel as data, the start, the actuation), who does what with which options, how many episodes, and the seed. Labels,
file names, the order of a list, the folder and the number of workers are not in it. So

    id   = the first 16 hex digits of SHA-256(content, keys sorted),
    seed = SeedSequence([root seed, SHA-256(problem), replicate]), folded to 63 bits,

and a result does not depend on what else a study holds, nor on when or where it is computed.

The seed comes from the *problem* and the replicate, not from the learner: learners that are compared on one problem see the same
random numbers (the same start states, the same uniform draws for the process and the link), which is what makes their difference small
noise. Since the seed is part of the content, two root seeds never share a job. Nothing of this depends on order. The number of
episodes is not in the seed either: a longer run begins with the random numbers of the shorter one. A task that takes no seed has none in
its content, and is one job whatever the number of seeds.

Code of one's own (`module:name`) is part of the content by a fingerprint of its file: an edited learner is another learner, and
its old results stay where they are.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oldlight.model.channels import Channel
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP


@dataclass(frozen=True)
class Environment:
    """A Gymnasium environment behind a channel: an instance without a table, `env:CartPole-v1`, for tasks of one's own.

    Parameters
    ----------
    id : str
        Of Gymnasium's registry.
    channel : Channel
        The link.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.studies.Environment("CartPole-v1", ol.ConstantDelay(1))
    Environment(id='CartPole-v1', channel=ConstantDelay(d=1))
    """

    id: str
    channel: Channel


@dataclass(frozen=True, eq=False)
class Job:
    """One job of a study.

    Parameters
    ----------
    id : str
        16 hex digits of the content's hash.
    content : mapping
        Everything that decides the numbers, as plain JSON values.
    block, instance, channel, label, replicate
        Its names in the study, for people.
    problem : ImpairedMDP or Environment
        The process behind its channel, built once and sent to the worker as it is.
    path : str or None
        The folder where code of one's own is found; None for a study file that names none: then nothing is imported from its folder.

    Examples
    --------
    >>> import oldlight as ol
    >>> keys = {"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:1"], "tasks": ["gap"]}
    >>> job = ol.studies.load_study(keys).jobs()[0]
    >>> job.kind, job.label, job.problem.channel
    ('task', 'gap', ConstantDelay(d=1))
    """

    id: str
    content: Mapping[str, Any]
    block: str
    instance: str
    channel: str
    label: str
    replicate: int
    problem: ImpairedMDP | Environment
    path: str | None

    @property
    def kind(self) -> str:
        """ "learner" or "task"."""
        return "learner" if "learner" in self.content else "task"

    @property
    def who(self) -> Mapping[str, Any]:
        """The learner's or task's name and options."""
        given: Mapping[str, Any] = self.content[self.kind]
        return given

    @property
    def seed(self) -> int | None:
        """The random seed, or None for a task that draws nothing."""
        return self.content.get("seed")

    @property
    def episodes(self) -> int:
        """Episodes of a learner; 0 for a task."""
        return int(self.content.get("episodes", 0))

    @property
    def heading(self) -> dict[str, Any]:
        """What the job is called in its study."""
        names = ("id", "block", "instance", "channel", "kind", "label", "replicate")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"Job({self.id}: {self.label} on {self.instance} behind {self.channel}, replicate {self.replicate})"


def canonical(content: Any) -> str:
    """JSON with sorted keys and no spaces: the same content, the same text."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(*parts: bytes | str) -> str:
    """SHA-256 of the parts, each with its length, as 64 hex digits."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def id_of(content: Mapping[str, Any]) -> str:
    """The name of a job's files."""
    return fingerprint(canonical(content))[:16]


def seed_of(root: int, problem: Mapping[str, Any], replicate: int) -> int:
    """The random seed of one replicate on one problem; see the module's text."""
    words = np.random.SeedSequence([root, int(fingerprint(canonical(problem)), 16), replicate]).generate_state(2)
    return (int(words[0]) << 31) | (int(words[1]) >> 1)


def mdp_fingerprint(mdp: TabularMDP) -> str:
    """SHA-256 of what decides the numbers of a process: sizes, arrays, and whether they are known not to change with the step."""
    R = mdp.rewards[0] if mdp.stationary_rewards else mdp.rewards
    if mdp.sparse:
        steps = [mdp.matrix(h) for h in range(1 if mdp.stationary_transitions else mdp.finite_horizon)]
        lists = [part for x in steps for part in (x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data)]
        shape = canonical([mdp.finite_horizon, "sparse", len(steps), R.shape])
        return fingerprint(shape, *(np.ascontiguousarray(x).tobytes() for x in (*lists, R, mdp.initial)))
    P = mdp.transitions[0] if mdp.stationary_transitions else mdp.transitions
    shape = canonical([mdp.finite_horizon, P.shape, R.shape])
    return fingerprint(shape, *(np.ascontiguousarray(x).tobytes() for x in (P, R, mdp.initial)))


def code_fingerprint(name: str, what: Callable[..., Any]) -> str | None:
    """SHA-256 of the file in which `what`, found as `module:name`, is written; None for this package's own code (whose
    version is recorded)."""
    module = name.partition(":")[0]
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return None
    try:
        source = inspect.getsourcefile(inspect.unwrap(what))
    except TypeError:  # functools.partial and other objects that can be called
        source = getattr(sys.modules[module], "__file__", None)
    return fingerprint(Path(source).read_bytes()) if source else None


def chosen(what: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that differ from the defaults: an option given at its default does not make another job."""
    defaults = {name: p.default for name, p in inspect.signature(what).parameters.items()}
    return {k: v for k, v in options.items() if k not in defaults or not _same(defaults[k], v)}


def _same(one: Any, two: Any) -> bool:
    return type(one) is type(two) and bool(one == two)
