"""The parts of a fusion search the form of the query that they name, also where texts are searched apart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from r2med import Dataset, Setup, System
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from support import chat_server

ASKED, WRITTEN, OTHER = "angioedema", "photoreceptor", "telescope"
DATA = Dataset.of(
    {"q": ASKED},
    {"asked": f"{ASKED} of the lips", "written": f"the {WRITTEN} cells", "other": f"a {OTHER} of stars"},
    {"q": {"asked": 1}},
)
FUSED = "fuse(bm25+bm25(k1=1.5), queries={}:{}, weights={}:{})"
Ranked = Callable[..., list[str]]
Searches = list[tuple[float, str]]
"""Every text that a BM25 searches, after its k1."""


@pytest.fixture
def setup(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setup]:
    """An LLM that writes other words than those of the query, and finds all documents equally good."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    async def reply(exchange: chat_server.Exchange) -> None:
        prompt = exchange.request.question
        said = json.dumps([WRITTEN, OTHER]) if "JSON list" in prompt else WRITTEN
        if passages := re.findall(r"<passage (\d+)>", prompt):
            said = json.dumps(dict.fromkeys(passages, 5))
        await chat_server.answer(said)(exchange)

    with chat_server.serve() as server:
        server.otherwise = reply
        yield Setup(base_url=server.address, store=store)


@pytest.fixture
def ranked(setup: Setup, store: Store) -> Ranked:
    def ranking(spec: str, live: bool = False) -> list[str]:
        system = System.parse(spec, setup)
        outcome = system.live(DATA).answer(ASKED, 3) if live else system.run(DATA, 3)
        return [document for document, _ in outcome.run.top("q", 3)]

    return ranking


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    texts: Searches = []
    search = BM25.search

    def noted(self: BM25, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        texts.extend((self.k1, query.lexical_text) for query in queries)
        return search(self, dataset, queries, k, runtime)

    monkeypatch.setattr(BM25, "search", noted)
    return texts


APART = [
    "queries(gpt4, n=2, original=0)",
    "sub-questions(gpt4, n=2, original=0)",
    "rewrite(gpt4)",
    "hyde(gpt4, join=runs, samples=2)",
]


@pytest.mark.parametrize("live", [False, True], ids=["stored", "live"])
@pytest.mark.parametrize("expand", APART)
def test_weights_decide_between_the_original_query_and_the_texts_of_an_llm(
    expand: str, live: bool, ranked: Ranked
) -> None:
    assert ranked(f"{expand} → {FUSED.format('original', 'expanded', 3, 1)}", live)[0] == "asked"
    assert ranked(f"{expand} → {FUSED.format('original', 'expanded', 1, 3)}", live)[0] == "written"


@pytest.mark.parametrize(("trust", "first"), [(3, "asked"), (100, "written")])
def test_the_weights_of_the_reasoner_count_for_a_list_of_queries(trust: int, first: str, ranked: Ranked) -> None:
    # The list has the original query, too, behind the queries of the LLM.
    assert ranked(f"reasoner(gpt4, method=queries, rounds=0, dense=bm25(k1=2), trust={trust})")[0] == first


@pytest.mark.parametrize("live", [False, True], ids=["stored", "live"])
@pytest.mark.parametrize("original", [0, 1])
def test_every_text_is_searched_once(original: int, live: bool, ranked: Ranked, searches: Searches) -> None:
    ranked(f"queries(gpt4, n=2, original={original}) → fuse(bm25+bm25, queries=original:expanded)", live)
    asked = [text for _, text in searches if text != "warm up"]
    assert asked == [ASKED, WRITTEN, OTHER]


@pytest.mark.parametrize(
    ("forms", "texts"),
    [
        ("original", [ASKED]),
        ("generated", [WRITTEN, OTHER]),
        ("expanded", [ASKED, WRITTEN, OTHER]),
        ("both", [ASKED, WRITTEN, OTHER]),
    ],
)
def test_a_part_searches_the_form_that_it_names_and_no_other(
    forms: str, texts: list[str], ranked: Ranked, searches: Searches
) -> None:
    ranked(f"queries(gpt4, n=2) → fuse(bm25+bm25(k1=2), queries={forms}:original)")
    assert searches == [*((0.9, text) for text in texts), (2.0, ASKED)]


@pytest.mark.parametrize(
    "retriever",
    [
        "fuse(fuse(bm25+bm25(k1=2), queries=original:generated)+bm25(k1=2, b=0.5), queries=expanded:original)",
        "fuse(bm25+bm25(k1=2), queries=original:generated)+fuse(bm25, queries=original)",
        "[fuse(bm25+bm25(k1=2), queries=original:generated) → groupwise(gpt4)@3]+fuse(bm25, queries=original)",
    ],
    ids=["inner", "plain", "brackets"],
)
def test_a_fusion_inside_another_stage_gets_the_whole_query(retriever: str, ranked: Ranked, searches: Searches) -> None:
    ranked(f"queries(gpt4, n=2) → {retriever}")
    assert {text for k1, text in searches if k1 == 0.9} == {ASKED}
    assert {WRITTEN, OTHER} <= {text for k1, text in searches if k1 == 2.0} <= {ASKED, WRITTEN, OTHER}


CHOOSING = FUSED.format("original", "expanded", 3, 1)


@pytest.mark.parametrize(
    ("spec", "is_changed"),
    [
        (f"rewrite(gpt4) → {CHOOSING}", True),
        (f"hyde(gpt4, join=runs) → {CHOOSING}+bm25", True),
        (f"hyde(gpt4) → {CHOOSING}", False),
        (f"rm3 → {CHOOSING}", False),
        ("rewrite(gpt4) → bm25+bm25(k1=1.5)", False),
    ],
)
def test_only_systems_whose_parts_choose_among_texts_searched_apart_have_another_key(
    spec: str, is_changed: bool, setup: Setup
) -> None:
    assert ("parts" in System.parse(spec, setup).stage_keys(DATA)) == is_changed
