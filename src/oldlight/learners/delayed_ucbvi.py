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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.learners.base import Learner, Setting
from oldlight.learners.counts import DelayCounts, revealed
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit, played_block, room_for
from oldlight.learners.greedy import GreedyTable
from oldlight.learners.optimistic_tables import Estimate, Tables
from oldlight.model.episode import Episode
from oldlight.model.policies import Policy, TablePolicy

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World


def rewards_in_unit_interval(setting: Setting) -> None:
    """The bonuses assume r ∈ [0, 1]."""
    low, high = float(setting.rewards.min()), float(setting.rewards.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"rewards are in [{low:.6g}, {high:.6g}]; the learners' bonuses assume [0, 1]. Rescale: "
            "mdp.replace(rewards=(mdp.rewards - low) / (high - low)), and the regret is scaled by 1 / (high - low)"
        )


GREEDY = 256  # episodes of a block: the table must have room for all that they may meet
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
        steps = H if self.rewards == "estimated" else 0
        self.paid, self.paid_times = np.zeros((steps, S * A)), np.zeros((steps, S * A), dtype=np.int64)
        self.D = min(H, setting.law.max_delay + 1)
        self.planned_at = np.zeros_like(self.counts.seen)
        self.planned_risk = np.zeros_like(self.counts.risk)
        self._learnt = self._arrays()
        self.greedy = GreedyTable(self.tables, rng) if self.planning == "greedy" else None
        self.estimate = np.nan
        self._policy: Policy | None = None
        self.policies_expire = self.greedy is not None
        if self.greedy is None:
            self.episodes_per_block = episodes_that_fit(len(self.tables.actions), self.tables.actions.dtype)
            if not self.tables.one_call:
                self.episodes_per_block = 0
            self._plan()
        else:
            self.episodes_per_block = GREEDY
            self.greedy.renew(self.model)
            self.play_episode = partial(self.greedy.play, self.model)  # type: ignore[method-assign]

    # -- the three parts of an episode ------------------------------------------------------------------------------

    def policy(self) -> Policy:
        if self.greedy is not None:
            return self.greedy.policy(self.model)
        if self._policy is None:
            self._policy = self.tables.policy()
        return self._policy

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import delayed_ucbvi as kernels

        plan = kernels.take(revealed(episode), self._learnt)
        if self.greedy is not None:
            self.greedy.renew(self.model)
        elif plan:
            self._plan()

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels import delayed_ucbvi as kernels

        actions = self.tables.actions
        block = room_for(draws, first, wanted, len(actions), actions.dtype)
        if self.greedy is not None:
            self.greedy.play_block(self.model, world, self._learnt, block)
            return EpisodeBlock(block.returns, block.starts, block.estimates, block.which, [])
        layout, plan, before = self.tables.layout, self.tables.plan(self.model), self.policy()
        rule = world.player(TablePolicy.trusted(layout, actions)).rule()
        self.estimate, plans, changed = kernels.block(
            world.arrays, rule, world.played(1), self._learnt, plan, self.estimate, self.rng, block
        )
        found = played_block(block, partial(TablePolicy.trusted, layout), before)
        if plans:
            self._policy = found.policies[-1] if found.policies and not changed else None
        return found

    # -- what the kernels read -------------------------------------------------------------------------------------

    def _arrays(self) -> Any:
        """Counts, estimates and bonuses, as `kernels.delayed_ucbvi` reads them; the arrays change in place."""
        from oldlight.kernels import counts as kernels
        from oldlight.kernels.delayed_ucbvi import Learnt

        setting, counts, model = self.setting, self.counts, self.model
        known_law = self.law == "known" or setting.warmup > 0
        bonus = kernels.Bonus(
            float(self.c), float(setting.horizon), float(self.D) * setting.log_term, setting.log_term, known_law,
            self.divisor == "printed", self.law == "known",
        )  # fmt: skip
        estimates = kernels.Estimates(
            model.weight, model.n_next, model.bonus, model.spread, model.theta, model.theta_bonus, model.known,
            model.first_theta, model.rho, model.root_bonus,
        )  # fmt: skip
        paid = kernels.Paid(self.paid, self.paid_times, self.tables.rewards)
        return Learnt(
            counts.protocol(), counts.arrays(), bonus, estimates, paid, counts.touched, self.planned_at, self.planned_risk,
            self.planning == "doubling",
        )  # fmt: skip

    def _plan(self) -> None:
        from oldlight.kernels import delayed_ucbvi as kernels

        self.estimate = self.tables.sweep(self.model, self.rng)
        if self.law == "estimated" and self.counts.episodes == 0:
            self.estimate = float(self.tables.remaining[0])  # where an episode begins is not known yet
        self._policy = None
        kernels.planned(self._learnt)

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
            self._policy = None
