"""A study: read, checked, and expanded into jobs.

    study = load_study("study.toml")
    study.jobs()        # every job, in the order of the file: blocks, instances, channels, learners and tasks, replicates

Everything that can be wrong is found before work begins: `jobs()` builds every process, channel and problem, and finds every
learner and task with its options; `check()` starts each learner once on each problem (rewards outside [0, 1], a learner for delay
behind a link that loses), asks each task whether it refuses it, and refuses what will not fit. Names of files in a study, and code
of one's own, are looked for in the folder of the study's file (for a study given in Python: the current folder); code after what is
installed.

A study that names code (`module:name`) runs it when it is loaded. `load_study(file, import_code=False)` imports nothing: `code` says
what is named, and `jobs()` and `check()` leave out what that code decides.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from oldlight.checks import TooLarge, renamed
from oldlight.model.problem import ImpairedMDP, WarmStart
from oldlight.own_code import NotChecked, Place, looking_in
from oldlight.registry import learner_of
from oldlight.studies import entries, tasks
from oldlight.studies.entries import Entry
from oldlight.studies.jobs import Environment, Job, canonical, id_of, seed_of


@dataclass(frozen=True, eq=False)
class Study:
    """A checked study; made by `load_study`.

    Parameters
    ----------
    name : str
        Its name.
    seed : int
        The root seed.
    blocks : tuple of dict
        Its products, each with every key.
    checkpoint_every : float
        Seconds between two checkpoints of a learner.
    file : str or None
        Its file as it was given; None: a mapping.
    folder : Path
        Where its files and code are looked for.
    import_code : bool
        If not, its code is named but not imported.

    Examples
    --------
    >>> from oldlight.studies import load_study
    >>> study = load_study({"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:1"], "tasks": ["gap"]})
    >>> [job.label for job in study.jobs()]
    ['gap']
    """

    name: str
    seed: int
    blocks: tuple[dict[str, Any], ...]
    checkpoint_every: float
    file: str | None
    folder: Path
    import_code: bool = True

    @property
    def source(self) -> str:
        """What errors call it."""
        return self.file or "study"

    def jobs(self) -> list[Job]:
        """Every job, in the order of the file. Two blocks may hold the same job; it is computed once."""
        return list(self._expanded[0])

    def cells(self) -> list[Job]:
        """The old name of `jobs`."""
        renamed("Study.cells", "Study.jobs")
        return self.jobs()

    @property
    def code(self) -> tuple[str, ...]:
        """The code of one's own that the study names, as `module:name`; what is of this package is not among it."""
        return self._expanded[1]

    def with_code(self) -> Study:
        """The same study with its code imported."""
        return self if self.import_code else replace(self, import_code=True)._loaded()

    @functools.cached_property
    def _expanded(self) -> tuple[tuple[Job, ...], tuple[str, ...]]:
        """Jobs, and the names of code."""
        with contextlib.chdir(self.folder), looking_in(self.folder, importing=self.import_code) as place:
            jobs = tuple(job for block in self.blocks for job in self._expand(block, place))
            return jobs, tuple(place.names)

    def _loaded(self) -> Study:
        """The study itself, once all of it has been built."""
        self.jobs()
        return self

    def check(self, jobs: list[Job] | None = None) -> None:
        """Refuse, before any work, what `jobs` (all if None) would refuse later."""
        different: dict[str, Job] = {}
        for job in self.jobs() if jobs is None else jobs:
            different.setdefault(canonical([job.content["problem"], job.who]), job)
        with looking_in(self.folder, importing=self.import_code):
            for job in different.values():
                with self._at(f"{job.label} on {job.instance} behind {job.channel}"):
                    if job.kind == "learner":
                        _start(job)
                    else:
                        tasks.refuse_early(job.who["name"], job.problem, job.who["options"])

    def data(self) -> dict[str, Any]:
        """The study as plain values; objects as Python writes them."""
        words = [{key: value for key, value in block.items() if key != "where"} for block in self.blocks]
        head = {"name": self.name, "file": self.file, "seed": self.seed, "checkpoint_every": self.checkpoint_every}
        return head | {"blocks": words, "code": list(self.code)}

    def __repr__(self) -> str:
        without = "" if self.import_code or not self.code else " without those of its own code"
        return f"Study({self.name!r}, {len(self.jobs())} jobs{without})"

    @contextlib.contextmanager
    def _at(self, where: str) -> Iterator[None]:
        """Put the file and the key before what goes wrong inside."""
        try:
            yield
        except NotChecked:
            raise
        except TooLarge as error:
            raise TooLarge(f"{self.source}: {where}: {error}") from None
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(f"{self.source}: {where}: {error}") from None
        except Exception as error:  # in code of one's own
            raise ValueError(f"{self.source}: {where}: {type(error).__name__}: {error}") from error

    def _expand(self, block: dict[str, Any], place: Place) -> list[Job]:
        where = block["where"]
        for key in ("instances", "learners"):
            if key not in block and not (key == "learners" and "tasks" in block):
                raise ValueError(
                    f"{self.source}: {where[key]} is missing"
                    + (" (or tasks): a study says what to do" if key == "learners" else ": a study needs a process")
                )
        instances = self._entries(block, "instances", entries.instance)
        channels = self._entries(block, "channels", entries.channel)
        doing = [("learner", *entry) for entry in self._entries(block, "learners", entries.learner)]
        doing += [("task", *entry) for entry in self._entries(block, "tasks", entries.task)]
        path = str(self.folder) if place.names or self.file is None else None
        out: list[Job] = []
        for instance, of in instances:
            for channel, link in channels:
                with self._at(f"{instance} behind {channel}"):
                    problem, content = _problem(of, link)
                for kind, label, entry in doing:
                    if isinstance(problem, Environment) and (kind == "learner" or entry["who"]["name"] in tasks.TASKS):
                        raise ValueError(
                            f"{self.source}: {label} needs a process with a table, and {instance} is an environment; give a task "
                            "that takes an Environment, such as oldlight.deep:train"
                        )
                    seeded, doing_this = entry["seeded"], {"problem": content, kind: entry["who"]}
                    if kind == "learner":
                        doing_this |= {key: block[key] for key in ("episodes", "every", "evaluate", "failure")}
                        doing_this |= {"by_start": True} if block["by_start"] else {}
                    for replicate in range(block["seeds"] if seeded else 1):
                        random = {"seed": seed_of(self.seed, content, replicate)} if seeded else {}
                        whole = doing_this | random
                        out.append(
                            Job(id_of(whole), whole, block["name"], instance, channel, label, replicate, problem, path)
                        )  # fmt: skip
        self._refuse_twice(out)
        return out

    def _refuse_twice(self, jobs: list[Job]) -> None:
        first: dict[str, Job] = {}
        for job in jobs:
            other = first.setdefault(job.id, job)
            if other is not job:
                raise ValueError(
                    f"{self.source}: block {job.block!r} holds the same thing twice: {job.label} on {job.instance} behind "
                    f"{job.channel} is {other.label} on {other.instance} behind {other.channel}; leave one out"
                )

    def _entries(self, block: dict[str, Any], key: str, build: Callable[[Any, dict[str, Any]], Entry]) -> list[Entry]:
        """What a list of the study stands for, without what names code that may not be imported; labels must differ."""
        out: list[Entry] = []
        for i, given in enumerate(block.get(key, ())):
            with contextlib.suppress(NotChecked), self._at(f"{block['where'][key]}[{i}]"):
                label, entry = build(given, block)
                if label in dict(out):
                    raise ValueError(f"the label {label!r} is there twice; give each a label of its own")
                out.append((label, entry))
        return out


def load_study(given: str | os.PathLike[str] | Mapping[str, Any], *, import_code: bool = True) -> Study:
    """A study from a TOML file, or from a mapping with the same keys; see `oldlight.studies.spec`.

    Parameters
    ----------
    given : path-like or mapping
        The file, or its keys.
    import_code : bool
        Code of one's own that the study names is imported and called, without asking. If False, nothing is imported: `Study.code` names
        what would be, `Study.with_code()` does it.

    Returns
    -------
    Study
        Checked; a mistake is refused with the key, its value and what is allowed.

    Examples
    --------
    >>> from oldlight.studies import load_study
    >>> load_study({"name": "tiny", "instances": ["dichotomy:1"], "tasks": ["gap"], "channels": ["constant:1", "loss:0.2"]}).name
    'tiny'
    """
    from oldlight.studies.spec import checked, products, read

    if isinstance(given, Mapping):
        keys, file, folder = dict(given), None, Path.cwd()
    else:
        path = Path(given)
        keys, file, folder = read(path), str(path), path.resolve().parent
    spec = checked(keys, file or "study")
    blocks = tuple(products(spec))
    return Study(spec.name, spec.seed, blocks, spec.checkpoint_every, file, folder, import_code)._loaded()


def _problem(of: dict[str, Any], link: dict[str, Any]) -> tuple[ImpairedMDP | Environment, dict[str, Any]]:
    if "env" in of:
        return Environment(of["env"], link["channel"]), {"env": of["env"], "channel": link["identity"]}
    start = WarmStart() if of["start"] == "warm" else None
    problem = ImpairedMDP(of["mdp"], link["channel"], start=start, actuation=of["actuation"], pending=of["pending"])
    content: dict[str, Any] = {"mdp": of["fingerprint"], "channel": link["identity"], "start": of["start"]}
    if problem.actuation:
        content |= {"actuation": problem.actuation, "pending": list(problem.pending)}
    return problem, content


def _start(job: Job) -> None:
    """Start the learner once, so that it can refuse the problem."""
    from oldlight.learners.base import Setting, acts_on_nodes
    from oldlight.learners.run_memory import refuse_memory
    from oldlight.model.information import Layout

    problem = job.problem
    assert isinstance(problem, ImpairedMDP)
    if job.content.get("by_start") and job.content["evaluate"] != "exact":
        raise ValueError(f'by_start = true goes with evaluate = "exact", not {job.content["evaluate"]!r}')
    tasks.refuse_unplannable(problem)
    learner = learner_of(job.who["name"], **job.who["options"])
    nodes = acts_on_nodes(learner, problem)
    layout = None if nodes or problem.arrival_probability is not None else Layout.of(problem)
    refuse_memory(problem, learner, job.content["evaluate"], job.episodes)
    learner.start(Setting.of(problem, job.episodes, job.content["failure"], layout), np.random.default_rng(0))
