"""The automaton of a link, unrolled over the times of an episode and over the blocks of a planner's tables.

A block of time h belongs to a node n of the automaton and a queue length L:

    L < D, something seen    the age is L:  entries [s_t, queue of L actions], t = h − L
    L = D                    the age is D or more:  entries [s_u, queue of D actions], u = h − D. With age D they are information
                             states; with a larger age, or when nothing has been seen yet, the agent knows only the law b of s_u
    h < D, nothing seen      ("root") entries [s_0, queue of h actions]; the agent knows only s_0 ~ rho

D is at least the longest delay of the link, so at a block with L = D nothing older than step u + 1 is under way. Time H, after
the last action, has one block for each length that is needed; its tick is the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton

ROOT = -1


class Block(NamedTuple):
    """node: of the automaton (−1 at time H); length: the queue's; root: nothing has been seen and h < D; offset, blind_offset:
    where its entries begin in flat tables of all blocks, and of those whose state may be unknown (−1 if it is known)."""

    h: int
    node: int
    length: int
    root: bool
    offset: int
    blind_offset: int


class Move(NamedTuple):
    """A tick: its probability, the number of the next block within its time, and the age or NOTHING_NEWER."""

    probability: float
    block: int
    age: int


@dataclass(frozen=True, eq=False)
class Layers:
    """blocks[h] for h = 0..H and moves[h][i] for h = 0..H − 1; `start` leads into blocks[0]."""

    n_states: int
    n_actions: int
    depth: int
    blocks: list[list[Block]]
    moves: list[list[list[Move]]]
    start: list[Move]
    size: int
    blind_size: int

    @cached_property
    def searched(self) -> bool:
        """Can the agent know only the law of the state that a block is about, so that tables alone are not exact?"""
        if self.depth == 0 and any(move.age == NOTHING_NEWER for move in self.start):
            return True
        for h, row in enumerate(self.blocks[: len(self.moves) - 1]):
            for block, moves in zip(row, self.moves[h], strict=True):
                older = [move.block for move in moves if move.age == NOTHING_NEWER]
                if (block.root or block.length == self.depth) and any(not self.blocks[h + 1][i].root for i in older):
                    return True
        return False

    @classmethod
    def of(cls, automaton: ChannelAutomaton, n_states: int, n_actions: int, depth: int) -> Layers:
        """Only blocks that can be met; sizes are exact whole numbers, however large, and nothing of that size is made. The automaton
        remembers the last ones: a plan and its policy have the same."""
        if automaton.unrolled is None or automaton.unrolled[0] != (n_states, n_actions, depth):
            automaton.unrolled = (n_states, n_actions, depth), cls._of(automaton, n_states, n_actions, depth)
        found: Layers = automaton.unrolled[1]
        return found

    @classmethod
    def _of(cls, automaton: ChannelAutomaton, n_states: int, n_actions: int, depth: int) -> Layers:
        H, S, A, D = automaton.horizon, n_states, n_actions, depth
        if automaton.longest > D or max(H - 1, 0) < D:
            raise ValueError(f"depth is {D}, expected {automaton.longest}..{max(H - 1, 0)} for {automaton!r}")

        def following(h: int, length: int, ticks: list[tuple[float, int, int]]) -> list[tuple[float, int, int, int]]:
            """(probability, node, key of the length, age) at time h; ROOT stands for a root's length."""
            out = []
            for p, n, age in ticks:
                if age == NOTHING_NEWER:
                    longer = (ROOT if h < D else D) if length == ROOT else min(length + 1, D)
                else:
                    longer = age
                out.append((p, n, longer, age))
            return out

        rows = {n: automaton.row(n) for n in range(len(automaton.nodes))}
        blocks: list[list[Block]] = []
        moves: list[list[list[Move]]] = []
        size = blind = 0
        coming = following(0, ROOT, automaton.row(-1))
        start: list[Move] = []
        pending = [coming]
        for h in range(H + 1):
            keys: dict[tuple[int, int], int] = {}
            linked = []
            for row in pending:
                linked.append([Move(p, keys.setdefault((n, L), len(keys)), age) for p, n, L, age in row])
            if h == 0:
                start = linked[0]
            else:
                moves.append(linked)
            layer = []
            for n, L in keys:
                root, length = L == ROOT, h if L == ROOT else L
                entries = S * A**length
                may_be_blind = root or length == D
                layer.append(Block(h, n, length, root, size, blind if may_be_blind else -1))
                size += entries
                blind += entries if may_be_blind else 0
            blocks.append(layer)
            if h == H:
                break
            pending = []
            for n, L in keys:
                ticks = rows[n] if h + 1 < H else [(1.0, -1, NOTHING_NEWER)]
                pending.append(following(h + 1, L, ticks))
        return cls(S, A, D, blocks, moves, start, size, blind)
