"""What belongs to an optimistic plan over a layout besides the sweep of `kernels.delay`: random numbers for ties, and the value of time 0."""

from typing import Any, NamedTuple

from oldlight.kernels.cache import compiled

NOISE = 1e-12  # ties are values closer than this


class Plan(NamedTuple):
    """What is planned for (`kernels.delay`), and where time 0 stands: the place of the states that are seen then and of the root (−1: neither can be)."""

    model: Any
    optimism: Any
    tables: Any
    first: int
    root: int
    warmup: int
    mode: int  # this and the rest: arguments of the sweep of all rows in one call (written out there, they would be compiled for once more)
    begin: int
    end: int
    part: int
    parts: int


@compiled
def draw_noise(noise, rng):
    """New random numbers for ties; the generator is used as `rng.random(out=noise)` would."""
    for a in range(noise.shape[0]):
        for j in range(noise.shape[1]):
            noise[a, j] = rng.random() * NOISE


@compiled
def start_value(plan):
    """The value of time 0, from the values just computed."""
    values, rho = plan.tables.values, plan.model.initial
    S = len(rho)
    value = 0.0
    if plan.warmup > 0:
        queues = plan.tables.powers[plan.warmup]
        for s in range(S):
            total = 0.0
            for code in range(queues):
                total += values[plan.first + s * queues + code]
            value += rho[s] * (total / queues)
        return value
    at_once = plan.model.first_theta[0]
    if at_once > 0.0 and plan.first >= 0:
        for s in range(S):
            value += at_once * rho[s] * values[plan.first + s]
    if plan.root >= 0:
        value += (1.0 - at_once) * values[plan.root]
    return value
