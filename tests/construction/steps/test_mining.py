"""A committee proposes chunks from several views, and what the source links is among them."""

from collections import Counter

import pytest

from r2med.construction.items import Candidate, PageChunk, Rejected, SourceQuestion
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.mining import Mine, linked_chunks, normalised
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from support import tiny_models

CHUNKS = [
    PageChunk(
        id="fever-1", page="fever", text="Fever and stiff neck suggest meningitis.", url="https://www.x.org/fever/"
    ),
    PageChunk(id="fever-2", page="fever", text="Nothing of interest stands here.", url="https://www.x.org/fever/"),
    PageChunk(id="drug-1", page="drug", text="Ampicillin treats Listeria.", copies=("twin", "https://y.org/twin")),
    PageChunk(id="csf-1", page="csf", text="Gram positive rods in the liquor are Listeria."),
    PageChunk(id="gout-1", page="gout", text="Gout swells the great toe."),
]
QUESTIONS = [
    SourceQuestion(
        id="q1",
        text="A man has fever and a stiff neck.",
        answer="Ampicillin",
        reasoning="Gram positive rods in the liquor.",
        links=("http://x.org/fever#history", "https://y.org/twin.html", "https://nowhere.org/"),
    ),
    SourceQuestion(id="q2", text="Whose toe hurts?", positives=("csf", "twin")),
    SourceQuestion(id="q3", text="zzz"),
]


@pytest.fixture
def mined(tmp_path, store):
    for name, items in (("questions", QUESTIONS), ("chunks", CHUNKS)):
        (tmp_path / name).write_text("".join(f"{item.model_dump_json()}\n" for item in items))
    streams = Streams({name: (tmp_path / name,) for name in ("questions", "chunks")}, tmp_path)

    def run(**settings):
        work = StepWork(Runtime(store=store))
        items = list(Mine(**settings).run(streams, work))
        pool = {(each.question, each.chunk): each for each in items if isinstance(each, Candidate)}
        return pool, [each for each in items if isinstance(each, Rejected)], work

    return run


def proposers(candidate):
    return {(found.member, found.view, found.rank) for found in candidate.found}


def test_links_and_positives_find_their_chunks_however_they_are_written():
    assert set(linked_chunks(QUESTIONS, CHUNKS)) == {
        ("q1", "fever-1", "link"),
        ("q1", "fever-2", "link"),
        ("q1", "drug-1", "link"),
        ("q2", "csf-1", "positive"),
        ("q2", "drug-1", "positive"),
    }


def test_every_view_of_every_member_is_pooled_with_the_linked_chunks(mined):
    pool, rejected, work = mined(committee="bm25+bm25(scorer=lucene)", depth=1)
    assert proposers(pool["q1", "fever-1"]) == {
        ("source", "link", 1),
        ("bm25", "query", 1),
        ("bm25(scorer=lucene)", "query", 1),
    }
    assert ("bm25", "answer", 1) in proposers(pool["q1", "drug-1"])
    assert ("bm25", "reasoning", 1) in proposers(pool["q1", "csf-1"])
    assert set(pool) == {("q1", c) for c in ("fever-1", "fever-2", "drug-1", "csf-1")} | {
        ("q2", c) for c in ("gout-1", "csf-1", "drug-1")
    }
    assert [(each.key, each.reason) for each in rejected] == [("q3", "no candidates")]
    assert work.facts["pool"]["members"]["source"] == {"proposed": 5, "alone": 3}
    assert work.facts["pool"]["views"]["reasoning"] == {"proposed": 1, "alone": 1}


def test_a_member_is_any_system(mined):
    pool, *_ = mined(committee="rm3 → bm25 + bm25", views="query", depth=2)
    assert {found.member for found in pool["q1", "fever-1"].found} == {"source", "rm3 → bm25", "bm25"}


def test_the_default_committee_is_bm25_medcpt_and_bge(mined, tmp_path, monkeypatch):
    for name in ("bge", "medcpt/query", "medcpt/document"):  # the architecture of the real ones, with random weights
        tiny_models.bert(tmp_path / "models" / name, positions=512)
    monkeypatch.setenv("R2MED_MODELS", str(tmp_path / "models"))
    pool, _, work = mined(depth=2)
    found = [each for (question, _), candidate in pool.items() if question == "q1" for each in candidate.found]
    # A dense model proposes as many as it may from each view; for bm25 a chunk has to share a word.
    assert Counter(each.member for each in found) == {"source": 3, "bm25": 3, "medcpt": 6, "bge": 6}
    assert {each.view for each in found} == {"link", "query", "answer", "reasoning"}
    assert set(work.facts["pool"]["members"]) == {"source", "bm25", "medcpt", "bge"}


def test_the_same_input_gives_the_same_order(mined):
    first, again = (list(mined(committee="bm25", depth=5)[0]) for _ in range(2))
    assert first == again
    assert first[:2] == [("q1", "drug-1"), ("q1", "fever-1")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"committee": "bm52"}, "no retriever 'bm52'"),
        ({"committee": "bm25+bm25"}, "twice"),
        ({"views": "query:answers"}, "answers is not a view: query, answer, reasoning"),
    ],
)
def test_what_does_not_exist_is_told_before_anything_is_done(settings, message):
    with pytest.raises(UserError, match=message):
        Mine(**settings)


def test_without_chunks_it_says_what_makes_them(tmp_path, store):
    with pytest.raises(UserError, match="needs chunks"):
        list(Mine(committee="bm25").run(Streams({}, tmp_path), StepWork(Runtime(store=store))))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://www.x.org/a/", "https://x.org/a#part"),
        ("https://en.m.wikipedia.org/wiki/Crohn%27s_disease", "https://en.wikipedia.org/wiki/Crohn's_disease"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC1/", "https://pmc.ncbi.nlm.nih.gov/articles/PMC1"),
        ("https://dx.doi.org/10.1/x", "https://doi.org/10.1/x"),
        ("https://X.org/a.html", "https://x.org/a"),
    ],
)
def test_they_are_the_same(one, other):
    assert normalised(one) == normalised(other) != ""


def test_other_pages_differ_and_what_is_none_is_empty():
    assert normalised("https://x.org/a?id=1") != normalised("https://x.org/a?id=2")
    assert normalised("https://x.org/A") != normalised("https://x.org/a")
    assert normalised("no address") == normalised("http://[") == ""
