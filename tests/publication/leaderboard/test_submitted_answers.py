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
from r2med.data import Dataset, load
from r2med.data.dataset import Query
from r2med.data.runs.run import Run
from r2med.evaluation.records.answer_facts import AnswerFacts, GivenAnswer
from r2med.evaluation.records.record import Record
from r2med.foundation.store import Store
from r2med.publication.leaderboard.submission import read_entry
from r2med.publication.leaderboard.verification import Verification
from support.answer_records import answer_record, answered, rescored
from support.searching_agents import scripted_runtime, village
from support.synthetic_answers import with_answers, write

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


def without_nuggets(record: Record) -> Record:
    """Return a record of answers that were not matched with nuggets."""
    assert record.answers.judge is not None
    controls = {kind: count for kind, count in record.answers.judge.controls.items() if "nuggets" not in kind}
    judge = record.answers.judge.model_copy(update={"controls": controls})
    settings = {**record.settings, "nuggets": ""}
    return with_answers(record, nuggets="", judge=judge).model_copy(update={"settings": settings})


def written(answers: Sequence[GivenAnswer], dataset: Dataset, ranking: Path, folder: Path, **facts: Any) -> Path:
    """Write answers with their record and submit them with their ranking. Return the entry; files lie beside it."""
    [path] = [file for file in ranking.rglob("*.json") if not file.name.startswith(".") and "answers" not in file.name]
    plain = Record.read(path)
    record = answer_record(answers, dataset)
    settings = {**record.settings, "retrieval": plain.key, "nuggets": ""}
    of_answers = {name: facts.pop(name) for name in [*facts] if name in AnswerFacts.model_fields}
    record = with_answers(without_nuggets(record), **of_answers)
    record = record.model_copy(update={"settings": settings, **facts})
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
    assert of_answers.unverified == ("the grades of the judge gpt4",)
    assert "matches; not verified: the grades of the judge gpt4" in str(of_answers)
    [kept] = read_entry(entry).answers
    assert kept.answers.file is not None and "/" not in kept.answers.file.file


def changed(change: Callable[[GivenAnswer], dict[str, Any]], condition: str = "retrieved") -> Any:
    """Return a function that changes the first answer of a condition."""

    def apply(answers: Sequence[GivenAnswer]) -> list[GivenAnswer]:
        first = next(each for each in answers if each.condition == condition)
        return [each.model_copy(update=change(each)) if each is first else each for each in answers]

    return apply


def cite_unknown(answer: GivenAnswer) -> dict[str, Any]:
    return {"sentences": (answer.sentences[0].model_copy(update={"documents": ("another",)}),)}


def better(answer: GivenAnswer) -> dict[str, Any]:
    return {"scores": {**answer.scores, "accuracy": 1.0}, "grade": "wrong"}


FORGERIES = {
    "has an accuracy that its grade does not give": changed(better),
    "names document 'another', which MedQA-Diag does not have": changed(cite_unknown),
    "names document 'nowhere', which MedQA-Diag does not have": changed(lambda answer: {"read": ("nowhere",)}),
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
    counts = {condition: {"refused": len(dataset.queries)} for condition in ("closed book", "retrieved")}
    record = answer_record(honest, dataset)
    unknown = {**record.queries, "nowhere": next(iter(record.queries.values()))}
    entry = written(honest, dataset, ranking, tmp_path, queries=unknown)
    assert "its questions and their facts are not those of" in checked(entry, ranking, tmp_path)[1].fault
    entry = written(honest, dataset, ranking, tmp_path, statuses={**record.answers.statuses, **counts})
    assert "its counts of answers in the condition closed book are wrong" in checked(entry, ranking, tmp_path)[1].fault
    [answers] = tmp_path.rglob("*.answers.jsonl")
    answers.write_text(answers.read_text().replace("gout", "flu") + "\n")
    assert "its file of answers is missing or was changed" in checked(entry, ranking, tmp_path)[1].fault


def chosen(query: Query, options: tuple[str, ...], is_right: bool) -> GivenAnswer:
    """Return the choice of the reference, or of another option."""
    choice = next(number for number, option in enumerate(options) if (option == query.answer) == is_right)
    return GivenAnswer(
        query=query.id,
        condition="closed book",
        status="answered",
        text=options[choice],
        options=options,
        choice=choice,
        by_rule=is_right,
        scores={"accuracy": float(is_right)},
    )


CHOICES: dict[str, Callable[[Query, tuple[str, ...]], GivenAnswer]] = {
    "": lambda query, options: chosen(query, options, is_right=True),
    "has other options than those of the query": lambda query, _: chosen(query, (query.answer, "x"), is_right=True),
    "has scores that are not those of its choice": lambda query, options: chosen(
        query, options, is_right=False
    ).model_copy(update={"by_rule": True, "scores": {"accuracy": 1.0}}),
    "has accuracy 1.0000, but its choice gives 0.0000": lambda query, options: chosen(
        query, options, is_right=False
    ).model_copy(update={"scores": {"accuracy": 1.0}}),
}


@pytest.mark.parametrize("fault", CHOICES)
def test_the_scores_of_choices_are_computed_again(fault: str, dataset: Dataset, tmp_path: Path) -> None:
    asked = [query for query in dataset.queries if query.answer and query.id in dataset.qrels]
    answers = [CHOICES[fault](query, options_of(query, asked)) for query in asked]
    write(answer_record(answers, dataset), tmp_path, answers)
    submit([tmp_path], tmp_path / "entry.json")
    [of_answers] = verify([tmp_path / "entry.json"], tmp_path)
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
    body["answers"][0]["answers"]["mean"]["retrieved"]["accuracy"] = 1.0
    (tmp_path / "entry.json").write_text(json.dumps(body))
    [of_entry] = verify([tmp_path / "entry.json"], tmp_path)
    assert "was altered after it was written" in of_entry.fault
    assert Record.read(path).answers.mean["retrieved"]["accuracy"] < 1


def test_answers_of_an_agent_match_without_its_conversations(tmp_path: Path, store: Store) -> None:
    data = village(tmp_path / "set")
    with scripted_runtime(tmp_path) as runtime:
        r2med.answer(
            "agent(script, calls=tags, turns=8)",
            data=data,
            conditions=["closed book", "searched"],
            out=tmp_path / "results",
            setup=runtime,
        )
    submit([tmp_path / "results"], tmp_path / "entry.json", max_failures=1.0)
    for file in tmp_path.rglob("*.traces.json"):
        file.unlink()
    results = verify(tmp_path / "entry.json", tmp_path / "results", [load(data)], store=store)
    assert [each.fault for each in results] == ["", ""]
