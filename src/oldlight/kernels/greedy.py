"""The compiled loops of greedy planning: act by one step of lookahead, and back up only what the episode met.

Values stand in a hash table that grows with what was visited: keys[slot] is 1 + the place of an information state in its layout
(places beyond the layout are those of the open-loop rest after the last action), values[slot] its V. A state that is not there
is worth what can still be earned. A second bound needs no table of queues at all: push what is known through the queue with the
estimates, and let everything be seen from then on (plain[h, s], optimistic value iteration without delay). Both are optimistic,
so the smaller one is used. Ties are broken by a hash of (place, action, salt), a new salt each episode.
"""

from typing import Any, NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.copying import copy_into
from oldlight.kernels.episodes import GIVEN, Rule, begin_within, play_within

MIXED = np.uint64(0x9E3779B97F4A7C15)


class Model(NamedTuple):
    """The estimates with their bonuses, axes as in `kernels.counts`; rewards[h, s, a]; remaining[t]: the most that steps t, t+1, ..
    can earn; plain[h, s]: the bound without delay."""

    successor: Any
    weight: Any
    n_next: Any
    bonus: Any
    theta: Any
    theta_bonus: Any
    known: Any
    first_theta: Any
    rho: Any
    root_bonus: Any
    rewards: Any
    remaining: Any
    plain: Any


class Places(NamedTuple):
    """Where information states stand: offset[h, m, δ], root[h], ends[m] for the open-loop rest; powers[m] = A^m; and three numbers."""

    offset: Any
    root: Any
    ends: Any
    powers: Any
    horizon: int
    warmup: int
    longest_delay: int


class Slots(NamedTuple):
    """The hash table; used[0]: how many slots are taken."""

    keys: Any
    values: Any
    used: Any


class Known(NamedTuple):
    """An information state: time h, newest visible step t (below −warmup: nothing) and its state, the queue, and the wait."""

    h: int
    t: int
    state: int
    length: int
    code: int
    waited: int


@compiled
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def slot_of(place, keys):
    """The slot of a place, or the free slot where it belongs."""
    mask = len(keys) - 1
    i = np.int64(_mix(np.uint64(place) * MIXED) >> np.uint64(20)) & mask
    while keys[i] != 0 and keys[i] != place + 1:
        i = (i + 1) & mask
    return i


@compiled
def _value(place, otherwise, slots):
    i = slot_of(place, slots.keys)
    return slots.values[i] if slots.keys[i] != 0 else otherwise


@compiled
def without_delay(model, H, warmup):
    """model.plain[h, s]: optimistic value iteration of the original process."""
    S, A = model.rewards.shape[1], model.rewards.shape[2]
    plain = model.plain
    plain[H] = 0.0
    for h in range(H - 1, -1, -1):
        row = 0 if model.n_next.shape[0] == 1 else h + warmup
        for s in range(S):
            best = 0.0
            for a in range(A):
                best = max(best, _plain_q(model, h, s * A + a, row, H, model.rewards[h, s, a]))
            plain[h, s] = min(best, model.remaining[h])


@compiled(inline="always")  # a call with this many arrays would cost more than it does
def _plain_q(model, h, sa, row, H, reward):
    if h == H - 1:
        return reward
    if not model.known[row, sa]:
        return model.remaining[h]
    x = reward + model.bonus[row, sa]
    for k in range(model.n_next[row, sa]):
        x += model.weight[row, sa, k] * model.plain[h + 1, model.successor[row, sa, k]]
    return x


@compiled
def _relax(known, q, model, H, warmup):
    """Lower q[a] to the bound of somebody who sees everything from the next step on; an estimated rho has its bonus too."""
    h, t, _, _, code, waited = known
    S, A = model.rewards.shape[1], model.rewards.shape[2]
    belief = model.rho.copy()
    first_step = 0
    total = model.root_bonus[h]
    if t >= -warmup:
        belief[:] = 0.0
        belief[known.state] = 1.0
        first_step = t
        total = 0.0
    after = np.empty(S)
    for i in range(h - first_step):
        step = first_step + i
        row = 0 if model.n_next.shape[0] == 1 else step + warmup
        a = code % A
        code //= A
        after[:] = 0.0
        counted = step >= 0 and not (i == 0 and waited > 0 and t >= 0)
        for x in range(S):
            if belief[x] > 0.0:
                sa = x * A + a
                if not model.known[row, sa]:
                    total += belief[x] * model.remaining[max(step, 0)]
                    continue
                total += belief[x] * (model.bonus[row, sa] + (model.rewards[step, x, a] if counted else 0.0))
                for k in range(model.n_next[row, sa]):
                    after[model.successor[row, sa, k]] += belief[x] * model.weight[row, sa, k]
        copy_into(belief, after)
    row = 0 if model.n_next.shape[0] == 1 else h + warmup
    for a in range(A):
        x = total
        for y in range(S):
            if belief[y] > 0.0:
                x += belief[y] * _plain_q(model, h, y * A + a, row, H, model.rewards[h, y, a])
        q[a] = min(q[a], x)


@compiled
def lookahead(known, q, model, places, slots):
    """q[a]: the optimistic value of acting a on what is known."""
    if known.t < -places.warmup:
        _before_anything(known.h, known.code, q, model, places, slots)
    else:
        _from_table(known, q, model, places, slots)
    _relax(known, q, model, places.horizon, places.warmup)


@compiled
def _before_anything(h, code, q, model, places, slots):
    """q[a] by one step of lookahead in the hash table, while nothing has been seen."""
    S, A = model.rewards.shape[1], model.rewards.shape[2]
    H, offset, root, powers, most = places.horizon, places.offset, places.root, places.powers, model.remaining[0]
    final = h == H - 1
    theta = 1.0 if final else model.first_theta[h + 1]
    arrival = places.ends[H] if final else (offset[h + 1, h + 1, 0] if h + 1 < offset.shape[1] else -1)
    for a in range(A):
        after = code + a * powers[h]
        x = model.root_bonus[h]
        if arrival >= 0 and theta > 0.0:
            for s in range(S):
                if model.rho[s] > 0.0:
                    x += theta * model.rho[s] * _value(arrival + s * powers[h + 1] + after, most, slots)
        if theta < 1.0 and not final and root[h + 1] >= 0:
            x += (1.0 - theta) * _value(root[h + 1] + after, most, slots)
        q[a] = min(x, most)


@compiled
def _from_table(known, q, model, places, slots):
    """q[a] by one step of lookahead in the hash table."""
    h, t, s, m, code, waited = known
    A = model.rewards.shape[2]
    offset, powers, remaining = places.offset, places.powers, model.remaining
    final = h == places.horizon - 1
    row = 0 if model.n_next.shape[0] == 1 else t + places.warmup
    forced = final or places.warmup > 0 or m >= places.longest_delay
    clip = remaining[t + 1] if waited > 0 and t >= 0 else remaining[max(t, 0)]
    deeper = remaining[max(t + 1, 0)]
    arrival = places.ends[m] if final else offset[h + 1, m, 0]
    wait = -1 if forced else (offset[h + 1, m + 1, waited + 1] if m + 1 < offset.shape[1] else -1)
    for a in range(A):
        head = a if m == 0 else code % A
        sa = s * A + head
        x = model.rewards[t, s, head] if t >= 0 and waited == 0 else 0.0
        if t < places.horizon - 1:
            if not model.known[row, sa]:
                q[a] = clip
                continue
            x += model.bonus[row, sa] + (0.0 if forced else model.theta_bonus[row, sa, waited])
            theta = 1.0 if forced else model.theta[row, sa, waited]
            rest = 0 if m == 0 else code // A + a * powers[m - 1]
            if arrival >= 0 and theta > 0.0:
                for k in range(model.n_next[row, sa]):
                    place = arrival + model.successor[row, sa, k] * powers[m] + rest
                    x += theta * model.weight[row, sa, k] * _value(place, deeper, slots)
            if wait >= 0 and theta < 1.0:
                x += (1.0 - theta) * _value(wait + s * powers[m + 1] + code + a * powers[m], deeper, slots)
        q[a] = min(x, clip)


@compiled
def best_of(q, place, salt):
    """The best action; ties within 1e-12 at random."""
    best, top = 0, -np.inf
    for a in range(len(q)):
        tie = _mix((np.uint64(place) * np.uint64(len(q)) + np.uint64(a)) * MIXED + salt) >> np.uint64(11)
        x = q[a] + 1e-12 * np.float64(tie) * 2.0**-53
        if x > top:
            best, top = a, x
    return best


@compiled
def _store(place, value, slots):
    i = slot_of(place, slots.keys)
    if slots.keys[i] == 0:
        slots.keys[i] = place + 1
        slots.used[0] += 1
    slots.values[i] = value


@compiled
def episode(salt, model, places, slots, world, pending, draws, played):
    """Play one episode greedily and back up every information state on its way, the open-loop rest included."""
    A = model.rewards.shape[2]
    H, warmup, offset, root = places.horizon, places.warmup, places.offset, places.root
    states, actions, agent = played.states, played.actions, played.agent
    q = np.empty(A)
    rule = Rule(np.empty(0, np.uint8), np.empty((0, 0)), offset, root, pending)
    begin_within(world, draws, played)
    for h in range(H):
        t, m, code, waited = agent[0, 0], agent[1, 0], agent[2, 0], agent[3, 0]
        s = np.int64(states[t + warmup, 0]) if t >= -warmup else np.int64(0)
        if h >= len(pending):
            lookahead(Known(h, t, s, m, code, waited), q, model, places, slots)
            place = root[h] + code if t < -warmup else offset[h, m, waited] + s * places.powers[m] + code
            a = best_of(q, place, salt)
            actions[h + warmup, 0] = a
            _store(place, q[a], slots)
        play_within(GIVEN, h, h + 1, world, rule, draws, played)
    _back_up_rest(model, places, slots, states, actions)


@compiled
def _back_up_rest(model, places, slots, states, actions):
    """The open-loop rest: what the last m actions earn from the state where they began."""
    A, ends, powers, remaining = model.rewards.shape[2], places.ends, places.powers, model.remaining
    code = np.int64(0)
    for m in range(1, len(ends)):
        t = places.horizon - m
        if t < -places.warmup:
            break
        row = 0 if model.n_next.shape[0] == 1 else t + places.warmup
        s, a = np.int64(states[t + places.warmup, 0]), np.int64(actions[t + places.warmup, 0])
        sa = s * A + a
        x = model.rewards[t, s, a] if t >= 0 else 0.0
        if m > 1:
            if model.known[row, sa]:
                x += model.bonus[row, sa]
                for k in range(model.n_next[row, sa]):
                    place = ends[m - 1] + model.successor[row, sa, k] * powers[m - 1] + code
                    x += model.weight[row, sa, k] * _value(place, remaining[max(t + 1, 0)], slots)
            else:
                x = remaining[max(t, 0)]
        code = code * A + a
        _store(ends[m] + s * powers[m] + code, min(x, remaining[max(t, 0)]), slots)


@compiled
def rehash(old_keys, old_values, keys, values):
    """Move a table into a larger one."""
    for i in range(len(old_keys)):
        if old_keys[i] != 0:
            j = slot_of(old_keys[i] - 1, keys)
            keys[j] = old_keys[i]
            values[j] = old_values[i]
