"""The plan of a link as a policy: a function of the automaton's node, the newest visible state and the actions since.

It holds arrays only: the tables' actions, and the information states at which the search chose another one. Files are npz without pickle.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, files
from oldlight.arrays import Floats
from oldlight.model.age_layers import ROOT, Layers
from oldlight.model.channels.automaton import ChannelAutomaton, News
from oldlight.model.held_steps import HeldSteps, certain
from oldlight.model.information import Information, encode
from oldlight.model.link_information import LinkInformation, PolicyOfNodes, ages_of
from oldlight.model.link_tables import LinkTables, link_arrays
from oldlight.model.problem import ImpairedMDP

KIND = "oldlight.LinkPolicy"
FINE = 2.0**30  # laws are looked up by their masses in multiples of 1/FINE, and compared to within NEAR
NEAR = 2.0**-44
_NONE = np.zeros(0)


class LinkPolicy(PolicyOfNodes):
    """What a plan decides at each `LinkInformation`: by the search where it went, else by the tables.

    Parameters
    ----------
    automaton : ChannelAutomaton
        The link that was planned for.
    arrays : dict of arrays
        transitions (1 or H, S, A, S), or the lists of a sparse process (`oldlight.model.held_steps`), initial (S,), number (A,): actions that do the same everywhere have one number, kept: the action
        that stands for each; depth, actions and blind_actions: of the tables; rows, places, masses: `AgeSearch.decisions`.
    """

    def __init__(self, automaton: ChannelAutomaton, arrays: dict[str, NDArray[Any]]) -> None:
        self.automaton, self.arrays = automaton, arrays
        self.horizon = automaton.horizon
        self._initial = arrays["initial"]
        self.n_states, self.n_actions = len(self._initial), len(arrays["number"])
        self._steps = HeldSteps.from_arrays(arrays, self.n_states, self.n_actions)
        self.depth, self._few = int(arrays["depth"]), len(arrays["kept"])
        layers = Layers.of(automaton, self.n_states, self._few, self.depth)
        if (layers.size, layers.blind_size) != (len(arrays["actions"]), self.n_states * len(arrays["blind_actions"])):
            raise ValueError(f"the tables of {layers.size:,} information states do not fit {automaton!r}")
        self.nodes: dict[Any, int] = {name: n for n, name in enumerate(automaton.nodes)}
        self.link = automaton  # what it was walked and played on last: see `follow`
        self._followed: Any = None
        self._blocks = layers.blocks
        self._keys = [{(b.node, ROOT if b.root else b.length): i for i, b in enumerate(row)} for row in layers.blocks]
        self._found: dict[tuple[Any, ...], Any] | None = None
        # a first state that is certain is one for the search at time `depth`, if nothing has been seen; for the tables it is a law
        self._certain = self.depth > 0 and len(arrays["rows"]) > 0 and np.count_nonzero(self._initial > 0) == 1

    def __call__(self, info: LinkInformation) -> int:
        if info.t is not None and info.state is not None and len(info.queue) <= self.depth:  # a known state: no law
            place, code = self._keys[info.h][self.nodes[info.node], len(info.queue)], self._code(info.queue)
            s, a = info.state, self._searched(info.h, place, code, info.state, _NONE, _NONE)
        else:
            place, code, s, b = self.place(info)
            support = np.flatnonzero(b > 0)
            a = self._searched(info.h, place, code, s, support, b[support])
        block = self._blocks[info.h][place]
        if a < 0 and s >= 0:
            a = int(self.arrays["actions"][block.offset + s * self._few**block.length + code])
        elif a < 0:
            a = int(self.arrays["blind_actions"][block.blind_offset // self.n_states + code])
        return int(self.arrays["kept"][a])

    def actions_at(self, info: LinkInformation, states: list[int]) -> list[int]:
        """The action at `info` for each newest visible state instead of its own: what calling would say, one by one."""
        if info.t is None or len(info.queue) > self.depth:
            return [self(info._replace(state=s)) for s in states]
        if self._found is None:
            self._found = self._index()
        h, length, kept = info.h, len(info.queue), self.arrays["kept"]
        place = self._keys[h][self.nodes[info.node], length]
        code = encode(tuple(int(self.arrays["number"][a]) for a in info.queue), self._few)
        first, width = self._blocks[h][place].offset + code, self._few**length
        table = self.arrays["actions"][first + np.array(states) * width].tolist()
        return [int(kept[self._found.get((h, place, code, s), a)]) for s, a in zip(states, table, strict=True)]

    def place(self, info: LinkInformation) -> tuple[int, int, int, Floats]:
        """(block within its time, code, state or −1, law of the state that the block is about), as `AgeSearch` names it."""
        length = len(info.queue)
        beyond, nothing = max(length - self.depth, 0), info.t is None
        key = (self.nodes[info.node], ROOT if nothing and length < self.depth else min(length, self.depth))
        code = self._code(info.queue[beyond:])
        b = self._law(info, beyond)
        support = np.flatnonzero(b > 0)
        alone = len(support) == 1 and (not nothing or length > self.depth or (length == self.depth and self._certain))
        s = int(support[0]) if alone else -1
        return self._keys[info.h][key], code, s, b

    def _code(self, queue: tuple[int, ...]) -> int:
        return encode(tuple(int(self.arrays["number"][a]) for a in queue), self._few)

    def _law(self, info: LinkInformation, steps: int) -> Floats:
        """The law of the state `steps` steps after the newest visible one, or after the start."""
        b = self._initial if info.t is None or info.state is None else certain(self.n_states, info.state)
        for i, a in enumerate(info.queue[:steps]):
            b = self._steps.push(b, (info.t or 0) + i, a)
        return b

    def _searched(self, h: int, place: int, code: int, s: int, support: NDArray[Any], mass: Floats) -> int:
        """What the search chose at this information state, or −1."""
        if self._found is None:
            self._found = self._index()
        if s >= 0:
            return int(self._found.get((h, place, code, s), -1))
        same = self._found.get((h, place, code, support.astype(np.int64, copy=False).tobytes()))
        if same is None:
            return -1
        exactly, laws, actions = same
        i = exactly.get(_fine(mass).tobytes())
        if i is None or np.abs(laws[i] - mass).max() > NEAR:
            i = int(np.abs(laws - mass).max(axis=1).argmin())
        return int(actions[i]) if np.abs(laws[i] - mass).max() <= NEAR else -1

    def _index(self) -> dict[tuple[Any, ...], Any]:
        """What the search chose: at (h, place, code, s), and, at (h, place, code, the bytes of a support), the laws with that support, as numbers and rounded, and their actions."""
        found: dict[tuple[Any, ...], Any] = {}
        groups: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        places, masses = self.arrays["places"].astype(np.int64), np.array(self.arrays["masses"])
        falls = np.cumsum(np.append(0, np.diff(places) <= 0))
        for h, place, code, s, a, begin, size in self.arrays["rows"].tolist():
            if s >= 0:
                found[h, place, code, s] = a
                continue
            here = slice(begin, begin + size)
            if size and falls[begin + size - 1] > falls[begin]:
                order = np.argsort(places[here])
                places[here], masses[here] = places[here][order], masses[here][order]
            groups.setdefault((h, place, code, places[here].tobytes()), []).append((begin, a))
        fine = _fine(masses)
        for key, laws in groups.items():
            first, size = np.array([begin for begin, _ in laws]), len(key[3]) // places.itemsize
            exactly = {fine[begin : begin + size].tobytes(): i for i, (begin, _) in enumerate(laws)}
            found[key] = (exactly, masses[first[:, None] + np.arange(size)], [a for _, a in laws])
        return found

    def follow(self, link: ChannelAutomaton, problem: ImpairedMDP) -> None:
        """Play behind the true link of a problem whose laws were merged: its nodes are (node of the automaton, hidden configuration)."""
        self.link, self._followed = link, (problem.channel, problem.actuation)
        for name in link.nodes:
            self.nodes[name] = self.nodes[name[0]] if name not in self.nodes else self.nodes[name]  # type: ignore[index]

    def of_node(self, info: Any) -> LinkInformation:
        """`info` as the automaton's; an `Information` where its age tells the node."""
        if isinstance(info, LinkInformation):
            return info
        if isinstance(info, Information) and 0 <= info.h < self.horizon:
            age = None if info.t is None else info.h - info.t
            here = [n for n, m in ages_of(self.automaton, info.h) if m == age]
            if len(here) == 1:
                return LinkInformation(info.h, self.automaton.nodes[here[0]], info.t, info.state, tuple(info.queue))
        raise TypeError(
            f"{self!r} acts on oldlight.LinkInformation(h, node, t, state, queue), not on {info!r}; value and play it with "
            "oldlight.evaluate(problem, policy) and oldlight.simulate(problem, policy, episodes, seed=...)"
        )

    def action(self, info: Any) -> int:
        """The action at `info`."""
        known = self.of_node(info)
        try:
            return self(known)
        except KeyError:
            raise KeyError(f"no information state {tuple(info)} in this problem") from None

    def fits(self, problem: ImpairedMDP) -> bool:
        """Was the policy made for a problem of these sizes, behind a link of these nodes that could do all that this one can?"""
        sizes = (self.horizon, self.n_states, self.n_actions)
        same = sizes == (problem.horizon, problem.n_states, problem.n_actions)
        return same and self.link_for(problem) is not None

    def link_for(self, problem: ImpairedMDP) -> ChannelAutomaton | None:
        """The link of `problem` that the policy is valued and played on, of a plan for merged laws the true one; None where it does not fit."""
        mine, channel = self.automaton, problem.channel
        if not mine.merging:
            return problem.automaton if self._knows(problem.automaton) else None
        if self._followed == (channel, problem.actuation):
            return self.link
        if not hasattr(channel, "merged"):
            return None
        merged, true_link = channel.merged(problem.horizon, mine.merging)
        if not self._knows(merged.shifted(problem.actuation)):
            return None
        self.follow(true_link().shifted(problem.actuation), problem)
        return self.link

    def _knows(self, link: ChannelAutomaton) -> bool:
        """Has `link` the same nodes and no other ticks, whatever their probabilities? Then the tables have all that can be met."""
        mine = self.automaton
        if link.nodes != mine.nodes:
            return False
        rows = range(-1, len(mine.nodes))
        return link is mine or all({x[1:] for x in link.row(n)} <= {x[1:] for x in mine.row(n)} for n in rows)

    def as_arrays(self) -> LinkTables:
        """The policy as arrays, the same at every information state: what a controller reads and saves."""
        arrays, S, A = self.arrays, self.n_states, self._few
        layers = Layers.of(self.automaton, S, A, self.depth)
        flat = [block for row in layers.blocks[:-1] for block in row]
        begin = np.cumsum([0, *(len(row) for row in layers.blocks)])
        blocks = []
        for b in flat:
            blind = b.blind_offset >= 0 and (b.root or layers.searched)
            blocks.append((b.h, b.node, ROOT if b.root else b.length, b.offset, b.blind_offset // S if blind else -1))
        actions, laws, at, size = arrays["actions"].copy(), [], [], 0
        for h, place, code, s, a, first, n in arrays["rows"][arrays["rows"][:, 0] < self.horizon].tolist():
            number = int(begin[h]) + place
            if s >= 0:
                actions[flat[number].offset + s * A ** flat[number].length + code] = a
            else:
                laws.append((number, code, a, size))
                at.append(np.arange(first, first + n))
                size += n
        places = np.concatenate([np.zeros(0, np.int64), *at])
        supports, masses = arrays["places"][places], arrays["masses"][places]
        if self._certain and self.depth < self.horizon:  # see `place`
            s, width = int(self._initial.argmax()), A**self.depth
            for i, b in enumerate(layers.blocks[self.depth]):
                for code in range(width) if b.length == self.depth and b.blind_offset >= 0 else ():
                    laws.append((int(begin[self.depth]) + i, code, int(actions[b.offset + s * width + code]), size))
                    size += 1
            supports = np.append(supports, np.full(size - len(supports), s))
            masses = np.append(masses, np.ones(size - len(masses)))
        return LinkTables(
            np.array([self.depth, len(self.automaton.nodes)]), np.array(arrays["number"], dtype=np.int64),
            np.array(arrays["kept"], dtype=np.int64), np.array(blocks), _block_probabilities(layers), actions, arrays["blind_actions"].copy(),
            self._steps.of_actions(np.asarray(arrays["kept"], np.int64)), np.array(arrays["initial"]), np.array([*laws, (0, 0, 0, size)]),
            supports, masses, **link_arrays(self.automaton),
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the policy, for `oldlight.load_policy`."""
        return checks.save_arrays(path, kind=np.array(KIND), **automaton_arrays(self.automaton), **self.arrays)

    @classmethod
    def read(cls, held: files.Arrays) -> LinkPolicy:
        """The policy in an open file."""
        link = read_automaton(held)
        H = link.horizon
        initial, number = held.array("initial", "f", (None,)), held.array("number", "iu", (None,))
        S, A = len(initial), len(number)
        kept = held.array("kept", "iu", (None,))
        arrays = HeldSteps.read(held, "", (S, A), (1, H)).to_arrays() | {
            "kept": kept, "initial": initial, "number": number,
            "depth": held.array("depth", "iu", ()), "actions": held.array("actions", "iu", (None,)),
            "blind_actions": held.array("blind_actions", "iu", (None,)), "rows": held.array("rows", "iu", (None, 7)),
            "places": held.array("places", "iu", (None,)), "masses": held.array("masses", "f", (None,)),
        }  # fmt: skip
        checks.probability_rows("'initial'", arrays["initial"], ("s",))
        if not (0 <= int(arrays["depth"]) < min(H, 64) or H == 1) or len(arrays["actions"]) < H * S:
            raise ValueError(
                f"'actions' has {len(arrays['actions'])} entries, too few for {H} steps up to age {arrays['depth']}"
            )
        for name, most in (
            ("kept", A),
            ("number", len(kept)),
            ("actions", len(kept)),
            ("blind_actions", len(kept)),
            ("places", S),
        ):
            if not checks.within(arrays[name], 0, most):
                raise ValueError(f"{name!r} has an entry outside 0..{most - 1}")
        table, laws = arrays["rows"], len(arrays["masses"])
        if len(arrays["places"]) != laws or (
            len(table) and ((table[:, 5:] < 0).any() or (table[:, 5:].sum(axis=1) > laws).any())
        ):
            raise ValueError("'rows' does not fit the laws")
        if not ((arrays["masses"] >= 0) & (arrays["masses"] <= 1)).all():
            raise ValueError("'masses' has an entry that is no probability")
        if not checks.within(table[:, 4], 0, len(kept)):
            raise ValueError(f"'rows' has an action outside 0..{len(kept) - 1}")
        return cls(link, arrays)

    def __repr__(self) -> str:
        return f"LinkPolicy({len(self.automaton.nodes)} nodes, H={self.horizon}, S={self.n_states}, A={self.n_actions})"


def _block_probabilities(layers: Layers) -> Floats:
    """How likely each block is at its time, in one row."""
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


def automaton_arrays(link: ChannelAutomaton) -> dict[str, NDArray[Any]]:
    """An automaton as arrays."""
    heard = [
        [(*tick, said.arrived, said.lost) for said, tick in link.news(n).items()] for n in range(len(link.nodes) + 1)
    ]
    return {
        "nodes": _text([_plain(name) for name in link.nodes]),
        "heard": _text(heard),
        "sizes": np.array([link.horizon]),
        "merging": np.array([link.merging]),
        **{f"tick_{name}": array for name, array in link.ticks._asdict().items()},
    }


def read_automaton(held: files.Arrays, prefix: str = "") -> ChannelAutomaton:
    """The automaton in an open file."""
    H = held.numbers(f"{prefix}sizes", 1)[0]
    nodes = [_named(name) for name in files.json_of(held.array(f"{prefix}nodes", "u", (None,)).tobytes())]
    first = held.array(f"{prefix}tick_first", "iu", (len(nodes) + 2,)).astype(np.int64)
    to, age = (held.array(f"{prefix}tick_{name}", "iu", (None,)) for name in ("node", "age"))
    p = held.array(f"{prefix}tick_probability", "f", (len(to),))
    if (np.diff(first) < 0).any() or first[0] != 0 or first[-1] != len(to) or len(age) != len(to):
        raise ValueError("'tick_first' does not fit the ticks")
    if not checks.within(to, 0, len(nodes)):
        raise ValueError(f"'tick_node' has a node outside 0..{len(nodes) - 1}")
    rows: list[list[Any]] = [
        [(float(p[i]), nodes[to[i]], int(age[i])) for i in range(*first[n : n + 2])] for n in range(len(first) - 1)
    ]
    for n, row in enumerate(files.json_of(held.array(f"{prefix}heard", "u", (None,)).tobytes())):
        if row:  # the age alone does not tell the next node
            rows[n] = [(x, nodes[int(i)], int(k), News(tuple(here), tuple(lost))) for x, i, k, here, lost in row]
    merging = float(held.array(f"{prefix}merging", "f", (1,))[0])
    return ChannelAutomaton(nodes, rows[-1], rows[:-1], horizon=H, merging=merging)


def _text(value: Any) -> NDArray[np.uint8]:
    """Plain data as JSON in an array of bytes."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _fine(mass: Floats) -> NDArray[np.int64]:
    return np.rint(mass * FINE).astype(np.int64)


def _plain(name: Any) -> Any:
    """A node's name as JSON has it: tuples as lists."""
    if isinstance(name, tuple):
        return [_plain(part) for part in name]
    if isinstance(name, np.generic):
        name = name.item()
    if name is None or isinstance(name, str | int | float):
        return name
    raise TypeError(
        f"a node of the link is named {name!r}, of type {type(name).__name__}; only names made of numbers, text, None and tuples are saved"
    )


def _named(name: Any) -> Any:
    return tuple(_named(part) for part in name) if isinstance(name, list) else name
