"""A process in which acting blind is satisfying a formula: why planning with late observations is hard (Proposition 3).

A formula in conjunctive form has n variables and C clauses; a literal is +v or −v, v = 1..n. Steps are counted from 0.

- s_0 is a clause, drawn uniformly, and stays where it is while it is not satisfied;
- action a_i at step i = 0..n−1 is the truth value of variable i + 1 (0 false, 1 true); if that makes a literal of the
  hidden clause true, the state becomes "satisfied" for good;
- H = n + 1, and the only reward is 1 for being in "satisfied" at the last step.

An agent that sees nothing before step n plays one fixed assignment, and earns the share of clauses that it satisfies:

    blind value = (largest number of clauses that can be satisfied together) / C,

which is 1 exactly if the formula can be satisfied, and at most 1 − 1/C if not. Blind means: every observation lost, or
a constant delay of at least n with a cold start. The process has C + 1 states, 2 actions and n + 1 steps, so whoever
plans for every constant delay in polynomial time decides satisfiability in polynomial time. Seeing the clause (no
delay), each clause can be satisfied on its own, and the value is 1.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from oldlight import checks
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import registered


@registered
def sat(clauses: Iterable[Iterable[int]], *, n_variables: int | None = None) -> TabularMDP:
    """The process of a formula, for example ``sat([[1, -2], [2, 3]])`` for (x1 or not x2) and (x2 or x3).

    Parameters
    ----------
    clauses : iterable of iterables of int
        Literals +v or −v, v ≥ 1.
    n_variables : int, optional
        n; the largest variable that occurs if None. More are allowed and do not matter.

    Returns
    -------
    TabularMDP
        C + 1 states, 2 actions, n + 1 steps.

    Examples
    --------
    >>> import oldlight as ol
    >>> blind = ol.ImpairedMDP(ol.instances.sat([[1], [-1]]), ol.Loss(seen=0.0))
    >>> ol.solve(blind).value  # x1 and not x1: one of two clauses
    0.5
    """
    formula, n = read_clauses(clauses, n_variables)
    C, H = len(formula), n + 1
    good = C
    P = np.zeros((H, C + 1, 2, C + 1))  # [h, s, a, s2]
    P[:, range(C + 1), :, range(C + 1)] = 1.0
    for c, clause in enumerate(formula):
        for literal in clause:
            h, a = abs(literal) - 1, int(literal > 0)
            P[h, c, a] = np.eye(C + 1)[good]
    R = np.zeros((H, C + 1, 2))
    R[n, good] = 1.0
    start = np.append(np.full(C, 1.0 / C), 0.0)
    names = [
        *(f"clause {c}: {' or '.join(_literal(x) for x in clause)}" for c, clause in enumerate(formula)),
        "satisfied",
    ]
    return TabularMDP(P, R, horizon=H, initial=start, states=names, actions=["false", "true"])


def read_clauses(clauses: Iterable[Iterable[int]], n_variables: int | None = None) -> tuple[list[tuple[int, ...]], int]:
    """The clauses, checked, and the number of variables."""
    formula: list[tuple[int, ...]] = []
    most = None if n_variables is None else checks.whole("n_variables", n_variables, least=1)
    for c, clause in enumerate(clauses):
        if isinstance(clause, int) or not isinstance(clause, Iterable):
            raise ValueError(f"clauses[{c}] is {clause!r}, expected a list of literals; write sat([[1, -2], [2, 3]])")
        literals: list[int] = []
        for i, literal in enumerate(clause):
            name = f"clauses[{c}][{i}]"
            if literal == 0:
                raise ValueError(f"{name} is 0, expected +v or −v for a variable v ≥ 1 (no closing zero is needed)")
            variable = checks.whole(f"{name} without its sign", abs(literal), least=1, most=most)
            literals.append(variable if literal > 0 else -variable)
        if not literals:
            raise ValueError(
                f"clauses[{c}] is empty, expected at least one literal (an empty clause is never satisfied)"
            )
        formula.append(tuple(literals))
    if not formula:
        raise ValueError("clauses is empty, expected at least one clause, e.g. [[1, -2], [2, 3]]")
    return formula, most or max(abs(literal) for clause in formula for literal in clause)


def satisfied_share(clauses: Iterable[Iterable[int]], n_variables: int | None = None) -> float:
    """The largest share of clauses that one assignment satisfies, by trying all 2^n: what a blind agent earns.

    Parameters
    ----------
    clauses : iterable of iterables of int
        As `sat` takes them.
    n_variables : int, optional
        At most 24.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from oldlight.instances import satisfied_share
    >>> satisfied_share([[1, -2], [2, 3]])
    1.0
    """
    formula, n = read_clauses(clauses, n_variables)
    if n > 24:
        raise ValueError(f"{n} variables have 2^{n} assignments, expected at most 24 variables")
    best = 0
    for code in range(2**n):
        held = sum(any((code >> (abs(x) - 1)) & 1 == (x > 0) for x in clause) for clause in formula)
        best = max(best, held)
    return best / len(formula)


def _literal(x: int) -> str:
    return f"x{x}" if x > 0 else f"not x{-x}"
