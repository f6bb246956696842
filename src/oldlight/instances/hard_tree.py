"""Proposition 2's process: a tree whose one good leaf, action and moment must be found by trial (Domingues et al. 2021,
Episodic Reinforcement Learning in Finite MDPs: Minimax Lower Bounds Revisited, https://arxiv.org/abs/2010.03531).

States: a waiting state S_w (the start), a full tree with A children per node and m levels, and two absorbing states
S_b, S_g; so S = 3 + (A^m − 1)/(A − 1), and the last level holds L = A^{m−1} leaves. **Code counts steps from 0**; the
paper's 1-based numbers are in brackets.

- S_w: `waiting_action` stays at steps h < D [h ≤ D]; every other action, and every action later on, goes to the root.
- tree: action a goes to child a; leaf ℓ is reached from the root by the digits of ℓ in base A, the highest first.
- leaf: to S_g with probability 1/2, else to S_b, whatever the action; but at (h*, ℓ*, a*) to S_g with 1/2 + ε.
- reward 1 per step in S_g from step D + m on [h ≥ D + m + 1], nothing else.

In the paper the way from the root to a leaf takes m steps, in a tree of A^{m−1} leaves, that is m levels; one
of the two must give. Here the m steps lead *from S_w* to a leaf: one to the root, m − 1 down the tree. Then leaving S_w
at step w puts a leaf at step w + m, the D choices of w give exactly h* ∈ {m, .., D + m − 1} [{1 + m, .., D + m}; the
paper prints the two ends only], and whoever left in time is absorbed when the reward begins. So, for 0 ≤ ε ≤ 1/2,

    optimal value = (H − D − m)·(1/2 + ε),

and any policy that misses the triple earns at most (H − D − m)/2. Transitions are certain until nothing depends on the
action any more, and the start is known: **every delay, and even seeing nothing, has the same optimal value.** D is the
window for waiting; as a delay it makes this process no harder.
"""

from __future__ import annotations

import numpy as np

from oldlight import checks
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import registered
from oldlight.random_streams import Seed, seed_number


@registered
def hard_tree(
    depth: int = 2,
    n_actions: int = 2,
    window: int = 2,
    *,
    epsilon: float = 0.1,
    horizon: int | None = None,
    h_star: int | None = None,
    leaf_star: int | None = None,
    a_star: int | None = None,
    waiting_action: int = 0,
    seed: Seed | None = None,
) -> TabularMDP:
    """The lower bound's tree, with m = depth, A = n_actions, D = window.

    What is not given of the triple is drawn uniformly with `seed`, or is the first allowed value if there is no seed.

    Parameters
    ----------
    depth, n_actions, window : int
        m ≥ 1, A ≥ 2, D ≥ 1.
    epsilon : float
        ε in [0, 1/2].
    horizon : int, optional
        H; the smallest that the proof allows, max(3m, 2D, D + m + 1), if None.
    h_star, leaf_star, a_star : int, optional
        The triple to be found: in m..D+m−1 (counted from 0), in 0..A^{m−1}−1, in 0..A−1.
    waiting_action : int
        Stays in the waiting state.
    seed : int, SeedSequence or Generator, optional
        Random seed of the triple.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> import oldlight as ol
    >>> tree = ol.instances.hard_tree(depth=2, n_actions=2, window=2, epsilon=0.1)
    >>> tree.n_states, round(ol.solve(ol.ImpairedMDP(tree, "constant:2")).value, 6)
    (6, 1.2)
    """
    m = checks.whole("depth", depth, least=1)
    A = checks.whole("n_actions", n_actions, least=2)
    D = checks.whole("window", window, least=1)
    H = checks.whole("horizon", max(3 * m, 2 * D, D + m + 1) if horizon is None else horizon, least=D + m + 1)
    gain = checks.real("epsilon", epsilon)
    if not 0.0 <= gain <= 0.5:
        raise ValueError(f"epsilon is {gain:.12g}, expected a number in [0, 1/2] (the proof takes at most 1/4)")
    leaves, nodes = A ** (m - 1), (A**m - 1) // (A - 1)
    rng = None if seed is None else np.random.default_rng(seed_number(seed))

    def pick(name: str, given: int | None, least: int, most: int) -> int:
        drawn = least if rng is None else int(rng.integers(least, most + 1))
        return drawn if given is None else checks.whole(name, given, least=least, most=most)

    when = pick("h_star", h_star, m, D + m - 1)
    where = pick("leaf_star", leaf_star, 0, leaves - 1)
    what = pick("a_star", a_star, 0, A - 1)
    stay = checks.whole("waiting_action", waiting_action, most=A - 1)

    waiting, root, bad, good = 0, 1, nodes + 1, nodes + 2
    S = nodes + 3
    P = np.zeros((H, S, A, S))  # [h, s, a, s2]
    P[:, waiting, :, root] = 1.0
    P[:D, waiting, stay] = np.eye(S)[waiting]
    for node in range(nodes - leaves):  # breadth first: node n has children A·n + 1 .. A·n + A
        for a in range(A):
            P[:, root + node, a, root + A * node + 1 + a] = 1.0
    first_leaf = root + nodes - leaves
    P[:, first_leaf : root + nodes, :, [bad, good]] = 0.5
    P[when, first_leaf + where, what, [bad, good]] = 0.5 - gain, 0.5 + gain
    P[:, bad, :, bad] = 1.0
    P[:, good, :, good] = 1.0
    R = np.zeros((H, S, A))
    R[D + m :, good] = 1.0
    names = ["waiting", *(_name(n, nodes - leaves, A) for n in range(nodes)), "bad", "good"]
    return TabularMDP(P, R, horizon=H, initial=np.eye(S)[waiting], states=names)


def _name(node: int, inner: int, A: int) -> str:
    """The root, "node" or "leaf" with the actions that lead to it from the root."""
    path: list[int] = []
    below = node
    while below:
        path.append((below - 1) % A)
        below = (below - 1) // A
    kind = "node" if node < inner else "leaf"
    return " ".join([kind, "-".join(str(a) for a in reversed(path)) or "root"])


def hard_tree_value(depth: int, window: int, horizon: int, epsilon: float) -> float:
    """(H − D − m)·(1/2 + ε): the optimal value, with or without delay.

    Parameters
    ----------
    depth, window, horizon : int
        m, D and H.
    epsilon : float
        ε.

    Returns
    -------
    float
        The value.

    Examples
    --------
    >>> from oldlight.instances import hard_tree_value
    >>> hard_tree_value(depth=2, window=2, horizon=6, epsilon=0.1)
    1.2
    """
    return float((horizon - window - depth) * (0.5 + epsilon))


def hard_tree_epsilon(depth: int, n_actions: int, window: int, episodes: int) -> float:
    """ε(K) = (1 − 1/(DLA))·√(DLA/K)/(2√2), the proof's choice for K episodes; refused above 1/4.

    K ≥ H·S·A and H ≥ 2D, as Proposition 2 asks, is enough for at most 1/4.

    Parameters
    ----------
    depth, n_actions, window, episodes : int
        m, A, D and K.

    Returns
    -------
    float
        ε(K).

    Examples
    --------
    >>> from oldlight.instances import hard_tree_epsilon
    >>> round(hard_tree_epsilon(depth=2, n_actions=2, window=2, episodes=100), 6)
    0.0875
    """
    m = checks.whole("depth", depth, least=1)
    A = checks.whole("n_actions", n_actions, least=2)
    K = checks.whole("episodes", episodes, least=1)
    triples = int(checks.whole("window", window, least=1) * A**m)
    epsilon = (1.0 - 1.0 / triples) * float(np.sqrt(triples / (8.0 * K)))
    if epsilon > 0.25:
        raise ValueError(
            f"episodes is {K}: ε would be {epsilon:.6g}, expected at most 1/4; {2 * triples} episodes are enough"
        )
    return epsilon
