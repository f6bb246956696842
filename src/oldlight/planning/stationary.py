"""Planning for ever: one stationary policy, with certified bounds on what it earns and on what can be earned.

1. The link without a horizon (`oldlight.model.channels.endless`), and its tables of depth D, from the longest delay on, iterated to their fixed point
   between two bounds (`oldlight.planning.stationary_tables`). Where no observation can be older than D that is the plan: its greedy policy earns at
   least the lower bound.
2. Else (loss, delays that only grow, merged laws) the tables bound from above. The policy acts by them up to age D, on the law of the state beyond, and
   what it earns is found on the chain of information states that it reaches (`oldlight.planning.stationary_walk`): the lower bound.
3. While upper − lower is more than the tolerance, D grows by one, started from the tables before, as long as the tables stay small; `solve` then returns
   what is certified. A tolerance of 0 means 1e-9 (tables alone) or 1e-6 of max|r|/(1−u), of max|r| for the average.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.endless import EndlessLink, endless, endless_merging_error, growing_link, grows, is_closed
from oldlight.model.held_steps import HeldSteps, certain
from oldlight.model.link_information import LinkInformation
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.model.stationary_policy import StationaryPolicy
from oldlight.planning.link_plan import kept_actions, with_actions
from oldlight.planning.solution import PlanOptions, Solution, Work
from oldlight.planning.stationary_tables import EndlessPlant, EndlessTables
from oldlight.planning.stationary_walk import END, PolicyChain, chain_value, silence
from oldlight.progress import progress_bar

FINE, COARSE = 1e-9, 1e-6  # of the scale: what a tolerance of 0 means for tables alone, and where more is needed
DEEPER = 2**19  # entries up to which deeper tables are tried
FURTHER = 4  # ages beyond the depth that a policy counts along behind delays that only grow
REACHED = 60_000  # information states up to which a policy is valued by its chain
HELD = 8 * 19  # bytes for each entry: two tables, six pairs of them to extrapolate from, and what is in between
FAINT = 1e-7  # the discount of a delay below which tables measured at their own step say too little
LONGEST = 400  # ages up to which a policy acts on a law


def scale_of(mdp: TabularMDP) -> float:
    """What values are measured by: max|r|/(1−u), or max|r| for the average."""
    largest = float(np.abs(mdp.rewards).max()) or 1.0
    return largest if mdp.discount is None else largest / (1.0 - mdp.discount)


def solve_forever(problem: ImpairedMDP, asked: PlanOptions) -> Solution:
    """The best stationary policy that was found, with its certificate; `value` is `lower`."""
    plan = ForeverPlan(problem, asked.tolerance, asked.seconds, asked.max_bytes)
    try:
        with progress_bar(asked.progress, "planning") as callback:
            plan.run(asked.depth, callback)
    except KeyboardInterrupt as stopped:
        stopped.partial = plan.solution() if plan.policy is not None else None  # type: ignore[attr-defined]
        raise
    return plan.solution()


class ForeverPlan:
    """See the module's text; after `run`, and when it is interrupted after the first tables: lower ≤ optimum ≤ upper."""

    def __init__(self, problem: ImpairedMDP, tolerance: float, seconds: float | None, max_bytes: int | None) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.limit = default_limit() if max_bytes is None else max_bytes
        self.seconds, self.began = seconds, time.perf_counter()
        mdp = problem.mdp
        self.scale = scale_of(mdp)
        self.kept, self.number = kept_actions(mdp)
        pending = tuple(int(self.number[a]) for a in problem.pending)
        self.plant = EndlessPlant(with_actions(mdp, self.kept), problem.initial, pending)
        self.lower, self.upper = -np.inf, np.inf
        self.policy: StationaryPolicy | None = None
        self.made: EndlessTables | None = None  # of the policy
        self.starts: Floats | None = None
        self.entries = self.states = self.bytes = self.sweeps = 0

    def left(self) -> float:
        """Seconds."""
        return np.inf if self.seconds is None else self.seconds - (time.perf_counter() - self.began)

    def run(self, depth: int | None, progress: Callable[[int, int], None] | None) -> ForeverPlan:
        problem, k = self.problem, self.problem.actuation
        growing = grows(problem.channel)
        link = None if growing else endless(problem.channel)
        least = k + 1 if link is None else link.automaton.longest + k
        D, before = least if depth is None else max(depth, least), None
        while True:
            here = endless(problem.channel, D - k) if link is None else link
            made = self._tables(here.automaton.shifted(k), D, before, progress, first=before is None)
            self._take(here, made)
            wanted = self.tolerance or (COARSE if made.beyond or here.growing else FINE) * self.scale
            if depth is not None or not (made.beyond or here.growing) or self.upper - self.lower <= wanted:
                return self
            size = self._size(D + 1) * len(here.automaton.nodes)
            if self.left() <= 0 or size > DEEPER or 40 * size > self.limit or made.spread > 10 * wanted:
                return self
            D, before = D + 1, made

    def _size(self, depth: int) -> int:
        return int(self.plant.mdp.n_states * self.plant.mdp.n_actions**depth)

    def _tables(
        self,
        automaton: ChannelAutomaton,
        depth: int,
        before: EndlessTables | None,
        progress: Callable[[int, int], None] | None,
        first: bool,
    ) -> EndlessTables:
        """The tables of one depth, refused before they are made if they are too large."""
        least, u = self._size(depth), self.plant.discount
        if u**depth < FAINT:
            raise ValueError(
                f"discount is {u:.12g}, and an action shows {depth} steps later at the earliest, when {u**depth:.3g} of a reward is left; what is "
                "over so soon is planned by its first steps: mdp.replace(horizon=H)"
            )
        if first:
            self._fits(depth, least, HELD * least)
        made = EndlessTables(self.plant, automaton, depth)
        self.entries = made.layers.size
        self.bytes = (HELD + action_type(made.layers.n_actions).itemsize) * made.layers.size
        if first:
            self._fits(depth, made.layers.size, self.bytes)
        wanted = self.tolerance / 4 or (COARSE / 10 if made.beyond else FINE) * self.scale
        guess = None if before is None else _deeper(before, made)
        return made.run_until(wanted, guess, stop=lambda: self.left() <= 0, progress=progress)

    def _fits(self, depth: int, entries: int, needed: int) -> None:
        if needed <= self.limit:
            return
        S, A = self.plant.mdp.n_states, self.plant.mdp.n_actions
        raise TooLarge(
            f"planning for ever behind {self.problem.channel!r} on S={S}, A={A} has {entries:,} information states up to age {depth} and needs "
            f"{format_bytes((HELD + 1) * entries)}; the limit is {format_bytes(self.limit)}. Ways out: a shorter delay "
            "(oldlight.CappedDelay), fewer states, raise max_bytes, or cut the process, mdp.replace(horizon=H), and plan "
            "with a ladder, oldlight.solve(problem, depth=k), or on a disk, scratch=FOLDER (plans for ever stay in memory)"
        )

    def _take(self, here: EndlessLink, made: EndlessTables) -> None:
        """The bounds and the policy of one depth, kept where they are better."""
        problem, average = self.problem, self.problem.mdp.average
        self.sweeps += made.sweeps
        up, low, starts = self._ends(made)
        error = endless_merging_error(here.automaton.merging, problem.mdp.rewards, problem.mdp.discount)
        upper = up + error
        if here.revealed is not None:
            k = problem.actuation
            told = EndlessTables(self.plant, here.revealed.shifted(k), made.layers.depth)
            upper = min(upper, self._ends(told.run_until(made.spread + COARSE / 10 * self.scale))[0])
        beyond = made.beyond or here.growing or here.true_link is not None
        policy = self._policy(here, made, beyond)
        if beyond:
            low, starts = self._walked(policy, low=-np.inf if average else low), None
        self.upper = min(self.upper, upper)
        if low > self.lower or self.policy is None:
            self.lower, self.policy, self.starts, self.made = low, policy, starts, made
        self.policy.arrays["bounds"][1:] = self.lower, self.upper
        self.policy.lower, self.policy.upper = self.lower, self.upper

    def _ends(self, made: EndlessTables) -> tuple[float, float, Floats | None]:
        """(upper, lower, lower per first state) of tables that are exact up to their bounds."""
        problem, warm = self.problem, self.problem.warmup
        ups = made.warm(made.up, warm) if warm else made.starts(made.up, keep=True)
        if made.average:
            return made.bounds[1], made.bounds[0], None
        lows = made.warm(made.low, warm) if warm else made.starts(made.low)
        return float(problem.initial @ ups), float(problem.initial @ lows), lows

    def _policy(self, here: EndlessLink, made: EndlessTables, beyond: bool) -> StationaryPolicy:
        problem, mdp, D = self.problem, self.problem.mdp, made.layers.depth
        expectations, rows = {}, {}
        if beyond:
            expectations = made.expectations()
            rows = {i: row for row, i in enumerate(expectations)}
        blocks = [(b.node, b.length, b.offset, rows.get(i, -1)) for i, b in enumerate(made.layers.blocks[0])]
        roots, flat = [], [np.zeros(0, made.actions.dtype)]
        for h, acts in enumerate(made.root_actions):
            for n, chosen in acts.items():
                roots.append((h, n, sum(map(len, flat))))
                flat.append(chosen)
        automaton = made.automaton
        reach = D
        if here.growing:
            reach = D + FURTHER
        elif beyond:
            left = 1.0 if mdp.discount is None else 1.0 - mdp.discount
            small = 0.01 * (self.tolerance / self.scale or COARSE) * left
            reach = D + silence(automaton, made.discount, LONGEST, small)
        width = max(len(self.kept) ** D, 1)
        rest = self._rest() if beyond else 0  # else no law is ever beyond its reach
        arrays: dict[str, NDArray[Any]] = _held_steps(mdp, beyond) | {
            "rewards": np.array(mdp.rewards[0]), "initial": np.array(problem.initial),
            "number": self.number, "kept": self.kept, "numbers": np.array([D, reach, int(self.kept[rest]), int(here.growing)]),
            "bounds": np.array([made.discount, self.lower, self.upper]), "blocks": np.array(blocks), "actions": made.actions,
            "roots": np.array(roots, dtype=np.int64).reshape(-1, 3), "root_actions": np.concatenate(flat),
            "expectations": np.array([*expectations.values()]).reshape(-1, mdp.n_states, width),
        }  # fmt: skip
        true_link = None if here.true_link is None else here.true_link.shifted(problem.actuation)
        return StationaryPolicy(automaton, arrays, true_link)

    def _rest(self) -> int:
        """The action that earns most when it is repeated from the start."""
        mdp, u = self.plant.mdp, self.plant.discount
        best, chosen = -np.inf, 0
        for a in range(mdp.n_actions):
            b, total, weight = self.plant.initial, 0.0, 1.0
            for _ in range(60):
                total, b, weight = (
                    total + weight * float(b @ mdp.rewards[0, :, a]),
                    mdp.advanced(b, 0, a),
                    weight * u,
                )
            if total > best + 1e-12 * self.scale:
                best, chosen = total, a
        return chosen

    def _walked(self, policy: StationaryPolicy, low: float) -> float:
        """What the policy is certain to earn on the true link; that of the tables' lower bound is none, where they show too much."""
        wanted = (self.tolerance or COARSE * self.scale) / 10
        found = forever_value(self.problem, policy, max_states=REACHED, tolerance=wanted)
        if found is None:
            return self._least()
        self.states = max(self.states, found.size)
        return found.lower

    def _least(self) -> float:
        mdp = self.problem.mdp
        smallest = float(mdp.rewards.min())
        return smallest if mdp.discount is None else smallest / (1.0 - mdp.discount)

    def solution(self) -> Solution:
        assert self.policy is not None
        self.policy.arrays["bounds"][1:] = self.lower, self.upper
        work = Work(self.entries + self.states, time.perf_counter() - self.began, self.bytes, sweeps=self.sweeps)
        upper = max(self.upper, self.lower)
        answers = ForeverQ(self.problem, self)
        return Solution(self.problem, self.lower, self.policy, self.lower, upper, False, self.starts, work, answers)


def _deeper(before: EndlessTables, made: EndlessTables) -> Floats:
    """A first guess for tables one step deeper: where the queue is longer, the step before in front of the tables that there are."""
    known = {(b.node, b.length): i for i, b in enumerate(before.layers.blocks[0])}
    names = {name: n for n, name in enumerate(before.automaton.nodes)}
    tables, u = before.split(before.value), before.discount
    mdp = made.plant.mdp
    S, A = mdp.n_states, mdp.n_actions
    P, R, out = mdp.matrix(0), mdp.rewards[0], []
    for block in made.layers.blocks[0]:
        n = names.get(made.automaton.nodes[block.node], -1)
        i = known.get((n, block.length))
        if i is not None:
            out.append(tables[i].reshape(-1))
            continue
        i = known.get((n, block.length - 1), next(iter(known.values())))
        shorter = tables[i]
        if shorter.shape[1] != A ** (block.length - 1):
            out.append(np.zeros(S * A**block.length))
            continue
        ahead = R[:, :, None] + u * (P @ shorter).reshape(S, A, -1)
        out.append(ahead.transpose(0, 2, 1).reshape(-1))
    return np.concatenate(out)


@dataclass(frozen=True)
class ForeverValue:
    """lower ≤ value of a policy ≤ upper; size: information states of its chain."""

    lower: float
    upper: float
    size: int


def beginnings(problem: ImpairedMDP, link: ChannelAutomaton) -> list[tuple[float, int, int, tuple[int, ...]]]:
    """(probability, node, state or −1, queue) at time 0."""
    from oldlight.model.channels.automaton import NOTHING_NEWER
    from oldlight.model.information import decode

    rho, A, d = problem.initial, problem.n_actions, problem.warmup
    out = []
    if d:
        node = next(
            n for n, _ in enumerate(link.nodes) if any(age == d for _, _, age in link.row(n)) and link.row(n)[0][1] == n
        )
        for s in np.flatnonzero(rho > 0).tolist():
            out += [(float(rho[s]) / A**d, node, s, decode(code, d, A)) for code in range(A**d)]
        return out
    for p, n, age in link.row(-1):
        if age == NOTHING_NEWER:
            out.append((p, n, -1, ()))
        else:
            out += [(p * float(rho[s]), n, s, ()) for s in np.flatnonzero(rho > 0).tolist()]
    return out


def forever_value(
    problem: ImpairedMDP,
    policy: Any,
    *,
    max_states: int,
    tolerance: float,
    reach: int | None = None,
    choose: Callable[[LinkInformation, int], Any] | None = None,
    waits: bool = False,
) -> ForeverValue | None:
    """Bounds on what a policy earns, None where it reaches more than `max_states` information states; `choose` and `reach` where it is not a `StationaryPolicy`: then a silence longer than `reach` may earn anything
    (discount), or is taken as rest (average)."""
    mdp, k = problem.mdp, problem.actuation
    growing, rest = grows(problem.channel), 0
    if isinstance(policy, StationaryPolicy):
        reach, rest = policy.reach, policy.rest
        choose = partial(_asked, problem, policy)
    assert choose is not None
    if growing:
        assert reach is not None
        link = growing_link(problem.channel, reach - k + 1).shifted(k)
    elif isinstance(policy, StationaryPolicy) and policy.true_link is not None:
        link = policy.true_link
    else:
        link = problem.automaton
    if not is_closed(link):
        return None
    if reach is None:
        factor = 1.0 if mdp.discount is None else 1.0 - mdp.discount
        reach = link.longest + silence(link, 1.0 if mdp.discount is None else mdp.discount, LONGEST, 1e-10 * factor)
    stops = mdp.discount is not None and not isinstance(policy, StationaryPolicy)
    r = mdp.rewards[0]
    chain = PolicyChain(mdp, link, choose, reach, rest, growing, waits, stops, max_states)
    made = chain.run(beginnings(problem, link), problem.initial)
    if made is None:
        return None
    Q, R, law = made
    if END not in chain.number:
        return ForeverValue(*chain_value(Q, R, law, mdp.discount, tolerance), len(R))
    ends = []
    for least_or_most in (float(r.min()), float(r.max())):
        R[chain.number[END]] = least_or_most
        ends.append(chain_value(Q, R, law, mdp.discount, tolerance))
    return ForeverValue(ends[0][0], ends[1][1], len(R))


def _held_steps(mdp: TabularMDP, needed: bool) -> dict[str, NDArray[Any]]:
    """The transitions as the policy's arrays, without a step axis; none where no law is counted along."""
    if not needed:
        return {"transitions": np.zeros((0, mdp.n_actions, 0))}
    return HeldSteps.of(mdp).to_arrays() if mdp.sparse else {"transitions": np.array(mdp.transitions[0])}


def _asked(problem: ImpairedMDP, policy: StationaryPolicy, info: LinkInformation, wait: int) -> list[tuple[int, float]]:
    if info.t is None and len(info.queue) < problem.actuation:
        return [(problem.pending[len(info.queue)], 1.0)]
    return [(policy.action(info), 1.0)]


@dataclass(frozen=True, eq=False)
class ForeverQ:
    """Q(τ, a): E[r + u·r + .. from now on | info, a now, the best afterwards], by the plan's tables: bounds from above that its certificate holds for.
    For the average these are relative values: only their differences count."""

    problem: ImpairedMDP
    plan: ForeverPlan

    def __call__(self, info: Any) -> Floats:
        policy, made, problem = self.plan.policy, self.plan.made, self.problem
        assert policy is not None
        assert made is not None
        known = policy.of_node(info)
        queue, n, D = known.queue, policy.nodes.get(known.node, -1), policy.depth
        mdp = problem.mdp
        R, u = mdp.rewards[0], made.discount
        b = problem.initial if known.t is None or known.state is None else certain(problem.n_states, known.state)
        beyond = max(len(queue) - D, 0)
        for a in queue[:beyond]:
            b = mdp.advanced(b, 0, a)
        last = queue[beyond:]
        few = made.values_at(n, b, tuple(int(self.plan.number[a]) for a in last), known.t is None and not beyond)
        earned, weight = 0.0, 1.0
        for a in last:
            earned, b, weight = earned + weight * float(b @ R[:, a]), mdp.advanced(b, 0, a), weight * u
        out = (few[self.plan.number] - earned) / weight if weight > 0 else b @ R
        h = len(queue)
        if known.t is None and h < problem.actuation:
            out = np.where(np.arange(problem.n_actions) == problem.pending[h], out, -np.inf)
        return np.asarray(out)
