"""The learner to begin with: `default()`.

`LinkLearner(optimism="best", visits="learnt", sharpness=10, looks=8, pooled="auto")`: it takes every link that can be planned, shares the counts of a pair over the steps where one law is promised, else until the
odds are that they differ, and expects of what it has not tried that it leads to the best state. How soon it stops expecting that of a pair that it has tried is learnt from how often visits meet something
new, and now and then it looks again at what did badly at first. The two numbers that are left, the sharpness of its draws and how often it looks again, were chosen on the tuning suite alone and are not to be fitted to the process. What is
measured of it, where it loses and by how much, is in docs/learning_suites.md; nothing is proved of its regret (`learners.optimistic_model`).
"""

from __future__ import annotations

from typing import Any, Literal

from oldlight.learners.link_learner import LinkLearner


def default(
    *,
    visits: float | Literal["learnt"] = "learnt",
    sharpness: float = 10.0,
    looks: int = 8,
    pooled: bool | Literal["auto"] = "auto",
    law: Literal["known", "estimated"] = "known",
    rewards: Literal["known", "estimated"] = "known",
    hidden_steps: int | Literal["auto"] = "auto",
    tolerance: float = 1e-3,
) -> Any:
    """The learner to begin with, behind any link; see the module's text for what is known of it.

    Parameters
    ----------
    visits, sharpness, looks
        Of its optimism (`oldlight.learners.optimistic_model`, `oldlight.learners.link_learner`); chosen once, for all processes.
    pooled, law, rewards, hidden_steps, tolerance
        Those of `LinkLearner`.

    Returns
    -------
    LinkLearner
        A new one.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, horizon=5), "packets:0=0.5,1=0.5")
    >>> run = ol.learn(problem, ol.learners.default(law="estimated"), 50, seed=1)
    >>> bool(run.shortfalls[-1] < run.shortfalls[0])
    True
    """
    return LinkLearner(
        optimism="best", visits=visits, sharpness=sharpness, looks=looks, pooled=pooled, law=law, rewards=rewards,
        hidden_steps=hidden_steps, tolerance=tolerance,
    )  # fmt: skip
