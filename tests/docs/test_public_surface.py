"""Every public name says what it takes and returns, with an example that is run; results can be drawn and written as data.

Public are the names of `oldlight` and of its documented packages.
"""

from __future__ import annotations

import doctest
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from repeats import is_thorough

PACKAGES = (
    "planning",
    "planning.heuristics",
    "learners",
    "instances",
    "paper",
    "control",
    "envs",
    "traces",
    "testbed",
    "studies",
)
NOT_RESULTS = {  # returned, but given to other functions again
    "TabularMDP",
    "TablePolicy",
    "BlackoutPolicy",
    "FunctionPolicy",
    "EmpiricalDelay",
    "Information",
    "MarkovPolicy",
    "Study",
}


@cache
def public() -> dict[str, Any]:
    """module.name -> class or function, each once, by where it is defined."""
    found = {}
    for package in ("oldlight", *(f"oldlight.{name}" for name in PACKAGES)):
        module = import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("oldlight"):
                found[f"{thing.__module__.removeprefix('oldlight.')}.{thing.__name__}"] = thing
    return found


def sections(thing: Any) -> set[str]:
    """The numpydoc sections of a docstring."""
    return set(re.findall(r"^(\w+(?: \w+)?)\n-{3,}$", inspect.getdoc(thing) or "", re.MULTILINE))


def takes_arguments(thing: Any) -> bool:
    if inspect.isclass(thing) and (issubclass(thing, BaseException) or getattr(thing, "_is_protocol", False)):
        return False
    return bool(inspect.signature(thing).parameters)


def returns_something(thing: Any) -> bool:
    return inspect.isfunction(thing) and thing.__annotations__["return"] != "None"


def results() -> set[str]:
    """The classes that public functions return and that are no input of others."""
    names = {cls.__name__ for cls in public().values() if inspect.isclass(cls)}
    functions = [f for f in public().values() if inspect.isfunction(f)]
    returned = {name for f in functions for name in str(f.__annotations__["return"]).split(" | ")}
    return (names & returned) - NOT_RESULTS


def faults(thing: Any) -> Iterator[str]:
    has = sections(thing)
    if takes_arguments(thing) and "Parameters" not in has:
        yield "Parameters"
    if returns_something(thing) and "Returns" not in has:
        yield "Returns"
    if "Examples" not in has or ">>> " not in (inspect.getdoc(thing) or ""):
        yield "Examples"
    if inspect.isclass(thing) and thing.__name__ in results():
        yield from (name for name in ("plot", "to_dict") if not hasattr(thing, name))


def test_every_public_name_is_documented() -> None:
    assert len(public()) > 130
    found = {name: " ".join(missing) for name, thing in public().items() if (missing := list(faults(thing)))}
    assert found == {}, "documented incompletely"


def test_the_first_line_is_a_sentence_of_its_own() -> None:
    """Lists and menus show it alone."""
    texts = {name: (inspect.getdoc(thing) or "").split("\n") for name, thing in public().items()}
    cut = [name for name, (first, *rest) in texts.items() if not first.endswith((".", "?")) or (rest and rest[0])]
    assert cut == []


def test_every_public_method_has_a_docstring() -> None:
    """Methods and properties that a public class defines itself."""
    bare = []
    for name, thing in public().items():
        if inspect.isclass(thing):
            for key, value in vars(thing).items():
                method = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
                if not key.startswith("_") and inspect.isfunction(method) and not inspect.getdoc(getattr(thing, key)):
                    bare.append(f"{name}.{key}")
    assert bare == []


def test_each_parameter_is_described() -> None:
    """The names in a Parameters section are those of the signature, in its order."""
    wrong = {}
    for name, thing in public().items():
        text = re.search(
            r"^Parameters\n-+\n(.*?)(?=^\w+(?: \w+)?\n-{3,}$|\Z)", inspect.getdoc(thing) or "", re.M | re.S
        )
        if text is None:
            continue
        listed = [
            n.strip(" *")
            for line in re.findall(r"^(\S.*)$", text[1], re.M)
            for n in line.partition(" : ")[0].split(",")
        ]
        made_by_new = {"__new__", "__init__"} <= vars(thing).keys()
        parameters = inspect.signature(thing.__init__ if made_by_new else thing).parameters
        real = [n for n in parameters if n != "self" and not n.startswith("_") and n not in OLD.get(name, ())]
        if listed != real:
            wrong[name] = (listed, real)
    assert wrong == {}


def test_seeds_follow_one_rule() -> None:
    """An int, SeedSequence or Generator, 0 by default; None only where nothing is drawn without a seed. (`reset` is Gymnasium's.)"""
    functions = {name: thing for name, thing in public().items() if inspect.isfunction(thing)}
    found = {name: inspect.signature(f).parameters.get("seed") for name, f in functions.items()}
    seeds = {name: (str(p.annotation), p.default) for name, p in found.items() if p is not None}
    assert len(seeds) > 10
    assert seeds.pop("instances.hard_tree.hard_tree") == ("Seed | None", None)
    assert {name: how for name, how in seeds.items() if how != ("Seed", 0)} == {}


OPTIONS = {  # how something is computed, not what it is about
    "seed", "tolerance", "seconds", "max_bytes", "max_states", "scratch", "progress", "workers", "checkpoint", "checkpoint_every", "failure",
    "every", "evaluate", "pooled", "planning", "bonus", "clip", "label", "labels", "engine", "in_order", "render_mode", "trust", "import_code",
}  # fmt: skip


def test_options_are_given_by_name() -> None:
    """What a call is about may be given by position; how it is done, and every switch, by name. Fields of results are no options."""
    wrong = []
    for name, thing in public().items():
        if inspect.isclass(thing) and (thing.__name__ in results() or hasattr(thing, "__dataclass_fields__")):
            members = []
        else:
            members = [(name, thing)]
        if inspect.isclass(thing):
            members += [(f"{name}.{key}", getattr(thing, key)) for key, value in vars(thing).items()
                        if not key.startswith("_") and isinstance(value, FunctionType | classmethod | staticmethod)]  # fmt: skip
        for who, call in members:
            for parameter in inspect.signature(call).parameters.values() if takes_arguments(call) else ():
                positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
                optional = positional and parameter.default is not parameter.empty
                if optional and (parameter.name in OPTIONS or isinstance(parameter.default, bool)):
                    wrong.append(f"{who}({parameter.name})")
    assert wrong == []


OLD = {
    "model.channels.losses.Loss": ("unnamed",),
}  # kept for those who still use it


@cache
def documented_modules() -> list[str]:
    """Modules whose text has examples."""
    root = Path(ol.__file__).parent
    found = [m.name for m in pkgutil.walk_packages([str(root)], "oldlight.")]
    files = {name: root.parent.joinpath(*name.split(".")) for name in ["oldlight", *found]}
    texts = {name: (f / "__init__.py" if f.is_dir() else f.with_suffix(".py")) for name, f in files.items()}
    return [name for name, path in texts.items() if ">>> " in path.read_text(encoding="utf-8")]


def marked(name: str) -> Any:
    """Some examples start processes."""
    starts = name.startswith(("oldlight.testbed", "oldlight.studies"))
    return pytest.param(name, marks=[pytest.mark.subprocess] if starts else [])


@pytest.mark.parametrize("name", [marked(name) for name in documented_modules()])
def test_examples(name: str, request: pytest.FixtureRequest) -> None:
    """Those of studies do their jobs in this process, but for those of the runner, and for all if thorough."""
    if name.startswith("oldlight.studies") and name != "oldlight.studies.runner" and not is_thorough():
        request.getfixturevalue("inline")
    if name.startswith("oldlight.deep"):
        pytest.importorskip("stable_baselines3")
    module = import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output: list[str] = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
    assert runner.tries > 0


MDP = ol.instances.dichotomy(1)
LATE = ol.ImpairedMDP(MDP, "constant:2")
RECORDING = ol.Trace([15.0] * 300, sent_ms=20.0 * np.arange(300))
MADE: dict[str, Callable[[], Any]] = {
    "Solution": lambda: ol.solve(LATE),
    "Solution of a ladder": lambda: ol.solve(
        ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4), "constant:3"), depth=1
    ),
    "Gap": lambda: ol.gap(LATE),
    "Sweep": lambda: ol.sweep(MDP, delays=[0, 1, 2]),
    "Sweep of channels": lambda: ol.sweep(MDP, channels=["constant:1", ol.Loss(rate=0.5)]),
    "Requirement": lambda: ol.requirement(MDP, target="90%", over="delay"),
    "Requirement that none meets": lambda: ol.requirement(MDP, target=2.0, over="sensor_period"),
    "Frontier": lambda: ol.requirement(MDP, target="90%", over=("delay", "loss"), grid=3),
    "Sensitivity": lambda: ol.sensitivity(LATE),
    "ChannelComparison": lambda: ol.compare_channels(MDP, {"wired": "constant:1", "radio": RECORDING}, episodes=50),
    "Evaluation": lambda: ol.evaluate(LATE, ol.solve(LATE).policy),
    "Simulation": lambda: ol.simulate(LATE, ol.solve(LATE).policy, 100, record=True),
    "Truncated": lambda: ol.truncate(ol.ImpairedMDP(MDP, ol.GeometricDelay(0.5)), 0.5),
    "Claim": lambda: ol.paper.proposition5_short(1),
    "StudyStatus": lambda: ol.studies.StudyStatus("s", "runs", 3, 1, 1, failed=(ol.studies.Failure(*"abcdef"),)),
    "TestbedResult": lambda: ol.testbed.TestbedResult(
        np.ones(3), ol.Evaluation(1.0, True, 0.0, "walk forward", 5), "constant:1", None, 0.1, 0
    ),
    "Certificate": lambda: ol.learners.learn_offline(LATE, []),
    "LearningRun": lambda: ol.learn(LATE, ol.learners.UniformRandom(), 5),
    "Replay": lambda: ol.replay(LATE, ol.solve(LATE).policy, RECORDING, episodes=50),
    "Comparison": lambda: ol.traces.compare_models(RECORDING, MDP, models=["packets"], episodes=50),
}
made = cache(lambda name: MADE[name]())  # each result once, for all tests that only look at it


TABLES = {
    "Solution": "value ",
    "Gap": "gap ",
    "Sweep": "delay  full",
    "Evaluation": "value ",
    "Requirement": "constant delay ",
    "Sensitivity": "one more step of delay",
    "ChannelComparison": "is the best link",
    "Frontier": "certificate",
    "Simulation": "mean return ",
    "LearningRun": "regret ",
    "Comparison": "predicted ",
}


@pytest.mark.parametrize("name", MADE)
def test_results_are_drawn_and_written_as_plain_data(name: str) -> None:
    from matplotlib.figure import Figure

    result = made(name)
    axes = Figure().subplots()
    assert result.plot(axes) is axes
    assert axes.has_data()
    assert result.plot().figure is not axes.figure
    data = result.to_dict()
    assert data
    assert json.dumps(json.loads(json.dumps(data))) == json.dumps(data)  # plain: nothing is changed on the way


SMALL = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")
OBJECTS: list[Callable[[], Any]] = [
    lambda: SMALL,
    lambda: SMALL.mdp,
    lambda: ol.Layout.of(SMALL),
    lambda: ol.gap(SMALL).proposition4,
    lambda: ol.Controller(SMALL, ol.solve(SMALL).policy),
    lambda: ol.learners.Setting.of(SMALL, 10, 0.1, ol.Layout.of(SMALL)),
    lambda: ol.learners.Episode(np.zeros(100, int), np.zeros(100, int), np.arange(100), np.zeros(100), 0),
    lambda: ol.FunctionPolicy(len, 2),
    lambda: RECORDING,
    lambda: RECORDING.fit(20),
    lambda: ol.BeliefPolicy(SMALL, max),
    lambda: ol.ImpairedMDP(SMALL.mdp, ol.PacketChannel([0.5, 0.5])).automaton,
    *(partial(made, name) for name in MADE),
]


@pytest.mark.parametrize("make", OBJECTS)
def test_repr_is_one_short_line_that_names_the_class(make: Callable[[], Any]) -> None:
    thing = make()
    assert repr(thing).startswith(type(thing).__name__ + "(")
    assert "\n" not in repr(thing)
    assert len(repr(thing)) < 300


def test_all_results_are_tried() -> None:
    assert {name.partition(" ")[0] for name in MADE} | {"Comparison", "Replay", "Trace"} == results()


@pytest.mark.parametrize("name", TABLES)
def test_print_shows_a_small_table(name: str) -> None:
    shown = str(made(name))
    assert TABLES[name] in shown
    assert len(shown.splitlines()) > 3
    assert "\n" not in repr(made(name))


@pytest.mark.parametrize(
    ("old", "new"),
    [("Gap.value", "gap"), ("Sweep.values", "gap"), ("LearningRun.gaps", "shortfalls")],
)
def test_old_names_of_results_warn(old: str, new: str) -> None:
    kind, _, name = old.partition(".")
    result = made(kind)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {kind}.{new}"):
        assert np.array_equal(getattr(result, name), getattr(result, new))
