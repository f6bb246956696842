"""The paper's study (Section 6), and what the paper has no experiment for, as one study that `run_study` runs.

Blocks, each a product of instances, channels and learners or tasks (see `oldlight.studies.spec`):

    figure      the regret figure: Algorithm 1 as the paper has it on Env1 and Env2 behind constant delays 0, 1, 2 and Bernoulli
                interarrivals p = 0.9, 0.7, 0.5, 0.3, 3 seeds; the delay law is estimated
    printed     the same with the printed divisor of the delay bonus, where a delay is random (else there is no such bonus)
    known law   the same with the delay law known, where a delay is random
    fixed D     the same with 1 in the place of H∧D in the bonus, where H∧D > 1: how much of the growth with delay the bonus makes
    sensing     the figure on the sensing chain, where it matters what one sees
    table       Table 1: constant delays 1..4 and the four stochastic laws; the paper's Monte-Carlo protocol (5 repetitions of
                10,000 episodes from the past) and the exact gap; on the paper's chains and on the sensing chain
    loss        Algorithms 2 and 3 under loss
    learners    all learners against each other on the sensing chain, constant delays 0 to 3, 5 seeds (`quick`: delay 2, 3 seeds)
    price       the exact price of delay and of loss
    late+lossy  the price over (delay, loss rate)

The paper does not print its number of episodes K nor its constant c. Ours: K = 10,000 (`quick`: 400); for Algorithm 1 the constant
that `docs/scripts/tune.py` takes for it on constant and stochastic delays, else the default constants of the learners; all were
chosen on other processes (docs/learning.md). The bonus is c·H·√((H∧D)·ι/N), so a bonus with 1 in the place of H∧D is the same one
with c/√(H∧D): no option is needed for it. A constant delay starts warm, from a known past, as in
Section 6; a stochastic delay starts with d_1 = 0, which leaves nothing to know of the past; delay with loss starts cold.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

NAME = "the paper's study"
CONSTANT = (0, 1, 2)
BERNOULLI = (0.9, 0.7, 0.5, 0.3)
BERNOULLI_STEPS = 3  # Δ ∈ {0, 1} at so many steps, then 0: the longest delay
TABLE = (1, 2, 3, 4)
CHAINS = [
    {"name": "center_chain", "p": 0.99, "label": "Env1"},
    {"name": "center_chain", "p": 0.8, "label": "Env2"},
]
SENSING = [
    {"name": "sensing_chain", "p": 0.99, "label": "sensing chain, p = 0.99"},
    {"name": "sensing_chain", "p": 0.8, "label": "sensing chain, p = 0.8"},
]
HORIZON = 10  # of every chain here
C = 0.005  # docs/scripts/tune.py
ALGORITHM_1: dict[str, Any] = {
    "name": "DelayedUCBVI",
    "bonus": "hoeffding",
    "clip": "H",
    "law": "estimated",
    "divisor": "at risk",
    "c": C,
    "label": "Algorithm 1",
}
PRINTED_DIVISOR = ALGORITHM_1 | {"divisor": "printed", "label": "Algorithm 1, printed divisor"}
KNOWN_LAW = ALGORITHM_1 | {"law": "known", "label": "Algorithm 1, law known"}
LEARNERS: list[dict[str, Any]] = [
    {"name": "DelayedUCBVI", "label": "DelayedUCBVI"},
    {"name": "DelayedUCBVI", "pooled": True, "label": "DelayedUCBVI, pooled"},
    {"name": "DelayedUCBVI", "bonus": "hoeffding", "label": "DelayedUCBVI, paper's bonus"},
    {"name": "PosteriorSampling", "label": "PosteriorSampling"},
    {"name": "PosteriorSampling", "pooled": True, "label": "PosteriorSampling, pooled"},
    {"name": "AugmentedUCBVI", "label": "AugmentedUCBVI"},
    {"name": "AugmentedUCBVI", "pooled": True, "label": "AugmentedUCBVI, pooled"},
    {"name": "AugmentedQLearning", "label": "AugmentedQLearning"},
    {"name": "AugmentedQLearning", "pooled": True, "label": "AugmentedQLearning, pooled"},
    {"name": "MemorylessUCBVI", "label": "MemorylessUCBVI"},
    {"name": "MemorylessUCBVI", "aligned": True, "label": "MemorylessUCBVI, aligned"},
    {"name": "MemorylessQLearning", "label": "MemorylessQLearning"},
    {"name": "UniformRandom", "label": "UniformRandom"},
]
UNDER_LOSS = [
    {"name": "OptimisticPlanning", "oracle": "bonus", "label": "Algorithm 2 (bonus oracle)"},
    {"name": "LossUCBVI", "label": "Algorithm 3"},
]
RATES = (0.95, 0.8, 0.5)
LOSSES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
HEAT = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def constant(d: int) -> dict[str, Any]:
    return {"kind": "constant", "d": d, "label": "no delay" if d == 0 else f"delay {d}"}


def bernoulli(p: float) -> dict[str, Any]:
    return {"kind": "bernoulli", "p_zero": p, "steps": BERNOULLI_STEPS, "label": f"p = {p}"}


def window(channel: dict[str, Any]) -> int:
    """H∧D, D = the longest delay + 1."""
    return min(HORIZON, 1 + (channel["d"] if channel["kind"] == "constant" else BERNOULLI_STEPS))


def fixed_window(channel: dict[str, Any]) -> dict[str, Any]:
    """Algorithm 1 with 1 in the place of H∧D in its bonus."""
    return ALGORITHM_1 | {"c": C / math.sqrt(window(channel)), "label": "Algorithm 1, 1 for H∧D in the bonus"}


def lost(rate: float) -> dict[str, Any]:
    return {"kind": "loss", "rate": rate, "label": f"{rate:.0%} lost"}


def late_and_lossy(d: int, rate: float) -> dict[str, Any]:
    label = f"{d}; {rate}"
    if d == 0:
        return {"kind": "loss", "rate": rate, "label": label}
    return {"kind": "lossy", "delay": {"kind": "constant", "d": d}, "rate": rate, "label": label}


def regret_blocks(sensing: list[dict[str, Any]], size: dict[str, Any]) -> list[dict[str, Any]]:
    """The regret figure, its variants, and the figure on the sensing chain."""
    late, random = [constant(d) for d in CONSTANT], [bernoulli(p) for p in BERNOULLI]
    blocks: list[dict[str, Any]] = []
    for name, instances in (("figure", CHAINS), ("sensing", sensing)):
        regret = size | {"name": name, "instances": instances, "learners": [ALGORITHM_1]}
        blocks += [regret | {"channels": late, "start": "warm"}, regret | {"channels": random}]
    for name, learner in (("printed", PRINTED_DIVISOR), ("known law", KNOWN_LAW)):
        blocks.append(size | {"name": name, "instances": CHAINS, "learners": [learner], "channels": random})
    for channel in [*late, *random]:
        if window(channel) > 1:
            start = {"start": "warm"} if channel in late else {}
            blocks.append(
                size
                | start
                | {"name": "fixed D", "instances": CHAINS, "learners": [fixed_window(channel)], "channels": [channel]}
            )
    return blocks


def paper_study(quick: bool = False, *, episodes: int | None = None) -> dict[str, Any]:
    """The keys of the study, as `load_study` takes them; `episodes` replaces the K of every learner."""
    K, seeds, every = (400, 3, 20) if quick else (10_000, 3, 10)
    few_episodes = 300 if quick else 4_000  # under loss an episode takes longer
    if episodes is not None:
        K = few_episodes = episodes
    blocks = regret_blocks(SENSING[1:] if quick else SENSING, {"episodes": K, "seeds": seeds})
    tasks = ["gap", {"name": "simulate", "episodes": 10_000}]
    for channels, start in (([constant(d) for d in TABLE], "warm"), ([bernoulli(p) for p in BERNOULLI], "cold")):
        blocks.append({"name": "table", "instances": CHAINS + SENSING, "channels": channels, "start": start,
                       "tasks": tasks, "seeds": 5})  # fmt: skip
    chain = SENSING[1:]
    blocks.append({
        "name": "loss", "instances": chain, "channels": [{"kind": "loss", "seen": x, "label": f"λ = {x}"} for x in RATES],
        "learners": UNDER_LOSS, "episodes": few_episodes, "seeds": 2 if quick else 3,
    })  # fmt: skip
    few = [x for x in LEARNERS if x["label"] not in SLOW] if quick else LEARNERS
    blocks.append({
        "name": "learners", "instances": chain, "channels": [constant(d) for d in ((2,) if quick else range(4))],
        "learners": few, "episodes": K, "seeds": 3 if quick else 5, "start": "warm",
    })  # fmt: skip
    blocks += [
        {"name": "price", "instances": SENSING, "channels": [constant(d) for d in range(7)], "start": "warm", "tasks": ["gap"]},
        {"name": "price", "instances": SENSING, "channels": [lost(x) for x in LOSSES], "start": "warm",
         "tasks": [{"name": "gap", "tolerance": 1e-6}]},
        {"name": "late+lossy", "instances": chain, "tasks": [{"name": "gap", "tolerance": 1e-3}],
         "channels": [late_and_lossy(d, x) for d in range(4 if quick else 5) for x in HEAT]},
    ]  # fmt: skip
    return {"name": NAME + (", quick" if quick else ""), "seed": 2023, "every": every, "blocks": blocks}


# not in the demo
SLOW = ("PosteriorSampling", "DelayedUCBVI, paper's bonus", "AugmentedQLearning", "MemorylessQLearning")


def command_of(name: str) -> tuple[str, Path]:
    """The command that runs the paper's study of this name, and the folder that it writes to if no other is given."""
    quick = name != NAME
    return "oldlight paper" + quick * " --quick", Path("runs") / ("paper" + quick * "-quick")
