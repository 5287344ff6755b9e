"""RM3 and Rocchio against a plain computation of their definitions, and what becomes of the weighted terms."""

import math
import random
from collections import Counter, defaultdict

import pytest

from r2med import UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.expand.contracts import Expander
from r2med.expand.feedback import Feedback
from r2med.retrieve.bm25 import BM25
from r2med.retrieve.cached import cached_search
from r2med.retrieve.fusion import Fusion
from r2med.retrieve.retriever import SearchQuery
from r2med.setup import Setup
from r2med.store import Store
from r2med.text import english

CHANCE = random.Random(7)
WORDS = [f"w{CHANCE.choice('abcdefg')}{number}x" for number in range(60)] + ["naïve", "α", "x"]
TEXTS = [" ".join(CHANCE.choices(WORDS, weights=range(len(WORDS), 0, -1), k=CHANCE.randint(5, 30))) for _ in range(50)]
CORPUS = Corpus.of((f"d{i:02}", text) for i, text in enumerate(TEXTS))
QUERIES = tuple(Query(str(i), " ".join([*CHANCE.choices(WORDS, k=6), "unheardof"])) for i in range(12))
DATASET = Dataset("words", QUERIES, CORPUS, Qrels({"0": {"d00": 1}}))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def document(identifier):
    """The words of a document that count: plain ones that stand in at most a tenth of all."""
    df = Counter(word for text in TEXTS for word in set(english(text)))
    words = Counter(english(TEXTS[int(identifier[1:])]))
    return {
        word: count
        for word, count in words.items()
        if df[word] / len(TEXTS) <= 0.1 and 2 <= len(word) <= 20 and word.isascii() and word.isalnum()
    }


def top(weights, size):
    return dict(sorted(sorted(weights.items()), key=lambda item: item[1], reverse=True)[:size])


def rm3(query, ranking, terms=10, alpha=0.5):
    total = defaultdict(float)
    for identifier, score in ranking:
        kept = top(document(identifier), terms)
        for word, count in kept.items():
            total[word] += score * count / sum(kept.values())
    learnt = top(total, terms)
    asked = Counter(english(query))
    weights = {word: alpha * count / asked.total() for word, count in asked.items()}
    for word, weight in learnt.items():
        weights[word] = weights.get(word, 0) + (1 - alpha) * weight / sum(learnt.values())
    return weights


def rocchio(query, ranking, terms=10, alpha=1.0, beta=0.75):
    def unit(weights):
        length = math.hypot(*weights.values())
        return {word: weight / length for word, weight in weights.items()}

    total = defaultdict(float)
    for identifier, _ in ranking:
        for word, weight in unit(document(identifier)).items():
            total[word] += weight / len(ranking)
    learnt, asked = unit(top(total, terms)), unit(Counter(english(query)))
    return {w: alpha * asked.get(w, 0) + beta * learnt.get(w, 0) for w in {*asked, *learnt}}


@pytest.mark.parametrize("settings", [{}, {"documents": 3, "terms": 4}, {"alpha": 0.2}])
@pytest.mark.parametrize(("method", "reference"), [("rm3", rm3), ("rocchio", rocchio)])
def test_terms_have_the_weights_of_the_definition(store, method, reference, settings):
    feedback: Expander = Feedback(method, **settings)
    expansion = feedback.expand(DATASET, store)
    plain = [SearchQuery(query) for query in QUERIES]
    run = cached_search(BM25(), DATASET, plain, settings.get("documents", 10), store).run
    others = {name: value for name, value in settings.items() if name != "documents"}
    for search, (_, ranking) in zip(expansion.queries, run, strict=True):
        assert ranking
        assert dict(search.terms) == pytest.approx(reference(search.query.text, ranking, **others))
        assert search.generated == ()


@pytest.mark.parametrize("scorer", ["published", "lucene"])
def test_bm25_scores_weighted_terms_linearly(store, scorer):
    """Σ weight · idf · impact, with idf twice where the scorer has it twice."""
    terms = (("wa1x", 0.5), ("unheardof", 3.0), *((word, 0.125) for word in sorted(set(english(TEXTS[0])))[:5]))
    searcher = BM25(scorer=scorer, b=0.0).index(DATASET, store)
    [(_, ranking)] = searcher.search([SearchQuery(Query("q", "ignored"), terms=terms)], 100).run
    n, bags = len(TEXTS), [Counter(english(text)) for text in TEXTS]
    df = Counter(word for bag in bags for word in bag)
    idf = {
        "published": lambda word: math.log((n + 1) / (df[word] + 0.5)) ** 2,
        "lucene": lambda word: math.log(1 + (n - df[word] + 0.5) / (df[word] + 0.5)),
    }[scorer]
    expected = {
        f"d{i:02}": sum(weight * idf(w) * bag[w] / (bag[w] + 0.9) for w, weight in terms if bag[w])
        for i, bag in enumerate(bags)
    }
    assert dict(ranking) == pytest.approx({name: score for name, score in expected.items() if score > 0}, rel=1e-5)


def test_equal_weights_rank_as_the_words_once_each(store):
    words = sorted({*english(TEXTS[1])})[:6]
    plain, weighted = (
        SearchQuery(Query("q", " ".join(words))),
        SearchQuery(Query("q", "x"), terms=tuple((w, 0.25) for w in words)),
    )
    for scorer in ("published", "lucene"):
        searcher = BM25(scorer=scorer).index(DATASET, store)
        (_, one), (_, two) = searcher.search([plain, weighted], 20).run
        assert [name for name, _ in one] == [name for name, _ in two]


def test_the_weight_of_the_query_alone_searches_the_query(store):
    queries = Feedback("rm3", alpha=1.0, search=BM25(scorer="lucene")).expand(DATASET, store).queries
    searcher = BM25(scorer="lucene").index(DATASET, store)
    both = zip(
        searcher.search([SearchQuery(q) for q in QUERIES], 10).run, searcher.search(queries, 10).run, strict=True
    )
    for (_, plain), (_, weighted) in both:
        assert [name for name, _ in plain] == [name for name, _ in weighted]


def test_weights_are_part_of_what_a_search_is_kept_under(store):
    runs = [
        cached_search(BM25(), DATASET, Feedback("rm3", alpha=alpha).expand(DATASET, store).queries, 10, store).run
        for alpha in (0.9, 0.1)
    ]
    assert list(runs[0]) != list(runs[1])


def test_a_fusion_s_parts_get_the_terms(store):
    queries = Feedback("rm3", alpha=0.0).expand(DATASET, store).queries
    alone = cached_search(BM25(), DATASET, queries, 10, store).run
    fused = cached_search(Fusion(parts=(BM25(), BM25())).open(Setup()), DATASET, queries, 10, store).run
    original = cached_search(BM25(), DATASET, [SearchQuery(q) for q in QUERIES], 10, store).run
    assert [[d for d, _ in ranking] for _, ranking in fused] == [[d for d, _ in ranking] for _, ranking in alone]
    assert [[d for d, _ in ranking] for _, ranking in fused] != [[d for d, _ in ranking] for _, ranking in original]


def test_a_query_that_finds_nothing_stays_itself_and_is_told(store):
    dataset = Dataset("odd", (Query("1", "unheardof"), QUERIES[0]), CORPUS, Qrels({"1": {"d00": 1}}))
    expansion = Feedback().expand(dataset, store)
    assert expansion.queries[0] == SearchQuery(dataset.queries[0])
    assert expansion.failures == 0
    assert expansion.notices == ("rm3: 1 of 2 queries of odd find nothing to learn from",)


def test_excluded_documents_teach_nothing(store):
    texts = [("a", "fever rash"), ("b", "fever cough")] + [(f"n{i}", "other words") for i in range(30)]
    query = Query("1", "fever", excluded=("a",))
    dataset = Dataset("two", (query,), Corpus.of(texts), Qrels({"1": {"b": 1}}))
    terms = dict(Feedback().expand(dataset, store).queries[0].terms)
    assert "cough" in terms
    assert "rash" not in terms


def test_names_tell_what_differs_from_the_defaults():
    assert Feedback().name == "rm3"
    assert Feedback("rocchio", 5, 20, beta=0.5).name == "rocchio(documents=5, terms=20, beta=0.5)"
    assert Feedback("rm3", search=BM25(scorer="lucene")).name == "rm3(by=bm25(scorer=lucene))"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"method": "rm4"}, "did you mean rm3"),
        ({"documents": 0}, "documents must be 1 or more"),
        ({"terms": 0}, "terms must be 1 or more"),
        ({"alpha": 1.5}, "alpha must lie between 0 and 1, not 1.5"),
        ({"method": "rocchio", "alpha": -1.0}, "alpha and beta must be 0 or more"),
        ({"method": "rocchio", "beta": float("inf")}, "alpha and beta must be 0 or more"),
        ({"method": "rocchio", "alpha": 0.0, "beta": 0.0}, "cannot both be 0"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(settings, says):
    with pytest.raises(UserError, match=says):
        Feedback(**settings)


def test_the_demo_can_be_searched_with_feedback(store):
    dataset = load("demo/MedQA-Diag")
    for method in ("rm3", "rocchio"):
        feedback = Feedback(method)
        assert feedback.describe(dataset)["search"]["stage"] == "bm25"
        expansion = feedback.expand(dataset, store)
        assert all(len(query.terms) > 10 for query in expansion.queries)
