"""Answer records in entries: what needs no LLM is computed again, and what does not match is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med import UserError, submit, verify
from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answer_scores import scores_of
from r2med.assessment.answers.citations import cited_sentences
from r2med.data import Dataset, load
from r2med.data.nuggets_file import nuggets_of
from r2med.data.runs.run import Run
from r2med.evaluation.records.answer_record import AnswerRecord, GivenAnswer
from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.publication.leaderboard.submission import read_entry
from r2med.publication.leaderboard.verification import Verification
from support.answer_records import answer_record, answered, rescored
from support.synthetic_answers import write

DATA = "demo/MedQA-Diag"


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of BM25 with its run."""
    folder = tmp_path_factory.mktemp("ranking")
    r2med.run("bm25", DATA, out=folder / "results", store=Store(folder / "store"))
    return folder / "results"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load(DATA)


@pytest.fixture(scope="module")
def honest(ranking: Path, dataset: Dataset) -> list[GivenAnswer]:
    """Answers as `r2med answer` scores them: of the first passages of the run, with citations of their texts."""
    [run_file] = ranking.rglob("*.trec.gz")
    run = Run.read(run_file, encoded=True)
    lists = {query: [name for name, _ in run.top(query, 3)] for query in run.queries}
    return [rescored(each, dataset) for each in answered(dataset, lists=lists)]


def without_nuggets(record: AnswerRecord) -> AnswerRecord:
    """Return a record of answers that were not matched with nuggets."""
    assert record.judge is not None
    controls = {kind: count for kind, count in record.judge.controls.items() if "nuggets" not in kind}
    judge = record.judge.model_copy(update={"controls": controls})
    return record.model_copy(
        update={"nuggets": "", "settings": {**record.settings, "nuggets": ""}, "judge": judge, "retrieval": {}}
    )


def written(answers: Sequence[GivenAnswer], dataset: Dataset, ranking: Path, folder: Path, **facts: Any) -> Path:
    """Write answers with their record and submit them with their ranking. Return the entry; files lie beside it."""
    [path] = [file for file in ranking.rglob("*.json") if not file.name.startswith(".") and "answers" not in file.name]
    plain = Record.read(path)
    ndcg = {query: values["nDCG@10"] for query, values in plain.per_query.items()}
    record = answer_record(answers, dataset)
    nuggets = facts.get("nuggets", "")
    settings = {**record.settings, "retrieval": plain.key, "nuggets": nuggets}
    record = without_nuggets(record).model_copy(
        update={"nuggets": nuggets, "settings": settings, "retrieval": ndcg, **facts}
    )
    write(record, folder, answers)
    entry = folder / "entry.json"
    submit([ranking, folder], entry)
    return entry


def checked(entry: Path, ranking: Path, folder: Path) -> list[Verification]:
    for file in ranking.rglob("*.trec.gz"):
        (folder / file.name).write_bytes(file.read_bytes())
    return verify([entry], folder)


def test_honest_answers_match_and_grades_of_llms_are_not_verified(
    honest: list[GivenAnswer], dataset: Dataset, ranking: Path, tmp_path: Path
) -> None:
    entry = written(honest, dataset, ranking, tmp_path)
    of_ranking, of_answers = checked(entry, ranking, tmp_path)
    assert (of_ranking.fault, of_answers.fault) == ("", "")
    assert of_answers.system == "bm25 · smollm2"
    assert of_answers.unverified == ("that smollm2 gave these answers", "the grades of the judge gpt4")
    assert "matches; not verified: that smollm2 gave these answers" in str(of_answers)
    [kept] = read_entry(entry).answers
    assert kept.answers is not None and "/" not in kept.answers.file


def changed(change: Callable[[GivenAnswer], dict[str, Any]], condition: str = "retrieved") -> Any:
    """Return a function that changes the first answer of a condition."""

    def apply(answers: Sequence[GivenAnswer]) -> list[GivenAnswer]:
        first = next(each for each in answers if each.condition == condition)
        return [each.model_copy(update=change(each)) if each is first else each for each in answers]

    return apply


def cite_unread(answer: GivenAnswer) -> dict[str, Any]:
    return {"sentences": (answer.sentences[0].model_copy(update={"documents": ("another",)}),)}


def irrelevant(answer: GivenAnswer) -> str:
    """Return a document that is not relevant to the query of an answer."""
    dataset = load(DATA)
    grades = dataset.qrels[answer.query]
    return next(document for document, _ in dataset.corpus if grades.get(document, 0) <= 0)


FORGERIES = {
    "cites document 'another', which was not read": changed(cite_unread),
    "which MedQA-Diag does not have": changed(lambda answer: {"read": ("nowhere",), "sentences": ()}),
    "but a closed book has no passages": changed(lambda answer: {"read": (irrelevant(answer),)}, "closed book"),
    "did not read the passages that are labelled as relevant": changed(
        lambda answer: {"read": (*answer.read, irrelevant(answer))}, "relevant"
    ),
    "did not read the first passages of its ranking": changed(lambda answer: {"read": answer.read[::-1]}),
    "has sentences or citations that are not those of its text": changed(lambda answer: {"text": "It is gout."}),
    "is stated as right by the rule": changed(lambda answer: {"by_rule": True, "scores": {"accuracy": 1.0}}, "random"),
    "has accuracy 1.0000, but its content gives 0.0000": changed(
        lambda answer: {"scores": {**answer.scores, "accuracy": 1.0}}, "random"
    ),
    "is stated as answered, but it is refused": changed(
        lambda answer: {"text": "I cannot answer this.", "sentences": cited_sentences("I cannot answer this.", ())},
        "closed book",
    ),
}


@pytest.mark.parametrize("fault", FORGERIES)
def test_forged_answers_are_refused(
    fault: str, honest: list[GivenAnswer], dataset: Dataset, ranking: Path, tmp_path: Path
) -> None:
    entry = written(FORGERIES[fault](honest), dataset, ranking, tmp_path)
    _, of_answers = checked(entry, ranking, tmp_path)
    assert fault in of_answers.fault.replace("demo/", "")
    assert "\n" not in of_answers.fault
    assert of_answers.unverified == ()


def test_values_of_the_record_that_do_not_fit_are_refused(
    honest: list[GivenAnswer], dataset: Dataset, ranking: Path, tmp_path: Path
) -> None:
    entry = written(honest, dataset, ranking, tmp_path, nuggets="0" * 32)
    assert checked(entry, ranking, tmp_path)[1].fault == f"its nuggets are not those of {DATA} on this machine"
    ndcg = {query.id: 1.0 for query in dataset.queries}
    entry = written(honest, dataset, ranking, tmp_path, retrieval=ndcg)
    assert "which is not that of its ranking" in checked(entry, ranking, tmp_path)[1].fault
    counts = {condition: {"refused": len(dataset.queries)} for condition in ("closed book", "retrieved")}
    record = answer_record(honest, dataset)
    entry = written(honest, dataset, ranking, tmp_path, statuses={**record.statuses, **counts})
    assert "its counts of answers in the condition closed book are wrong" in checked(entry, ranking, tmp_path)[1].fault
    [answers] = tmp_path.rglob("*.answers.jsonl")
    answers.write_text(answers.read_text().replace("gout", "flu") + "\n")
    assert "its file of answers is missing or was changed" in checked(entry, ranking, tmp_path)[1].fault


def test_options_of_a_choice_are_those_of_the_query(dataset: Dataset, tmp_path: Path) -> None:
    asked = [query for query in dataset.queries if query.answer and query.id in dataset.qrels]

    def chosen(options: Callable[[Any], tuple[str, ...]]) -> list[GivenAnswer]:
        answers = []
        for query in asked:
            shown = options(query)
            choice = shown.index(query.answer)
            answers.append(
                GivenAnswer(
                    query=query.id,
                    condition="closed book",
                    status="answered",
                    text=query.answer,
                    options=shown,
                    choice=choice,
                    by_rule=True,
                    scores={"accuracy": 1.0},
                )
            )
        return answers

    for options, fault in (
        (lambda query: options_of(query, asked), ""),
        (lambda query: (query.answer, "a tree"), "has other options than those of the query"),
    ):
        answers = chosen(options)
        folder = tmp_path / (fault or "honest")
        write(answer_record(answers, dataset), folder, answers)
        submit([folder], folder / "entry.json")
        [of_answers] = verify([folder / "entry.json"], folder)
        assert fault in of_answers.fault and bool(fault) == bool(of_answers.fault)


def test_answers_without_their_file_and_means_that_do_not_fit_cannot_be_submitted(
    honest: list[GivenAnswer], dataset: Dataset, tmp_path: Path
) -> None:
    path = write(answer_record(honest, dataset), tmp_path, honest)
    [file] = tmp_path.rglob("*.answers.jsonl")
    file.unlink()
    with pytest.raises(UserError, match="is missing: r2med answer makes it again"):
        submit([path], tmp_path / "entry.json")
    write(answer_record(honest, dataset), tmp_path, honest)
    submit([path], tmp_path / "entry.json")
    body = json.loads((tmp_path / "entry.json").read_text())
    body["answers"][0]["mean"]["retrieved"]["accuracy"] = 1.0
    (tmp_path / "entry.json").write_text(json.dumps(body))
    [of_entry] = verify([tmp_path / "entry.json"], tmp_path)
    assert "was altered after it was written" in of_entry.fault
    assert AnswerRecord.read(path).mean["retrieved"]["accuracy"] < 1


def test_two_entries_may_have_the_same_answers_and_two_readers_may_not(
    honest: list[GivenAnswer], dataset: Dataset, tmp_path: Path
) -> None:
    closed = [each for each in honest if each.condition == "closed book"]
    entries = []
    for number, (reader, given) in enumerate(
        (("smollm2", closed), ("smollm2", closed), ("smollm2", honest), ("qwen-7b", closed))
    ):
        folder = tmp_path / str(number)
        write(without_nuggets(answer_record(given, dataset, reader=reader)), folder, given)
        submit([folder], folder / "entry.json")
        entries.append(folder / "entry.json")
    first, again, without_run = verify(entries[:3], tmp_path)
    assert first.fault == again.fault == ""  # the same content is one row of a board
    for order in (entries, entries[::-1]):
        found = {each.entry: each.fault for each in verify(order, tmp_path)}
        assert "its answers are the same as those of smollm2" in found[entries[3]]
        assert "its answers are the same as those of qwen-7b" in found[entries[0]]
    assert "the record of its ranking is not in the entry: submit that of bm25 too" in without_run.fault


def test_the_arithmetic_of_nuggets_is_repeated_with_the_nuggets_of_the_dataset(tmp_path: Path) -> None:
    dataset = load("demo/Medical-Sciences")
    nuggets = nuggets_of(dataset)
    assert nuggets is not None

    def matched(answer: GivenAnswer) -> GivenAnswer:
        mine = nuggets.by_query.get(answer.query, ())
        answer = rescored(answer, dataset)
        said = {each.id: "support" if each.vital else "partial" for each in mine}
        answer = answer.model_copy(update={"nuggets": said, "statements": len(answer.sentences), "statements_found": 1})
        return answer.model_copy(update={"scores": scores_of(answer, mine, dataset.qrels[answer.query], judged=True)})

    answers = [matched(each) for each in answered(dataset) if each.condition in ("closed book", "relevant")]
    assert any(each.scores.get("vital-recall") == 1 for each in answers)
    first = next(each for each in answers if "nugget-recall" in each.scores and each.scores["nugget-recall"] < 1)
    forged = first.model_copy(update={"scores": {**first.scores, "nugget-recall": 1.0}})
    for fault, given in (("", answers), ("has nugget-recall 1.0000", [forged if a is first else a for a in answers])):
        folder = tmp_path / (fault or "honest")
        record = answer_record(given, dataset)
        settings = {**record.settings, "nuggets": nuggets.digest}
        record = record.model_copy(update={"nuggets": nuggets.digest, "settings": settings})
        write(record, folder, given)
        submit([folder], folder / "entry.json")
        [of_answers] = verify([folder / "entry.json"], folder)
        assert fault in of_answers.fault
        assert bool(fault) == bool(of_answers.fault)
