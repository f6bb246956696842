"""How long a process runs, checked: H steps, or for ever with a discount or by its average; and that its rewards can be added up."""

from __future__ import annotations

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats

LONGEST = 10**6  # steps of an episode


def checked_discount(discount: object) -> float:
    u = checks.real("discount", discount)
    if not 0.0 <= u < 1.0:
        raise ValueError(f"discount is {u:.12g}, expected a number in [0, 1)")
    return u


def checked_span(horizon: object, discount: object, average: object) -> float | None:
    """The discount, checked; refuses a horizon, discount and average that do not go together."""
    if not isinstance(average, bool | np.bool_):
        raise ValueError(f"average is {average!r}, expected True or False")
    if average and (horizon is not None or discount is not None):
        other = f"horizon is {horizon!r}" if horizon is not None else f"discount is {discount!r}"
        raise ValueError(
            f"average is True and {other}: the reward per step is that of horizon=None, without a discount"
        )
    if horizon is None and discount is None and not average:
        raise ValueError(
            "horizon is None: a process that runs for ever needs discount=u, with u in [0, 1), or average=True"
        )
    return None if discount is None else checked_discount(discount)


def check_sums(R: Floats, most: float, over: str) -> None:
    """Refuse rewards whose sums, and differences of such sums, are too large for a number; `most` is the largest |Σ_h r_h|."""
    limit = float(np.finfo(np.float64).max) / 2
    if not most <= limit:
        index = [int(i) for i in np.unravel_index(int(np.abs(R).argmax()), R.shape)]
        where = ", ".join(f"{axis}={i}" for axis, i in zip(("h", "s", "a")[-R.ndim :], index, strict=True))
        raise ValueError(
            f"rewards[{where}] is {float(R[tuple(index)]):.12g}: the rewards of an episode ({over}) add up to {most:.6g}, expected "
            f"at most {limit:.6g} in absolute value; measure rewards in larger units"
        )


def checked_horizon(horizon: object) -> int:
    """The number of steps."""
    H = checks.whole("horizon", horizon, least=1)
    if H > LONGEST:
        raise checks.TooLarge(
            f"horizon is {H:,}: an episode may have {LONGEST:,} steps, since a plan has entries for each of them. A process that runs on and "
            "on has horizon=None, with discount=u or average=True"
        )
    return H


def check_shapes(stationary: bool, S: int, A: int, R: Floats, H: int | None) -> None:
    """Do the rewards have the axes of these transitions, with H steps; None: for ever?"""
    if H is None and (not stationary or R.ndim != 2):
        raise ValueError(
            f"horizon is None, with {'transitions' if not stationary else 'rewards'} of each step: a process that runs for ever is stationary; "
            f"expected transitions of shape {(S, A, S)} and rewards of shape {(S, A)}"
        )
    if R.shape not in ((S, A), (H, S, A)):
        raise ValueError(f"rewards has shape {R.shape}; expected {(S, A)} or {(H, S, A)} to fit the transitions")
