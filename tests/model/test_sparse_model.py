"""Sparse transitions: every form makes the same process, in little memory, and is checked like a dense one."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import oldlight as ol
from oldlight.model.successors import Successors, successor_sums, successors_at
from oracle import random_instance

FORMS = [
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.coo_array,
    sparse.lil_array,
    sparse.dok_matrix,
]
S, A, H = 4, 3, 2


def arrays(seed: int, stationary: bool, A: int = A) -> tuple[Any, Any, Any]:
    return random_instance(np.random.default_rng(seed), S, A, H, stationary=stationary, sparse=True)


def triples(P: Any) -> dict[str, Any]:
    found = np.nonzero(P)
    return dict(zip(("h", "s", "a", "s2") if P.ndim == 4 else ("s", "a", "s2"), found, strict=True)) | {"p": P[found]}


def same(one: ol.TabularMDP, other: ol.TabularMDP) -> bool:
    return one == other and other == one and np.array_equal(one.transitions, other.transitions)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_makes_the_same_process(form: Any) -> None:
    P, R, rho = arrays(0, stationary=True)
    dense = ol.TabularMDP(P[0], R[0], horizon=H, initial=rho)
    actions = [form(P[0][:, a]) for a in range(A)]
    objects = np.empty(A, dtype=object)
    objects[:] = actions
    for given in (form(P[0].reshape(S * A, S)), actions, tuple(actions), objects, triples(P[0])):
        mdp = ol.TabularMDP(given, R[0], horizon=H, initial=rho)
        assert mdp.sparse
        assert mdp.stationary
        assert not dense.sparse
        assert same(mdp, dense)
        assert repr(mdp) == "TabularMDP(S=4, A=3, H=2, stationary, sparse)"


@pytest.mark.parametrize("form", FORMS)
def test_one_matrix_for_each_step(form: Any) -> None:
    P, R, rho = arrays(1, stationary=False)
    dense = ol.TabularMDP(P, R, horizon=H, initial=rho)
    by_action = [[form(step[:, a]) for a in range(A)] for step in P]
    for given in ([form(step.reshape(S * A, S)) for step in P], by_action, triples(P)):
        mdp = ol.TabularMDP(given, R, horizon=H, initial=rho)
        assert mdp.sparse
        assert not mdp.stationary_transitions
        assert same(mdp, dense)


def test_square_matrices_are_actions_unless_there_is_one_action_alone() -> None:
    P, R, _ = arrays(2, stationary=False, A=1)
    steps = [sparse.csr_array(step[:, 0]) for step in P]
    assert same(ol.TabularMDP(steps, R, horizon=H), ol.TabularMDP(P, R, horizon=H))
    both = ol.TabularMDP(steps, np.zeros((S, 2)), horizon=H)
    assert (both.n_actions, both.stationary) == (2, True)
    assert np.array_equal(both.transitions[0], np.stack([step.toarray() for step in steps], axis=1))


def test_what_is_listed_twice_is_added_up_and_zeros_are_dropped() -> None:
    mdp = ol.TabularMDP(
        {"s": [0, 0, 1, 1], "a": [0, 0, 0, 0], "s2": [1, 1, 0, 1], "p": [0.25, 0.75, 1.0, 0.0]},
        [[0.0], [1.0]],
        horizon=1,
    )
    assert mdp.matrix().nnz == 2
    assert mdp.transitions[0, :, 0].tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("stationary", [True, False])
def test_products_are_those_of_the_dense_process(stationary: bool) -> None:
    rng = np.random.default_rng(3)
    P, R, rho = arrays(3, stationary)
    dense = ol.TabularMDP(P[0] if stationary else P, R, horizon=H, initial=rho)
    mdp = ol.TabularMDP(
        [sparse.csr_array(step.reshape(S * A, S)) for step in P[: 1 if stationary else H]][0 if stationary else slice(None)],
        R, horizon=H, initial=rho,
    )  # fmt: skip
    b, V = rng.dirichlet(np.ones(S), size=5), rng.normal(size=(S, 2))
    for h in range(H):
        assert sparse.issparse(mdp.matrix(h))
        assert np.array_equal(dense.matrix(h), P[h].reshape(S * A, S))
        for each in (mdp, dense):
            assert np.allclose(each.expected(V, h), P[h] @ V, rtol=0, atol=1e-15)
            assert each.expected(V[:, 0], h).shape == (S, A)
            for a in range(A):
                assert np.allclose(each.advanced(b, h, a), b @ P[h][:, a], rtol=0, atol=1e-15)
                for s in range(S):
                    index, p = each.row(h, s, a)
                    assert np.array_equal(index, np.flatnonzero(P[h, s, a]))
                    assert np.array_equal(p, P[h, s, a][index])


def test_it_does_not_change_and_travels() -> None:
    P, R, rho = arrays(4, stationary=True)
    given = sparse.csr_array(P[0].reshape(S * A, S))
    mdp = ol.TabularMDP(given, R[0], horizon=H, initial=rho)
    given.data[:] = 7.0
    assert np.array_equal(mdp.transitions[0], P[0])
    with pytest.raises(ValueError, match="read-only"):
        mdp.matrix().data[:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[:] = 0.0
    again = pickle.loads(pickle.dumps(mdp))
    assert again.sparse
    assert again == mdp
    assert mdp.replace(horizon=5).sparse
    assert mdp != mdp.replace(transitions=sparse.csr_array(np.tile(np.eye(S), (A, 1))))


@pytest.mark.parametrize("stationary", [True, False])
def test_it_is_saved_and_loaded(stationary: bool, tmp_path: Path) -> None:
    P, R, rho = arrays(6, stationary)
    steps = [sparse.csr_array(step.reshape(S * A, S)) for step in P]
    mdp = ol.TabularMDP(steps[0] if stationary else steps, R, horizon=H, initial=rho, actions=["x", "y", "z"])
    mdp.save(tmp_path / "process")
    again = ol.TabularMDP.load(tmp_path / "process")
    assert again.sparse
    assert again == mdp
    assert again.stationary_transitions == stationary


def test_offenders_are_named_by_step_state_and_action() -> None:
    P, R, _ = arrays(5, stationary=False)
    for value, words in ((np.nan, "is nan, expected a finite"), (-0.5, "is -0.5, expected a prob")):
        wrong = P.copy()
        wrong[1, 2, 1, 3] = value
        with pytest.raises(ValueError, match=rf"^transitions\[h=1, s=2, a=1, s'=3\] {words}"):
            ol.TabularMDP([sparse.csr_array(step.reshape(S * A, S)) for step in wrong], R, horizon=H)
    wrong = P[0].copy()
    wrong[3, 2] *= 0.5
    with pytest.raises(ValueError, match=r"^transitions\[s=3, a=2\] sums to 0.5, expected 1 ±"):
        ol.TabularMDP(sparse.csr_array(wrong.reshape(S * A, S)), R[0], horizon=H)


def test_a_million_states_are_stored_in_megabytes() -> None:
    n = 10**6
    s = np.arange(n)
    left = sparse.csr_array((np.ones(n), (s, np.maximum(s - 1, 0))), shape=(n, n))
    right = sparse.csr_array((np.ones(n), (s, np.minimum(s + 1, n - 1))), shape=(n, n))
    mdp = ol.TabularMDP([0.5 * left + 0.5 * right, right], np.zeros((n, 2)), horizon=3)
    assert mdp.matrix().nnz == 3 * n
    assert mdp.nbytes <= 12 * 3 * n + 4 * (2 * n + 1) + 8 * 2 * n
    assert mdp.matrix().indices.dtype == np.int32
    found = successors_at(mdp, 1)
    assert found is successors_at(mdp, 0)
    assert np.shares_memory(found.weight, mdp.matrix().data)
    assert found.width == 2
    assert not found.dense
    with pytest.raises(ol.TooLarge, match=r"mdp\.matrix\(h\)"):
        _ = mdp.transitions


def test_readers_choose_the_smaller_form(tmp_path: Path) -> None:
    n = 3000
    ring = {s: {"go": [(0.5, (s + 1) % n, 1.0), (0.5, s, 0.0)]} for s in range(n)}
    mdp = ol.TabularMDP.from_dict(ring, horizon=3)
    assert mdp.sparse
    assert mdp.matrix().nnz == 2 * n
    assert (mdp.rewards == 0.5).all()
    lines = [f"{s},go,{(s + i) % n},0.5,{1 - i}" for s in range(n) for i in (0, 1)]
    (tmp_path / "ring.csv").write_text("\n".join(["s,a,s2,p,r", *lines]))
    assert ol.TabularMDP.from_csv(tmp_path / "ring.csv", horizon=3).sparse
    assert not ol.TabularMDP.from_dict({s: {0: [(1.0, 0, 0.0)]} for s in range(3)}, horizon=3).sparse


@pytest.mark.parametrize("seed", range(4))
def test_lists_of_successors_are_those_of_the_dense_process(seed: int) -> None:
    P = arrays(seed, stationary=True)[0][0].reshape(S * A, S)
    one, other = Successors.of(P), Successors.of(sparse.csr_array(P))
    for name in ("first", "count", "index", "weight", "matrix"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    index, weight = one.padded()
    again = np.zeros_like(P)
    for row in range(len(P)):
        np.add.at(again[row], index[row], weight[row])
    assert np.array_equal(again, P)


def test_drawn_successors_are_those_of_the_dense_process() -> None:
    P, R, _ = arrays(7, stationary=False)
    dense = ol.TabularMDP(P, R, horizon=H)
    mdp = ol.TabularMDP([sparse.csr_array(step.reshape(S * A, S)) for step in P], R, horizon=H)
    for one, other in zip(successor_sums(mdp), successor_sums(dense), strict=True):
        assert np.array_equal(one, other)
