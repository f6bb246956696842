"""How fast oldlight is, beside what else one could use: `python benchmarks/bench.py [--quick] [--json FILE] [--docs PAGE]`.

Everything is timed in this run, competitors in turn with ours, and the best of several repeats counts. On a machine that
is busy with other things the times mean little and the ratios still something. Values are compared on the way: a solver
that is fast and wrong stops the run. Quantecon and pymdptoolbox come with `pip install oldlight[bench]`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

import oldlight as ol
from augmented import augment
from bare_loop import BareLoop, draw_numbers, our_numbers
from controller import controller_latency
from envs import environments
from forever import forever
from links import links, loss_nodes
from oldlight.machine import thread_count
from page import markdown, surroundings, write
from sparse import sparse_processes
from turns import TURN, best

Row = dict[str, Any]
CHECK_STATES = 3_000  # pymdptoolbox checks its input with dense n × n arrays; beyond this its check is turned off
SIX_GB = 6e9


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3g}×"


def warm(mdp: ol.TabularMDP, d: int) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart())


def fresh(code: str, *arguments: object, **environment: str) -> Any:
    """Run `code` in a new interpreter; what it prints last, as JSON."""
    command = [sys.executable, "-c", code, *(str(a) for a in arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# -- (a) the paper's chain, beside general solvers on the augmented model ---------------------------------------------


def against_general_solvers(quick: bool) -> Iterator[Row]:
    """Env1, S=20, A=5, H=10, warm start. Ours: `solve`, policy included. Theirs: the same model written out
    (`benchmarks/augmented.py`: H backward steps, all H + d steps rewarded, the constant taken off afterwards)."""
    chain = ol.instances.center_chain(0.99)
    for d in (2, 4, 5) if quick else (2, 3, 4, 5, 6, 7):
        problem, model = warm(chain, d), augment(chain, d)
        ours = ol.solve(problem, progress=False)
        yield from _beside_quantecon(chain, d, problem, model, ours)
        yield from _beside_mdptoolbox(chain, d, problem, model, ours)


def _beside_quantecon(chain: Any, d: int, problem: Any, model: Any, ours: Any) -> Iterator[Row]:
    try:
        from quantecon.markov import DiscreteDP, backward_induction
    except ImportError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta = 1 is what a finite horizon wants

        def build() -> Any:
            return DiscreteDP(beta=1.0, **augment(chain, d).quantecon())

        process = DiscreteDP(beta=1.0, **model.quantecon())
        values = backward_induction(process, chain.horizon, model.after)[0][0]
        _agree(ours, model.warm(values), f"quantecon, d={d}")
        t = best(
            3 if d > 5 else 7,
            ours=lambda: ol.solve(problem, progress=False),
            first=lambda: ol.solve(warm(chain, d), progress=False),
            build=build,
            solve=lambda: backward_induction(process, chain.horizon, model.after),
        )
    size = f"{len(model.after):,}"
    yield _pair(f"d={d}", size, "quantecon, solve", t["ours"], t["solve"])
    yield _pair(f"d={d}, a new problem made and planned", size, "quantecon, solve", t["first"], t["solve"])
    yield _pair(f"d={d}", size, "quantecon, build + solve", t["ours"], t["build"] + t["solve"])


def _beside_mdptoolbox(chain: Any, d: int, problem: Any, model: Any, ours: Any) -> Iterator[Row]:
    try:
        from mdptoolbox.mdp import FiniteHorizon
    except ImportError:
        return
    transitions, reward = model.mdptoolbox()
    checked = len(model.after) <= CHECK_STATES
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        if not checked:
            stack.enter_context(mock.patch("mdptoolbox.util.check"))

        def plan() -> Any:
            found = FiniteHorizon(transitions, reward, 1.0, chain.horizon, h=model.after)
            found.run()
            return found.V[:, 0]

        _agree(ours, model.warm(plan()), f"pymdptoolbox, d={d}")
        t = best(2 if d > 5 or checked else 5, ours=lambda: ol.solve(problem, progress=False), theirs=plan)
    name = "pymdptoolbox, check + solve" if checked else "pymdptoolbox, solve, its input check turned off"
    yield _pair(f"d={d}", f"{len(model.after):,}", name, t["ours"], t["theirs"])


def _agree(ours: ol.Solution, theirs: Any, who: str) -> None:
    error = float(np.abs(ours.value_by_start - theirs.mean(axis=1)).max())
    assert error <= 1e-9, f"{who}: values differ by {error:.3g}"


def stream(quick: bool) -> Iterator[Row]:
    """The limit of a plan whose values are beyond the caches: every step reads the values of the step after it, and writes its own and the policy, 17 bytes
    an information state. Theirs: the same bytes copied from one array to another, by the same number of threads, in the same run."""
    chain, threads = ol.instances.center_chain(0.99), thread_count()
    for d in (5, 6) if quick else (5, 6, 7):
        problem = warm(chain, d)
        states = ol.Layout.of(problem).size
        parts = [np.ones(17 * states // 16 // threads) for _ in range(2 * threads)]
        with ThreadPoolExecutor(threads) as pool:

            def copy(pool: ThreadPoolExecutor = pool, parts: Any = parts) -> None:
                list(pool.map(np.copyto, parts[::2], parts[1::2]))

            t = best(5 if quick else 15, ours=lambda p=problem: ol.solve(p, progress=False), theirs=copy)
        share = f"{100 * t['theirs'] / t['ours']:.0f} %"
        yield {
            "what": f"d={d}",
            "information states": f"{states:,}",
            "ours": t["ours"],
            "theirs": t["theirs"],
            "share": share,
        }


def _pair(what: str, size: str, name: str, ours: float, theirs: float) -> Row:
    row = {"what": what, "augmented states": size, "beside": name}
    return row | {"ours": ours, "theirs": theirs, "ratio": theirs / ours}


# -- (b) long delays, alone -------------------------------------------------------------------------------------------

LONG = """
import json, resource, sys, time
import oldlight as ol
d = int(sys.argv[1])
warm = lambda d: ol.ImpairedMDP(ol.instances.center_chain(0.99), ol.ConstantDelay(d), start=ol.WarmStart())
def peak():
    try:  # on Linux ru_maxrss begins with what the parent had; VmHWM is this program's own
        status = open("/proc/self/status").read()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ol.solve(warm(2), progress=False)
before, began = peak(), time.perf_counter()
plan = ol.solve(warm(d), max_bytes=6 * 10**9, progress=False)
seconds = time.perf_counter() - began
print(json.dumps([seconds, before, peak(), plan.work.bytes, plan.work.information_states]))
"""


def long_delays(quick: bool) -> Iterator[Row]:
    """The same chain, d = 8, 9, 10, each in a process of its own: time and peak memory of the process."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for d in (8,) if quick else (8, 9, 10):
        least = 8 * 2 * 20 * 5**d + 10 * 20 * 5**d  # two blocks of values and the policy
        if least > 0.8 * memory:
            yield {"what": f"d={d}", "ours": f"skipped: needs {least / 1e9:.1f} GB"}
            continue
        seconds, before, peak, need, states = fresh(LONG, d)
        assert peak < SIX_GB, f"d={d} took {peak / 1e9:.2f} GB, expected less than {SIX_GB / 1e9:g}"
        yield {
            "what": f"d={d}", "information states": f"{states:,}", "ours": seconds,
            "peak memory": f"{peak / 1e9:.3f} GB", "of it before the plan": f"{before / 1e9:.3f} GB",
            "announced": f"{need / 1e9:.3f} GB",
            "states/s": f"{states / seconds:.3g}",
        }  # fmt: skip


# -- (c) dense successors, beside the machine's matrix product --------------------------------------------------------


def dense_successors(quick: bool) -> Iterator[Row]:
    """Random dense processes, H=10, warm start: 2·S²·A^(d+1) operations per step, as a share of what a large product of
    square matrices reaches in the same run with the same threads (goal: 40 %), and of what the same library does with products of our own shape (S·A rows, S long), without any
    maximum or policy."""
    rng = np.random.default_rng(0)
    square = rng.random((1500, 1500))
    for S, A, d in ((20, 5, 5), (20, 5, 6), (20, 5, 7), (100, 4, 4)):
        if quick and d == 7:
            continue
        mdp = ol.TabularMDP(rng.dirichlet(np.ones(S), size=(S, A)), rng.random((S, A)), horizon=10)
        problem = warm(mdp, d)
        fastest = dict.fromkeys(("gemm", "ours", "shape"), float("inf"))
        began = time.perf_counter()
        while time.perf_counter() - began < (1 if quick else 12):
            np.dot(square, square)
            fastest["gemm"] = min(fastest["gemm"], _seconds(lambda: np.dot(square, square)))
            time.sleep(0.1)  # the product's own threads keep a core busy for a while
            turn = time.perf_counter()
            while time.perf_counter() - turn < TURN:  # as long as the product has
                fastest["ours"] = min(fastest["ours"], _seconds(lambda p=problem: ol.solve(p, progress=False)))
            fastest["shape"] = min(fastest["shape"], _products(S, A, A ** (d - 1)))
        reached = mdp.horizon * 2 * S**2 * A ** (d + 1) / fastest["ours"] / 1e9
        possible = 2 * len(square) ** 3 / fastest["gemm"] / 1e9
        yield {
            "what": f"S={S}, A={A}, d={d}", "ours": fastest["ours"], "GFLOP/s": f"{reached:.1f}",
            "theirs": f"dgemm {possible:.1f} GFLOP/s", "share": f"{100 * reached / possible:.1f} %",
            "dgemm of our shape": f"{1 / fastest['shape'] / 1e9:.1f} GFLOP/s",
            "share of that": f"{100 * reached * fastest['shape'] * 1e9:.1f} %",
        }  # fmt: skip


def _products(S: int, A: int, queues: int) -> float:
    """Seconds for one operation in products of a plan's shape, one thread of ours each: as many columns and rows as the library takes without threads of its own."""
    most = 2**18  # multiplications
    columns = A * min(max(16, most // (48 * S * A) // 16 * 16), 256, queues)
    rows = min(S * A, most // (S * columns) // 4 * 4)
    times = 2 * 10**9 // (rows * S * columns)  # a tenth of a second: starting threads is not to count
    left, right = np.ones((rows, S)), np.ones((S, columns))

    def work(out: Any) -> None:
        for _ in range(times):
            np.dot(left, right, out)

    outs = [np.empty((rows, columns)) for _ in range(thread_count())]
    with ThreadPoolExecutor(len(outs)) as pool:
        t = _seconds(lambda: list(pool.map(work, outs)))
    return t / (2 * rows * S * columns * times * len(outs))


def _seconds(do: Callable[[], Any]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


# -- (d) loss ---------------------------------------------------------------------------------------------------------


def loss(quick: bool) -> Iterator[Row]:
    """Exact plans under loss. Theirs: the information states that the paper's planner would go through (not run)."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(0.3 * np.ones(20), size=(5, 20))  # [a, s, s2]
    dense = ol.TabularMDP(P.transpose(1, 0, 2), rng.random((20, 5)), horizon=10)
    chain = ol.instances.sensing_chain(0.8, horizon=30)
    first_seen = {rate: [1.0] + [rate] * 9 for rate in (0.5, 0.05)}
    cases = [(f"dense random, λ={rate}, first state seen", dense, seen) for rate, seen in first_seen.items()]
    for what, mdp, seen in [*cases, ("sensing chain 0.8, H=30, λ=0.5", chain, 0.5)]:
        problem = ol.ImpairedMDP(mdp, ol.Loss(seen=seen))
        plan = ol.solve(problem, progress=False)
        if mdp is dense and seen == first_seen[0.5]:
            assert abs(plan.value - 7.573000406) < 1e-8, f"value {plan.value:.12g}, expected 7.573000406"
        t = best(3 if quick else 7, ours=lambda p=problem: ol.solve(p, progress=False))
        table = sum(mdp.n_states * mdp.n_actions ** (h - t) for h in range(mdp.horizon) for t in range(h + 1))
        yield {
            "what": what, "value": f"{plan.value:.9f}", "ours": t["ours"], "nodes": f"{plan.work.information_states:,}",
            "theirs": f"{table:.3g} states", "ratio": table / plan.work.information_states,
        }  # fmt: skip


# -- (d') beyond the plain plan ---------------------------------------------------------------------------------------


def beyond(quick: bool) -> Iterator[Row]:
    """The ladder at a delay that no table holds, late and lossy, late actions, a deterministic process, the model written out."""
    law = np.zeros((20, 1, 1, 16))
    law[..., 0] = 1.0
    law[0] = np.eye(16)[15]
    known = ol.instances.sensing_chain(0.8, horizon=20, initial=np.eye(20)[4])
    chain = ol.instances.sensing_chain(0.8)
    circle = np.zeros((20, 5, 20))
    for a in range(5):
        circle[np.arange(20), a, (np.arange(20) + a - 2) % 20] = 1.0
    certain = ol.TabularMDP(circle, np.eye(20)[:, :5], horizon=50, initial=np.eye(20)[7])
    depth = 3 if quick else 5
    cases: dict[str, Callable[[], ol.Solution]] = {
        f"delay 15, ladder of depth {depth}": lambda: ol.solve(
            ol.ImpairedMDP(known, ol.StochasticDelay(law)), depth=depth
        ),
        "late and lossy, d=2, λ=0.8": lambda: ol.solve(ol.ImpairedMDP(chain, ol.Lossy(ol.ConstantDelay(2), seen=0.8))),
        "delay 2, actions 2 late": lambda: ol.solve(ol.ImpairedMDP(chain, ol.ConstantDelay(2), actuation=2)),
        "deterministic, delay 40": lambda: ol.solve(ol.ImpairedMDP(certain, ol.ConstantDelay(40))),
    }
    for what, plan in cases.items():
        found = plan()
        bounds = "exact" if found.exact else f"in [{found.lower:.4f}, {found.upper:.4f}]"
        yield {
            "what": what,
            "value": f"{found.value:.6f}",
            "bounds": bounds,
            "ours": best(2 if quick else 4, ours=plan)["ours"],
        }
    from oldlight.planning.augmented import augmented

    t = best(2, ours=lambda: augmented(warm(chain, 3)))
    yield {"what": "MDP_aug written out, d=3 (25,001 states)", "ours": t["ours"]}


def learning(quick: bool) -> Iterator[Row]:
    """Episodes a second of Algorithm 1 on the sensing chain, planning, playing and learning; valuation of policies apart. Goals: at no delay 10 times
    rlberry's pace; at delay 3 at most 1.3 times its own sweep, that is a share of at least 77 %."""
    chain = ol.instances.sensing_chain(0.8)
    learner = ol.learners.DelayedUCBVI
    cases = [
        ("no delay, full planning", 0, learner),
        ("no delay, paper's bonus", 0, lambda: learner(bonus="hoeffding")),
        ("delay 3, full planning", 3, learner),
        ("delay 3, planning on doubling", 3, lambda: learner(planning="doubling")),
        ("delay 1, greedy", 1, lambda: learner(planning="greedy")),
        ("delay 8, greedy", 8, lambda: learner(planning="greedy")),
    ]
    for what, d, make in cases:
        episodes = 500 if quick else 4_000
        problem = warm(chain, d)
        ol.learn(problem, make(), 20, seed=0, every=20, evaluate="sampled", best=4.0, progress=False)
        ours, theirs, swept = float("inf"), float("inf"), float("inf")
        sweeps = "greedy" not in what and "doubling" not in what
        for seed in range(1 if quick else 3):  # in turn; the best counts, of each the median episode
            run = ol.learn(
                problem, make(), episodes, seed=seed, every=episodes, evaluate="sampled", best=4.0, progress=False
            )
            ours = min(ours, float(np.median(run.seconds)))
            if what == "no delay, full planning" and RLBERRY.exists():
                theirs = min(theirs, _rlberry(chain, episodes))
            if sweeps:
                swept = min(swept, _sweep_alone(problem, make()))
        yield _pace(what, ours) | {
            "its sweep alone": swept if sweeps else None,
            "share": f"{100 * swept / ours:.0f} %" if sweeps else "–",
        }
        if theirs < float("inf"):
            yield _pace("rlberry 0.6.0 UCBVI, no delay", theirs) | {"ratio": theirs / ours}


def _sweep_alone(problem: ol.ImpairedMDP, learner: Any) -> float:
    """Seconds of the compiled backward pass that the learner's last plan was, less those of a call from Python that sweeps no row: in a block of episodes nobody
    calls it from there. The median, as for the episodes that it is compared with."""
    ol.learn(problem, learner, 200, seed=0, every=200, evaluate="sampled", best=4.0, progress=False)
    from oldlight.kernels.delay import sweep

    plan = learner.tables.plan(learner.model)
    what, how = (plan.model, plan.optimism, plan.tables, plan.mode), (plan.part, plan.parts)
    begins = [plan.begin, plan.end] * 1000  # in turn
    spent = [_seconds(lambda begin=begin: sweep(*what, begin, plan.end, *how)) for begin in begins]
    return float(np.median(spent[::2]) - np.median(spent[1::2]))


def other_learners(quick: bool) -> Iterator[Row]:
    """Episodes a second of the other built-in learners on the sensing chain, valuation apart, the mean over a run; theirs: the same learner by its three methods. Posterior sampling
    under loss is the median episode, also beside its own plan, `plan_exactly` for the drawn process (goal: at most 1.2 times that); draw: of an episode the drawing of the
    process, as a share of the plan."""
    chain, L = ol.instances.sensing_chain(0.8), ol.learners
    late: dict[str, Callable[[], Any]] = {
        "DelayedUCBVI": L.DelayedUCBVI, "AugmentedUCBVI": L.AugmentedUCBVI, "AugmentedQLearning": L.AugmentedQLearning,
        "PosteriorSampling": L.PosteriorSampling, "LinkLearner, pooled": lambda: L.LinkLearner(pooled=True),
        "MemorylessUCBVI": L.MemorylessUCBVI, "MemorylessQLearning": L.MemorylessQLearning, "UniformRandom": L.UniformRandom,
    }  # fmt: skip
    lost: dict[str, Callable[[], Any]] = {
        "LossUCBVI": L.LossUCBVI, "LossUCBVI, greedy": lambda: L.LossUCBVI(replan="greedy"),
        "OptimisticPlanning, pooled": lambda: L.OptimisticPlanning(pooled=True),
        "LinkLearner, pooled": lambda: L.LinkLearner(pooled=True), "MemorylessUCBVI": L.MemorylessUCBVI,
    }  # fmt: skip
    cases = [(f"{name}, delay {d}", warm(chain, d), make) for name, make in late.items() for d in (0, 3)]
    cases += [(f"{name}, half lost", ol.ImpairedMDP(chain, "loss:0.5"), make) for name, make in lost.items()]
    for what, problem, make in cases:
        n = (300 if quick else 2_000) // (10 if "Posterior" in what else 1)
        times = {"ours": float("inf"), "theirs": float("inf")}
        for seed in range(3):
            for how in times:
                learner = make()
                if how == "theirs":
                    learner.see = lambda episode, see=learner.see: see(episode)  # a method of its own: no blocks
                run = ol.learn(problem, learner, n, seed=seed, every=n, evaluate="sampled", best=4.0, progress=False)
                if seed:
                    times[how] = min(times[how], float(run.seconds.mean()))
        yield _pace(what, times["ours"]) | {"theirs": times["theirs"], "ratio": times["theirs"] / times["ours"]}
    yield _sampling_under_loss(quick)


def _sampling_under_loss(quick: bool) -> Row:
    """An episode of posterior sampling where half of the observations are lost, in blocks and one by one, and beside it the plan and the draw."""
    problem, n = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.Loss(seen=0.5)), 30 if quick else 200
    times = dict.fromkeys(("ours", "theirs", "plan", "draw"), float("inf"))
    for seed in range(3):
        for how in ("ours", "theirs"):
            learner = ol.learners.PosteriorSampling()
            if how == "theirs":
                learner.see = lambda episode, see=learner.see: see(episode)
            run = ol.learn(problem, learner, n, seed=seed, every=n, evaluate="sampled", best=4.0, progress=False)
            if seed:
                times[how] = min(times[how], float(np.median(run.seconds)))
        plans = [_seconds(lambda at=learner: at._exact_plan(at.drawn)) for _ in range(50)]  # of the last draw
        times["plan"] = min(times["plan"], float(np.median(plans)))
        times["draw"] = min(times["draw"], float(np.median([_seconds(learner._draw) for _ in range(50)])))
    return _pace("PosteriorSampling, half lost", times["ours"]) | {
        "theirs": times["theirs"],
        "ratio": times["theirs"] / times["ours"],
        "its plan": times["plan"],
        "times its plan": f"{times['ours'] / times['plan']:.2f}×",
        "draw": f"{times['draw'] / times['plan']:.2f}",
    }


def valuation(quick: bool) -> Iterator[Row]:
    """The share of the values in a run of Algorithm 1 whose every policy is valued exactly, at delay 3."""
    episodes = 300 if quick else 10_000
    began = time.perf_counter()
    run = ol.learn(
        warm(ol.instances.sensing_chain(0.8), 3), ol.learners.DelayedUCBVI(), episodes, best=4.0, progress=False
    )
    took = time.perf_counter() - began
    share = 1.0 - float(run.seconds.sum()) / took
    yield {"what": f"{episodes:,} episodes at delay 3", "ours": took, "of it, values": f"{100 * share:.0f} %"}
    learner, n = ol.learners.default(), episodes // 10
    began = time.perf_counter()
    run = ol.learn(warm(ol.instances.sensing_chain(0.8), 2), learner, n, best=4.0, progress=False)
    took = time.perf_counter() - began
    share = 1.0 - float(run.seconds.sum()) / took
    yield {
        "what": f"{n:,} episodes of learners.default() at delay 2",
        "ours": took,
        "of it, values": f"{100 * share:.0f} %",
    }


RLBERRY = Path(".venv-rlberry/bin/python")  # made by `make bench`


def _pace(what: str, seconds: float) -> Row:
    return {"what": what, "episodes/s": f"{1 / seconds:,.0f}", "per episode": seconds}


def _rlberry(mdp: ol.TabularMDP, episodes: int) -> float:
    """Seconds an episode of rlberry's UCBVI, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "process.npz"
        np.savez(file, transitions=mdp.transitions[0], rewards=mdp.rewards[0], initial=mdp.initial, horizon=mdp.horizon)
        script = Path(__file__).with_name("rlberry_ucbvi.py")
        done = subprocess.run([RLBERRY, script, file, str(episodes)], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["per episode"])


# -- (e) simulation ---------------------------------------------------------------------------------------------------


def simulation(quick: bool) -> Iterator[Row]:
    """Million steps a second on the sensing chain (H=10), following the optimal policy: one thread, and all. Theirs: a bare compiled loop of the same link with
    the same random numbers and the same look-up (benchmarks/bare_loop.py). Goals: at least 50 % of it; a random delay and loss in at most 1.5 times the time
    of the constant delay. Next: the time beside that of our delay 3, cold; the same of the two bare loops; and beside the bare loop of delay 3, cold. Last
    row: the random numbers alone that a constant delay needs, by our loop and (theirs) by NumPy's generator; a number is drawn for each step, and for each step of a random
    link that is not certain another."""
    chain = ol.instances.sensing_chain(0.8)
    episodes = 40_000 if quick else 200_000
    everyone = thread_count()
    cases = {
        "delay 3, cold": ol.ImpairedMDP(chain, ol.ConstantDelay(3)),
        "delay 3, warm": warm(chain, 3),
        "Bernoulli delay": ol.ImpairedMDP(chain, ol.BernoulliDelay(0.5)),
        "loss, λ=0.5": ol.ImpairedMDP(chain, ol.Loss(seen=0.5)),
        "geometric delay": ol.ImpairedMDP(chain, ol.GeometricDelay(0.5)),
    }
    work: dict[str, Callable[[], Any]] = {}
    for what, problem in cases.items():
        policy = ol.solve(problem, progress=False).policy

        def play(threads: int, p: Any = problem, follow: Any = policy) -> Any:
            return ol.simulate(p, follow, episodes, seed=1, threads=threads)

        bare = BareLoop(problem, policy)
        assert np.array_equal(play(1).returns, bare.play(episodes, 1)), "the bare loop plays other episodes"
        work[f"{what}, one"] = lambda f=play: f(1)
        work[f"{what}, every"] = lambda f=play: f(everyone)
        work[f"{what}, bare"] = lambda b=bare: b.play(episodes, 1)
    t = best(3 if quick else 10, **work)  # all of them in turn: each is compared with the first
    constant, bare_constant = t["delay 3, cold, one"], t["delay 3, cold, bare"]
    for what in cases:
        one, every, alone = (t[f"{what}, {name}"] for name in ("one", "every", "bare"))
        rate = {
            name: episodes * chain.horizon / x / 1e6 for name, x in (("one", one), ("every", every), ("bare", alone))
        }
        yield {
            "what": what, "1 thread": f"{rate['one']:.1f} M/s", f"{everyone} threads": f"{rate['every']:.1f} M/s",
            "threads": f"{one / every:.2f}×", "theirs": f"{rate['bare']:.1f} M/s",
            "share": f"{100 * alone / one:.0f} %", "beside delay 3, cold": f"{one / constant:.2f}×",
            "the bare loops": f"{alone / bare_constant:.2f}×", "beside its bare loop": f"{one / bare_constant:.2f}×",
        }  # fmt: skip
    numbers = best(
        5,
        ours=lambda: our_numbers(episodes, chain.horizon),
        numpy=lambda: draw_numbers(episodes, chain.horizon),
    )
    rate = {name: episodes * chain.horizon / seconds / 1e6 for name, seconds in numbers.items()}
    yield {
        "what": "random numbers alone", "1 thread": f"{rate['ours']:.1f} M/s", f"{everyone} threads": "–", "threads": "–",
        "theirs": f"{rate['numpy']:.1f} M/s", "share": f"{100 * numbers['numpy'] / numbers['ours']:.0f} %",
        "beside delay 3, cold": f"{numbers['ours'] / constant:.2f}×",
        "the bare loops": "–", "beside its bare loop": "–",
    }  # fmt: skip


# -- (f) start-up -----------------------------------------------------------------------------------------------------

IMPORT = "import json, sys, time; t = time.perf_counter(); __import__(sys.argv[1]); print(json.dumps(time.perf_counter() - t))"
FIRST = """
import json, time
t = time.perf_counter()
import oldlight as ol
delay = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
loss = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.Loss(seen=0.5))
learn = lambda: ol.learn(delay, ol.learners.DelayedUCBVI(), 2, best=4.0, every=2, progress=False)
play = lambda: ol.simulate(delay, plan.policy, 10, threads=1)
times = [time.perf_counter() - t]
for problem in (delay, delay, loss, loss):
    t = time.perf_counter()
    plan = ol.solve(problem, progress=False)
    times.append(time.perf_counter() - t)
plan = ol.solve(delay, progress=False)
for first in (learn, play):
    t = time.perf_counter()
    first()
    times.append(time.perf_counter() - t)
print(json.dumps(times))
"""


def start_up(quick: bool) -> Iterator[Row]:
    """New processes: import, and the first plan, learner and simulation with nothing compiled yet, and after `oldlight compile`. Of the first plan in a new
    process with everything imported for it: theirs is numba's own import (goal: at most 1.3 times as long, a ratio of at least 0.77)."""
    repeats = 1 if quick else 5
    imports = {
        name: min(fresh(IMPORT, name) for _ in range(repeats)) for name in ("oldlight", "quantecon") if _installed(name)
    }
    theirs = imports.get("quantecon")
    yield {
        "what": "import (theirs: quantecon)", "ours": imports["oldlight"], "theirs": theirs,
        "ratio": None if theirs is None else theirs / imports["oldlight"],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        cold = fresh(FIRST, NUMBA_CACHE_DIR=folder)
    with tempfile.TemporaryDirectory() as folder:
        parts = ("delay", "loss", "delayed-ucbvi", "simulation")
        command, where = [sys.executable, "-m", "oldlight", "compile", *parts], os.environ | {"NUMBA_CACHE_DIR": folder}
        t = _seconds(lambda: subprocess.run(command, env=where, capture_output=True, check=True))
        yield {"what": f"oldlight compile {' '.join(parts)}", "ours": t}
        both = [(fresh(FIRST, NUMBA_CACHE_DIR=folder), fresh(IMPORT, "numba")) for _ in range(repeats)]
    later, whole = min((run for run, _ in both), key=sum), min(run[0] + run[1] for run, _ in both)
    for name, k in (("delay", 1), ("loss", 3)):
        yield {"what": f"first plan under {name}, nothing compiled", "ours": cold[k]}
        yield {"what": f"first plan under {name}, compiled before", "ours": later[k], "ratio": cold[k] / later[k]}
        yield {"what": f"second plan under {name}", "ours": later[k + 1]}
    numba = min(alone for _, alone in both)
    yield {
        "what": "import and first plan under delay (theirs: import numba)",
        "ours": whole,
        "theirs": numba,
        "ratio": numba / whole,
    }
    for name, k in (("learner", 5), ("simulation", 6)):
        yield {"what": f"first {name}, nothing compiled", "ours": cold[k]}
        yield {"what": f"first {name}, compiled before", "ours": later[k], "ratio": cold[k] / later[k]}


def threads(quick: bool) -> Iterator[Row]:
    """The same plan and the same episodes on one thread and on all; the results are the same."""
    problem = warm(ol.instances.center_chain(0.99), 6 if quick else 7)
    every = thread_count()
    if every == 1:
        return
    code = "import json,sys,time\nimport oldlight as ol\np=ol.ImpairedMDP(ol.instances.center_chain(.99),ol.ConstantDelay(int(sys.argv[1])),start='warm')\ntimes=[]\nfor _ in range(6):\n t=time.perf_counter(); v=ol.solve(p,progress=False).value; times.append(time.perf_counter()-t)\nprint(json.dumps([min(times),v]))"
    one, all_of_them = (fresh(code, problem.warmup, OLDLIGHT_THREADS=str(n)) for n in (1, every))
    assert one[1] == all_of_them[1], "the value depends on the number of threads"
    yield {
        "what": f"plan, d={problem.warmup}",
        "1 thread": one[0],
        f"{every} threads": all_of_them[0],
        "ratio": one[0] / all_of_them[0],
    }


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


# ---------------------------------------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "constant delay, beside general solvers": against_general_solvers,
    "plans beside a copy of the same bytes": stream,
    "long delays": long_delays,
    "dense successors": dense_successors,
    "sparse processes, beside quantecon and scipy": sparse_processes,
    "loss": loss,
    "links as they are, beside a constant delay": links,
    "loss alone, beside products of its laws": loss_nodes,
    "beyond the plain plan": beyond,
    "learning": learning,
    "learners: blocks of episodes beside one by one": other_learners,
    "valuation": valuation,
    "simulation": simulation,
    "threads": threads,
    "controller": controller_latency,
    "environments": environments,
    "start-up": start_up,
    "for ever: discounted, beside policy iteration on the written-out model": forever,
}


def _cell(key: str, value: Any) -> str:
    if key == "ratio":
        return times(value)
    return value if isinstance(value, str) else duration(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under a minute: fewer repeats, and not the largest")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    parser.add_argument("--docs", metavar="PAGE", help="write the tables into this page, between its two marks")
    parser.add_argument("--only", metavar="WORD", help="only sections whose title has this word")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    machine = surroundings() | {"threads": thread_count(), "oldlight": ol.__version__}
    if options.quick:
        machine["repeats"] = "few (--quick)"
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()))
    found: dict[str, list[Row]] = {}
    wanted = {title: section for title, section in SECTIONS.items() if not options.only or options.only in title}
    for title, section in wanted.items():
        began = time.perf_counter()
        found[title] = rows = list(section(options.quick))
        columns = list(dict.fromkeys(key for row in rows for key in row))
        table = Table(*columns, title=title, caption=f"{' '.join(section.__doc__.split())} [{_seconds_since(began)}]")
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows:
            table.add_row(*(_cell(key, row.get(key)) for key in columns))
        console.print(table)
        _keep(options, machine, found, len(wanted))


def _keep(options: argparse.Namespace, machine: Row, found: dict[str, list[Row]], wanted: int) -> None:
    """Write what there is so far: a run that is stopped keeps its finished sections, and says how many they are."""
    about = (
        machine
        if len(found) == wanted
        else machine | {"sections": f"{len(found)} of {wanted}, the run is not finished"}
    )
    if options.docs:
        shown = {title: (SECTIONS[title].__doc__ or "", rows) for title, rows in found.items()}
        write(Path(options.docs), markdown(shown, _cell, about))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump({**about, "sections": found}, stream, indent=1, ensure_ascii=False)


def _seconds_since(began: float) -> str:
    return f"{time.perf_counter() - began:.0f} s"


if __name__ == "__main__":
    main()
