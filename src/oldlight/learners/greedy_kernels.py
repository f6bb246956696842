"""The compiled loops of greedy planning: act by one step of lookahead, and back up only what the episode met.

Values stand in a hash table that grows with what was visited: keys[slot] is 1 + the place of an information state in its layout
(places beyond the layout are those of the open-loop rest after the last action), values[slot] its V. A state that is not there
is worth what can still be earned. A second bound needs no table of queues at all: push what is known through the queue with the
estimates, and let everything be seen from then on (plain[h, s], optimistic value iteration without delay). Both are optimistic,
so the smaller one is used. Ties are broken by a hash of (place, action, salt), a new salt each episode.
"""

import numba as nb
import numpy as np

from oldlight.simulation_kernels import GIVEN, begin, play

MIXED = np.uint64(0x9E3779B97F4A7C15)


@nb.njit(nogil=True, cache=True)
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@nb.njit(nogil=True, cache=True)
def slot_of(place, keys):
    """The slot of a place, or the free slot where it belongs."""
    mask = len(keys) - 1
    i = np.int64(_mix(np.uint64(place) * MIXED) >> np.uint64(20)) & mask
    while keys[i] != 0 and keys[i] != place + 1:
        i = (i + 1) & mask
    return i


@nb.njit(nogil=True, cache=True)
def _value(place, otherwise, keys, values):
    i = slot_of(place, keys)
    return values[i] if keys[i] != 0 else otherwise


@nb.njit(nogil=True, cache=True)
def without_delay(plain, H, lead, rewards, remaining, index, weight, n_next, bonus, known):
    """plain[h, s]: optimistic value iteration of the original process."""
    S, A = rewards.shape[1], rewards.shape[2]
    plain[H] = 0.0
    for h in range(H - 1, -1, -1):
        row = 0 if n_next.shape[0] == 1 else h + lead
        for s in range(S):
            best = 0.0
            for a in range(A):
                best = max(best, _plain_q(h, s * A + a, row, plain, H, rewards[h, s, a], index, weight, n_next, bonus, known,
                                          remaining[h]))  # fmt: skip
            plain[h, s] = min(best, remaining[h])


@nb.njit(nogil=True, cache=True, inline="always")  # a call with this many arrays would cost more than it does
def _plain_q(h, sa, row, plain, H, reward, index, weight, n_next, bonus, known, most):
    if h == H - 1:
        return reward
    if not known[row, sa]:
        return most
    x = reward + bonus[row, sa]
    for k in range(n_next[row, sa]):
        x += weight[row, sa, k] * plain[h + 1, index[row, sa, k]]
    return x


@nb.njit(nogil=True, cache=True)
def _relax(h, t, s, m, code, waited, q, plain, H, lead, rewards, remaining, index, weight, n_next, bonus, known, rho,
           root_bonus):  # fmt: skip
    """Lower q[a] to the bound of somebody who sees everything from the next step on; an estimated rho has its bonus too."""
    S, A = rewards.shape[1], rewards.shape[2]
    b = rho.copy()
    begin = 0
    total = root_bonus[h]
    if t >= -lead:
        b[:] = 0.0
        b[s] = 1.0
        begin = t
        total = 0.0
    after = np.empty(S)
    for i in range(h - begin):
        step = begin + i
        row = 0 if n_next.shape[0] == 1 else step + lead
        a = code % A
        code //= A
        after[:] = 0.0
        counted = step >= 0 and not (i == 0 and waited > 0 and t >= 0)
        for x in range(S):
            if b[x] > 0.0:
                sa = x * A + a
                if not known[row, sa]:
                    total += b[x] * remaining[max(step, 0)]
                    continue
                total += b[x] * (bonus[row, sa] + (rewards[step, x, a] if counted else 0.0))
                for k in range(n_next[row, sa]):
                    after[index[row, sa, k]] += b[x] * weight[row, sa, k]
        b[:] = after
    row = 0 if n_next.shape[0] == 1 else h + lead
    for a in range(A):
        x = total
        for y in range(S):
            if b[y] > 0.0:
                x += b[y] * _plain_q(h, y * A + a, row, plain, H, rewards[h, y, a], index, weight, n_next, bonus, known,
                                     remaining[h])  # fmt: skip
        q[a] = min(q[a], x)


@nb.njit(nogil=True, cache=True)
def lookahead(h, t, s, m, code, waited, q, plain, offset, root, ends, keys, values, H, lead, cap, powers, rewards, remaining,
              index, weight, n_next, bonus, theta, theta_bonus, known, first_theta, rho, root_bonus):  # fmt: skip
    """q[a]: the optimistic value of acting a on what is known (t < −lead: nothing seen)."""
    _from_table(h, t, s, m, code, waited, q, offset, root, ends, keys, values, H, lead, cap, powers, rewards, remaining,
                index, weight, n_next, bonus, theta, theta_bonus, known, first_theta, rho, root_bonus)  # fmt: skip
    _relax(h, t, s, m, code, waited, q, plain, H, lead, rewards, remaining, index, weight, n_next, bonus, known, rho,
           root_bonus)  # fmt: skip


@nb.njit(nogil=True, cache=True)
def _from_table(h, t, s, m, code, waited, q, offset, root, ends, keys, values, H, lead, cap, powers, rewards, remaining,
                index, weight, n_next, bonus, theta, theta_bonus, known, first_theta, rho, root_bonus):  # fmt: skip
    """q[a] by one step of lookahead in the hash table."""
    A = rewards.shape[2]
    S = rewards.shape[1]
    pooled = n_next.shape[0] == 1
    final = h == H - 1
    if t < -lead:
        th = 1.0 if final else first_theta[h + 1]
        arrival = ends[H] if final else (offset[h + 1, h + 1, 0] if h + 1 < offset.shape[1] else -1)
        for a in range(A):
            after = code + a * powers[h]
            x = root_bonus[h]
            if arrival >= 0 and th > 0.0:
                for s2 in range(S):
                    if rho[s2] > 0.0:
                        x += th * rho[s2] * _value(arrival + s2 * powers[h + 1] + after, remaining[0], keys, values)
            if th < 1.0 and not final and root[h + 1] >= 0:
                x += (1.0 - th) * _value(root[h + 1] + after, remaining[0], keys, values)
            q[a] = min(x, remaining[0])
        return
    row = 0 if pooled else t + lead
    forced = final or lead > 0 or m >= cap
    clip = remaining[t + 1] if waited > 0 and t >= 0 else remaining[max(t, 0)]
    deeper = remaining[max(t + 1, 0)]
    arrival = ends[m] if final else offset[h + 1, m, 0]
    wait = -1 if forced else (offset[h + 1, m + 1, waited + 1] if m + 1 < offset.shape[1] else -1)
    for a in range(A):
        head = a if m == 0 else code % A
        sa = s * A + head
        x = rewards[t, s, head] if t >= 0 and waited == 0 else 0.0
        if t < H - 1:
            if not known[row, sa]:
                q[a] = clip
                continue
            x += bonus[row, sa] + (0.0 if forced else theta_bonus[row, sa, waited])
            th = 1.0 if forced else theta[row, sa, waited]
            rest = 0 if m == 0 else code // A + a * powers[m - 1]
            if arrival >= 0 and th > 0.0:
                for k in range(n_next[row, sa]):
                    place = arrival + index[row, sa, k] * powers[m] + rest
                    x += th * weight[row, sa, k] * _value(place, deeper, keys, values)
            if wait >= 0 and th < 1.0:
                x += (1.0 - th) * _value(wait + s * powers[m + 1] + code + a * powers[m], deeper, keys, values)
        q[a] = min(x, clip)


@nb.njit(nogil=True, cache=True)
def best_of(q, place, salt):
    """The best action; ties within 1e-12 at random."""
    best, top = 0, -np.inf
    for a in range(len(q)):
        luck = _mix((np.uint64(place) * np.uint64(len(q)) + np.uint64(a)) * MIXED + salt) >> np.uint64(11)
        x = q[a] + 1e-12 * np.float64(luck) * 2.0**-53
        if x > top:
            best, top = a, x
    return best


@nb.njit(nogil=True, cache=True)
def _store(place, value, keys, values, used):
    i = slot_of(place, keys)
    if keys[i] == 0:
        keys[i] = place + 1
        used[0] += 1
    values[i] = value


@nb.njit(nogil=True, cache=True)
def episode(salt, used, plain, offset, root, ends, keys, values, H, lead, cap, powers, rewards, remaining, index, weight,
            n_next, bonus, theta, theta_bonus, known, first_theta, rho, root_bonus,
            world_initial, world_index, world_cumulative, world_first, world_rewards, links, world_powers, pending,
            lost, draw_state, draw_link, draw_action, states, actions, settles, agent, returns, earned, ages):  # fmt: skip
    """Play one episode greedily and back up every information state on its way, the open-loop rest included."""
    A = rewards.shape[2]
    q = np.empty(A)
    no_table = np.empty(0, np.uint8)
    no_chances = np.empty((0, 0))
    begin(world_initial, world_index, world_cumulative, world_first, cap, lead, A, lost, draw_state, draw_link, draw_action,
          states, actions, settles, agent)  # fmt: skip
    for h in range(H):
        t, m, code, waited = agent[0, 0], agent[1, 0], agent[2, 0], agent[3, 0]
        s = np.int64(states[t + lead, 0]) if t >= -lead else 0
        if h >= len(pending):
            lookahead(h, t, s, m, code, waited, q, plain, offset, root, ends, keys, values, H, lead, cap, powers, rewards,
                      remaining, index, weight, n_next, bonus, theta, theta_bonus, known, first_theta, rho,
                      root_bonus)  # fmt: skip
            place = root[h] + code if t < -lead else offset[h, m, waited] + s * powers[m] + code
            a = best_of(q, place, salt)
            actions[h + lead, 0] = a
            _store(place, q[a], keys, values, used)
        play(GIVEN, h, h + 1, world_index, world_cumulative, world_rewards, links, cap, lead, 0, world_powers, pending, offset,
             root, no_table, no_chances, lost, draw_state, draw_link, draw_action, states, actions, settles, agent, returns,
             earned, ages)  # fmt: skip
    code = np.int64(0)
    for m in range(1, len(ends)):  # the open-loop rest: what the last m actions earn from the state where they began
        t = H - m
        if t < -lead:
            break
        row = 0 if n_next.shape[0] == 1 else t + lead
        s, a = np.int64(states[t + lead, 0]), np.int64(actions[t + lead, 0])
        sa = s * A + a
        x = rewards[t, s, a] if t >= 0 else 0.0
        if m > 1:
            if known[row, sa]:
                x += bonus[row, sa]
                for k in range(n_next[row, sa]):
                    place = ends[m - 1] + index[row, sa, k] * powers[m - 1] + code
                    x += weight[row, sa, k] * _value(place, remaining[max(t + 1, 0)], keys, values)
            else:
                x = remaining[max(t, 0)]
        code = code * A + a
        _store(ends[m] + s * powers[m] + code, min(x, remaining[max(t, 0)]), keys, values, used)


@nb.njit(nogil=True, cache=True)
def rehash(old_keys, old_values, keys, values):
    """Move a table into a larger one."""
    for i in range(len(old_keys)):
        if old_keys[i] != 0:
            j = slot_of(old_keys[i] - 1, keys)
            keys[j] = old_keys[i]
            values[j] = old_values[i]
