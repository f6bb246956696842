"""Controllers as files: saved, loaded with numpy alone, damaged."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from controller_cases import KINDS, chain, discounted, problem_of
from oldlight.control import Controller

# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_does_the_same(kind: str, tmp_path: Path) -> None:
    problem = problem_of(kind, 0)
    controller = Controller(problem, ol.solve(problem).policy)
    controller.save(tmp_path / "plan.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["plan.npz"]
    loaded, copied = Controller.load(tmp_path / "plan.npz"), pickle.loads(pickle.dumps(controller))
    rng = np.random.default_rng(0)
    for _ in range(20):
        past = rng.integers(0, problem.n_actions, problem.warmup).tolist()
        for one in (controller, loaded, copied):
            one.reset(past)
        for tick in range(problem.horizon - problem.actuation):
            if rng.random() < 0.6:
                message = (int(rng.integers(-problem.warmup, tick + 1)), int(rng.integers(problem.n_states)))
                if message[0] not in controller._memory.seen:
                    for one in (controller, loaded, copied):
                        one.observe(*message)
            assert controller.act() == loaded.act() == copied.act()
    assert controller.report() == loaded.report()


def test_an_endless_plan_is_saved_with_its_bound(tmp_path: Path) -> None:
    problem = ol.ImpairedMDP(discounted(1, 0.6, 0.1), ol.ConstantDelay(1))
    controller = Controller(problem, ol.solve(problem).policy)
    loaded = Controller.load(controller.save(tmp_path / "endless.npz"))
    assert loaded.loss_bound == controller.loss_bound
    assert [loaded.act() for _ in range(100)] == [controller.act() for _ in range(100)]
    assert repr(loaded) == "Controller(actions, S=3, A=2, runs for ever, tick 100)"


ALONE = """
import sys

class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "oldlight"):
            raise ImportError(f"{name} is not numpy")

sys.meta_path.insert(0, Only())
from oldlight.control import Controller

controller = Controller.load(sys.argv[1])
out = []
for h in range(10):
    if h >= 2:
        controller.observe(h - 2, 3 * h % 20)
    out.append(controller.act())
third = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__", "numpy", "oldlight", "cython_runtime"}
print(*out)
print(*sorted(name for name in third if not name.startswith("_")))
"""


def test_a_loaded_controller_needs_numpy_alone(tmp_path: Path) -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy)
    path = controller.save(tmp_path / "plan.npz")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    actions, third = done.stdout.splitlines()
    wanted = []
    for h in range(10):
        if h >= 2:
            controller.observe(h - 2, 3 * h % 20)
        wanted.append(controller.act())
    assert [int(a) for a in actions.split()] == wanted
    assert third == ""


def test_damaged_files_are_named(tmp_path: Path) -> None:
    problem, policy = chain(2)
    good = Controller(problem, policy).save(tmp_path / "plan.npz")
    with np.load(good) as data:
        arrays = {key: data[key] for key in data.files}

    def saved(**changes: Any) -> Path:
        path = tmp_path / "damaged.npz"
        np.savez(path, **{k: v for k, v in (arrays | changes).items() if v is not None})
        return path

    numbers, offset, root = arrays["numbers"], arrays["offset"], arrays["root"]

    def number(i: int, value: int) -> dict[str, Any]:
        return {"numbers": np.where(np.arange(8) == i, value, numbers)}

    one_missing = offset.copy()
    one_missing[5] = -1
    for changes, says in [
        ({"kind": np.array("guess")}, "kind is 'guess', expected a saved oldlight Controller$"),
        ({"likely": None}, "damaged, .*'likely' is missing"),
        ({"numbers": numbers[:3]}, r"damaged, .*'numbers' has shape \(3,\), expected \(8,\)"),
        (number(0, 9), "version is 9; this oldlight reads version 1"),
        *(({name: value}, rf"damaged, .*'?{name}'? (is wrong|is of type|is 'guess'|has shape)") for name, value in [
            ("table", arrays["table"] + 5),
            ("table", arrays["table"].astype(float)),
            ("table", arrays["table"][:, None]),
            ("likely", arrays["likely"] + 20),
            ("policy", np.array("guess")),
            ("pending", np.array([9, 9])),
            ("pending", np.array([-1])),
            ("offset", np.full_like(offset, -1)),
            ("offset", one_missing),
            ("offset", offset[:-1]),
            ("offset", root),
            ("offset", np.where(offset == offset.max(), len(arrays["table"]) - 499, offset)),
            ("root", np.where(root == root.max(), len(arrays["table"]), root)),
            ("root", root[:-1]),
        ]),
        ({"table": arrays["table"][:-5]}, "its arrays do not fit together"),
        ({"offset": np.full_like(offset, -1), "root": np.full_like(root, -1)}, "'offset' is wrong"),
        (number(2, 0), "'likely' has shape .* expected .1, 0, 5."),
        (number(4, -1), "'numbers' is wrong"),
        (number(6, 20), "'numbers' is wrong"),
    ]:  # fmt: skip
        with pytest.raises(ol.UnreadableFile, match=says):
            Controller.load(saved(**changes))
    with pytest.raises(FileNotFoundError, match="no such file"):
        Controller.load(tmp_path / "nowhere.npz")
    with pytest.raises(ValueError, match="a policy written in Python cannot be saved"):
        Controller(problem, ol.FunctionPolicy(lambda info: 0, 5)).save(tmp_path / "f.npz")


def test_damaged_action_probabilities_are_named(tmp_path: Path) -> None:
    problem, policy = chain(1)
    mixed = ol.TablePolicy(policy.layout, action_probabilities=np.eye(5)[policy.actions])
    good = Controller(problem, mixed).save(tmp_path / "plan.npz")
    assert Controller.load(good).act() in range(5)
    with np.load(good) as data:
        arrays = {key: data[key] for key in data.files}
    for table in (
        arrays["table"][:, :4],
        0.9 * arrays["table"],
        2 * arrays["table"] - 0.2,
        arrays["table"].astype(int),
    ):
        np.savez(tmp_path / "damaged.npz", **(arrays | {"table": table}))
        with pytest.raises(ol.UnreadableFile, match=r"'table' (is wrong|is of type|has shape)"):
            Controller.load(tmp_path / "damaged.npz")


def test_a_file_of_a_policy_is_refused_with_the_way_out(tmp_path: Path) -> None:
    for channel in (ol.ConstantDelay(1), ol.Loss(seen=0.5)):
        problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), channel)
        policy: Any = ol.solve(problem).policy
        path = policy.save(tmp_path / "best.npz")
        with pytest.raises(ValueError, match="expected a saved oldlight Controller") as refused:
            Controller.load(path)
        way = re.search(r"Controller\(problem, load_policy\(.*?\)\)\.save\(FILE\)", str(refused.value))
        assert way is not None
        assert str(refused.value).endswith("oldlight plan --controller FILE")
        names = {
            "Controller": Controller,
            "load_policy": ol.load_policy,
            "problem": problem,
            "FILE": tmp_path / "c.npz",
        }
        assert Controller.load(eval(way[0], names)).act() == Controller(problem, policy).act()


def test_a_plan_of_many_steps_is_read_without_a_warning(tmp_path: Path) -> None:
    mdp = random_mdp(np.random.default_rng(0), 2, 5, 3)
    problem = ol.ImpairedMDP(ol.TabularMDP(mdp.transitions[0], mdp.rewards[0], horizon=600), ol.ConstantDelay(1))
    path = Controller(problem, ol.solve(problem).policy).save(tmp_path / "plan.npz")
    with np.errstate(all="raise"):  # 5^599 is more than a float holds
        loaded = Controller.load(path)
    loaded.reset()
    assert loaded.act() == Controller(problem, ol.solve(problem).policy).act()


def test_the_report_reads_well() -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy)
    assert str(controller.report()) == "ticks 0"
    controller.act()
    controller.observe(0, 1)
    controller.observe(0, 1)
    controller.lost(1)
    controller.observe(1, 4)
    controller.lost(1)
    assert str(controller.report()) == "ticks 1, observations 2, duplicates 2, lost 1, came after lost 1"
