"""The compiled loops of learning under delay: counts, and one pass of value iteration over all blocks of a layout.

Steps t = −warmup..H−1 have their own rows of counts (row t + lead), or one row for all of them when counts are pooled. A
state-action pair is the number s·A + a.

    seen[T, sa]                    N_t(s, a)
    index, number[T, sa, k]        the successors met so far and how often; n_next[T, sa] how many there are
    event, risk[T, sa, δ]          interarrival times Δ = δ met, and pairs that were still waiting at δ

`sweep` is the recursion of `oldlight.planning.delay`, block by block, on any such model: with estimates and bonuses it is
optimistic value iteration, with the true model and a given table it is the exact value of that table.
"""

import numba as nb
import numpy as np

from oldlight.kernels.delay import FOLLOW, SHIFTS, backup_sparse


@nb.njit(nogil=True, cache=True)
def count(
    states, actions, arrivals, warmup, longest_delay, A, pooled, seen, index, number, n_next, event, risk, touched
):
    """Take one revealed episode into the counts; touched[i] = (row, pair) of step i."""
    n = len(states)
    K = event.shape[2]
    for i in range(n):
        row = 0 if pooled else i
        sa = states[i] * A + actions[i]
        touched[i, 0] = row
        touched[i, 1] = sa
        if i + 1 == n:
            break  # what follows the last step is never seen
        seen[row, sa] += 1
        k = 0
        while k < n_next[row, sa] and index[row, sa, k] != states[i + 1]:
            k += 1
        if k == n_next[row, sa]:
            index[row, sa, k] = states[i + 1]
            n_next[row, sa] += 1
        number[row, sa, k] += 1
        if warmup == 0:
            late = arrivals[i] - i  # d_i
            wait = arrivals[i + 1] - arrivals[i] - 1  # Δ_i, or a lower bound on it where the delay is capped
            capped = late + wait >= longest_delay
            for j in range(min(wait + (0 if capped else 1), K)):
                risk[row, sa, j] += 1
            if not capped and wait < K:
                event[row, sa, wait] += 1


@nb.njit(nogil=True, cache=True)
def sweep(blocks, offset, root, ends, V, zeros, H, warmup, longest_delay, powers, rewards, remaining, index, weight, n_next, bonus, spread,
          theta, theta_bonus, known, first_theta, rho, root_bonus, noise, mode, table):  # fmt: skip
    """One backward pass over all blocks; V is filled, and `table` written (or followed, mode FOLLOW).

    blocks[n, 4] = (h, m, wait, offset), last time first. remaining[t]: the most that steps t, t+1, .. can earn. known[T, sa]:
    is anything known of the pair? An unknown one is worth `remaining`. root_bonus[h]: added before anything is seen.
    """
    S, A = rewards.shape[1], rewards.shape[2]
    pooled = n_next.shape[0] == 1
    optimistic = mode != FOLLOW
    base = np.empty((S, A))
    chance = np.empty((S, A))
    wide = np.empty((S, A)) if spread.shape[0] > 0 else np.empty((0, 0))
    no_given = np.empty((0, 0, 0), table.dtype)
    no_mix = np.empty((0, 0, 0, 0))
    longest = len(ends) - 1
    V[ends[0] : ends[0] + S] = 0.0
    for m in range(1, longest + 1):  # after the last action: G
        t = H - m
        row = 0 if pooled else t + warmup
        clip = remaining[max(t, 0)]
        last = t == H - 1  # its successor does not matter, so there is nothing to learn
        for s in range(S):
            for a in range(A):
                sa = s * A + a
                chance[s, a] = 1.0
                base[s, a] = rewards[t, s, a] if t >= 0 else 0.0
                if not last:
                    base[s, a] = clip if not known[row, sa] else base[s, a] + bonus[row, sa]
                if len(wide) > 0:
                    wide[s, a] = spread[row, sa] if known[row, sa] and not last else 0.0
        W = powers[m - 1]
        v_next = V[ends[m - 1] : ends[m - 1] + S * W].reshape(S, 1, W)
        out = V[ends[m] : ends[m] + S * W * A].reshape(S, W, A)
        backup_sparse(index[row], weight[row], n_next[row], base, chance, wide, clip, noise, v_next, no_mix, False,
                      3 if optimistic else 0, no_given, no_mix, False, 0, W, out, no_given)  # fmt: skip
    for b in range(len(blocks)):
        h, m, waited, here = blocks[b]
        t = h - m
        row = 0 if pooled else t + warmup
        final = h == H - 1
        forced = final or warmup > 0 or m >= longest_delay
        clip = remaining[max(t, 0)]
        if waited > 0 and t >= 0:
            clip = remaining[t + 1]
        nothing_to_learn = t == H - 1
        for s in range(S):
            for a in range(A):
                sa = s * A + a
                chance[s, a] = 1.0 if forced else theta[row, sa, waited]
                base[s, a] = rewards[t, s, a] if t >= 0 and waited == 0 else 0.0
                if optimistic and not nothing_to_learn:
                    extra = bonus[row, sa] + (0.0 if forced else theta_bonus[row, sa, waited])
                    base[s, a] = clip if not known[row, sa] else base[s, a] + extra
                if len(wide) > 0:
                    wide[s, a] = spread[row, sa] if known[row, sa] and not nothing_to_learn else 0.0
        arrival = ends[m] if final else offset[h + 1, m, 0]
        wait = -1 if forced else (offset[h + 1, m + 1, waited + 1] if m + 1 < offset.shape[1] else -1)
        if m == 0:
            for s in range(S):
                best, top, chosen = 0.0, -np.inf, 0
                for a in range(A):
                    if not optimistic and a != table[here + s]:
                        continue
                    sa = s * A + a
                    x, mean, square = base[s, a], 0.0, 0.0
                    if arrival >= 0:
                        for k in range(n_next[row, sa]):
                            v = V[arrival + index[row, sa, k]]
                            mean += weight[row, sa, k] * v
                            square += weight[row, sa, k] * v * v
                    x += chance[s, a] * mean
                    if len(wide) > 0:
                        x += wide[s, a] * np.sqrt(max(square - mean * mean, 0.0))
                    if wait >= 0:
                        x += (1.0 - chance[s, a]) * V[wait + s * A + a]
                    if optimistic:
                        x = min(x, clip)
                        if x + noise[a, (s * 131) % SHIFTS] > top:
                            top = x + noise[a, (s * 131) % SHIFTS]
                            best, chosen = x, a
                    else:
                        best, chosen = x, a
                V[here + s] = best
                if optimistic:
                    table[here + s] = chosen
            continue
        W = powers[m - 1]
        v_next = (V[arrival : arrival + S * A * W] if arrival >= 0 else zeros[: S * A * W]).reshape(S, A, W)
        v_wait = V[wait : wait + S * A * W * A].reshape(S, A, W, A) if wait >= 0 else no_mix
        out = V[here : here + S * W * A].reshape(S, W, A)
        mine = table[here : here + S * W * A].reshape(S, W, A)
        backup_sparse(index[row], weight[row], n_next[row], base, chance, wide, clip, noise, v_next, v_wait, wait >= 0, mode,
                      mine, no_mix, optimistic, 0, W, out, mine)  # fmt: skip
    for h in range(H - 1, -1, -1):  # before anything is seen
        if root[h] < 0:
            continue
        W = powers[h]
        th = 1.0 if h == H - 1 else first_theta[h + 1]
        arrival = ends[H] if h == H - 1 else (offset[h + 1, h + 1, 0] if h + 1 < offset.shape[1] else -1)
        for w in range(W):
            best, top, chosen = 0.0, -np.inf, 0
            for a in range(A):
                if not optimistic and a != table[root[h] + w]:
                    continue
                x = root_bonus[h] if optimistic else 0.0
                if arrival >= 0 and th > 0.0:
                    for s in range(S):
                        x += th * rho[s] * V[arrival + s * W * A + a * W + w]
                if th < 1.0 and h + 1 < H and root[h + 1] >= 0:
                    x += (1.0 - th) * V[root[h + 1] + a * W + w]
                if optimistic:
                    x = min(x, remaining[0])
                    if x + noise[a, (w * 37) % SHIFTS] > top:
                        top = x + noise[a, (w * 37) % SHIFTS]
                        best, chosen = x, a
                else:
                    best, chosen = x, a
            V[root[h] + w] = best
            if optimistic:
                table[root[h] + w] = chosen


@nb.njit(nogil=True, cache=True)
def estimate(touched, seen, number, n_next, event, risk, c, H, delayed, log_term, known_law, printed,
             weight, listed, bonus, spread, theta, theta_bonus, known):  # fmt: skip
    """p̂, θ̂ and their bonuses for the pairs in `touched`. delayed = (H∧D)·ι, log_term = ι."""
    K = event.shape[2]
    for i in range(len(touched)):
        row, sa = touched[i]
        n = seen[row, sa]
        if n == 0:
            continue
        known[row, sa] = True
        listed[row, sa] = n_next[row, sa]
        for k in range(n_next[row, sa]):
            weight[row, sa, k] = number[row, sa, k] / n
        if spread.shape[0] > 0:
            spread[row, sa] = c * np.sqrt(2.0 * log_term / n)
            bonus[row, sa] = c * H * log_term / (3.0 * n)
        else:
            bonus[row, sa] = c * H * np.sqrt(delayed / n)
        if known_law:
            continue
        for k in range(K):
            at_risk = risk[row, sa, k]
            theta[row, sa, k] = event[row, sa, k] / at_risk if at_risk > 0 else 1.0
            size = event[row, sa, k] if printed else at_risk
            theta_bonus[row, sa, k] = c * H * np.sqrt(delayed / size) if size > 0 else 2.0 * H
