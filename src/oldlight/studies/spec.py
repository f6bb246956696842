"""What a study may say: the keys of its file, and errors for people.

    name = "delays"            # what the study is called
    seed = 1                   # the root seed
    seeds = 3                  # replicates: how many seeds of each
    episodes = 4000
    every = 10                 # value the policy of every 10th episode (1: of each; "growing": ever more seldom, see `learn`)
    start = "warm"             # or "cold"
    instances = ["sensing_chain:0.8", {name = "center_chain", p = 0.99, label = "Env1"}]
    channels = ["constant:1", "geometric:0.3", {kind = "loss", rate = 0.2, label = "20% lost"}]
    learners = ["PosteriorSampling", {name = "DelayedUCBVI", planning = "doubling", label = "Algorithm 1"}]
    tasks = ["gap"]

That is one product: instances × channels × (learners and tasks) × seeds. A study that is a union of products has `[[blocks]]`; a
block has the same keys (without seed and checkpoint_every), and what it leaves out it takes from the top. A block that names
learners or tasks takes neither from the top. Further keys: evaluate = "exact" or "sampled", failure (γ), by_start (of `learn`),
actuation and pending (late actions), and checkpoint_every, in seconds.

An instance `env:CartPole-v1` is any Gymnasium environment, for tasks of one's own: they get an `Environment(id, channel)`.

The same keys in Python are a mapping; there an instance may also be a TabularMDP, a channel a channel object, and a learner or
a task a class or function that can be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from oldlight import files
from oldlight.registry import nearest

Positive = Annotated[int, Field(ge=1)]
Many = Annotated[list[Any], Field(min_length=1)]


class BlockSpec(BaseModel):
    """One product. None: as at the top, or the default."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    name: str | None = None
    seeds: Positive | None = None
    episodes: Positive | None = None
    every: Positive | Literal["growing"] | None = None
    evaluate: Literal["exact", "sampled"] | None = None
    by_start: bool | None = None
    failure: Annotated[float, Field(gt=0, lt=1)] | None = None
    start: Literal["cold", "warm"] | None = None
    actuation: Annotated[int, Field(ge=0)] | None = None
    pending: list[int] | None = None
    instances: Many | None = None
    channels: Many | None = None
    learners: Many | None = None
    tasks: Many | None = None


class StudySpec(BlockSpec):
    """The whole study: the keys of a block are what its blocks take from the top, or the one block that there is."""

    name: str
    seed: Annotated[int, Field(ge=0)] = 0
    checkpoint_every: Annotated[float, Field(gt=0)] = 10.0
    blocks: Annotated[list[BlockSpec], Field(min_length=1)] | None = None


DEFAULTS: dict[str, Any] = {
    "seeds": 1,
    "every": 1,
    "evaluate": "exact",
    "by_start": False,
    "failure": 0.1,
    "start": "cold",
    "actuation": 0,
    "channels": ["none"],
}


def read(path: Path) -> dict[str, Any]:
    """The keys of a TOML file."""
    return files.read_toml(path, "study file")


def checked(given: Mapping[str, Any], source: str) -> StudySpec:
    """The keys, validated; all mistakes in one paragraph."""
    try:
        return StudySpec.model_validate(dict(given))
    except ValidationError as error:
        raise ValueError(f"{source}: {'; also '.join(dict.fromkeys(map(_said, error.errors())))}") from None


def _said(error: Any) -> str:
    """One mistake as text: the key, what was found, what is expected."""
    where = located(*error["loc"])
    if error["type"] == "extra_forbidden":
        *outside, key = error["loc"]
        fields = BlockSpec.model_fields if outside else StudySpec.model_fields
        inside = f" in {located(*outside)}" if outside else ""
        return f"unknown key {key!r}{inside}{nearest(str(key), fields)}"
    if error["type"] == "missing":
        return f"{where} is missing"
    found = repr(error["input"])
    expected = error["msg"].replace("Input should be ", "").replace("valid ", "").removeprefix("a ").removeprefix("an ")
    names = {"integer": "a whole number", "number": "a number", "string": "a word", "list": "a list"}
    if error["type"] == "too_short":
        return f"{where} is empty, expected at least one entry"
    if error["type"] == "model_type":
        expected = "a table of keys"
    return f"{where} is {found if len(found) < 60 else found[:57] + '...'}, expected {names.get(expected, expected)}"


def located(*path: str | int) -> str:
    """("blocks", 0, "seeds") as people write it: blocks[0].seeds."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def products(spec: StudySpec) -> list[dict[str, Any]]:
    """Each block with what it takes from the top and the defaults; `where` says of each key where it was written."""
    own = BlockSpec.model_fields.keys()
    top = {key: getattr(spec, key) for key in own if key != "name" and getattr(spec, key) is not None}
    if spec.blocks is None:
        return [DEFAULTS | top | {"name": spec.name, "where": {key: key for key in own}}]
    out = []
    for number, block in enumerate(spec.blocks):
        mine = {key: getattr(block, key) for key in own if getattr(block, key) is not None}
        doing = {"learners", "tasks"}
        above = {key: value for key, value in top.items() if key not in doing or not mine.keys() & doing}
        where = {key: key if key in above and key not in mine else f"blocks[{number}].{key}" for key in own}
        out.append(DEFAULTS | above | {"name": f"block {number + 1}"} | mine | {"where": where})
    return out
