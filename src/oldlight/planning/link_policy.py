"""The plan of a link as a policy: a function of the automaton's node, the newest visible state and the actions since."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.information import encode
from oldlight.model.link_information import LinkInformation, PolicyOfNodes, law_of_state
from oldlight.model.link_tables import LinkTables, link_arrays
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.age_layers import ROOT
from oldlight.planning.ages import AgeTables
from oldlight.planning.search import AgeSearch

Floats = NDArray[np.float64]


class LinkPolicy(PolicyOfNodes):
    """What `plan_link` decides at each `LinkInformation`: by the search where it went, else by the tables.

    number, kept: actions that do the same everywhere are one; the number of each, and the action that stands for it.
    """

    def __init__(
        self,
        mdp: TabularMDP,
        automaton: ChannelAutomaton,
        tables: AgeTables,
        search: AgeSearch | None,
        number: NDArray[Any],
        kept: NDArray[Any],
    ) -> None:
        self.mdp, self.automaton, self.n_actions = mdp, automaton, mdp.n_actions
        self.tables, self.search, self.number, self.kept = tables, search, number, kept
        self.nodes = {name: n for n, name in enumerate(automaton.nodes)}
        self.blocks = [
            {(b.node, ROOT if b.root else b.length): i for i, b in enumerate(row)} for row in tables.layers.blocks
        ]

    def __call__(self, info: LinkInformation) -> int:
        tables, D, A = self.tables, self.tables.layers.depth, self.tables.layers.n_actions
        length = len(info.queue)
        beyond = max(length - D, 0)
        nothing = info.t is None
        key = (self.nodes[info.node], ROOT if nothing and length < D else min(length, D))
        place = self.blocks[info.h][key]
        block = tables.layers.blocks[info.h][place]
        code = encode(tuple(int(self.number[a]) for a in info.queue[beyond:]), A)
        b = law_of_state(self.mdp, info, beyond, self.tables.plant.initial)
        support = np.flatnonzero(b > 0)
        s = int(support[0]) if len(support) == 1 and not (nothing and length <= D) else -1
        if self.search is not None:
            a = self.search.action(info.h, place, code, s, b)
            if a >= 0:
                return int(self.kept[a])
        if s >= 0:
            return int(self.kept[tables.actions[block.offset + s * A**block.length + code]])
        return int(self.kept[tables.blind_actions[block.blind_offset // tables.layers.n_states + code]])

    def action(self, info: Any) -> int:
        """The action at `info`."""
        if not isinstance(info, LinkInformation):
            raise TypeError(
                f"{self!r} acts on oldlight.LinkInformation(h, node, t, state, queue), not on {info!r}; value and play it with "
                "oldlight.evaluate(problem, policy) and oldlight.simulate(problem, policy, episodes, seed=...)"
            )
        try:
            return self(info)
        except KeyError:
            raise KeyError(f"no information state {tuple(info)} in this problem") from None

    def probabilities(self, info: Any) -> Floats:
        return np.asarray(np.eye(self.n_actions)[self.action(info)])

    def fits(self, problem: ImpairedMDP) -> bool:
        """Was the policy made for a problem of these sizes behind a link of these nodes?"""
        mdp, link = self.mdp, problem.automaton
        sizes = (mdp.horizon, mdp.n_states, mdp.n_actions) == (problem.horizon, problem.n_states, problem.n_actions)
        return sizes and link.nodes == self.automaton.nodes

    def as_arrays(self) -> LinkTables:
        """The policy as arrays, the same at every information state: what a controller reads and saves."""
        layers, mdp = self.tables.layers, self.mdp
        flat = [b for row in layers.blocks[:-1] for b in row]
        S, A, D = layers.n_states, layers.n_actions, layers.depth
        rows = []
        for b in flat:
            blind = b.blind_offset >= 0 and (b.root or layers.searched)
            rows.append((b.h, b.node, ROOT if b.root else b.length, b.offset, b.blind_offset // S if blind else -1))
        actions = self.tables.actions.copy()
        beliefs, support, mass = [], np.zeros(0, np.int64), np.zeros(0)
        if self.search is not None:
            corners, laws, support, mass = self.search.decisions()
            for block, code, s, a in corners:
                actions[flat[block].offset + s * A ** flat[block].length + code] = a
            beliefs = laws
        steps = mdp.transitions[:1] if mdp.stationary_transitions else mdp.transitions
        return LinkTables(
            np.array([D, len(self.nodes)]), np.array(self.number, dtype=np.int64), np.array(self.kept, dtype=np.int64),
            np.array(rows), self._block_probabilities(), actions, self.tables.blind_actions.copy(),
            np.array(steps[:, :, self.kept]), np.array(self.tables.plant.initial),
            np.array([*beliefs, (0, 0, 0, len(support))]), support, mass, **link_arrays(self.automaton),
        )  # fmt: skip

    def _block_probabilities(self) -> Floats:
        """How likely each block is at its time, in one row."""
        layers = self.tables.layers
        now = np.zeros(len(layers.blocks[0]))
        for p, i, _ in layers.start:
            now[i] += p
        rows = [now]
        for h, moves in enumerate(layers.moves[:-1]):
            after = np.zeros(len(layers.blocks[h + 1]))
            for weight, row in zip(now, moves, strict=True):
                for p, i, _ in row:
                    after[i] += weight * p
            rows.append(now := after)
        return np.concatenate(rows)

    def __repr__(self) -> str:
        return f"LinkPolicy({len(self.nodes)} nodes, H={self.mdp.horizon}, S={self.mdp.n_states}, A={self.n_actions})"
