"""Long delays: the ladder. Where S·A^d cannot be stored, act on the belief as a controller with a shorter delay k would.

Rung k is the exact plan for the same channel with every delay capped at k (any other link: every age, lost or not). Behind it the agent knows at least as much: at
time h its newest visible step is t' = max(t, h − k) when the real one is t. The rung's policy pushes what is known through
the oldest actions of the queue down to step t', and takes

    argmax_a  E_{s_{t'} | τ_h}[ Q^k_h(s_{t'}, queue since t', a) ],

the Q of the capped plan, in expectation over what the capped agent would have seen. Rung 0 is QMDP; rung max_delay is exact.

**Bounds.** upper: the optimal value of the capped problem (information never hurts): certified. lower: the value of the
best rung's policy, walked forward exactly over the information states that it reaches (certified), or, where those are too
many, the lower end of a 95% confidence interval from simulation. A higher rung is usually, not always, better: all rungs up
to `depth` are valued and the best is taken. Time and memory are those of delay k.

**Rollout.** Where the walk is exact and the moves are not too many, one step of policy improvement follows: the action that is best if the rung's policy acts
afterwards, by its exact value. It is never worse than the rung, and often closes half of what is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.channels.capped_link import capped
from oldlight.model.information import Information, advance, current, encode, moves, newest, push
from oldlight.model.link_information import LinkInformation, NodePolicy, law_of_state
from oldlight.model.policies import FunctionPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import all_successors
from oldlight.planning.delay import DelayModel, Induction, Stage, by_start, checked_layout
from oldlight.planning.evaluation import Evaluation, evaluate
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.link_walk import moves_of
from oldlight.planning.q_values import back_up_rows, q_values
from oldlight.planning.solution import PlanOptions, Solution, Work
from oldlight.progress import progress_bar
from oldlight.simulation import simulate

LARGEST = 2**24  # numbers in the laws of one piece of the work
TIE = 1e-12  # actions whose values differ by less, in relation to them, are equal: the first is taken
MOVES = 10**7  # from one information state to another, up to which the best rung is improved
WALK = 60_000  # information states that a policy's value may walk over before it is sampled instead
EPISODES = 4_000  # played to choose among rungs, and again, four times as many, for the confidence interval,
FEWEST = 300  # or as few as this, where each decision counts a law along for many steps:
LAW_STEPS = 1_500_000  # about as many in all, for each rung


class Rung:
    """The exact plan for the channel capped at k, read on the beliefs of the real one."""

    def __init__(self, problem: ImpairedMDP, k: int, max_bytes: int | None = None, scratch: Path | None = None) -> None:
        self.problem, self.k = problem, k
        self.shorter = problem.behind(
            problem.channel.delay.capped(checks.whole("depth", k, least=problem.actuation) - problem.actuation)
        )
        layout, self.bytes, folder = checked_layout(self.shorter, max_bytes, policy=False, kept=True, scratch=scratch)
        self.size = layout.size
        self.model = DelayModel(self.shorter, layout)
        self.stages: list[Stage] = []
        first = Induction(self.model, kept=self.stages, scratch=folder).run()
        # the law of the capped problem's first state
        before = push_uniform(problem, problem.warmup - self.shorter.warmup)
        self.upper = float(before @ by_start(self.shorter, first))

    def q(self, info: Information) -> Floats:
        """E[Q^k_h(·, a)]: what the capped agent would expect, an upper bound on the real Q_h(τ, a), for each a."""
        h, at, waited, steps = self._known(info.h, info.t, info.waited, len(info.queue))
        t, b = newest(self.problem, info)
        b, queue = push(self.problem, b, t, info.queue[:steps]), info.queue[steps:]
        return q_values(self.model, h, at, b, queue, waited, self.stages[h + 1])

    def _known(self, h: int, t: int | None, waited: int, m: int) -> tuple[int, int | None, int, int]:
        """(h, t, wait) of the capped agent, and how many of the m actions since the real t lie before its t."""
        if m < self.k or (m == self.k and t is not None):
            return h, t, waited, 0
        return h, h - self.k, 0, m - self.k

    def actions_at(self, h: int, t: int | None, waited: int, states: Ints, queues: NDArray[Any]) -> Ints:
        """The choice at many information states of one time, newest step and wait: s_t and the queue of each row."""
        S, out = self.problem.n_states, np.empty(len(states), np.int64)
        _, at, wait, steps = self._known(h, t, waited, queues.shape[1])
        piece = max(1, LARGEST // S)
        for low in range(0, len(states), piece):
            rows = slice(low, low + piece)
            law = _corners(states[rows], S) if t is not None else np.tile(self.problem.initial, (len(states[rows]), 1))
            for i in range(steps):
                law = advance(law, queues[rows, i].astype(np.int64), self.problem.matrix_at((t or 0) + i))
            q = back_up_rows(self.model, h, at, law, queues[rows, steps:], wait, self.stages[h + 1])
            out[rows] = first_best(q)
        return out

    def choose(self, info: Information) -> int:
        return int(first_best(self.q(info)[None])[0])


def first_best(q: Floats) -> Ints:
    """The best action of each row; of actions that are equal but for rounding the first, so that one row and many agree."""
    best = q.max(axis=1, keepdims=True)
    return np.asarray((q >= best - TIE * np.maximum(1.0, np.abs(best))).argmax(axis=1))


class RungPolicy(FunctionPolicy):
    """What a rung does, also asked for many information states at once (`oldlight.planning.walk`)."""

    def __init__(self, rung: Rung) -> None:
        super().__init__(rung.choose, rung.problem.n_actions)
        self.actions_at = rung.actions_at


def _corners(states: Ints, S: int) -> Floats:
    law = np.zeros((len(states), S))
    law[np.arange(len(states)), states] = 1.0
    return law


class LinkRung:
    """The exact plan for a link whose ages are capped at k (`oldlight.model.channels.capped_link`), read on the beliefs of the real one:
    at an information state of the link it asks what an agent would do that is shown every observation when it is k steps old."""

    def __init__(self, problem: ImpairedMDP, k: int, max_bytes: int | None = None) -> None:
        self.problem, self.k = problem, min(checks.whole("depth", k, least=problem.actuation), problem.horizon - 1)
        link = capped(problem.automaton, self.k)
        self.plan = LinkPlan(
            problem.mdp, link, initial=problem.initial, pending=problem.pending[: problem.horizon], max_bytes=max_bytes
        )
        self.tables, self.bytes = self.plan.exact_tables(self.k)
        self.size, self.upper = self.tables.layers.size, self.tables.upper_value
        self._numbers = {name: n for n, name in enumerate(problem.automaton.nodes)}
        blocks = self.tables.layers.blocks
        self._places = [{(b.node, b.root, b.length): i for i, b in enumerate(row)} for row in blocks]
        self._nodes = {name: n for n, name in enumerate(link.nodes)}

    def q(self, info: LinkInformation) -> Floats:
        """E[Q^k_h(·, a)]: an upper bound on the real Q_h(info, a), for each a."""
        h, k, plan, few = info.h, self.k, self.plan, self.tables.layers.n_actions
        n, m = self._numbers[info.node], len(info.queue)
        beyond = max(m - k, 0)
        name = (n, min(m, k)) if info.t is not None or h >= k else (n, "none", h)
        b = law_of_state(self.problem.mdp, info, beyond, self.problem.initial)
        queue = info.queue[beyond:]
        L, begin = len(queue), h - len(queue)
        i = self._places[h][self._nodes[name], len(name) == 3, L]
        out = np.empty(len(plan.kept))
        for few_action, a in enumerate(plan.kept.tolist()):
            laws, earned = [b], [0.0]  # after j steps of the queue and a
            for j, action in enumerate((*queue, a)):
                earned.append(earned[-1] + float(laws[-1] @ self.problem.rewards_at(begin + j)[:, action]))
                laws.append(push(self.problem, laws[-1], begin + j, (action,)))
            code = encode(tuple(int(plan.number[x]) for x in (*queue, a)), few)
            out[few_action] = -earned[L]
            for p, to, age in self.tables.layers.moves[h][i]:
                same = self.tables.layers.blocks[h + 1][to].length == L
                j = L + 1 - age if age != NOTHING_NEWER else 1 if same else 0
                out[few_action] += p * (earned[j] + float(laws[j] @ self.tables.values(h + 1, to)[:, code // few**j]))
        return out[plan.number]

    def choose(self, info: LinkInformation) -> int:
        return int(self.q(info).argmax())


def rung(
    problem: ImpairedMDP, k: int, max_bytes: int | None = None, scratch: Path | None = None
) -> tuple[Rung | LinkRung, Any]:
    """The rung k of a delay or of any link, and its policy."""
    if problem.has_delay_law and problem.loss is None:
        plain = Rung(problem, k, max_bytes, scratch)
        return plain, RungPolicy(plain)
    made = LinkRung(problem, k, max_bytes)
    return made, NodePolicy(problem, made.choose)


class Rollout:
    """The best action if `base` (deterministic) acts afterwards, by exact values; the base policy's own action wherever that
    would need more than `most` values in all."""

    def __init__(self, problem: ImpairedMDP, base: FunctionPolicy | NodePolicy, most: int) -> None:
        self.problem, self.base, self.most = problem, base, most
        self._values: dict[Any, float] = {}
        self._numbers = (
            {name: n for n, name in enumerate(problem.automaton.nodes)} if isinstance(base, NodePolicy) else {}
        )

    def value(self, info: Any) -> float:
        """What `base` earns from `info` on."""
        known = self._values.get(info)
        if known is None:
            if len(self._values) >= self.most:
                return np.nan  # more values than may be kept: not known
            known = self._values[info] = self.q(info, self.base.action(info))
        return known

    def _moves(self, info: Any, a: int) -> Iterator[tuple[float, Any]]:
        problem = self.problem
        if isinstance(info, LinkInformation):
            number = self._numbers[info.node]
            return moves_of(problem.mdp, problem.automaton, number, info, a, problem.initial)
        return moves(problem, info, a)

    def q(self, info: Any, a: int) -> float:
        """What acting a on `info` and then `base` earns."""
        now = float(current(self.problem, info) @ self.problem.mdp.rewards[info.h][:, a])
        if info.h + 1 == self.problem.horizon:
            return now
        return now + sum(p * self.value(after) for p, after in self._moves(info, a))

    def choose(self, info: Any) -> int:
        """The best action; the base policy's own where it is as good."""
        own = self.base.action(info)
        q = np.array([self.q(info, a) for a in range(self.problem.n_actions)])
        if np.isnan(q).any():
            return own
        return own if q[own] >= q.max() - 1e-12 * max(1.0, abs(q.max())) else int(q.argmax())


def _width(problem: ImpairedMDP) -> float:
    """How many information states follow one, on average."""
    steps = all_successors(problem.mdp)
    return 1.0 + sum(float(step.count.mean()) for step in steps) / len(steps)


def push_uniform(problem: ImpairedMDP, steps: int) -> Floats:
    """The law of the state `steps` steps after the first, under uniform actions and the transitions of step 0."""
    b, A = problem.initial, problem.n_actions
    for _ in range(steps):
        b = np.asarray(np.repeat(b / A, A) @ problem.mdp.matrix(0))
    return b


def _episodes(problem: ImpairedMDP, depth: int) -> int:
    """How many are played: a decision counts the law along from the newest observation to the depth."""
    longest = problem.law.max_delay if problem.has_delay_law else problem.automaton.longest
    steps = problem.horizon * max(min(max(longest, problem.warmup), problem.horizon) - depth, 1)
    return int(min(max(LAW_STEPS // steps, FEWEST), EPISODES))


def plan_ladder(problem: ImpairedMDP, asked: PlanOptions) -> Solution:
    """The best of the rungs up to the depth, with both bounds; see `oldlight.solve`."""
    began, depth = time.perf_counter(), asked.depth
    assert depth is not None
    least, episodes = problem.actuation, _episodes(problem, depth)
    rungs: list[tuple[Rung | LinkRung, Any]] = []
    with progress_bar(asked.progress, "planning") as callback:
        for k in range(least, depth + 1):
            rungs.append(rung(problem, k, asked.max_bytes, asked.scratch))
            if callback is not None:
                callback(k - least + 1, 2 * (depth + 1 - least))
        best: tuple[float, int, Any, Evaluation | None] | None = None
        walk = True
        for i, (step, policy) in enumerate(reversed(rungs)):
            found = evaluate(problem, policy, max_states=WALK, episodes=episodes) if walk else None
            if found is None or not found.exact:
                walk = False
                value = found.value if found else simulate(problem, policy, episodes).mean
                found = None
            else:
                value = found.value
            if best is None or value > best[0]:
                best = value, step.k, policy, found
            if callback is not None:
                callback(len(rungs) + i + 1, 2 * len(rungs))
    assert best is not None
    value, k, policy, found = best
    upper = min(step.upper for step, _ in rungs)
    lower = value
    if found is not None and found.size * problem.n_actions * _width(problem) <= MOVES:
        choose = Rollout(problem, policy, WALK).choose
        by_node = isinstance(policy, NodePolicy)
        better: Any = NodePolicy(problem, choose) if by_node else FunctionPolicy(choose, problem.n_actions)
        improved = evaluate(problem, better, max_states=WALK)
        if improved.exact and improved.value > value:
            value = lower = improved.value
            policy = better
    elif found is None:  # chosen by one set of episodes, valued by another
        played = simulate(problem, policy, 4 * episodes, seed=1)
        value, lower = played.mean, played.mean - played.half_width
    top = rungs[-1][0]
    work = Work(sum(r.size for r, _ in rungs), time.perf_counter() - began, sum(r.bytes for r, _ in rungs))
    return Solution(
        problem, value, policy, lower, max(upper, value), False, None, work, top.q,
        depth=k, lower_certified=found is not None,
    )  # fmt: skip
