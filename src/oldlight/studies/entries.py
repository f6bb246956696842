"""The entries of a study's lists: what a word, a table or an object stands for.

Each function takes an entry and its block and returns the label and what the entry stands for, or refuses it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from oldlight import learners
from oldlight.model.channels import Channel
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import resolve
from oldlight.registry import (
    CHANNELS,
    called,
    channel_data,
    channel_of,
    learner_maker,
    learner_names,
    learner_of,
    mdp_of,
    names_code,
    own_channel,
    permit_environment,
    policy_maker,
)
from oldlight.studies import tasks
from oldlight.studies.jobs import canonical, chosen, code_fingerprint, mdp_fingerprint

Entry = tuple[str, dict[str, Any]]  # label, and what it stands for


def instance(given: Any, block: dict[str, Any]) -> Entry:
    """mdp, its fingerprint, start, actuation, pending."""
    name, options, label = _taken_apart(given, "sensing_chain:0.8")
    if isinstance(name, str) and name.startswith("env:"):
        if options or name == "env:":
            raise ValueError(f"{name!r}: an environment is env:ID and takes no further keys but a label")
        permit_environment(name.removeprefix("env:"))
        return label, {"env": name.removeprefix("env:")}
    setting = {key: options.pop(key, block.get(key)) for key in ("start", "actuation", "pending")}
    if setting["start"] not in ("cold", "warm"):
        raise ValueError(f'start is {setting["start"]!r}, expected "cold" or "warm"')
    if options and not isinstance(name, str):
        raise ValueError(f"{type(name).__name__} takes no further keys; found {next(iter(options))!r}")
    mdp = mdp_of({"name": name, **options} if options else name)
    return label, {"mdp": mdp, "fingerprint": mdp_fingerprint(mdp), **setting}


def channel(given: Any, block: dict[str, Any]) -> Entry:
    """channel, and its identity as data."""
    if isinstance(given, Mapping) and "kind" in given:
        data = dict(given)
        label = _word(data.pop("label", None)) or _call(data["kind"], {k: v for k, v in data.items() if k != "kind"})
        link = channel_of(data)
        return label, {"channel": link, "identity": _identity(link)}
    name, options, label = _taken_apart(given, "constant:2")
    if isinstance(name, str) and names_code(name):
        link = own_channel(name, options)
        make = resolve(name, "", CHANNELS)
        own = {"name": name, "options": chosen(make, options), "code": code_fingerprint(name, make)}
        return label, {"channel": link, "identity": own}
    if options:
        raise ValueError(f'{name!r} takes no further keys; found {next(iter(options))!r}. As a table: kind = "..."')
    link = channel_of(name)
    return label, {"channel": link, "identity": _identity(link)}


def learner(given: Any, block: dict[str, Any]) -> Entry:
    """who: name, options that differ from the defaults, fingerprint of the code if it is one's own; seeded.

    constants: the numbers and words that a new learner holds, so that another default is another learner.
    """
    if "episodes" not in block:
        raise ValueError(f"a learner needs a number of episodes, and {block['where']['episodes']} is missing")
    name, options, label = _taken_apart(given, "DelayedUCBVI")
    made = learner_of(name, **options)  # refused here, or not at all
    own = name not in (*learner_names(), "default")
    make = learner_maker(name)
    who: dict[str, Any] = {"name": name, "options": chosen(make, options)}
    who["constants"] = {k: v for k, v in sorted(vars(made).items()) if isinstance(v, bool | int | float | str)}
    if own:
        who["code"] = code_fingerprint(name, make)
    canonical(who)  # what cannot be written down is refused here
    return label, {"who": who, "seeded": True}


def task(given: Any, block: dict[str, Any]) -> Entry:
    """The same for a task."""
    name, options, label = _taken_apart(given, "gap")
    options = tasks.with_new_names(name, options)
    does = tasks.task_of(name)
    if "episodes" in block and tasks.takes(does, "episodes"):
        options.setdefault("episodes", block["episodes"])
    seeded = tasks.takes(does, "seed")
    nothing = functools.wraps(does)(lambda *args, **options: None)  # the task's signature, but nothing is done
    called(name, nothing, (None,), options | ({"seed": 0} if seeded else {}))
    who: dict[str, Any] = {"name": name, "options": chosen(does, options)}
    if name not in tasks.TASKS:
        who["code"] = code_fingerprint(name, does)
    elif name == "evaluate" and (policy := options.get("policy")) is not None:
        make = policy_maker(policy)
        if ":" in policy:
            who["code"] = code_fingerprint(policy, make)
    canonical(who)
    return label, {"who": who, "seeded": seeded}


def _taken_apart(given: Any, example: str) -> tuple[Any, dict[str, Any], str]:
    """(name or object, options, label) of an entry given as a word, a table with a name, or an object."""
    if isinstance(given, Mapping):
        options = dict(given)
        label = options.pop("label", None)
        if "name" not in options:
            raise ValueError(f'a table needs a name, e.g. {{name = "{example}"}}; found the keys {sorted(options)}')
        name = options.pop("name")
    else:
        name, options, label = given, {}, None
    if isinstance(name, type) or (callable(name) and hasattr(name, "__qualname__")):
        name = _importable(name)
    elif not isinstance(name, str | TabularMDP | Channel):
        raise ValueError(f"{name!r} is not a name; expected a word such as {example!r}, or a table with a name")
    return name, options, _word(label) or _call(name, options)


def _word(label: Any) -> str | None:
    """A label, if there is one."""
    if label is not None and not isinstance(label, str):
        raise ValueError(f"label is {label!r}, expected a word")
    return label


def _call(name: Any, options: Mapping[str, Any]) -> str:
    """What something is called that has no label."""
    given = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{name}({given})" if given else str(name)


def _importable(what: Any) -> str:
    """`module:name` of a class or function, or its name if it is one of this package's learners."""
    name: str = what.__name__
    if getattr(learners, name, None) is what:
        return name
    if what.__module__ == "__main__" or "<" in what.__qualname__ or "." in what.__qualname__:
        raise ValueError(
            f"{what.__qualname__} cannot be found by another process; put it in a module of its own and give it as "
            f'"module:{name}"'
        )
    return f"{what.__module__}:{what.__qualname__}"


def _identity(channel: Channel) -> dict[str, Any]:
    """The channel as data; its control period is for people and decides no number."""
    return {key: value for key, value in channel_data(channel).items() if key != "period_ms"}
