"""Entries hold what a leaderboard needs and nothing of the machine; what was made up or altered is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import UserError, submit
from r2med.evaluation.records.collection import checked
from r2med.evaluation.records.public_values import public_value
from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store, digest
from r2med.publication.leaderboard.board_entries import read_entries
from r2med.publication.leaderboard.submission import Entry, read_entry


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records and runs of two systems on a dataset of the demo."""
    folder = tmp_path_factory.mktemp("results")
    r2med.run(["bm25", "hyde(author) → bm25"], "demo/Biology", out=folder, store=Store(folder / "store"))
    return folder / "demo"


@pytest.fixture
def entry(results: Path, tmp_path: Path) -> Path:
    submit([results], tmp_path / "entry.json")
    return tmp_path / "entry.json"


def rewritten(entry: Path, change: Callable[[Any], object], seal: bool = True) -> Path:
    """Change an entry as a forger would, checksum included."""
    body = json.loads(entry.read_text())
    change(body)
    if seal:
        del body["checksum"]
        body["checksum"] = digest(body)
    entry.write_text(json.dumps(body))
    return entry


def test_an_entry_reads_back_and_is_one_line_a_record(entry: Path, results: Path) -> None:
    records = read_entry(entry).records
    assert [record.system for record in records] == ["bm25", "hyde(author) → bm25"]
    assert len(entry.read_text().splitlines()) == 4
    [own] = [Record.read(path) for path in results.glob("Biology/bm25-*.json")]
    assert (records[0].per_query, records[0].key) == (own.per_query, own.key)
    assert records[0].run is not None and own.run is not None and records[0].run.sha256 == own.run.sha256


def test_the_same_records_give_the_same_bytes(entry: Path, results: Path, tmp_path: Path) -> None:
    submit([results], tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == entry.read_bytes()


def test_an_entry_has_no_text_of_queries_documents_or_expansions(entry: Path) -> None:
    dataset = r2med.load("demo/Biology")
    text = entry.read_text()
    assert not any(query.text[:40] in text for query in dataset.queries)
    assert "generated.jsonl" not in text
    assert all(record.generated is None and record.traces is None for record in read_entry(entry).records)


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("path:/home/me/models/mine → bge-reranker@10", "path:mine → bge-reranker@10"),
        ("bm25+path:/srv/a b/my model", "bm25+path:my model"),
        ("path:models/mine", "path:mine"),
        ("hyde(gpt4, prompts=/home/me/prompts) → bm25", "hyde(gpt4, prompts=prompts) → bm25"),
        ("run:~/runs/x.trec.gz → monobert@10", "run:x.trec.gz → monobert@10"),
        ("hf:org/model", "hf:org/model"),
        ("PeterJinGo/SearchR1-nq", "PeterJinGo/SearchR1-nq"),
        (r"path:C:\Users\me\model", "path:model"),
        ("/tmp/model", "model"),
        ("../model/", "model"),
        ("<query>\n{text}\n</query>", "<query>\n{text}\n</query>"),
    ],
)
def test_paths_are_cut_to_their_last_part(name: str, public: str) -> None:
    assert public_value({"model": [name]}) == {"model": [public]}


def test_addresses_become_digests() -> None:
    public = public_value("search-r1(x, remote=http://10.0.0.3:8000/retrieve) → bm25")
    assert public.startswith("search-r1(x, remote=address-") and "10.0" not in public


def with_setting(results: Path, folder: Path, value: str) -> Path:
    [path] = results.glob("Biology/bm25-*.json")
    record = Record.read(path)
    changed = record.model_copy(update={"settings": {**record.settings, "note": value}})
    changed.write(folder / path.name)
    run = path.with_suffix(".trec.gz")
    (folder / run.name).write_bytes(run.read_bytes())
    return folder / path.name


def test_a_key_in_a_setting_stops_the_entry(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-marked-secret")
    path = with_setting(results, tmp_path, "Bearer sk-marked-secret")
    with pytest.raises(UserError, match="the value of MY_API_KEY") as told:
        submit([path], tmp_path / "entry.json")
    assert "marked" not in str(told.value)
    assert not (tmp_path / "entry.json").exists()


def test_a_text_in_a_setting_stops_the_entry(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it contains a text of 9,000 characters"):
        submit([with_setting(results, tmp_path, "word " * 1800)], tmp_path / "entry.json")


def test_a_record_without_its_run_is_not_submitted(results: Path, tmp_path: Path) -> None:
    path = with_setting(results, tmp_path, "")
    path.with_suffix(".trec.gz").unlink()
    with pytest.raises(
        UserError,
        match=r"\.trec\.gz is missing or was changed: make it again with r2med run bm25 --data demo/",
    ):
        submit([path], tmp_path / "entry.json")


def test_generated_texts_that_are_missing_are_named(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    [texts] = (tmp_path / "results").rglob("*.generated.jsonl")
    texts.unlink()
    with pytest.raises(UserError, match=f"{texts.name} is missing or was changed: make it again with"):
        submit([tmp_path / "results"], tmp_path / "entry.json")


def test_an_entry_edited_by_hand_is_refused(entry: Path) -> None:
    rewritten(entry, lambda body: body["records"][0]["mean"].update({"nDCG@10": 0.9}), seal=False)
    with pytest.raises(UserError, match="was altered after it was written"):
        read_entry(entry)


def set_record(**changes: Any) -> Callable[[Any], object]:
    return lambda body: body["records"][0].update(changes)


def nested(depth: int) -> dict[str, Any]:
    return {"retrieve": nested(depth - 1)} if depth else {}


def set_score(measure: str, value: float) -> Callable[[Any], object]:
    def change(body: Any) -> None:
        next(iter(body["records"][0]["per_query"].values()))[measure] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body["records"][0]["mean"].update({"nDCG@10": 0.9}), "the mean of its queries"),
        (set_score("nDCG@10", 1.5), "scores must be between 0 and 1"),
        (set_score("nDCG@10", -0.1), "scores must be between 0 and 1"),
        (set_score("nDCG@11", 0.5), "other measures than the mean"),
        (set_record(surprise=1), r"records\[0\].surprise"),
        (set_record(per_query={}), "no scores"),
        (set_record(stages=[]), "no stages"),
        (set_record(format=1), "a record of format 1"),
        (set_record(run=None), "must name exactly one run file"),
        (set_record(traces={"file": "../../secret", "sha256": ""}), "no other file"),
        (set_record(run={"file": "../x.trec.gz", "sha256": "", "depth": 1}), "a path instead of a name"),
        (set_record(settings={"k": 10**400}), "a number above"),
        (set_record(settings={"text": "x" * 5000}), "a text of 5,000 characters"),
        (lambda body: body["records"][0]["stages"][0]["cost"].update(dollars=-5), "the cost of a stage is negative"),
        (set_record(system="bm25 "), "must have only letters"),
        (set_record(system="bm\u200b25"), "must have only letters"),
        (set_record(created="tomorrow"), "is not a date"),
        (set_record(settings={"retrieve": 5}), "not those of a system"),
        (set_record(settings={"retrieve": {}, "rerank": {"a": 1}}), "not those of a system"),
        (set_record(settings={"retrieve": {}, "expand": ["hyde"]}), "not those of a system"),
        (set_record(settings=nested(60)), "nested deeper than 40 levels"),
        (lambda body: body["records"][0]["stages"][-1].update(gold={"1": {"d": 0}}), "a rank below 1"),
        (lambda body: body["records"].append(body["records"][0]), "two records"),
        (lambda body: body.update(records=[]), "has no records"),
        (lambda body: body.update(records={"a": 1}), "not an entry"),
        (lambda body: body.update(surprise=1), "surprise"),
        (lambda body: body.update(format=2), "format 2"),
        (lambda body: body.update(format="9" * 50_000), "format 9{40},"),
    ],
)
def test_what_no_entry_holds_is_refused_though_its_checksum_fits(
    change: Callable[[Any], object], message: str, entry: Path
) -> None:
    rewritten(entry, change)
    with pytest.raises(UserError, match=message) as told:
        read_entry(entry)
    assert "\n" not in str(told.value)


def test_a_key_twice_is_refused(entry: Path) -> None:
    """Other tools, and people who read the file, could take the first value."""
    entry.write_text(entry.read_text().replace('{"format": 1,', '{"format": 1, "records": [],', 1))
    with pytest.raises(UserError, match="is not an entry of r2med"):
        read_entry(entry)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 5000])
def test_numbers_that_are_none_are_refused(number: str, entry: Path) -> None:
    entry.write_text(entry.read_text().replace('"version": 1', f'"version": {number}', 1))
    with pytest.raises(UserError, match=r"entry\.json"):
        read_entry(entry)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"7", b"{}", b"\xff", b"[" * 100_000, b'{"checksum": 1}'])
def test_any_other_file_is_refused(content: bytes, entry: Path) -> None:
    entry.write_bytes(content)
    with pytest.raises(UserError, match="is not an entry of r2med"):
        read_entry(entry)


def test_a_folder_of_entries_is_a_collection(entry: Path) -> None:
    assert checked(read_entries(entry.parent).records).systems == (
        "bm25 (not verified)",
        "hyde(author) → bm25 (not verified)",
    )


def test_an_entry_that_does_not_fit_is_left_out_by_name(
    entry: Path, results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (entry.parent / "cut.json").write_bytes(entry.read_bytes()[:500])
    kept = read_entries(entry.parent).records
    assert {each.path for each in kept} == {entry}
    assert [line.partition(" is left out: ")[0] for line in caplog.messages] == [f"entry {entry.parent / 'cut.json'}"]


def test_a_link_to_a_device_among_entries_is_not_read(entry: Path) -> None:
    """Other than /dev/zero, /dev/null is over at once, so that this test fails without filling the memory."""
    link = entry.parent / "link.json"
    link.symlink_to("/dev/null")
    with pytest.raises(UserError, match=r"link\.json: this entry is not a file"):
        read_entry(link)
    assert {each.path for each in read_entries(entry.parent).records} == {entry}


def test_a_folder_among_entries_stops_none(entry: Path) -> None:
    (entry.parent / "folder.json").mkdir()
    assert {each.path for each in read_entries(entry.parent).records} == {entry}


def test_entries_that_are_all_bad_are_one_line(entry: Path) -> None:
    entry.write_bytes(entry.read_bytes()[:500])
    with pytest.raises(UserError, match=r"no entry in .* can be shown: entry .*entry\.json is left out"):
        read_entries(entry.parent)


@pytest.mark.parametrize("folder", [".", "missing"])
def test_a_folder_without_entries_says_how_to_make_one(folder: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no entries in"):
        read_entries(tmp_path / folder)


def test_an_entry_cannot_be_changed(entry: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        Entry(records=read_entry(entry).records).format = 2  # type: ignore[misc]
