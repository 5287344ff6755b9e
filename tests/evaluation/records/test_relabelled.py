"""Rankings of records scored again with other labels."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from r2med import UserError, load, run
from r2med.data.loading import with_overlays
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.local_datasets import local_datasets
from r2med.evaluation.records.relabelled import recorded_datasets, relabelled
from support.facts import states

NAME = "demo/Biology"


def test_scores_equal_an_evaluation_with_the_labels_and_records_stay(tmp_path: Path) -> None:
    run(["bm25", "bm25(k1=0.1)"], NAME, out=tmp_path)
    dataset = load(NAME)
    collection = collect(results=tmp_path)
    query = dataset.queries[0].id
    documents = [document for document, _ in dataset.corpus][:30]
    labels = tuple(OverlayLabel(dataset=NAME, query=query, document=d, grade=1, judge="j") for d in documents)
    overlay = Overlay("judged", labels)
    again = relabelled(collection, [overlay], {NAME: dataset})
    direct = run("bm25", with_overlays(dataset, [overlay]), out=tmp_path / "direct").records[0]
    record = again.cells["bm25", f"{NAME}+judged"].record
    assert record.per_query == direct.per_query
    assert record.dataset == direct.dataset
    assert record.gold == direct.gold
    assert record.dataset.overlays[0].labels == 30
    first = collection.cells["bm25", NAME].record
    assert record.per_query[query] != first.per_query[query]
    assert collect(results=tmp_path / NAME).cells["bm25", NAME].record == first
    assert {each.record.key for each in again}.isdisjoint(each.record.key for each in collection)


def test_an_overlay_that_changes_nothing_gives_the_same_digits(tmp_path: Path) -> None:
    run("bm25", NAME, out=tmp_path)
    dataset = load(NAME)
    query, judged = next(iter(dataset.qrels.items()))
    document, grade = next(iter(judged.items()))
    overlay = Overlay("same", (OverlayLabel(dataset=NAME, query=query, document=document, grade=grade, judge="j"),))
    (kept,) = relabelled(collect(results=tmp_path), [overlay], {NAME: dataset})
    (before,) = collect(results=tmp_path)
    assert kept.record.per_query == before.record.per_query
    assert kept.record.mean == before.record.mean


def test_overlays_of_other_datasets_and_lost_rankings_are_one_line(tmp_path: Path) -> None:
    run("bm25", NAME, out=tmp_path)
    dataset = load(NAME)
    query = dataset.queries[0].id
    document = next(iter(dataset.corpus))[0]
    other = Overlay("x", (OverlayLabel(dataset="other", query=query, document=document, grade=1, judge="j"),))
    with pytest.raises(UserError, match="no record is on them"):
        relabelled(collect(results=tmp_path), [other], {NAME: dataset})
    mine = Overlay("x", (OverlayLabel(dataset=NAME, query=query, document=document, grade=1, judge="j"),))
    next(tmp_path.rglob("*.trec.gz")).unlink()
    with pytest.raises(UserError, match="is missing: make it again with"):
        relabelled(collect(results=tmp_path), [mine], {NAME: dataset})


def test_a_dataset_without_records_is_refused_instead_of_labelling_all(tmp_path: Path) -> None:
    run("bm25", NAME, out=tmp_path / "results")
    collection = collect(results=tmp_path / "results")
    with pytest.raises(UserError, match="no record is on nothing: the records are on demo/Biology"):
        recorded_datasets(collection, ["nothing"])
    assert list(recorded_datasets(collection, ["demo"])) == [NAME]


def test_a_dataset_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(load(NAME).folder, tmp_path / "mine")
    run("bm25", tmp_path / "mine", out=tmp_path / "results")
    (tmp_path / "mine").rename(tmp_path / "moved")
    with pytest.raises(UserError, match="mine: not on this machine, or changed since the records were made"):
        recorded_datasets(collect(results=tmp_path / "results"), [])


def test_records_that_were_scored_with_an_overlay_are_left_out_unless_they_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = load(NAME)
    query, document = dataset.queries[0].id, next(iter(dataset.corpus))[0]
    label = OverlayLabel(dataset=NAME, query=query, document=document, grade=1, judge="j")
    Overlay("j", (label,)).write("j.jsonl")
    run("bm25", [NAME, f"{NAME}+j.jsonl"], out=tmp_path / "results")
    collection = collect(results=tmp_path / "results")
    with caplog.at_level("INFO", "r2med"):
        assert list(recorded_datasets(collection, [])) == [NAME]
        assert list(recorded_datasets(collection, [f"{NAME}+j.jsonl"])) == [f"{NAME}+j"]
        assert not caplog.messages
        assert list(local_datasets(collection, [])) == [NAME]
    states(caplog.messages[0], f"{NAME}+j", f"{NAME}+j.jsonl")
