"""Files of every kind, damaged at random: each is either read or refused by name, and nothing else happens.

Two kinds of damage: bytes (of the archive or the text, where a checksum or a parser meets most of it), and members of an archive that is
written anew (right by every checksum, wrong in type, shape or value).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.registry import channel_data, channel_of
from repeats import is_thorough, repeats

SPARSE = ol.TabularMDP(
    {"s": [0, 0, 1], "a": [0, 0, 0], "s2": [0, 1, 0], "p": [0.5, 0.5, 1.0]}, np.eye(2)[:, :1], horizon=4
)
LATE = ol.ImpairedMDP(ol.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=4), ol.ConstantDelay(1))
LOSSY = ol.ImpairedMDP(LATE.mdp, ol.Lossy(ol.ConstantDelay(1), rate=0.2))
JITTER = ol.ImpairedMDP(LATE.mdp.replace(initial=[0.7, 0.3]), ol.PacketChannel({0: 0.5, 1: 0.5}, lost=0.2))
PACKETS = ol.ImpairedMDP(LATE.mdp, "packets:0=.5,1=.3,2=.2+loss:0.4")
EPISODES = 5


def act(controller: ol.Controller) -> None:
    """Whatever was read must work."""
    past = (0,) * controller.tables.warmup
    controller.reset(past)
    for h in range(min(controller.tables.horizon, 20)):
        controller.tick(h)
        controller.act()


def use(policy: Any) -> None:
    if isinstance(policy, ol.TablePolicy):
        for h in range(policy.layout.horizon):
            for block in policy.layout.blocks(h):
                info = ol.Information.seen(h - block.m, 0, (0,) * block.m, block.waited)
                assert policy.probabilities(info).shape == (policy.layout.n_actions,)
    elif hasattr(policy, "automaton"):
        for _, n, age in policy.automaton.row(-1):
            seen = age >= 0
            info = ol.LinkInformation(0, policy.automaton.nodes[n], 0 if seen else None, 0 if seen else None, ())
            assert policy.probabilities(info).shape == (policy.n_actions,)
    elif policy.sequences.size:
        policy.action(ol.Information.nothing_seen(()))


def learner_of(kind: str) -> Any:
    return getattr(ol.learners, kind)()


def go_on(kind: str, problem: ol.ImpairedMDP, path: Path) -> None:
    ol.learn(
        problem, learner_of(kind), EPISODES, seed=0, best=1.0, checkpoint=path, checkpoint_every=1e9, progress=False
    )


def checkpoint(kind: str, problem: ol.ImpairedMDP, path: Path) -> Path:
    go_on(kind, problem, path)
    return path


def stochastic(path: Path) -> Path:
    table = ol.solve(LATE).policy
    assert isinstance(table, ol.TablePolicy)
    assert table.actions is not None
    return ol.TablePolicy(table.layout, action_probabilities=np.eye(2)[table.actions]).save(path)


def a_run(path: Path) -> Path:
    return ol.learn(
        LATE, ol.learners.PosteriorSampling(), EPISODES, seed=0, best=1.0, by_start=True, progress=False
    ).save(path)


Make, Load = Callable[[Path], Path], Callable[[Path], Any]
ARCHIVES: dict[str, tuple[Make, Load]] = {
    "process": (lambda path: LATE.mdp.save(path).with_suffix(".npz"), ol.TabularMDP.load),
    "sparse process": (lambda path: SPARSE.save(path).with_suffix(".npz"), ol.TabularMDP.load),
    "table": (lambda path: ol.solve(LATE).policy.save(path), lambda path: use(ol.load_policy(path))),
    "chances": (stochastic, lambda path: use(ol.load_policy(path))),
    "sequences": (lambda path: ol.solve(LOSSY).policy.save(path), lambda path: use(ol.load_policy(path))),
    "plan of a link": (lambda path: ol.solve(JITTER).policy.save(path), lambda path: use(ol.load_policy(path))),
    "controller": (
        lambda path: ol.Controller(LATE, ol.solve(LATE).policy).save(path),
        lambda path: act(ol.Controller.load(path)),
    ),
    "controller behind loss": (
        lambda path: ol.Controller(LOSSY, ol.solve(LOSSY).policy).save(path),
        lambda path: act(ol.Controller.load(path)),
    ),
    "controller of nodes": (
        lambda path: ol.Controller(PACKETS, ol.solve(PACKETS).policy).save(path),
        lambda path: act(ol.Controller.load(path)),
    ),
    "run": (a_run, lambda path: repr(ol.LearningRun.load(path))),
    "checkpoint": (
        lambda path: checkpoint("PosteriorSampling", LATE, path),
        lambda path: go_on("PosteriorSampling", LATE, path),
    ),
}


def loaded(load: Load, path: Path) -> bool:
    """Was it read? Anything but the one refusal comes through."""
    said = ""
    try:
        load(path)
    except ol.UnreadableFile as error:
        said = str(error)
    assert not said or path.stem in said
    assert len(said) < 1000
    return not said


def damaged(good: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, cut out, doubled, or the end cut off."""
    data = bytearray(good)
    at = int(rng.integers(len(data)))
    match int(rng.integers(5)):
        case 0:
            data[at] ^= 1 << int(rng.integers(8))
        case 1:
            for i in rng.integers(0, len(data), 8).tolist():
                data[i] = int(rng.integers(256))
        case 2:
            del data[at : at + int(rng.integers(1, 20))]
        case 3:
            data[at:at] = data[at : at + int(rng.integers(1, 20))]
        case _:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_with_damaged_bytes(kind: str, tmp_path: Path) -> None:
    make, load = ARCHIVES[kind]
    path = make(tmp_path / "file.npz")
    assert loaded(load, path)
    packed = path.read_bytes()
    with np.load(path) as data:
        np.savez(tmp_path / "plain.npz", **{name: data[name] for name in data.files})
    plain = (tmp_path / "plain.npz").read_bytes()
    rng = np.random.default_rng(1)
    read = 0
    tries = repeats(24, 120)
    for number in range(tries):
        path.write_bytes(damaged(packed if number % 2 else plain, rng))
        read += loaded(load, path)
    assert read < tries / 2  # a byte that does not matter: a date in the directory


def others(array: np.ndarray[Any, Any], rng: np.random.Generator) -> Iterator[Any]:
    """What may stand where this array stood."""
    whole = array.dtype.kind in "iu"
    yield array.astype(object)
    yield np.asfortranarray(array)
    yield array.astype(array.dtype.newbyteorder(">"))
    yield np.zeros(array.shape, dtype=[("a", "f8")])
    yield array.reshape(-1)[:-1]
    yield array.reshape((1, *array.shape))
    yield np.zeros((0,) * array.ndim, dtype=array.dtype)
    yield np.zeros(array.shape, dtype="f4" if whole else "i8")
    yield np.zeros(array.shape, dtype="?")
    yield np.array("[" * 100_000)
    yield np.array('{"done": 1e999, "episodes": -1}')
    yield np.array("")
    for value in (-1, -(2**40), 2**31, 2**62, 2**63 - 1) if whole else (np.nan, np.inf, -1e308, 1e308, -1.0):
        if array.dtype.kind in "iuf" and array.size:
            changed = array.astype("i8" if whole else "f8")
            changed.reshape(-1)[int(rng.integers(array.size))] = value
            yield changed
            yield np.full(array.shape, value)


def some(found: list[Any], place: int) -> list[Any]:
    """Every third one, those that the two members before did not get; all of them if thorough."""
    return found if is_thorough() else found[place % 3 :: 3]


@pytest.mark.parametrize("kind", [kind for kind in ARCHIVES if kind != "checkpoint"])
def test_archives_with_members_that_are_something_else(kind: str, tmp_path: Path) -> None:
    make, load = ARCHIVES[kind]
    path = make(tmp_path / "file.npz")
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    rng = np.random.default_rng(2)
    refused = 0
    for place, name in enumerate(arrays):
        for other in some([None, *others(arrays[name], rng)], place):
            changed = {key: value for key, value in (arrays | {name: other}).items() if value is not None}
            np.savez(path, **changed)
            refused += not loaded(load, path)
    assert refused > (5 if is_thorough() else 5 / 3) * len(arrays)


def test_checkpoints_with_members_that_are_something_else(tmp_path: Path) -> None:
    """What the run itself holds; the learner's own numbers are trusted once they fit."""
    path = checkpoint("PosteriorSampling", LATE, tmp_path / "file.npz")
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    rng = np.random.default_rng(3)
    for place, name in enumerate(arrays):
        for other in some([None, *others(arrays[name], rng)], place):
            if (
                name.startswith("learner.")
                and other is not None
                and other.dtype.kind in "iuf"
                and other.shape == arrays[name].shape
            ):
                continue
            np.savez(path, **{key: value for key, value in (arrays | {name: other}).items() if value is not None})
            loaded(lambda path: go_on("PosteriorSampling", LATE, path), path)


def in_words(load: Load) -> Load:
    """A text may also be refused for what it says: a ValueError which names the file, or the file that it names is not there."""

    def tried(path: Path) -> None:
        said = path.stem
        try:
            load(path)
        except ol.UnreadableFile:
            raise
        except (ValueError, TypeError, FileNotFoundError) as error:
            said = str(error)
        assert path.stem in said or "no such file" in said

    return tried


STUDY = """name = "small"
seed = 1
instances = ["sensing_chain:0.8", {name = "center_chain", p = 0.99, label = "Env1"}]
channels = ["constant:1", {kind = "loss", rate = 0.2, label = "20% lost"}]
tasks = ["gap"]
"""
CHANNELS = [ol.Lossy(ol.StochasticDelay([0.5, 0.5]).capped(2), rate=0.1), ol.EmpiricalDelay(delays={1: 0.5, 3: 0.5})]
TEXTS: dict[str, tuple[Make, Load]] = {
    "process": (lambda path: LATE.mdp.save(path).with_suffix(".toml"), in_words(ol.TabularMDP.load)),
    "study": (lambda path: _write(path.with_suffix(".toml"), STUDY), in_words(ol.studies.load_study)),
    **{
        f"channel {number}": (
            lambda path, channel=channel: _write(path.with_suffix(".json"), json.dumps(channel_data(channel))),
            lambda path: channel_of(f"file:{path}"),
        )
        for number, channel in enumerate(CHANNELS)
    },
}


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_with_damaged_bytes(kind: str, tmp_path: Path) -> None:
    make, load = TEXTS[kind]
    path = make(tmp_path / "file")
    assert loaded(load, path)
    good = path.read_bytes()
    rng = np.random.default_rng(4)
    for _ in range(repeats(30, 150)):
        path.write_bytes(damaged(good, rng))
        loaded(load, path)


ODD = [
    "1e999",
    "-1",
    "NaN",
    "1" + "0" * 400,
    "1" + "0" * 5000,
    "null",
    "true",
    '""',
    "[]",
    "{}",
    "[[1]]",
    '"x"',
    "0.5",
    "10000000000000000",
]


@pytest.mark.parametrize("kind", ["channel 0", "channel 1"])
def test_channel_files_with_odd_values(kind: str, tmp_path: Path) -> None:
    make, load = TEXTS[kind]
    path = make(tmp_path / "file")
    good = json.loads(path.read_text())

    def places(value: Any) -> Iterator[tuple[Any, Any]]:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            if isinstance(value[key], dict | list):
                yield from places(value[key])

    read = []
    for holder, key in list(places(good)):
        kept = holder[key]
        for odd in ODD:
            holder[key] = "@"
            path.write_text(json.dumps(good).replace('"@"', odd))
            read.append(loaded(load, path))
        holder[key] = kept
    path.write_text(json.dumps(good))
    assert loaded(load, path)
    assert read.count(False) > read.count(True)  # few places take an odd value


def test_channel_files_of_every_kind_with_odd_values(tmp_path: Path) -> None:
    path, load = tmp_path / "file.json", TEXTS["channel 0"][1]
    for kind in ("constant", "geometric", "heavy", "bernoulli", "stochastic", "empirical", "loss", "bursty"):
        for key in (
            "d",
            "p",
            "alpha",
            "p_zero",
            "steps",
            "interarrival",
            "delays",
            "seen",
            "rate",
            "to_bad",
            "period_ms",
        ):
            for odd in ODD:
                path.write_text(f'{{"kind": "{kind}", "{key}": {odd}}}')
                loaded(load, path)
    path.write_text('{"kind": "empirical", "delays": {"1000000000000": 1}}')
    assert not loaded(load, path)


@pytest.mark.parametrize("text", ["sent_ms,received_ms\n1,2\n2,3\n9,\n", "seq,delay_ms\n1,2\n3,4\n",
    "PING x\n64 bytes from y: icmp_seq=1 ttl=1 time=1.5 ms\n64 bytes from y: icmp_seq=2 ttl=1 time=1.5 ms\n"
    "3 packets transmitted, 2 received, 33% packet loss, time 2003ms\n"])  # fmt: skip
def test_traces_with_damaged_bytes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    rng = np.random.default_rng(5)
    odd = [text.replace("1", digits) for digits in ("9" * 30, "9" * 400, "9" * 5000, "1e30", "1e300", "nan", "-1")]
    read, tried = 0, [*map(str.encode, odd), *(damaged(text.encode(), rng) for _ in range(repeats(70, 200)))]
    for data in tried:
        path.write_bytes(data)
        read += loaded(in_words(ol.read_trace), path)  # read or refused by name: whatever else is raised fails here
    assert 0 < read < len(tried)


def test_tables_in_csv_with_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    text = "s,a,s',p,r\n0,0,1,1,0\n1,0,0,0.5,1\n1,0,1,0.5,2\n"
    rng = np.random.default_rng(6)
    long = text.replace("0,0,1,1,0", f'"{"x" * 200_000}",0,1,1,0')  # longer than the csv module reads
    read = 0
    for data in (long.encode(), b"\0" + text.encode(), *(damaged(text.encode(), rng) for _ in range(repeats(50, 150)))):
        path.write_bytes(data)
        read += loaded(in_words(lambda path: ol.TabularMDP.from_csv(path, horizon=3)), path)  # or refused by name
    assert 0 < read < repeats(50, 150)


def test_a_bomb_of_each_member(tmp_path: Path) -> None:
    """Members of one shape in the header and another in the archive, for each member of each kind."""
    for number, (make, load) in enumerate(ARCHIVES.values()):
        path = make(tmp_path / f"file{number}.npz")
        with zipfile.ZipFile(path) as archive:
            members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        for name in members:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for other, data in members.items():
                    archive.writestr(other, data + bytes(100_000) if other == name else data)
            assert not loaded(load, path), name
