"""Processes from what people have: logs of episodes, Cassandra's files, PRISM's explicit files. `TabularMDP` has these as its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oldlight.model.log_counts import CountedMDP
    from oldlight.model.mdp import TabularMDP


class Sources:
    """The ways to make a `TabularMDP` of such data."""

    @classmethod
    def from_log(
        cls,
        table: Any,
        *,
        horizon: int | None = None,
        costs: str | None = None,
        stationary: bool = True,
        unmet: str = "worst",
        ends: str = "cut",
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
        warn: bool = True,
        **columns: str,
    ) -> CountedMDP:
        """The process counted from a log of episodes: a TabularMDP whose `log` has the counts, the coverage and confidence intervals.

        Parameters
        ----------
        table : mapping of columns, DataFrame, list of rows, or path of a CSV file
            One row per step: episode, step (0, 1, ..), state, action, reward, and next_state if there is such a column. An empty action:
            the state that was seen last.
        horizon : int, optional
            H; as long as the longest episode if None.
        costs : str, optional
            The column of costs, which takes the place of rewards (a reward is minus a cost).
        stationary : bool
            One model for all steps, or one for each.
        unmet : {"worst", "stay", "mean", "refuse"}
            What is assumed of pairs (s, a) that the log never met; a warning says how many. "worst": an absorbing state "unmet" with the
            lowest mean reward; "stay": the state stays, for that reward; "mean": like the other actions there.
        ends : {"cut", "absorb"}
            What follows the last row of an episode: not known, or a state "end" that earns nothing.
        states, actions : sequence, optional
            All names, in the order of the model; those of the log, sorted, if None.
        warn : bool
            Whether to warn of pairs never met.
        **columns : str
            Other names of the columns: episode=, step=, state=, action=, reward=, next_state=.

        Returns
        -------
        CountedMDP
            The process.
        """
        from oldlight.model.log_counts import LogOptions, counted_model
        from oldlight.model.log_table import Columns

        options = LogOptions(horizon, stationary, unmet, ends, states, actions, warn)
        return counted_model(table, Columns(costs=costs, **columns), options)

    @classmethod
    def from_cassandra(
        cls,
        path: str | os.PathLike[str],
        *,
        horizon: int | None,
        discount: float | None = None,
        average: bool = False,
    ) -> TabularMDP:
        """The process in a file of Cassandra's format (``.mdp``, ``.pomdp``); observations are read past, the link is yours to give.

        Step h of a discounted file earns discount^h·r; `discount` takes the place of the file's. Costs become negative rewards. horizon=None: the
        process runs for ever, with that discount, or with average=True for the reward per step.
        """
        from oldlight.model.cassandra import cassandra_table

        return _made(cls, cassandra_table(path, horizon, discount, average))

    @classmethod
    def from_prism(
        cls,
        path: str | os.PathLike[str],
        *,
        horizon: int | None,
        missing: str = "first",
        discount: float | None = None,
        average: bool = False,
        **others: str | os.PathLike[str] | None,
    ) -> TabularMDP:
        """A process that PRISM has exported as explicit files: ``.tra``, with the ``.lab``, ``.sta``, ``.srew`` and ``.trew`` beside it.

        others: `lab`, `sta`, `srew` or `trew` elsewhere (None: none). missing: what an action does in states that do not have it, "first"
        (as the state's first choice) or "stay" (without reward). horizon=None: the process runs for ever, with `discount` or average=True.
        """
        from oldlight.model.prism import prism_table

        parts = {"horizon": horizon, "discount": discount, "average": average}
        return _made(cls, prism_table(path, missing, others) | parts)


def _made(cls: type[Sources], parts: dict[str, Any]) -> TabularMDP:
    from oldlight.model.mdp import TabularMDP

    assert issubclass(cls, TabularMDP)
    return cls(**parts)
