"""One episode, step by step: the truth, what has arrived, what is under way, the queue, the belief, every action's Q, and who would do what.

The episode is played by the optimum: that of `oldlight.simulate(problem, policy, 1, seed=seed, record=True)`, or on a recording one of
`oldlight.replay` from the starting point number seed·`STRIDE`. At every time the heuristics are asked with what the optimum knew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.episode import Episode
from oldlight.model.information import belief, current
from oldlight.model.link_information import LinkInformation, PolicyOfNodes, ages_of
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import Solution
from oldlight.planning.heuristics import memoryless, most_likely, qmdp
from oldlight.simulation.episodes import simulate
from oldlight.simulation.link_episodes import LinkEpisodes, by_automaton
from oldlight.traces import Trace
from oldlight.traces.replay import Player, recorded, starting_points
from oldlight.traces.ticks import NEVER

Ints = NDArray[Any]
STRIDE = 7919  # a prime: seeds spread over the recording
HEURISTICS = {"most_likely": most_likely, "qmdp": qmdp, "memoryless": memoryless}
LARGEST = 2**31 - 1  # seed


def episode_view(
    solution: Solution, seed: int, trace: Trace | None = None, period_ms: float | None = None
) -> dict[str, Any]:
    """The episode of this seed as plain data: `steps`, one entry for each time h, and what is the same for all."""
    problem = solution.problem
    began: float | None = None
    if trace is None:
        states, actions, arrivals, infos = _simulated(problem, solution.policy, seed)
    else:
        states, actions, arrivals, infos, began = _on_recording(problem, solution.policy, seed, trace, period_ms)
    others = {name: make(problem) for name, make in HEURISTICS.items()}
    steps: list[dict[str, Any]] = []
    for h, info in enumerate(infos):
        i = h + problem.warmup
        q = np.asarray(solution.q(info) if trace is None else _q(solution, info))
        steps.append({
            "h": h,
            "state": int(states[i]),
            "action": int(actions[i]),
            "reward": float(problem.mdp.rewards[h, states[i], actions[i]]),
            "arrived": [j - problem.warmup for j in range(i + 1) if arrivals[j] == h],
            "seen": None if info.t is None else {"step": int(info.t), "state": int(info.state)},
            "queue": [int(a) for a in info.queue],
            "belief": [round(float(b), 6) for b in (belief(problem, info) if trace is None else current(problem, info))],
            "q": [float(x) if np.isfinite(x) else None for x in q],
            "others": {name: _choice(problem, policy, info) for name, policy in others.items()},
        })  # fmt: skip
    return {
        "seed": seed,
        "warmup": problem.warmup,
        "states": [int(s) for s in states],
        "arrivals": [int(a) for a in arrivals],
        "return": float(sum(step["reward"] for step in steps)),
        "began": began,
        "steps": steps,
    }


def _choice(problem: ImpairedMDP, policy: Any, info: Any) -> int | None:
    """What a heuristic does; None where what the optimum knew does not tell at which node of the link the heuristic would be."""
    if isinstance(policy, PolicyOfNodes) and not isinstance(info, LinkInformation):
        age = None if info.t is None else info.h - info.t
        here = [n for n, m in ages_of(problem.automaton, info.h) if m == age]
        if len(here) != 1:
            return None
        info = LinkInformation(info.h, problem.automaton.nodes[here[0]], info.t, info.state, tuple(info.queue))
    return int(np.argmax(policy.probabilities(info)))


def _simulated(problem: ImpairedMDP, policy: Any, seed: int) -> tuple[Ints, Ints, Ints, list[Any]]:
    if by_automaton(problem, policy):
        world = LinkEpisodes(problem, policy)
        _, _, _, states, actions, arrivals = world.play(seed, 0, 1)
        return states[:, 0], actions[:, 0], arrivals[:, 0], list(world.asked)
    played = simulate(problem, policy, 1, seed=seed, record=True)
    states, actions, arrivals = (column[0] for column in played.record)
    episode = Episode(states, actions, arrivals, np.zeros(len(states)), problem.warmup)
    return states, actions, arrivals, [episode.information(h) for h in range(problem.horizon)]


def _on_recording(
    problem: ImpairedMDP, policy: Any, seed: int, trace: Trace, period_ms: float | None
) -> tuple[Ints, Ints, Ints, list[Any], float]:
    runs, period = recorded(trace, period_ms, False)
    begins, at = starting_points(runs, problem.horizon, trace.source, period)
    place = seed * STRIDE % len(begins)
    player = Player(problem, policy, runs)
    played = player.play(begins[[place]], seed, 0)
    arrivals = np.where(played.arrivals[:, 0] >= NEVER, -1, played.arrivals[:, 0])
    seconds = float(at[place]) * period / 1000
    return played.states[:, 0], played.actions[:, 0], arrivals, list(player.asked), seconds


def _q(solution: Solution, info: Any) -> Any:
    """Q-values where the recording led; none where the plan's link cannot lead there."""
    try:
        return solution.q(info)
    except (ValueError, KeyError):
        return np.full(solution.problem.n_actions, np.nan)
