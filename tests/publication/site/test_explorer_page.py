"""The explorer in a real browser, opened from disk: one query, two systems, keys, and a dataset that means harm."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from r2med.data import load
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record_facts import FileFacts, StageFacts
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.cost import NOTHING
from r2med.foundation.store import Store
from r2med.foundation.store.files import sha256
from r2med.foundation.text.highlight import Words, matches
from r2med.publication.site import make_board
from support.by_day import some_by_day
from support.hostile import QUERIES, SCRIPT, hostile_folder

from .conftest import Open, whole
from .test_pages import contrast

PLAIN, EXPANDED, AGENT = "bm25", "hyde(author) → bm25", "scripted agent → bm25"
DEMO = "demo/Biology"
TURN = {"text": f"I think. {SCRIPT}", "query": "wrinkled fingers", "documents": [{"id": "__proto__", "score": 1.0}]}
LATER = {"text": "finish()", "query": "", "notice": "", "documents": None, "information": "", "analysis": ""}
TRACE = {
    "prompt": "Search first.",
    "turns": [TURN, {**LATER, "further": True, "status": "unknown_ids"}],
    "text": "",
    "failure": {"kind": "cut", "message": "too long"},
    "chosen": ["bio-chosen"],
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems on the demo and on the hostile dataset, and an agent's record on the demo."""
    folder = tmp_path_factory.mktemp("records")
    store = Store(folder / "store")
    hostile = load(hostile_folder(folder / "hostile"), store)
    for dataset in (load(DEMO, store), hostile):
        for system in ("bm25(scorer=lucene)", EXPANDED, PLAIN):
            record = evaluate(system, dataset, folder / "results", store=store)
            if dataset is not hostile and system == PLAIN:
                _write_agent(folder / "results" / "demo" / "Biology", record)
    return folder / "results"


def _write_agent(folder: Path, record: Any) -> None:
    traces = folder / "agent.traces.json"
    traces.write_text(json.dumps(dict.fromkeys(record.per_query, TRACE)), encoding="utf-8")
    facts = FileFacts(file=traces.name, sha256=sha256(traces))
    agent = StageFacts(stage="expand", name="agent", cost=NOTHING, failed=dict.fromkeys(record.per_query, "1 cut"))
    judge = StageFacts(stage="rerank", name="judge", cost=NOTHING, failures=2, failed={"0": "2 timeout"})
    stages = (agent, *record.stages, judge.model_copy(update={"gold": record.gold}))
    changed = record.model_copy(update={"system": AGENT, "traces": facts, "stages": stages})
    changed.write(folder / "agent-0123456789.json")


@pytest.fixture(scope="module")
def collection(records: Path) -> RecordCollection:
    return collect([records], max_failures=1)


@pytest.fixture(scope="module")
def site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(tmp_path_factory.mktemp("home")))
        folder = tmp_path_factory.mktemp("site") / "board"
        return make_board([records], folder, [str(records.parent / "hostile")], max_failures=1).parent


def address(**params: str) -> str:
    return f"#/explorer?{urlencode(params)}"


def shown(page: Any, selector: str) -> list[str]:
    return list(page.eval_on_selector_all(selector, "all => all.map((each) => each.textContent)"))


def opened(open_page: Open, settings: dict[str, Any] | None = None, **params: str) -> Any:
    page = open_page(address(**params), **(settings or {}))
    page.wait_for_selector(".hit, .empty")
    whole(page)
    return page


def settled(page: Any, query: str) -> None:
    page.wait_for_function("(id) => document.querySelector('.eyebrow')?.textContent.includes(`query ${id}`)", arg=query)
    whole(page)


def test_a_query_shows_its_text_its_ranking_and_where_the_relevant_documents_are(
    open_page: Open, collection: RecordCollection
) -> None:
    dataset = load(DEMO)
    page = opened(open_page, data=DEMO, q="3", a=PLAIN)
    query = next(query for query in dataset.queries if query.id == "3")
    record = collection.cell(PLAIN, DEMO).record  # type: ignore[union-attr]
    assert page.inner_text(".question") == query.text
    assert not page.is_visible("text=" + query.answer)
    page.click("text=Reference answer")
    assert page.is_visible("text=" + query.answer)
    assert page.inner_text(".side-figures b") == f"{100 * record.per_query['3']['nDCG@10']:.2f}"
    labels = shown(page, "summary.gold-row")
    for document in dataset.qrels["3"]:
        rank = record.gold["3"].get(document)
        told = f"A rank {rank}" if rank else "A beyond the depth"
        assert any(label.startswith(document) and told in label for label in labels)
    assert len(shown(page, ".hit")) == 20
    first = {document for document, rank in record.gold["3"].items() if rank <= 20}
    assert set(shown(page, ".hit.gold .hit-head > .name")) == first


def test_marked_words_are_those_of_the_analyser(open_page: Open) -> None:
    dataset = load(DEMO)
    page = opened(open_page, data=DEMO, q="0", a=EXPANDED)
    generated = page.evaluate("document.querySelector('.generated .text').textContent")
    words = Words.of(dataset.queries[0].text, [generated])
    for more in page.query_selector_all(".hit .more"):
        more.click()
    cards = page.eval_on_selector_all(
        ".hit .text",
        """all => all.map((text) => [text.textContent, [...text.querySelectorAll('mark')].map((mark) =>
            [mark.textContent, [...mark.classList].find((name) => ['query', 'generated', 'both'].includes(name))])])""",
    )
    assert len(cards) == 20
    for text, marked in cards:
        assert marked == [[text[match.start : match.stop], match.kind] for match in matches(text, words)]
    assert {kind for _, marked in cards for _, kind in marked} == {"query", "generated", "both"}


def test_two_systems_are_compared_in_a_sentence_and_with_arrows(open_page: Open, collection: RecordCollection) -> None:
    page = opened(open_page, data=DEMO, q="0", a=PLAIN)
    page.keyboard.press("c")
    page.wait_for_selector(".pair")
    page.select_option(".picker-b select", EXPANDED)
    page.wait_for_selector(".summary >> text=nDCG@10 goes from")
    before, after = (collection.cell(system, DEMO).record for system in (PLAIN, EXPANDED))  # type: ignore[union-attr]
    sentence = page.inner_text(".summary")
    for document, rank in before.gold["0"].items():
        assert f"{document} moves from {rank} to {after.gold['0'][document]}" in sentence
    assert "of A’s top 10 are not in B’s" in sentence
    tops = [shown(page, f".ranking.{side} .hit-head > .name") for side in "ab"]
    arrows = shown(page, ".ranking.b .elsewhere")
    for rank, (document, arrow) in enumerate(zip(tops[1], arrows, strict=True), 1):
        other = before.gold["0"].get(document) or (tops[0].index(document) + 1 if document in tops[0] else 0)
        sign = "=" if other == rank else "↑" if other < rank else "↓"
        assert arrow == (f"A {sign} {other}" if other else "not in A’s top")
    shared = opened(open_page, **dict(zip(["data", "q", "a", "b"], [DEMO, "0", PLAIN, EXPANDED], strict=True)))
    assert shared.evaluate("location.hash") == page.evaluate("location.hash")
    assert shared.inner_text(".summary") == sentence


@pytest.mark.slow
def test_entrances_lead_to_the_queries_they_promise(open_page: Open, collection: RecordCollection) -> None:
    before, after = (collection.cell(system, DEMO).record for system in (PLAIN, EXPANDED))  # type: ignore[union-attr]

    def finds(record: Any) -> set[str]:
        return {query for query, ranks in record.gold.items() if min(ranks.values()) <= 10}

    def listed(order: str) -> list[str]:
        page = opened(open_page, data=DEMO, a=PLAIN, b=EXPANDED, order=order)
        links = page.eval_on_selector_all(".entry", "all => all.map((each) => each.getAttribute('href'))")
        return [link.split("q=")[1].split("&")[0] for link in links]

    assert set(listed("only-b")) == finds(after) - finds(before)
    assert listed("only-a") == sorted(finds(before) - finds(after))
    assert set(listed("neither")) == set(before.per_query) - finds(before) - finds(after)
    gains = {q: after.per_query[q]["nDCG@10"] - values["nDCG@10"] for q, values in before.per_query.items()}
    assert [gains[query] for query in listed("gain")] == sorted(gains.values(), reverse=True)
    assert [gains[query] for query in listed("loss")] == sorted(gains.values())
    hard = {q: sum(kept.record.per_query[q]["nDCG@10"] for (_, d), kept in collection.cells.items() if d == DEMO)
            for q in before.per_query}  # fmt: skip
    assert [hard[query] for query in listed("hard")] == pytest.approx(sorted(hard.values()))
    assert sorted(listed("tau")) == sorted(before.per_query)


def test_rank_correlation_is_tau_ap(open_page: Open) -> None:
    page = opened(open_page, data=DEMO)
    tau = "([x, y]) => pages.ranking.tauAP(x, y)"
    assert page.evaluate(tau, [[1, 2, 3], [1, 2, 3]]) == 1
    assert page.evaluate(tau, [[1, 2, 3], [3, 2, 1]]) == -1
    # An exchange at the top costs more than one below: one direction is (0/1 + 2/2 + 3/3) · 2/3 − 1.
    assert page.evaluate(tau, [[1, 2, 3, 4], [2, 1, 3, 4]]) == pytest.approx(1 / 3)
    assert page.evaluate(tau, [[1, 2, 3, 4], [1, 2, 4, 3]]) == pytest.approx((1 + 1 + 2 / 3) * 2 / 3 - 1)


@pytest.mark.slow
def test_everything_can_be_done_with_keys(open_page: Open) -> None:
    page = opened(open_page, data=DEMO)
    best = page.input_value(".picker-a select")
    page.keyboard.press("j")
    settled(page, "1")
    page.keyboard.press("k")
    settled(page, "0")
    page.keyboard.press("]")
    page.wait_for_function("(best) => document.querySelector('.picker-a select').value !== best", arg=best)
    page.keyboard.press("[")
    page.wait_for_function("(best) => document.querySelector('.picker-a select').value === best", arg=best)
    page.keyboard.press("g")
    assert page.is_visible(".answer p")
    page.keyboard.press("c")
    page.wait_for_selector(".pair")
    page.keyboard.press("x")
    page.wait_for_function("(best) => document.querySelector('.picker-b select').value === best", arg=best)
    page.keyboard.press("?")
    assert page.is_visible("dialog[open] >> text=next query")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("sneeze j")
    page.wait_for_selector(".empty")
    page.fill("input[type=search]", "sneeze")
    settled(page, "1")
    assert len(shown(page, ".entry")) == 1
    page.go_back()
    page.wait_for_function("() => document.querySelectorAll('.entry').length === 8")
    settled(page, "1")


@pytest.mark.slow
def test_a_hostile_dataset_is_shown_as_text(open_page: Open) -> None:
    for position, query in enumerate(QUERIES):
        page = opened(open_page, data="hostile", q=query["id"], a=PLAIN, b=EXPANDED)
        if query["answer"]:
            page.click("text=Reference answer")
        for summary in page.query_selector_all("summary.gold-row, .generated > summary"):
            summary.click()
        assert page.evaluate("document.title") == "Explorer · r2med board"
        assert page.query_selector("main script, main img, main i") is None
        assert not page.query_selector_all("main a:not([href^='#/explorer'])")
        text = page.evaluate("document.querySelector('main').textContent")
        assert not {"\u202e", "\u202c", "\u2066", "\x85"} & set(text)
        if position == 0:
            assert SCRIPT in text
            assert "\\u202eedirrevo\\u202c" in text
    assert page.evaluate("({}).fever") is None


@pytest.mark.slow
def test_copies_failures_and_cuts_are_told(open_page: Open) -> None:
    page = opened(open_page, data="hostile", q="constructor", a=PLAIN)
    assert "same text as relevant judged" in shown(page, ".chip.copy")[0]
    page = opened(open_page, data="hostile", q="toString", a=EXPANDED)
    told = " ".join(page.inner_text(".failure").split())
    assert told == "failed hyde(author): no text was generated, so the query was searched unchanged (missing)"
    assert page.locator(".entry:has(.chip.bad)").count() == 1
    assert page.inner_text(".nobody") == "found by no system"
    page = opened(open_page, data="hostile", q="hasOwnProperty", a=PLAIN)
    page.click("summary.gold-row:has-text('endless')")
    page.click(".gold-details[open] .more")
    assert "characters left out" in page.inner_text(".gold-details[open]")


def test_an_agents_trace_is_shown_turn_by_turn(open_page: Open) -> None:
    page = opened(open_page, data=DEMO, q="0", a=AGENT)
    assert "(cut: too long)" in page.inner_text(".failure")
    page.click("text=turn by turn")
    page.wait_for_selector(".turn >> text=wrinkled fingers")
    steps = page.inner_text(".generated")
    assert SCRIPT in steps and "bio-chosen" in steps
    assert "Turn 1, next call" in steps and "unknown_ids" in steps


def test_a_reranker_that_failed_is_told_query_by_query_and_from_its_systems_page(open_page: Open) -> None:
    page = open_page(f"#/system?{urlencode({'name': AGENT})}")
    page.click("text=Which queries")
    row = page.locator("details[open] tr", has_text="timeout")
    assert " ".join(row.inner_text().split()) == "0 demo/Biology judge 2 timeout"
    row.locator("a").click()
    page.wait_for_selector(".failure")
    assert "judge: calls failed, so their documents kept their ranks (2 timeout)" in page.inner_text(".failure")
    page.keyboard.press("j")
    page.wait_for_selector(".query-steps >> text=2 of")
    assert "timeout" not in page.inner_text(".failure")


@pytest.mark.parametrize(
    ("data", "width", "scheme"),
    some_by_day([("hostile", 390, "dark"), (DEMO, 390, "light"), (DEMO, 1440, "dark"), ("hostile", 1440, "light")], 4),
)
def test_it_fits_every_screen_and_can_be_read(open_page: Open, data: str, width: int, scheme: str) -> None:
    settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = opened(open_page, settings, data=data, a=PLAIN, b=EXPANDED)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert {pair: value for pair, value in contrast(page).items() if value < 4.5} == {}


def test_the_labels_of_the_axis_stand_apart_on_a_telephone(open_page: Open) -> None:
    page = opened(open_page, {"viewport": {"width": 390, "height": 900}}, data=DEMO, a=PLAIN, b=EXPANDED)
    boxes = "all => all.map((label) => label.getBoundingClientRect()).map(({ left, right }) => [left, right])"
    places = page.eval_on_selector_all(".gold-axis text", boxes)
    assert len(places) > 2
    assert all(after[0] - before[1] >= 4 for before, after in pairwise(places)), places
