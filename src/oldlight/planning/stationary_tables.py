"""Tables of a process that runs for ever: one stage instead of H, and bounds on its fixed point at every sweep.

Each table is measured at its own step: U^{n,L}[s, q1..qL], s the state of step h − L, counts the reward of that step once and those of later ones
times u, u², .. Then the recursion of `oldlight.planning.ages` holds with u·P in the place of P (u = 1 for the average), for a block
(node n, queue length L ≤ D) of the automaton; the age is D or more where L = D, and there the state of step h − D is taken as seen: the bound
from above of that module. One such step for all blocks is U ↦ TU.

**Bounds** (MacQueen). Adding c·u^L to every block adds u·c·u^L to TU, so with δ = (TU − U)/u^L over all blocks and entries

    discount u    TU + u/(1−u)·min δ·u^L  ≤  U*  ≤  TU + u/(1−u)·max δ·u^L
    average       min δ ≤ g ≤ max δ,          the reward per step g, for every start

and the policy that is greedy for U earns at least the lower one, because T follows it. Where u is near 1 what counts is how fast the *differences*
between entries settle: the number of sweeps does not grow with 1/(1−u).

**Sweeps.** Anderson's extrapolation proposes the next U from the last few (x, Tx); a proposal that does not bring the bounds closer within a few
sweeps is dropped for the plain iterate. Whatever U is, the bounds are certified by the sweep itself. Where there is one small block (a constant
delay) the same sweeps are first made in one compiled call, and the one that certifies is its last. The average, and discounts above .9, are always damped,
U ↦ U + ½(TU − U): queues and periodic sensing cycle even where the process does not.

**Links of several classes.** A delay that is drawn once and stays (`EmpiricalDelay`, `BernoulliDelay`) leaves the link in one of several closed classes of
nodes, whatever is done. Then δ is taken within each class, and the average is Σ_c P(class c)·g_c.

**In front.** The root (nothing seen at time h < D, queue a_0..a_{h−1}) and the steps of a warm start are not part of the fixed point: D more blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type
from oldlight.machine import thread_count
from oldlight.model.age_layers import Block, Layers, Move
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.information import Block as Place
from oldlight.model.information import encode
from oldlight.model.mdp import TabularMDP
from oldlight.model.successors import Successors
from oldlight.planning.ages import AgeTables, Plant, Table
from oldlight.planning.delay import SingleBlocks
from oldlight.progress import decades_closed
from oldlight.threads import lent_threads

DAMPED = 0.9
STALLED = 1_500  # sweeps without the bounds coming closer by a hundredth, after which there is no more to be had
SMALL_BLOCK = 1e5  # products of a sweep of one block up to which sweeps are made in one call,
CHEAP = 3e7  # and the products that it may take, about 30 ms


class EndlessPlant(Plant):
    """The process of every step: rewards r, transitions u·P."""

    def __init__(self, mdp: TabularMDP, initial: Floats, pending: tuple[int, ...]) -> None:
        super().__init__(mdp, initial=initial, pending=pending)
        u = self.discount = 1.0 if mdp.discount is None else mdp.discount
        plain = super().successors(0)
        self._each = dataclasses.replace(plain, matrix=u * plain.matrix, weight=u * plain.weight)

    def successors(self, t: int) -> Successors:
        return self._each

    def rewards(self, t: int) -> Floats:
        each: Floats = self.mdp.rewards[0]
        return each


def endless_layers(automaton: ChannelAutomaton, n_states: int, n_actions: int, depth: int) -> tuple[Layers, list[Any]]:
    """The blocks (node, L) that can be met, once, as the single time of `Layers`; and the roots: for each time h < depth the pairs
    (node, moves). Moves of a root without anything newer lead to the next time's roots by number, from time depth on to blocks."""
    D, keys = depth, {}
    blocks: list[Block] = []
    todo: list[tuple[int, int]] = []
    size = 0

    def block_of(n: int, L: int) -> int:
        nonlocal size
        if (n, L) not in keys:
            keys[n, L] = len(blocks)
            blocks.append(Block(0, n, L, False, size, -1))
            size += n_states * n_actions**L
            todo.append((n, L))
        return keys[n, L]

    start: list[Move] = []
    numbers: dict[int, int] = {}
    for p, n, age in automaton.row(-1):
        if age == NOTHING_NEWER and D > 0:
            start.append(Move(p, numbers.setdefault(n, len(numbers)), age))
        else:
            start.append(Move(p, block_of(n, max(age, 0)), age))
    roots: list[Any] = []
    for h in range(D):
        following: dict[int, int] = {}
        row = []
        for n in numbers:
            moves = []
            for p, target, age in automaton.row(n):
                if age != NOTHING_NEWER:
                    moves.append(Move(p, block_of(target, age), age))
                elif h + 1 < D:
                    moves.append(Move(p, following.setdefault(target, len(following)), age))
                else:
                    moves.append(Move(p, block_of(target, D), age))
            row.append((n, moves))
        roots.append(row)
        numbers = following
    moves_of: list[list[Move]] = []
    while len(moves_of) < len(blocks):
        n, L = todo[len(moves_of)]
        ticks = automaton.row(n)
        moves_of.append([Move(p, block_of(to, min(L + 1, D) if k == NOTHING_NEWER else k), k) for p, to, k in ticks])
    layers = Layers(n_states, n_actions, D, [blocks, blocks], [moves_of], start, size, 0)
    return layers, roots


def goes_beyond(layers: Layers, roots: list[Any]) -> bool:
    """Can the agent know only the law of the state that a block is about?"""
    D = layers.depth
    if D == 0 and any(move.age == NOTHING_NEWER for move in layers.start):
        return True
    if roots and any(move.age == NOTHING_NEWER for _, moves in roots[-1] for move in moves):
        return True
    rows = zip(layers.blocks[0], layers.moves[0], strict=True)
    return any(block.length == D and any(m.age == NOTHING_NEWER for m in moves) for block, moves in rows)


class EndlessTables(AgeTables):
    """The fixed point of T between two bounds; see the module's text.

    After `run`: tables `up` and `low` (block number -> [s, code]), the greedy `actions`, those of the roots, `sweeps`, and the values per first
    state (discount) or of every start (average) between lower and upper.
    """

    def __init__(self, plant: EndlessPlant, automaton: ChannelAutomaton, depth: int) -> None:
        layers, self.roots = endless_layers(automaton, plant.mdp.n_states, plant.mdp.n_actions, depth)
        super().__init__(plant, layers, False, False)
        self.automaton, self.discount, self.average = automaton, plant.discount, plant.mdp.average
        self.beyond = goes_beyond(layers, self.roots)
        self.actions = np.zeros(layers.size, action_type(layers.n_actions))
        self.root_actions: list[dict[int, NDArray[Any]]] = []
        S, A = layers.n_states, layers.n_actions
        self._cuts = np.cumsum([S * A**b.length for b in layers.blocks[0]])[:-1]
        self._weights_of = [self.discount**b.length for b in layers.blocks[0]]
        self.sweeps, self.spread = 0, np.inf
        self._classes, self._shares = (
            link_classes(layers, self.roots) if self.average else ([0] * len(layers.blocks[0]), [1.0])
        )
        self.value = np.zeros(layers.size)

    def split(self, x: Floats) -> Table:
        """A flat vector as blocks."""
        parts = np.split(x, self._cuts)
        return {i: part.reshape(self.layers.n_states, -1) for i, part in enumerate(parts)}

    def sweep(self, x: Floats) -> Floats:
        """TU, flat; the greedy actions are noted."""
        up, out = self.split(x), []
        chains: dict[Any, Floats] = {}
        for block, moves in zip(self.layers.blocks[0], self.layers.moves[0], strict=True):
            arrival, wait, theta = self._parts(block, moves, up, up, chains)
            out.append(self._best(block, arrival, wait, theta).reshape(-1))
        self.sweeps += 1
        return np.concatenate(out)

    def differences(self, x: Floats, y: Floats) -> tuple[float, float]:
        """min and max of δ = (y − x)/u^L; of several classes the mean of theirs."""
        low, high = [np.inf] * len(self._shares), [-np.inf] * len(self._shares)
        for part, weight, c in zip(np.split(y - x, self._cuts), self._weights_of, self._classes, strict=True):
            if c >= 0:
                scale = weight or 1.0
                low[c], high[c] = min(low[c], float(part.min()) / scale), max(high[c], float(part.max()) / scale)
        return float(np.dot(self._shares, low)), float(np.dot(self._shares, high))

    @contextmanager
    def _blocks_by(self, threads: int) -> Iterator[None]:
        """Blocks are gone over one by one, by so many threads."""
        with lent_threads(threads) as pool:
            self._pool, self._threads = pool, threads
            self._induction = SingleBlocks(self.plant, self.actions, pool, threads)
            yield

    def run_until(
        self,
        tolerance: float,
        start: Floats | None = None,
        most: int = 50_000,
        stop: Callable[[], bool] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> EndlessTables:
        """Sweep until the two bounds at a known state are `tolerance` apart, or as close as rounding allows."""
        u = self.discount
        factor = 1.0 if self.average else u / (1.0 - u) + 1.0
        with self._blocks_by(thread_count()):
            x = self._first_guess(tolerance / factor) if start is None else start
            guess, damped = Extrapolation(), self.average or u > DAMPED
            first, closest, since = None, np.inf, 0
            while True:
                y = self.sweep(x)
                low, high = self.differences(x, y)
                self.spread = (high - low) * factor
                scale = float(np.abs(y).max()) + 1e-300
                rounding = 64 * np.finfo(np.float64).eps * scale * (1.0 if self.average else factor)
                first = self.spread if first is None else first
                closest, since = (self.spread, 0) if self.spread < 0.99 * closest else (closest, since + 1)
                done = self.spread <= max(tolerance, rounding) or self.sweeps >= most or since > STALLED
                if done or (stop is not None and stop()):
                    break
                if progress is not None:
                    progress(*decades_closed(first, self.spread, tolerance))
                x = guess.next(x, x + 0.5 * (y - x) if damped else y, high - low)
                if self.average and len(self._shares) == 1:
                    x = x - x[0]
            self.bounds = (low, high)
            self.value = x
            if self.average:
                self.up, self.low = self.split(y), self.split(y)
            else:
                shift = u / (1.0 - u) * np.repeat(self._weights_of, np.diff([0, *self._cuts.tolist(), len(y)]))
                self.up, self.low = self.split(y + high * shift), self.split(y + low * shift)
        return self

    def _first_guess(self, wanted: float) -> Floats:
        """Zero, or where one small block leads to itself what sweeps in one compiled call make of it; wanted: of max δ − min δ."""
        x, (block, *others) = np.zeros(self.layers.size), self.layers.blocks[0]
        moves, products = self.layers.moves[0][0], len(self.plant.successors(0).index)
        products *= self.layers.n_actions ** max(block.length, 1)
        if others or len(moves) > 1 or moves[0].age != block.length or products > SMALL_BLOCK:
            return x
        from oldlight.kernels import stationary_tables as kernels

        self.plant.share = 1.0
        parts, y = self._induction.parts(0, block.length, x, None, 1.0, Place(0, block.length, 0, block.offset))
        damping = 0.5 if self.average or self.discount > DAMPED else 1.0
        rule = (damping, self.average, wanted * (self._weights_of[0] or 1.0))
        self.sweeps += kernels.settle(*parts, (x, y), Extrapolation.room(len(x)), rule, int(CHEAP / products))
        return x

    def starts(self, table: Table, keep: bool = False) -> Floats:
        """The value per first state, in front of tables of one kind; keep: note the roots' actions."""
        coming: Table = table
        kept: list[dict[int, NDArray[Any]]] = []
        with self._blocks_by(1):
            for h in range(len(self.roots) - 1, -1, -1):
                now, acts = {}, {}
                chains: dict[Any, Floats] = {}
                for i, (n, moves) in enumerate(self.roots[h]):
                    block = Block(h, n, h, True, 0, 0)
                    now[i], chosen = self._root(block, self._mixed(block, moves, table, coming, chains), None)
                    acts[n] = chosen.astype(self.actions.dtype)
                coming = now
                kept.insert(0, acts)
        if keep:
            self.root_actions = kept
        value = np.zeros(self.layers.n_states)
        for p, i, age in self.layers.start:
            value += p * (coming if age == NOTHING_NEWER else table)[i][:, 0]
        return value

    def warm(self, table: Table, delay: int) -> Floats:
        """The same after a warm start with a constant delay: steps before 0 neither earn nor are discounted; all queues are alike."""
        S, A = self.layers.n_states, self.layers.n_actions
        node = next(i for i, b in enumerate(self.layers.blocks[0]) if b.length == delay)
        P, Y, W = self.plant.mdp.matrix(0), table[node], A ** (delay - 1)
        for _ in range(delay):
            Y = (P @ Y).reshape(S, A, A, W).max(axis=2).transpose(0, 2, 1).reshape(S, -1)
        return np.asarray(Y.mean(axis=1))

    def expectations(self) -> dict[int, Floats]:
        """E[s', q2..qD, a] of every block with L = D: what acting a is worth from the state of step h − D + 1 on, times u."""
        chains: dict[Any, Floats] = {}
        up, out = self.split(self.value), {}
        with self._blocks_by(1):
            for i, (block, moves) in enumerate(zip(self.layers.blocks[0], self.layers.moves[0], strict=True)):
                if block.length == self.layers.depth:
                    arrival, _, _ = self._parts(block, moves, up, up, chains)
                    assert arrival is not None
                    out[i] = np.array(arrival)
        return out

    def values_at(self, n: int, b: Floats, queue: tuple[int, ...], nothing: bool) -> Floats:
        """Σ_s b(s)·X[s, queue, a] for each action, s the state of step h − len(queue); nothing: nothing has been seen and len(queue) < D."""
        S, A, L = self.layers.n_states, self.layers.n_actions, len(queue)
        code, W, up = encode(queue, A), A ** max(L - 1, 0), self.up
        chains: dict[Any, Floats] = {}
        with self._blocks_by(1):
            if nothing and self.layers.depth > L:
                coming: Table = up
                for h in range(self.layers.depth - 1, L - 1, -1):
                    xs = {
                        i: self._mixed(Block(h, m, h, True, 0, 0), moves, up, coming, chains)
                        for i, (m, moves) in enumerate(self.roots[h])
                    }
                    row = self.roots[h]
                    coming = {i: self._root(Block(h, row[i][0], h, True, 0, 0), x, None)[0] for i, x in xs.items()}
                here = next((i for i, (m, _) in enumerate(self.roots[L]) if m == n), 0)
                return np.asarray(b @ xs[here][:, :, code])
            keys = {(block.node, block.length): i for i, block in enumerate(self.layers.blocks[0])}
            i = keys.get((n, L), next(i for (_, length), i in keys.items() if length == L))
            block, moves = self.layers.blocks[0][i], self.layers.moves[0][i]
            arrival, wait, theta = self._parts(block, moves, up, up, chains)
        out = np.zeros(A)
        if arrival is not None:
            r, mdp, u = self.plant.rewards(0), self.plant.mdp, self.discount
            if L == 0:
                out += theta * (b @ (r + u * mdp.expected(np.ascontiguousarray(arrival[:, 0]), 0)))
            else:
                after = u * mdp.advanced(b, 0, queue[0])
                out += theta * (float(b @ r[:, queue[0]]) + after @ arrival[:, code // A :: W][:, :A])
        if wait is not None:
            out += (1.0 - theta) * (b @ wait.reshape(S, A, -1)[:, :, code])
        return out


def strong_classes(step: Any) -> NDArray[Any]:
    """The strongly connected class of each node of a sparse matrix. SciPy before 1.13 reads no indices of 64 bits here, and says so only in a warning."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    step = csr_array(step)
    places = (step.data, step.indices.astype(np.int32), step.indptr.astype(np.int32))
    _, label = connected_components(csr_array(places, shape=step.shape), connection="strong")
    return np.asarray(label)


def link_classes(layers: Layers, roots: list[Any]) -> tuple[list[int], list[float]]:
    """The closed class of each block (−1: it is left sooner or later), and the probability of each class."""
    from scipy.sparse import csr_array

    B = len(layers.blocks[0])
    rows = [(i, m.block, m.probability) for i, moves in enumerate(layers.moves[0]) for m in moves]
    step = csr_array(([p for *_, p in rows], ([i for i, *_ in rows], [j for _, j, _ in rows])), shape=(B, B))
    label = strong_classes(step)
    open_ones = {int(label[i]) for i, j, _ in rows if label[i] != label[j]}
    closed = [c for c in sorted(set(label.tolist())) if c not in open_ones]
    at = np.zeros(B)
    weights: list[dict[int, float]] = [{} for _ in range(len(roots) + 1)]
    for p, i, age in layers.start:
        if age == NOTHING_NEWER and roots:
            weights[0][i] = weights[0].get(i, 0.0) + p
        else:
            at[i] += p
    for h, row in enumerate(roots):
        for i, (_, moves) in enumerate(row):
            for p, j, age in moves:
                now = weights[h].get(i, 0.0) * p
                if age == NOTHING_NEWER and h + 1 < len(roots):
                    weights[h + 1][j] = weights[h + 1].get(j, 0.0) + now
                else:
                    at[j] += now
    within = np.array([label[i] in closed for i in range(B)])
    inside = np.flatnonzero(~within)
    moved = at.copy()
    if len(inside):
        left = np.linalg.solve(np.eye(len(inside)) - step.toarray()[np.ix_(inside, inside)].T, at[inside])
        moved = at + left @ step.toarray()[inside]
    shares = [float(moved[[i for i in range(B) if label[i] == c]].sum()) for c in closed]
    return [closed.index(int(c)) if c in closed else -1 for c in label], [p / sum(shares) for p in shares]


class Extrapolation:
    """Anderson's: the affine combination of the last pairs (x, Fx) whose residual is smallest, with a way back (`oldlight.kernels.stationary_tables`)."""

    def __init__(self) -> None:
        self._history: Any = None

    @staticmethod
    def room(size: int) -> Any:
        from oldlight.kernels import stationary_tables as kernels

        rows = (kernels.MEMORY + 1, size)
        return kernels.History(
            np.empty(rows), np.empty(rows), np.empty(size), np.zeros(4, np.int64), np.array([np.inf])
        )

    def next(self, x: Floats, fx: Floats, spread: float) -> Floats:
        from oldlight.kernels import stationary_tables as kernels

        if self._history is None:
            self._history = self.room(len(x))
        out = np.empty_like(x)
        kernels.propose(self._history, x, fx, spread, out)
        return out
