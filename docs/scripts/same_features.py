"""Jobs that the package could do before it had packages (commit 20c8880) and can do now, through names that both have.

    python docs/scripts/same_features.py tiny FOLDER        on tiny processes, for runs with NUMBA_DISABLE_JIT=1
    python docs/scripts/same_features.py guides FOLDER      the guides of that clone and the paper's quick study

`python docs/scripts/house.py same OLD NEW` runs both in two clones and counts the lines that each clone needs for them.
FOLDER is the clone; what is written goes to the working directory. A job that fails stops everything: both clones do all of them.
"""

from __future__ import annotations

import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol

warnings.simplefilter("ignore")
P = np.array(
    [[[0.8, 0.2, 0.0], [0.1, 0.1, 0.8]], [[0.5, 0.5, 0.0], [0.0, 0.3, 0.7]], [[0.9, 0.0, 0.1], [0.2, 0.6, 0.2]]]
)
R = np.array([[0.1, 0.0], [0.3, 0.2], [0.0, 1.0]])
MDP = ol.TabularMDP(P, R, horizon=4)
LINKS = [
    ol.ConstantDelay(0),
    ol.ConstantDelay(1),
    ol.ConstantDelay(2),
    ol.GeometricDelay(0.6),
    ol.BernoulliDelay(0.7, steps=2),
    ol.StochasticDelay([0.6, 0.4]),
    ol.EmpiricalDelay([0, 1, 1, 2]),
    ol.Loss(rate=0.2),
    ol.Loss(seen=[1.0, 0.5, 0.8, 0.9]),
    ol.Lossy(ol.ConstantDelay(1), rate=0.3),
]


def command(*words: str) -> None:
    """`oldlight WORDS` in this process."""
    sys.argv = ["oldlight", *words]
    try:
        runpy.run_module("oldlight", run_name="__main__", alter_sys=False)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"oldlight {' '.join(words)} ended with {end.code}") from end


def problems() -> list[Any]:
    found = [ol.ImpairedMDP(MDP, link) for link in LINKS]
    found += [ol.ImpairedMDP(MDP, ol.ConstantDelay(d), start=ol.WarmStart()) for d in (1, 2)]
    return [*found, ol.ImpairedMDP(MDP, ol.ConstantDelay(1), actuation=1, pending=[0])]


def readme() -> None:
    """The README's ten lines, on a shorter chain."""
    mdp = ol.instances.sensing_chain(0.8, n_states=6, n_actions=3, horizon=4)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(2), start=ol.WarmStart())
    best = ol.solve(problem)
    print(best.value, best.policy, ol.gap(problem), ol.simulate(problem, best.policy, 100, seed=1))
    info = ol.Information.seen(t=1, state=4, queue=(0, 0))
    print(best.q(info), ol.belief(problem, info).round(2), ol.sweep(mdp, losses=[0, 0.1, 0.2, 0.5]).values)


def planning() -> None:
    for problem in problems():
        print(problem)
        best = ol.solve(problem)
        print(best, best.value, best.policy, best.exact, best.value_by_start)
        print(ol.evaluate(problem, best.policy), ol.gap(problem))
        print(ol.simulate(problem, best.policy, 20, seed=1))
        best.policy.save("policy.npz")
        print(ol.load_policy("policy.npz"))
    late = ol.ImpairedMDP(MDP, ol.ConstantDelay(2), start=ol.WarmStart())
    info = ol.Information.seen(t=1, state=1, queue=(0, 1))
    print(ol.solve(late).q(info), ol.belief(late, info), ol.Layout.of(late))
    print(ol.sweep(MDP, delays=range(3)).values, ol.sweep(MDP, losses=[0, 0.2]).values)
    print(ol.solve(late, depth=1), ol.truncate(ol.ImpairedMDP(MDP, ol.GeometricDelay(0.5)), 0.2))
    print(
        ol.evaluate(late, ol.FunctionPolicy(lambda info: 0, 2)),
        ol.evaluate(late, ol.BeliefPolicy(late, lambda t, b: int(b[2] > 0.4))),
    )
    print(ol.solve(ol.ImpairedMDP(MDP, ol.Loss(rate=0.2)), tolerance=0.05))
    print(ol.simulate(ol.ImpairedMDP(MDP, ol.BurstyLoss(0.2, 0.5)), ol.FunctionPolicy(lambda info: 0, 2), 5, seed=1))


def models() -> None:
    from oldlight.planning.augmented import augmented
    from oldlight.planning.heuristics import memoryless, most_likely, open_loop, qmdp

    late = ol.ImpairedMDP(MDP, ol.ConstantDelay(1))
    print(augmented(late))
    for rule in (qmdp, most_likely, memoryless, open_loop):
        print(rule, ol.evaluate(late, rule(late)).value)
    MDP.save("mdp.npz")
    print(ol.TabularMDP.load("mdp.npz"), ol.TabularMDP.discounted(P, R, discount=0.5, tolerance=0.1), ol.wifi())
    print(ol.TabularMDP.from_gymnasium("FrozenLake-v1", 4))
    for process in (ol.instances.center_chain(0.9), ol.instances.dichotomy(1, 4), ol.instances.sensing_chain(0.8)):
        print(process)


def learning() -> None:
    late, lossy = ol.ImpairedMDP(MDP, ol.ConstantDelay(1), start=ol.WarmStart()), ol.ImpairedMDP(MDP, ol.Loss(rate=0.3))
    random = ol.ImpairedMDP(MDP, ol.GeometricDelay(0.7).capped(2))
    make = ol.learners
    runs = []
    for learner in (
        make.DelayedUCBVI(), make.DelayedUCBVI(pooled=True), make.DelayedUCBVI(bonus="hoeffding"), make.DelayedUCBVI(planning="greedy"),
        make.DelayedUCBVI(planning="doubling"), make.PosteriorSampling(), make.PosteriorSampling(pooled=True), make.AugmentedUCBVI(),
        make.AugmentedUCBVI(pooled=True), make.AugmentedQLearning(), make.AugmentedQLearning(pooled=True), make.MemorylessUCBVI(),
        make.MemorylessUCBVI(aligned=True), make.MemorylessQLearning(), make.UniformRandom(),
    ):  # fmt: skip
        runs.append(ol.learn(late, learner, 8, seed=1))
        print(runs[-1], runs[-1].regret)
    print(ol.learn(random, make.DelayedUCBVI(), 5, seed=1).values)
    for learner in (
        make.OptimisticPlanning(),
        make.OptimisticPlanning(oracle="bonus"),
        make.LossUCBVI(),
        make.PosteriorSampling(),
    ):
        print(ol.learn(lossy, learner, 5, seed=1).values)
    print(ol.compare(runs[:2]))
    runs[0].save("run.npz")
    print(ol.LearningRun.load("run.npz"))
    print(ol.learn(late, make.DelayedUCBVI(), 6, seed=1, checkpoint="learning.npz"))


def environments() -> None:
    import gymnasium as gym

    from oldlight.envs import AugmentedObservation, ImpairedObservation, learn_in, play

    chain = gym.make("oldlight/SensingChain-v0", channel="constant:1", render_mode="ansi")
    chain.reset(seed=1)
    chain.step(1)
    print(chain.render(), play(chain, ol.FunctionPolicy(lambda info: 0, 5), 3, seed=0))
    lake = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=4), "constant:1")
    learn_in(lake, ol.learners.UniformRandom(), 2, seed=1)
    for link in ("constant:1", "geometric:0.5", "constant:1+loss:0.2"):
        cart = AugmentedObservation(ImpairedObservation(gym.make("CartPole-v1"), link, queue=3))
        cart.reset(seed=1)
        for _ in range(6):
            cart.step(cart.action_space.sample())
        envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=2, channel=link)
        envs.reset(seed=1)
        for _ in range(12):
            envs.step(envs.action_space.sample())


def control() -> None:
    for link in (ol.ConstantDelay(1), ol.Loss(rate=0.3), ol.GeometricDelay(0.6).capped(2)):
        problem = ol.ImpairedMDP(MDP, link)
        ol.Controller(problem, ol.solve(problem).policy).save("controller.npz")
        controller = ol.Controller.load("controller.npz")
        controller.reset()
        for tick in range(MDP.horizon):
            if tick >= 1:
                controller.observe(tick - 1, 1)
            controller.act()
        print(controller.report())


def statements() -> None:
    try:
        from oldlight import paper
        from oldlight.paper.counterexamples import mirror
    except ImportError:  # its name before
        from oldlight.theory.counterexamples import mirror

        from oldlight import theory as paper
    late, lossy = ol.ImpairedMDP(MDP, ol.ConstantDelay(1)), ol.ImpairedMDP(MDP, ol.Loss(rate=0.2))
    first = ol.FunctionPolicy(lambda info: 0, 2)
    for claim in (
        paper.proposition1(late, first), paper.proposition2(1, 2, 2), paper.proposition3([(1, 2), (-1, 2)]), paper.proposition4(mirror(2)),
        paper.proposition4_repaired(late), paper.proposition4_ties(late), paper.proposition5_short(2), paper.proposition5_long(2, 20, 0.1),
        paper.monotone_in_delay(MDP, range(3)), paper.monotone_in_loss(MDP, [0.0, 0.5]), paper.lambda_hat([0.8, 0.8], 20, 0.1),
        paper.theta_hat(0.5, 20, 0.1, S=2, A=2, H=3, D=2), paper.p_hat(0.5, 20, 0.1, S=2, A=2, H=3, D=2), paper.pigeonhole(np.ones((2, 2, 2))),
        paper.total_variation(5, [0.2, 0.8], 0.4), paper.round_robin(lossy, first, 10, 0.1), paper.optimism(late, 5),
        paper.optimism_missing(lossy, 5), paper.optimism_planning(lossy, 5), paper.estimates(lossy, 5), paper.proposition6(20),
    ):  # fmt: skip
        print(claim)


def links() -> None:
    rng = np.random.default_rng(5)
    sent = np.arange(2_000) * 20.0
    received = sent + 8 + rng.gamma(2.0, 6.0, size=len(sent))
    received[rng.random(len(sent)) < 0.04] = np.nan
    rows = (f"{s:.1f},{'' if np.isnan(r) else f'{r:.1f}'}" for s, r in zip(sent, received, strict=True))
    Path("link.csv").write_text("\n".join(["sent_ms,received_ms", *rows]) + "\n", encoding="utf-8")
    fit = ol.read_trace("link.csv").fit(20.0)
    print(fit, fit.with_deadline(1))
    fit.save("link.json")
    fit.figure().savefig("trace.png")
    problem = ol.ImpairedMDP(MDP, fit.with_deadline(1))
    print(ol.run_testbed(problem, ol.solve(problem).policy, episodes=3, seed=2, timeout=300))


def study() -> None:
    Path("study.toml").write_text(
        'name = "small"\nseed = 1\nseeds = 2\nepisodes = 6\nevery = 2\nstart = "warm"\ninstances = [{name = "dichotomy", d = 1, horizon = 3}]\n'
        'channels = ["constant:1"]\nlearners = ["DelayedUCBVI", "UniformRandom"]\ntasks = ["gap"]\n',
        encoding="utf-8",
    )
    command("run", "study.toml", "--out", "runs", "--workers", "1")
    command("status", "runs")
    command("report", "runs")


def commands() -> None:
    command("list")
    MDP.save("small.npz")
    command("gap", "small.npz", "--warm", "-c", "constant:1", "-c", "loss:0.2", "--terms", "--json", "gap.json")
    command("plan", "small.npz", "-c", "constant:1", "--save", "best.npz", "--controller", "plan.npz")
    command("simulate", "small.npz", "-c", "constant:1", "--policy", "best.npz", "-n", "50")
    command(
        "learn",
        "small.npz",
        "--warm",
        "-c",
        "constant:1",
        "-l",
        "DelayedUCBVI",
        "-l",
        "UniformRandom",
        "-n",
        "6",
        "--plot",
        "r.png",
    )
    command("trace", "link.csv", "--period-ms", "20", "--deadline", "1", "--channel", "channel.json")


def paper() -> None:
    command("paper", "--quick", "--out", "paper")


def main(kind: str, folder: Path) -> None:
    if kind == "tiny":
        for job in (readme, planning, models, learning, environments, control, statements, links, study, commands):
            print(f"== {job.__name__}", flush=True)
            job()
        return
    guides = folder / "docs" / "guides"
    sys.path.insert(0, str(guides))
    for name in ("researcher", "engineer", "practitioner"):
        print(f"== {name}", flush=True)
        runpy.run_path(str(guides / f"{name}.py"))["main"](Path(name))
    print("== paper", flush=True)
    paper()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
