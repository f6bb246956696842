"""`oldlight compile`: every compiled loop, compiled now and kept, so that no first call waits for the compiler.

numba compiles a loop when it is called for the first time with arguments of these types, and keeps it on disk (`oldlight.kernels.cache`). A *part* is one of
the things that people do, on a process so small that only compiling takes time. Parts run in worker processes, one part at a time in each; loops that
several parts need come first, so that few are compiled twice.

Python's own bytecode of the package comes before them. pip makes it of a wheel, but not of sources that are used in place, and with PYTHONDONTWRITEBYTECODE
nobody does: then every process makes it again, a sixth of a first plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from oldlight.cli.shared import app, tell


def _chain(**options: Any) -> Any:
    import oldlight as ol

    return ol.instances.sensing_chain(0.8, n_states=4, **{"horizon": 4} | options)


def _delay() -> None:
    """Plans and values under delay."""
    import oldlight as ol

    for channel, start in (("constant:2", "warm"), ("bernoulli:0.5", None)):
        problem = ol.ImpairedMDP(_chain(), channel, start=start)  # type: ignore[arg-type]
        plan = ol.solve(problem, progress=False)
        ol.evaluate(problem, plan.policy)


def _loss() -> None:
    """Plans and values under loss."""
    import oldlight as ol

    for channel in ("loss:0.5", "constant:1+loss:0.5"):
        problem = ol.ImpairedMDP(_chain(), channel)
        ol.evaluate(problem, ol.solve(problem, progress=False).policy)
        ol.solve(problem, tolerance=100.0, progress=False)  # the first tables alone, whose actions are walked


def _links() -> None:
    """Plans behind links without a delay law."""
    import oldlight as ol

    for channel in ("packets:0=0.5,1=0.5", ol.PacketChannel([0.5, 0.5], lost=0.2), "loss:0.5"):
        problem = ol.ImpairedMDP(_chain(), channel)
        for tolerance in (0.0, 0.01):  # every corner is settled, or the start alone is searched
            plan = ol.solve(problem, depth=1, tolerance=tolerance, progress=False)
            ol.evaluate(problem, plan.policy)
            ol.simulate(problem, plan.policy, 10)


def _endless() -> None:
    """Plans for ever."""
    import oldlight as ol

    chain = _chain()
    plant = ol.TabularMDP(chain.transitions[0], chain.rewards[0], horizon=None, discount=0.9)
    for channel in ("constant:1", "loss:0.5"):
        problem = ol.ImpairedMDP(plant, channel)
        plan = ol.solve(problem, tolerance=0.1, progress=False)
        ol.simulate(problem, plan.policy, 10, steps=5)


def _simulation() -> None:
    """Simulated episodes."""
    import oldlight as ol
    from oldlight.planning.heuristics import full_information

    for channel in ("constant:2", "bernoulli:0.5", "loss:0.5"):
        problem = ol.ImpairedMDP(_chain(), channel)
        ol.simulate(problem, ol.solve(problem, progress=False).policy, 10, threads=1)
        ol.simulate(problem, full_information(problem), 10, threads=1)


def _learn(name: str, channel: str = "constant:1", **options: Any) -> None:
    """A learner by its name."""
    import oldlight as ol

    learner = getattr(ol.learners, name)(**options)
    ol.learn(ol.ImpairedMDP(_chain(), channel), learner, 4, progress=False)


def _loss_learners() -> None:
    """Algorithms 2 and 3, and posterior sampling, where observations are lost."""
    for name in ("LossUCBVI", "OptimisticPlanning", "PosteriorSampling"):
        _learn(name, "loss:0.5")


def _memoryless() -> None:
    """The baselines that act on the newest observation."""
    for name in ("MemorylessUCBVI", "MemorylessQLearning", "UniformRandom"):
        _learn(name)


def _one_by_one() -> None:
    """Algorithm 1 by its three methods, as in the Gymnasium environments."""
    import oldlight as ol

    learner = ol.learners.DelayedUCBVI()
    learner.see = lambda episode: ol.learners.DelayedUCBVI.see(learner, episode)  # type: ignore[method-assign]
    ol.learn(ol.ImpairedMDP(_chain(), "constant:1"), learner, 4, progress=False)


def _link_learner() -> None:
    """The default learner, behind a delay and behind packets."""
    import oldlight as ol

    learner = ol.learners.default()
    learner.see = lambda episode: ol.learners.LinkLearner.see(learner, episode)
    for each, channel in (
        (ol.learners.default(), "constant:1"),
        (learner, "constant:1"),
        (ol.learners.default(), "packets:0=0.5,1=0.5"),
        (ol.learners.default(law="estimated"), "packets:0=0.5,1=0.5"),
    ):
        ol.learn(ol.ImpairedMDP(_chain(), channel), each, 4, progress=False)


def _environments() -> None:
    """The native vector environment."""
    import oldlight as ol

    vector = ol.envs.TabularVectorEnv(_chain(), channel="constant:1", num_envs=2)
    vector.reset(seed=0)
    vector.step(vector.action_space.sample())
    vector.close()


PARTS: dict[str, Callable[[], None]] = {
    "delay": _delay,
    "loss": _loss,
    "delayed-ucbvi": partial(_learn, "DelayedUCBVI"),
    "links": _links,
    "simulation": _simulation,
    "one-by-one": _one_by_one,
    "endless": _endless,
    "greedy": partial(_learn, "DelayedUCBVI", planning="greedy"),
    "augmented-ucbvi": partial(_learn, "AugmentedUCBVI"),
    "augmented-q-learning": partial(_learn, "AugmentedQLearning"),
    "posterior-sampling": partial(_learn, "PosteriorSampling"),
    "memoryless": _memoryless,
    "link-learner": _link_learner,
    "loss-learners": _loss_learners,
    "environments": _environments,
}


def compile_bytecode() -> bool:
    """Python's bytecode of this package, where it is missing or old; False where some of it cannot be written."""
    import compileall

    return bool(compileall.compile_dir(Path(__file__).parent.parent, quiet=2))


def compile_part(name: str, report: Callable[[Any], None] | None = None) -> float:
    """Do one part, in this process; the seconds that it took."""
    began = time.perf_counter()
    PARTS[name]()
    return time.perf_counter() - began


def compile_parts(names: list[str], workers: int, progress: Any = None) -> dict[str, float]:
    """Do parts in worker processes; the seconds that each took."""
    from oldlight.progress import progress_bar
    from oldlight.workers import Pool

    took: dict[str, float] = {}
    with progress_bar(progress, "compiling") as callback, Pool(compile_part, min(workers, len(names))) as pool:
        for kind, k, what in pool.run(names):
            if kind == "failed":
                raise what
            if kind == "died":
                raise RuntimeError(f"compiling {names[k]}: {what}")
            if kind == "done":
                took[names[k]] = what
                if callback is not None:
                    callback(len(took), len(names))
    return took


@app.command("compile")
def compile_loops(
    parts: Annotated[list[str] | None, typer.Argument(metavar="[PART]...", help=f"Of {', '.join(PARTS)}; all if none is given.", show_default=False)] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; all cores if not given.")] = None,
) -> None:  # fmt: skip
    """Compile every loop now, and Python's bytecode of the package, and keep it: no first plan, first learner or first simulation waits for a compiler afterwards.

    Compiled code is kept next to the package, or in NUMBA_CACHE_DIR if that is set, until the package or numba changes. What is there already is not compiled
    again.

    Examples:
    [dim]oldlight compile[/dim]
    [dim]oldlight compile delay simulation[/dim]
    """
    from oldlight.checks import one_of
    from oldlight.kernels.delay import sweep
    from oldlight.machine import thread_count

    names = list(dict.fromkeys(parts or PARTS))
    for name in names:
        one_of("PART", name, tuple(PARTS))
    began = time.perf_counter()
    compile_bytecode()
    took = compile_parts(names, workers or thread_count(), progress=True)
    folder = getattr(getattr(sweep, "_cache", None), "cache_path", None)
    where = (
        "nothing can be kept: set NUMBA_CACHE_DIR to a folder that can be written"
        if folder is None
        else f"kept in {folder}"
    )
    n = len(took)
    tell(f"{n} part{'s' * (n != 1)} compiled in {time.perf_counter() - began:.0f} s; {where}")
