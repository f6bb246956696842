"""Files that somebody made to do harm: each is refused by name, and before it has taken memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight import files
from oldlight.registry import channel_of

DEEP = 100_000


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(text: str, version: int = 1) -> bytes:
    """The beginning of an npy file with any header."""
    form = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(form, len(text)) + text.encode("latin1")


def described(descr: str, shape: str, fortran: bool = False) -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def zipped(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def read(path: Path, *shapes: Any) -> Any:
    with files.arrays_in(path) as held:
        return held.array("x", "iuf", *shapes)


NUMBERS = npy(np.arange(6.0).reshape(2, 3))
HOSTILE: dict[str, bytes] = {
    "objects": npy(np.array([None, 1], dtype=object)),
    "fields": npy(np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])),
    "nested fields": npy(np.zeros(3, dtype=[("a", [("b", "f8")])])),
    "an array in each entry": header(described("('<f8', (1000, 1000))", "(3,)")),
    "bytes": npy(np.array([b"abc"])),
    "times": npy(np.array(["2020-01-01"], dtype="M8[D]")),
    "void": npy(np.zeros(2, dtype="V8")),
    "complex": npy(np.zeros(2, dtype=complex)),
    "a text": npy(np.array("abc")),
    "negative": header(described("'<f8'", "(-1, -6)")) + bytes(48),
    "absurd": header(described("'<f8'", "(1000000000000, 1000000000000)")) + bytes(48),
    "more than there is": header(described("'<f8'", "(7,)")) + bytes(48),
    "less than there is": header(described("'<f8'", "(5,)")) + bytes(48),
    "not a shape": header(described("'<f8'", "'six'")) + bytes(48),
    "a shape of floats": header(described("'<f8'", "(6.0,)")) + bytes(48),
    "empty texts without number": header(described("'<U0'", "(1000000000000,)")),
    "brackets in the header": header("(" * 9_000),
    "brackets in the header, longer": header("[" * 60_000),
    "a header of version 2 without end": header("(" * 9_000, 2)[:12] + b"(" * 5,
    "a header of version 3": b"\x93NUMPY\x03\x00" + header(described("'<f8'", "(6,)"), 2)[8:] + bytes(48),
    "a header of version 9": b"\x93NUMPY\x09\x00" + NUMBERS[8:],
    "half a header": NUMBERS[:9],
    "no header": b"",
    "noise": bytes(range(256)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_members_that_are_not_numbers_are_refused(data: bytes, tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.npz", {"x": data})
    with pytest.raises(
        ol.UnreadableFile, match=r"x\.npz: damaged, or not a file of this package \(.+\); make it again"
    ):
        read(path)


def test_good_members_are_read_whatever_their_order(tmp_path: Path) -> None:
    wanted = np.arange(6.0).reshape(2, 3)
    for array in (wanted, np.asfortranarray(wanted), wanted.astype(">f8"), np.asfortranarray(wanted.astype(">f4"))):
        for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            found = read(zipped(tmp_path / "x.npz", {"x": npy(array)}, how), (2, None))
            assert found.tolist() == wanted.tolist()
            assert found.flags.c_contiguous
            assert found.dtype.isnative
    assert read(zipped(tmp_path / "x.npz", {"x": npy(np.float64(3))})).shape == ()
    with pytest.raises(ol.UnreadableFile, match=r"'x' has shape \(\), expected \(2, any\) or \(3,\)"):
        read(tmp_path / "x.npz", (2, None), (3,))


@pytest.mark.parametrize("how", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_only_what_numpy_writes_is_unpacked(how: int, tmp_path: Path) -> None:
    with pytest.raises(ol.UnreadableFile, match="'x' is compressed by method"):
        read(zipped(tmp_path / "x.npz", {"x": NUMBERS}, how))


def edited(path: Path, change: Callable[[bytearray, int], None]) -> Path:
    """The archive with its (only) directory entry changed; `at` is where that begins."""
    data = bytearray(path.read_bytes())
    change(data, data.rindex(b"PK\x01\x02"))
    path.write_bytes(data)
    return path


def put(offset: int, form: str, value: int) -> Callable[[bytearray, int], None]:
    return lambda data, at: struct.pack_into(form, data, at + offset, value)


@pytest.mark.parametrize(
    "change",
    [
        put(8, "<H", 1),  # encrypted
        put(10, "<H", 99),  # a method that nobody knows
        put(16, "<I", 7),  # the checksum
        put(20, "<I", 3),  # packed size
        put(24, "<I", 3),  # size
        put(24, "<I", 2**31),
        put(42, "<I", 2**31),  # where it begins
        put(4, "<H", 900),  # made by
        put(6, "<H", 900),  # version needed
        put(28, "<H", 60_000),  # length of its name
    ],
)
def test_archives_that_lie_are_refused(change: Callable[[bytearray, int], None], tmp_path: Path) -> None:
    path = edited(zipped(tmp_path / "x.npz", {"x": NUMBERS}), change)
    with contextlib.suppress(ol.UnreadableFile):
        assert read(path).shape == (2, 3)  # who made it and such does not matter


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", NUMBERS)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", NUMBERS)
    with pytest.raises(ol.UnreadableFile, match="'x' is in it twice"):
        read(tmp_path / "x.npz")


def test_the_size_by_the_archive_is_believed_only_as_far_as_deflate_reaches(tmp_path: Path) -> None:
    """An entry and a header that agree on eight gigabytes, of which a few bytes are there."""
    path = zipped(tmp_path / "x.npz", {"x": header(described("'<f8'", f"({2**28},)")) + bytes(48)})
    edited(path, put(24, "<I", 8 * 2**28 + len(header(described("'<f8'", f"({2**28},)")))))
    with pytest.raises(ol.UnreadableFile, match=r"'x' cannot unpack to 2147483\d\d\d bytes, having \d\d\d?\)"):
        read(path)


def test_more_than_half_of_the_memory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldlight.machine.default_limit", lambda: 1000)
    path = zipped(tmp_path / "x.npz", {"x": npy(np.zeros(100)), "y": npy(np.zeros(100))})
    with files.arrays_in(path) as held:
        assert held.array("x", "f").shape == (100,)
        with pytest.raises(ValueError, match="'y' unpacks to 800 B"):
            held.array("y", "f")


@pytest.mark.parametrize(
    "error", [EOFError(), MemoryError(), RecursionError(), struct.error("x"), zipfile.BadZipFile("x")]
)
def test_whatever_a_library_raises_becomes_the_one_refusal(error: Exception) -> None:
    with (
        pytest.raises(
            ol.UnreadableFile, match=r"^plan\.npz: damaged, or not a file of this package \(.+\); make it again"
        ),
        files.reading("plan.npz"),
    ):
        raise error
    with pytest.raises(KeyboardInterrupt), files.reading("plan.npz"):
        raise KeyboardInterrupt


# -- memory -----------------------------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
import numpy as np
import oldlight as ol
from oldlight import files, control as controller, learners, registry as words
from oldlight.model import policies
loads = {"process": ol.TabularMDP.load, "policy": ol.load_policy, "controller": ol.Controller.load,
         "run": ol.LearningRun.load, "channel": lambda path: words.channel_of("file:" + path)}
for kind, path in zip(sys.argv[1::2], sys.argv[2::2]):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        loads[kind](path); print("read")
    except ol.UnreadableFile:
        print("refused")
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
PIECE = 2**22
BOMB = 75 * PIECE  # 300 MiB: what the imports took at their peak, some 90 MiB, hides that much of it


def measured(*files: tuple[str, Path]) -> list[tuple[str, int]]:
    """What became of each, and how many MiB it took; one process reads them all."""
    words = [str(word) for pair in files for word in pair]
    said = subprocess.run(
        [sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True, timeout=120
    )
    told = said.stdout.split()
    return list(zip(told[::2], map(int, told[1::2]), strict=True))


def with_a_bomb(good: Path, target: Path, name: str, size: int, *, packed: int | None = None) -> Path:
    """The archive with one member (more, or instead) that unpacks to `size` zeros; packed: how well, 1 is the quickest."""
    with zipfile.ZipFile(good) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=packed) as archive:
        for member, data in members.items():
            if member != f"{name}.npy":
                archive.writestr(member, data)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
            stream.write(header(described("'|i1'", f"({size},)")))
            assert size % PIECE == 0  # or its header would promise more than there is, which is refused for that alone
            for _ in range(size // PIECE):
                stream.write(bytes(PIECE))
    return target


def test_what_is_not_needed_or_of_the_wrong_shape_or_too_many_takes_no_memory(tmp_path: Path) -> None:
    """A member that nobody needs: the plan is read all the same; before, 300 kB took 300 MB. A needed member of the wrong shape, and a directory
    of a million members: refused."""
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(1))
    plan = ol.solve(problem).policy.save(tmp_path / "plan.npz")
    bomb = with_a_bomb(plan, tmp_path / "bomb.npz", "nobody needs this", BOMB)
    assert bomb.stat().st_size < 2**20
    problem.mdp.save(tmp_path / "chain")
    with_a_bomb(tmp_path / "chain.npz", tmp_path / "other.npz", "rewards", BOMB, packed=1)
    os.replace(tmp_path / "other.npz", tmp_path / "chain.npz")
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0)
    directory = b"".join(entry + b"%05x" % number for number in range(2**20 - 1))
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), 0, 0)
    (tmp_path / "many.npz").write_bytes(directory + end)
    found = measured(("policy", bomb), ("process", tmp_path / "chain.toml"), ("policy", tmp_path / "many.npz"))
    assert [what for what, _ in found] == ["read", "refused", "refused"]
    assert max(grown for _, grown in found) < 60


# -- texts and paths --------------------------------------------------------------------------------------------------


def test_texts_that_are_nested_deeply_are_refused(tmp_path: Path) -> None:
    deep = {
        "lists": "[" * DEEP,
        "closed lists": "[" * DEEP + "]" * DEEP,
        "tables": '{"a":' * DEEP,
        "a little too deep": "[" * 51 + "]" * 51,
        "channels": '{"kind":"capped","max_delay":1,"channel":' * 300 + '{"kind":"constant","d":1}' + "}" * 300,
    }
    for text in deep.values():
        with pytest.raises(ValueError, match="nested more than 50 deep"):
            files.json_of(text)
        (tmp_path / "link.json").write_text(text)
        with pytest.raises(
            ol.UnreadableFile, match=r"link\.json: damaged, or not a channel file in JSON \(nested more"
        ):
            channel_of(f"file:{tmp_path / 'link.json'}")
    assert files.json_of("[" * 50 + "]" * 50)
    for text in ("a = " + "[" * DEEP, "a = " + "{a=" * DEEP, "a" + ".a" * 3000 + " = 1", f"[{'.'.join('a' * 3000)}]"):
        (tmp_path / "study.toml").write_text(text)
        for load in (ol.studies.load_study, ol.TabularMDP.load):
            with pytest.raises(ol.UnreadableFile, match=r"study\.toml: damaged, or not a .* in TOML \(nested more"):
                load(tmp_path / "study.toml")


def test_a_channel_file_names_neither_code_nor_other_files(tmp_path: Path) -> None:
    file = tmp_path / "link.json"
    texts = [f"file:{file}", "constant:1", "os:getcwd", f"trace:{file}"]
    for text in texts:
        for data in (
            text,
            {"kind": "capped", "channel": text, "max_delay": 1},
            {"kind": "lossy", "delay": text, "rate": 0.1},
        ):
            file.write_text(json.dumps(data))
            with pytest.raises(ol.UnreadableFile, match="expected data such as"):
                channel_of(f"file:{file}")


@pytest.mark.parametrize(
    "way", ["/dev/zero", "../chain.npz", "sub/../../chain.npz", "link", "sub/link", "\0", "x" * 300, "pipe"]
)
def test_a_process_file_stays_in_its_folder(way: str, tmp_path: Path) -> None:
    mdp = ol.instances.sensing_chain(0.8)
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    mdp.save(tmp_path / "chain")
    mdp.save(home / "sub" / "chain")
    (home / "link").symlink_to("/dev/zero")
    (home / "sub" / "link").symlink_to(tmp_path / "chain.npz")
    os.mkfifo(home / "pipe")
    text = (tmp_path / "chain.toml").read_text()

    def naming(name: str) -> Path:
        (home / "chain.toml").write_text(text.replace('"chain.npz"', json.dumps(name)))
        return home / "chain.toml"

    assert ol.TabularMDP.load(naming("sub/chain.npz")) == mdp
    with pytest.raises(
        ol.UnreadableFile, match=r"leads out of its folder|null (byte|character)|name too long|a regular file"
    ):
        ol.TabularMDP.load(naming(way))


def test_what_is_not_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        for load in (ol.load_policy, ol.Controller.load, ol.LearningRun.load, ol.studies.load_study):
            with pytest.raises(ol.UnreadableFile, match="expected a regular file"):
                load(path)


def test_texts_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_TEXT", 1000)
    (tmp_path / "link.json").write_text(" " * 1001)
    with pytest.raises(ol.UnreadableFile, match=r"it has more than 1000 B"):
        channel_of(f"file:{tmp_path / 'link.json'}")


def test_an_early_end_does_not_look_like_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy whose npy header ends early; and any other end of something, whoever meets it."""
    from oldlight import registry
    from oldlight.cli import main

    def end(*given: Any) -> Any:
        raise EOFError("the pipe ended")

    def said(*words: str) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["oldlight", *words])
        with pytest.raises(SystemExit) as ended, warnings.catch_warnings():
            main()
        return ended.value.code, capsys.readouterr().err

    zipped(tmp_path / "plan.npz", {"kind": b"\x93NUMPY\x01"}, zipfile.ZIP_STORED)
    code, words = said("simulate", "sensing_chain", "--policy", str(tmp_path / "plan.npz"))
    assert code in (1, 2)
    assert "plan.npz" in words
    assert "Interrupted" not in words
    monkeypatch.setattr(registry, "mdp_of", end)
    code, words = said("gap", "sensing_chain")
    assert code == 1, words
    assert "Error: the pipe ended" in words
    assert "Interrupted" not in words
