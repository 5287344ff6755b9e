"""At least 150 forgeries of one honest entry: none passes `verify`, and none is on the board without its mark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import r2med
from r2med import submit, verify
from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.reading import asked_queries
from r2med.data import load
from r2med.data.nuggets_file import nuggets_of
from r2med.data.runs.run import Run
from r2med.evaluation.records.answer_collection import StoredAnswers
from r2med.evaluation.records.answer_record import GivenAnswer
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import sha256
from r2med.publication.leaderboard.board_entries import NOT_VERIFIED, SubmittedRecords, read_entries
from r2med.publication.leaderboard.entry_verdicts import Verdicts
from r2med.publication.leaderboard.verification import Verification
from support.answer_records import answer_record, answered, rescored
from support.forgeries import Case, forgeries, searched_forgeries
from support.searching_agents import scripted_runtime, village
from support.synthetic_answers import write

DATA = "demo/Medical-Sciences"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """An entry with a locked record, one with recorded texts, open answers with nuggets and a judge, and choices."""
    folder = tmp_path_factory.mktemp("honest")
    results, store, dataset = folder / "results", Store(folder / "store"), load(DATA)
    r2med.lock("bm25", DATA, folder / "plan.lock", store=store)
    r2med.run(data=DATA, out=results, lock=folder / "plan.lock", store=store)
    r2med.run("hyde(author) → bm25", DATA, out=results, store=store)
    [path] = results.rglob("bm25-??????????.json")
    record = Record.read(path)
    run = Run.read(next(results.rglob("bm25-*.trec.gz")), encoded=True)
    nuggets = nuggets_of(dataset)
    assert nuggets is not None
    lists = {query: [document for document, _ in run.top(query, 3)] for query in run.queries}
    open_answers = [
        rescored(each, dataset, nuggets.by_query.get(each.query, ())) for each in answered(dataset, lists=lists)
    ]
    asked = asked_queries(dataset)
    choices = [
        GivenAnswer(
            query=query.id,
            condition="closed book",
            status="answered",
            text=(options := options_of(query, asked))[0],
            options=options,
            choice=0,
            by_rule=options[0] == query.answer,
            scores={"accuracy": float(options[0] == query.answer)},
        )
        for query in asked
    ]
    ndcg = {query: values["nDCG@10"] for query, values in record.per_query.items()}
    for given in (open_answers, choices):
        made = answer_record(given, dataset, retrieval={query.id: ndcg[query.id] for query in asked})
        of_nuggets = nuggets.digest if given is open_answers else ""
        settings = {**made.settings, "retrieval": record.key, "nuggets": of_nuggets}
        write(made.model_copy(update={"nuggets": of_nuggets, "settings": settings}), folder / made.form, given)
    submit([results, folder / "open", folder / "choice"], folder / "entry.json")
    files = {f"{sha256(file)}.gz": file.read_bytes() for file in results.rglob("*.trec.gz")}
    files |= {f"{sha256(file)}.answers.jsonl": file.read_bytes() for file in folder.rglob("*.answers.jsonl")}
    files["plan.lock"] = (folder / "plan.lock").read_bytes()
    return Case(json.loads((folder / "entry.json").read_text()), files, dataset)


def checked(case: Case, folder: Path, store: Store) -> tuple[list[Verification], SubmittedRecords]:
    """Write a case, verify it, and read it as the board does, with the verdicts."""
    (folder / "entries").mkdir(parents=True)
    (folder / "runs").mkdir()
    case.write(folder / "entries/entry.json", folder / "runs")
    found = verify(folder / "entries", folder / "runs", [case.dataset], store=store, verdicts=folder / "verdicts.json")
    try:
        return found, read_entries(folder / "entries", verdicts=Verdicts.read(folder / "verdicts.json"))
    except UserError:  # nothing of it can be shown
        return found, SubmittedRecords()


def is_marked(each: StoredRecord | StoredAnswers) -> bool:
    name = each.record.display_name if isinstance(each, StoredRecord) else each.record.reader
    return NOT_VERIFIED in name and bool(each.unverified)


def _false(case: Case, found: list[Verification], shown: SubmittedRecords) -> Iterator[StoredRecord | StoredAnswers]:
    """Yield what is shown of the records that do not match. Each is recognised by its content."""
    parts = [*case.body["records"], *case.body["answers"]]
    faults = {digest(part["per_query"]) + part["key"]: each.fault for part, each in zip(parts, found, strict=False)}
    for kept in (*shown.records, *shown.answers):
        if faults[digest(kept.record.model_dump(mode="json")["per_query"]) + kept.record.key]:
            yield kept


def test_the_honest_entry_matches_and_has_no_mark(honest: Case, tmp_path: Path, store: Store) -> None:
    found, shown = checked(honest.copied(), tmp_path / "case", store)
    assert [each.fault for each in found] == [""] * 4
    assert [each.record.display_name for each in shown.records] == ["bm25", "hyde(author) → bm25"]
    assert not any(each.unverified for each in (*shown.records, *shown.answers))


@pytest.mark.slow
def test_no_forgery_passes_and_none_is_shown_without_its_mark(honest: Case, tmp_path: Path, store: Store) -> None:
    table = list(forgeries(honest))
    names = [name for name, _ in table]
    assert len(set(names)) == len(names) >= 150
    passed, unmarked, shown_as = [], [], []
    for number, (name, edit) in enumerate(table):
        case = honest.copied()
        edit(case)
        found, shown = checked(case, tmp_path / str(number), store)
        faults = [each for each in found if each.fault]
        if not faults:
            passed.append(name)
        if any(not is_marked(each) for each in _false(case, found, shown)):
            unmarked.append(name)
        if any("\n" in each.fault for each in found):
            shown_as.append(name)
    assert passed == []
    assert unmarked == []
    assert shown_as == []


@pytest.mark.slow
def test_no_forgery_is_shown_without_its_mark_before_it_was_verified(honest: Case, tmp_path: Path) -> None:
    """Without verdicts, every record of an entry has the mark, whatever it states."""
    for number, (name, edit) in enumerate(forgeries(honest)):
        case = honest.copied()
        edit(case)
        folder = tmp_path / str(number)
        folder.mkdir()
        case.write(folder / "entry.json", folder)
        try:
            shown = read_entries(folder)
        except UserError:
            continue
        assert all(NOT_VERIFIED in each.record.display_name for each in shown.records), name
        assert all(NOT_VERIFIED in each.record.reader for each in shown.answers), name


@pytest.fixture(scope="module")
def honest_agent(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """An entry with the answers of an agent that searches, and with its ranking."""
    folder = tmp_path_factory.mktemp("agent")
    data = village(folder / "set")
    with scripted_runtime(folder) as opened:
        asked = {"data": data, "conditions": ["closed book", "searched"], "out": folder / "results", "setup": opened}
        r2med.answer("agent(script, calls=tags, turns=8)", **asked)
    submit([folder / "results"], folder / "entry.json", max_failures=1.0)
    endings = {"*.trec.gz": ".gz", "*.answers.jsonl": ".answers.jsonl", "*.traces.json": ".traces.json"}
    found = [(file, ending) for form, ending in endings.items() for file in (folder / "results").rglob(form)]
    files = {f"{sha256(file)}{ending}": file.read_bytes() for file, ending in found}
    return Case(json.loads((folder / "entry.json").read_text()), files, load(data))


def test_an_honest_agent_matches_and_no_answer_without_its_conversation_does(
    honest_agent: Case, tmp_path: Path, store: Store
) -> None:
    found, shown = checked(honest_agent.copied(), tmp_path / "honest", store)
    assert [each.fault for each in found] == ["", ""] and not any(each.unverified for each in shown.answers)
    passed = []
    for number, (name, edit) in enumerate(searched_forgeries()):
        case = honest_agent.copied()
        edit(case)
        *_, of_answers = checked(case, tmp_path / str(number), store)[0]
        if not of_answers.fault or "\n" in of_answers.fault:
            passed.append(name)
    assert passed == []
