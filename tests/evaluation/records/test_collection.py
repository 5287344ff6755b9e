"""`collect`: which records are read together, and which cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from r2med.data import load
from r2med.data.dataset_cards import source_of
from r2med.data.runs import Run
from r2med.evaluation.measure import relevant_ranks
from r2med.evaluation.records import collection
from r2med.evaluation.records.collection import checked, collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import OverlayFacts, StageFacts
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest
from support.datasets import random_folder
from support.facts import error_states, states
from support.run_results import results_of


@pytest.fixture
def results(tmp_path: Path) -> Path:
    out = tmp_path / "results"
    for name, documents in (("one", 30), ("two", 40)):
        folder = random_folder(tmp_path / name, documents=documents)
        for system in ("bm25", "bm25(k1=1.2)"):
            evaluate(system, folder, out, k=20)
    return out


def test_files_folders_and_names_of_systems_are_read(results: Path) -> None:
    everything = collect([], results)
    assert everything.systems == ("bm25", "bm25(k1=1.2)")
    assert everything.datasets == ("one", "two")
    assert collect([results]).cells == everything.cells
    assert collect(["bm25"], results).systems == ("bm25",)
    path = next(iter(collect(["bm25"], results))).path
    assert [kept.path for kept in collect([path, path])] == [path]


def test_values_are_those_of_the_records_in_one_order_of_queries(results: Path) -> None:
    collection = collect([], results)
    queries, values = collection.values("R@5")["two"]
    for system, line in zip(collection.systems, values, strict=True):
        record = collection.records(system)["two"]
        assert line.tolist() == [record.per_query[query]["R@5"] for query in queries]


def test_a_system_has_no_value_on_a_dataset_without_its_record(results: Path) -> None:
    collection = collect([], results)
    last = collection.cell("bm25(k1=1.2)", "two")
    assert last is not None
    last.path.unlink()
    collection = collect([], results)
    assert np.isnan(collection.values()["two"][1][1]).all()


def test_the_ranks_of_gold_documents_are_those_of_the_run(results: Path, tmp_path: Path) -> None:
    kept = collect(["bm25"], results).cell("bm25", "one")
    assert kept is not None and kept.run_file is not None
    qrels = load(tmp_path / "one").qrels
    assert kept.record.gold == relevant_ranks(qrels, Run.read(kept.run_file))
    ranks = {document: rank for query in kept.record.gold.values() for document, rank in query.items()}
    assert ranks and min(ranks.values()) >= 1
    assert set(kept.record.queries) == set(qrels)


def test_after_its_data_changed_what_ran_on_them_counts_and_one_note_counts_the_rest(
    results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changed = random_folder(tmp_path / "changed" / "one", documents=31)
    evaluate("bm25", changed, results, k=20)
    found = collect([], results)
    assert [(system, found.records(system)["one"].dataset.documents) for system in found.on(["one"]).systems] == [
        ("bm25", 31)
    ]
    assert found.on(["two"]).systems == ("bm25", "bm25(k1=1.2)")
    [note] = caplog.messages
    states(note, "2 older records", "bm25 on one", "the data changed", "bm25(k1=1.2) on one")
    evaluate("bm25(k1=1.2)", changed, results, k=20)
    assert {kept.record.dataset.documents for kept in collect([], results).on(["one"])} == {31}
    evaluate("bm25", tmp_path / "one", results, k=20)  # read from the folder
    assert [kept.record.dataset.documents for kept in collect([], results).on(["one"])] == [30, 30]


def test_records_of_different_data_in_two_folders_are_not_compared(results: Path, tmp_path: Path) -> None:
    other = random_folder(tmp_path / "again" / "one", documents=31)
    evaluate("bm25(b=0.5)", other, tmp_path / "others", k=20)
    with pytest.raises(UserError, match="were made on different data, both called one"):
        collect([results, tmp_path / "others"])


def test_the_last_of_two_records_of_one_system_on_one_dataset_counts(
    results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for k in (10, 20):  # the second one is read from the folder
        evaluate("bm25", tmp_path / "one", results, k=k)
        caplog.clear()
        kept = collect([], results).cell("bm25", "one")
        assert kept is not None and kept.record.settings["k"] == k
        [note] = caplog.messages
        states(note, "1 older record", "bm25 on one", "--name")


def test_two_versions_in_two_folders_are_not_compared(results: Path, tmp_path: Path) -> None:
    evaluate("bm25", tmp_path / "one", tmp_path / "others", k=10)
    with error_states("bm25 has two records on one", "one of the two folders", "--name"):
        collect([results, tmp_path / "others"])


def test_a_failed_try_of_another_version_is_not_replaced_by_an_earlier_one(results: Path) -> None:
    """The scores of the earlier version would be shown as those of the new one."""
    kept = next(iter(collect([], results)))
    settings = {**kept.record.settings, "expand": {"stage": "hyde", "llm": "x"}}
    path = kept.path.with_name("bm25-0123456789.json")
    failed(kept, 94, 100).model_copy(update={"settings": settings, "named": "2999-01-01"}).write(path)
    assert "bm25" not in collect([], results).on(["one"]).systems


def test_a_record_edited_by_hand_is_refused(results: Path) -> None:
    path = next(iter(collect([], results))).path
    path.write_text(path.read_text().replace('"nDCG@10": 1', '"nDCG@10": 0'))
    with pytest.raises(UserError, match="was altered after it was written"):
        collect([], results)


@pytest.mark.parametrize(("failures", "limit", "refused"), [(1, 0.1, False), (3, 0.1, True), (3, 0.5, False)])
def test_a_record_with_too_many_failures_is_refused_with_the_count(
    results: Path, failures: int, limit: float, refused: bool
) -> None:
    kept = next(iter(collect([], results)))
    expand = StageFacts(stage="expand", name="hyde(x)", cost=kept.record.stages[0].cost, failures=failures)
    dataset = kept.record.dataset.model_copy(update={"queries": 10})
    record = kept.record.model_copy(update={"stages": (expand, *kept.record.stages), "dataset": dataset})
    if not refused:
        assert checked([StoredRecord(record, kept.path)], limit).systems == ("bm25",)
        return
    with pytest.raises(UserError, match=r"hyde\(x\) failed for 3 of 10 \(30%\).*max_failures \(--max-failures 0.3\)"):
        checked([StoredRecord(record, kept.path)], limit)


def test_a_record_with_too_many_failures_is_left_out_with_a_note_and_the_others_stay(
    results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = next(iter(collect([], results)))
    path = kept.path.with_name("other-0123456789.json")
    failed(kept, 3, 10).model_copy(update={"system": "hyde(x) → bm25"}).write(path)
    assert collect([], results).systems == ("bm25", "bm25(k1=1.2)")
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{path}: hyde(x) → bm25 on one is left out: hyde(x) failed for 3 of 10 (30%)")
    assert "r2med run 'hyde(x) → bm25' --ask-again" in caplog.messages[0]
    assert collect([], results, max_failures=0.3).cell("hyde(x) → bm25", "one") is not None


def failed(kept: StoredRecord, failures: int, queries: int) -> Record:
    """Return a record whose expansion failed for some of its queries."""
    expand = StageFacts(stage="expand", name="hyde(x)", cost=kept.record.stages[0].cost, failures=failures)
    dataset = kept.record.dataset.model_copy(update={"queries": queries})
    return kept.record.model_copy(update={"stages": (expand, *kept.record.stages), "dataset": dataset})


def test_a_failed_try_beside_a_sound_record_is_left_out(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = next(iter(collect([], results)))
    path = kept.path.with_name("bm25-0123456789.json")
    failed(kept, 94, 100).write(path)
    with caplog.at_level("INFO", "r2med"):
        assert collect([], results).cell("bm25", "one") == kept
    assert caplog.messages == [f"{path} is left out: it failed too often, and {kept.path} is used"]
    with pytest.raises(UserError, match="failed for 94 of 100"):
        collect([path])
    failed(kept, 94, 100).write(kept.path.with_name("bm25-1123456789.json"))
    caplog.clear()
    with caplog.at_level("INFO", "r2med"):
        collect([], results)
    [note] = caplog.messages
    states(note, str(path), "failed too often", "1 more of bm25")


@pytest.mark.parametrize(("failures", "queries"), [(1, 3), (94, 101), (1, 7), (2, 3)])
def test_the_share_of_failures_that_is_suggested_is_enough(results: Path, failures: int, queries: int) -> None:
    kept = next(iter(collect([], results)))
    record = StoredRecord(failed(kept, failures, queries), kept.path)
    with pytest.raises(UserError, match="--max-failures") as error:
        checked([record])
    assert checked([record], float(str(error.value).rpartition(" ")[2].rstrip(")"))).systems == ("bm25",)


def test_a_record_without_a_measure_is_named(results: Path) -> None:
    kept = next(iter(collect([], results)))
    record = kept.record.model_copy(update={"per_query": {q: {"R@10": 1.0} for q in kept.record.per_query}})
    with pytest.raises(UserError, match=rf"{kept.path}: bm25 on one: no measure 'nDCG@10'"):
        checked([StoredRecord(record, kept.path)]).values()


def test_other_data_under_a_name_of_the_benchmark_are_the_users_own(
    results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = next(iter(collect([], results)))
    named = kept.record.dataset.model_copy(update={"name": "Biology"})
    kept.record.model_copy(update={"dataset": named}).write(kept.path)
    assert collect([kept.path]).datasets == ("own/Biology",)
    assert "the data are not the dataset Biology of the benchmark, so they are shown as own/Biology" in caplog.text
    fetched = named.model_copy(update={"source": source_of("Biology")})
    kept.record.model_copy(update={"dataset": fetched}).write(kept.path)
    assert collect([kept.path]).datasets == ("Biology",)
    other = named.model_copy(update={"source": f"another/Biology@{'a' * 40}"})
    kept.record.model_copy(update={"dataset": other}).write(kept.path)
    assert collect([kept.path]).datasets == ("own/Biology",)


def test_other_data_under_a_name_of_the_demo_are_the_users_own(results: Path) -> None:
    kept = next(iter(collect([], results)))
    other = kept.record.dataset.model_copy(update={"name": "demo/Biology", "fingerprint": "f" * 32})
    kept.record.model_copy(update={"dataset": other}).write(kept.path)
    assert collect([kept.path]).datasets == ("own/Biology",)


def test_overlays_do_not_let_other_data_have_the_name_of_a_known_dataset(results: Path) -> None:
    kept = next(iter(collect([], results)))
    labels = OverlayFacts(name="mine", digest="d" * 32, labels=1)
    other = kept.record.dataset.model_copy(update={"name": "SciFact-PL+mine", "overlays": (labels,)})
    kept.record.model_copy(update={"dataset": other}).write(kept.path)
    assert collect([kept.path]).datasets == ("own/SciFact-PL+mine",)


def test_what_is_not_there_names_what_is(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no record, folder or system 'bm24' \(did you mean bm25\?\)"):
        collect(["bm24"], results)
    with pytest.raises(UserError, match="there are no records in"):
        collect([], tmp_path / "nothing")
    with pytest.raises(UserError, match=r"^elsewhere: there is no such record or folder, and no system"):
        collect(["elsewhere"], tmp_path / "nothing")
    with pytest.raises(UserError, match="no measure 'R@7'"):
        collect([], results).values("R@7")


def test_other_json_files_in_the_folder_are_no_records(results: Path) -> None:
    (results / "notes.json").write_text(json.dumps({"hello": 1}))
    assert collect([], results).datasets == ("one", "two")


def test_a_record_of_before_these_facts_is_still_read(results: Path) -> None:
    kept = next(iter(collect([], results)))
    body = json.loads(kept.path.read_text())
    record = Record(**{name: value for name, value in body.items() if name not in ("queries", "checksum")})
    record.write(kept.path)
    assert Record.read(kept.path).queries == {}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"stages": []}, "it has no stages or no scores"),
        ({"per_query": {}}, "it has no stages or no scores"),
        ({"mean": {}}, "it has no mean of any measure"),
        ({"settings": {"retrieve": {}, "rerank": {"a": 1}}}, "its settings are not those of a system"),
        ({"settings": {"retrieve": {}, "expand": ["hyde"]}}, "its settings are not those of a system"),
        (None, "it contains a number above 1e+15"),
    ],
)
def test_a_forged_record_whose_checksum_fits_is_left_out_in_one_line(
    results: Path, change: dict[str, object] | None, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = next(iter(collect(["bm25"], results))).path
    body = json.loads(path.read_text("utf-8"))
    del body["checksum"]
    if change is None:
        body["stages"][0]["cost"]["calls"] = 10**400
    path.write_text(json.dumps({**(body := body | (change or {})), "checksum": digest(body)}), "utf-8")
    assert len(collect([], results).cells) == 3
    assert caplog.messages == [f"{path} is not a record that r2med wrote: {fault}: it is left out"]
    with pytest.raises(UserError, match=r"is not a record that r2med wrote: .*: run it again"):
        collect([path])


@pytest.mark.parametrize(("failures", "is_left_out"), [(10, False), (11, True), (18, True)])
def test_a_reranker_with_two_calls_for_a_document_is_held_to_the_same_limit(failures: int, is_left_out: bool) -> None:
    stage = StageFacts(stage="rerank", name="rank1-7b@10", cost=Cost(calls=200), failures=failures, asked=100)
    record = SimpleNamespace(stages=(stage,), dataset=SimpleNamespace(queries=10), system="bm25 → rank1-7b@10")
    assert bool(collection._failed(record, 0.1)) == is_left_out  # type: ignore[arg-type]


def test_a_reranker_that_failed_for_every_document_makes_the_results_incomplete() -> None:
    stage = StageFacts(stage="rerank", name="rank1-7b@10", cost=Cost(calls=200), failures=100, asked=100)
    record = SimpleNamespace(stages=(stage,), dataset=SimpleNamespace(queries=10), system="bm25 → rank1-7b@10")
    assert not results_of([("s", "d", record)]).complete  # type: ignore[list-item]


def test_a_word_that_is_a_system_and_a_folder_means_the_system(results: Path, tmp_path: Path) -> None:
    """The folder bm25 may hold anything, such as an index."""
    (tmp_path / "bm25").mkdir()
    assert collect(["bm25"], results).systems == ("bm25",)
    with pytest.raises(UserError, match="there are no records in bm25"):
        collect([Path("bm25")], results)
