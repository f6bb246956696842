"""Q-values at one information state: the recursion of `oldlight.planning.delay` for one queue, from the next time's values."""

from __future__ import annotations

import numpy as np

from oldlight.model.information import encode, push
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.delay import DelayModel, Floats, Stage


def backup_at(
    model: DelayModel, h: int, t: int | None, queue: tuple[int, ...], waited: int, following: Stage
) -> Floats:
    """X_h[s, ·, a] of the module's text for one queue: axes [s_t (the start state at the root), a]."""
    layout = model.layout
    S, A, H = layout.n_states, layout.n_actions, layout.horizon
    m, code = len(queue), encode(queue, A)
    if t is None:
        first = model.first_theta(h)
        x = np.zeros((S, A))
        if h == H - 1:
            assert following.root is not None
            return np.asarray(following.root.reshape(S, A, -1)[:, :, code])
        if (h + 1, 0) in following.values:
            x += first * following.values[h + 1, 0].reshape(S, A, -1)[:, :, code]
        if following.root is not None:
            x += (1 - first) * following.root.reshape(S, A, -1)[:, :, code]
        return x
    reward, theta = model.reward(t, waited), np.ones((S, A)) if h == H - 1 else model.theta(t, m, waited)
    P = model.problem.matrix_at(t)
    if m == 0:
        x = np.array(reward)
        if (0, 0) in following.values:
            x += theta * (P @ following.values[0, 0][:, 0]).reshape(S, A)
    else:
        reward, theta = reward[:, queue[:1]], theta[:, queue[:1]]  # [s, 1]
        x = np.repeat(reward, A, axis=1)
        if (m, 0) in following.values:
            x += theta * (P[queue[0] :: A] @ following.values[m, 0].reshape(S, A, -1)[:, :, code // A])
    if h < H - 1 and (m + 1, waited + 1) in following.values:
        x += (1 - theta) * following.values[m + 1, waited + 1].reshape(S, A, -1)[:, :, code]
    return x


def q_values(
    model: DelayModel, h: int, t: int | None, b: Floats, queue: tuple[int, ...], waited: int, following: Stage
) -> Floats:
    """E[rewards of steps h, h+1, ... | s_t ~ b, queue, wait, a], from the stage of time h + 1; at the root s_0 ~ b."""
    skip = 1 if waited and t is not None else 0
    return np.asarray(
        b @ backup_at(model, h, t, queue, waited, following) - earned(model.problem, b, t or 0, queue, skip)
    )


def earned(problem: ImpairedMDP, b: Floats, t: int, queue: tuple[int, ...], skip: int = 0) -> float:
    """What the steps of the queue are expected to earn, without the first `skip` of them."""
    total = 0.0
    for i, a in enumerate(queue):
        if i >= skip:
            total += float(b @ problem.rewards_at(t + i)[:, a])
        b = push(problem, b, t + i, (a,))
    return total
