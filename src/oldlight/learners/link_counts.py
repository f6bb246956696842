"""What episodes behind any link reveal: one-step transitions of the process, rewards, and the ages of the link, each counted by itself.

After an episode every message that was not lost is known, with its arrival time. So

    N_t(s, a, s2)     += 1   for each t with s_t and s_{t+1} both revealed,
    rewards           += r   for each revealed step,
    L_m(k)            += 1   for each tick h → h + 1 from age m to age k (k = m + 1: nothing newer), and R_h(k) likewise while nothing has been seen.

The link does not depend on the process, so its counts are put together over everything else: a row of ages is learnt at the rate at which its age is met.
What is counted is an *age chain*. For packets, FIFO, renewal loss, constant delays and periodic sensing it is the law itself; of a link with hidden modes, or whose
waiting has a memory of its own, it is the best that the age alone can tell. Which ages can follow which (the support) is taken from the channel, as
`DelayedUCBVI(law="estimated")` does.

**Steps before step 0** (a warm start) have the transitions of step 0 and are counted there.

**Pairs that share their counts** (`pooled="auto"`). Where the setting says that the transitions are the same at all steps, all pairs share their counts for ever. Where it does not, they
may be so all the same: they share until the odds say otherwise. Let DM(n) be the probability of draws with the counts n, in order, under a law from a Dirichlet with parameters 1/S. The ratio

    Π_t DM(N_t(s, a, ·)) / DM(Σ_t N_t(s, a, ·)),

the evidence for a law of its own at each step against one law for all, is a martingale that begins at 1 if there is one law and it comes from that Dirichlet, whatever decides when the pair is visited. So by
Ville's inequality it then ever exceeds 2·S·A/γ for one of the S·A pairs with probability at most γ/2. A pair whose ratio exceeds that is split: from then on each of its steps
has its own counts. The product of the ratios of all pairs is such a martingale too, and exceeds 2/γ with probability at most γ/2: then all pairs are split at once, which is much
sooner where all of them change. (For a law that such a Dirichlet hardly ever makes nothing is proved. With the largest likelihood of one law below the line it would be, for every law, but pairs were split
much later; and to test where one law is promised cost more than it ever gave: docs/learning_suites.md.) A difference that is too small for the test stays: see there for what that can cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.learners.base import Setting
from oldlight.learners.counts import revealed
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick
from oldlight.model.episode import Episode

MORE_AGES = 6  # beyond the longest delay, ages that have a row of their own


class LinkCounts:
    """Counts of the process, axes [t, s, a, s2], t = 0..H−1, and of the rewards."""

    def __init__(self, setting: Setting, pooled: bool | str) -> None:
        if pooled is True and not setting.stationary:
            raise ValueError(
                "pooled counts are for stationary transitions; this process has one law per step: pooled=False"
            )
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        self.setting, self.pooled = setting, pooled
        self.number = np.zeros((H, S, A, S))
        self.hidden = np.zeros((1, S, A, S))  # expected transitions between observations several steps apart
        self.paid, self.paid_times = np.zeros((H, S, A)), np.zeros((H, S, A))
        self.split = np.full((S, A), pooled is False)
        self._evidence, self._tested = (
            np.zeros((S, A)),
            np.zeros((S, A)),
        )  # of each pair, and how often it was counted by then
        self._done = np.zeros(1, dtype=np.int64)

    @property
    def episodes(self) -> int:
        """How many were counted."""
        return int(self._done[0])

    def arrays(self) -> Any:
        """The counts, as `kernels.link_counts` reads them."""
        from oldlight.kernels import link_counts as kernels

        how = kernels.TOGETHER if self.pooled else kernels.APART
        if self.pooled == "auto" and not self.setting.stationary:
            how = kernels.AUTO
        return kernels.LinkCounts(
            self.number,
            self.hidden,
            self.paid,
            self.paid_times,
            self.split,
            self._evidence,
            self._tested,
            self._done,
            how,
        )

    def add(self, episode: Episode) -> None:
        """Count one episode."""
        from oldlight.kernels import link_counts as kernels

        kernels.count(revealed(episode), episode.warmup, self.arrays())

    @property
    def visits(self) -> Floats:
        """How often each pair was counted where its estimate comes from, [t or one, s, a]."""
        return np.asarray(self.by_step().sum(axis=3))

    def by_step(self) -> Floats:
        """The counts that each step's estimate is made of, [t, s, a, s2]; one t where all pairs share theirs."""
        from oldlight.kernels import link_counts as kernels

        found = np.empty_like(self.number)
        return found[: kernels.by_step(self.arrays(), found)]

    def test(self, level: float) -> bool:
        """Split the pairs whose steps differ (see the module's text); was there a new one?"""
        from oldlight.kernels import link_counts as kernels

        return bool(kernels.test(self.arrays(), float(level)))

    def state(self) -> dict[str, Any]:
        names = ("number", "hidden", "paid", "paid_times", "split", "episodes")
        return {f"counts.{name}": np.array(getattr(self, name)) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        for key, value in state.items():
            if key == "counts.episodes":
                self._done[0] = value
            elif key.startswith("counts."):
                setattr(self, key.removeprefix("counts."), np.array(value))


def log_evidence(number: Floats) -> Floats:
    """The logarithm of the ratio of the module's text for each pair, from counts [t, .., s2], shape (..): evidence that its steps differ."""
    from oldlight.kernels import link_counts as kernels

    H, S, shape = len(number), number.shape[-1], number.shape[1:-1]
    pairs = np.ascontiguousarray(np.asarray(number, dtype=np.float64).reshape(H, -1, 1, S))
    return np.array([kernels.log_evidence(pairs[:, i, 0]) for i in range(pairs.shape[1])]).reshape(shape)


class AgeCounts:
    """Counts of the link's ages, and the automaton that they make. Nodes: ("age", m), ages beyond the last row together, and ("nothing", h)."""

    def __init__(self, link: ChannelAutomaton) -> None:
        """link: that of the problem, late actions included; only its support is used."""
        H = link.horizon
        self.horizon, self.last = H, max(min(link.longest + MORE_AGES, H - 1), 0)
        self.possible, self.root_possible = _support(link, self.last)
        self.rows = np.zeros((self.last + 1, H + 2))
        self.roots = np.zeros((H, H + 2))  # [h]: from time h − 1 to h, nothing seen before

    def add(self, episode: Episode) -> None:
        """Count the ticks of one episode."""
        H, arrivals = self.horizon, episode.arrivals[episode.warmup :]
        before, step = -1, np.arange(H)
        for h in range(H):
            visible = step[(arrivals >= 0) & (arrivals <= h) & (step <= h)]
            newest = int(visible[-1]) if len(visible) else -1
            column = h - newest if newest > before else H + 1
            if before < 0:
                self.roots[h, column] += 1
            else:
                self.rows[min(h - 1 - before, self.last), column] += 1
            before = newest

    def automaton(self) -> ChannelAutomaton:
        """The estimated link: the counts, with one more tick shared among all that can be."""

        def row(name: Any) -> list[Tick]:
            kind, i = name
            if kind == "nothing":
                law = _law(self.roots[i + 1], self.root_possible[i + 1])
                return [(p, ("nothing", i + 1) if k < 0 else ("age", min(k, self.last)), k) for k, p in law]
            law = _law(self.rows[i], self.possible[i])
            return [(p, ("age", min(i + 1 if k < 0 else k, self.last)), k) for k, p in law]

        start = _law(self.roots[0], self.root_possible[0])
        begin: list[Tick] = [(p, ("nothing", 0) if k < 0 else ("age", 0), k) for k, p in start]
        return ChannelAutomaton.explore(begin, row, self.horizon)

    def node(self, h: int, t: int | None) -> Any:
        """The node of this automaton where the newest visible step is t."""
        return ("nothing", h) if t is None else ("age", min(h - t, self.last))

    def state(self) -> dict[str, Any]:
        return {"ages.rows": self.rows, "ages.roots": self.roots}

    def restore(self, state: dict[str, Any]) -> None:
        self.rows[:], self.roots[:] = state["ages.rows"], state["ages.roots"]


def _law(counts: Floats, possible: list[int]) -> list[tuple[int, float]]:
    """(age or NOTHING_NEWER, probability) for all that can be."""
    n = np.array([counts[k] if k >= 0 else counts[-1] for k in possible]) + 1.0 / len(possible)
    return list(zip(possible, (n / n.sum()).tolist(), strict=True))


def _support(link: ChannelAutomaton, last: int) -> tuple[list[list[int]], list[list[int]]]:
    """Which ages (or NOTHING_NEWER) can follow each age, and at each time while nothing has been seen; never empty."""
    H = link.horizon
    rows: list[set[int]] = [set() for _ in range(last + 1)]
    roots: list[set[int]] = [set() for _ in range(H)]
    at: set[tuple[int, int | None]] = {(-1, None)}
    for h in range(H):
        following: set[tuple[int, int | None]] = set()
        for n, m in at:
            for _, target, age in link.row(n):
                (roots[h] if m is None else rows[min(m, last)]).add(age)
                nothing = age == NOTHING_NEWER
                following.add((target, (None if m is None else m + 1) if nothing else age))
        at = following
    return [sorted(row) or [NOTHING_NEWER] for row in rows], [sorted(row) or [NOTHING_NEWER] for row in roots]
