"""Q of a learner and of the truth at every information state, for the claims of `oldlight.paper.optimism`.

Under delay, Q is read off the values of one pass of value iteration by looking one step ahead, in the account of the
past-reward model (`oldlight.planning.delay` has the recursion; this module never iterates). Under loss, everything that can
be known is written out, τ by τ; so this is for small problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from oldlight.arrays import Floats
from oldlight.learners.base import Setting
from oldlight.learners.optimistic_tables import Estimate, Tables
from oldlight.model.information import Information
from oldlight.model.problem import ImpairedMDP


class Place(NamedTuple):
    """Where Q is asked for: a block of (h, m, δ), the root of time h, or what follows the last action (h = H); t = h − m is
    the newest visible step, and no Q there is above `clip`."""

    what: str
    t: int
    h: int
    m: int
    waited: int
    clip: float


def places(tables: Tables) -> Iterator[Place]:
    """All of them, the paper's 2H steps."""
    layout, most, H = tables.layout, tables.remaining, tables.setting.horizon
    for h, m, waited, _ in (block for time in reversed(range(H)) for block in layout.blocks(time)):
        t = h - m
        yield Place("block", t, h, m, waited, float(most[t + 1] if waited and t >= 0 else most[max(t, 0)]))
    for m in range(1, len(tables.ends)):
        yield Place("after", H - m, H, m, 0, float(most[max(H - m, 0)]))
    for h in np.flatnonzero(layout.root >= 0).tolist():
        yield Place("root", -1, h, h, h, float(most[0]))


def delay_q(tables: Tables, place: Place, V: Floats, model: Estimate) -> Floats:
    """Q of one place for a model with bonuses, from the values V of the time after it.

    Axes [s, q1, a, w] for a queue of head q1 and rest w (after the last action a has one entry); [s, a] where the queue is
    empty; [a, w] at the root.
    """
    if place.what == "root":
        return _root_q(tables, place, V, model)
    what, t, h, m, waited, clip = place
    setting, layout = tables.setting, tables.layout
    S, A, H = setting.n_states, setting.n_actions, setting.horizon
    row = 0 if len(model.n_next) == 1 else t + setting.warmup
    forced = h >= H - 1 or setting.warmup > 0 or m >= setting.law.longest_delay
    base = tables.rewards[t] * (waited == 0) if t >= 0 else np.zeros((S, A))
    theta = np.ones((S, A)) if forced else model.theta[row, :, waited].reshape(S, A)
    if t < H - 1:  # what follows the last step does not matter: nothing to learn
        extra = model.bonus[row] + (0.0 if forced else model.theta_bonus[row, :, waited])
        base = np.where(model.known[row].reshape(S, A), base + extra.reshape(S, A), clip)
    choices, W = (1 if what == "after" else A), A ** max(m - 1, 0)
    if h >= H - 1:
        arrival = int(tables.ends[m - 1 if what == "after" else m])
    else:
        arrival = int(layout.offset[h + 1, m, 0])
    wait = -1 if forced or m + 1 >= layout.offset.shape[1] else int(layout.offset[h + 1, m + 1, waited + 1])
    if m == 0:
        x = base.copy()
        if arrival >= 0:
            x += theta * (model.weight[row] * V[arrival + model.index[row]]).sum(axis=1).reshape(S, A)
        if wait >= 0:
            x += (1 - theta) * V[wait : wait + S * A].reshape(S, A)
        return np.minimum(x, clip)
    x = np.broadcast_to(base[:, :, None, None], (S, A, choices, W)).copy()
    if arrival >= 0:
        v = V[arrival : arrival + S * choices * W].reshape(S, choices, W)
        ahead = np.einsum("pk,pkaw->paw", model.weight[row], v[model.index[row]])
        x += theta[:, :, None, None] * ahead.reshape(S, A, choices, W)
    if wait >= 0:
        later = V[wait : wait + S * A * W * A].reshape(S, A, W, A)  # [s, a, w, q1]
        x += (1 - theta)[:, :, None, None] * later.transpose(0, 3, 1, 2)
    return np.minimum(x, clip)


def _root_q(tables: Tables, place: Place, V: Floats, model: Estimate) -> Floats:
    layout, setting, h = tables.layout, tables.setting, place.h
    S, A, final = setting.n_states, setting.n_actions, place.h == setting.horizon - 1
    W = A**h
    theta, arrival = 1.0, -1
    if final:
        arrival = int(tables.ends[setting.horizon])
    else:
        theta = float(model.first_theta[h + 1])
        arrival = int(layout.offset[h + 1, h + 1, 0]) if h + 1 < layout.offset.shape[1] else -1
    x = np.full((A, W), model.root_bonus[h])
    if arrival >= 0 and theta > 0:
        x += theta * (model.rho @ V[arrival : arrival + S * A * W].reshape(S, A * W)).reshape(A, W)
    if theta < 1 and layout.root[h + 1] >= 0:
        x += (1 - theta) * V[layout.root[h + 1] : layout.root[h + 1] + A * W].reshape(A, W)
    return np.minimum(x, place.clip)


def true_tables(problem: ImpairedMDP, setting: Setting) -> tuple[Tables, Estimate]:
    """The optimal values in a table of the same layout, and the truth as a model without bonuses."""
    H, S, A, warmup = problem.horizon, problem.n_states, problem.n_actions, problem.warmup
    T, law = warmup + H, problem.law
    K = law.interarrival.shape[-1]
    P = np.array([np.asarray(problem.transitions_at(t)).reshape(S * A, S) for t in range(-warmup, H)])
    theta = np.ones((T, S * A, K))
    if warmup == 0:
        theta = np.ascontiguousarray(np.broadcast_to(law.hazard, (H, S, A, K)).reshape(H, S * A, K))
    truth = Estimate(
        np.broadcast_to(np.arange(S, dtype=np.int32), P.shape).copy(), P, np.full((T, S * A), S, dtype=np.int64), np.zeros((T, S * A)),
        np.zeros((0, 0)), theta, np.zeros((T, S * A, K)), np.ones((T, S * A), dtype=np.bool_), np.array(law.first_hazard),
        np.array(problem.initial), np.zeros(H),
    )  # fmt: skip
    tables = Tables(setting, np.array(problem.mdp.rewards))
    tables.sweep(truth, np.random.default_rng(0))
    return tables, truth


# -- loss -----------------------------------------------------------------------------------------------------------


def everything_known(horizon: int, n_states: int, n_actions: int) -> Iterator[Information]:
    """Every τ under loss, in the order of `loss_q`: by time; what follows a lost observation, then what a seen one gives."""
    level = [Information.nothing_seen()]
    for h in range(horizon):
        level += [Information.seen(h, s) for s in range(n_states)]
        yield from level
        level = [
            Information(h + 1, i.t, i.state, (*i.queue, a), i.waited + 1) for i, a in product(level, range(n_actions))
        ]


def loss_q(
    P: Floats, R: Floats, seen: Floats, initial: Floats, ceiling: Floats | None = None
) -> tuple[list[Floats], list[Floats]]:
    """Q[h][τ, a] of the best plan for transitions P[h or 0, s, a, s2], rewards R[h, s, a] and arrival probabilities.

    Twice: with the rewards from the newest seen step on, and with those from step h on. ceiling[h]: the value of a seen
    state of step h counts as at most this.
    """
    H, S = R.shape[:2]
    beliefs, past = [np.concatenate([initial[None], np.eye(S)])], [np.zeros(1 + S)]
    # [τ, a, s2], [τ, a]: the belief of the next state, and what the steps of τ and a have earned
    after, earned = [], []
    for h in range(H):
        rows = P[min(h, len(P) - 1)]
        after.append(np.einsum("is,sat->iat", beliefs[h], rows))
        earned.append(past[h][:, None] + beliefs[h] @ R[h])
        beliefs.append(np.concatenate([after[h].reshape(-1, S), np.eye(S)]))
        past.append(np.concatenate([earned[h].reshape(-1), np.zeros(S)]))
    whole: list[Floats] = []
    V = np.zeros(0)
    for h in range(H - 1, -1, -1):
        q = earned[h].copy()
        if h < H - 1:
            lost, corner = V[: q.size].reshape(q.shape), V[q.size :]
            if ceiling is not None:
                corner = np.minimum(corner, ceiling[h + 1])
            q = seen[h + 1] * (q + after[h] @ corner) + (1 - seen[h + 1]) * lost
        V = q.max(axis=1)
        whole.insert(0, q)
    return whole, [q - past[h][:, None] for h, q in enumerate(whole)]
