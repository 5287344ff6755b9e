"""Verifying: scores are those that the runs give, on the data that the entry names, or the difference is told."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import UserError, submit, verify
from r2med.data.dataset_cards import source_of
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import sha256
from support.datasets import random_folder
from support.facts import states
from support.fork_server import Command


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    r2med.run("bm25", "demo/Biology", out=folder / "runs", store=Store(folder / "store"))
    return folder / "runs"


@pytest.fixture
def entry(results: Path, tmp_path: Path) -> Path:
    submit([results], tmp_path / "entry.json")
    return tmp_path / "entry.json"


def forged(entry: Path, change: Callable[[Any], object]) -> Path:
    body = json.loads(entry.read_text())
    change(body["records"][0])
    del body["checksum"]
    entry.write_text(json.dumps({**body, "checksum": digest(body)}))
    return entry


def fault(entry: Path, runs: Path, **settings: Any) -> str:
    [checked] = verify([entry], runs, **settings)
    return checked.fault


def test_an_honest_entry_matches_wherever_its_run_lies(entry: Path, results: Path, tmp_path: Path) -> None:
    assert fault(entry, results) == ""
    [run] = results.rglob("*.trec.gz")
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/renamed.gz").write_bytes(run.read_bytes())
    assert fault(entry, tmp_path / "deep") == ""


def better(record: Any) -> None:
    """Claim a better score for one query, in its place and in the mean."""
    query, values = next((query, values) for query, values in record["per_query"].items() if values["nDCG@10"] < 1)
    record["mean"]["nDCG@10"] += (1 - values["nDCG@10"]) / len(record["per_query"])
    record["per_query"][query]["nDCG@10"] = 1.0


def dropped(record: Any) -> None:
    """Leave the worst query out."""
    worst = min(record["per_query"], key=lambda query: record["per_query"][query]["nDCG@10"])
    del record["per_query"][worst]
    del record["queries"][worst]
    for name in record["mean"]:
        record["mean"][name] = sum(v[name] for v in record["per_query"].values()) / len(record["per_query"])


def only_recall(record: Any) -> None:
    """State one measure that is not the main one."""
    for values in (record["mean"], *record["per_query"].values()):
        for name in [name for name in values if name != "R@10"]:
            del values[name]


def invented_measure(record: Any) -> None:
    for values in (record["mean"], *record["per_query"].values()):
        values["Wow@10"] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (better, "nDCG@10 of query"),
        (dropped, "its facts about demo/Biology and its queries"),
        (lambda record: record["stages"][-1]["gold"].clear(), "the ranks of its relevant documents"),
        (lambda record: record["dataset"].update(documents=5), "its facts about demo/Biology"),
        (lambda record: record["dataset"].update(fingerprint="f" * 32), "made on other data than demo/Biology"),
        (lambda record: record["dataset"].update(name="../../etc"), "r2med does not know the dataset"),
        (lambda record: record["run"].update(sha256="0" * 64), "is not the run of this record"),
        (lambda record: record["run"].update(depth=3), "more than 3 documents"),
        (lambda record: record["queries"].clear(), "it has facts about other queries"),
        (lambda record: record["dataset"].update(task="another"), "its facts about demo/Biology and its queries"),
        (
            lambda record: record["dataset"].update(source="R2MED/Biology@1"),
            "source of demo/Biology: R2MED",
        ),
        (lambda record: record["dataset"].update(name="demo/Bioinformatics"), "other data than demo/Bioinformatics"),
        (only_recall, "it has no nDCG@10, the main measure"),
        (invented_measure, "Wow@10 is not a measure of"),
    ],
)
def test_what_does_not_match_is_named(
    change: Callable[[Any], object], message: str, entry: Path, results: Path
) -> None:
    assert message in fault(forged(entry, change), results)


def test_another_run_than_the_submitted_one_is_refused(entry: Path, results: Path, tmp_path: Path) -> None:
    [run] = results.rglob("*.trec.gz")
    lines = gzip.decompress(run.read_bytes()).splitlines(keepends=True)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / run.name).write_bytes(gzip.compress(b"".join(lines[:-1])))
    assert "is not the run of this record" in fault(entry, runs)
    (runs / run.name).unlink()
    assert "its run file is missing" in fault(entry, runs)


def test_a_run_that_is_none_is_told_of(entry: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "junk.gz").write_bytes(b"\x1f\x8bjunk")
    forged(entry, lambda record: record["run"].update(sha256=sha256(runs / "junk.gz")))
    assert "not a TREC run" in fault(entry, runs)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 Q0 elsewhere 1 99 x\n", "names document 'elsewhere', which demo/Biology does not have"),
        ("elsewhere Q0 {document} 1 99 x\n", "names query 'elsewhere', which demo/Biology does not have"),
    ],
)
def test_a_run_of_other_queries_or_documents_is_refused(
    line: str, message: str, entry: Path, results: Path, tmp_path: Path
) -> None:
    [run] = results.rglob("*.trec.gz")
    content = gzip.decompress(run.read_bytes())
    strange = tmp_path / "runs/strange.trec.gz"
    strange.parent.mkdir()
    first = content.split()[2].decode()
    strange.write_bytes(gzip.compress(content + line.format(document=first).encode()))
    forged(entry, lambda record: record["run"].update(sha256=sha256(strange), depth=2000))
    assert message in fault(entry, strange.parent)


def test_a_dataset_without_a_card_is_given_by_a_folder_of_its_name(results: Path, tmp_path: Path) -> None:
    folder = r2med.load("demo/Biology").folder
    assert folder is not None
    (tmp_path / "private").mkdir()
    for name in ("corpus.jsonl", "query.jsonl", "qrels.jsonl"):
        (tmp_path / "private" / name).write_bytes((folder / name).read_bytes())
    r2med.run("bm25", str(tmp_path / "private"), out=tmp_path / "runs")
    submit([tmp_path / "runs"], tmp_path / "entry.json")
    assert "give a folder of this name by data (--data)" in fault(tmp_path / "entry.json", tmp_path / "runs")
    assert fault(tmp_path / "entry.json", tmp_path / "runs", data=[tmp_path / "private"]) == ""


def test_a_record_with_the_labels_of_an_overlay_is_verified_with_the_same_overlay(tmp_path: Path) -> None:
    dataset = r2med.load("demo/MedQA-Diag")
    document = next(document for document, _ in dataset.corpus)
    rows = [
        r2med.OverlayLabel(dataset=dataset.name, query=query.id, document=document, grade=1, judge="j")
        for query in dataset.queries
    ]
    r2med.Overlay("judged", tuple(rows)).write(tmp_path / "judged.jsonl")
    labelled = f"demo/MedQA-Diag+{tmp_path / 'judged.jsonl'}"
    r2med.run("bm25", labelled, out=tmp_path / "runs")
    submit([tmp_path / "runs"], tmp_path / "entry.json")
    assert "give this dataset with the file of its overlay by data" in fault(tmp_path / "entry.json", tmp_path / "runs")
    assert fault(tmp_path / "entry.json", tmp_path / "runs", data=[labelled]) == ""
    (tmp_path / "changed").mkdir()
    r2med.Overlay("judged", tuple(rows[1:])).write(tmp_path / "changed" / "judged.jsonl")
    changed = f"demo/MedQA-Diag+{tmp_path / 'changed' / 'judged.jsonl'}"
    assert "made on other data" in fault(tmp_path / "entry.json", tmp_path / "runs", data=[changed])
    forged(tmp_path / "entry.json", lambda record: _lower(record, "nDCG@10"))
    assert "nDCG@10 of query" in fault(tmp_path / "entry.json", tmp_path / "runs", data=[labelled])


def _lower(record: Any, measure: str) -> None:
    record["per_query"] = {query: {**values, measure: 0.0} for query, values in record["per_query"].items()}
    record["mean"][measure] = 0.0


def copied(entry: Path, name: str) -> Path:
    return Path(shutil.copy(entry, entry.with_name(name)))


def test_two_teams_may_submit_the_same_system(entry: Path, results: Path) -> None:
    assert [each.fault for each in verify([entry, copied(entry, "second.json")], results)] == ["", ""]


def test_a_false_entry_does_not_take_the_place_of_an_honest_one(entry: Path, results: Path) -> None:
    false = forged(copied(entry, "false.json"), better)
    assert [bool(each.fault) for each in verify([false, entry], results)] == [True, False]


@pytest.mark.parametrize("system", ["run:{run}", "run:{run}+bm25"])
def test_an_honest_entry_of_a_run_file_matches(system: str, results: Path, tmp_path: Path) -> None:
    [run] = results.rglob("*.trec.gz")
    (tmp_path / "mine.trec").write_bytes(gzip.decompress(run.read_bytes()))
    r2med.run(system.format(run=tmp_path / "mine.trec"), "demo/Biology", out=tmp_path / "runs")
    submit([tmp_path / "runs"], tmp_path / "entry.json")
    assert fault(tmp_path / "entry.json", tmp_path / "runs") == ""


def test_a_bad_entry_is_named_and_the_others_are_checked(entry: Path, results: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(entry.read_bytes()[:500])
    invented = forged(copied(entry, "invented.json"), invented_measure)
    lines = list(map(str, verify([cut, tmp_path / "missing.json", invented, entry], results)))
    assert [line.partition(":")[0] for line in lines] == [
        *(str(cut), str(tmp_path / "missing.json"), str(invented), str(entry)),
    ]
    assert lines[2].startswith(f"{invented}: bm25 on demo/Biology: Wow@10")
    assert lines[3].endswith("bm25 on demo/Biology: matches")


@pytest.mark.parametrize("data", [(), ("demo/Biology",)])
def test_demo_runs_renamed_to_the_benchmark_are_refused(
    entry: Path, results: Path, tmp_path: Path, data: tuple[str, ...]
) -> None:
    """The blocker of version 0.2: data with the record's fingerprint were taken, whatever they were called."""
    forged(entry, lambda record: record["dataset"].update(name="Biology", source=source_of("Biology")))
    fetched = random_folder(tmp_path / "hub", documents=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("r2med.data.hub.snapshot", lambda *_: fetched)
        found = fault(entry, results, data=data, store=Store(tmp_path / "store"))
    assert "it was made on other data than Biology on this machine" in found


def test_a_folder_called_like_a_dataset_of_the_benchmark_does_not_vouch_for_it(
    results: Path, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = r2med.load("demo/Biology").folder
    assert folder is not None
    shutil.copytree(folder, tmp_path / "Biology")
    forged(entry, lambda record: record["dataset"].update(name="Biology"))
    monkeypatch.setattr("r2med.data.hub.snapshot", no_hub)
    assert "no hub" in fault(entry, results, data=[tmp_path / "Biology"], store=Store(tmp_path / "store"))


def no_hub(*_: object) -> Path:
    raise UserError("no hub here")


def test_a_folder_of_runs_that_is_not_there_is_one_line(entry: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        verify([entry], tmp_path / "nowhere")


def test_the_command_line_submits_and_verifies(r2med: Command, tmp_path: Path) -> None:
    r2med("run", "bm25", "--data", "demo/Biology", "--out", tmp_path / "results")
    made = r2med("submit", "bm25", "-o", "entry.json")
    assert "r2med verify entry.json --runs results" in made.stdout
    done = r2med("verify", "entry.json", "--runs", "results")
    assert (done.returncode, done.stdout) == (0, "entry.json: bm25 on demo/Biology: matches\n")
    states(r2med("submit", "bm25", "-o", "entry").stderr, "out (--out)", "entry", ".json")
    unwritable = r2med("submit", "bm25", "-o", "/proc/entry.json")
    assert (unwritable.returncode, unwritable.stderr.count("\n")) == (2, 1)
    forged(tmp_path / "entry.json", better)
    refused = r2med("verify", "entry.json", "--runs", "results", "--format", "json")
    assert refused.returncode == 1
    assert "nDCG@10 of query" in json.loads(refused.stdout)[0]["fault"]
