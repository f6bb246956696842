"""What it costs to learn a link with hidden modes as a chain of ages: `LinkLearner(law="estimated")` behind `HiddenLink`.

    python docs/scripts/hidden_link.py [EPISODES] [SEEDS]

A hidden mode is known from everything that was seen, an age chain keeps the age alone. Two losses, apart from each other: (1) *for ever*: the age chain is counted in 5,000 episodes, the known process is
planned behind it, and the plan is valued on the true link, beside the best plan for the true link; (2) *while learning*: the regret of `default()` with the law known and with
the law estimated, both against the best executable policy of the true link.
"""

from __future__ import annotations

import sys

import numpy as np

import oldlight as ol
from oldlight.learners import learn, recorded_episodes
from oldlight.learners.base import Setting
from oldlight.learners.learnt_plan import LearntPlan
from oldlight.learners.link_counts import AgeCounts
from oldlight.learners.optimistic_model import Estimated
from oldlight.planning.group_walk import group_value

COUNTED = 5_000  # episodes
LINKS = {
    "late or lost, for a whole episode": ol.HiddenLink([[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.0]]),
    "packets with losses in bursts": ol.HiddenLink([[0.9, 0.1], [0.5, 0.5]], [[0.8, 0.2], [0.0, 0.0]]),
    "good and bad times": ol.HiddenLink([[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.3]]),
}


def by_age(problem: ol.ImpairedMDP) -> float:
    """The value on the true link of the plan for the true process behind the counted age chain."""
    setting = Setting.of(problem, COUNTED, 0.1, None)
    planner = LearntPlan(setting, "estimated", 1e-4)
    ages = AgeCounts(planner.automaton)
    played = ol.simulate(problem, ol.solve(problem).policy, COUNTED, seed=1, record=True)
    for episode in recorded_episodes(problem, played):
        ages.add(episode)
    P = problem.mdp.transitions
    known = Estimated(P[None] if P.ndim == 3 else np.asarray(P), np.array(problem.mdp.rewards))
    policy, *_ = planner.plan(known, ages.automaton(), ages)
    found = group_value(problem, policy)
    assert found is not None
    return found[0]


def main(episodes: int, seeds: int) -> None:
    rng = np.random.default_rng(5)
    dense = ol.TabularMDP(rng.dirichlet(0.3 * np.ones(5), size=(5, 3)), rng.random((5, 3)), horizon=6)
    processes = {"sensing chain": ol.instances.sensing_chain(0.8, n_states=6, horizon=8), "dense": dense}
    print("| process | link | best | by age | lost for ever | regret, law known | regret, law estimated |")
    print("|---|---|---|---|---|---|---|")
    for process, mdp in processes.items():
        for name, link in LINKS.items():
            problem = ol.ImpairedMDP(mdp, link)
            best, aged = ol.solve(problem).value, by_age(problem)
            regret = {}
            for law in ("known", "estimated"):
                runs = [
                    learn(problem, ol.learners.default(law=law), episodes, seed=s, best=best, every=10, progress=False)
                    for s in range(seeds)
                ]
                regret[law] = np.mean([run.regret[-1] for run in runs])
            share = 100 * max(best - aged, 0.0) / best
            row = f"{best:.4f} | {aged:.4f} | {share:.2f} % | {regret['known']:.1f} | {regret['estimated']:.1f}"
            print(f"| {process} | {name} | {row} |", flush=True)


if __name__ == "__main__":
    main(*(int(x) for x in (sys.argv[1:] + ["300", "3"][len(sys.argv) - 1 :])))
