"""Training sets: which documents are negatives, formats, folds, test sets and the datasheet."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import Overlay, OverlayLabel
from r2med.assessment.training.query_groups import query_groups
from r2med.data.training_sheet import TrainingSheet
from r2med.foundation.text.synonyms import Synonyms
from support.datasets import write_jsonl
from support.facts import error_states

CHANCE = random.Random(7)
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def text(count: int = 40) -> str:
    return " ".join(CHANCE.choices(WORDS, k=count))


QUESTIONS = {name: text(20) for name in "abcd"}
TEXTS = {name: text() for name in ("r1", "r2", "r3", "r4", "clear", "middle", "split", "page", "person")}
TEXTS |= {"copy": f"{TEXTS['r1']} etc", "naming": f"{text()} podagra {text(5)}", "sibling": text(), "old": text()}
RELEVANT = {"a": "r1", "b": "r2", "c": "r3", "d": "r4"}


def judged(document: str, said: str, judge: str = "one", **more: Any) -> OverlayLabel:
    grade = int(said >= "2")
    return OverlayLabel(dataset="mine", query="a", document=document, grade=grade, said=said, judge=judge, **more)


LABELS = (
    *(judged(name, "0", judge) for name in ("clear", "copy", "naming", "page", "sibling") for judge in ("one", "two")),
    *(judged("middle", "1", judge) for judge in ("one", "two")),
    *(judged("split", said, judge) for said, judge in (("0", "one"), ("2", "two"))),
    OverlayLabel(dataset="mine", query="a", document="person", grade=0, reviewer="x"),
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    answers = {"a": "Gout", "b": "gout"}
    rows = [{"id": name, "text": asked, "answer": answers.get(name, "")} for name, asked in QUESTIONS.items()]
    rows[0]["reasoning"] = "The toe points to gout."
    write_jsonl(folder / "query.jsonl", rows)
    write_jsonl(folder / "corpus.jsonl", [{"id": name, "text": each} for name, each in TEXTS.items()])
    grades = [{"q_id": query, "p_id": document, "score": 1} for query, document in RELEVANT.items()]
    grades += [{"q_id": "b", "p_id": "sibling", "score": 1}, {"q_id": "c", "p_id": "old", "score": 0}]
    write_jsonl(folder / "qrels.jsonl", grades)
    write_jsonl(folder / "provenance.jsonl", [{"id": name, "page": "p"} for name in ("r1", "page")])
    (tmp_path / "synonyms.csv").write_text("concept,term\nGout,podagra\n")
    return folder


def written(mine: Path, *formats: str, **more: Any) -> tuple[Path, TrainingSheet]:
    made = r2med.training_data(
        str(mine),
        mine.parent / "train",
        overlays=Overlay("judged", LABELS),
        synonyms=mine.parent / "synonyms.csv",
        formats=formats or "triplets",
        **more,
    )
    return made.folder, made.sheet


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_negatives_are_only_what_was_judged_to_be_clearly_irrelevant(mine: Path) -> None:
    folder, sheet = written(mine)
    rows = [row for row in lines(folder / "provenance.jsonl") if row["role"] == "negative"]
    assert [(row["query"], row["document"], row["by"], row.get("said", "")) for row in rows] == [
        ("a", "clear", ["one", "two"], "0, 0"),
        ("a", "person", ["1 of the reviewers"], ""),
        ("c", "old", ["mine"], ""),
    ]
    assert sheet.left_out == {
        "doubtful": 2,
        "copy of a relevant document": 1,
        "names the answer": 1,
        "page of a relevant document": 1,
        "relevant to a query of its group": 1,
    }
    assert (sheet.queries, sheet.positives, sheet.negatives, sheet.reasoned) == (4, 5, 3, 1)
    assert sheet.labelled_by == {"mine": 6, "one": 1, "two": 1, "1 of the reviewers": 1}


def test_each_format_has_the_columns_of_its_library(mine: Path) -> None:
    folder, sheet = written(mine, "triplets", "negatives", "listwise", "flagembedding", "trl", negatives=2)
    first, asked = TEXTS["r1"], QUESTIONS["a"]
    clear, person = TEXTS["clear"], TEXTS["person"]
    pair = {"anchor": asked, "positive": first}
    assert lines(folder / "triplets.jsonl")[:2] == [{**pair, "negative": clear}, {**pair, "negative": person}]
    rows = lines(folder / "negatives.jsonl")
    assert rows[0] == {**pair, "negative_1": clear, "negative_2": person}
    assert rows[1] == {
        "anchor": QUESTIONS["c"], "positive": TEXTS["r3"], "negative_1": TEXTS["old"], "negative_2": TEXTS["old"],
    }  # fmt: skip
    listed = {"query": asked, "docs": [first, clear, person], "labels": [1.0, 0.0, 0.0]}
    assert lines(folder / "listwise.jsonl")[0] == listed
    assert lines(folder / "flagembedding.jsonl")[0] == {"query": asked, "pos": [first], "neg": [clear, person]}
    assert lines(folder / "trl.jsonl") == [{"prompt": asked, "completion": "The toe points to gout."}]
    assert {name: each.rows for name, each in sheet.files.items()} == {
        "triplets.jsonl": 3, "negatives.jsonl": 2, "listwise.jsonl": 2, "flagembedding.jsonl": 2, "trl.jsonl": 1,
    }  # fmt: skip


def test_without_judged_negatives_the_set_has_positives_only_and_says_so(mine: Path) -> None:
    folder, sheet = written(mine, negatives=0)
    assert sheet.negatives == 0 and "positives only" in (folder / "README.md").read_text(encoding="utf-8")
    assert lines(folder / "triplets.jsonl")[0] == {"anchor": QUESTIONS["a"], "positive": TEXTS["r1"]}
    assert len(lines(folder / "triplets.jsonl")) == 5


def test_a_fold_is_trained_without_its_groups_and_without_their_relevant_documents(mine: Path) -> None:
    write_jsonl(mine / "qrels.jsonl", [*lines(mine / "qrels.jsonl"), {"q_id": "d", "p_id": "r1", "score": 0}])
    folder, _ = written(mine, "flagembedding", folds=2)
    folds = {row["query"]: row["fold"] for row in lines(folder / "folds.jsonl")}
    assert folds["a"] == folds["b"] and set(folds.values()) == {1, 2}
    for fold in (1, 2):
        sheet = TrainingSheet.read(folder / f"fold-{fold}" / "training.json")
        rows = lines(folder / f"fold-{fold}" / "flagembedding.jsonl")
        assert {row["query"] for row in rows}.isdisjoint(QUESTIONS[query] for query in folds if folds[query] == fold)
        assert sheet.fold == fold and sheet.overlaps[0].fold == fold
        assert sheet.overlaps[0].words == "no overlap found" and sheet.overlaps[0].queries == 2
    without = lines(folder / f"fold-{folds['a']}" / "flagembedding.jsonl")
    assert all(TEXTS["r1"] not in row["neg"] for row in without)


def test_a_reasoning_text_is_needed_for_trl(mine: Path) -> None:
    write_jsonl(mine / "query.jsonl", [{"id": name, "text": asked} for name, asked in QUESTIONS.items()])
    with error_states("mine", "reasoning"):
        written(mine, "trl")


def test_a_known_test_set_is_written_with_folds_only_or_if_it_is_allowed(tmp_path: Path) -> None:
    with error_states("demo/Biology", "folds", "allow_test_set"):
        r2med.training_data("demo/Biology", tmp_path / "train")
    assert not (tmp_path / "train").exists()
    with error_states("demo/Biology", "SciFact"):
        r2med.training_data("demo/Biology", tmp_path / "train", allow_test_set="SciFact")
    assert r2med.training_data("demo/Biology", tmp_path / "folds", folds=2).sheet.allowed_test_set == ""
    allowed = r2med.training_data("demo/Biology", tmp_path / "train", allow_test_set="demo/Biology")
    assert allowed.sheet.allowed_test_set == "demo/Biology"
    assert "demo/Biology is a known test set" in (tmp_path / "train" / "README.md").read_text(encoding="utf-8")


def test_a_part_of_a_known_test_set_is_refused_too_whatever_its_ids_and_its_name_are(tmp_path: Path) -> None:
    demo = r2med.load("demo/Biology")
    queries = {f"new {each.id}": each.text.upper() for each in demo.queries[:4]}
    part = r2med.Dataset.of(queries, demo.corpus, {query: demo.qrels[query[4:]] for query in queries})
    with error_states("demo/Biology", "allow_test_set"):
        r2med.training_data(part, tmp_path / "train")
    assert not (tmp_path / "train").exists()
    allowed = r2med.training_data(part, tmp_path / "train", allow_test_set="demo/Biology")
    assert allowed.sheet.allowed_test_set == "demo/Biology"


def test_the_datasheet_compares_the_rows_with_every_known_test_set_at_hand(tmp_path: Path) -> None:
    demo = r2med.load("demo/Biology")
    taken = demo.queries[0].text
    own = r2med.Dataset.of({"1": taken, "2": text(20)}, {"x": text(), "y": text()}, {"1": {"x": 1}, "2": {"y": 1}})
    sheet = r2med.training_data(own, tmp_path / "train").sheet
    overlaps = {each.dataset: each for each in sheet.overlaps}
    assert overlaps["demo/Biology"].touched == overlaps["demo/Biology"].questions == 1
    assert overlaps["demo/MedQA-Diag"].words == "no overlap found"
    assert "SciFact" in sheet.not_compared


def test_judged_candidates_of_a_build_are_negatives_and_its_models_are_named(mine: Path) -> None:
    candidates = [
        {"q_id": "d", "p_id": "clear", "label": "negative", "by": "judges", "relevance": 1.0, "support": 0.5},
        {"q_id": "d", "p_id": "middle", "label": "discarded", "by": "judges", "relevance": 3.0, "support": 2.0},
    ]
    write_jsonl(mine / "candidates.jsonl", candidates)
    activity = {"name": "rewrite", "prov:wasAssociatedWith": [{"name": "r2med 1"}, {"name": "gpt-x"}]}
    (mine / "croissant.json").write_text(json.dumps({"prov:wasGeneratedBy": [activity]}))
    folder, sheet = written(mine)
    [row] = [row for row in lines(folder / "provenance.jsonl") if row["query"] == "d" and row["role"] == "negative"]
    assert (row["document"], row["by"], row["said"]) == ("clear", ["judges of the build"], "relevance 1, support 0.5")
    assert sheet.models == {"rewrite": ("gpt-x",)} and sheet.left_out["doubtful"] == 3


def person(document: str, grade: int) -> OverlayLabel:
    return OverlayLabel(dataset="mine", query="a", document=document, grade=grade, reviewer="x")


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ([judged("r1", "0")], None),
        ([judged("clear", "0"), judged("clear", "3", "two"), person("clear", 0)], None),
        ([judged("clear", "1"), judged("clear", "1", "two"), person("clear", 0)], None),
        ([person("clear", 1), judged("clear", "0")], "positive"),
        ([judged("clear", "0"), judged("clear", "2", repeat=1)], None),
        ([judged("clear", "0"), person("clear", 0)], "negative"),
    ],
    ids=("dataset", "judge and person", "middle and person", "person first", "repeat", "all agree"),
)
def test_a_negative_is_what_neither_the_dataset_nor_a_person_nor_a_judge_calls_relevant(
    labels: list[OverlayLabel], role: str | None, mine: Path, tmp_path: Path
) -> None:
    others = [person("r3", 1)]  # the query keeps a relevant document
    overlays = [Overlay(f"o{number}", (label,)) for number, label in enumerate((*labels, *others))]
    folder = r2med.training_data(str(mine), tmp_path / "train", overlays=overlays).folder
    rows = {(row["query"], row["document"]): row["role"] for row in lines(folder / "provenance.jsonl")}
    assert rows.get(("a", labels[0].document)) == role


def test_a_term_of_two_concepts_joins_the_queries_of_both(mine: Path, tmp_path: Path) -> None:
    answers = {"a": "MI", "b": "heart attack", "c": "mitral insufficiency", "d": "scurvy"}
    rows = [{"id": name, "text": asked, "answer": answers[name]} for name, asked in QUESTIONS.items()]
    write_jsonl(mine / "query.jsonl", rows)
    corpus = lines(mine / "corpus.jsonl")
    write_jsonl(mine / "corpus.jsonl", [*corpus, {"id": "leaky", "text": f"{text()} mitral insufficiency {text(5)}"}])
    table = (
        "concept,term\nInfarction,heart attack\nInfarction,MI\nRegurgitation,MI\nRegurgitation,mitral insufficiency\n"
    )
    (tmp_path / "synonyms.csv").write_text(table)
    synonyms = Synonyms.read(tmp_path / "synonyms.csv")
    assert query_groups(r2med.load(str(mine)), synonyms).groups[0] == ("a", "b", "c")
    overlay = Overlay("judged", (judged("leaky", "0"),))
    sheet = r2med.training_data(
        str(mine), tmp_path / "train", overlays=overlay, synonyms=tmp_path / "synonyms.csv"
    ).sheet
    assert sheet.left_out["names the answer"] == 1


def test_the_pages_of_removed_copies_are_pages_of_a_document(mine: Path) -> None:
    rows = [{"id": "r1", "page": "p"}, {"id": "page", "page": "q", "copies": ["p"]}, {"id": "r4", "copies": ["p"]}]
    write_jsonl(mine / "provenance.jsonl", rows)
    _, sheet = written(mine)
    assert sheet.left_out["page of a relevant document"] == 1
    assert (sheet.groups, sheet.largest_group) == (2, 3)


def test_a_fold_has_no_negative_that_repeats_a_text_of_its_queries(mine: Path, tmp_path: Path) -> None:
    words = TEXTS["r1"].split()
    copies = {
        "same": TEXTS["r1"].upper(), "again": TEXTS["r1"].upper(), "half": " ".join([*words[:25], text(20)]),
        "asked": f"{text()} {QUESTIONS['a']}", "fine": text(),
    }  # fmt: skip
    corpus = [*lines(mine / "corpus.jsonl"), *({"id": name, "text": each} for name, each in copies.items())]
    write_jsonl(mine / "corpus.jsonl", corpus)
    negatives = [{"q_id": "d", "p_id": name, "score": 0} for name in copies]
    write_jsonl(mine / "qrels.jsonl", [*lines(mine / "qrels.jsonl"), *negatives])
    made = r2med.training_data(str(mine), tmp_path / "train", folds=2, formats="flagembedding")
    folds = {row["query"]: row["fold"] for row in lines(made.folder / "folds.jsonl")}
    assert folds["a"] != folds["d"]
    rows = lines(made.folder / f"fold-{folds['a']}" / "flagembedding.jsonl")
    [row] = [row for row in rows if row["query"] == QUESTIONS["d"]]
    assert row["neg"] == [copies["fine"]]
    [sheet] = [each for each in made.fold_sheets if each.fold == folds["a"]]
    assert sheet.left_out["repeats a text of a held-out query"] == 4
    assert sheet.overlaps[0].words == "no overlap found"


def test_files_that_are_not_of_a_training_set_are_never_overwritten(mine: Path) -> None:
    folder, _ = written(mine, folds=2)
    written(mine)
    assert not (folder / "fold-1").exists()
    for name in ("model.safetensors", "mine/notes.txt", "fold-1/model.safetensors"):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("weights")
        with error_states(name, "would be lost"):
            written(mine)
        assert file.read_text() == "weights"
        file.unlink()
    written(mine)


def test_a_format_is_found_in_any_case_and_a_wrong_one_is_named_with_the_nearest(mine: Path) -> None:
    folder, _ = written(mine, "TRL")
    assert (folder / "trl.jsonl").is_file()
    with error_states("'triplet'", "triplets"):
        written(mine, "triplet")


def test_without_a_relevant_document_there_is_nothing_to_train_with(mine: Path) -> None:
    write_jsonl(mine / "qrels.jsonl", [{"q_id": "a", "p_id": "clear", "score": 0}])
    with error_states("mine", "relevant"):
        r2med.training_data(str(mine), mine.parent / "train")
    assert not (mine.parent / "train").exists()


def test_a_query_has_at_most_as_many_negatives_as_asked_for(mine: Path) -> None:
    for most in (1, 2):
        folder, sheet = written(mine, "flagembedding", negatives=most)
        rows = {row["query"]: row["neg"] for row in lines(folder / "flagembedding.jsonl")}
        assert max(map(len, rows.values())) == most and len(rows[QUESTIONS["a"]]) == most
        assert sheet.negatives == sum(map(len, rows.values()))


def test_the_same_data_give_the_same_bytes(mine: Path) -> None:
    folder, _ = written(mine, "triplets", "listwise")
    before = {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}
    folder, _ = written(mine, "triplets", "listwise")
    assert before == {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}
