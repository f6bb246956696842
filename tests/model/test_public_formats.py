"""Cassandra's and PRISM's files, of our own making in their syntax, against the arrays that they mean."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.registry import mdp_of

TIGER = """
# a door hides a tiger
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: hear-left hear-right
start: uniform

T: listen
identity
T:open-left
uniform
T: open-right
uniform
O: listen
0.85 0.15
0.15 0.85
O: open-left
uniform
O: open-right
uniform
R: listen : * : * : * -1
R: open-left : tiger-left : * : * -100
R: open-left : tiger-right : * : * 10
R: open-right : tiger-left : * : * 10
R: open-right : tiger-right : * : * -100
"""


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_the_process_of_the_tiger(tmp_path: Path) -> None:
    path = written(tmp_path, "tiger.pomdp", TIGER)
    mdp = ol.TabularMDP.from_cassandra(path, horizon=3)
    assert (mdp.states, mdp.actions) == (("tiger-left", "tiger-right"), ("listen", "open-left", "open-right"))
    assert mdp.transitions[0, :, 0].tolist() == [[1, 0], [0, 1]]
    assert (mdp.transitions[0, :, 1:] == 0.5).all()
    assert np.allclose(mdp.rewards[2], 0.95**2 * np.array([[-1, -100, 10], [-1, 10, -100]]))
    plain = ol.TabularMDP.from_cassandra(path, horizon=3, discount=1)
    assert plain.rewards[2].tolist() == [[-1, -100, 10], [-1, 10, -100]]
    for_ever = ol.TabularMDP.from_cassandra(path, horizon=None)
    assert (for_ever.horizon, for_ever.discount) == (None, 0.95)
    assert for_ever.rewards[0].tolist() == [[-1, -100, 10], [-1, 10, -100]]
    found = ol.solve(ol.ImpairedMDP(for_ever, "none"))
    assert found.lower - 1e-9 <= 10 / (1 - 0.95) <= found.upper + 1e-9
    assert ol.TabularMDP.from_cassandra(path, horizon=None, discount=0.5).discount == 0.5
    assert ol.TabularMDP.from_cassandra(path, horizon=None, average=True).average
    # seen at once, the tiger is never met: 10 at each of three steps, discounted
    assert ol.solve(ol.ImpairedMDP(mdp, "none")).value == pytest.approx(10 * (1 + 0.95 + 0.95**2))
    assert mdp_of(f"{path}@3") == mdp


def test_every_way_to_write_a_table(tmp_path: Path) -> None:
    """Numbers, words and stars; rows, matrices and single entries; costs; later lines overwrite earlier ones."""
    rng = np.random.default_rng(3)
    P, C = rng.dirichlet(np.ones(3), size=(2, 3)), rng.random((2, 3, 3))  # [a, s, s2]
    entries = "\n".join(f"T: 1 : {s} : {s2} {P[1, s, s2]!r}" for s in range(3) for s2 in range(3))
    text = f"""discount: 1.0
values: cost
states: a b c
actions: 2
start: 0.25 0.25 0.5
T: * : * : * 0.3
T: 0
{" ".join(map(repr, P[0].ravel().tolist()))}
{entries.replace("np.float64(", "").replace(")", "")}
R: * : * : * 7
R: 0 : b
{" ".join(map(repr, C[0, 1].tolist()))}
R: 0 : 0 : * {C[0, 0, 0]:.17g}
R: 0 : 2 : 1 {C[0, 2, 1]:.17g}
R: 1
{" ".join(map(repr, C[1].ravel().tolist()))}
"""
    mdp = ol.TabularMDP.from_cassandra(written(tmp_path, "x.mdp", text), horizon=2)
    assert np.allclose(mdp.transitions[0].transpose(1, 0, 2), P, atol=1e-15)
    cost = np.full((2, 3, 3), 7.0)
    cost[0, 1], cost[0, 0], cost[0, 2, 1], cost[1] = C[0, 1], C[0, 0, 0], C[0, 2, 1], C[1]
    assert np.allclose(mdp.rewards[0].T, -(P * cost).sum(axis=-1), atol=1e-12)
    assert mdp.initial.tolist() == [0.25, 0.25, 0.5]
    assert mdp.actions is None


def test_rewards_that_depend_on_the_observation(tmp_path: Path) -> None:
    text = TIGER + "R: listen : tiger-left : * : hear-right -11\n"
    mdp = ol.TabularMDP.from_cassandra(written(tmp_path, "t.POMDP", text), horizon=1)
    assert mdp.rewards[0, 0, 0] == pytest.approx(0.85 * -1 + 0.15 * -11)
    assert mdp.rewards[0, 1, 0] == pytest.approx(-1)


@pytest.mark.parametrize(
    ("line", "law"),
    [
        ("start: b", [0, 1, 0]),
        ("start: 2", [0, 0, 1]),
        ("start include: a c", [0.5, 0, 0.5]),
        ("start exclude: 0", [0, 0.5, 0.5]),
        ("", [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_starts(tmp_path: Path, line: str, law: list[float]) -> None:
    text = f"states: a b c\nactions: 1\n{line}\nT: 0 identity\nR: 0 : b : * 1\n"
    assert ol.TabularMDP.from_cassandra(written(tmp_path, "s.mdp", text), horizon=1).initial.tolist() == law


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("discount: 0.95", "discount: 1.5", "line 3: discount is 1.5, expected a number in \\[0, 1\\]"),
        ("values: reward", "values: gold", "line 4: values is 'gold', expected reward or cost"),
        ("states: tiger-left tiger-right", "", "line 8: states must be listed before start"),
        ("start: uniform", "start: 0.5 0.6", "line 8: start sums to 1.1"),
        ("identity", "1 0 0", "line 12: T of line 10 has 3 numbers, expected 4"),
        ("identity", "1 0 zero 1", "line 11: 'zero' is not a number"),
        ("identity", "1 0 0 nan", "line 11: 'nan', expected a finite number"),
        ("identity", "1 1 0 1", "T of action listen, state tiger-left sums to 2, expected 1"),
        ("identity", "1 0 -1 2", "line 10: T has a number outside"),
        ("R: open-left : tiger-left", "R: open-left : tiger-lft", "line 24: 'tiger-lft' is not one of the 2 states"),
        ("R: listen :", "R: listen", "'\\*' is not a number"),
        ("T:open-left", "T open-left", "line 12: 'T', expected one of discount:"),
        ("actions: listen open-left open-right", "actions: listen listen", "line 6: actions: expected a number or"),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TIGER
    path = written(tmp_path, "tiger.pomdp", TIGER.replace(old, new, 1))
    with pytest.raises(
        ValueError, match=f"tiger.pomdp, line.*{says}" if "line" not in says else f"tiger.pomdp, {says}"
    ):
        ol.TabularMDP.from_cassandra(path, horizon=2)


# -- PRISM ------------------------------------------------------------------------------------------------------------

TRA = "3 4 6\n0 0 1 1 go\n0 1 0 0.5 wait\n0 1 2 0.5 wait\n1 0 0 0.25 go\n1 0 2 0.75 go\n2 0 2 1 wait\n"
FILES = {
    "ring.tra": TRA,
    "ring.lab": '0="init" 1="deadlock" 2="goal"\n0: 0\n1: 0\n2: 2\n',
    "ring.sta": "(x,y)\n0:(0,0)\n1:(0,1)\n2:(1,0)\n",
    "ring.srew": "3 1\n2 4\n",
    "ring.trew": "3 4 2\n0 1 2 8\n1 0 0 2.5\n",
}


def exported(folder: Path, **changes: str) -> Path:
    for name, text in FILES.items():
        written(folder, name, changes.get(name.replace(".", "_"), text))
    return folder / "ring.tra"


def test_what_prism_exports(tmp_path: Path) -> None:
    path = exported(tmp_path)
    mdp = ol.TabularMDP.from_prism(path, horizon=4)
    go, wait = 0, 1
    assert (mdp.states, mdp.actions) == (("(0,0)", "(0,1)", "(1,0)"), ("go", "wait"))
    assert mdp.initial.tolist() == [0.5, 0.5, 0]
    assert mdp.transitions[0, 0].tolist() == [[0, 1, 0], [0.5, 0, 0.5]]
    assert mdp.transitions[0, 1, go].tolist() == [0.25, 0, 0.75]
    assert mdp.transitions[0, 1, wait].tolist() == [0.25, 0, 0.75]  # as its first choice
    assert mdp.rewards[0].tolist() == [[0, 4], [0.625, 0.625], [4, 4]]
    stay = ol.TabularMDP.from_prism(path, horizon=4, missing="stay", srew=None)
    assert stay.transitions[0, 1, wait].tolist() == [0, 1, 0]
    assert stay.rewards[0].tolist() == [[0, 4], [0.625, 0], [0, 0]]
    assert mdp_of(f"{path}@4") == mdp


def test_choices_without_actions_and_chains(tmp_path: Path) -> None:
    plain = "\n".join(" ".join(line.split()[:4]) for line in TRA.splitlines())
    mdp = ol.TabularMDP.from_prism(written(tmp_path, "plain.tra", plain), horizon=2)
    assert mdp.actions is None
    assert mdp.initial.tolist() == [1, 0, 0]
    assert mdp.transitions[0, 2].tolist() == [[0, 0, 1], [0, 0, 1]]
    chain = written(tmp_path, "chain.tra", "2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n")
    written(tmp_path, "chain.trew", "2 1\n0 1 6\n")
    found = ol.TabularMDP.from_prism(chain, horizon=2)
    assert found.transitions[0, :, 0].tolist() == [[0.5, 0.5], [0, 1]]
    assert found.rewards[0].tolist() == [[3], [0]]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ring_tra": TRA.replace("3 4 6", "3 4 7")}, "ring.tra, line 1: 7 transitions are announced, 6 are there"),
        ({"ring_tra": TRA.replace("0 0 1 1 go", "0 0 5 1 go")}, "ring.tra, line 2: state 5, expected 0..2"),
        ({"ring_tra": TRA.replace("0 0 1 1 go", "0 0 1")}, "ring.tra, line 2: '0 0 1', expected state choice next"),
        ({"ring_tra": TRA.replace("0 0 1 1 go", "0 0 1 x")}, "ring.tra, line 2: '0 0 1 x', expected state choice next"),
        ({"ring_tra": TRA.replace("0 0 1 1 go", "0 0 1 2 go")}, "ring.tra, line 2: probability 2, expected"),
        ({"ring_tra": TRA.replace("0 0 1 1 go", "0 0 1 .5 go")}, "state 0, choice 0 sum to 0.5, expected 1"),
        ({"ring_tra": "# nothing\n"}, "ring.tra, line 1: the file is empty"),
        ({"ring_tra": "dtmc\n"}, "ring.tra, line 1: 'dtmc', expected 2 or 3 whole numbers"),
        ({"ring_lab": '0="deadlock"\n0: 0\n'}, 'ring.lab, line 1: no state is called "init"'),
        ({"ring_lab": '0="init"\n0 0\n'}, "ring.lab, line 2: '0 0', expected state: label"),
        ({"ring_sta": "(x)\n0:(1)\n"}, "ring.sta, line 1: state 1 has no name"),
        ({"ring_sta": "(x)\n(0)\n"}, "ring.sta, line 2: '\\(0\\)', expected state:\\(x\\)"),
        ({"ring_srew": "3 1\n2 much\n"}, "ring.srew, line 2: '2 much', expected state reward"),
        ({"ring_trew": "3 4 1\n2 1 2 1\n"}, "ring.trew, line 2: state 2 has no choice 1"),
    ],
)
def test_damaged_exports_name_the_line(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ol.TabularMDP.from_prism(exported(tmp_path, **changes), horizon=2)


def test_a_csv_file_on_the_command_line(tmp_path: Path) -> None:
    table = written(tmp_path, "plant.csv", "s,a,s',p,r\n0,0,0,1,1\n")
    assert mdp_of(f"{table}@5").horizon == 5
    log = written(tmp_path, "log.csv", "episode,step,state,action,reward\n0,0,a,b,1\n0,1,a,b,1\n")
    assert mdp_of(f"{log}@5").n_states == 1
    with pytest.raises(ValueError, match=r"expected file@steps, e.g. .*plant.csv@20"):
        mdp_of(str(table))


# -- ICU-Sepsis -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="icu-sepsis is not installed")
def test_icu_sepsis_has_the_published_value() -> None:
    """The package's page: the optimal policy survives with .88 when nothing cuts the stay short."""
    mdp = ol.instances.icu_sepsis(horizon=100)
    assert (mdp.n_states, mdp.n_actions) == (716, 25)
    V = np.zeros(716)
    for _ in range(100):
        V = (mdp.rewards[0] + mdp.transitions[0] @ V).max(axis=1)
    assert float(mdp.initial @ V) == pytest.approx(0.88, abs=0.005)
    assert (mdp.transitions[0, -3:, :, -1] == 1).all()
