"""What plans behind links and for ever announce is what they hold, and a search keeps to the bytes that it may take."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.machine import format_bytes
from oldlight.model.age_layers import Layers
from oldlight.planning.ages import AgeTables, Plant
from oldlight.planning.link_memory import chain_entries, table_bytes
from oldlight.planning.search import AgeSearch

WITHIN = 0.2  # what is promised
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # the link, a short one of its kind, and options of `solve`
    "packets": (ol.PacketChannel([1 / 9] * 9), ol.PacketChannel([0.5, 0.5]), {}),
    "in order": (ol.FIFODelay([1 / 9] * 9), ol.FIFODelay([0.5, 0.5]), {}),
    "late and lossy": ("constant:8+loss:0.1", "constant:1+loss:0.1", {"tolerance": 10.0}),
    "packets that are lost": (ol.PacketChannel([1 / 9] * 9, lost=0.1), ol.PacketChannel([0.5, 0.5], lost=0.1), {"tolerance": 10.0}),
    "for ever": (ol.ConstantDelay(8), ol.ConstantDelay(1), {"tolerance": 1.0}),
    "packets for ever": (ol.PacketChannel([1 / 9] * 9), ol.PacketChannel([0.5, 0.5]), {"tolerance": 1.0}),
}  # fmt: skip


def process(S: int, horizon: int | None) -> ol.TabularMDP:
    rng = np.random.default_rng(S)
    P = np.zeros((S, 3, S))
    for row in P.reshape(-1, S):
        row[rng.choice(S, 3, replace=False)] = rng.dirichlet(np.ones(3))
    more: dict[str, Any] = {"discount": 0.9} if horizon is None else {}
    return ol.TabularMDP(P, rng.random((S, 3)), horizon=horizon, **more)


@pytest.mark.parametrize("name", CASES)
def test_a_plan_behind_a_link_holds_what_it_announces(name: str) -> None:
    link, short, options = CASES[name]
    horizon = None if "for ever" in name else 10
    ol.solve(ol.ImpairedMDP(process(4, horizon and 4), short), progress=False, **options)  # compiles
    problem = ol.ImpairedMDP(process(20, horizon), link)
    tracemalloc.start()
    try:
        found = ol.solve(problem, progress=False, **options)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.work.bytes == pytest.approx(held, rel=WITHIN)
    with pytest.raises(ol.TooLarge, match="needs"):  # and it is what is refused by
        ol.solve(problem, progress=False, max_bytes=found.work.bytes // 2, **options)


def test_chains_of_packets_are_shared_and_those_of_delays_in_order_are_not() -> None:
    S, A, d, H = 3, 2, 3, 8
    packets = Layers.of(ol.PacketChannel([0.25] * 4).automaton(H), S, A, d)
    assert chain_entries(packets, 5) == S * (A + A**2 + A**3)  # N_0 is a block of the next time
    in_order = Layers.of(ol.FIFODelay([0.25] * 4).automaton(H), S, A, d)
    each = [sum(A**L for L in range(1, m + 1)) for m in range(1, d + 1)]  # of age m, N_1..N_m
    assert chain_entries(in_order, 5) == S * sum(each)
    constant = Layers.of(ol.ConstantDelay(2).automaton(H), S, A, 2)
    assert chain_entries(constant, 5) == 0


def test_kept_tables_are_announced_with_all_their_times() -> None:
    layers = Layers.of(ol.PacketChannel([0.6, 0.4], lost=0.2).automaton(6), 4, 2, 1)
    made = AgeTables(Plant(process_of_two(4)), layers, True, True).allocate()
    arrays = (made.upper, made.lower, made.blind, made.actions, made.blind_actions)
    most = table_bytes(layers, kept=True, bounded=True)
    chains = 2 * 8 * max(chain_entries(layers, h) for h in range(6)) + 4 * 8 * 4 * 2
    assert most - chains == sum(x.nbytes for x in arrays)


def process_of_two(S: int) -> ol.TabularMDP:
    rng = np.random.default_rng(7)
    return ol.TabularMDP(rng.dirichlet(np.ones(S), size=(S, 2)), rng.random((S, 2)), horizon=6)


def test_a_search_keeps_to_its_bytes_and_stays_certified() -> None:
    rng = np.random.default_rng(3)
    mdp = ol.TabularMDP(rng.dirichlet(np.ones(6), size=(6, 3)), rng.random((6, 3)), horizon=9)
    link = ol.PacketChannel([0.6, 0.4], lost=0.3)
    exact = ol.solve(ol.ImpairedMDP(mdp, link)).value
    layers = Layers.of(link.automaton(9), 6, 3, 1)
    room = 0
    for doublings in range(3):
        made = AgeTables(Plant(mdp), layers, True, True).run()
        search = AgeSearch(made, room or 1)  # what there is at first is always there
        at_first = sum(x.nbytes for x in search._graph)
        search.run(0.0)
        taken = sum(x.nbytes for x in search._graph)
        assert taken <= max(at_first, room), doublings
        assert search.bytes <= taken + sum(x.nbytes for x in search._settled)
        assert search.lower - 1e-10 <= exact <= search.upper + 1e-10
        room = 3 * taken


def test_bytes_are_written_without_an_exponent() -> None:
    sizes = (3, 1000, 1023 * 1024, 1536, 11.8 * 2**30)
    assert [format_bytes(int(n)) for n in sizes] == ["3 B", "1000 B", "1023 KiB", "1.5 KiB", "11.8 GiB"]
