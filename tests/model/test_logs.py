"""TabularMDP.from_log against counts made by hand, closed forms of the intervals, and the process that made the log."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol

ROWS = [
    (1, 0, "low", "go", 0.0),
    (1, 1, "high", "go", 2.0),
    (1, 2, "low", "stop", 1.0),
    (2, 0, "low", "go", 0.0),
    (2, 1, "low", "go", 1.0),
    (2, 2, "high", "go", 4.0),
]
NAMES = ("episode", "step", "state", "action", "reward")
BY_COLUMN = {name: [row[i] for row in ROWS] for i, name in enumerate(NAMES)}
LOW, HIGH = 1, 0  # sorted by name
GO, STOP = 0, 1


def quiet(table: Any, **options: Any) -> Any:
    return ol.TabularMDP.from_log(table, warn=False, **options)


def test_counts_by_hand() -> None:
    mdp = quiet(ROWS, unmet="stay")
    assert (mdp.states, mdp.actions, mdp.horizon) == (("high", "low"), ("go", "stop"), 3)
    assert mdp.transitions[0, LOW, GO] == pytest.approx([2 / 3, 1 / 3])  # high, low, high
    assert mdp.transitions[0, HIGH, GO] == pytest.approx([0, 1])  # the second visit was the last row
    assert mdp.rewards[0, LOW, GO] == pytest.approx(1 / 3)
    assert mdp.rewards[0, HIGH, GO] == 3.0
    assert list(mdp.initial) == [0, 1]
    assert mdp.log.visits.tolist() == [[2, 0], [3, 1]]
    assert mdp.log.unmet == [("high", "stop"), ("low", "stop")]  # of low, stop nobody saw what followed
    assert mdp.log.coverage == 0.5


def test_every_form_of_a_log_is_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = [",".join(NAMES), *(",".join(map(str, row)) for row in reversed(ROWS))]  # any order of rows
    path.write_text("\n".join(lines) + "\n")
    rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    first = quiet(ROWS)
    for table in (BY_COLUMN, rows, path, str(path), {k: np.array(v) for k, v in BY_COLUMN.items()}):
        assert quiet(table) == first


def test_costs_and_other_names_of_columns() -> None:
    table = {("euros" if k == "reward" else "where" if k == "state" else k): v for k, v in BY_COLUMN.items()}
    mdp = quiet(table, state="where", costs="euros", unmet="stay")
    assert mdp.rewards[0, HIGH, GO] == -3.0
    assert mdp.rewards[0, HIGH, STOP] == -3.0  # the lowest


@pytest.mark.parametrize("stationary", [True, False])
def test_pairs_never_met(stationary: bool) -> None:
    with pytest.warns(UserWarning, match="never occur in the log with what followed, first"):
        mdp = ol.TabularMDP.from_log(ROWS, stationary=stationary)
    assert mdp.states is not None
    assert mdp.states[-1] == "unmet"
    assert (mdp.transitions[0, HIGH, STOP, -1], mdp.rewards[0, HIGH, STOP]) == (1.0, np.nanmin(mdp.log.reward))
    assert (mdp.transitions[:, -1, :, -1] == 1).all()
    assert (mdp.rewards[:, -1] == np.nanmin(mdp.log.reward)).all()
    mean = quiet(ROWS, unmet="mean")
    assert mean.transitions[0, HIGH, STOP] == pytest.approx(mean.transitions[0, HIGH, GO])
    assert mean.rewards[0, HIGH, STOP] == mean.rewards[0, HIGH, GO]
    stay = quiet(ROWS, unmet="stay")
    assert (stay.transitions[0, HIGH, STOP, HIGH], stay.transitions[0, LOW, STOP, LOW]) == (1, 1)
    assert stay.rewards[0, LOW, STOP] == 1.0  # what it earned is known
    with pytest.raises(ValueError, match="never occur"):
        quiet(ROWS, unmet="refuse")


def test_a_step_that_is_missing_is_no_transition() -> None:
    table = [(0, 0, 0, 0, 0.0), (0, 2, 1, 0, 0.0), (0, 3, 0, 0, 0.0)]
    assert quiet(table, unmet="stay").log.count.sum() == 1  # only 2 -> 3
    known = [dict(zip(NAMES, row, strict=True)) | {"next_state": 1} for row in table]
    assert quiet(known, unmet="stay").log.count.sum() == 3


def test_where_episodes_end() -> None:
    mdp = quiet(ROWS, ends="absorb", unmet="stay")
    assert mdp.states[-1] == "end"
    assert mdp.transitions[0, HIGH, GO] == pytest.approx([0, 0.5, 0.5])
    assert mdp.transitions[0, LOW, STOP, -1] == 1
    assert (mdp.rewards[:, -1] == 0).all()
    seen_last = [*ROWS, (1, 3, "high", None, None), (2, 3, "low", "", 0.0)]
    more = quiet(seen_last, unmet="stay")
    assert more.transitions[0, LOW, STOP] == pytest.approx([1, 0])
    assert more.horizon == 3


def test_one_model_per_step() -> None:
    mdp = quiet(ROWS, stationary=False, unmet="stay")
    assert mdp.transitions[0, LOW, GO] == pytest.approx([0.5, 0.5])
    assert mdp.transitions[1, LOW, GO] == pytest.approx([1, 0])
    assert list(mdp.rewards[:, LOW, GO]) == [0, 1, 0]
    assert (0, "low", "stop") in mdp.log.unmet
    assert (2, "low", "stop") not in mdp.log.unmet  # after the last step nothing follows


def test_given_names_come_in_the_given_order() -> None:
    mdp = quiet(ROWS, states=["low", "high", "never"], actions=["stop", "go"], unmet="stay")
    assert mdp.states == ("low", "high", "never")
    assert mdp.transitions[0, 0, 1] == pytest.approx([1 / 3, 2 / 3, 0])


def test_intervals_against_the_binomial_law() -> None:
    """Clopper and Pearson: at the lower end k or more successes have probability α/2, at the upper end k or fewer."""
    from scipy.stats import binom

    rows = {(r["state"], r["action"], r["next"]): r for r in quiet(ROWS).log.intervals(0.9)}
    row = rows["low", "go", "high"]
    assert (row["count"], row["visits"], row["probability"]) == (2, 3, 2 / 3)
    assert binom.sf(1, 3, row["low"]) == pytest.approx(0.05)
    assert binom.cdf(2, 3, row["high"]) == pytest.approx(0.05)
    spread = np.std([0, 0, 1], ddof=1) / np.sqrt(3) * 2.919985580  # Student's 95 % quantile, two degrees of freedom
    assert row["reward_high"] - row["reward"] == pytest.approx(spread)
    assert rows["high", "go", "low"]["high"] == 1.0


def test_a_long_log_gives_back_the_process() -> None:
    """Counts from simulated episodes: the intervals at 1 − 1e-6 hold for every transition, and all pairs are met."""
    rng = np.random.default_rng(5)
    P, R = rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2))
    s, rows = 0, []
    for i in range(4_000):
        a = int(rng.integers(2))
        rows.append((i // 10, i % 10, s, a, R[s, a]))
        s = int(rng.choice(3, p=P[s, a]))
        s = int(rng.integers(3)) if i % 10 == 9 else s
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mdp = ol.TabularMDP.from_log(rows)
    assert np.allclose(mdp.rewards[0], R, atol=1e-12)
    found = mdp.log.intervals(1 - 1e-6)
    assert len(found) == P.size
    for row in found:
        p = P[int(row["state"]), int(row["action"]), int(row["next"])]
        assert row["low"] <= p <= row["high"]
    assert ol.solve(ol.ImpairedMDP(mdp, "constant:1")).exact


def test_the_counts_stay_with_the_model() -> None:
    mdp = quiet(ROWS)
    again = pickle.loads(pickle.dumps(mdp))
    assert again == mdp
    assert again.log.to_dict() == mdp.log.to_dict()
    assert type(mdp.replace(initial=None)) is ol.TabularMDP
    assert "never met: (high, stop), (low, stop)" in str(mdp.log)
    assert mdp.log.plot() is not None


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([], "has no rows"),
        (3, "int is not a table"),
        ([(1, 2)], "row 0: \\(1, 2\\) is not a row"),
        ([{"episode": 0}], "row 0: 'step' is missing"),
        ({"episode": [0]}, "column 'step' is missing; there are 'episode'"),
        ({**BY_COLUMN, "step": [0]}, "column 'step' has 1 rows, column 'episode' 6"),
        ([(0, 0, 0, 0, 0), (0, 0, 1, 0, 0)], "row 1: step 0 of episode 0 is there twice, also at row 0"),
        ([(0, "first", 0, 0, 0)], "row 0: step is 'first', expected a whole number"),
        ([(0, 0, 0, 0, "much")], "row 0: reward is 'much', expected a number"),
        ([(0, 0, None, 0, 0)], "row 0: state is empty"),
        ([(0, 0, 0, None, None)], "no row has an action"),
    ],
)
def test_a_log_that_cannot_be_read_says_where(table: Any, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        quiet(table)


def test_a_line_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,step,state,action,reward\n0,0,a,b,1\n0,1,a,b,x\n")
    with pytest.raises(ValueError, match=r"log\.csv, line 3: reward is 'x', expected a number"):
        quiet(path)
