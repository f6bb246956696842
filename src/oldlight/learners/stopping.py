"""When to stop, with a proof: bounds of the best value and of one policy's, from counts, behind every link whose law is known.

Let p̂ be the estimated transitions and N_t(s, a) the counts behind them (one t if all steps share theirs). By Weissman's inequality, for all M rows and
all counts up to n at once,

    TV( p̂_t(·|s, a), p_t(·|s, a) ) ≤ ω = ½·√( 2·log( (2^S − 2)·M·n/γ ) / N_t(s, a) )

with probability at least 1 − γ, whatever decided which pairs were tried; ω = 1 where N = 0. n is what K episodes can give a row: K, or K·H. The link does not
depend on the process, so what it loses does not bias what is counted. Let b_t(s, a) = min(ω, 1)·Σ_{i>t}(max r_i − min r_i). By the simulation lemma on whole
histories, for every executable policy π at once

    V_p̂^π(r − b) ≤ V_p^π(r) ≤ V_p̂^π(r + b):

at step t the two processes differ by Σ_s2 (p − p̂)(s2)·W(s2), W what π earns from there given everything that has happened, which spans no more than the
rewards that are left. So the plan for (p̂, r + b) bounds the best value from above, and the plan for (p̂, r − b) is a policy with a lower bound of what it
earns. Where the two are ε apart, that policy is ε-optimal with probability 1 − γ: for all K episodes at once, so one may look after each and stop.

This is proved, not fast: ω asks for thousands of visits to each pair that matters. Rewards and the law of the link must be known. **Off-line** it is the same
computation on episodes that somebody else played (`learn_offline`), however he chose his actions, as long as he did not see more than the link showed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import checks, drawing
from oldlight.learners.base import Setting
from oldlight.learners.learnt_plan import LearntPlan, needs_nodes
from oldlight.learners.link_counts import LinkCounts
from oldlight.learners.optimistic_model import Estimated
from oldlight.model.episode import Episode
from oldlight.model.information import Layout
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.simulation import Simulation

GROWTH = 1.1  # a certificate is made again when there are so many times as many episodes
TOLERANCE = 1e-4  # of the plans


@dataclass(frozen=True, eq=False)
class Certificate:
    """A policy, and bounds that hold together with probability 1 − failure: lower ≤ what it earns ≤ the best value ≤ upper.

    Parameters
    ----------
    policy : Policy
        The one whose lower bound is best.
    lower, upper : float
        What it earns at least, and what any executable policy earns at most.
    failure : float
        The probability γ that the bounds do not hold.
    episodes : int
        How many were counted.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.learners import learn_offline, recorded_episodes
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1")
    >>> played = ol.simulate(problem, ol.FunctionPolicy(lambda info: [0.5, 0.5], 2), 4000, record=True)
    >>> found = learn_offline(problem, recorded_episodes(problem, played))
    >>> found.lower <= ol.solve(problem).value <= found.upper
    True
    """

    policy: Policy
    lower: float
    upper: float
    failure: float
    episodes: int

    @property
    def gap(self) -> float:
        """upper − lower: with probability 1 − failure the policy is as close as this to the best one."""
        return self.upper - self.lower

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data for JSON."""
        return {"lower": self.lower, "upper": self.upper, "failure": self.failure, "episodes": self.episodes}

    def plot(self, ax: Any = None) -> Any:
        """Draw the two bounds; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        middle = (self.upper + self.lower) / 2
        ax.errorbar([f"{self.episodes:,} episodes"], [middle], [self.gap / 2], fmt="none", capsize=6)
        ax.set_ylabel(f"value (bounds with probability {1 - self.failure:g})")
        return ax

    def __str__(self) -> str:
        """A small table."""
        rows = {
            "the policy earns at least": f"{self.lower:.6g}",
            "the best earns at most": f"{self.upper:.6g}",
            "probability": f"{1 - self.failure:g}",
            "episodes counted": f"{self.episodes:,}",
        }
        return drawing.facts("Certificate", rows)

    def __repr__(self) -> str:
        return (
            f"Certificate([{self.lower:.6g}, {self.upper:.6g}], failure={self.failure:g}, {self.episodes:,} episodes)"
        )


def certificate(counts: LinkCounts) -> Certificate:
    """The bounds of the module's text from counts of transitions, behind the link of their setting."""
    setting = counts.setting
    if counts.pooled == "auto":
        raise ValueError('counts with pooled="auto" have no proved bounds; expected pooled=True or False')
    H, S, A = setting.horizon, setting.n_states, setting.n_actions
    number = counts.number.sum(axis=0, keepdims=True) if counts.pooled else counts.number
    N = number.sum(axis=3)
    p = np.where(N[..., None] > 0, number / np.maximum(N, 1.0)[..., None], 1.0 / S)
    rows = S * A * (1 if counts.pooled else max(H - 1, 1))
    most = setting.episodes * ((H + setting.warmup) if counts.pooled else 1 + setting.warmup)
    log = np.log(max(2.0**S - 2.0, 1.0)) + np.log(rows * most / setting.failure)
    omega = np.where(N > 0, np.minimum(0.5 * np.sqrt(2.0 * log / np.maximum(N, 1.0)), 1.0), 1.0)
    R = setting.rewards
    span = R.max(axis=(1, 2)) - R.min(axis=(1, 2))
    left = np.append(np.cumsum(span[::-1])[::-1], 0.0)[1:]
    b = np.broadcast_to(omega, (H, S, A)) * left[:, None, None]
    before = (
        float(omega[0].max()) * setting.warmup * float(span.sum()) if setting.warmup else 0.0
    )  # steps before step 0
    planner = LearntPlan(setting, "known", TOLERANCE)
    policy, _, lower = planner.bounds(Estimated(p, R - b))
    _, upper, _ = planner.bounds(Estimated(p, R + b))
    return Certificate(
        policy, max(lower - before, float(R.min(axis=(1, 2)).sum())), min(upper + before, float(R.max(axis=(1, 2)).sum())),
        setting.failure, counts.episodes,
    )  # fmt: skip


class WithinEpsilon:
    """For `learn(..., stop=)`: stop when a policy is ε-optimal with probability 1 − γ, γ the run's `failure`.

    Parameters
    ----------
    eps : float
        ε > 0.

    Attributes
    ----------
    certificate : Certificate or None
        The last one that was made: its policy is the answer.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.learners import LinkLearner, WithinEpsilon
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "none")
    >>> stop = WithinEpsilon(0.9)
    >>> run = ol.learn(problem, LinkLearner(), 2000, stop=stop, every=100)
    >>> run.done < 2000, stop.certificate.gap <= 0.9
    (True, True)
    """

    def __init__(self, eps: float) -> None:
        self.eps = checks.positive("eps", eps)
        self.certificate: Certificate | None = None
        self._again = 1.0

    def __call__(self, learner: Any) -> bool:
        counts = getattr(learner, "counts", None)
        if not isinstance(counts, LinkCounts):
            raise TypeError(
                f"{type(learner).__name__} does not count as LinkLearner does; stop=WithinEpsilon is for that"
            )
        if counts.episodes < self._again:
            return False
        self._again = max(counts.episodes + 1.0, GROWTH * counts.episodes)
        self.certificate = certificate(counts)
        return self.certificate.gap <= self.eps

    def __repr__(self) -> str:
        return f"WithinEpsilon(eps={self.eps:g})"


def recorded_episodes(problem: ImpairedMDP, played: Simulation) -> list[Episode]:
    """The episodes of `simulate(..., record=True)` as the protocol reveals them: what was lost is hidden.

    Parameters
    ----------
    problem : ImpairedMDP
        What was played.
    played : Simulation
        Made with record=True.

    Returns
    -------
    list of Episode
        For `learn_offline`, or for a learner's `see`.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "loss:0.5")
    >>> played = ol.simulate(problem, ol.solve(problem).policy, 3, record=True)
    >>> len(ol.learners.recorded_episodes(problem, played))
    3
    """
    states, actions, arrivals = played.revealed, played.actions, played.arrivals
    assert actions is not None
    assert arrivals is not None
    warmup, H = played.warmup, problem.horizon
    out = []
    for s, a, when in zip(states.astype(np.int64), actions.astype(np.int64), arrivals.astype(np.int64), strict=True):
        paid = np.zeros(len(s))
        paid[warmup:] = problem.mdp.rewards[np.arange(H), np.maximum(s[warmup:], 0), a[warmup:]]
        paid[s < 0] = np.nan
        out.append(Episode(s, a, when, paid, warmup))
    return out


def learn_offline(
    problem: ImpairedMDP, episodes: Iterable[Episode], *, pooled: bool = False, failure: float = 0.1
) -> Certificate:
    """The policy with the best lower bound that recorded episodes can prove, and the bound of the best value.

    Parameters
    ----------
    problem : ImpairedMDP
        Rewards, start and link; its transitions are not looked at (but `pooled` is refused where they change with the step).
    episodes : iterable of Episode
        As the protocol reveals them (`recorded_episodes`), played by anybody.
    pooled : bool
        Put the counts of all steps together (stationary processes).
    failure : float
        γ.

    Returns
    -------
    Certificate
        `.policy`, `.lower`, `.upper`.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.learners import learn_offline, recorded_episodes
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "packets:0=0.5,1=0.5")
    >>> played = ol.simulate(problem, ol.FunctionPolicy(lambda info: [0.5, 0.5], 2), 4000, record=True)
    >>> found = learn_offline(problem, recorded_episodes(problem, played), pooled=False)
    >>> ol.evaluate(problem, found.policy).value >= found.lower
    True
    """
    checked_problem(problem, "learn_offline")
    given = list(episodes)
    nodes = needs_nodes(problem.channel, "known")
    layout = None if nodes else Layout.of(problem)
    gamma = checks.probability("failure", failure)
    setting = Setting.of(problem, max(len(given), 1), gamma, layout)
    counts = LinkCounts(setting, pooled)
    for episode in given:
        counts.add(episode)
    return certificate(counts)
