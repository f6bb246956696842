"""A plan tried on a real link: a plant, a relay and a controller as three processes that talk UDP on loopback.

    result = run_testbed(problem, solve(problem).policy, episodes=500, seed=1)
    print(result)              # the mean return with its confidence interval, beside the value that `evaluate` predicts
    run_testbed(problem, policy, link=read_trace("link.csv"))        # delayed and lost as it was measured; .fit(20): at 20 ms a tick
    run_testbed(problem, policy, period_ms=10, episodes=50)          # by the wall clock, a tick every 10 ms

The relay really holds and really drops datagrams, by the problem's channel, by another one, or by a recorded trace: each
episode then begins at a random message of it, and delays are put in order as `oldlight.traces.fit` has it (`in_order=False`: each
arrives when it did). The controller runs the policy through `oldlight.control`. Ticks are in lock-step, so that a seed gives the
same result every time, or by the wall clock (`period_ms`). `oldlight.testbed.processes` says what each process does.

The run is bounded: in episodes, in tries of a tick, in time (`timeout`); ports are chosen by the system; whatever happens, the
processes are gone when `run_testbed` returns or raises.

Use it from a module or a script with the usual `if __name__ == "__main__":`, because processes are spawned.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from oldlight import checks, drawing
from oldlight.arrays import Floats
from oldlight.control import Controller
from oldlight.control.plan_tables import ASKED
from oldlight.model.channels import Channel
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.planning.evaluation import Evaluation, evaluate
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation.episodes import PlayedReturns
from oldlight.simulation.link_sampler import LinkSampler
from oldlight.testbed.processes import IN_STEP, IN_TIME
from oldlight.testbed.recorded import recorded
from oldlight.testbed.wire import CONTROLLER, PLANT, RELAY, Port, Recorded, Setup, Stopped, Watchdog
from oldlight.traces import Fit, Trace
from oldlight.traces.replay import Replay, replay
from oldlight.workers import Worker, stop

ROLES = (RELAY, CONTROLLER, PLANT)
START = 20.0  # seconds for the processes to begin
REPLAYED = 2_000  # episodes of the replay beside a recording as it came
REST = 0.2  # seconds before tick 0 of a run by the wall clock


@dataclass(frozen=True, eq=False)
class TestbedResult(PlayedReturns):
    """Episodes that were played over UDP, beside what was predicted.

    Parameters
    ----------
    returns : ndarray, shape (episodes,)
        What each episode earned.
    predicted : Evaluation
        The value of the policy behind the link that was planned for.
    link : str
        What the relay did.
    period_ms : float or None
        Milliseconds of a tick by the wall clock; None for lock-step.
    seconds : float
        Time taken.
    disturbed : int
        Episodes in which something came at another tick than it should, or an action too late (by the wall clock only).
    counts : dict
        Datagrams by what became of them.
    report : dict
        The controller's own (`oldlight.control.Report`).
    planned : str, optional
        The link that was planned for, if the relay did something else.
    recording : Replay, optional
        Of a recording as it came: what `oldlight.replay` gives for the same policy on it.

    Examples
    --------
    >>> import numpy as np
    >>> import oldlight as ol
    >>> found = ol.testbed.TestbedResult(np.ones(5), ol.Evaluation(1.0, True, 0.0, "walk", 5), "constant:1", None, 0.1, 0)
    >>> found
    TestbedResult(5 episodes behind constant:1, return 1 ± 0, predicted 1)
    >>> found.agrees
    True
    """

    __test__ = False  # not a test, whatever its name begins with

    returns: Floats
    predicted: Evaluation
    link: str
    period_ms: float | None
    seconds: float
    disturbed: int
    counts: dict[str, int] = field(default_factory=dict)
    report: dict[str, int] = field(default_factory=dict)
    planned: str | None = None
    recording: Replay | None = None

    @property
    def agrees(self) -> bool | None:
        """Is the predicted value within the interval (and the prediction's own, if it has one)? None behind another link than
        the planned one, where it need not be. On a recording as it came the interval is also that of the recording: how much another
        one of the same link may differ."""
        if self.planned is not None and self.recording is None:
            return None
        of_recording = 0.0 if self.recording is None else self.recording.half_width
        wide = [self.half_width, self.predicted.half_width, of_recording]
        return bool(abs(self.mean - self.predicted.value) <= float(np.linalg.norm(wide)) + 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "episodes": len(self.returns),
            "mean": self.mean,
            "half_width": self.half_width,
            "predicted": self.predicted.value,
            "predicted_half_width": self.predicted.half_width,
            "agrees": self.agrees,
            "link": self.link,
            "planned": self.planned or self.link,
            "recording": None if self.recording is None else self.recording.to_dict(),
            "period_ms": self.period_ms,
            "seconds": self.seconds,
            "disturbed": self.disturbed,
            "counts": dict(self.counts),
            "controller": dict(self.report),
            "returns": self.returns.tolist(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean return and the prediction with their 95% intervals; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        widths = [self.half_width, self.predicted.half_width]
        ax.errorbar(["over UDP", "predicted"], [self.mean, self.predicted.value], widths, fmt="o", capsize=4)
        ax.set_ylabel("return")
        return ax

    def __repr__(self) -> str:
        played = f"{len(self.returns):,} episodes behind {self.link}, return {self.mean:.5g} ± {self.half_width:.3g}"
        return f"TestbedResult({played}, predicted {self.predicted.value:.5g})"

    def __str__(self) -> str:
        """A small table."""
        clock = "in lock-step" if self.period_ms is None else f"a tick every {self.period_ms:g} ms"
        verdict = f": {'within' if self.agrees else 'OUTSIDE'} the interval"
        if self.recording is not None:
            verdict += f" on the recording as it came, by {self.planned}"
        elif self.planned is not None:
            verdict = f" behind the planned link, {self.planned}"
        own = "exact" if self.predicted.exact else f"± {self.predicted.half_width:.4g}"
        lines = [
            f"{len(self.returns):,} episodes over UDP on loopback, {clock}, {self.seconds:.1f} s, behind {self.link}",
            f"  return     {self.mean:.5g} ± {self.half_width:.3g} (95%)",
            f"  predicted  {self.predicted.value:.5g} ({own}){verdict}",
            "  datagrams  " + ", ".join(f"{name} {n:,}" for name, n in self.counts.items()),
            "  controller " + ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in self.report.items() if n),
        ]
        if self.recording is not None:
            lines.insert(
                3, f"  replayed   {self.recording.value:.5g} ± {self.recording.half_width:.3g} (95%, of the recording)"
            )
        if self.disturbed:
            lines.append(f"  disturbed  {self.disturbed} episodes: this machine did not keep to the ticks")
        return "\n".join(lines)


def run_testbed(
    problem: ImpairedMDP,
    policy: Policy,
    *,
    episodes: int = 300,
    link: Channel | Trace | Fit | None = None,
    in_order: bool = True,
    seed: Seed = 0,
    period_ms: float | None = None,
    timeout: float | None = None,
) -> TestbedResult:
    """Play episodes over a real link; see the module's text.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and the channel that was planned for.
    policy : Policy
        What the controller acts by.
    episodes : int
        How many.
    link : Channel, Trace or Fit, optional
        What the relay does: the problem's channel if None, another channel, or a recorded Trace, in ticks of `period_ms`, else of the
        problem's own, else of the trace's sending interval; the ticks of trace.fit(20) are 20 ms.
    in_order : bool
        Of a Trace: no message overtakes another. False: as it came, late messages used and losses not announced, with a verdict.
    seed : int
        Random seed.
    period_ms : float, optional
        Milliseconds of a tick by the wall clock; None for lock-step.
    timeout : float, optional
        Seconds for everything (computed from the number of ticks if None); TimeoutError beyond.

    Returns
    -------
    TestbedResult
        `.mean`, `.half_width`, `.predicted`, `.agrees` and counts.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1")
    >>> ol.run_testbed(problem, ol.solve(problem).policy, episodes=2).mean
    1.0
    """
    checked_problem(problem, "run_testbed")
    n = checks.whole("episodes", episodes, least=2)
    number = seed_number(seed)
    tick = None if period_ms is None else checks.positive("period_ms", period_ms)
    ticks = n * (problem.horizon + 1)
    allowed = 60.0 + (0.02 * ticks if tick is None else 2e-3 * tick * ticks) if timeout is None else timeout
    seconds = checks.positive("timeout", allowed)
    controller = Controller(problem, policy, seed=number)
    if controller.tables.kind == ASKED:
        _can_travel(controller)
    made = relay_of(problem, link, in_order=in_order, period_ms=tick)
    predicted = evaluate(problem, policy)
    began = time.monotonic()
    setup = Setup(problem, controller, made, n, number, None if tick is None else tick / 1e3, began + seconds)
    found = _run(setup)
    plant, acting = found[PLANT], found[CONTROLLER]
    counts = {"sent": sum(one["sent"] for one in found.values())}
    for name in ("observations", "forwarded", "dropped", "repeated", "missed", "mistimed"):
        for one in found.values():
            if name in one:
                counts[name] = one[name]
    disturbed = len(set().union(*(one.get("disturbed", ()) for one in found.values())))
    shown = repr(problem.channel if link is None else link)
    if isinstance(link, Trace | Fit):
        shown = link.source if isinstance(link, Trace) else f"{link.trace.source} at {link.period_ms:g} ms a tick"
    planned = None if made == problem.channel else repr(problem.channel)
    took = time.monotonic() - began
    replayed = None
    if isinstance(link, Trace | Fit) and not in_order:
        trace, T = (link, tick) if isinstance(link, Trace) else (link.trace, link.period_ms)
        replayed = replay(problem, policy, trace, period_ms=T, episodes=max(n, REPLAYED), seed=seed)
    return TestbedResult(
        plant["returns"], predicted, shown, tick, took, disturbed, counts, acting["report"], planned, replayed
    )


def _can_travel(controller: Controller) -> None:
    """A policy that is asked goes to another process as it is; a function inside a function cannot."""
    try:
        pickle.dumps(controller)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"the policy cannot be sent to another process ({error}); use a function of a module, or make a table of it: "
            "oldlight.model.policies.tabulate(problem, policy)"
        ) from None


def relay_of(
    problem: ImpairedMDP, link: Any, *, in_order: bool = True, period_ms: float | None = None
) -> Channel | Recorded:
    """What the relay does, checked.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and the channel that was planned for.
    link : Channel, Trace, Fit or None
        As `run_testbed` takes it.
    in_order : bool
        Of a Trace: no message overtakes another. False: as it came, late messages used and losses not announced, with a verdict.
    period_ms : float, optional
        Milliseconds of a tick.

    Returns
    -------
    Channel or Recorded
        The channel, or the delays of a recording.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.testbed.relay_of(ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1"), None)
    ConstantDelay(d=1)
    """
    if link is None:
        return problem.channel
    planned = isinstance(link, Channel) and link.with_period(None) == problem.channel.with_period(None)
    if problem.warmup and not planned:
        raise ValueError("a warm start knows a past that came over the planned link; behind another one use start=None")
    if isinstance(link, Trace):
        link = link.fit(period_ms or problem.period_ms, horizon=problem.horizon)
    if isinstance(link, Fit):
        return recorded(problem, link, in_order)
    if not isinstance(link, Channel):
        raise TypeError(f"link is of type {type(link).__name__}, expected a channel, a Trace or its fit")
    sizes = (problem.n_states, problem.n_actions)
    LinkSampler(problem.behind(link).channel, horizon=problem.horizon, sizes=sizes)  # refused if unfit
    return link


def _run(setup: Setup) -> dict[str, dict[str, Any]]:
    """Start the processes, wait for the plant, collect what each has to say."""
    with _processes(setup) as pipes:
        ports = {role: _heard({role: pipe}, role, START) for role, pipe in pipes.items()}
        begin = time.monotonic() + REST
        for pipe in pipes.values():
            pipe.send((ports, begin))
        found = {PLANT: _heard(pipes, PLANT, max(setup.deadline - time.monotonic(), 0.0) + 1.0)}
        for role in (RELAY, CONTROLLER):  # each alone: the others may be gone already
            pipes[role].send("stop")
            found[role] = _heard({role: pipes[role]}, role, 5.0)
        return found


def _heard(pipes: dict[str, Any], role: str, seconds: float) -> Any:
    """What `role` says next; an error of any process is raised here."""
    until = time.monotonic() + seconds
    while True:
        for ready in wait([*pipes.values()], max(0.0, until - time.monotonic())):
            name = next(name for name, pipe in pipes.items() if pipe is ready)
            try:
                kind, said = pipes[name].recv()
            except EOFError:
                raise RuntimeError(
                    f"the {name} process ended before its work was done; is the script that calls run_testbed guarded by "
                    'if __name__ == "__main__":?'
                ) from None
            if kind == "late":
                raise TimeoutError(f"the testbed's {name}: {said}")
            if kind == "error":
                raise RuntimeError(f"the testbed's {name} failed: {said}")
            if name == role:
                return said
        if time.monotonic() >= until:
            raise TimeoutError(f"the testbed's {role} did not answer in {seconds:.3g} s")


@contextmanager
def _processes(setup: Setup) -> Iterator[dict[str, Any]]:
    """The three processes by name, with the pipe to each; gone at the end, whatever happens."""
    running: list[Worker] = []
    try:
        for role in ROLES:
            running.append(Worker(_child, role, setup, name=f"testbed {role}"))
        yield {role: worker.pipe for role, worker in zip(ROLES, running, strict=True)}
    finally:
        stop(running)  # whoever still runs is stopped by its watchdog


def _child(pipe: Any, role: str, setup: Setup) -> None:
    """One process: open a port, say which, begin when told, and report."""
    port = Port(Watchdog(pipe, setup.deadline), setup)
    counts: dict[str, Any] = {}
    try:
        pipe.send(("port", port.number))
        if not pipe.poll(START):
            return
        port.peers, begin = pipe.recv()
        try:
            (IN_STEP if setup.period_s is None else IN_TIME)[role](port, setup, begin, counts)
        except Stopped:
            pipe.recv()  # the word, or the end of the pipe
        if role == CONTROLLER:
            counts["report"] = setup.controller.report().to_dict()
        pipe.send(("done", counts | {"sent": port.sent}))
    except TimeoutError as error:
        _tell(pipe, "late", str(error))
    except (EOFError, OSError):
        return  # nobody is there any more
    except Exception as error:
        _tell(pipe, "error", f"{type(error).__name__}: {error}")
    finally:
        port.close()
        pipe.close()


def _tell(pipe: Any, kind: str, what: str) -> None:
    with suppress(OSError):  # nobody may be there any more
        pipe.send((kind, what))
