"""Optimism: is every Q^k of a run at least Q*? The lemmas behind Theorems 1 and 2, and the step behind Proposition 6.

Each claim lets the learner run and compares, *after every episode k and at every (h, τ, a)*, the Q^k from which it acts with
the Q* of the true problem, wherever Q^k rests on an estimate. `left` is the share of runs without a single Q^k below Q*,
`right` is 1 − γ; `detail` has the lowest Q^k − Q* met, and the share of Q^k below their clip after the last episode: a Q at
the clip, the most that can still be earned, is optimistic for free. c is the constant of the bonus. Rewards in [0, 1].

**Lemma `optimism`** (Algorithm 1). τ is accounted for as in the past-reward model with 2H steps: Q_h(τ, a) counts the reward
of the newest visible step t if it has just arrived, and all later ones. That model's steps beyond H are compared too. It
holds with c = 1, which `oldlight.learners.delayed_ucbvi` derives. On the way the paper takes c_A = max(c_A1, c_A2, c_θ, 2)
where its own sum needs 2·c_θ (it is saved: c_θ is enough), and counts the information states without δ and the root.

**Lemma `optimism_missing`** (Algorithm 3; it fails only for small λ_0, and Theorem 2 asks for λ_0 > 1 − 1/A). Q_h(τ, a) is that of MDP_aug: expected rewards of steps h, h+1, .. by the belief.
The belief b̂ of a lost state comes from the episodes in which it *was* seen; the printed bonus divides by N_h(τ, a), which
does not count those. As printed, for λ_0 about 1.4/K, the lemma is false for every c
(`counterexamples.optimism_missing_printed`); with the bonus of the parent's count, as `LossUCBVI` has it, it holds with c = 1.

**Algorithm 2** with the bonus oracle, `optimism_planning`. Its plan has a Q too: that of p̂ with rewards r + bonus. It is
optimistic *if τ is accounted for from its newest seen step t on*: the bonuses of the steps t..h−1 pay for the error of the
belief. From step h on alone it is not (at the last step there is no bonus, and b̂·r falls below b·r half of the time);
`detail` has the lowest Q^k − Q* of that account too. c = √½ puts the truth in every confidence set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.learners.delayed_ucbvi import DelayedUCBVI
from oldlight.learners.loop import learn
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning, left_to_earn
from oldlight.model.information import Information
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.paper.claims import Claim
from oldlight.paper.q_tables import delay_q, everything_known, loss_q, places, true_tables
from oldlight.random_streams import Seed, seed_number

Look = Callable[[], float]  # the lowest Q^k − Q* now
ROUNDING = 1e-9


def rarely_rewarded(horizon: int, probability: float) -> TabularMDP:
    """Two states, two actions; state 0 is rare whatever is done, and only action 0 there earns anything.

    So Q* is far below what could be earned, and a Q^k below its clip means something.

    Parameters
    ----------
    horizon : int
        H.
    probability : float
        Of state 0, about.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.rarely_rewarded(3, 0.1)
    TabularMDP(S=2, A=2, H=3, per-step)
    """
    rng = np.random.default_rng(8)
    P = np.empty((horizon, 2, 2, 2))
    P[..., 0] = probability * (0.7 + 0.6 * rng.random((horizon, 2, 2)))
    P[..., 1] = 1 - P[..., 0]
    R = np.zeros((horizon, 2, 2))
    R[:, 0, 0] = 1.0
    return TabularMDP(P, R, horizon=horizon)


def optimism(
    problem: ImpairedMDP,
    episodes: int,
    *,
    c: float = 1.0,
    gamma: float = 0.1,
    runs: int = 1,
    seed: Seed = 0,
    **options: Any,
) -> Claim:
    """Lemma `optimism`: DelayedUCBVI with the Hoeffding bonus.

    Parameters
    ----------
    problem : ImpairedMDP
        Behind a channel that delays and loses nothing.
    episodes : int
        K.
    c, gamma : float
        Bonus constant, γ.
    runs, seed : int; int, SeedSequence or Generator
        How many, and the random seed of the first.
    **options
        Those of DelayedUCBVI: law, clip, divisor, pooled.

    Returns
    -------
    Claim
        left: the share of runs without a Q^k below Q*; right: 1 − γ.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.optimism(ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1"), 10).holds
    True
    """
    star: list[Floats] = []

    def watch(learner: DelayedUCBVI) -> tuple[Look, Look]:
        tables, H = learner.tables, problem.horizon
        where = [place for place in places(tables) if place.t < H - 1]
        if not star:
            best, truth = true_tables(problem, learner.setting)
            star.extend(delay_q(best, place, best.values, truth) for place in where)

        def now() -> list[Floats]:
            return [delay_q(tables, place, tables.values, learner.model) for place in where]

        def below() -> float:
            pairs = zip(now(), where, strict=True)
            return _share(q < place.clip - ROUNDING for q, place in pairs)

        return lambda: _lowest(now(), star), below

    def make() -> DelayedUCBVI:
        return DelayedUCBVI(c=c, bonus="hoeffding", **options)

    return _claim("Lemma optimism", problem, make, watch, episodes=episodes, gamma=gamma, runs=runs, seed=seed)


def optimism_missing(
    problem: ImpairedMDP,
    episodes: int,
    *,
    c: float = 1.0,
    gamma: float = 0.1,
    runs: int = 1,
    seed: Seed = 0,
    clip: Literal["remaining", "H"] = "remaining",
) -> Claim:
    """Lemma `optimism_missing`, with the bonus of the parent's count: LossUCBVI. A τ never visited has Q = its clip.

    Parameters
    ----------
    problem : ImpairedMDP
        Under loss alone.
    episodes : int
        K.
    c, gamma : float
        Bonus constant, γ.
    runs, seed : int; int, SeedSequence or Generator
        How many, and the random seed of the first.
    clip : "remaining" or "H"
        As LossUCBVI takes it.

    Returns
    -------
    Claim
        left: the share of runs without a Q^k below Q*; right: 1 − γ.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.optimism_missing(ol.ImpairedMDP(ol.instances.dichotomy(1), "loss:0.2"), 10).holds
    True
    """
    everything, (_, ahead) = _under_loss(problem)
    star = dict(zip(everything, np.concatenate(ahead), strict=True))
    each = [info for info in everything if _estimated(problem, info)]

    A = problem.n_actions

    def watch(learner: LossUCBVI) -> tuple[Look, Look]:
        met: dict[Information, int] = {}

        def now() -> Iterator[tuple[Information, Floats]]:
            for info in each:
                if info not in met and learner.node(info) >= 0:
                    met[info] = learner.node(info)
                if info in met:
                    yield info, learner.q_values(met[info])

        def lowest() -> float:
            return min((float((q - star[info]).min()) for info, q in now()), default=np.inf)

        def below() -> float:
            found = dict(now())
            clips = {info: learner.top[info.h + 1] for info in each}
            return _share(found.get(info, top + np.zeros(A)) < top - ROUNDING for info, top in clips.items())

        return lowest, below

    def make() -> LossUCBVI:
        return LossUCBVI(c=c, clip=clip)

    return _claim("Lemma optimism_missing", problem, make, watch, episodes=episodes, gamma=gamma, runs=runs, seed=seed)


def optimism_planning(
    problem: ImpairedMDP,
    episodes: int,
    *,
    c: float = float(np.sqrt(0.5)),
    gamma: float = 0.1,
    runs: int = 1,
    seed: Seed = 0,
    clip: Literal["remaining", "none"] = "remaining",
) -> Claim:
    """Algorithm 2's bonus oracle, τ accounted for from its newest seen step on. Between two plans nothing changes.

    Parameters
    ----------
    problem : ImpairedMDP
        Under loss alone.
    episodes : int
        K.
    c, gamma : float
        Constant of the radii, γ.
    runs, seed : int; int, SeedSequence or Generator
        How many, and the random seed of the first.
    clip : "remaining" or "none"
        As OptimisticPlanning takes it.

    Returns
    -------
    Claim
        left: the share of runs without a Q^k below Q*; right: 1 − γ.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.optimism_planning(ol.ImpairedMDP(ol.instances.dichotomy(1), "loss:0.2"), 10).holds
    True
    """
    each, star = _under_loss(problem)
    kept = [np.array([_estimated(problem, info) for info in each if info.h == h]) for h in range(problem.horizon)]
    lowest_ahead = [np.inf]

    def watch(learner: OptimisticPlanning) -> tuple[Look, Look]:
        most = left_to_earn(learner.setting)
        planned: list[Any] = [None]

        def now() -> tuple[list[Floats], list[Floats]]:
            plan = learner.state()
            return loss_q(
                plan["p"], plan["rewards"], learner.seen, problem.initial, most if clip == "remaining" else None
            )

        def lowest() -> float:
            if learner.planned is planned[0]:
                return np.inf
            planned[0] = learner.planned
            whole, ahead = ([x[i] for x, i in zip(q, kept, strict=True)] for q in now())
            best, best_ahead = ([x[i] for x, i in zip(q, kept, strict=True)] for q in star)
            lowest_ahead[0] = min(lowest_ahead[0], _lowest(ahead, best_ahead))
            return _lowest(whole, best)

        def below() -> float:
            pairs = zip(each, np.concatenate(now()[0]), strict=True)
            return _share(q < most[info.t or 0] - ROUNDING for info, q in pairs if _estimated(problem, info))

        return lowest, below

    def make() -> OptimisticPlanning:
        return OptimisticPlanning(c=c, clip=clip)

    claim = _claim("Algorithm 2, optimism", problem, make, watch, episodes=episodes, gamma=gamma, runs=runs, seed=seed)
    claim.detail["lowest Q^k − Q* from step h on alone"] = lowest_ahead[0]
    return claim


def _claim(
    name: str,
    problem: ImpairedMDP,
    make: Callable[[], Any],
    watch: Callable[[Any], tuple[Look, Look]],
    *,
    episodes: int,
    gamma: float,
    runs: int,
    seed: Seed,
) -> Claim:
    """Run the learners that `make` makes, each watched after every episode."""
    checks.whole("runs", runs, least=1)
    lows, belows, first = [], [], seed_number(seed)
    for run in range(runs):
        learner = make()
        see = learner.see
        looks: list[Look] = []
        low = [np.inf]

        def seen_and_watched(
            episode: Any, see: Any = see, learner: Any = learner, looks: Any = looks, low: Any = low
        ) -> None:
            see(episode)
            if not looks:
                looks.extend(watch(learner))
            low[0] = min(low[0], looks[0]())

        learner.see = seen_and_watched
        learn(problem, learner, episodes, seed=first + run, every=episodes, best=0.0, failure=gamma)
        lows.append(low[0])
        belows.append(looks[1]())
    share = float((np.array(lows) >= -ROUNDING).mean())
    detail = {
        "runs": runs,
        "episodes": episodes,
        "c": learner.c,
        "lowest Q^k − Q*": min(lows),
        "least share of Q^k below their clip at the end": min(belows),
    }
    return Claim(name, share, 1.0 - gamma, share >= 1.0 - gamma, detail, "≥")


def _lowest(q: list[Floats], star: list[Floats]) -> float:
    return min(float((x - best).min()) for x, best in zip(q, star, strict=True) if x.size)


def _share(flags: Iterable[NDArray[np.bool_]]) -> float:
    return float(np.concatenate([x.reshape(-1) for x in flags]).mean())


def _under_loss(problem: ImpairedMDP) -> tuple[list[Information], tuple[list[Floats], list[Floats]]]:
    """Every τ, and Q* of each in both accounts."""
    if problem.arrival_probability is None or problem.law.constant != 0:
        raise ValueError(f"this is about loss without delay, not {problem.channel!r}")
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    each = list(everything_known(H, S, A))
    return each, loss_q(problem.mdp.transitions, problem.mdp.rewards, problem.arrival_probability, problem.initial)


def _estimated(problem: ImpairedMDP, info: Information) -> bool:
    """Does Q_h(τ, a) rest on an estimate? Not where the state of the last step is seen."""
    return info.h < problem.horizon - 1 or info.t != info.h
