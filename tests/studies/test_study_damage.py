"""Studies with damaged files, failing jobs and dying workers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from oldlight.studies import numbers, results, run_study, status, store
from oldlight.studies.result import Damaged, unpack
from oldlight.studies.work import PackedJob, RunSettings, perform
from study_cases import small_study

# -- damage ------------------------------------------------------------------------------------------------------------


def flipped(data: bytes, where: int) -> bytes:
    return data[:where] + bytes([data[where] ^ 1]) + data[where + 1 :]


def test_damaged_files_are_named_moved_aside_and_computed_again(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "runs"
    run_study(small_study(), folder, progress=False)
    before = numbers(folder)
    files = sorted((folder / "cells").glob("*.parquet"))
    whole = [path.read_bytes() for path in files]
    files[0].write_bytes(whole[0][:-20])  # cut off
    files[1].write_bytes(flipped(whole[1], whole[1].index(b'"scalars"') - 3))  # one bit of the settings
    files[2].write_bytes(b"")
    files[3].write_bytes(whole[4])  # another job's file under this name
    state = status(folder)
    assert set(state.damaged) == {str(path) for path in files[:4]}
    assert (state.done, state.waiting) == (2, 4)
    with pytest.warns(UserWarning, match="damaged .* it is left out"):
        assert len(list(results(folder))) == 2
    with pytest.warns(UserWarning, match="computed again") as told:
        again = run_study(small_study(), folder, progress=False)
    for path in files[:4]:
        assert any(str(path) in str(w.message) and "computed again" in str(w.message) for w in told)
        assert path.with_name(path.name + ".damaged").exists()
    assert again.complete
    assert not again.damaged
    assert numbers(folder) == before
    assert [p.read_bytes() for p in files[4:]] == whole[4:]


def test_one_flipped_bit_anywhere_is_noticed_or_does_not_matter(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "runs"
    run_study(small_study(tasks=None, channels=["constant:1"], seeds=1), folder, progress=False)
    (path,) = (folder / "cells").glob("*.parquet")
    whole, sound = path.read_bytes(), unpack(path)
    rng = np.random.default_rng(0)
    noticed = 0
    for where in rng.integers(0, len(whole), 300).tolist():
        path.write_bytes(flipped(whole, where))
        try:
            found = unpack(path)
        except Damaged:
            noticed += 1
            continue
        assert found.numbers == sound.numbers  # in a part of the format that holds nothing of ours
        assert found.settings == sound.settings
        assert all(np.array_equal(found.columns[k], v, equal_nan=True) for k, v in sound.columns.items())
    assert noticed > 150


def test_a_checkpoint_that_cannot_be_continued_is_named_and_the_cell_starts_over(tmp_path: Path, inline: None) -> None:
    study = small_study(learners=["PosteriorSampling"], tasks=None, channels=["constant:1"], seeds=1)
    run_study(study, tmp_path / "clean", progress=False)
    folder = tmp_path / "runs"
    store.prepare(folder)
    checkpoint = store.checkpoint_file(folder, study.jobs()[0].id)
    checkpoint.write_bytes(b"no checkpoint")
    with pytest.warns(UserWarning, match="cannot be continued .* the job starts over"):
        run_study(study, folder, progress=False)
    assert numbers(folder) == numbers(tmp_path / "clean")
    assert checkpoint.with_name(checkpoint.name + ".damaged").exists()
    assert not checkpoint.exists()


def test_another_version_does_not_go_on_with_a_checkpoint_and_mixing_versions_warns(
    tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    now = ol.__version__
    monkeypatch.setattr(ol, "__version__", "0.0.9")
    before = store.checkpoint_file(folder, "x")
    run_study(small_study(tasks=None), folder, progress=False)
    monkeypatch.setattr(ol, "__version__", now)
    assert store.checkpoint_file(folder, "x") != before
    with pytest.warns(
        UserWarning, match=r"of 4 finished jobs 4 by oldlight 0\.0\.9, and this is .*: the results mix versions"
    ):
        state = run_study(small_study(), folder, progress=False)
    assert state.versions == {"0.0.9": 4, now: 2}
    assert f"from versions 0.0.9, {now}" in str(state)


def test_a_worker_of_another_version_says_so(tmp_path: Path) -> None:
    job = small_study().jobs()[0]
    event = perform(PackedJob.of(job), RunSettings(None, 1.0, "9.9"))
    assert event.kind == "failed"
    assert "the study was started with 9.9; install the same version everywhere" in event.error


# -- failures ----------------------------------------------------------------------------------------------------------


def test_failed_jobs_are_recorded_and_retried_on_request_while_others_go_on(own: Path, inline: None) -> None:
    there = own / "there"
    study = small_study(learners=["UniformRandom"], tasks=[{"name": "heron:fails_without", "path": str(there), "label": "sometimes"}],
                        channels=["constant:1"])  # fmt: skip
    folder = own / "runs"
    state = run_study(study, folder, progress=False)
    assert (state.done, len(state.failed), state.waiting) == (2, 2, 0)
    failure = state.failed[0]
    assert failure.error.startswith("ValueError: no ")
    assert "in fails_without" in failure.traceback
    assert failure.name == "sometimes on small behind constant:1, replicate 0"
    assert json.loads(Path(failure.file).read_text())["version"] == ol.__version__
    assert "2 of 4 jobs done, 2 failed" in str(state)

    there.touch()
    assert len(run_study(study, folder, progress=False).failed) == 2  # only on request
    state = run_study(study, folder, retry_failed=True, progress=False)
    assert state.complete
    assert not list((folder / "failed").iterdir())


def test_a_worker_that_dies_fails_its_job_and_the_others_go_on(own: Path) -> None:
    tasks = [{"name": "heron:dies", "how": how, "label": how} for how in ("killed", "lives", "exits")]
    study = small_study(learners=["UniformRandom"], tasks=tasks, channels=[{"name": "heron:Late", "d": 1}])
    state = run_study(study, own / "runs", workers=1, progress=False)
    assert state.done == 3
    errors = {failure.name.partition(" ")[0]: failure.error for failure in state.failed}
    assert errors.keys() == {"killed", "exits"}
    assert "killed by signal 9 (SIGKILL); was it out of memory?" in errors["killed"]
    assert "exit code 3" in errors["exits"]


# -- study.json ---------------------------------------------------------------------------------------------------------


JOB = {"id": "ab12", "block": "b", "instance": "i", "channel": "c", "kind": "task", "label": "l", "replicate": 0, "episodes": 0}  # fmt: skip
STUDY = {"name": "s", "file": None, "blocks": [{"name": "b"}], "code": []}
DAMAGED = "is not a folder of results: its study.json is damaged; run the study again, what is finished stays"
OTHER_FORMAT = "its study.json is of format {}, this oldlight reads format 1; use the version that wrote it, or run the study into another folder"
WRONG = 'is not a folder of results: "{}" in its study.json is not as it was written; run the study again, what is finished stays'
SHAPES = [
    *((text, DAMAGED) for text in ("", "[]", "3", '"s"', "null", '{"format": 1', "[" * 100_000)),
    ({}, OTHER_FORMAT.format(None)),
    ({"format": 2, "study": STUDY, "cells": [JOB]}, OTHER_FORMAT.format(2)),
    *(
        ({"format": 1, "study": study, "cells": [JOB]}, WRONG.format("study"))
        for study in (None, [], {}, STUDY | {"name": 3}, STUDY | {"file": 3}, STUDY | {"blocks": None}, STUDY | {"blocks": [{}]}, STUDY | {"code": 3})
    ),
    *(
        ({"format": 1, "study": STUDY, "cells": cells}, WRONG.format("cells"))
        for cells in (None, 3, {}, [3], [{}], [JOB | {"id": "../../elsewhere"}], [JOB, JOB | {"label": 3}], [JOB | {"replicate": "0"}])
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_a_study_json_of_the_wrong_shape_names_the_folder_and_the_way_out(
    tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from oldlight.cli import main

    content, said = SHAPES[number]
    (tmp_path / "study.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError) as refused:
        status(tmp_path)
    assert str(refused.value).startswith(str(tmp_path))
    assert str(refused.value).endswith(said)
    for command in ("status", "report"):
        monkeypatch.setattr("sys.argv", ["oldlight", command, str(tmp_path)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_a_right_study_json_is_read_whatever_else_lies_around(tmp_path: Path) -> None:
    store.prepare(tmp_path)
    (tmp_path / "study.json").write_text(json.dumps({"format": 1, "study": STUDY, "cells": [JOB]}))
    assert (status(tmp_path).waiting, status(tmp_path).failed) == (1, ())
    for record in ("[]", "{}", '{"error": 3, "traceback": "", "when": ""}'):
        store.failed_file(tmp_path, "ab12").write_text(record)
        [failed] = status(tmp_path).failed
        assert failed.error == "its record is damaged"


@pytest.mark.parametrize("content", ["[]", '{"cells": 3}', '{"cells": [3, {}, {"id": 3}, {"id": "ab12"}]}'])
def test_a_damaged_note_of_what_runs_is_passed_over(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.prepare(tmp_path)
    (tmp_path / "study.json").write_text(json.dumps({"format": 1, "study": STUDY, "cells": [JOB]}))
    monkeypatch.setattr(sys.modules["oldlight.studies.status"], "somebody_at_work", lambda place: True)
    (tmp_path / "running" / "running.json").write_text(content)
    assert (status(tmp_path).waiting, status(tmp_path).running) == (1, ())
