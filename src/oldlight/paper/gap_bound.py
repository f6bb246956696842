"""Proposition 4, a bound on the gap: both sides, for every optimal policy, and a bound that holds.

Printed, for π_full ∈ argmax V^π with full information, π_exec ∈ argmax over executable policies, and |r| ≤ 1:

    gap ≤ Σ_h ( E1_h + 2·E2_h ),    E2_h = TV(ρ_h^full, ρ_h^exec),
    E1_h = Σ_τ ( E_b[max_a r_h(s, a)] − max_a E_b[r_h(s, a)] )·min(ρ_h^exec, ρ_h^full)(τ),    b = b_h(·|τ) the belief.

It is printed for gap(s_1), each first state s_1 on its own, with policies that may be made for it: so it is computed here, and
so Proposition 5 is read in `oldlight.paper.claims`. (A warm start has no fixed s_1; there both sides are means over the past.)
Where several policies are optimal the statement is about each of them, deterministic or not. `proposition4` computes it
for the pair that planning returns, `proposition4_ties` for all pairs of deterministic optimal policies (up to a limit) and
random mixtures.

**What holds.** Constant delay d ≤ 1 and rewards of span ≤ 1 (max r − min r ≤ 1, for example r in [0, 1]). Proof: at
d = 1, τ_{h+1} *is* (s_h, a_h), so E[r_h] differs between the policies by at most TV_{h+1} for every step but the last;
at the last, where the belief is right under both, by at most E1 + TV of that step. Together that is at most
Σ_h TV_h + TV_last + E1_last, which is within the bound. With |r| ≤ 1 it fails at d = 1, and for every d ≥ 2 it fails
even with r in {0, 1} and one optimal policy on each side, with a bound of exactly 0: `oldlight.paper.counterexamples`.

**A bound that holds** for every channel and start (`proposition4_repaired`). Let Q* be the action values with full
information, and QMDP the executable policy that plays argmax_a E_b[Q*_h(s, a)]. By the performance-difference identity

    gap ≤ V*_full − V^QMDP = Σ_h Σ_τ ( E_b[max_a Q*_h(s, a)] − max_a E_b[Q*_h(s, a)] )·ρ_h^QMDP(τ):

Proposition 4's E1 with Q* in place of r, the visits of a policy that one has at hand, and no E2. Steps count from 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.information import Information, beginnings, current, moves
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.paper.claims import EQUAL, Claim
from oldlight.planning import solve
from oldlight.planning.evaluation import unimpaired, visits
from oldlight.planning.gap import gap
from oldlight.random_streams import Seed, seed_number

Measure = dict[Information, float]  # ρ_h for all h at once: an Information carries its h
Choices = dict[Information, tuple[int, ...]]
ALL_STATES = 10**9


def optimal_actions(problem: ImpairedMDP, *, tolerance: float = 1e-9) -> Choices:
    """Every optimal action at every information state that some optimal policy reaches."""
    best = solve(problem)
    choices: Choices = {}
    waiting = [info for _, info in beginnings(problem)]
    while waiting:
        info = waiting.pop()
        if info not in choices:
            q = best.q(info)
            choices[info] = tuple(np.flatnonzero(q >= q.max() - tolerance).tolist())
            if info.h + 1 < problem.horizon:
                waiting += [after for a in choices[info] for _, after in moves(problem, info, a)]
    return choices


def selections(
    choices: Choices, horizon: int, limit: int, rng: np.random.Generator
) -> Iterator[dict[Information, int]]:
    """Each way to pick one of the optimal actions everywhere, or `limit` random ones if there are more.

    The last action is in no later information state and in neither term, so it is not varied.
    """
    base = {info: acts[0] for info, acts in choices.items()}
    free = [info for info, acts in choices.items() if len(acts) > 1 and info.h + 1 < horizon]
    if math.prod(len(choices[info]) for info in free) <= limit:
        for picked in itertools.product(*(choices[info] for info in free)):
            yield base | dict(zip(free, picked, strict=True))
    else:
        for _ in range(limit):
            yield base | {info: choices[info][int(rng.integers(len(choices[info])))] for info in free}


def executable_visits(problem: ImpairedMDP, policy: Policy) -> Measure:
    """ρ_h(τ) of an executable policy, for all h."""
    found: Measure = {}
    for reached in visits(problem, policy, ALL_STATES):
        assert reached is not None
        found |= reached
    return found


def observed_visits(problem: ImpairedMDP, full: Floats) -> Measure:
    """ρ_h(τ) of a policy that acts on the true state with probabilities full[h, s, a]: what an impaired observer would know.

    Every hidden path since the newest visible step is followed, so this is for small problems.
    """
    H, S = problem.horizon, problem.n_states
    found: Measure = {}
    reached: dict[tuple[Information, tuple[int, ...]], float] = {}
    for p, info in beginnings(problem):
        here = np.eye(S)[info.state] if info.state is not None else problem.initial
        paths: dict[tuple[int, ...], float] = {(s,): p * float(here[s]) for s in range(S)}
        for i, a in enumerate(info.queue):
            row = problem.transitions_at((info.t or 0) + i)[:, a]
            paths = {(*path, s2): w * float(row[path[-1], s2]) for path, w in paths.items() for s2 in range(S)}
        reached |= {(info, path): w for path, w in paths.items() if w > 0}
    for h in range(H):
        following: dict[tuple[Information, tuple[int, ...]], float] = {}
        for (info, path), w in reached.items():
            found[info] = found.get(info, 0.0) + w
            for a in np.flatnonzero(full[h, path[-1]]).tolist() if h + 1 < H else []:
                after = list(moves(problem, info, a))
                wait = sum(p for p, later in after if later.t == info.t)
                newest = next((later for _, later in after if later.t != info.t), None)
                row = problem.transitions_at(h)[path[-1], a]
                for s2 in np.flatnonzero(row).tolist():
                    mass, longer = w * float(full[h, path[-1], a] * row[s2]), (*path, s2)
                    if newest is not None and newest.t is not None:
                        tail = longer[newest.t - (info.t or 0) :]
                        key = newest._replace(state=tail[0]), tail
                        following[key] = following.get(key, 0.0) + mass * (1 - wait)
                    if wait > 0:
                        key = Information(h + 1, info.t, info.state, (*info.queue, a), info.waited + 1), longer
                        following[key] = following.get(key, 0.0) + mass * wait
        reached = following
    return found


def bounds(problem: ImpairedMDP, of_full: list[Measure], of_exec: list[Measure]) -> Floats:
    """Σ_h (E1_h + 2·E2_h) for each pair of a full-information policy and an executable one, axes (full, executable)."""
    states = sorted(set().union(*of_full, *of_exec), key=repr)
    loss = np.empty(len(states))  # E_b[max_a r] − max_a E_b[r]
    for i, info in enumerate(states):
        r, b = problem.mdp.rewards[info.h], current(problem, info)
        loss[i] = b @ r.max(axis=1) - (b @ r).max()
    one, two = (np.array([[m.get(info, 0.0) for info in states] for m in ms]) for ms in (of_full, of_exec))
    rows = [np.minimum(row, two) @ loss + np.abs(row - two).sum(axis=1) for row in one]
    return np.array(rows)


def _action_probabilities(problem: ImpairedMDP, picked: dict[Information, int] | dict[Information, Floats]) -> Floats:
    """A full-information policy as full[h, s, a]; uniform where it never comes."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    full = np.full((H, S, A), 1.0 / A)
    for info, a in picked.items():
        full[info.h, info.state] = np.eye(A)[a] if isinstance(a, int) else a
    return full


def each_start(problem: ImpairedMDP) -> list[ImpairedMDP]:
    """The same problem from each of its first states; a past that is known (warm start) stays as it is."""
    first = np.flatnonzero(problem.initial > 0).tolist()
    if problem.warmup or len(first) == 1:
        return [problem]
    fixed = [problem.mdp.replace(initial=np.eye(problem.n_states)[s]) for s in first]
    late, pending = problem.actuation, problem.pending
    return [ImpairedMDP(mdp, problem.channel, actuation=late, pending=pending) for mdp in fixed]


def _worst(claims: list[Claim]) -> Claim:
    """The first state whose bound leaves the least room; the claim holds if it holds there."""
    return min(claims, key=lambda claim: claim.right - claim.left)


def proposition4(problem: ImpairedMDP) -> Claim:
    """gap(s_1) and its bound for the two optimal policies that planning returns.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.

    Returns
    -------
    Claim
        left: the gap; right: the bound, for the s_1 where it leaves the least room.

    Examples
    --------
    >>> from oldlight import paper
    >>> from oldlight.paper.counterexamples import mirror
    >>> print(paper.proposition4(mirror(2)))
    Proposition 4: 0.375 ≤ 0 fails
    """
    found = []
    for one in each_start(problem):
        lost = gap(one, max_states=ALL_STATES)
        detail = {"e1": lost.e1.tolist(), "e2": lost.e2.tolist(), "first states": len(each_start(problem))}
        found.append(Claim("Proposition 4", lost.gap, lost.bound, lost.gap <= lost.bound + EQUAL, detail))
    return _worst(found)


def proposition4_ties(problem: ImpairedMDP, *, limit: int = 32, mixtures: int = 8, seed: Seed = 0) -> Claim:
    """Proposition 4 for every pair of optimal policies, for the s_1 where the bound leaves the least room.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    limit : int
        The most deterministic policies on each side.
    mixtures : int
        Random mixtures of them (randomised at each state) beside these.
    seed : int, SeedSequence or Generator
        Random seed of the selection.

    Returns
    -------
    Claim
        left: the gap; right: the smallest bound among all pairs, which `detail` counts.

    Examples
    --------
    >>> from oldlight import paper
    >>> from oldlight.paper.counterexamples import blind_coin
    >>> paper.proposition4_ties(blind_coin()).holds
    False
    """
    number = seed_number(seed)
    return _worst([_ties(one, limit, mixtures, number) for one in each_start(problem)])


def _ties(problem: ImpairedMDP, limit: int, mixtures: int, seed: int) -> Claim:
    rng = np.random.default_rng(seed)
    H, A = problem.horizon, problem.n_actions
    lost = gap(problem)
    sides = [optimal_actions(unimpaired(problem)), optimal_actions(problem)]
    picked = [list(selections(choices, H, limit, rng)) for choices in sides]
    of_full = [observed_visits(problem, _action_probabilities(problem, p)) for p in picked[0]]
    of_exec = [executable_visits(problem, FunctionPolicy(p.__getitem__, A)) for p in picked[1]]
    plain = len(of_full), len(of_exec)
    mixed = [
        [_mixture(choices, A, rng) for _ in range(mixtures if len(p) > 1 else 0)]
        for choices, p in zip(sides, picked, strict=True)
    ]
    of_full += [observed_visits(problem, _action_probabilities(problem, m)) for m in mixed[0]]
    of_exec += [executable_visits(problem, FunctionPolicy(m.__getitem__, A)) for m in mixed[1]]
    found = bounds(problem, of_full, of_exec)
    worst, sure = float(found.min()), float(found[: plain[0], : plain[1]].min())
    detail = {
        "pairs": found.size,
        "pairs that fail": int((found < lost.gap - EQUAL).sum()),
        "smallest bound, deterministic": sure,
        "ties": plain != (1, 1),
    }
    return Claim("Proposition 4, every optimal policy", lost.gap, worst, lost.gap <= worst + EQUAL, detail)


def _mixture(choices: Choices, A: int, rng: np.random.Generator) -> dict[Information, Floats]:
    """A randomised optimal policy: a random law on the optimal actions everywhere (uniform half the time)."""
    even = rng.random() < 0.5
    mixed: dict[Information, Floats] = {}
    for info, acts in choices.items():
        mixed[info] = np.zeros(A)
        mixed[info][list(acts)] = 1.0 / len(acts) if even else rng.dirichlet(np.ones(len(acts)))
    return mixed


def proposition4_repaired(problem: ImpairedMDP) -> Claim:
    """The gap against Σ_h E_{τ ~ ρ_h^QMDP}[ E_b[max_a Q*] − max_a E_b[Q*] ], a bound that holds.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.

    Returns
    -------
    Claim
        left: the gap; right: the bound; `detail` has the value of QMDP.

    Examples
    --------
    >>> from oldlight import paper
    >>> from oldlight.paper.counterexamples import mirror
    >>> paper.proposition4_repaired(mirror(2)).holds
    True
    """
    lost = gap(problem)
    plain = solve(unimpaired(problem))
    known: dict[tuple[int, int], Floats] = {}

    def q(info: Information) -> tuple[Floats, Floats]:
        """The belief on the states it can be in, and Q*[s, a] there."""
        b = current(problem, info)
        here = np.flatnonzero(b > 0)
        for s in here.tolist():
            if (info.h, s) not in known:
                known[info.h, s] = plain.q(Information.seen(info.h, s))
        return b[here], np.array([known[info.h, s] for s in here.tolist()])

    def choose(info: Information) -> int:
        b, values = q(info)
        return int((b @ values).argmax())

    reached = executable_visits(problem, FunctionPolicy(choose, problem.n_actions))
    right = value = 0.0
    for info, weight in reached.items():
        b, values = q(info)
        right += weight * float(b @ values.max(axis=1) - (b @ values).max())
        value += weight * float(current(problem, info) @ problem.mdp.rewards[info.h][:, choose(info)])
    same = abs(lost.full - value - right) <= 1e-9
    detail = {"QMDP": value, "V*_full − V^QMDP = right": same}
    return Claim("Proposition 4, repaired", lost.gap, right, lost.gap <= right + EQUAL and same, detail)
