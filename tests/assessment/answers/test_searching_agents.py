"""Agents that search, answer and cite: every figure equals a plain computation from what the script did."""

import json
from pathlib import Path

import pytest

import r2med
from r2med.assessment.answers.answer_options import LETTERS, options_of
from r2med.assessment.answers.reading import asked_queries
from r2med.assessment.answers.search_tables import too_sure
from r2med.assessment.answers.searched_answers import AgentConversation
from r2med.data import load
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_views import answering_cost
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from support.facts import states
from support.searching_agents import SCRIPTS, scripted_runtime, village

AGENT = "agent(script, calls=tags, turns=8)"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agents")


@pytest.fixture(scope="module")
def record(place: Path) -> Record:
    with scripted_runtime(place) as opened:
        (record,) = r2med.answer(
            AGENT,
            judge="judge",
            data=village(place / "set"),
            conditions=["closed book", "searched"],
            out=place / "out",
            setup=opened,
        )
    return record


@pytest.fixture(scope="module")
def given(place: Path, record: Record) -> dict[str, GivenAnswer]:
    answers = StoredRecord(record, next((place / "out").rglob("*.answers.json"))).given()
    return {each.query: each for each in answers if each.condition == "searched"}


ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"
STEPS = {
    # agent: relevant documents returned, shown, opened, cited, kept
    "finder": (3, 3, 2, 2, 3),
    "dropper": (3, 3, 0, 0, 0),
    "skimmer": (3, 3, 0, 1, 1),
    "guesser": (3, 3, 0, 1, 1),
    "reader": (1, 1, 0, 1, 1),
    "abstainer": (3, 3, 0, 0, 0),
    "looper": (1, 1, 0, 0, 0),
    "inventor": (3, 3, 0, 0, 0),
    "whisperer": (3, 3, 0, 0, 0),
    "quitter": (3, 3, 0, 0, 0),
    "nobody": (0, 0, 0, 0, 0),
}


def test_the_funnel_counts_how_far_relevant_documents_came(given: dict[str, GivenAnswer]) -> None:
    measures = ("returned", "shown", "opened", "cited", "kept")
    found = {name: tuple(round(3 * each.scores[f"{step}-recall"]) for step in measures) for name, each in given.items()}
    assert found == STEPS


def test_answers_have_the_statuses_of_the_answers_track(record: Record, given: dict[str, GivenAnswer]) -> None:
    right = {"finder", "dropper", "skimmer", "guesser", "reader", "inventor"}
    assert {name for name, each in given.items() if each.scores["accuracy"]} == right
    without = {name: each.status for name, each in given.items() if each.status != "answered"}
    assert without == {
        "looper": "unreadable", "whisperer": "unreadable", "quitter": "unreadable", "nobody": "unreadable",
    }  # fmt: skip
    assert record.answers.statuses["searched"] == {"answered": 7, "unreadable": 4}
    assert given["abstainer"].grade == "nothing" and record.answers.abstained("searched") == 1
    assert record.answers.statuses["closed book"] == {"answered": 11}
    assert record.answers.reader == "script" and record.system == "agent(script, answers=yes, turns=8, calls=tags)"


def test_citations_of_documents_that_do_not_exist_count_against_precision(given: dict[str, GivenAnswer]) -> None:
    precision = {name: each.scores.get("citation-relevance") for name, each in given.items()}
    assert precision == {
        **dict.fromkeys(SCRIPTS), "finder": 1.0, "skimmer": 0.5, "guesser": 1.0, "reader": 1.0, "inventor": 0.0
    }  # fmt: skip
    assert [sentence.unknown for sentence in given["inventor"].sentences] == [2]


def test_confidence_and_its_error_are_known_where_both_are_decided(
    record: Record, given: dict[str, GivenAnswer]
) -> None:
    stated = {
        "finder": 0.9,
        "dropper": 0.4,
        "skimmer": 1.0,
        "guesser": 0.8,
        "reader": 0.7,
        "abstainer": 0,
        "inventor": 0.6,
    }
    assert {
        name: each.search.confidence
        for name, each in given.items()
        if each.search and each.search.confidence is not None
    } == stated
    truth = {name: int(name != "abstainer") for name in stated}
    brier = {name: (stated[name] - truth[name]) ** 2 for name in truth}
    assert {name: each.scores["brier"] for name, each in given.items() if "brier" in each.scores} == pytest.approx(
        brier
    )
    assert record.answers.mean["searched"]["brier"] == pytest.approx(sum(brier.values()) / 7)


def test_the_path_has_repeated_searches_new_documents_and_where_the_name_came_from(
    record: Record, given: dict[str, GivenAnswer]
) -> None:
    facts = {name: each.search for name, each in given.items() if each.search}
    assert {name: each.named for name, each in facts.items() if each.named} == {
        "guesser": "guess", "reader": "find", "whisperer": "guess"
    }  # fmt: skip
    assert {name: each.repeated for name, each in facts.items() if each.repeated} == {"looper": 6}
    assert facts["looper"].searches == 7, "one was carried out, and six were refused as repeated"
    assert facts["skimmer"].new_relevant == (1, 2) and facts["looper"].new_relevant == (1,)
    assert facts["reader"].new_relevant == (0, 1)
    searches = [each.searches for each in facts.values()]
    assert record.answers.searching["searches"] == pytest.approx(sum(searches) / 11)
    assert record.answers.searching["guess"] == pytest.approx(2 / 11) and record.answers.searching[
        "find"
    ] == pytest.approx(1 / 11)
    assert all(each.tokens > 0 for each in facts.values())


def test_hidden_documents_and_their_copies_reach_no_agent_and_the_dataset_stays(tmp_path: Path, place: Path) -> None:
    data = village(tmp_path / "set", ["finder"])
    copies = (data / "corpus.jsonl").read_text().splitlines()
    (data / "corpus.jsonl").write_text("\n".join([*copies, copies[0].replace("finder-alpha", "twin")]) + "\n")
    before = {file: file.read_bytes() for file in data.iterdir()}
    with scripted_runtime(tmp_path) as opened:
        (record,) = r2med.answer(
            AGENT, data=data, conditions="searched", without="relevant", out=tmp_path / "out", setup=opened
        )
    (answer,) = StoredRecord(record, next((tmp_path / "out").rglob("*.answers.json"))).given()
    assert set(answer.read) == {"finder-n0", "finder-n1"}
    assert answer.scores["returned-recall"] == 0 and answer.scores["citation-relevance"] == 0
    assert {file: file.read_bytes() for file in data.iterdir()} == before
    assert "without=relevant" in record.system
    with pytest.raises(UserError) as error:
        collect(results=tmp_path / "out")
    states(str(error.value), "no records")
    (file,) = (tmp_path / "out").rglob("*.apart.json")
    (ranking,) = collect([file])
    states(ranking.record.apart, "hidden")
    for share in (r2med.submit, r2med.pack):
        with pytest.raises(UserError) as error:
            share(file, tmp_path / "shared.json")
        states(str(error.value), "hidden")


def asked_questions(place: Path) -> set[str]:
    """Return the questions about which the LLM was asked, from the conversations beside the records."""
    return {query for file in place.rglob("*.traces.json") for query in json.loads(file.read_bytes())}


def test_only_the_first_questions_are_worked_on_and_their_ranking_is_set_apart(tmp_path: Path) -> None:
    with scripted_runtime(tmp_path) as opened:
        asked = {"data": village(tmp_path / "set"), "conditions": "searched", "out": tmp_path / "out", "setup": opened}
        (part,) = r2med.answer(AGENT, queries=2, **asked)
        assert asked_questions(tmp_path / "out") == {"finder", "dropper"} == part.queries.keys()
        assert r2med.answer(AGENT, queries=2, **asked).reused == 1
        with pytest.raises(UserError) as error:
            collect(results=tmp_path / "out")
        states(str(error.value), "no records")
        (whole,) = r2med.answer(AGENT, **asked)
    assert len(whole.queries) == 11
    (ranking,) = collect(results=tmp_path / "out")
    assert len(ranking.record.per_query) == 11 and not ranking.record.apart
    figures = answering_cost(part, "searched"), part.cost_of("retrieve")
    assert figures[0] and figures[0].calls == pytest.approx(figures[1].calls * 11 / 2), "as for the whole dataset"


ODD_AGENTS = {
    "finder": ('<answer confidence="50" ids="d1">Illness finder [d1][d2].</answer>',),
    "dropper": ("<search>dropper evidence</search>", '<answer confidence="50" ids="d1">[d1]</answer>'),
    "skimmer": ("<search>" + "skimmer evidence " * 60_000 + "</search>",),
}


def test_no_agent_gains_from_citations_without_a_search_an_empty_answer_or_a_full_context(tmp_path: Path) -> None:
    with scripted_runtime(tmp_path, ODD_AGENTS) as opened:
        data = village(tmp_path / "set", list(ODD_AGENTS))
        (record,) = r2med.answer(AGENT, data=data, conditions="searched", out=tmp_path / "out", setup=opened)
    answers = StoredRecord(record, next((tmp_path / "out").rglob("*.answers.json"))).given()
    given = {each.query: each for each in answers}
    assert given["finder"].scores["citation-relevance"] == 0
    assert given["dropper"].status == "unreadable" and given["dropper"].scores["cited-recall"] == 0
    assert given["skimmer"].status == "cut off" and given["skimmer"].failure == "context_length"
    assert record.answers.mean["searched"]["returned-recall"] == pytest.approx(2 / 3), "what it found counts"


def test_confidence_minus_accuracy_has_an_interval_also_if_all_differences_are_equal() -> None:
    found = too_sure([0.5] * 30, [1.0] * 30)
    assert found and found.value == -0.5 and found.low is not None and found.low < -0.5 < (found.high or -1)


CHOOSERS = {
    "finder": ('<search k="3">finder evidence</search>', '<answer confidence="90" ids="d1">{right} [d1]</answer>'),
    "dropper": ('<search k="3">dropper evidence</search>', '<answer confidence="20" ids="">{wrong}. So be it</answer>'),
    "skimmer": ('<answer confidence="20" ids="">Measles.</answer>',),
    "abstainer": ('<answer confidence="0" ids="">There is not enough information to answer.</answer>',),
}


def test_an_agent_chooses_an_option_by_its_letter(tmp_path: Path) -> None:
    data = village(tmp_path / "set", list(CHOOSERS))
    queries = asked_queries(r2med.load(data))
    options = {query.id: options_of(query, queries) for query in queries}
    letters = {
        name: {"right": LETTERS[place := each.index(f"Illness {name}")], "wrong": LETTERS[(place + 1) % len(each)]}
        for name, each in options.items()
    }
    scripts = {name: [turn.format(**letters[name]) for turn in script] for name, script in CHOOSERS.items()}
    with scripted_runtime(tmp_path, scripts) as opened:
        (record,) = r2med.answer(
            AGENT, data=data, conditions="searched", form="choice", out=tmp_path / "out", setup=opened
        )
    answers = StoredRecord(record, next((tmp_path / "out").rglob("*.answers.json"))).given()
    given = {each.query: each for each in answers}
    assert {name: each.status for name, each in given.items()} == {
        "finder": "answered", "dropper": "answered", "skimmer": "no option", "abstainer": "no option"
    }  # fmt: skip
    assert {name: each.scores["accuracy"] for name, each in given.items()} == {
        "finder": 1, "dropper": 0, "skimmer": 0, "abstainer": 0
    }  # fmt: skip
    assert given["finder"].text == "Illness finder" and given["finder"].options == options["finder"]
    assert given["finder"].scores["citation-relevance"] == 1 and given["finder"].scores["brier"] == pytest.approx(0.01)
    assert all(each.search and each.search.named is None for each in answers), "the options name the reference"
    prompt = json.loads(next((tmp_path / "out").rglob("*.traces.json")).read_bytes())["finder"]["prompt"]
    assert f"{letters['finder']['right']}. Illness finder\n" in prompt


@pytest.mark.parametrize(
    ("systems", "settings", "words"),
    [
        (AGENT, {"readers": "script"}, ("own reader",)),
        ("bm25", {}, ("bm25", "agent(LLM, by=[SYSTEM])")),
        ("search-r1(script) → bm25", {}, ("search-r1-finds(script, by=[bm25])",)),
        (AGENT, {"conditions": "closed book", "without": "relevant", "readers": "script"}, ("searched",)),
    ],
)
def test_what_cannot_search_and_answer_is_refused_in_one_line(
    place: Path, systems: str, settings: dict[str, str], words: tuple[str, ...]
) -> None:
    with scripted_runtime(place) as opened, pytest.raises(UserError) as error:
        asked = {"conditions": "searched", "data": village(place / "set"), "out": place / "out", **settings}
        r2med.answer(systems, setup=opened, **asked)
    states(str(error.value), *words)


def test_a_query_written_in_one_turn_with_the_search_that_shows_the_name_is_a_guess(tmp_path: Path) -> None:
    dataset = load(village(tmp_path / "set", ["reader"]), Store(tmp_path / "store"))
    (query,) = dataset.queries
    shows = {"query": "reader teller", "shown": ["reader-t"], "documents": [{"id": "reader-t"}]}
    names = {"query": "illness reader", "shown": [], "documents": []}
    assert AgentConversation({"turns": [shows, names]}).named(query, dataset) == "find"
    assert AgentConversation({"turns": [shows, {**names, "further": True}]}).named(query, dataset) == "guess"
    between = {"query": "", "further": True}
    assert AgentConversation({"turns": [shows, between, names]}).named(query, dataset) == "find"
