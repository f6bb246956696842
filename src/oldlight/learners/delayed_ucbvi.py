"""Algorithm 1: policy learning for delayed MDPs, on the past-reward model with 2H steps.

For each episode k:
  1. play the policy π^{k−1} of the last plan;
  2. collect the revealed episode and count N_t(s, a, s2) and the interarrival times (`learners.counts`);
  3. estimate p̂ and θ̂ from those counts of the *original* process: that is the point, no count has a queue in it;
  4. bonus  b_h(τ, a) = c·H·( √((H∧D)·ι/n_t(s_t, a_t, δ)) + √((H∧D)·ι/N_t(s_t, a_t)) ),  ι = log(S·A·H·K/γ), D = max delay + 1;
  5. optimistic value iteration over all information states: Q = min(r̃ + b + θ̂·p̂V + (1−θ̂)·V_wait, what can still be earned),
     and a pair that was never met is worth what can still be earned.

(The paper counts steps from 1; here t = 0..H−1.) Where nothing has to be learned there is no bonus: no delay term when the law
is known or the arrival is forced, no transition term at the last step, whose successor does not matter. The paper clips Q at H;
at what is left to earn (`clip="remaining"`) optimism holds too and less is wasted.

Optimism (a lemma of the paper). With rewards in [0, 1] and c = 1, with probability at least 1 − γ, Q^k ≥ Q* at every (k, h, τ, a).
By backward induction: with V^k ≥ V* one step later, f = V*(·, q2..qm, a) the value ahead if step t + 1 arrives and w if it does
not, both in [0, H−1],

    Q^k − Q*  ≥  θ̂·(p̂ − p)f + (θ̂ − θ)·(p·f − w) + b,     unless Q^k is at its clip, which no Q* exceeds.

 - (p̂ − p)f ≥ −c·H·√(Dι/N), D short for H∧D: for one (t, s, q1), one f and one N Hoeffding's inequality fails with probability
   exp(−2c²Dι). There are (H−1)·S·A pairs whose next state matters, K values of N and, for each pair, one f for each rest of a
   queue and action: 1 + A + .. + A^{D−1} ≤ 2A^{D−1} for A ≥ 2. *That is what the D under the root is for.* As
   H·S·A^D·K ≤ γ·exp(Dι), one of them fails with probability at most 2γ·exp((1 − 2c²)Dι): γ/2 if c² ≥ ½ + log 2/(Dι).
 - |θ̂ − θ| ≤ c·√(Dι/n), n the number at risk, for (H−1)·S·A·D pairs and waits (no queue in it), K values of n and both sides:
   fails with probability at most 2γ·D·exp(ι − 2c²Dι), at most γ/2 too (D ≥ 2; for D = 1 no delay is random).
So c = √(½ + log 2/(Dι)) < 1 is enough for S·A·H·K/γ ≥ 8. Pooled counts have H times as many f and N: c = 1 is enough. A warm
start has rows before step 0: the same if its delay is below H. With law="estimated" the bonus before anything is seen is
c·H·√(Dι)·(1/√k + 1/√n_h): all k episodes count for rho, and the n_h that were still waiting at time h of the first delay.
`oldlight.paper.optimism` checks all this on runs.

The default c is the one that learns in the numbers of episodes that people run; it was chosen on other processes than any
reported one: see docs/learning.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.learners.base import Learner, Setting
from oldlight.learners.counts import DelayCounts
from oldlight.learners.greedy import GreedyTable
from oldlight.learners.optimistic_tables import Estimate, Tables
from oldlight.model.episode import Episode
from oldlight.model.policies import Policy

Floats = NDArray[np.float64]


def rewards_in_unit_interval(setting: Setting) -> None:
    """The bonuses assume r ∈ [0, 1]."""
    low, high = float(setting.rewards.min()), float(setting.rewards.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"rewards are in [{low:.6g}, {high:.6g}]; the learners' bonuses assume [0, 1]. Rescale: "
            "mdp.replace(rewards=(mdp.rewards - low) / (high - low)), and the regret is scaled by 1 / (high - low)"
        )


DEFAULT = {"hoeffding": 0.01, "bernstein": 0.02}  # docs/scripts/tune.py


class DelayedUCBVI(Learner):
    """Algorithm 1 of the paper, for delayed observations; see the module's text.

    Parameters
    ----------
    c : float, optional
        Bonus constant; one that was chosen for each bonus if None (docs/learning.md).
    bonus : "hoeffding" or "bernstein", optional
        The paper's, and that of greedy planning, or (the default otherwise) c·( √(2·Var_p̂(V)·ι/N) + H·ι/(3N) ) for the transitions.
        (Lee and Jamieson 2026, see `paper.bounds`, state the minimax rate H√(D·S·A·K) for transitions that do not change with h: so
        for pooled counts only.)
    planning : "full", "doubling" or "greedy"
        Plan after every episode; only when some N_t(s, a) or n_t(s, a, δ) has doubled since the last plan; or back up only what the
        episode met, in a table that grows with what was visited (`learners.greedy`).
    pooled : bool
        Put the counts of all steps together (stationary processes).
    law : "known" or "estimated"
        Estimated: only the support of the delay law is used; before the first episode every pair, hazard and start is unknown, and
        everything is worth what can be earned at most.
    rewards : "known" or "estimated"
        Estimated: with the bonus c·√(ι/N).
    divisor : "at risk" or "printed"
        θ̂'s sample size, or the paper's N(s, a, Δ=δ), which stays zero where Δ = δ never happens.
    clip : "remaining" or "H"
        Clip Q at Σ_{i ≥ t} max r_i ≤ H − t, which no value can exceed, or at the paper's H.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "constant:1")
    >>> run = ol.learn(problem, ol.learners.DelayedUCBVI(pooled=True), 50)
    >>> bool(run.shortfalls[-1] < run.shortfalls[0])
    True
    """

    def __init__(
        self,
        *,
        c: float | None = None,
        bonus: Literal["hoeffding", "bernstein"] | None = None,
        planning: Literal["full", "doubling", "greedy"] = "full",
        pooled: bool = False,
        law: Literal["known", "estimated"] = "known",
        rewards: Literal["known", "estimated"] = "known",
        divisor: Literal["at risk", "printed"] = "at risk",
        clip: Literal["remaining", "H"] = "remaining",
    ) -> None:
        bonus = bonus or ("hoeffding" if planning == "greedy" else "bernstein")
        for name, value, allowed in (
            ("bonus", bonus, ("hoeffding", "bernstein")),
            ("planning", planning, ("full", "doubling", "greedy")),
            ("law", law, ("known", "estimated")),
            ("rewards", rewards, ("known", "estimated")),
            ("divisor", divisor, ("at risk", "printed")),
            ("clip", clip, ("remaining", "H")),
        ):
            checks.one_of(name, value, allowed)
        self.c = DEFAULT[bonus] if c is None else checks.positive("c", c)
        if planning == "greedy" and bonus == "bernstein":
            raise ValueError('planning="greedy" goes with bonus="hoeffding"')
        self.bonus, self.planning, self.pooled, self.law = bonus, planning, pooled, law
        self.rewards, self.divisor, self.clip = rewards, divisor, clip

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        rewards_in_unit_interval(setting)
        self.setting, self.rng = setting, rng
        self.counts = DelayCounts(setting, self.pooled)
        S, A, H, K = setting.n_states, setting.n_actions, setting.horizon, self.counts.event.shape[2]
        T = len(self.counts.seen)
        known_law = self.law == "known"
        theta = np.ones((T, S * A, K))
        if known_law and setting.warmup == 0:
            hazard = np.broadcast_to(setting.law.hazard, (H, S, A, K)).reshape(H, S * A, K)
            if T == 1 and setting.law.hazard.shape[0] > 1:
                raise ValueError("pooled counts with a delay law that changes from step to step: pooled=False")
            theta = np.array(hazard[:T], order="C")
        first = setting.law.first_hazard if setting.warmup == 0 else np.zeros(H + 1)
        # an estimated law knows nothing before the first episode: the root is worth what can be earned at most
        rho, first, root = (setting.initial, first, 0.0) if known_law else (np.zeros(S), np.ones(H + 1), float(H))
        self.model = Estimate(
            self.counts.index, np.zeros((T, S * A, S)), np.ones((T, S * A), dtype=np.int64), np.zeros((T, S * A)),
            np.zeros((T, S * A)) if self.bonus == "bernstein" else np.zeros((0, 0)),
            theta, np.zeros((T, S * A, K)), np.zeros((T, S * A), dtype=np.bool_), np.array(first),
            np.array(rho), np.full(H, root),
        )  # fmt: skip
        optimistic = setting.rewards if self.rewards == "known" else np.ones_like(setting.rewards)
        self.tables = Tables(setting, np.array(optimistic), dense=self.planning != "greedy")
        if self.clip == "H":
            self.tables.remaining = np.full(H + 1, float(H))
        if self.rewards == "estimated":
            self.tables.remaining = np.arange(H, -1, -1.0) if self.clip == "remaining" else self.tables.remaining
            self.paid = np.zeros((H, S * A))
            self.paid_times = np.zeros((H, S * A), dtype=np.int64)
        self.D = min(H, setting.law.max_delay + 1)
        self.planned_at = np.zeros_like(self.counts.seen)
        self.planned_risk = np.zeros_like(self.counts.risk)
        self.greedy = GreedyTable(self.tables, rng) if self.planning == "greedy" else None
        self.estimate = np.nan
        if self.greedy is None:
            self._plan()
        else:
            self.greedy.renew(self.model)
            self.play_episode = partial(self.greedy.play, self.model)  # type: ignore[method-assign]

    # -- the three parts of an episode ------------------------------------------------------------------------------

    def policy(self) -> Policy:
        return self._policy if self.greedy is None else self.greedy.policy(self.model)

    def act(self, info: Any) -> Any:
        return self.policy().probabilities(info)

    def see(self, episode: Episode) -> None:
        touched = self.counts.add(episode)
        if self.rewards == "estimated":
            self._pay(episode)
        self._estimate(touched)
        if self.greedy is not None:
            self.greedy.renew(self.model)
        elif self.planning == "full" or self._doubled(touched):
            self._plan()

    # -- estimates and bonuses -------------------------------------------------------------------------------------

    def _estimate(self, touched: Any) -> None:
        """p̂, θ̂ and their bonuses for the pairs of the last episode."""
        from oldlight.kernels import counts as kernels

        setting, counts, model = self.setting, self.counts, self.model
        known_law = self.law == "known" or setting.warmup > 0
        bonus = kernels.Bonus(
            float(self.c), float(setting.horizon), float(self.D) * setting.log_term, setting.log_term, known_law,
            self.divisor == "printed",
        )  # fmt: skip
        estimates = kernels.Estimates(
            model.weight, model.n_next, model.bonus, model.spread, model.theta, model.theta_bonus, model.known
        )
        kernels.estimate(touched, counts.arrays(), bonus, estimates)
        if self.law == "estimated":
            model.rho[:] = counts.starts / counts.episodes
        if self.law == "estimated" and setting.warmup == 0:
            seen = np.append(np.cumsum(counts.first[::-1])[::-1], 0)[: len(model.first_theta)]
            model.first_theta[:] = np.where(seen > 0, counts.first[: len(seen)] / np.maximum(seen, 1), 1.0)
            scale = self.c * setting.horizon * np.sqrt(self.D * setting.log_term)
            waiting = seen[1 : 1 + setting.horizon]  # episodes in which nothing was seen by time h
            model.root_bonus[:] = np.where(
                waiting > 0,
                scale * (1 / np.sqrt(counts.episodes) + 1 / np.sqrt(np.maximum(waiting, 1))),
                setting.horizon,
            )

    def _pay(self, episode: Episode) -> None:
        """r̂ + c·√(ι/N), at most 1."""
        H, A = self.setting.horizon, self.setting.n_actions
        h, warmup = np.arange(H), episode.warmup
        sa = episode.states[warmup:] * A + episode.actions[warmup:]
        self.paid[h, sa] += episode.rewards[warmup:]
        self.paid_times[h, sa] += 1
        if self.pooled:
            mean = self.paid.sum(axis=0) / np.maximum(self.paid_times.sum(axis=0), 1)
            times = np.broadcast_to(self.paid_times.sum(axis=0), self.paid.shape)
            mean = np.broadcast_to(mean, self.paid.shape)
        else:
            mean, times = self.paid / np.maximum(self.paid_times, 1), self.paid_times
        bound = mean + self.c * np.sqrt(self.setting.log_term / np.maximum(times, 1))
        self.tables.rewards[:] = np.where(times > 0, np.minimum(bound, 1.0), 1.0).reshape(self.tables.rewards.shape)

    def _doubled(self, touched: Any) -> bool:
        """Has a count of the last episode doubled since the last plan, or is it no longer 0?"""
        rows, pairs = touched[:, 0], touched[:, 1]
        seen, risk = self.counts.seen[rows, pairs], self.counts.risk[rows, pairs]
        more = ((seen >= 2 * self.planned_at[rows, pairs]) & (seen > 0)).any()
        if self.law == "estimated":
            more |= ((risk >= 2 * self.planned_risk[rows, pairs]) & (risk > 0)).any()
        return bool(more)

    def _plan(self) -> None:
        self.estimate = self.tables.sweep(self.model, self.rng)
        if self.law == "estimated" and self.counts.episodes == 0:
            self.estimate = float(self.tables.remaining[0])  # where an episode begins is not known yet
        self._policy = self.tables.policy()
        if self.planning == "doubling":
            np.copyto(self.planned_at, self.counts.seen)
            np.copyto(self.planned_risk, self.counts.risk)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        state = self.counts.state() | {"actions": self.tables.actions, "planned_at": self.planned_at}
        state["planned_risk"] = self.planned_risk
        state["estimate"] = np.array(self.estimate)
        if self.greedy is not None:
            state |= self.greedy.state()
        model = {f"model.{k}": v for k, v in vars(self.model).items() if k != "index"}
        if self.rewards == "estimated":
            model |= {"paid": self.paid, "paid_times": self.paid_times, "optimistic": self.tables.rewards}
        return state | model

    def restore(self, state: dict[str, Any]) -> None:
        self.counts.restore(state)
        for key, value in vars(self.model).items():
            if key != "index":
                value[...] = state[f"model.{key}"]
        self.tables.actions[:] = state["actions"]
        self.planned_at[:] = state["planned_at"]
        self.planned_risk[:] = state["planned_risk"]
        self.estimate = float(state["estimate"])
        if self.rewards == "estimated":
            self.paid[:], self.paid_times[:] = state["paid"], state["paid_times"]
            self.tables.rewards[:] = state["optimistic"]
        if self.greedy is not None:
            self.greedy.restore(state)
        else:
            self._policy = self.tables.policy()
