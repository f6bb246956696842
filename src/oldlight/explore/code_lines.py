"""The Python lines that make the same numbers as a part of the page."""

from __future__ import annotations

from oldlight.explore.menu import GIVEN, OLDEST, RECORDING, Menu
from oldlight.explore.positions import Position
from oldlight.model.mdp import TabularMDP
from oldlight.registry import INSTANCES

POLICY_EPISODES = 2000


def _first_steps(mdp: TabularMDP, horizon: int) -> str:
    return f"[mdp.matrix(h) for h in range({horizon})]" if mdp.sparse else f"mdp.transitions[:{horizon}]"


def problem_lines(menu: Menu, position: Position, *, shape: bool = True) -> list[str]:
    """`mdp`, and `problem` behind its link; shape: with the horizon and the discount of the position."""
    lines = ["import oldlight as ol", *_process(position.plant)]
    mdp = menu.plants[position.plant].mdp
    if shape and position.horizon != mdp.horizon:
        lines.append(
            f"mdp = mdp.replace(horizon={position.horizon})"
            if mdp.stationary
            else f"mdp = mdp.replace(transitions={_first_steps(mdp, position.horizon)}, rewards=mdp.rewards[:{position.horizon}], "
            f"horizon={position.horizon})"
        )
    if shape and position.discount < 1:
        lines[1:1] = ["import numpy as np"]
        lines.append(
            f"mdp = mdp.replace(rewards={position.discount!r} ** np.arange({position.horizon})[:, None, None] * mdp.rewards)"
        )
    start = ', start="warm"' if position.start == "warm" else ""
    lines += [*_link(menu, position), f"problem = ol.ImpairedMDP(mdp, link{start})"]
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    return [*imports, "", *(line for line in lines if line not in imports)]


def _process(name: str) -> list[str]:
    kind, _, rest = name.partition(":")
    if kind in INSTANCES:
        return [f"mdp = ol.instances.{kind}({', '.join(rest.split(',')) if rest else ''})"]
    return ["from oldlight.registry import mdp_of", f"mdp = mdp_of({name!r})"]


def _link(menu: Menu, position: Position) -> list[str]:
    if position.link == GIVEN:
        return [f'link = "{menu.link_text}"']
    if position.link == RECORDING:
        return [
            f"trace = ol.read_trace({menu.trace_file!r})",
            f"fitted = trace.fit({position.period_ms:g}, horizon={position.horizon})",
            f"link = fitted.age_chain(horizon={position.horizon}, oldest={OLDEST})",
        ]
    return ["from oldlight.planning.impairments import link_of", f"link = link_of({position.levels})"]


def optimum_lines(menu: Menu, position: Position, seconds: float | None) -> str:
    """The value of the optimum, and the price of the link."""
    limit = "" if seconds is None else f", seconds={seconds:g}"
    return _text(problem_lines(menu, position), [
        f"best = ol.solve(problem{limit})",
        "print(best.value, best.lower, best.upper)",
        f"print(ol.gap(problem{limit}).gap)  # what seeing everything at once would be worth more",
    ])  # fmt: skip


def curve_lines(menu: Menu, position: Position, name: str, levels: list[float]) -> str:
    """The value along one slider."""
    if name in ("horizon", "discount"):
        shape = {"horizon": str(position.horizon), "discount": f"{position.discount!r}"} | {name: "x"}
        head = problem_lines(menu, position, shape=False)
        make = [
            "from oldlight.explore.positions import shaped",
            f"for x in {levels}:",
            f"    process = shaped(mdp, {shape['horizon']}, {shape['discount']})",
            f"    print(x, ol.solve(ol.ImpairedMDP(process, link{_start(position)})).value)",
        ]
        return _text([line for line in head if not line.startswith("problem =")], make)
    key = {"burst": "blackout", "period": "sensor_period"}.get(name, name)
    level = "x / 100" if name == "loss" else "x"
    head = [line for line in problem_lines(menu, position) if not line.startswith(("problem =", "link ="))]
    return _text(head, [
        f"for x in {levels}:",
        f"    link = link_of({position.levels} | {{{key!r}: {level}}})",
        f"    print(x, ol.solve(ol.ImpairedMDP(mdp, link{_start(position)})).value)",
    ])  # fmt: skip


def frontier_lines(menu: Menu, position: Position, across: list[float], up: list[float]) -> str:
    """The map over delay and loss."""
    head = [line for line in problem_lines(menu, position) if not line.startswith(("problem =", "link ="))]
    return _text(head, [
        f"for q in {up}:",
        f"    row = [link_of({position.levels} | {{'delay': d, 'loss': q / 100}}) for d in {across}]",
        f"    print(q, [ol.solve(ol.ImpairedMDP(mdp, link{_start(position)})).value for link in row])",
    ])  # fmt: skip


def need_lines(menu: Menu, position: Position, target: int, delays: list[int]) -> str:
    """The certified frontier."""
    head = [
        line
        for line in problem_lines(menu, position)
        if not line.startswith(("problem =", "link =")) and "link_of" not in line
    ]
    others = {name: level for name, level in position.levels.items() if name not in ("delay", "loss")}
    return _text(head, [
        f"for d in {[d for d in delays if d >= position.jitter]}:",
        f"    found = ol.requirement(mdp, target='{target}%', over='loss', at={others} | {{'delay': d}}{_start(position)})",
        "    print(d, found.answer, found.status)",
    ])  # fmt: skip


def policy_lines(menu: Menu, position: Position) -> str:
    """What the optimum does, counted in played episodes."""
    return _text(problem_lines(menu, position), [
        "from oldlight.explore.answers import actions_seen",
        "best = ol.solve(problem)",
        f"played = ol.simulate(problem, best.policy, {POLICY_EPISODES}, seed=0, record=True)",
        "counts = actions_seen(played, mdp)  # [time, newest visible state, action]",
        "print(counts.argmax(axis=2))",
        "print(played.ages / played.ages.sum(axis=1, keepdims=True))  # how old the newest visible state is; last: nothing seen",
    ])  # fmt: skip


def episode_lines(menu: Menu, position: Position, seed: int) -> str:
    """The states, actions and arrivals of the episode on the page."""
    lines = ["best = ol.solve(problem)"]
    if position.link == RECORDING:
        lines += [
            "from oldlight.traces.replay import Player, recorded, starting_points",
            f"runs, period = recorded(trace, {position.period_ms:g}, False)",
            "begins, at = starting_points(runs, problem.horizon, trace.source, period)",
            f"begin = begins[[{seed} * 7919 % len(begins)]]",
            f"played = Player(problem, best.policy, runs).play(begin, {seed}, 0)",
            "print(played.states[:, 0], played.actions[:, 0], played.returns[0])",
        ]
    else:
        lines += [
            f"played = ol.simulate(problem, best.policy, 1, seed={seed}, record=True)",
            "print(played.states[0], played.actions[0], played.arrivals[0], played.returns[0])",
        ]
    return _text(problem_lines(menu, position), lines)


def _start(position: Position) -> str:
    return ', start="warm"' if position.start == "warm" else ""


def _text(head: list[str], lines: list[str]) -> str:
    imports = [line for line in lines if line.startswith("from ")]
    at = head.index("") if "" in head else 0
    rest = [line for line in lines if line not in imports]
    return "\n".join([*head[:at], *imports, *head[at:], *rest])
