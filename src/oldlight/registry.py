"""Names of channels, processes, learners and policies: what a command line, a file or a Gymnasium keyword can hold.

**A channel** (`channel_of`): as text or as data, see `oldlight.model.channels.text`.

**A process** (`mdp_of`): the name of an instance with its arguments, `sensing_chain:0.8`, `sensing_chain:p=0.8,horizon=20` or
`{"name": "sensing_chain", "p": 0.8}`;
a file that `TabularMDP.save` wrote; a Gymnasium environment with a table, `gym:FrozenLake-v1@20` (20 steps); a file of Cassandra's or PRISM's
(`maze.pomdp@20`, `ring.tra@20`), a table of transitions or a log of episodes in CSV (`plant.csv@20`); `module:function`.

**A learner** (`learner_of`): a name of `oldlight.learners` with its options, or `module:Class`.

**A policy** (`policy_of`): a name of `POLICIES`, `module:function` of a problem, or a file that a policy's `save` wrote.

`oldlight list` prints all names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from oldlight import files, instances
from oldlight.checks import nearest as nearest
from oldlight.checks import renamed
from oldlight.model.channels.text import CHANNELS as CHANNELS
from oldlight.model.channels.text import FORMS as FORMS
from oldlight.model.channels.text import IN_ORDER as IN_ORDER
from oldlight.model.channels.text import KINDS as KINDS
from oldlight.model.channels.text import MEANING as MEANING
from oldlight.model.channels.text import channel_data as channel_data
from oldlight.model.channels.text import channel_of as channel_of
from oldlight.model.channels.text import names_code as names_code
from oldlight.model.channels.text import own_channel as own_channel
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import BlackoutPolicy, FunctionPolicy, MarkovPolicy, Policy, TablePolicy
from oldlight.model.policy_files import load_policy
from oldlight.model.problem import ImpairedMDP
from oldlight.own_code import called as called
from oldlight.own_code import permit, resolve

INSTANCES: dict[str, Callable[..., TabularMDP]] = {
    name: getattr(instances, name) for name in ("center_chain", "sensing_chain", "dichotomy", "hard_tree", "forest", "inventory", "icu_sepsis")
}  # fmt: skip


def mdp_of(given: str | Mapping[str, Any] | TabularMDP) -> TabularMDP:
    """The process that a name with arguments, a file, `gym:ID@steps` or `module:function` stands for."""
    if isinstance(given, TabularMDP):
        return given
    if isinstance(given, Mapping):
        arguments = dict(given)
        if "name" not in arguments:
            raise ValueError(f"a process as data needs a name{nearest('', INSTANCES)}")
        return _made(str(arguments.pop("name")), (), arguments)
    if not isinstance(given, str):
        raise TypeError(
            f"a process is given by name ({', '.join(INSTANCES)}), as data or as a TabularMDP; not {given!r}"
        )
    if given.startswith("gym:"):
        name, at, steps = given.removeprefix("gym:").partition("@")
        if not at or not steps.isdigit():
            raise ValueError(f"process {given!r}: expected gym:ID@steps, e.g. gym:FrozenLake-v1@20")
        permit_environment(name)
        return TabularMDP.from_gymnasium(name, int(steps))
    file, at, steps = given.rpartition("@")
    suffix = Path(file if at else given).suffix.lower()
    if suffix in READERS:
        if not at or not steps.isdigit():
            raise ValueError(f"process {given!r}: expected file@steps, e.g. {given.rstrip('@')}@20")
        return READERS[suffix](file, int(steps))
    path = Path(given)
    if path.suffix in (".toml", ".npz") or path.is_file():
        return TabularMDP.load(path)
    name, _, rest = given.partition(":")
    if name in INSTANCES:
        items = [x.partition("=") for x in rest.split(",")] if rest else []
        named = {key.strip(): _argument(given, value) for key, equals, value in items if equals}
        return _made(name, tuple(_argument(given, key) for key, equals, _ in items if not equals), named)
    return _made(given, (), {})


def _from_csv(path: str, steps: int) -> TabularMDP:
    """A table of transitions (s, a, s', p, r), or a log if it has a column of episodes."""
    header = files.read_text(path).partition("\n")[0]
    if "episode" in [name.strip() for name in header.split(",")]:
        return TabularMDP.from_log(path, horizon=steps)
    return TabularMDP.from_csv(path, horizon=steps)


READERS: dict[str, Callable[[str, int], TabularMDP]] = {
    ".mdp": lambda path, steps: TabularMDP.from_cassandra(path, horizon=steps),
    ".pomdp": lambda path, steps: TabularMDP.from_cassandra(path, horizon=steps),
    ".tra": lambda path, steps: TabularMDP.from_prism(path, horizon=steps),
    ".csv": _from_csv,
}


def permit_environment(id: str) -> None:
    """Gymnasium imports the module of an environment whose id is `module:ID`; see `permit`."""
    if ":" in id:
        permit(id)


def _argument(given: str, item: str) -> float | int:
    try:
        value = float(item)
    except ValueError:
        raise ValueError(f"process {given!r}: {item!r} is not a number; e.g. sensing_chain:0.8") from None
    return int(value) if item.strip().lstrip("-").isdigit() else value


def _made(name: str, positional: tuple[Any, ...], arguments: Mapping[str, Any]) -> TabularMDP:
    make = INSTANCES.get(name) or resolve(name, f"unknown process {name!r}{nearest(name, INSTANCES)}", (TabularMDP,))
    mdp = called(name, make, positional, arguments)
    if not isinstance(mdp, TabularMDP):
        raise TypeError(f"{name} returned something of type {type(mdp).__name__}, expected a TabularMDP")
    return mdp


def learner_names() -> list[str]:
    """The learners of `oldlight.learners`."""
    from oldlight import learners

    return [name for name in learners.__all__ if hasattr(getattr(learners, name), "see") and name != "Learner"]


def learner_maker(name: str) -> Callable[..., Any]:
    """What makes the learner of this name: a class of `oldlight.learners`, "default", or what `module:name` stands for."""
    from oldlight import learners

    known: dict[str, Any] = {name: getattr(learners, name) for name in learner_names()}
    bases = (learners.Learner, *known.values())
    known["default"] = learners.default
    return known.get(name) or resolve(name, f"unknown learner {name!r}{nearest(name, known)}", bases)


def learner_of(name: str, **options: Any) -> Any:
    """A new learner: a name of `oldlight.learners` or `module:Class`, with its options."""
    learner = called(name, learner_maker(name), (), options)
    missing = [method for method in ("start", "see") if not hasattr(learner, method)]
    if missing:
        raise TypeError(f"{name} is not a learner: it has no {missing[0]}(); see oldlight.learners.base")
    return learner


POLICIES = ("best", "uniform", "most_likely", "qmdp", "memoryless", "open_loop", "full_information")


def policy_maker(name: str) -> Callable[[ImpairedMDP], Any]:
    """What makes the policy of this name for a problem: one of `POLICIES`, or what `module:function` stands for."""
    from oldlight.planning import heuristics

    own = {"best": best, "uniform": uniform}
    if name.replace("-", "_") in POLICIES:
        if "-" in name:
            renamed(f"the policy {name}", name.replace("-", "_"))
            name = name.replace("-", "_")
        return own.get(name) or getattr(heuristics, name)
    bases = (Policy, FunctionPolicy, TablePolicy, BlackoutPolicy, MarkovPolicy)
    return resolve(name, f"unknown policy {name!r}{nearest(name, POLICIES)}", bases)


def policy_of(problem: ImpairedMDP, name: str) -> Any:
    """The policy for `problem` that a name, a file or `module:function` stands for."""
    if name.replace("-", "_") in POLICIES:
        return policy_maker(name)(problem)
    if Path(name).exists():
        return load_policy(name)
    if ":" not in name:
        raise FileNotFoundError(f"{name!r} is neither a file nor a known policy{nearest(name, POLICIES)}")
    return policy_maker(name)(problem)


def best(problem: ImpairedMDP) -> Policy:
    """The best policy that can be executed, planned exactly."""
    from oldlight.planning import solve

    return solve(problem).policy


def uniform(problem: ImpairedMDP) -> FunctionPolicy:
    """Every action with the same probability."""
    A = problem.n_actions
    return FunctionPolicy(partial(_always, (1 / A,) * A), A)


def _always(probabilities: tuple[float, ...], info: Any) -> tuple[float, ...]:
    return probabilities
