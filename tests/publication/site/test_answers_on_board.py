"""The board with answer records: the page Answers, the answers below a ranking, and no change without such records."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from r2med import submit
from r2med.data import load
from r2med.data.nuggets_file import Nugget, Nuggets
from r2med.evaluation.records.answer_facts import CitedSentence, GivenAnswer
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.store import Store
from r2med.foundation.store.files import sha256
from r2med.publication.leaderboard.entry_verdicts import NO_VERDICT, EntryVerdict, Verdicts
from r2med.publication.site import answer_texts, make_board
from r2med.publication.site.board_answers import read_board_answers
from support.answer_records import JUDGE, answer_record, answered
from support.facts import some_states
from support.synthetic_answers import with_answers, write

from .conftest import HOSTILE, Open, unreached, whole
from .test_pages import CONTRAST
from .test_site import value

DATA = "demo/Biology"
PLAIN, OTHER = "bm25", "bm25(scorer=lucene)"
READERS = ("smollm2", HOSTILE)
LONG = "A very long sentence. " * 1_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(DATA, Store(tmp_path_factory.mktemp("store")))


def changed(answers: list[GivenAnswer], reader: str) -> list[GivenAnswer]:
    """Return answers of which, with passages, the first is hostile, the second refused and the third abstains."""
    with_passages = [number for number, each in enumerate(answers) if each.condition == "retrieved"]
    first, second, third = with_passages[:3]
    given = list(answers)
    read = given[first].read
    sentences = (
        CitedSentence(text="Fingers wrinkle because vessels constrict.", documents=read[:2], supported=True),
        CitedSentence(text=HOSTILE, documents=("not-read",), unknown=1, supported=False),
    )
    given[first] = given[first].model_copy(update={"sentences": sentences, "why": HOSTILE, "text": HOSTILE})
    refused = {"status": "refused", "text": "", "sentences": (), "grade": None, "scores": {"accuracy": 0.0}}
    given[second] = given[second].model_copy(update=refused)
    sentences = (CitedSentence(text=LONG), CitedSentence(text="Never shown."))
    abstained = {"grade": "nothing", "remarks": ("another language",), "scores": {"accuracy": 0.0}}
    given[third] = given[third].model_copy(update={"text": LONG, "sentences": sentences, **abstained})
    return given if reader != "smollm2" else answers


@pytest.fixture(scope="module")
def records(dataset: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems; both readers answered with the passages of one of them, and one reader with those of the other."""
    results = tmp_path_factory.mktemp("records") / "results"
    for system in (PLAIN, OTHER):
        evaluate(system, dataset, results, store=Store(results.parent / "store"))
    shutil.copytree(results, results.parent / "bare")
    for system, reader in ((PLAIN, READERS[0]), (PLAIN, READERS[1]), (OTHER, READERS[0])):
        given = changed(answered(dataset), reader)
        write(answer_record(given, dataset, system, reader), results, given)
    return results


@pytest.fixture(scope="module")
def site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(tmp_path_factory.mktemp("home")))
        make_board([records.parent / "bare"], records.parent / "bare-board")
        return make_board([records], tmp_path_factory.mktemp("site") / "board").parent


def data_files(board: Path) -> dict[str, bytes]:
    return {str(path.relative_to(board)): path.read_bytes() for path in (board / "data").rglob("*.js")}


def test_all_other_data_files_are_those_of_a_board_without_answers(site: Path, records: Path) -> None:
    bare, full = data_files(records.parent / "bare-board"), data_files(site)
    assert {name for name in bare if bare[name] != full[name]} == {"data/site.js"}
    content = value(site, "site")
    assert "answers" not in value(records.parent / "bare-board", "site")
    assert [content["datasets"][number]["name"] for number in content.pop("answers")["datasets"]] == [DATA]
    assert content == value(records.parent / "bare-board", "site")


def test_a_row_has_the_means_of_its_record_and_the_gain_on_the_same_questions(site: Path, records: Path) -> None:
    (view,) = value(site, "answers")
    row = next(row for row in view["rows"] if (row["system"], row["reader"]) == (PLAIN, READERS[0]))
    kept = read_board_answers([records], collect([records]))
    record = next(each.record for each in kept if each.record.display_name == row["name"])
    mean = {condition: values["accuracy"] for condition, values in record.answers.mean.items()}
    accuracy = row["scores"]["retrieved"]["accuracy"]
    assert accuracy["value"] == pytest.approx(mean["retrieved"])
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert row["gain"]["value"] == pytest.approx(mean["retrieved"] - mean["closed book"])
    assert row["share"]["value"] == pytest.approx(row["gain"]["value"] / (mean["relevant"] - mean["closed book"]))
    assert "citation-support" not in row["scores"]["closed book"]
    size = len(record.queries)
    assert row["cost"] == row["costs"]["retrieved"]
    for condition, cost in record.answers.costs.items():
        assert row["costs"][condition]["dollars"] == pytest.approx(cost.dollars / size)
    searched = record.cost_of("retrieve").seconds / size
    assert row["cost"]["seconds"] == pytest.approx(record.answers.costs["retrieved"].seconds / size + searched)
    assert row["costs"]["closed book"]["seconds"] < row["costs"]["relevant"]["seconds"] < row["cost"]["seconds"]
    assert row["judge"]["names"] == [JUDGE]


def answer_of(site: Path, query: int, reader: int, condition: str = "retrieved") -> tuple[Any, Any]:
    """Return the file of the answers with the passages of the first system, and one of them."""
    (number,) = value(site, "site")["answers"]["datasets"]
    shown = value(site, f"explorer/{number}/a0-{query}")
    return shown, next(each for each in shown["readers"][reader]["answers"] if each["condition"] == condition)


def test_a_citation_of_what_was_not_read_is_unknown_and_long_texts_are_cut(site: Path) -> None:
    names = [each["reader"] for each in answer_of(site, 0, 0)[0]["readers"]]
    hostile = names.index(HOSTILE)
    _, answer = answer_of(site, 0, hostile)
    assert [{**sentence, "text": ""} for sentence in answer["sentences"]] == [
        {"text": "", "cited": [0, 1], "unknown": 0, "supported": True},
        {"text": "", "cited": [], "unknown": 2, "supported": False},
    ]
    _, answer = answer_of(site, 2, hostile)
    assert sum(len(sentence["text"]) for sentence in answer["sentences"]) == answer_texts.ANSWER_SHOWN
    assert answer["left_out"] == len(LONG) - answer_texts.ANSWER_SHOWN


def test_passages_that_no_ranking_shows_come_with_the_answer(site: Path, dataset: Any) -> None:
    (number,) = value(site, "site")["answers"]["datasets"]
    shown, answer = answer_of(site, 0, 0, "random")
    documents = [*value(site, f"explorer/{number}/q0")["documents"], *shown["more"]]
    expected = next(each for each in answered(dataset) if each.condition == "random" and each.query == "0")
    assert [documents[place]["id"] for place in answer["read"]] == list(expected.read)
    assert all(documents[place]["text"] for place in answer["read"])


def test_nuggets_have_their_texts_only_if_they_are_those_of_the_record(records: Path, dataset: Any) -> None:
    nuggets = Nuggets.of([Nugget("0", "n1", "Vessels constrict.", vital=False)])
    source = next(iter(read_board_answers([records], collect([records]))))
    reading = answer_texts._Reading(source.record.answers, ())
    assert answer_texts._known(reading, "0", nuggets) == {}
    reading = answer_texts._Reading(with_answers(source.record, nuggets=nuggets.digest).answers, ())
    known = answer_texts._known(reading, "0", nuggets)
    given = GivenAnswer(query="0", condition="retrieved", status="answered", nuggets={"n1": "support", "n2": "none"})
    assert list(answer_texts._nuggets(given, known)) == [
        {"text": "Vessels constrict.", "vital": False, "found": "support"},
        {"text": "n2", "vital": None, "found": "none"},
    ]


def test_a_record_that_cannot_be_shown_is_left_out_and_the_newest_counts(
    records: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    collection = collect([records])
    first = next(records.rglob("*.answers.json"))
    sound = Record.read(first)
    elsewhere = sound.dataset.model_copy(update={"fingerprint": "0" * 64})
    newer = {"created": "2027-01-01T00:00:00+00:00"}
    forged = {"answers": sound.answers.model_copy(update={"mean": {}})}
    changes: list[dict[str, Any]] = [{"dataset": elsewhere}, forged, {}, newer]
    for number, update in enumerate(changes):
        sound.model_copy(update=update).write(tmp_path / f"{number}.answers.json")
    with caplog.at_level(logging.WARNING):
        (kept,) = read_board_answers([tmp_path], collection)
    assert kept.path.name == "3.answers.json"
    some_states(caplog.messages, "shown as own/Biology")
    some_states(caplog.messages, "the board has no record of a system on its data")
    some_states(caplog.messages, "1.answers.json", "is left out")
    some_states(caplog.messages, "1 older record left out")


@pytest.fixture(scope="module")
def entries(records: Path, dataset: Any) -> Path:
    """An entry of two systems and a reader, and a later one that claims one of these cells again."""
    folder = records.parent / "entries"
    rankings = sorted(path for path in records.rglob("*.json") if "answers" not in path.name)
    answers = [path for path in records.rglob("*.answers.json") if Record.read(path).answers.reader == READERS[0]]
    submit([*rankings, *answers], folder / "first.json")
    given = answered(dataset)
    again = answer_record(given, dataset, PLAIN, READERS[0])
    submit(
        [write(again.model_copy(update={"created": "2027-01-01"}), records.parent / "again", given)],
        folder / "later.json",
    )
    return folder


def test_answers_of_entries_are_shown_with_their_entry_and_what_no_check_can_compute(
    site: Path,
    records: Path,
    entries: Path,
    chromium: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("R2MED_HOME", str(records.parent / "home"))
    verdict = EntryVerdict(records=("", ""), answers=("", ""))
    Verdicts(entries={sha256(entries / "first.json"): verdict}).write(records.parent / "verdicts.json", [entries])
    page_file = make_board([], records.parent / "submitted", entries=entries, verdicts=records.parent / "verdicts.json")
    (view,) = value(page_file.parent, "answers")
    assert {(row["name"], row["entry"], row["no_verdict"]) for row in view["rows"]} == {
        *((f"{system} · {READERS[0]}", "first", "") for system in (PLAIN, OTHER)),
        (f"{PLAIN} · {READERS[0]} (not verified)", "later", NO_VERDICT),
    }
    own = next(row for row in value(site, "answers")[0]["rows"] if row["name"] == view["rows"][0]["name"])
    assert (view["rows"][0]["scores"], view["rows"][0]["gain"]) == (own["scores"], own["gain"])
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{page_file.as_uri()}#/answers")
    row = page.locator("tr[data-position='0']")
    assert "entry first" in row.inner_text()
    assert "the grades of the judge" in row.get_by_text("partly verified").get_attribute("title")
    row.locator(".toggle").click()
    assert "the grades of the judge" in page.inner_text("tr.details")
    assert page.locator("tr.details a", has_text="explorer").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_the_page_shows_each_reader_and_the_chart_what_it_knows_without_passages(open_page: Open) -> None:
    page = open_page("#/answers")
    whole(page)
    assert page.inner_text("nav [aria-current]") == "Answers"
    assert page.locator("tr[data-position]").count() == 3
    assert unreached(page, 900) == unreached(page, 390) == []
    page.keyboard.press("j")
    page.keyboard.press("o")
    assert "answered" in page.inner_text("tr.details .statuses >> nth=0")
    assert any(" right" in each for each in page.locator("tr.details .statuses").all_inner_texts())
    page.select_option("label:has-text('Reader') select", READERS[0])
    page.click("text=Quality against cost")
    lines = page.locator(".reference-name").all_text_contents()
    assert [line.rpartition(" ")[0] for line in lines] == ["Closed book", "Relevant", "Random"]
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_of_a_system_leads_to_its_answers(open_page: Open) -> None:
    page = open_page(f"#/system?{urlencode({'name': PLAIN})}")
    line = page.locator("p", has_text="answered questions from its results")
    assert line.inner_text() == "2 readers answered questions from its results: how well."
    line.locator("a").click()
    page.wait_for_selector("tr[data-position]")
    assert page.inner_text("nav [aria-current]") == "Answers"
    assert page.input_value("input[type=search]") == PLAIN


def test_a_citation_opens_its_passage_and_texts_of_llms_are_only_text(open_page: Open) -> None:
    page = open_page(f"#/explorer?{urlencode({'data': DATA, 'a': PLAIN, 'q': '0'})}", color_scheme="dark")
    card = page.locator(".answer-card", has_text="window.harmed")
    card.locator(".cite >> nth=1").click()
    passage = card.locator(".passage.pointed")
    assert passage.evaluate("each => each === document.activeElement")
    assert passage.inner_text().startswith("[2]")
    assert "2 unknown citations" in card.inner_text()
    card.locator(".why > summary").click()
    assert "window.harmed" in card.locator(".why").inner_text()
    assert not page.evaluate("window.harmed")
    assert not page.locator(".answers .answer[open]").count()
    page.keyboard.press("g")
    assert page.locator(".answers .answer[open]").count() == 1
    assert {pair: ratio for pair, ratio in dict(page.evaluate(CONTRAST.read_text())).items() if ratio < 4.5} == {}
    page.keyboard.press("j")
    page.wait_for_selector(".chip:has-text('refused')")
    page.keyboard.press("j")
    page.wait_for_selector(".chip:has-text('abstained')")
    card = page.locator(".answer-card", has=page.locator(".chip:has-text('abstained')"))
    card.locator(".why > summary").click()
    assert "another language: shown only" in card.locator(".why").inner_text()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board of two datasets: open questions, two of them not judged, and choices. A reader tried only two of each."""
    place = tmp_path_factory.mktemp("mixed")
    store = Store(place / "store")
    for name, form in ((DATA, "open"), ("demo/MedQA-Diag", "choice")):
        dataset = load(name, store)
        evaluate(PLAIN, dataset, place / "results", store=store)
        given = answered(dataset)
        if form == "open":
            last = list(dict.fromkeys(answer.query for answer in given))[-2:]
            given = [
                answer.model_copy(update={"scores": {}, "grade": None}) if answer.query in last else answer
                for answer in given
            ]
        asked = list(dict.fromkeys(each.query for each in given))
        few = [
            each.model_copy(update={"scores": {**each.scores, "accuracy": 1.0}})
            for each in given
            if each.query in asked[:2]
        ]
        for reader, answers in (("whole", given), ("tried", few)):
            record = with_answers(answer_record(answers, dataset, PLAIN, reader), form=form)
            write(record, place / "results", answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(place / "home"))
        return make_board([place / "results"], place / "board").parent


def test_open_and_choice_sets_are_shown_together_and_few_questions_come_last(mixed: Path, chromium: Any) -> None:
    first = value(mixed, "answers")[0]
    assert len(first["datasets"]) == 2
    assert {row["name"] for row in first["rows"]} == {f"{PLAIN} · whole", f"{PLAIN} · tried"}
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{(mixed / 'index.html').as_uri()}#/answers")
    rows = page.locator("tr[data-position]")
    assert "whole" in rows.nth(0).inner_text()
    assert "tried" in rows.nth(1).inner_text()
    assert rows.nth(1).locator(".rank-number").inner_text() == "–"
    assert "only 4 of 16 questions" in rows.nth(1).inner_text()
    rows.nth(0).locator(".toggle").click()
    assert "By what the reader read" in page.inner_text("tr.details")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_a_view_without_rows_is_not_the_first_that_is_shown(mixed: Path, chromium: Any, tmp_path: Path) -> None:
    board = tmp_path / "board"
    shutil.copytree(mixed, board)
    file = board / "data" / "answers.js"
    file.write_text(file.read_text().replace(r"\"rows\":[", r"\"rows\":[],\"others\":[", 1))
    assert [bool(view["rows"]) for view in value(board, "answers")] == [False, True, True]
    page = chromium.new_page()
    page.goto(f"{(board / 'index.html').as_uri()}#/answers")
    assert page.locator("tr[data-position]").count() > 0
    page.close()
