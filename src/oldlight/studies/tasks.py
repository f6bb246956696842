"""What a study can do with a problem besides learning on it.

A task is a function of a problem, with options of its own, that returns a dictionary of scalars (numbers, truth values, words)
and 1-D arrays:

    @oldlight.registered
    def my_task(problem, seed, *, episodes=1000): ...    # in mymodule.py; in a study: "mymodule:my_task"

One that takes `seed` is run once per seed of the study; one that does not draws nothing and is run once. One that takes `episodes`
is given those of the study, unless it has its own. Names that are `seconds` or end in `_seconds` are times: they are not compared
when two runs should agree. A task may have a function `refuse` of the problem and the same options, without the seed:

    my_task.refuse = check                               # raises ValueError; asked before any work, once for each problem

    gap        what the impairment costs: full, impaired, gap; with proposition4=true also e1[h], e2[h] and the bound
    solve      the best executable plan: value, lower, upper, exact, information_states, seconds
    evaluate   what a policy is worth: "memoryless", "most_likely", "qmdp", "open_loop", ... (`oldlight list`), or `module:function` of a
               problem
    simulate   the paper's Monte-Carlo protocol (Section 6): the plan of somebody who sees everything and the best executable plan
               are each played for `episodes` episodes; their mean returns and the difference, with the exact values beside. Seeds
               are the repetitions (the paper: 5 of 10,000). draws="independent" plays the two with separate draws, "paired" with
               the same ones: then the two differ only where they act differently.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from oldlight import checks
from oldlight.model.problem import ImpairedMDP
from oldlight.own_code import resolve
from oldlight.registry import nearest, policy_maker

Task = Callable[..., Mapping[str, Any]]


def gap(
    problem: ImpairedMDP,
    *,
    tolerance: float = 0.0,
    depth: int | None = None,
    max_bytes: int | None = None,
    scratch: str | None = None,
    proposition4: bool = False,
) -> dict[str, Any]:
    from oldlight.planning.gap import gap as price

    found = price(problem, tolerance=tolerance, depth=depth, max_bytes=max_bytes, scratch=scratch, progress=False)
    best = found.solution
    out: dict[str, Any] = {"full": found.full, "impaired": found.impaired, "gap": found.gap}
    out |= {"lower": best.lower, "upper": best.upper, "exact": best.exact, "seconds": best.work.seconds}
    if proposition4:
        out |= {"e1": found.e1, "e2": found.e2, "bound": found.bound}
    return out


def solve(
    problem: ImpairedMDP,
    *,
    tolerance: float = 0.0,
    depth: int | None = None,
    max_bytes: int | None = None,
    scratch: str | None = None,
) -> dict[str, Any]:
    from oldlight.planning import solve as plan

    best = plan(problem, tolerance=tolerance, depth=depth, max_bytes=max_bytes, scratch=scratch, progress=False)
    out: dict[str, Any] = {name: getattr(best, name) for name in ("value", "lower", "upper", "exact")}
    out |= {"information_states": best.work.information_states, "seconds": best.work.seconds}
    if best.value_by_start is not None:
        out["value_by_start"] = np.asarray(best.value_by_start)
    return out


def evaluate(problem: ImpairedMDP, *, policy: str = "most_likely") -> dict[str, Any]:
    from oldlight.planning.evaluation import evaluate as value_of

    found = value_of(problem, policy_maker(policy)(problem))
    return {"value": found.value, "exact": found.exact, "half_width": found.half_width}


def simulate(
    problem: ImpairedMDP, seed: int, *, episodes: int = 10_000, draws: Literal["independent", "paired"] = "independent"
) -> dict[str, Any]:
    from oldlight.planning.gap import gap as price
    from oldlight.simulation import simulate as play

    checks.one_of("draws", draws, DRAWS)
    exact = price(problem)
    other = seed if draws == "paired" else int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    full = play(problem, exact.full_policy, episodes, seed=other)
    best = play(problem, exact.solution.policy, episodes, seed=seed)
    out: dict[str, Any] = {"full": full.mean, "impaired": best.mean, "gap": full.mean - best.mean}
    out |= {"full_half_width": full.half_width, "impaired_half_width": best.half_width}
    out |= {"exact_full": exact.full, "exact_impaired": exact.impaired, "exact_gap": exact.gap}
    return out


TASKS: dict[str, Task] = {"gap": gap, "solve": solve, "evaluate": evaluate, "simulate": simulate}
DRAWS = ("independent", "paired")
RENAMED = {"simulate": {"luck": "draws"}}  # options of before: renamed, with a warning


def task_of(name: str) -> Task:
    """A task by its name, or one's own as `module:function`."""
    return TASKS.get(name) or resolve(name, f"unknown task {name!r}{nearest(name, TASKS)}")


def with_new_names(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a task, those by an old name under the new one, with a warning."""
    new = RENAMED.get(name, {})
    for old in new.keys() & options.keys():
        checks.renamed(f"{old} of the task {name}", new[old])
    return {new.get(key, key): value for key, value in options.items()}


def takes(task: Task, option: str) -> bool:
    """Does the task have an option of this name?"""
    return option in inspect.signature(task).parameters


def refuse_early(name: str, problem: Any, options: Mapping[str, Any]) -> None:
    """Refuse, before any work is done, what a task would refuse later; one's own says so by its `refuse`."""
    refuse = getattr(task_of(name), "refuse", None)
    if refuse is not None:
        refuse(problem, **options)
    if name == "simulate":
        checks.one_of("draws", options.get("draws", "independent"), DRAWS)
        checks.whole("episodes", options.get("episodes", 1), least=1)
    if name in ("gap", "solve"):
        from oldlight.planning import checked_options

        checked_options(problem, options.get("tolerance", 0.0), options.get("depth"), options.get("max_bytes"))
    if name in ("gap", "solve", "simulate") and options.get("depth") is None:
        refuse_unplannable(problem, options.get("max_bytes"), options.get("scratch"))


def refuse_unplannable(problem: ImpairedMDP, max_bytes: int | None = None, scratch: str | None = None) -> None:
    """Refuse what cannot be planned exactly, or will not fit."""
    from oldlight.model.information import settled_late
    from oldlight.planning.delay import checked_layout
    from oldlight.planning.heuristics import certain
    from oldlight.planning.link_solution import planned_by_automaton
    from oldlight.planning.scratch import scratch_folder

    folder = None if scratch is None else scratch_folder(scratch)
    if planned_by_automaton(problem):
        _ = problem.automaton  # refused where the link depends on the process
    elif problem.arrival_probability is not None:
        settled_late(problem)
    elif not certain(problem):
        checked_layout(problem, max_bytes, scratch=folder)
