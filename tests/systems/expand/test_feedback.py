"""RM3 and Rocchio against a plain computation of their definitions, and what becomes of the weighted terms."""

import math
import random
from collections import Counter, defaultdict

import pytest

from r2med import UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.text import english
from r2med.systems.expand.feedback import RM3, Rocchio
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.fusion import Fusion
from r2med.systems.retrieve.retriever import SearchQuery
from r2med.systems.retrieve.stored_search import stored_search

CHANCE = random.Random(7)
WORDS = [f"w{CHANCE.choice('abcdefg')}{number}x" for number in range(60)] + ["naïve", "α", "x"]
TEXTS = [" ".join(CHANCE.choices(WORDS, weights=range(len(WORDS), 0, -1), k=CHANCE.randint(5, 30))) for _ in range(50)]
CORPUS = Corpus.of((f"d{i:02}", text) for i, text in enumerate(TEXTS))
QUERIES = tuple(Query(str(i), " ".join([*CHANCE.choices(WORDS, k=6), "unheardof"])) for i in range(12))
DATASET = Dataset("words", QUERIES, CORPUS, Qrels({"0": {"d00": 1}}))


@pytest.fixture
def runtime(store):
    return Runtime(store=store)


def document(identifier, plain):
    """The words of a document that count: those of 2 to 20 letters that stand in at most a tenth of all."""
    df = Counter(word for text in TEXTS for word in set(english(text)))
    words = Counter(english(TEXTS[int(identifier[1:])]))
    return {
        word: count
        for word, count in words.items()
        if df[word] / len(TEXTS) <= 0.1 and 2 <= len(word) <= 20 and (not plain or (word.isascii() and word.isalnum()))
    }


def top(weights, size):
    return dict(sorted(sorted(weights.items()), key=lambda item: item[1], reverse=True)[:size])


def rm3(query, ranking, terms=10, alpha=0.5):
    total = defaultdict(float)
    for identifier, score in ranking:
        kept = top(document(identifier, plain=True), terms)
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
        for word, weight in unit(document(identifier, plain=False)).items():
            total[word] += weight / len(ranking)
    learnt, asked = unit(top(total, terms)), unit(Counter(english(query)))
    return {w: alpha * asked.get(w, 0) + beta * learnt.get(w, 0) for w in {*asked, *learnt}}


@pytest.mark.parametrize("settings", [{}, {"documents": 3, "terms": 4}, {"alpha": 0.2}])
@pytest.mark.parametrize(("stage", "reference"), [(RM3, rm3), (Rocchio, rocchio)])
def test_terms_have_the_weights_of_the_definition(runtime, stage, reference, settings):
    expansion = stage(**settings).expand(DATASET, runtime)
    plain = [SearchQuery(query) for query in QUERIES]
    run = stored_search(BM25(), DATASET, plain, settings.get("documents", 10), runtime).run
    others = {name: value for name, value in settings.items() if name != "documents"}
    for search, (_, ranking) in zip(expansion.queries, run, strict=True):
        assert ranking
        assert dict(search.terms) == pytest.approx(reference(search.query.text, ranking, **others))
        assert search.generated == ()


@pytest.mark.parametrize("scorer", ["published", "lucene"])
def test_bm25_scores_weighted_terms_linearly(runtime, scorer):
    """Σ weight · idf · impact, with idf twice where the scorer has it twice."""
    terms = (("wa1x", 0.5), ("unheardof", 3.0), *((word, 0.125) for word in sorted(set(english(TEXTS[0])))[:5]))
    queries = [SearchQuery(Query("q", "ignored"), terms=terms)]
    [(_, ranking)] = BM25(scorer=scorer, b=0.0).search(DATASET, queries, 100, runtime).run
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


def test_equal_weights_rank_as_the_words_once_each(runtime):
    words = sorted({*english(TEXTS[1])})[:6]
    plain, weighted = (
        SearchQuery(Query("q", " ".join(words))),
        SearchQuery(Query("q", "x"), terms=tuple((w, 0.25) for w in words)),
    )
    for scorer in ("published", "lucene"):
        (_, one), (_, two) = BM25(scorer=scorer).search(DATASET, [plain, weighted], 20, runtime).run
        assert [name for name, _ in one] == [name for name, _ in two]


def test_the_weight_of_the_query_alone_searches_the_query(runtime):
    lucene = BM25(scorer="lucene")
    queries = RM3(alpha=1.0, by=lucene).expand(DATASET, runtime).queries
    one = lucene.search(DATASET, [SearchQuery(query) for query in QUERIES], 10, runtime).run
    two = lucene.search(DATASET, queries, 10, runtime).run
    for (_, plain), (_, weighted) in zip(one, two, strict=True):
        assert [name for name, _ in plain] == [name for name, _ in weighted]


def test_weights_are_part_of_what_a_search_is_kept_under(runtime):
    runs = [
        stored_search(BM25(), DATASET, RM3(alpha=alpha).expand(DATASET, runtime).queries, 10, runtime).run
        for alpha in (0.9, 0.1)
    ]
    assert list(runs[0]) != list(runs[1])


def test_a_fusion_s_parts_get_the_terms(runtime):
    queries = RM3(alpha=0.0).expand(DATASET, runtime).queries
    alone = stored_search(BM25(), DATASET, queries, 10, runtime).run
    fused = stored_search(Fusion(parts=(BM25(), BM25())), DATASET, queries, 10, runtime).run
    original = stored_search(BM25(), DATASET, [SearchQuery(q) for q in QUERIES], 10, runtime).run
    assert [[d for d, _ in ranking] for _, ranking in fused] == [[d for d, _ in ranking] for _, ranking in alone]
    assert [[d for d, _ in ranking] for _, ranking in fused] != [[d for d, _ in ranking] for _, ranking in original]


def test_a_query_that_finds_nothing_stays_itself_and_is_told(runtime):
    dataset = Dataset("odd", (Query("1", "unheardof"), QUERIES[0]), CORPUS, Qrels({"1": {"d00": 1}}))
    expansion = RM3().expand(dataset, runtime)
    assert expansion.queries[0] == SearchQuery(dataset.queries[0])
    assert expansion.failures == 0
    assert expansion.notices == ("rm3: 1 of 2 queries of odd find no documents to take terms from",)


def test_excluded_documents_teach_nothing(runtime):
    texts = [("a", "fever rash"), ("b", "fever cough")] + [(f"n{i}", "other words") for i in range(30)]
    query = Query("1", "fever", excluded=("a",))
    dataset = Dataset("two", (query,), Corpus.of(texts), Qrels({"1": {"b": 1}}))
    terms = dict(RM3().expand(dataset, runtime).queries[0].terms)
    assert "cough" in terms
    assert "rash" not in terms


def test_names_tell_what_differs_from_the_defaults():
    assert str(RM3()) == "rm3"
    assert str(Rocchio(documents=5, terms=20, beta=0.5)) == "rocchio(documents=5, terms=20, beta=0.5)"
    assert str(RM3(by=BM25(scorer="lucene"))) == "rm3(by=bm25(scorer=lucene))"


@pytest.mark.parametrize(
    ("stage", "settings", "says"),
    [
        (RM3, {"documents": 0}, "documents must be 1 or more"),
        (RM3, {"terms": 0}, "terms must be 1 or more"),
        (RM3, {"alpha": 1.5}, "alpha must be 1 or less, not 1.5"),
        (Rocchio, {"alpha": -1.0}, "alpha must be 0 or more"),
        (Rocchio, {"beta": float("inf")}, "beta=inf is not a number"),
        (Rocchio, {"alpha": 1e308}, "alpha must be 1000000 or less"),
        (Rocchio, {"alpha": 0.0, "beta": 0.0}, "cannot both be 0"),
    ],
)
def test_invalid_settings_give_a_one_line_error(stage, settings, says):
    with pytest.raises(UserError, match=says):
        stage(**settings)


def test_what_a_score_depends_on_is_described_however_the_search_was_told():
    fed_by = RM3().feeding(BM25(scorer="lucene")).key(DATASET, Runtime())
    told_by = RM3(by=BM25(scorer="lucene")).feeding(BM25()).key(DATASET, Runtime())
    assert fed_by == told_by
    assert fed_by["by"]["scorer"] == "lucene"
    assert fed_by != RM3().key(DATASET, Runtime())


# Anserini's Rocchio asks for a length only; its RM3 for plain letters and digits as well.
def test_rocchio_learns_words_with_other_signs_and_rm3_does_not(runtime):
    texts = [("a", "fever tnf.α 37.5 naïve il6"), *((f"n{i}", "other words") for i in range(30))]
    dataset = Dataset("signs", (Query("1", "fever"),), Corpus.of(texts), Qrels({"1": {"a": 1}}))
    learnt = {
        stage: {term for term, _ in stage().expand(dataset, runtime).queries[0].terms} for stage in (RM3, Rocchio)
    }
    assert learnt[RM3] == {"fever", "il6"}
    assert learnt[Rocchio] == {"fever", "il6", "tnf.α", "37.5", "naïv"}


def test_the_demo_can_be_searched_with_feedback(runtime):
    dataset = load("demo/MedQA-Diag")
    for stage in (RM3, Rocchio):
        assert stage().key(dataset, runtime)["by"]["stage"] == "bm25"
        expansion = stage().expand(dataset, runtime)
        assert all(len(query.terms) > 10 for query in expansion.queries)
        assert expansion.cost.seconds > 0
