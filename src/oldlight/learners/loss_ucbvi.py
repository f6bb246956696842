"""`LossUCBVI`: Algorithm 3 of the paper, for lost observations whose rate is not known.

Steps are counted from 0 (the paper counts from 1): s_h is the state of step h = 0..H−1, λ_h its arrival probability.
The information state is τ_h = (t, s_t, a_t..a_{h−1}): the newest seen state and the actions since, or all actions if
nothing was seen. K episodes, failure probability γ, ι = log(S·A·H·K/γ), rewards in [0, 1] and known.

    For each episode k: play the policy, then
      1. count  N_h(τ, a, s2) += 1  wherever s_{h+1} = s2 was seen after acting a on τ_h = τ;  N_h(τ, a) is the sum
      2. p̂_h(s2|τ, a) = N_h(τ, a, s2)/N_h(τ, a);   λ̂_h = the share of the k episodes so far in which s_h was *seen*
         (the paper counts the lost ones, and then uses the figure as the rate of seen ones)
      3. optimistic value iteration, h = H−1..0, over the visited τ only:
           Q_h(τ, a) = min( H,  r̂_h(τ, a) + λ̂_{h+1} Σ_s2 p̂_h(s2|τ, a)·V_{h+1}(s2) + (1 − λ̂_{h+1})·V_{h+1}(τ, a)
                                + c·H·( √(H·ι/N_h(τ, a)) + √(ι/k) ) ),       V_h = max_a Q_h
         where V_{h+1}(s2) is the value of having seen s2, and V_{h+1}(τ, a) that of τ with a appended. Q = H where
         N_h(τ, a) = 0, and V = H for a τ never visited. At h = H−1 there is only the reward.
      4. π_h(τ) = argmax_a Q_h(τ, a)

**The reward of τ.** Where s_h was seen it is r_h(s_h, a). Otherwise it is b̂_h·r_h(:, a), the belief estimated from the
episodes in which s_h *was* seen after the same parent, b̂_h(·|τ_h) = p̂_{h−1}(·|τ_{h−1}, a_{h−1}), plus the bonus
c·√(H·ι/N) of that parent count N = N_{h−1}(τ_{h−1}, a_{h−1}); a reward is at most 1, so there is no factor H. With a
parent count of 0, Q = H. (The paper's bonus ignores the count behind its own belief estimate.) Before step 0 stands one
more node, without reward, so that h = 0 follows the same rules: the belief of an unseen s_0 is the share of each state
among the first states seen. The V of that node is `estimate`.

**What is guaranteed.** With c = 1, `THEORY`, every Q is at least the optimal one with probability 1 − γ. There are at
most 6·S·A^H pairs (τ, a). By Hoeffding's inequality, with γ/3 for each of the three, for all of them and all N ≤ K at
once: p̂·V* is off by at most H·√(L/(2N)), b̂·r by √(L/(2N)), with L = log(36·S·A^H·K/γ) ≤ 2·H·ι; λ̂ by at most
√(log(6·H·K/γ)/(2k)) ≤ √(ι/k), and it multiplies a difference of two values, at most H. With this c nothing is learnt in
any number of episodes that one would run. The default c was measured on processes and rates that are reported nowhere
else (docs/scripts/loss_learners.py --tune; docs/loss_learners.md has the figures): the largest constant whose regret,
relative to the best constant's and averaged, is within 1.5 times the best. It carries no guarantee. Theorem 2 bounds
the regret where λ > 1 − 1/A; below that the paper has no bound. A step that is never seen (λ_h = 0) is never learnt
about.

Memory follows what was visited: per episode at most H nodes of A entries, and H next states; never S·A^H.

Actions whose Q agree to 1e-12 are drawn from at random, once per back-up. A τ never visited has nothing to go by: its
action is drawn uniformly, anew after each episode, one draw for each (t, s_t, number of actions since).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints, action_type
from oldlight.learners.base import Learner, Setting
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit, played_block, room_for
from oldlight.learners.optimistic_planning import left_to_earn, lost_and_never_late
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.policies import BlackoutPolicy

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World

THEORY = 1.0  # the c that is proved
DEFAULT = 0.01  # the c that learns
NODES = ("nodes", "child", "count", "first", "value", "choice")  # one row per visited information state
OTHERS = ("corner", "level", "shown", "sizes", "draws", "sequences")
FIRST = 1024


class LossUCBVI(Learner):
    """Algorithm 3 of the paper, for lost observations whose rate is not known; see the module's text.

    Parameters
    ----------
    c : float
        Bonus constant, > 0.
    replan : "full" or "greedy"
        Back up every visited τ after every episode, as in the paper; or only those that the episode met, last step first, with values
        that never rise (Efroni et al. 2019 do this in ordinary processes, see `learners.greedy`), the others keeping their action.
    clip : "remaining" or "H"
        Where Q is cut, and what unvisited pairs have: Σ_{i ≥ h} max r_i ≤ H − h, or the paper's H.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, horizon=4), "loss:0.2")
    >>> ol.learn(problem, ol.learners.LossUCBVI(), 20).done
    20
    """

    def __init__(
        self,
        *,
        c: float = DEFAULT,
        replan: Literal["full", "greedy"] = "full",
        clip: Literal["remaining", "H"] = "remaining",
    ) -> None:
        if replan not in ("full", "greedy"):
            raise ValueError(f'replan is {replan!r}, expected "full" or "greedy"')
        if clip not in ("remaining", "H"):
            raise ValueError(f'clip is {clip!r}, expected "remaining" or "H"')
        self.c, self.replan, self.clip = checks.positive("c", c), replan, clip

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        lost_and_never_late(setting, "LossUCBVI")
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        self.setting, self.rng, self.iota = setting, rng, setting.log_term
        self._rewards = np.ascontiguousarray(setting.rewards)
        self.top: Floats = np.full(H + 1, float(H))  # at the node before the start, then at steps 0..H−1
        if self.clip == "remaining":
            self.top[1:] = left_to_earn(setting)
        self.episodes = 0
        self.nodes: Ints = np.full((FIRST, 5), -1, dtype=np.int64)
        self.child: Ints = np.full((FIRST, A), -1, dtype=np.int64)
        self.count: Ints = np.zeros((FIRST, A), dtype=np.int64)
        self.first: Ints = np.full((FIRST, A), -1, dtype=np.int64)
        self.value: Floats = np.full(FIRST, float(H))
        self.choice: Ints = np.zeros(FIRST, dtype=np.int64)
        self.entries: Ints = np.full((FIRST, 3), -1, dtype=np.int64)
        self.corner: Ints = np.full((H, S), -1, dtype=np.int64)
        self.level: Ints = np.full(H, -1, dtype=np.int64)
        self.shown: Ints = np.zeros(H, dtype=np.int64)
        self.sizes: Ints = np.array([1, 0])
        self.sequences: Ints = np.zeros((H + 1, S, 1, H), dtype=np.int64)
        self.draws: Ints = rng.integers(A, size=self.sequences.shape)
        self.sequences[:] = self.draws
        self._policy = self._as_policy()
        self.episodes_per_block = episodes_that_fit(self.sequences.size, action_type(A))

    @property
    def estimate(self) -> float:  # type: ignore[override]
        """The optimistic value of the start."""
        return float(self.value[0])

    @property
    def seen_rate(self) -> Floats:
        """λ̂_h: the share of the episodes in which s_h was seen."""
        return self.shown / max(self.episodes, 1)

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import loss_ucbvi as kernels

        H = self.setting.horizon
        self._make_room(H)
        self.episodes += 1
        path = np.empty(H, dtype=np.int64)
        tree, rules = self._arrays()
        kernels.count_episode(episode.states, episode.actions, tree, path)
        key = int(self.rng.integers(2**62))
        self.draws = self.rng.integers(self.setting.n_actions, size=self.draws.shape)
        kernels.plan(tree, rules, self.replan == "full", path, key, self.draws, self.sequences)
        if not np.array_equal(self.sequences, self._policy.sequences):
            self._policy = self._as_policy()

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels import loss_ucbvi as kernels

        A, shape, before = self.setting.n_actions, self.sequences.shape, self._policy
        rule = world.player(before).rule()
        rule = rule._replace(table=rule.table.copy())  # it changes with the plan, the policy does not
        block = room_for(draws, first, wanted, rule.table.size, rule.table.dtype)
        played, changed, e, was = world.played(1), False, 0, self.episodes
        while e < len(wanted):
            self._make_room(self.setting.horizon)
            changed, e = kernels.block(  # nothing here holds the arrays: they go one by one where longer ones take their place
                world.arrays, rule, played, (*self._arrays(), self.replan == "full", self.draws, self.sequences), changed, self.rng, block, e
            )  # fmt: skip
            self.episodes = was + e
        found = played_block(block, lambda row: BlackoutPolicy.trusted(row.reshape(shape), A, 0, None), before)
        if changed:
            self._policy = self._as_policy()
        elif found.policies:
            self._policy = cast(BlackoutPolicy, found.policies[-1])
            self._policy.elsewhere = self.act
        return found

    def _arrays(self) -> tuple[Any, Any]:
        """The tree and the rules, as the kernels read them."""
        from oldlight.kernels import loss_ucbvi as kernels

        tree = kernels.Tree(
            self.nodes, self.child, self.count, self.first, self.entries, self.value, self.choice, self.corner, self.level,
            self.shown, self.top, self.sizes,
        )  # fmt: skip
        return tree, kernels.Rules(self.episodes, self.c, self.iota, self._rewards)

    def policy(self) -> BlackoutPolicy:
        return self._policy

    def _as_policy(self) -> BlackoutPolicy:
        """The sequences now, in as few bytes as an action needs: several of these are held at once."""
        A = self.setting.n_actions
        return BlackoutPolicy(self.sequences.astype(action_type(A)), A, 0, self.act)

    def act(self, info: Information) -> int:
        i = self.node(info)
        row, s = (0, 0) if info.t is None or info.state is None else (info.t + 1, info.state)
        return int(self.choice[i] if i > 0 else self.draws[row, s, 0, len(info.queue)])

    def node(self, info: Information) -> int:
        """Where an information state stands in the tree, −1 if it was never visited."""
        i = int(self.child[0, 0] if info.t is None or info.state is None else self.corner[info.t, info.state])
        for a in info.queue:
            i = int(self.child[i, a]) if i >= 0 else -1
        return i

    def q_values(self, node: int) -> Floats:
        """Q_h(τ, a) of a visited information state for each a, shape (A,)."""
        from oldlight.kernels import loss_ucbvi as kernels

        q = np.empty(self.setting.n_actions)
        kernels.q_values(node, *self._arrays(), q)
        return q

    def next_states(self, info: Information | None, a: int = 0) -> Ints:
        """N_h(τ, a, s2) for each s2; `info` None: the first states seen."""
        found = np.zeros(self.setting.n_states, dtype=np.int64)
        i = 0 if info is None else self.node(info)
        j = int(self.first[i, a]) if i >= 0 else -1
        while j >= 0:
            s, times, j = self.entries[j].tolist()
            found[s] = times
        return found

    def _make_room(self, more: int) -> None:
        """Arrays for `more` nodes and entries, a quarter longer where they are full; unused rows are as in `start`."""
        n, m = (int(x) + more for x in self.sizes)
        if n > len(self.nodes):
            for name in NODES:
                setattr(self, name, _longer(getattr(self, name), n, 0 if name == "count" else -1))
        if m > len(self.entries):
            self.entries = _longer(self.entries, m, -1)

    def state(self) -> dict[str, Any]:
        n, m = (int(x) for x in self.sizes)
        arrays = {name: getattr(self, name)[:n] for name in NODES} | {name: getattr(self, name) for name in OTHERS}
        return arrays | {"entries": self.entries[:m], "episodes": np.array(self.episodes)}

    def restore(self, state: dict[str, Any]) -> None:
        for name in NODES + OTHERS + ("entries",):
            setattr(self, name, np.array(state[name]))
        self.episodes = int(state["episodes"])
        if not len(self.entries):
            self.entries = np.full((FIRST, 3), -1, dtype=np.int64)
        self._policy = self._as_policy()


def _longer(old: NDArray[Any], rows: int, unused: int) -> NDArray[Any]:
    """The same with room for so many rows or a quarter more than it had."""
    new = np.empty((max(rows, len(old) * 5 // 4), *old.shape[1:]), old.dtype)
    new[: len(old)], new[len(old) :] = old, unused
    return new
