"""`OptimisticPlanning`: Algorithm 2 of the paper, for lost observations whose rate is known.

Steps are counted from 0 (the paper counts from 1): s_h is the state of step h = 0..H−1, λ_h its arrival probability,
and step H−1 has no next state. K episodes, failure probability γ, ι = log(S·A·H·K/γ), rewards in [0, 1] and known.

    For each episode k:
      1. π^k = argmax over executable π of  max over θ in B^k of  V_θ^π                                (the oracle)
      2. play π^k
      3. count pairs of which both ends were seen:  N_h(s, a, s2) += 1  where s_h = s, a_h = a, s_{h+1} = s2
      4. p̂_h(s2|s, a) = N_h(s, a, s2)/N_h(s, a)
         B^{k+1} = all models θ with  TV(p̂_h(·|s, a), p_h^θ(·|s, a)) ≤ c·√(S·ι/N_h(s, a))  for all (h, s, a)

TV is half of the L1 distance. Where N_h(s, a) = 0 every row is in the set; p̂ is uniform there, and the radius 1.

**What is intersected.** The paper's B^k is also intersected with all earlier sets. N never falls, so the newest ball of
a row is its smallest, and that one is kept. Earlier balls have other centres; what they would cut off the newest is not
cut off (the rest would no longer be a ball, nor its best point a sort). The set used here contains the paper's.

**The oracle.** The joint maximum has no polynomial algorithm. There are two stand-ins:

"bonus"        plan exactly for p̂ with the reward r + min(H, c·H·√(S·ι/N_h(s, a))), the bonus H where N = 0, none at
               step H−1. By the simulation lemma this is at least max over θ in B^k of V_θ^π for every executable π at
               once: whenever the truth is in B^k, `estimate` is at least the best executable value. clip "remaining":
               the value of a *seen* state at step h is cut at Σ_{i ≥ h} max r_i ≤ H − h, which no model exceeds (values
               of beliefs are not cut: they stay convex, and the planner's bounds need that); "none": nothing is cut but
               `estimate`, at H.
"alternating"  ascend in π and θ by turns. Policy step: the exact plan for θ. Model step: the value of a fixed π is
               linear in the rows of one step h together, so these move to the best points of their balls, a sort each
               (as in the inner maximum of UCRL2), last step first. Rows that π does not reach change nothing for it;
               they move to where a seen next state is worth most, so that the next policy step can want them. Repeated
               from `starts` models until nothing improves: from p̂; from the model in the set that is best for somebody
               who sees everything; from random points of the balls. What is found is a blockwise maximum: at least the
               best value at p̂, at most the literal objective, and so at most that of "bonus" with the same c. It is
               **not** certified optimistic.

**The rate.** Proposition 6, √(H³S²AK) for the literal algorithm, fails where an action is wanted only while the state
is hidden: what it does is then never counted (docs/statements.md). There "alternating" has linear regret too. "bonus"
tries such an action where the state is seen, but only until its bonus no longer makes up for what it costs there; while
the state is hidden the bonus that is left can be wanted for ever. So neither has that rate; the runs in
docs/loss_learners.md are on a process where this does not show.

**The constant.** For one row and one N, P(TV ≥ x) ≤ 2^S·exp(−2·N·x²) (Weissman et al. 2003, Inequalities for the L1
Deviation of the Empirical Distribution, report HPL-2003-97 of HP Laboratories). Over the S·A·H rows and
N = 1..K that is at most γ for x² = (S·log 2 + ι)/(2N), which is at most S·ι/(2N) for S ≥ 2 and ι ≥ 2·log 2. So c = √½,
`THEORY`, puts the truth in every B^k with probability 1 − γ. With it nothing is learnt in any number of episodes that
one would run on a process of some size. The defaults, `DEFAULT`, were measured on processes and rates that are reported
nowhere else (docs/scripts/loss_learners.py --tune; docs/loss_learners.md has the figures): the largest constant whose
regret, relative to the best constant's and averaged, is within 1.5 times the best. They carry no guarantee.

Actions whose values agree to 1e-12, or to the planner's own rounding where that is coarser, are drawn from at random, for each information state that the plan reaches,
once per plan. Between two plans episodes are played and counted in one compiled call (`oldlight.kernels.optimistic_planning`); a plan is a search that Python leads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints, action_type
from oldlight.learners.base import Learner, Setting
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit, played_block, room_for
from oldlight.learners.search_memory import search_room, setting_tables
from oldlight.model.episode import Episode
from oldlight.model.information import Information, advance
from oldlight.model.policies import BlackoutPolicy
from oldlight.planning.loss_search import LossSearch

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World

THEORY = 0.5**0.5  # the c that is proved
DEFAULT = {"bonus": 0.005, "alternating": 0.1}  # the c that learns
TIE = 1e-12
PIECE = 2**20  # numbers of the laws that are looked at together
ENOUGH = 1e-9  # an ascent that gains less than this has stopped
ROUNDS = 50  # at most this many turns of an ascent


def lost_and_never_late(setting: Setting, who: str) -> Floats:
    """λ_h of a setting that a learner for loss can work in; others are refused."""
    if setting.arrival_probability is None or setting.law.constant != 0 or setting.actuation:
        raise ValueError(f"{who} learns behind Loss(...) alone, without delay; the channel is {setting.channel!r}")
    if setting.channel.loss is None or not setting.channel.loss.independent:
        raise ValueError(f"{who} needs independent losses, Loss(...); {setting.channel!r} remembers")
    rewards_in_unit_interval(setting)
    return setting.arrival_probability


def left_to_earn(setting: Setting) -> Floats:
    """Σ_{i ≥ h} max r_i ≤ H − h for each step h: no value exceeds it."""
    return np.cumsum(setting.rewards.max(axis=(1, 2))[::-1])[::-1].copy()


class OptimisticPlanning(Learner):
    """Algorithm 2 of the paper, for lost observations whose rate is known; see the module's text.

    Parameters
    ----------
    oracle : "bonus" or "alternating"
        How the joint maximum over policies and models is replaced.
    c : float, optional
        Constant of the radii; one that was measured for each oracle if None (docs/loss_learners.md).
    replan : "doubling" or "full"
        When some N_h(s, a) has doubled since the last plan (or is no longer 0), or after every episode.
    pooled : bool
        One count for all steps of a stationary process ("alternating" then still lets θ differ between steps, a larger set).
    clip : "remaining" or "none"
        Of "bonus": cut the value of a seen state at what is left to earn, or nothing but `estimate`, at H.
    starts : int
        Of "alternating": how many models it ascends from.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, horizon=4), "loss:0.2")
    >>> run = ol.learn(problem, ol.learners.OptimisticPlanning(), 20)
    >>> bool(run.estimates[-1] >= run.best)  # optimistic
    True
    """

    def __init__(
        self,
        oracle: Literal["bonus", "alternating"] = "bonus",
        *,
        c: float | None = None,
        replan: Literal["doubling", "full"] = "doubling",
        pooled: bool = False,
        clip: Literal["remaining", "none"] = "remaining",
        starts: int = 3,
    ) -> None:
        if oracle not in ("bonus", "alternating"):
            raise ValueError(f'oracle is {oracle!r}, expected "bonus" or "alternating"')
        if replan not in ("doubling", "full"):
            raise ValueError(f'replan is {replan!r}, expected "doubling" or "full"')
        if clip not in ("remaining", "none"):
            raise ValueError(f'clip is {clip!r}, expected "remaining" or "none"')
        self.oracle, self.replan, self.pooled, self.clip = oracle, replan, pooled, clip
        self.c = DEFAULT[oracle] if c is None else checks.positive("c", c)
        self.starts = checks.whole("starts", starts, least=1)

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.seen = lost_and_never_late(setting, "OptimisticPlanning")
        if self.pooled and not setting.stationary:
            raise ValueError(
                "pooled counts are for stationary transitions; this process has one law per step: pooled=False"
            )
        self.setting, self.rng = setting, rng
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        self.counts: Ints = np.zeros((1 if self.pooled else max(H - 1, 1), S, A, S), dtype=np.int64)
        self.number: Ints = np.zeros(self.counts.shape[:3], dtype=np.int64)  # N_h(s, a), the sum of the counts over s2
        self.room = search_room(setting_tables(setting, self.pooled))
        self._policy: BlackoutPolicy | None = None
        self._plan()
        self.episodes_per_block = episodes_that_fit(self.policy().sequences.size, action_type(A))

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import optimistic_planning as kernels

        if kernels.count(episode.states, episode.actions, *self._learnt()):
            self._plan()

    def _learnt(self) -> tuple[Ints, Ints, Ints, bool]:
        """What is counted, and when a plan is due, as `oldlight.kernels.optimistic_planning` reads it."""
        return self.counts, self.number, self.planned, self.replan == "full"

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels import optimistic_planning as kernels

        A, before = self.setting.n_actions, self.policy()
        rule = world.player(before).rule()
        rule = rule._replace(table=rule.table.copy())  # it changes with the plan, the policy does not
        block = room_for(draws, first, wanted, rule.table.size, rule.table.dtype)
        played, changed, e = world.played(1), False, 0
        while e < len(wanted):
            due, e, changed = kernels.block(
                world.arrays, rule, played, self._learnt(), self.estimate, block, e, changed
            )
            if due:
                last = self.policy()
                self._plan()
                block.estimates[e - 1] = self.estimate
                changed = changed or self.policy() is not last
                rule.table[:] = self.policy().sequences.reshape(-1)
        shape = before.sequences.shape
        found = played_block(block, lambda row: BlackoutPolicy.trusted(row.reshape(shape), A, 0, None), before)
        if found.policies and not changed:
            found.policies[-1] = self.policy()  # the same actions: it is not valued once more
        return found

    def policy(self) -> BlackoutPolicy:
        assert self._policy is not None
        return self._policy

    def act(self, info: Information) -> int:
        return self.policy().action(info)

    # -- the estimates --------------------------------------------------------------------------------------------

    def model(self) -> tuple[Floats, Floats]:
        """p̂[h, s, a, s2], uniform where nothing was counted, and the radii of the balls [h, s, a]."""
        n = self.number
        p = self.counts / np.maximum(n, 1)[..., None]
        p[n == 0] = 1.0 / self.setting.n_states
        wide = self.c * np.sqrt(self.setting.n_states * self.setting.log_term / np.maximum(n, 1))
        return p, np.where(n > 0, np.minimum(wide, 1.0), 1.0)

    def _plan(self) -> None:
        setting, H = self.setting, self.setting.horizon
        self._search: LossSearch | None = None  # the last one's memory is needed
        p, radius = self.model()
        if self.oracle == "bonus":
            rewards = setting.rewards.copy()
            rewards[:-1] += H * radius[: H - 1]
            search = self._solve(p, rewards)
            value, table = search_value(search, setting.initial), plan_sequences(search, setting.initial, self.rng)
        else:
            shape = (max(H - 1, 1), *p.shape[1:])
            p, radius = np.broadcast_to(p, shape), np.broadcast_to(radius, shape[:3])
            value, table, p = self._alternate(p, radius)
            rewards, search = setting.rewards, None
        self.planned: Ints = self.number.copy()
        most = left_to_earn(setting)[0] if self.clip == "remaining" else float(H)
        self._take(p, rewards, min(value, float(most)), table, search)

    def _solve(self, p: Floats, rewards: Floats) -> LossSearch:
        cut = self.clip == "remaining" and self.oracle == "bonus"
        ceiling = left_to_earn(self.setting) if cut else np.full(self.setting.horizon, np.inf)
        return LossSearch(p, rewards, self.seen, ceiling, self.room)

    def _take(self, p: Floats, rewards: Floats, value: float, table: Ints, search: LossSearch | None) -> None:
        """Play this plan from now on; the policy stays the same object if nothing has changed in it."""
        self._p, self._rewards, self.estimate, self._search = p, rewards, value, search
        if self._policy is None or not np.array_equal(self._policy.sequences, table):
            self._policy = BlackoutPolicy(table, self.setting.n_actions, 0, self._elsewhere)

    def _elsewhere(self, info: Information) -> int:
        """The planned action where the actions since the newest observation were not the plan's."""
        if self._search is None:
            self._search = self._solve(self._p, self._rewards)
        known = info.t is not None and info.state is not None
        b = np.eye(self.setting.n_states)[info.state, None] if known else self.setting.initial[None]
        for i, a in enumerate(info.queue):
            b = b @ self._p[min((info.t or 0) + i, len(self._p) - 1), :, a]
        return int(self._search.visit(info.h, b)[0, 2])

    # -- the alternating oracle -----------------------------------------------------------------------------------

    def _alternate(self, p: Floats, radius: Floats) -> tuple[float, Ints, Floats]:
        """(value, sequences, θ) of the best pair that the ascents find."""
        setting = self.setting
        found: tuple[float, Ints, Floats] | None = None
        for i in range(self.starts):
            if i == 0:
                theta = np.array(p)
            elif i == 1:
                theta = seeing_model(p, radius, setting.rewards)
            else:
                theta = furthest(p, radius, self.rng.random(p.shape))
            best = -np.inf
            for _ in range(ROUNDS):
                table = plan_sequences(self._solve(theta, setting.rewards), setting.initial, self.rng)
                theta, value = best_model(table, theta, p, radius, setting.rewards, self.seen, setting.initial)
                if value <= best + ENOUGH:
                    break
                best = value
                if found is None or value > found[0]:
                    found = value, table, theta
        assert found is not None
        return found

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {
            "counts": self.counts, "planned": self.planned, "p": self._p, "rewards": self._rewards,
            "sequences": self.policy().sequences, "estimate": np.array(self.estimate),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        self.counts, self.planned = np.array(state["counts"]), np.array(state["planned"])
        self.number = self.counts.sum(axis=3)
        self._take(state["p"], state["rewards"], float(state["estimate"]), state["sequences"], None)


def search_value(search: LossSearch, initial: Floats) -> float:
    """The value of the plan: the upper bound, which a finished search has within its rounding."""
    blind = search.visit(0, initial[None])[0, 1]
    return float(search.seen[0] * (initial @ search.corner[1, 0]) + (1.0 - search.seen[0]) * blind)


def plan_sequences(search: LossSearch, initial: Floats, rng: np.random.Generator) -> Ints:
    """The plan as sequences[t + 1, s, 0, j] of a BlackoutPolicy, ties broken at random."""
    H, S = search.H, search.S
    table = np.zeros((H + 1, S, 1, H), dtype=np.int64)
    B = initial[None]  # the beliefs of the blackouts under way: the one from the start, then those from (t, s), t < h
    for h in range(H):
        B = np.concatenate([B, np.eye(S)])
        acts = _best_actions(search, h, B, rng)
        table[0, 0, 0, h] = acts[0]
        for t in range(h + 1):
            table[t + 1, :, 0, h - t] = acts[1 + t * S : 1 + (t + 1) * S]
        B = advance(B, acts, search.P[min(h, len(search.P) - 1)])
    return table


def _best_actions(search: LossSearch, h: int, B: Floats, rng: np.random.Generator) -> Ints:
    """One of the best actions of each node (h, B[i]); only those whose bound reaches the value are looked into."""
    tie, piece = max(TIE, 2.0 * search.slack), max(1, PIECE // (search.A * search.S))
    q = np.concatenate([_q_values(search, h, B[i : i + piece], tie) for i in range(0, len(B), piece)])
    good = q >= q.max(axis=1, keepdims=True) - tie
    chosen: Ints = np.where(good, rng.random(q.shape), -1.0).argmax(axis=1)
    return chosen


def _q_values(search: LossSearch, h: int, B: Floats, tie: float) -> Floats:
    """Q of each node and action, −∞ for actions whose bound is below the value."""
    P, R = search.P[min(h, len(search.P) - 1)], search.R[min(h, len(search.R) - 1)]
    stay = 1.0 - search.seen[h + 1]
    after = (B @ P.reshape(search.S, -1)).reshape(len(B), search.A, search.S)  # [i, a, s2]
    q = B @ R + search.seen[h + 1] * (after @ search.corner[0, h + 1])
    if h + 1 < search.H and stay > 0.0:
        value = search.visit(h, B)[:, 0]
        ceiling = q + stay * (after @ search.above[h + 1]).max(axis=2)
        i, a = np.nonzero(ceiling >= value[:, None] - tie)
        deeper = search.visit(h + 1, after[i, a])[:, 0]
        settled = q[i, a]
        q[:] = -np.inf
        q[i, a] = settled + stay * deeper
    return np.asarray(q)


def furthest(p: Floats, radius: Floats, direction: Floats) -> Floats:
    """The rows x within `radius` of p (in TV) with the largest x·direction: probability moves from the worst to the best."""
    order = np.argsort(-direction, axis=-1, kind="stable")
    x = np.take_along_axis(p, order, axis=-1)
    moved = np.minimum(radius, 1.0 - x[..., 0])
    behind = np.cumsum(x[..., :0:-1], axis=-1)[..., ::-1]  # the probability of place i ≥ 1 and of those behind it
    x[..., 1:] -= np.clip(moved[..., None] - (behind - x[..., 1:]), 0.0, x[..., 1:])
    x[..., 0] = 1.0 - x[..., 1:].sum(axis=-1)
    result = np.empty_like(x)
    np.put_along_axis(result, order, x, axis=-1)
    return result


def seeing_model(p: Floats, radius: Floats, rewards: Floats) -> Floats:
    """The model in the balls that is best for somebody who sees every state."""
    theta = np.array(p)
    v_next = rewards[-1].max(axis=1)
    for h in range(len(rewards) - 2, -1, -1):
        theta[h] = furthest(p[h], radius[h], np.broadcast_to(v_next, p[h].shape))
        v_next = (rewards[h] + theta[h] @ v_next).max(axis=1)
    return theta


def best_model(
    table: Ints, theta: Floats, p: Floats, radius: Floats, rewards: Floats, seen: Floats, initial: Floats
) -> tuple[Floats, float]:
    """One ascent over the models for the policy of `table`, step by step from the last: (θ, value of the policy at θ).

    A blackout i is the one from the start (i = 0) or from (t, s) (i = 1 + t·S + s). reach[h][i, x]: the probability that
    blackout i is under way at time h and s_h = x. worth[i, x]: what is earned from step h on in that case.
    """
    H, S, A = rewards.shape
    theta = np.array(theta)
    acts = [
        np.concatenate([table[0, 0, 0, h, None], *(table[t + 1, :, 0, h - t] for t in range(h + 1))]) for h in range(H)
    ]
    reach = [np.concatenate([(1.0 - seen[0]) * initial[None], seen[0] * np.diag(initial)])]
    for h in range(H - 1):
        after = advance(reach[h], acts[h], theta[h])
        lost = (1.0 - seen[h + 1]) * after
        reach.append(np.concatenate([lost, seen[h + 1] * np.diag(after.sum(axis=0))]))
    worth = rewards[H - 1].T[acts[H - 1]]
    for h in range(H - 2, -1, -1):
        n = 1 + (h + 1) * S
        worth_seen = np.diagonal(worth[n:])  # what a seen s_{h+1} is worth
        following = seen[h + 1] * worth_seen + (1.0 - seen[h + 1]) * worth[:n]  # [i, s2]
        for a in range(A):
            mine = acts[h] == a
            gain = reach[h][mine].T @ following[mine]  # [x, s2]
            reached = reach[h][mine].sum(axis=0) > 0.0
            theta[h, :, a] = furthest(p[h, :, a], radius[h, :, a], np.where(reached[:, None], gain, worth_seen))
        worth = rewards[h].T[acts[h]]
        for a in range(A):
            mine = acts[h] == a
            worth[mine] += following[mine] @ theta[h][:, a].T
    value = seen[0] * (initial @ np.diagonal(worth[1:])) + (1.0 - seen[0]) * (initial @ worth[0])
    return theta, float(value)
