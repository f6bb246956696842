"""How old the newest observation is: the law of the age behind a link, and its quantile over an episode.

The age at time h is m if the newest observation that has come through is that of step h − m, and h if nothing has. With d_i the
delay of step i, and whether it is lost drawn apart from that (from a link state z: one state for `Loss`, two for `BurstyLoss`):

    in order        step h − m has settled by time h with probability A_h(m) = P(d_{h−m} ≤ m), and then so have all before it. Let
                    a_h(m) = A_h(m) − A_h(m−1), and g_m(z) the probability that the newest settled step is among h, ..., h − m, all from it
                    back to h − m are lost, and the link was in z at step h − m. Then, going back in time (both chains are reversible)
                        g_m(z) = (Σ_z' g_{m−1}(z')·P(z | z') + a_h(m)·π(z))·P(lost | z, h − m),    P(age_h ≤ m) = A_h(m) − Σ_z g_m(z)
    out of order    with u_m(z) the probability that none of h, ..., h − m is visible and the link was in z at step h − m,
                        u_m(z) = Σ_z' u_{m−1}(z')·P(z | z')·(1 − P(seen | z, h − m)·A_h(m)),      P(age_h ≤ m) = 1 − Σ_z u_m(z)

for m < h; and P(age_h ≤ h) = 1. Nothing of that is sampled. Two kinds of link have no such law without more than is known here; for them
this is a bound that no age exceeds more often: where Δ depends on the state and the action, the slowest row at each step takes its
place; where losses come from a class of one's own that only draws them, or whose modes do not look the same backwards, everything counts as lost.

Links without a delay law are counted: the law is that of 4,096 runs, always the same ones.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from oldlight.arrays import Floats
from oldlight.envs.tabular_setup import PLACES
from oldlight.model.channels.messages import arrivals_of
from oldlight.simulation.link_sampler import LawSampler, LinkSampler

SHARE = 0.999  # of the steps of an episode
STEPS = 200  # the length of an episode where no limit is known
RUNS = 4096  # of a link without a delay law
STILL = 1e-15  # a law that changes by less at each step has settled
REVERSIBLE = 1e-12  # rounding of the flow between two modes


def typical_age(sampler: LinkSampler, most: int, share: float = SHARE) -> tuple[int, float]:
    """(q, share): the smallest q, at most `most`, such that the age is at most q in this share (99.9 %) of the steps of an episode, its end
    included, on average; and the share of the steps in which it is."""
    steps = STEPS if sampler.horizon is None else sampler.horizon
    if sampler.law is None:
        law, times = _counted(sampler, steps, min(most, steps))
    else:
        law, times = age_law(sampler.law, steps, min(most, steps))
    shares = times @ law / (steps + 1)
    enough = np.flatnonzero(shares >= share)
    q = int(enough[0]) if len(enough) else len(shares) - 1
    return q, float(min(shares[q], 1.0))


def default_queue(sampler: LinkSampler, actuation: int, *, note: bool = False) -> int:
    """How many actions `ImpairedObservation` shows unless it is told, and if asked for a note where these are not always all actions since."""
    age, share = typical_age(sampler, max(PLACES - actuation, 0))
    places = min(age + actuation, PLACES)
    if note and share < 1 - 1e-12:
        steps = STEPS if sampler.horizon is None else sampler.horizon
        gym.logger.warn(
            "%s",
            f"ImpairedObservation shows the last {places} actions, those since the newest observation in {100 * share:.2f} % of the "
            f"steps of an episode of {steps}; say how many you want, queue={places} or another number. The channel is {sampler.channel!r}",
            stacklevel=3,
        )
    return places


def age_law(sampler: LawSampler, steps: int, most: int) -> tuple[Floats, Floats]:
    """(law, times): law[h, m] = P(age at time h ≤ m) for m = 0..most, and how many of the times 0..steps row h stands for: one,
    except for the last row, which stands for all times after which nothing changes any more."""
    arrived = _arrived(sampler, steps, most)
    seen, moves, stationary = _visible(sampler, steps)
    rows = min(steps, max(len(arrived), len(seen)) + most) + 1
    h = np.arange(rows)
    law = np.empty((rows, most + 1))
    hidden = np.zeros((rows, len(stationary)))
    before = np.zeros(rows)
    for m in range(most + 1):
        sent = np.maximum(h - m, 0)
        by_now = arrived[np.minimum(sent, len(arrived) - 1), m]
        visible = seen[np.minimum(sent, len(seen) - 1)]
        if sampler.in_order:
            hidden = (hidden @ moves + (by_now - before)[:, None] * stationary) * (1 - visible)
            law[:, m] = by_now - hidden.sum(axis=1)
        else:
            hidden = (hidden @ moves if m else np.tile(stationary, (rows, 1))) * (1 - visible * by_now[:, None])
            law[:, m] = 1 - hidden.sum(axis=1)
        law[h <= m, m] = 1.0
        before = by_now
    times = np.ones(rows)
    times[-1] += steps + 1 - rows
    return law, times


def _arrived(sampler: LawSampler, steps: int, most: int) -> Floats:
    """P(d_i ≤ k), axes (i, k); the last row holds for all later steps too."""
    law = sampler.delay.law(steps, *sampler.sizes)
    waits = np.cumsum(law.interarrival[..., : most + 1], axis=-1).min(axis=(1, 2))  # P(Δ_i ≤ k), the slowest
    waits = np.pad(waits, ((0, 0), (0, most + 1 - waits.shape[1])), mode="edge")
    first = np.zeros(most + 1)
    first[: len(law.first)] = law.first[: most + 1]
    rows = [np.cumsum(first)]
    if not sampler.in_order:
        rows += list(waits) if sampler.moves else []
    else:
        pmfs = np.diff(waits, axis=1, prepend=0.0)
        changes = np.flatnonzero((waits[1:] != waits[:-1]).any(axis=1))
        fixed = int(changes[-1]) + 1 if len(changes) else 0  # from here on Δ_i has one law
        now = first
        for i in range(steps):
            after = np.convolve(now, pmfs[min(i, len(pmfs) - 1)])[: most + 1]
            rows.append(np.cumsum(after))
            if i >= fixed and np.abs(after - now).max() <= STILL:
                break
            now = after
    arrived = np.minimum(np.array(rows), 1.0)
    if law.longest_delay <= most:
        arrived[:, law.longest_delay :] = 1.0
    return arrived


def _visible(sampler: LawSampler, steps: int) -> tuple[Floats, Floats, Floats]:
    """(P(seen | z, step i), axes (i, z), whose last row holds for all later steps; P(z' | z); the law of z)."""
    one = np.ones((1, 1))
    if sampler.loss is None:
        return one, one, np.ones(1)
    modes = sampler.modes or sampler.loss.modes(steps)
    if modes is None:
        return 0 * one, one, np.ones(1)
    flow = modes.first[:, None] * modes.switch
    if np.abs(flow - flow.T).max() > REVERSIBLE:  # going back in time it is another chain
        return np.zeros((1, len(modes.first))), modes.switch, modes.first
    return modes.seen, modes.switch, modes.first


def _counted(sampler: LinkSampler, steps: int, most: int) -> tuple[Floats, Floats]:
    """As `age_law`, counted in `RUNS` runs."""
    assert sampler.link is not None
    arrivals = arrivals_of(sampler.link, np.random.default_rng(0), steps + 1, RUNS)
    newest, each = np.full((steps + 1, RUNS), -1), np.arange(RUNS)  # the newest step at each time; -1: none
    for i, when in enumerate(arrivals):
        comes = (when >= 0) & (when <= steps)
        newest[when[comes], each[comes]] = i
    newest = np.maximum.accumulate(newest)
    law = np.empty((steps + 1, most + 1))
    for h in range(steps + 1):
        ages = np.where(newest[h] < 0, most + 1, np.minimum(h - newest[h], most + 1))
        law[h] = np.bincount(ages, minlength=most + 2)[: most + 1].cumsum() / RUNS
    law[np.arange(steps + 1)[:, None] <= np.arange(most + 1)] = 1.0
    return law, np.ones(steps + 1)
