"""What a user sees of record files that are damaged, foreign, old, renamed or of other data: of both kinds the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.evaluation.records.collection import collect
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest
from support.facts import states
from support.records import record as ranking
from support.records import write_records
from support.synthetic_answers import synthetic, write

VALUES = [1.0, 0.0, 1.0, 1.0, 0.0]
Compared = Callable[[Path], list[str]]


@pytest.fixture(params=["ranking", "answers"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def written(kind: str, folder: Path, system: str = "bm25") -> Path:
    """Write a record of a kind, of a system on the dataset Biology, and return its path."""
    if kind == "answers":
        return write(synthetic({"retrieved": VALUES}, system), folder)
    before = {*folder.rglob("*.json")}
    write_records([ranking(system, "Biology", VALUES)], folder)
    [path] = {*folder.rglob("*.json")} - before
    return path


def compared(kind: str, *folders: Path) -> list[str]:
    """Return the systems of a comparison of the records in some folders."""
    return [each.system.partition(" · ")[0] for each in r2med.compare(folders, answers=kind == "answers").systems]


def changed(path: Path, **changes: Any) -> None:
    """Change a record, and write it with a checksum that fits."""
    body = json.loads(path.read_bytes()) | changes
    del body["checksum"]
    path.write_text(json.dumps({**body, "checksum": digest(body)}), "utf-8")


@pytest.mark.parametrize("content", [b"", b"{}", b'{"hello": 1}', b"[1]", b"\xff\xfe", b'{"checksum": "x"}'])
def test_a_foreign_file_with_the_name_of_a_record_is_refused_in_one_line(
    kind: str, content: bytes, tmp_path: Path
) -> None:
    written(kind, tmp_path, "dense")
    path = written(kind, tmp_path)
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        compared(kind, tmp_path)
    assert str(error.value) == f"{path} is not a record of r2med, or it was cut off: run it again"


def test_a_record_that_was_cut_off_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    path = written(kind, tmp_path)
    whole = path.read_bytes()
    for size in (1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError) as error:
            compared(kind, tmp_path)
        assert str(error.value) == f"{path} is not a record of r2med, or it was cut off: run it again"


def test_a_record_edited_by_hand_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    path = written(kind, tmp_path)
    path.write_text(path.read_text("utf-8").replace("2026-01-01", "2027-01-01"), "utf-8")
    with pytest.raises(UserError) as error:
        compared(kind, tmp_path)
    assert str(error.value) == f"{path} was altered after it was written: run it again"


def test_a_record_of_another_format_says_the_command_and_is_left_out_beside_others(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(kind, tmp_path)
    changed(path, format=1)
    with pytest.raises(UserError) as error:
        compared(kind, tmp_path)
    command = "r2med answer" if kind == "answers" else "r2med run"
    states(error.value, str(path), "is a record of format 1", f"make it again with {command} 'bm25'")
    written(kind, tmp_path, "dense")
    written(kind, tmp_path, "late")
    caplog.clear()
    assert sorted(compared(kind, tmp_path)) == ["dense", "late"]
    assert caplog.messages == [f"{error.value}: it is left out"]


def test_what_r2med_did_not_write_is_left_out_in_one_line(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(kind, tmp_path)
    changed(path, per_query={}, queries={})
    with pytest.raises(UserError, match=r"is not a record that r2med wrote: it has no .*: run it again$"):
        compared(kind, tmp_path)
    written(kind, tmp_path, "dense")
    written(kind, tmp_path, "late")
    assert sorted(compared(kind, tmp_path)) == ["dense", "late"]
    states(caplog.text, str(path), "is not a record that r2med wrote", "it is left out")


def test_a_record_under_another_name_and_in_another_folder_is_the_same_record(kind: str, tmp_path: Path) -> None:
    path = written(kind, tmp_path / "results")
    written(kind, tmp_path / "results", "dense")
    target = tmp_path / "elsewhere" / path.name.replace("bm25", "renamed")
    target.parent.mkdir()
    shutil.move(path, target)
    assert compared(kind, tmp_path) == ["bm25", "dense"]
    assert compared(kind, target, tmp_path / "results") == ["bm25", "dense"]


def test_a_record_with_the_name_of_the_other_kind_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    path = written(kind, tmp_path)
    ending = ".json" if kind == "answers" else ".answers.json"
    other = path.rename(path.with_name(f"bm25-0123456789{ending}"))
    is_one_of = "is a record of answers, not of a ranking" if kind == "answers" else "is a record of a ranking, not of"
    with pytest.raises(UserError) as error:
        compared("ranking" if kind == "answers" else "answers", tmp_path)
    states(error.value, str(other), is_one_of, "--answers")


def test_of_two_records_in_one_folder_the_one_counts_that_a_run_named_last(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(kind, tmp_path)
    written(kind, tmp_path, "dense")
    copy = path.with_name(path.name.replace("bm25", "copy"))
    for newer, older in ((copy, path), (path, copy)):
        if newer == copy:
            shutil.copy(older, newer)
        changed(newer, named="2027-01-01" if newer == copy else "2028-01-01", created="2020-01-01")
        caplog.clear()
        both = collect([tmp_path], kind=kind)  # type: ignore[arg-type]
        assert [each.path for each in both if each.record.system == "bm25"] == [newer]
        [note] = caplog.messages
        states(note, "1 older record", "left out", "bm25", "on Biology", "replaced")


def test_two_records_of_one_system_in_two_folders_are_not_compared(kind: str, tmp_path: Path) -> None:
    one, other = written(kind, tmp_path / "one"), written(kind, tmp_path / "other")
    with pytest.raises(UserError) as error:
        compared(kind, tmp_path / "one", tmp_path / "other")
    states(error.value, "bm25", "has two records on Biology", str(one), str(other), "give one of the two folders")


def test_after_the_data_changed_what_ran_on_the_new_ones_counts(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for system in ("bm25", "dense", "late"):
        path = written(kind, tmp_path, system)
        if system != "late":
            facts = json.loads(path.read_bytes())["dataset"] | {"fingerprint": "f" * 32}
            changed(path, dataset=facts, named="2027-01-01")
    assert compared(kind, tmp_path) == ["bm25", "dense"]
    [note] = caplog.messages
    states(note, "1 older record", "the data changed", "late", "run them again")


@pytest.mark.parametrize("fault", ["is missing", "was changed"])
def test_a_file_beside_a_record_that_is_missing_or_changed_is_named_with_the_command(
    kind: str, fault: str, tmp_path: Path
) -> None:
    path = written(kind, tmp_path)
    beside, body = path.with_suffix(".beside"), json.loads(path.read_bytes())
    facts = {"file": beside.name, "sha256": "0" * 64}
    if kind == "answers":
        changed(path, answers=body["answers"] | {"file": facts})
    else:
        changed(path, run=facts | {"depth": 10})
    if fault == "was changed":
        beside.write_text("other", "utf-8")
    [kept] = collect([tmp_path], kind=kind)  # type: ignore[arg-type]
    with pytest.raises(UserError) as error:  # as for submit, pack and board
        kept.check_files()
    states(error.value, str(beside), fault, "r2med answer" if kind == "answers" else "r2med run bm25")


def test_records_of_other_data_under_one_name_in_two_folders_are_not_compared(kind: str, tmp_path: Path) -> None:
    written(kind, tmp_path / "one")
    path = written(kind, tmp_path / "other", "dense")
    facts = json.loads(path.read_bytes())["dataset"]
    changed(path, dataset=facts | {"fingerprint": "f" * 32})
    with pytest.raises(UserError) as error:
        compared(kind, tmp_path / "one", tmp_path / "other")
    states(error.value, str(path), "made on different data", "Biology", "run the older one")


def test_other_data_under_a_known_name_are_the_users_own(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for system in ("bm25", "dense"):
        path = written(kind, tmp_path, system)
        changed(path, dataset=json.loads(path.read_bytes())["dataset"] | {"source": ""})
    assert list(r2med.compare(tmp_path, answers=kind == "answers").datasets) == ["own/Biology"]
    states(caplog.text, "not the dataset Biology of the benchmark", "own/Biology")


@pytest.mark.parametrize("file", ["/etc/hostname", "../notes.jsonl", "."])
def test_a_record_that_names_a_file_elsewhere_is_refused(kind: str, file: str, tmp_path: Path) -> None:
    path = written(kind, tmp_path)
    changed(path, traces={"file": file, "sha256": "0" * 64})
    with pytest.raises(UserError) as error:
        compared(kind, tmp_path)
    assert str(error.value) == f"{path} names {file}, which is not a file beside it: run it again"
