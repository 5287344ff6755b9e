"""A record holds all its numbers depend on, reads back as it was written, and is refused when it was altered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import DatasetFacts, FileFacts, RunFacts, StageFacts
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import sha256

RECORD = Record(
    key="0" * 32,
    system="hyde(author) → bm25",
    settings={"retriever": {"k1": 0.9, "b": 0.4}, "expansion": None, "k": 1000},
    dataset=DatasetFacts(
        name="demo/Biology", fingerprint="f", corpus_fingerprint="c", queries=2, documents=3, judged_queries=2
    ),
    mean={"nDCG@10": 0.1 + 0.2, "MRR": 1.0},
    per_query={"q 1": {"nDCG@10": 1 / 3}, "q-ü": {"nDCG@10": 5e-324}},
    run=RunFacts(file="r.trec.gz", sha256="s", depth=1000),
    stages=(
        StageFacts(
            stage="expand", name="hyde(author)", cost=Cost(calls=2, prompt_tokens=12, dollars=0.003), failures=1
        ),
        StageFacts(stage="retrieve", name="bm25", cost=Cost(seconds=1.5), prepared=Cost(seconds=0.25)),
    ),
    seeds={"sampling": 7},
    versions={"r2med": "0.2.0"},
    source="0" * 16,
    created="2026-01-01T00:00:00+00:00",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    RECORD.write(tmp_path / "record.json")
    return tmp_path / "record.json"


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))


def test_a_record_reads_back_to_the_last_digit(path: Path) -> None:
    assert Record.read(path) == RECORD


def test_a_record_is_plain_json_that_a_person_can_read(path: Path) -> None:
    text = path.read_text()
    assert text.endswith("}\n")
    assert '"system": "hyde(author) → bm25"' in text
    assert json.loads(text)["mean"]["nDCG@10"] == 0.1 + 0.2


def test_a_record_cannot_be_changed(path: Path) -> None:
    with pytest.raises(ValidationError):
        Record.read(path).system = "bm25"  # type: ignore[misc]


@pytest.mark.parametrize(
    "changes",
    [
        {"mean": {"nDCG@10": 0.31, "MRR": 1.0}},
        {"stages": []},
        {"created": "2027-01-01T00:00:00+00:00"},
        {"settings": {}},
        {"checksum": "0" * 32},
        {"checksum": None},
        {"mean": {"nDCG@10": float("nan")}},
        {"mean": {"nDCG@10": float("inf")}},
    ],
    ids=str,
)
def test_a_record_with_any_field_altered_is_refused(changes: dict[str, Any], path: Path) -> None:
    change(path, **changes)
    with pytest.raises(UserError, match=r"record\.json"):
        Record.read(path)


@pytest.mark.parametrize("changes", [{"mean": "high"}, {"dataset": []}, {"surprise": 1}, {"per_query": None}], ids=str)
def test_what_does_not_have_the_shape_of_a_record_is_refused(changes: dict[str, Any], path: Path) -> None:
    change(path, **changes)
    with pytest.raises(UserError, match="is not a record of r2med"):
        Record.read(path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"7", b"{}", b"\xff\xfe", b'{"checksum": "x"}', b"[" * 100_000]
)
def test_any_other_file_is_refused(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not a record of r2med"):
        Record.read(path)


def test_a_record_of_another_format_says_how_to_make_it_again(path: Path) -> None:
    change(path, format=1)
    with pytest.raises(UserError, match=r"of format 1, but this version reads format 2: make it again with"):
        Record.read(path)


def test_costs_of_stages_add_up() -> None:
    assert RECORD.cost == Cost(seconds=1.75, calls=2, prompt_tokens=12, dollars=0.003)
    assert (RECORD.failures, RECORD.unordered, RECORD.seconds_per_query) == (1, 0, 0.75)


def test_a_record_cut_off_anywhere_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError):
            Record.read(path)


def test_one_bit_flipped_anywhere_is_refused_or_changes_nothing(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            record = Record.read(path)
        except UserError:
            continue
        assert record == RECORD  # the 17th digit of a number that has only 16


def test_a_record_knows_its_run_file(tmp_path: Path) -> None:
    run = tmp_path / "r.trec.gz"
    run.write_bytes(b"run")
    record = RECORD.model_copy(update={"run": RunFacts(file=run.name, sha256=sha256(run), depth=10)})
    assert record.files_are_sound(tmp_path)
    run.write_bytes(b"ruN")
    assert not record.files_are_sound(tmp_path)
    run.unlink()
    assert not record.files_are_sound(tmp_path)


@pytest.mark.parametrize("file", ["/etc/hostname", "../notes.jsonl", ".", ""])
@pytest.mark.parametrize("kind", ["run", "traces", "generated"])
def test_a_record_names_only_files_beside_it(kind: str, file: str, path: Path) -> None:
    facts = RunFacts(file=file, sha256="s", depth=1) if kind == "run" else FileFacts(file=file, sha256="s")
    RECORD.model_copy(update={kind: facts}).write(path)
    with pytest.raises(UserError, match="not a file beside it"):
        Record.read(path)


def test_a_record_without_a_run_file_is_sound(tmp_path: Path) -> None:
    assert RECORD.model_copy(update={"run": None}).files_are_sound(tmp_path)


def test_failures_of_a_reranker_are_a_share_of_its_documents_and_not_of_its_calls() -> None:
    rank1 = StageFacts(stage="rerank", name="rank1-7b@10", cost=Cost(calls=200), failures=18, asked=100)
    assert rank1.attempts(queries=10) == 100
    assert StageFacts(stage="expand", name="hyde", cost=Cost(calls=50), failures=1).attempts(queries=10) == 10


@pytest.mark.parametrize(
    ("stage", "settings", "seconds"),
    [
        ({"cost": Cost(seconds=3.0)}, {}, 1.5),
        ({"cost": Cost()}, {}, None),
        ({"cost": Cost(seconds=3.0)}, {"retrieve": {"stage": "run", "sha256": "0"}}, None),
        ({"cost": Cost(seconds=3.0)}, {"expand": {"stage": "hyde", "source": "recorded"}}, None),
    ],
)
def test_a_cost_that_is_not_known_is_unknown_and_never_zero(
    stage: dict[str, Any], settings: dict[str, Any], seconds: float | None
) -> None:
    facts = StageFacts(stage="retrieve", name="mine", **stage)
    record = RECORD.model_copy(update={"stages": (facts,), "settings": settings})
    assert record.seconds_per_query == seconds
    assert record.cost_is_known is (seconds is not None)
    assert bool(record.cost.unpriced) is (seconds is None)
