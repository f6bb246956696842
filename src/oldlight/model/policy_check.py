"""Is a policy one for this problem? Asked once by everything that plays, values or deploys one."""

from __future__ import annotations

from typing import Any

from oldlight.model.information import Layout, same_layout
from oldlight.model.link_information import PolicyOfNodes
from oldlight.model.policies import BlackoutPolicy, MarkovPolicy, TablePolicy
from oldlight.model.problem import ImpairedMDP


def check_made_for(problem: ImpairedMDP, policy: Any) -> None:
    """Refuse what cannot be asked what to do, and what was made for a problem of other sizes or behind another link."""
    if not isinstance(policy, MarkovPolicy) and not hasattr(policy, "probabilities"):
        raise not_a_policy(policy)
    fits = True
    if isinstance(policy, MarkovPolicy):
        steps = 1 if problem.forever else problem.horizon
        fits = policy.actions.shape == (steps, problem.n_states) and policy.n_actions == problem.n_actions
    elif isinstance(policy, PolicyOfNodes):
        fits = policy.fits(problem)
    elif isinstance(policy, TablePolicy | BlackoutPolicy):
        fits = problem.has_delay_law and not problem.forever
        if isinstance(policy, BlackoutPolicy):
            fits = fits and policy.fits(problem)
        else:
            fits = fits and problem.arrival_probability is None and same_layout(policy.layout, Layout.of(problem))
    if not fits:
        raise made_for_another(policy, problem)


def made_for_another(policy: Any, problem: ImpairedMDP) -> ValueError:
    """The error for a policy whose table does not fit the problem."""
    return ValueError(f"{policy!r} was made for another problem than {problem!r}: sizes, channel or start differ")


def not_a_policy(policy: Any) -> TypeError:
    """The error for something that cannot be asked what to do."""
    return TypeError(
        f"policy is of type {type(policy).__name__}, without probabilities(info); wrap a function of the information state: "
        "oldlight.FunctionPolicy(choose, n_actions)"
    )
