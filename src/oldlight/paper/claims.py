"""The paper's propositions as programs: each function computes both sides for given inputs and returns what it found.

Equalities are compared to 1e-10. A claim that fails is a result, not an error; docs/statements.md has what was found on many inputs.
Steps are counted from 0, the paper's from 1.

Proposition 1   MDP_aug (H steps, reward expected under the belief) and its past-reward twin (2H steps, the reward of
                step t paid when step t becomes the newest visible one) give every executable policy the same value,
                from every first information state.
Proposition 2   its process has the same optimal value with every delay (the bound on regret is not computed here).
Proposition 3   planning for a constant delay is NP-hard: the blind value of `sat(clauses)` decides the formula.
Proposition 5   the process `dichotomy(d)`: delay d costs nothing, delay d + 1 costs half; and for K episodes.
                gap(s_1) is read as in Proposition 4, as printed: for each first state on its own, with an executable policy
                that may be made for it. Then the second half is false; for one policy in expectation over s_1 it holds.
Monotonicity    a longer constant delay, or a lower arrival probability, never has a higher value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import bdtrc

from oldlight import checks, drawing
from oldlight.instances import dichotomy, hard_tree, hard_tree_value, sat, satisfied_share
from oldlight.model.channels import Channel, ConstantDelay, Loss
from oldlight.model.information import Information, beginnings, belief, moves
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import FunctionPolicy, Policy, probabilities_at
from oldlight.model.problem import ImpairedMDP, WarmStart
from oldlight.planning import solve
from oldlight.planning.gap import gap
from oldlight.random_streams import Seed
from oldlight.simulation import simulate

EQUAL = 1e-10
AtHorizon = Literal["arrival", "hazard", "nothing"]


@dataclass(frozen=True)
class Claim(drawing.Result):
    """What a statement asserts, "left relation right", and whether the numbers agree.

    Parameters
    ----------
    name : str
        Of the statement.
    left, right : float
        Both sides.
    holds : bool
        Do the numbers agree with the statement?
    detail : dict
        The numbers behind it.
    relation : str
        "≤" or "=".

    Examples
    --------
    >>> from oldlight import paper
    >>> print(paper.proposition5_short(2))
    Proposition 5, delay d: 0 = 0 holds
    """

    name: str
    left: float
    right: float
    holds: bool
    detail: dict[str, Any] = field(default_factory=dict)
    relation: str = "≤"

    def plot(self, ax: Any = None) -> Any:
        """Draw both sides as bars; returns the matplotlib axes."""
        ax = drawing.bars(ax, {"left": self.left, "right": self.right}, "")
        ax.set_title(str(self))
        return ax

    def __str__(self) -> str:
        return f"{self.name}: {self.left:.6g} {self.relation} {self.right:.6g} {'holds' if self.holds else 'fails'}"


def proposition1(problem: ImpairedMDP, policy: Policy | None = None, *, at_horizon: AtHorizon = "hazard") -> Claim:
    """The value of a policy in MDP_aug and in the 2H-step past-reward model, delay only.

    A warm start with a delay longer than H needs more than 2H steps: there the proposition fails.

    Parameters
    ----------
    problem : ImpairedMDP
        Behind a channel that delays and loses nothing.
    policy : Policy, optional
        Actions at random if None.
    at_horizon : "hazard", "arrival" or "nothing"
        What happens after the last action, at the paper's h = H, which its list of cases leaves out. "hazard": the law goes on for one more
        step, as the paper's sentence below the list has it ("When h ≤ H, the transition is the same as MDP_aug"). "arrival": one
        observation per step from there on, as for h > H; no difference, because delays are folded at H. "nothing": the list to the
        letter, every probability is 0.

    Returns
    -------
    Claim
        left: the value in MDP_aug; right: in the other model.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.paper.counterexamples.late_reward()
    >>> ol.paper.proposition1(problem).holds, ol.paper.proposition1(problem, at_horizon="nothing").holds
    (True, False)
    """
    if problem.arrival_probability is not None:
        raise ValueError(f"Proposition 1 is about delay; {problem.channel!r} loses observations")
    checks.one_of("at_horizon", at_horizon, ("arrival", "hazard", "nothing"))
    A = problem.n_actions
    policy = FunctionPolicy(lambda _: np.full(A, 1.0 / A), A) if policy is None else policy
    starts = [(p, info, *_both_values(problem, policy, info, at_horizon)) for p, info in beginnings(problem)]
    left = sum(p * v for p, _, v, _ in starts)
    right = sum(p * w for p, _, _, w in starts)
    apart = max(abs(v - w) for _, _, v, w in starts)
    detail = {"first information states": len(starts), "largest difference": apart, "at horizon": at_horizon}
    return Claim("Proposition 1", left, right, apart <= EQUAL, detail, "=")


def _both_values(
    problem: ImpairedMDP, policy: Policy, start: Information, at_horizon: AtHorizon
) -> tuple[float, float]:
    """From one first information state: expected rewards by belief up to H, and past rewards up to 2H."""
    H = problem.horizon
    now = past = 0.0
    reached = {start: 1.0}
    for h in range(2 * H):
        following: dict[Information, float] = {}
        for info, weight in reached.items():
            mix = probabilities_at(problem, policy, info) if h < H else np.ones(1)  # after H the action does not matter
            if h < H:
                now += weight * float(belief(problem, info) @ problem.mdp.rewards[h] @ mix)
            for a in np.flatnonzero(mix).tolist():
                mass = weight * float(mix[a])
                queue = (*info.queue, a) if h < H else info.queue
                if info.t is not None and info.waited == 0 and 0 <= info.t < H:
                    past += mass * float(problem.mdp.rewards[info.t, info.state, queue[0]])
                for p, after in _twin_moves(problem, info, queue, at_horizon):
                    following[after] = following.get(after, 0.0) + mass * p
        reached = following
    return now, past


def _twin_moves(
    problem: ImpairedMDP, info: Information, queue: tuple[int, ...], at_horizon: AtHorizon
) -> Iterator[tuple[float, Information]]:
    """p̃_aug: as MDP_aug while actions are taken, then one arrival per step. `queue` has the action of this time."""
    h, H = info.h, problem.horizon
    if h < H - 1 or (h == H - 1 and at_horizon == "hazard"):
        yield from moves(problem, info, queue[-1])
    elif (h > H - 1 or at_horizon == "arrival") and (info.t is None or info.t < H - 1):
        if info.t is None:
            row, t2, rest = problem.initial, 0, queue
        else:
            row, t2, rest = problem.transitions_at(info.t)[info.state, queue[0]], info.t + 1, queue[1:]
        for s2 in np.flatnonzero(row > 0).tolist():
            yield float(row[s2]), Information(h + 1, t2, s2, rest, 0)


def proposition2(depth: int, n_actions: int, window: int, *, epsilon: float = 0.1, seed: Seed = 0) -> Claim:
    """The value of the lower bound's process behind a delay of D = window against its closed form.

    `detail` has the values without delay and without any observation, all of them equal: D as a delay makes the process no harder.

    Parameters
    ----------
    depth, n_actions, window : int
        As `hard_tree` takes them.
    epsilon, seed : float; int, SeedSequence or Generator
        ε, and the random seed of the triple that must be found.

    Returns
    -------
    Claim
        left: the planned value; right: the closed form.

    Examples
    --------
    >>> from oldlight import paper
    >>> print(paper.proposition2(2, 2, 2))
    Proposition 2 (its process): 1.2 = 1.2 holds
    """
    mdp = hard_tree(depth, n_actions, window, epsilon=epsilon, seed=seed)
    links: dict[str, Channel] = {
        "no delay": ConstantDelay(0),
        "delay D": ConstantDelay(window),
        "blind": Loss(seen=0.0),
    }
    values = {name: solve(ImpairedMDP(mdp, link)).value for name, link in links.items()}
    exact = hard_tree_value(depth, window, mdp.finite_horizon, epsilon)
    holds = all(abs(v - exact) <= EQUAL for v in values.values())
    return Claim("Proposition 2 (its process)", values["delay D"], exact, holds, dict(values), "=")


def proposition3(clauses: Iterable[Iterable[int]], *, n_variables: int | None = None) -> Claim:
    """The blind value of the formula's process against the share of clauses that can be satisfied (by trying all assignments).

    Parameters
    ----------
    clauses, n_variables
        As `sat` takes them.

    Returns
    -------
    Claim
        left: the blind value; right: the share.

    Examples
    --------
    >>> from oldlight import paper
    >>> print(paper.proposition3([[1], [-1]]))
    Proposition 3 (by sat): 0.5 = 0.5 holds
    """
    formula = [tuple(clause) for clause in clauses]
    mdp = sat(formula, n_variables=n_variables)
    n = mdp.finite_horizon - 1
    blind = solve(ImpairedMDP(mdp, Loss(seen=0.0))).value
    late = solve(ImpairedMDP(mdp, ConstantDelay(n))).value
    share = satisfied_share(formula, n_variables)
    holds = abs(blind - share) <= EQUAL and abs(late - share) <= EQUAL
    detail = {"delay n": late, "satisfiable": share == 1.0, "states": mdp.n_states, "steps": mdp.finite_horizon}
    return Claim("Proposition 3 (by sat)", blind, share, holds, detail, "=")


def proposition5_short(d: int, horizon: int | None = None) -> Claim:
    """First half: with a delay of d nothing is lost, from no first state.

    Parameters
    ----------
    d, horizon : int
        The delay, and H as `dichotomy` takes it.

    Returns
    -------
    Claim
        left: the gap; right: 0.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.proposition5_short(3).holds
    True
    """
    mdp = dichotomy(d, horizon)
    gaps = [gap(ImpairedMDP(mdp.replace(initial=np.eye(2)[s]), ConstantDelay(d))).gap for s in range(2)]
    whole = gap(ImpairedMDP(mdp, ConstantDelay(d))).gap
    return Claim("Proposition 5, delay d", whole, 0.0, max(whole, *gaps) <= EQUAL, {"by start": gaps}, "=")


def proposition5_long(
    d: int,
    episodes: int,
    gamma: float,
    *,
    comparator: Literal["each start", "expectation", "hindsight"] = "each start",
    horizon: int | None = None,
    seed: Seed = 0,
) -> Claim:
    """Second half: with a delay of d + 1, mean gap over K episodes ≥ 1/2 − √(log(1/γ)/(2K)) with probability 1 − γ.

    Parameters
    ----------
    d : int
        The process is `dichotomy(d)`, the delay d + 1.
    episodes, gamma : int, float
        K, γ in (0, 1).
    comparator : "each start", "expectation" or "hindsight"
        To whom the executable value in gap(s_1) belongs. "each start": max over policies for each s_1 on its own, as printed there and in
        Proposition 4: nothing is ever lost. "expectation": the policy that is best in expectation over the start, fixed before the K
        starts are drawn. "hindsight": the one that is best for the K starts that were drawn.
    horizon : int, optional
        As `dichotomy` takes it.
    seed : int, SeedSequence or Generator
        Random seed of the K episodes.

    Returns
    -------
    Claim
        left: the exact probability that the mean gap is below that bound; right: γ; `detail`: the bound, and the mean gap over K
        simulated episodes.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.proposition5_long(1, 100, 0.1).holds, paper.proposition5_long(1, 100, 0.1, comparator="expectation").holds
    (False, True)
    """
    K = checks.whole("episodes", episodes, least=1)
    checks.one_of("comparator", comparator, ("each start", "expectation", "hindsight"))
    if not 0.0 < gamma < 1.0:
        raise ValueError(f"gamma is {gamma}, expected a number in (0, 1)")
    mdp = dichotomy(d, horizon)
    problem = ImpairedMDP(mdp, ConstantDelay(d + 1))
    cost = gap(problem)
    played = simulate(problem, cost.solution.policy, K, seed=seed, record=True)
    by_start = cost.solution.value_by_start
    assert by_start is not None
    counts = np.bincount(played.record[0][:, 0], minlength=2)
    full = np.array([solve(ImpairedMDP(mdp.replace(initial=e), ConstantDelay(0))).value for e in np.eye(2)])
    known = np.array([solve(ImpairedMDP(mdp.replace(initial=e), ConstantDelay(d + 1))).value for e in np.eye(2)])
    bound = 0.5 - float(np.sqrt(np.log(1.0 / gamma) / (2 * K)))
    most = int(np.floor(K * (1.0 - bound) + 1e-9))  # the bound is missed if more than this many guesses are right
    beyond = float(bdtrc(most, K, 0.5)) if most < K else 0.0
    if comparator == "expectation":
        earned = float(counts @ by_start) / K
        missed = beyond
    elif comparator == "hindsight":
        earned = float(counts.max()) / K
        missed = min(1.0, 2.0 * beyond)  # both sides at once: they exclude each other, because most ≥ K/2
    else:
        earned = float(counts @ known) / K
        missed = float(bound > full[0] - known[0])
    detail = {
        "gap of one policy": cost.gap,
        "bound": bound,
        "mean gap": float(counts @ full) / K - earned,
        "episodes": K,
    }
    return Claim(
        f"Proposition 5, delay d + 1, {comparator}, probability of missing the bound",
        missed,
        gamma,
        missed <= gamma,
        detail,
    )


def monotone_in_delay(mdp: TabularMDP, delays: Iterable[int], *, start: WarmStart | None = None) -> Claim:
    """A longer constant delay never has a higher value.

    Cold start: true, because whoever sees early can wait. Warm start: the steps before step 0 change the law of s_0
    with the delay, and neither the value nor the gap need be monotone (`detail` has both).

    Parameters
    ----------
    mdp : TabularMDP
        The process.
    delays : iterable of int
        In steps.
    start : WarmStart, optional
        As `ImpairedMDP` takes it.

    Returns
    -------
    Claim
        left: the largest rise from one delay to the next; right: 0.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.monotone_in_delay(ol.instances.sensing_chain(0.8), range(3)).holds
    True
    """
    order = sorted(delays)
    costs = [gap(ImpairedMDP(mdp, ConstantDelay(d), start=start)) for d in order]
    values, gaps = [p.impaired for p in costs], [p.gap for p in costs]
    rise = float(max(np.diff(values), default=0.0))
    fall = float(max(-np.diff(gaps), default=0.0))
    detail = {"delays": order, "values": values, "gaps": gaps, "largest fall of the gap": fall}
    return Claim("value falls with the delay", rise, 0.0, rise <= EQUAL, detail)


def monotone_in_loss(mdp: TabularMDP, rates: Iterable[float], *, start: WarmStart | None = None) -> Claim:
    """A higher loss rate never has a higher value.

    Parameters
    ----------
    mdp : TabularMDP
        The process.
    rates : iterable of float
        Loss rates.
    start : WarmStart, optional
        As `ImpairedMDP` takes it.

    Returns
    -------
    Claim
        left: the largest rise from one rate to the next; right: 0.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.monotone_in_loss(ol.instances.dichotomy(1), [0, 0.5, 1]).holds
    True
    """
    order = sorted(rates)
    values = [solve(ImpairedMDP(mdp, Loss(rate=x), start=start)).value for x in order]
    rise = float(max(np.diff(values), default=0.0))
    return Claim("value falls with the loss", rise, 0.0, rise <= EQUAL, {"rates": order, "values": values})
