"""Each statement of the paper with a verdict: a table whose figures are computed when the page is made.

`statements(measured)` evaluates one telling instance of every proposition, theorem, corollary and lemma with the functions of
`oldlight.paper`, in a few seconds. A verdict is about the statement, not about the one instance: where it is "holds", the
tests named beside it tried many; where it is "false", the figure is an exact counterexample. docs/statements.md has the reasons.

measured: mean final regrets found in a study, for the bounds on regret (see `Regret`); without them those rows give the bound alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight.instances import sensing_chain
from oldlight.model.channels import ConstantDelay, GeometricDelay, Loss
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import FunctionPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.paper import bounds
from oldlight.paper.claims import Claim

GAMMA = 0.1
S, A, H = 20, 5, 10  # the chains of Section 6


@dataclass(frozen=True)
class Regret:
    """A mean final regret of a study: of `algorithm` (1, 2 or 3) after `episodes`, behind a delay or with rate λ₀ seen."""

    algorithm: int
    episodes: int
    regret: float
    max_delay: int = 0
    seen: float = 1.0


@dataclass(frozen=True)
class Statement:
    """A row: the name of the statement, what it asserts, the verdict, the figure that was computed, and where to look."""

    name: str
    asserts: str
    verdict: str
    measured: str
    where: str


def statements(measured: Sequence[Regret] = ()) -> list[Statement]:
    """One row per statement, in the paper's order, the lemmas of its appendix last."""
    return [row(measured) for row in ROWS]


def _sides(claim: Claim) -> str:
    turned = {"≤": ">", "≥": "<", "=": "≠"}[claim.relation]
    return f"{claim.left:.4g} {claim.relation if claim.holds else turned} {claim.right:.4g}"


def _proposition_1(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.claims import proposition1

    rng = np.random.default_rng(1)
    mdp = TabularMDP(rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2)), horizon=4)
    problem = ImpairedMDP(mdp, GeometricDelay(0.5))
    policy = FunctionPolicy(lambda info: info.h % 2, 2)
    one = proposition1(problem, policy)
    listed = proposition1(problem, policy, at_horizon="nothing")
    return Statement(
        "Proposition 1", "the two augmented MDPs give every executable policy the same value",
        "holds by the paper's sentence on h = H (“When h ≤ H, the transition is the same as MDP_aug”), which its list of cases leaves out",
        f"random process, geometric delay: {one.left:.6f} and {one.right:.6f}; by the list alone {listed.left:.4f} and {listed.right:.4f}",
        "paper.proposition1; tests/planning/test_augmented.py",
    )  # fmt: skip


def _theorem_1(measured: Sequence[Regret]) -> Statement:
    found = [r for r in measured if r.algorithm == 1]
    K = max((r.episodes for r in found), default=10_000)
    worst = max(found, key=lambda r: r.regret, default=None)
    D = 1 + (worst.max_delay if worst else 2)
    bound = bounds.theorem_1(S, A, H, D, K, GAMMA)
    start = bounds.informative_from(lambda k: bounds.theorem_1(S, A, H, D, k, GAMMA), H)
    found_here = f"largest regret of Algorithm 1 here {worst.regret:,.0f}; " if worst else ""
    return Statement(
        "Theorem 1", "with high probability the regret of Algorithm 1 is of order √K",
        "not contradicted; empty below its threshold, and its leading term lacks √H where transitions depend on h",
        f"{found_here}bound with c = 1 {bound:.1e}, H·K {H * K:,}; the bound is below H·K from K = {start:.1e} on",
        "paper.bounds.theorem_1; docs/learning.md",
    )  # fmt: skip


def _corollary_1(measured: Sequence[Regret]) -> Statement:
    mdp = sensing_chain(0.8)
    u = 0.9
    cut = TabularMDP.discounted(mdp.transitions[0], mdp.rewards[0], discount=u, tolerance=1e-3)
    effective = bounds.effective_horizon(S, A, 10_000, GAMMA, u)
    return Statement(
        "Corollary 1", "the same for discounted processes, at the effective horizon",
        "not contradicted",
        f"u = {u}: horizon {effective} for ι/(1−u); {cut.horizon} steps are enough for a truncation error of {cut.truncation_error:.1e}",
        "paper.bounds.corollary_1; TabularMDP.discounted",
    )  # fmt: skip


def _proposition_2(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.claims import proposition2

    claim = proposition2(2, 2, 2)
    values = ", ".join(f"{name} {value:.3f}" for name, value in claim.detail.items() if isinstance(value, float))
    return Statement(
        "Proposition 2", "no learner does better than H·√(DSAK)/(72√2) on every process",
        "its process is as stated; the delay plays no part in it",
        f"optimal value of the tree: {values or f'{claim.left:.3f}'}",
        "paper.proposition2, instances.hard_tree; docs/learning.md",
    )  # fmt: skip


def _proposition_3(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.claims import proposition3

    yes = proposition3([(1, 2), (-1, 2), (1, -2)])
    no = proposition3([(1, 2), (-1, 2), (1, -2), (-1, -2)])
    return Statement(
        "Proposition 3", "planning under constant delay is NP-hard",
        "holds",
        f"a formula that can be satisfied has blind value {yes.left:.3f}, one that cannot {no.left:.3f}",
        "paper.proposition3, instances.sat",
    )  # fmt: skip


def _proposition_4(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.counterexamples import mirror
    from oldlight.paper.gap_bound import proposition4, proposition4_repaired

    problem = mirror(2)
    claim, repaired = proposition4(problem), proposition4_repaired(problem)
    return Statement(
        "Proposition 4", "gap(s_1) is at most Σ (E1 + 2·E2), for each first state s_1",
        "false for every constant delay ≥ 2; true at delay 1 for rewards of span ≤ 1",
        f"two states, fixed s_1, delay 2: gap {claim.left:.4f}, bound {claim.right:.4f}; a bound that holds gives {repaired.right:.4f}",
        "paper.proposition4, paper.counterexamples; docs/statements.md",
    )  # fmt: skip


def _proposition_5(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.claims import proposition5_long, proposition5_short

    short, printed = proposition5_short(2), proposition5_long(2, 100, GAMMA)
    one = proposition5_long(2, 100, GAMMA, comparator="expectation")
    return Statement(
        "Proposition 5", "a process for which delay d costs nothing and d + 1 costs half, gap(s_1) as in Proposition 4",
        "second half false as printed, for each s_1 on its own; holds for one policy in expectation over s_1",
        f"d = 2: gap {short.left:.3g} at delay 2; at delay 3, 100 episodes, bound {one.detail['bound']:.3f}: a policy for each s_1 loses "
        f"{printed.detail['mean gap']:.3g}, one policy {one.detail['mean gap']:.3g} (below the bound with probability {one.left:.2g}, "
        f"allowed {GAMMA})",
        "paper.proposition5_short, proposition5_long; instances.dichotomy",
    )  # fmt: skip


def _monotone(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.claims import monotone_in_delay, monotone_in_loss

    late, lost = monotone_in_delay(sensing_chain(0.8), range(5)), monotone_in_loss(sensing_chain(0.8), (0.0, 0.3, 0.6))
    return Statement(
        "Section 6: longer delay costs more", "the gap grows with the delay, and with the share that is lost",
        "holds from a cold start; a warm start moves the first state with the delay",
        f"sensing chain: values {', '.join(f'{v:.3f}' for v in late.detail['values'])} at delays 0 to 4; "
        f"{', '.join(f'{v:.3f}' for v in lost.detail['values'])} at 0, 30, 60% lost",
        "paper.monotone_in_delay, monotone_in_loss",
    )  # fmt: skip


def _proposition_6(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.counterexamples import proposition6

    claim = proposition6(2000)
    found = [r for r in measured if r.algorithm == 2]
    found_here = "; ".join(f"λ = {r.seen}: {r.regret:,.0f}" for r in found)
    return Statement(
        "Proposition 6", "the regret of Algorithm 2 is of order √K",
        "false where an action is wanted only while the state is hidden",
        f"three actions, one λ = 1/2: regret {claim.detail['regret']:.4g} after K = 2,000, grows like K^{claim.left:.2f}, the bound like "
        f"K^{claim.right:.2f}" + (f". On the sensing chain: {found_here}" if found_here else ""),
        "paper.proposition6, paper.counterexamples.hidden_action; docs/loss_learners.md",
    )  # fmt: skip


def _theorem_2(measured: Sequence[Regret]) -> Statement:
    found = [r for r in measured if r.algorithm == 3]
    found_here = "; ".join(f"λ = {r.seen}: {r.regret:,.0f}" for r in found)
    v = bounds.largest_v(A, 0.95)
    bound = bounds.theorem_2(S, A, H, 10_000, GAMMA, 0.95)
    crossover = bounds.theorem_2_crossover(S, v)
    return Statement(
        "Theorem 2", "the regret of Algorithm 3 is of order √K if λ₀ > 1 − 1/A",
        "not contradicted; nothing sharp is seen at λ = 1 − 1/A",
        f"λ = 0.95, c = 1: bound {bound:.1e} at K = 10,000; its first term leads from K = {crossover:.1e} on"
        + (f". On the sensing chain: {found_here}" if found_here else ""),
        "paper.bounds.theorem_2; docs/loss_learners.md",
    )  # fmt: skip


def _max_gap(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.lemmas import longest_gap

    claim = longest_gap(3, 1, 0.1)
    return Statement(
        "Lemma: longest gap", "P(g(k) > q) ≤ k·θ^(q+1)", "false by one power of θ",
        f"k = 3, q = 1, θ = 0.1: {_sides(claim)}", "paper.longest_gap",
    )  # fmt: skip


def _event(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.lemmas import event_no_long_run

    claim = event_no_long_run(3, 1, 0.5, 1)
    return Statement(
        "Event E_m", "P(no run of more than m ≥ 1 losses) is at most the printed power", "the wrong way round",
        f"H = 3, m = 1, λ = 1/2, K = 1: {_sides(claim)}", "paper.event_no_long_run",
    )  # fmt: skip


def _round_robin(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.lemmas import round_robin

    one = TabularMDP(np.ones((1, 1, 1)), np.ones((1, 1)), horizon=2)
    claim = round_robin(ImpairedMDP(one, Loss(seen=0.9999)), FunctionPolicy(lambda info: 0, 1), 5, 0.5)
    return Statement(
        "Lemma: sum of 1/√N", "Σ 1/√N_h ≤ q·√(SAKH)", "false by 2·√H, and more where actions depend on what is hidden",
        f"one state, one action, H = 2, K = 5: {_sides(claim)}", "paper.round_robin, paper.pigeonhole",
    )  # fmt: skip


def _bernstein(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.concentration import bernstein_consequence

    claim = bernstein_consequence(156, 0.5, 7.5e-5)
    return Statement(
        "Lemma: Bernstein, and its consequence", "Σx ≤ √(V·log(1/γ)) + M·log(1/γ) with probability 1 − γ",
        "the inequality holds; its consequence lacks a 2 under the root",
        f"fair coin, n = 156, γ = 7.5e-5: probability {_sides(claim)}", "paper.bernstein, paper.bernstein_consequence",
    )  # fmt: skip


def _hoeffding(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.concentration import azuma_consequence, hoeffding_consequence

    one, two = hoeffding_consequence(200, 0.5, 0.05), azuma_consequence(200, 0.05)
    return Statement(
        "Lemmas: Hoeffding, Azuma", "the two inequalities and their consequences", "hold",
        f"fair coin, n = 200, γ = 0.05: probability {_sides(one)} and {_sides(two)}",
        "paper.hoeffding_consequence, paper.azuma_consequence",
    )  # fmt: skip


def _optimism(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.optimism import optimism, rarely_rewarded

    problem = ImpairedMDP(rarely_rewarded(2, 0.4), ConstantDelay(1))
    one, small = optimism(problem, 400, runs=5), optimism(problem, 400, c=0.02, runs=5)
    return Statement(
        "Lemma: optimism, delay", "Q of Algorithm 1 is never below Q*, with probability 1 − γ",
        "holds with c = 1 (derived in learners.DelayedUCBVI), not with a much smaller one",
        f"two states, delay 1, after each of 400 episodes: {one.left:.0%} of the runs at c = 1, {small.left:.0%} at c = 0.02",
        "paper.optimism; tests/paper/test_optimism.py",
    )  # fmt: skip


def _optimism_missing(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.counterexamples import optimism_missing_printed

    claim, half = optimism_missing_printed(20_000), optimism_missing_printed(20_000, seen=0.5)
    return Statement(
        "Lemma: optimism, loss", "Q of Algorithm 3 is never below Q*, with probability 1 − γ",
        "a slip that matters where λ₀ is about 1/K only (Theorem 2 asks for λ₀ > 1 − 1/A): the printed bonus ignores the count behind the "
        "belief; holds with the parent's count",
        f"two states, K = 20,000, λ₀ = {claim.detail['seen']:.1e}: fails with probability {claim.left:.3g}, allowed {claim.right:.3g}; "
        f"λ₀ = 1/2: {half.left:.1g}",
        "paper.optimism_missing_printed, paper.optimism_missing",
    )  # fmt: skip


def _estimates(measured: Sequence[Regret]) -> Statement:
    from oldlight.paper.concentration import lambda_hat, p_hat, theta_hat

    sizes = {"S": 3, "A": 2, "H": 4, "D": 2}
    found = (p_hat(0.3, 300, GAMMA, **sizes), theta_hat(0.3, 300, GAMMA, **sizes), lambda_hat([0.3] * 4, 300, GAMMA))
    return Statement(
        "Concentration of the estimates", "p̂, θ̂ and λ̂ are within their bonuses for all counts up to K, with probability 1 − γ", "holds",
        "S = 3, A = 2, H = 4, K = 300: probability of a failure " + ", ".join(f"{claim.left:.1e}" for claim in found) + f", allowed {GAMMA}",
        "paper.p_hat, paper.theta_hat, paper.lambda_hat, paper.estimates",
    )  # fmt: skip


ROWS: tuple[Callable[[Sequence[Regret]], Statement], ...] = (
    _proposition_1, _theorem_1, _corollary_1, _proposition_2, _proposition_3, _proposition_4, _proposition_5, _monotone,
    _proposition_6, _theorem_2, _optimism, _optimism_missing, _estimates, _max_gap, _event, _round_robin,
    _bernstein, _hoeffding,
)  # fmt: skip


def as_rows(found: Sequence[Statement]) -> tuple[list[str], list[list[Any]]]:
    """Column titles and cells, for a page or a file."""
    titles = ["statement", "what it asserts", "verdict", "measured", "where to look"]
    return titles, [[x.name, x.asserts, x.verdict, x.measured, _breakable(x.where)] for x in found]


def _breakable(names: str) -> str:
    """Long names may be broken after a dot or an underscore."""
    return names.replace(".", ".\u200b").replace("_", "_\u200b")
