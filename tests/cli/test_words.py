"""Channels, processes and learners in words: what is said is what is made, both ways; what is misspelt is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oldlight as ol
from oldlight.model.channels.link_text import LINK_KINDS
from oldlight.registry import KINDS, channel_data, channel_of, learner_names, learner_of, mdp_of

SPOKEN = {
    "none": ol.ConstantDelay(0),
    "constant:2": ol.ConstantDelay(2),
    "geometric:0.3": ol.GeometricDelay(0.3),
    "geometric:0.3+cap:4": ol.GeometricDelay(0.3).capped(4),
    "constant:7+cap:4": ol.ConstantDelay(4),
    "heavy:1.5": ol.HeavyTailedDelay(1.5),
    "heavy:1.5,2": ol.HeavyTailedDelay(1.5, 2.0),
    "bernoulli:0.7": ol.BernoulliDelay(0.7),
    "bernoulli:0.7,5": ol.BernoulliDelay(0.7, 5),
    "stochastic:0.7,0.3": ol.StochasticDelay([0.7, 0.3]),
    "delays:1=0.3,2=0.7": ol.EmpiricalDelay({1: 0.3, 2: 0.7}),
    "interarrival:0=3,2=1": ol.EmpiricalDelay(interarrival=[0, 0, 0, 2]),
    "loss:0.25": ol.Loss(seen=0.75),
    "seen:0.75": ol.Loss(rate=0.25),
    "loss:0.25,0.5": ol.Loss(rate=[0.25, 0.5]),
    "bursty:0.1,0.5": ol.BurstyLoss(0.1, 0.5),
    "bursty:0.1,0.5,0.9,0.2": ol.BurstyLoss(0.1, 0.5, 0.9, 0.2),
    "constant:2+loss:0.25": ol.Lossy(ol.ConstantDelay(2), rate=0.25),
    " loss:0.25 + constant:2 ": ol.Lossy(ol.ConstantDelay(2), rate=0.25),
    "geometric:0.5+cap:3+bursty:0.1,0.5": ol.Lossy(ol.GeometricDelay(0.5).capped(3), loss=ol.BurstyLoss(0.1, 0.5)),
}
MORE = [
    ol.GeometricDelay(0.5, first="same"),
    ol.GeometricDelay(0.5, first=[0.5, 0.5]),
    ol.StochasticDelay([[[0.5, 0.5]], [[1.0, 0.0]]], first=[0.25, 0.75]),
    ol.EmpiricalDelay([1, 2, 2], interarrival={0: 2, 1: 1}),
    ol.ConstantDelay(3).with_period(20.0),
]


@pytest.mark.parametrize("words", SPOKEN)
def test_words_make_the_channel(words: str) -> None:
    assert channel_of(words) == SPOKEN[words]


@pytest.mark.parametrize("channel", [*SPOKEN.values(), *MORE], ids=repr)
def test_data_goes_round_through_json(channel: ol.DelayChannel) -> None:
    again = channel_of(json.loads(json.dumps(channel_data(channel))))
    assert again == channel
    assert again.period_ms == channel.period_ms
    assert channel_data(again) == channel_data(channel)


def test_a_channel_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mylink.py").write_text(
        "import oldlight as ol\n@ol.registered\ndef Slow():\n    return ol.ConstantDelay(4)\n@ol.registered\ndef No():\n    return {}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert channel_of("mylink:Slow") == ol.ConstantDelay(4)
    assert channel_of("mylink:Slow+loss:0.5") == ol.Lossy(ol.ConstantDelay(4), rate=0.5)
    for wrong, expected in ((channel_of, "a channel"), (mdp_of, "a TabularMDP")):
        with pytest.raises(TypeError, match=f"mylink:No .* something of type dict, expected {expected}"):
            wrong("mylink:No")
    with pytest.raises(TypeError, match=r"mylink:No is not a learner: it has no start\(\)"):
        learner_of("mylink:No")


def test_every_kind_is_written() -> None:
    written = {channel_data(c)["kind"] for c in [*SPOKEN.values(), *MORE]}
    assert written == set(KINDS) - set(LINK_KINDS)  # tests/model/test_link_text.py writes those


def test_a_channel_file(tmp_path: Path) -> None:
    file = tmp_path / "link.json"
    file.write_text(json.dumps(channel_data(MORE[3])))
    assert channel_of(f"file:{file}") == MORE[3]
    assert channel_of(f"file:{file}+loss:0.5") == ol.Lossy(MORE[3], rate=0.5)
    file.write_text("{")
    with pytest.raises(ValueError, match=r"link\.json: damaged, or not a channel file"):
        channel_of(f"file:{file}")
    with pytest.raises(FileNotFoundError, match="no such channel file"):
        channel_of("file:nowhere.json")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("constnt:2", "did you mean constant"),
        ("constant", "constant is written constant:d"),
        ("constant:x", "'x' is not a number"),
        ("constant:-1", "whole number ≥ 0"),
        ("constant:1,2", "constant has 2 numbers"),
        ("none:3", "none is written none"),
        ("constant:1+geometric:0.5", "two delays"),
        ("loss:0.1+seen:0.5", "two losses"),
        ("cap:2", "shortens the delay before it"),
        ("bursty:0.1", "bursty has 1 numbers"),
        ("delays:1,2", "'1' has no weight"),
        ("loss:1.5", r"rate is 1.5, expected a number in \[0, 1\]"),
        ("", "unknown kind ''"),
    ],
)
def test_what_cannot_be_said(words: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        channel_of(words)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"kind": "constat", "d": 1}, "did you mean constant"),
        ({"d": 1}, "kind = None"),
        ({"kind": ["x"]}, "kind = "),
        ({"kind": "empirical", "delays": {"a": 1}}, "'a' is not a number"),
        ({"kind": "constant", "delay": 1}, "unknown key 'delay'; did you mean|unknown key 'delay'; there is d"),
        ({"kind": "constant"}, "missing 1 required"),
    ],
)
def test_data_that_is_refused(data: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        channel_of(data)


def test_processes(tmp_path: Path) -> None:
    assert mdp_of("sensing_chain:0.9") == ol.instances.sensing_chain(0.9)
    assert mdp_of({"name": "center_chain", "p": 0.8, "horizon": 5}) == ol.instances.center_chain(0.8, horizon=5)
    assert mdp_of("sensing_chain:0.9,horizon=4,n_states=6") == ol.instances.sensing_chain(0.9, horizon=4, n_states=6)
    assert mdp_of("dichotomy:2,5") == ol.instances.dichotomy(2, 5)
    assert mdp_of("gym:FrozenLake-v1@20") == ol.TabularMDP.from_gymnasium("FrozenLake-v1", 20)
    assert mdp_of("oldlight.instances:forest") == ol.instances.forest()
    saved = mdp_of("forest").save(tmp_path / "wood")
    assert mdp_of(str(saved)) == ol.instances.forest()
    for words, says in {
        "sensing_chan": "did you mean sensing_chain",
        "sensing_chain:x": "'x' is not a number",
        "sensing_chian:0.8": "did you mean sensing_chain",
        "dichotomy": "missing a required argument: 'd'",
        "gym:FrozenLake-v1": "expected gym:ID@steps",
        "nomodule:f": "no module 'nomodule'",
        "oldlight.instances:nothing": "has no nothing",
    }.items():
        with pytest.raises(ValueError, match=says):
            mdp_of(words)
    with pytest.raises(ValueError, match="sensing_chain has no option 'horizn'; did you mean horizon"):
        mdp_of({"name": "sensing_chain", "horizn": 4})
    with pytest.raises(TypeError, match="a process is given by name"):
        mdp_of(3)  # type: ignore[arg-type]


def test_learners() -> None:
    for name in learner_names():
        assert type(learner_of(name)) is getattr(ol.learners, name)
    assert learner_of("DelayedUCBVI", pooled=True).pooled
    assert isinstance(learner_of("oldlight.learners:UniformRandom"), ol.learners.UniformRandom)
    with pytest.raises(ValueError, match="did you mean DelayedUCBVI"):
        learner_of("DelayedUCVI")
    with pytest.raises(ValueError, match="did you mean pooled"):
        learner_of("DelayedUCBVI", poled=True)
