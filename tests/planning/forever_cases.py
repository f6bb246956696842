"""Processes that run for ever, links of every kind, and their written-out models for other solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

import oldlight as ol
from link_cases import BY_NODES, guessing
from repeats import is_thorough

LINKS: list[Any] = [
    ol.ConstantDelay(0),
    ol.ConstantDelay(2),
    ol.Loss(rate=0.3),
    *BY_NODES,
    ol.BurstyLoss(0.1, 0.4),
    ol.Lossy(ol.ConstantDelay(1), rate=0.2),
    ol.GeometricDelay(0.5).capped(2),
    ol.BernoulliDelay(0.5, steps=2),
    ol.EmpiricalDelay([0, 1, 1, 2]),
    ol.StochasticDelay([0.6, 0.4], first=[0.5, 0.5]),
    ol.Lossy(ol.GeometricDelay(0.7), rate=0.2),
]
QUICK = [
    link
    for link in LINKS
    if not isinstance(link, ol.HiddenLink | ol.Lossy) and link != ol.BurstyLoss(0.3, 0.4, 0.9, 0.2)
]
AGAIN = [LINKS[i] for i in (0, 4, 6, 12, 20)]  # of kinds that are there a second time with other numbers
USUAL = LINKS if is_thorough() else [link for link in LINKS if not any(link is other for other in AGAIN)]
USUAL_QUICK = [link for link in QUICK if any(link is other for other in USUAL)]
WIDE = (ol.HiddenLink,)  # laws of a hidden mode are merged: the certificate is wider


def names(channel: Any) -> str:
    return repr(channel)[:48]


def random_process(seed: int, S: int = 3, A: int = 2, **kind: Any) -> ol.TabularMDP:
    """Transitions that hardly depend on the action's number, and rewards for naming the state: what is seen counts."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(0.4 * np.ones(S), size=(S, A))
    R = rng.random((S, A)) + 1.5 * (np.arange(S)[:, None] % A == np.arange(A))
    return ol.TabularMDP(P, R, horizon=None, initial=rng.dirichlet(np.ones(S)), **kind)


def naming(**kind: Any) -> ol.TabularMDP:
    mdp = guessing()
    return ol.TabularMDP(mdp.transitions[0], mdp.rewards[0], horizon=None, initial=mdp.initial, **kind)


def two_states(p: float, **kind: Any) -> ol.TabularMDP:
    """math: each state stays with probability p whatever the action; reward 1 for the action named like the state; s_0 = 0."""
    stay = np.array([[p, 1 - p], [1 - p, p]])
    return ol.TabularMDP(np.stack([stay, stay], axis=1), np.eye(2), horizon=None, initial=[1, 0], **kind)


def written_out(mdp: ol.TabularMDP, d: int) -> tuple[Any, Any]:
    """The augmented process of a constant delay d, in rewards of the present: states (s, q1..qd), P[x, a, y], R[x, a]."""
    S, A = mdp.n_states, mdp.n_actions
    P, R = mdp.transitions[0], mdp.rewards[0]
    N = S * A**d
    big, reward = np.zeros((N, A, N)), np.zeros((N, A))
    for x in range(N):
        s, code = divmod(x, A**d)
        queue = [code // A**i % A for i in range(d)]
        b = np.eye(S)[s]
        for q in queue:
            b = b @ P[:, q]
        for a in range(A):
            reward[x, a] = b @ R[:, a]
            after = [*queue, a]
            law = np.eye(S)[s] @ P[:, after[0]]
            rest = sum(q * A**i for i, q in enumerate(after[1:]))
            for s2 in range(S):
                big[x, a, s2 * A**d + rest] += law[s2]
    return big, reward


def best_of(P: Any, R: Any, u: float) -> Any:
    """The optimal values of a written-out process, by policy iteration with linear systems."""
    N = len(R)
    policy = np.zeros(N, dtype=int)
    while True:
        chosen = P[np.arange(N), policy]
        v = np.linalg.solve(np.eye(N) - u * chosen, R[np.arange(N), policy])
        q = R + u * P @ v
        better = q.max(axis=1) > q[np.arange(N), policy] + 1e-12
        if not better.any():
            return v
        policy = np.where(better, q.argmax(axis=1), policy)
