"""A process to plan for, made of counts: optimistic by a state in which everything is earned or by the best one there is, or drawn from the
posterior.

**Optimism.** One state is added, ∞, that is never left and earns at each step the most that the step can earn. With N = N_t(s, a),

    p̃_t(·|s, a) = (1 − β)·p̂_t(·|s, a) + β·e_∞,         β_t(s, a) ∈ [0, 1],   1 where N = 0,   0 at the last step, whose successor does not matter.

    "prior"        β = n/(N + n): as if each pair had been seen to lead to ∞ n times before the first episode. No constant that depends on H, S, A or K
    "hoeffding"    β = 0 where N > 0, and there r̃ = r + min( c·R·√(ι/N), R − p̂V ),                                     R = Σ_{i>t} max r_i
    "bernstein"    the same with c·( √(2·Var_p̂(V)·ι/N) + R·ι/(3N) )

where V is the full-information value of the process one step later, and ι = log(S·A·H·K/γ). So no plan expects more than can still be earned: not with full information, and so not behind any
link, where no policy earns more. No other planner is needed. (A bonus is paid, not given as a share β = bonus/(R − p̂V) of ∞, which has the same value with full information: where a state cannot be improved, p̂V = R, that
share is 1, and behind a delay ∞ is better than the best state, because one need not know that one is there, nor stay.)

What is proved: with c ≥ 1 and "hoeffding", and everything seen at once, this is UCBVI with its values clipped at what is left to earn, and optimistic with
probability 1 − γ. Behind a link the value ahead of a queue is another function than V, so that for it, and for "prior", nothing is proved: `certificate`
in `oldlight.learners.stopping` has the bounds that hold behind every link. What is measured is in docs/learning.md.

**Towards the best.** "best" needs no state that is not there: with g the best state of the next step, the one whose full-information value V_{t+1} is largest,

    p̃_t(·|s, a) = ( N·x + n·e_g ) / ( N + n ),        x ~ Dirichlet(κ·N_t(s, a, ·)) on the successors that were met,       e_g where N = 0.

Whatever a pair that was never tried does, it cannot lead to more than the best state: so everything untried is optimistic, but by the span of the values and not by all that could be earned, which is
what makes it learn faster than "prior". The draw has 1/κ of the posterior's variance (κ = `sharpness`), and keeps a wrong estimate from staying for ever. Nothing is proved of it.

**Pseudo-visits that are learnt** (visits="learnt", of "prior" and "best"). n is how much is expected of a visit that it meets something new, and that can be counted. If a pair's successors are drawn as by
a Dirichlet process of concentration n, its (i + 1)-st visit meets a successor that is new to it with probability n/(n + i). So n is where the number of those that were met, D of each pair with N ≥ 2 visits, is the
expected one:

    1 + Σ (D − 1)  =  2·n/(n + 1) + Σ Σ_{i=1}^{N−1} n/(n + i),          the inner sum taken as n·log((n + N − ½)/(n + ½)),

the first term on each side two second visits that were never made, one of which met something new: n is 1 before the first episode, falls towards 0.01 where nothing is random, and never
exceeds 2·S. It is one number for all pairs, so that what one of them shows, how random this process is, serves all others; it has no constant to be fitted to the process.

**Posterior.** Each row is drawn from a Dirichlet law with parameters N + prior (1/S); with draws = n > 1 each pair takes, of n rows, the one that promises most
(the largest Σ p·V of full information), which is optimistic posterior sampling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oldlight.arrays import Floats

KINDS = ("prior", "best", "bernstein", "hoeffding", "posterior")  # in the order of `kernels.optimistic_model`


class Estimated(NamedTuple):
    """A process to plan for: transitions (1 or H, S, A, S) and rewards (H, S, A), the added state last if there is one."""

    transitions: Floats
    rewards: Floats


class Optimism(NamedTuple):
    """How the process is made: kind, constant c and log term ι of the bonuses, pseudo-visits n, sharpness κ, draws for each pair, the prior of the posterior (1/S if 0), and how often a learner looks again."""

    kind: str
    c: float = 1.0
    log_term: float = 1.0
    visits: float = 1.0
    sharpness: float = 1.0
    draws: int = 1
    prior: float = 0.0
    looks: int = 0

    def numbers(self) -> Any:
        """As `kernels.optimistic_model` reads it."""
        from oldlight.kernels import optimistic_model as kernels

        return kernels.How(
            KINDS.index(self.kind), float(self.c), float(self.log_term), float(self.visits), int(self.looks), float(self.sharpness),
            int(self.draws), float(self.prior),
        )  # fmt: skip


def optimistic(number: Floats, rewards: Floats, how: Optimism) -> Estimated:
    """The process of the module's text from counts [1 or H, s, a, s2] and rewards [H, s, a]."""
    return _made(number, rewards, how, None)


def towards_best(
    number: Floats, rewards: Floats, visits: float, sharpness: float, rng: np.random.Generator
) -> Estimated:
    """The process "best" of the module's text from counts [1 or H, s, a, s2] and rewards [H, s, a]."""
    return _made(number, rewards, Optimism("best", visits=visits, sharpness=sharpness), rng)


def drawn(number: Floats, rewards: Floats, prior: float, draws: int, rng: np.random.Generator) -> Estimated:
    """A process from the posterior; of several draws for each pair, the one that promises most."""
    return _made(number, rewards, Optimism("posterior", prior=prior, draws=draws), rng)


def _made(number: Floats, rewards: Floats, how: Optimism, rng: np.random.Generator | None) -> Estimated:
    from oldlight.kernels import optimistic_model as kernels

    P, R = room_for(how.kind, rewards.shape)
    generator = np.random.default_rng(0) if rng is None else rng  # those that draw nothing take any
    counts = np.ascontiguousarray(number, dtype=np.float64)
    return Estimated(P[: kernels.make(counts, np.ascontiguousarray(rewards), how.numbers(), 1.0, generator, P, R)], R)


def room_for(kind: str, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Transitions and rewards for a process of this kind, with the state that it adds."""
    H, S, A = shape
    S += adds_state(kind)
    return np.zeros((H, S, A, S)), np.zeros((H, S, A))


def adds_state(kind: str) -> bool:
    """Does the process have a state more than there are?"""
    return kind in ("prior", "hoeffding", "bernstein")
