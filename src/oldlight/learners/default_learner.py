"""The learner to begin with: `default()`.

The best candidate so far, not yet a proved winner: it was compared with its rivals on a part of the tuning suite only (docs/learning_suites.md has the figures), and the
reporting suite has not been run. It has no constant that must be fitted to the process, takes every link that can be planned, and shares the counts of a pair over the
steps until a test says that they differ.
"""

from __future__ import annotations

from typing import Any

from oldlight.learners.link_learner import LinkLearner

OPTIONS: dict[str, Any] = {"optimism": "prior", "visits": 0.3, "pooled": "auto"}


def default(**options: Any) -> Any:
    """The learner to begin with, behind any link; see the module's text for what is known of it.

    Parameters
    ----------
    **options
        Those of `LinkLearner`, instead of the default's own.

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
    return LinkLearner(**(OPTIONS | options))
