"""TabularMDP saved and loaded, and files that are damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from mdp_cases import H, per_step, stationary

# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [stationary, per_step])
@pytest.mark.parametrize("asked", ["chain", "chain.toml", "chain.npz"])
def test_save_and_load(make: Any, asked: str, tmp_path: Path) -> None:
    mdp = make(truncation_error=1.5e-7)
    mdp.save(tmp_path / "chain")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["chain.npz", "chain.toml"]
    again = ol.TabularMDP.load(tmp_path / asked)
    assert again == mdp
    assert (again.stationary, again.truncation_error) == (mdp.stationary, 1.5e-7)


def test_a_dot_in_the_name_is_part_of_the_name(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain.v1")
    assert (tmp_path / "chain.v1.npz").exists()
    assert ol.TabularMDP.load(tmp_path / "chain.v1") == stationary()


def test_names_of_any_kind_survive(tmp_path: Path) -> None:
    states = ['say "hi"', "back\\slash and\nnew line\ttab", "état № 3 → 🦉"]
    mdp = stationary(states=states, actions=["[a]", "x = 1 # no comment"])
    mdp.save(tmp_path / "named")
    again = ol.TabularMDP.load(tmp_path / "named")
    assert again.states == tuple(states)
    assert again == mdp


def test_the_delete_character_survives_too(tmp_path: Path) -> None:
    mdp = stationary(states=["a\x7f", "b\x00\x1b", "c"])
    mdp.save(tmp_path / "odd")
    assert ol.TabularMDP.load(tmp_path / "odd") == mdp


def test_saving_twice_overwrites(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    per_step().save(tmp_path / "chain")
    assert ol.TabularMDP.load(tmp_path / "chain") == per_step()
    assert len(list(tmp_path.iterdir())) == 2


def test_saved_files_have_ordinary_permissions(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    (tmp_path / "plain").write_text("")
    ordinary = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "chain.npz").stat().st_mode == ordinary
    assert (tmp_path / "chain.toml").stat().st_mode == ordinary


def test_no_pickle_in_the_file(tmp_path: Path) -> None:
    mdp = per_step(states=["a", "b", "c"])
    mdp.save(tmp_path / "chain")
    with np.load(tmp_path / "chain.npz", allow_pickle=False) as data:
        assert set(data.files) == {"transitions", "rewards", "initial"}
        assert np.array_equal(data["transitions"], mdp.transitions)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    np.savez(tmp_path / "chain.npz", transitions=np.array([object()]), rewards=0, initial=0)
    with pytest.raises(ValueError, match=r"chain\.npz: damaged"):
        ol.TabularMDP.load(tmp_path / "chain")


@pytest.mark.parametrize("kept", [0, 1, 10, 100, -60, -1])
def test_a_file_cut_short_is_named(kept: int, tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    file = tmp_path / "chain.npz"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"chain\.npz: damaged"):
        ol.TabularMDP.load(tmp_path / "chain")


def test_a_flipped_byte_is_harmless_or_named(tmp_path: Path) -> None:
    mdp = stationary()
    mdp.save(tmp_path / "chain")
    file = tmp_path / "chain.npz"
    good = file.read_bytes()
    fine = 0
    for i in range(len(good)):
        file.write_bytes(good[:i] + bytes([good[i] ^ 0xFF]) + good[i + 1 :])
        try:
            again = ol.TabularMDP.load(tmp_path / "chain")
        except ValueError as error:
            fine += "chain.npz" in str(error)
        else:
            assert again == mdp, f"byte {i}: a wrong process was read"
            fine += 1
    assert fine == len(good)


def test_a_single_array_is_not_a_process(tmp_path: Path) -> None:
    stationary().save(tmp_path / "chain")
    with open(tmp_path / "chain.npz", "wb") as stream:
        np.save(stream, np.ones(3))
    with pytest.raises(ValueError, match=r"chain\.npz"):
        ol.TabularMDP.load(tmp_path / "chain")


def test_two_files_that_do_not_belong_together(tmp_path: Path) -> None:
    stationary().save(tmp_path / "three")
    ol.TabularMDP([[[0, 1]], [[1, 0]]], [[0], [1]], horizon=H).save(tmp_path / "two")
    (tmp_path / "two.npz").replace(tmp_path / "three.npz")
    with pytest.raises(ValueError, match="do not belong together") as refusal:
        ol.TabularMDP.load(tmp_path / "three")
    assert "three.toml" in str(refusal.value)
    assert "three.npz" in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("horizon = 4", "horizon = 0"),
        ("horizon = 4", "horizon = 5"),
        ('states = ["a", "b", "c"]', 'states = ["a", "b"]'),
        ('arrays = "chain.npz"', "arrays = 3"),
        ("version = 1", "version = 2"),
        ("version = 1", "version = 3"),
    ],
)
def test_a_text_file_that_says_something_wrong_is_named(line: str, instead: str, tmp_path: Path) -> None:
    per_step(states=["a", "b", "c"]).save(tmp_path / "chain")
    file = tmp_path / "chain.toml"
    text = file.read_text(encoding="utf-8")
    assert line in text
    file.write_text(text.replace(line, instead), encoding="utf-8")
    with pytest.raises(ValueError, match=r"chain\.(toml|npz)"):
        ol.TabularMDP.load(tmp_path / "chain")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space left in the middle of a write: the message names the file, the old one stays, nothing else is left behind."""
    import errno

    from oldlight import checks

    target = tmp_path / "notes.txt"
    checks.write_text(target, "old")

    def full(stream: Any) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"notes\.txt could not be written \(No space left on device\)"):
        checks.write_file(target, full)
    assert target.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
