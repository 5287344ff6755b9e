"""BM25 in other languages finds inflected words that the English analysis misses, and English stays as it was."""

import logging
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med import System
from r2med.data import Corpus, Query
from r2med.data.dataset_cards import DatasetCard
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.text.analysers import analyser
from r2med.systems.expand.feedback import RM3, Rocchio
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.bm25.index import open_index
from r2med.systems.retrieve.fusion import Fusion
from r2med.systems.retrieve.retriever import SearchQuery
from support.datasets import dataset_of

# language, notes (the first one answers), question
NOTES = {
    "de": (["Sturz, danach im Krankenhaus.", "Blutdruck unauffällig.", "Impfung erfolgt."], "Krankenhäuser"),
    "fr": (["Sténose de l’artère rénale.", "Tension normale.", "Vaccin fait."], "artères"),
    "es": (["Inflamación de una articulación.", "Presión normal.", "Vacuna puesta."], "articulaciones"),
    "pl": (["Zapalenie płuc.", "Ciśnienie w normie.", "Szczepienie wykonane."], "zapalenia"),
    "zh": (["患者有高血压病史。", "血压高低不平，高热，血象高，压痛。", "已接种疫苗。"], "高血压"),
    "ko": (["당뇨병의 병력 있음.", "혈압은 정상.", "예방접종 시행."], "당뇨병은"),
}


def first(language, texts, question, store):
    """Return the number of the first note that is found; None if nothing is found."""
    corpus = Corpus.of((str(number), text) for number, text in enumerate(texts))
    asked, runtime = [SearchQuery(Query("q", question))], Runtime(store=store)
    [(_, ranking)] = BM25(language=language).search(dataset_of(corpus), asked, 3, runtime).run
    return int(ranking[0][0]) if ranking else None


@pytest.mark.parametrize("language", NOTES)
def test_a_note_with_another_form_of_the_word_is_found_which_english_does_not_find(language, store):
    texts, question = NOTES[language]
    assert first(language, texts, question, store) == 0
    assert first("en", texts, question, store) != 0


@pytest.mark.parametrize("language", ["fr", "zh", "ko"])
def test_the_indexer_gives_the_same_terms_as_the_analyser(language, tmp_path_factory):
    terms = analyser(language).terms

    @given(
        st.lists(
            st.text(alphabet="aé l'’-.,:Bx 9\t\u0301血压高糖尿病은당뇨병을か", max_size=25), min_size=1, max_size=5
        )
    )
    def check(texts):
        corpus = Corpus.of((str(number), text) for number, text in enumerate(texts))
        [segment] = open_index(corpus, Runtime(store=Store(tmp_path_factory.mktemp("store"))), language).segments
        bags = [Counter() for _ in texts]
        for number, term in enumerate(segment.terms.to_pylist()):
            here = slice(segment.offsets[number], segment.offsets[number + 1])
            for document, count in zip(segment.documents[here], segment.frequencies[here], strict=True):
                bags[document][term] = int(count)
        assert bags == [Counter(terms(text)) for text in texts]

    check()


def test_a_language_is_part_of_the_name_and_of_all_keys(store):
    corpus = Corpus.of([("a", "Fieber")])
    german = BM25(language="de")
    assert str(german) == "bm25(language=de)"
    key = german.key(dataset_of(corpus), Runtime())
    assert key["language"] == "de" and key["analysis"].startswith("de 1 PyStemmer 3")
    keys = {open_index(corpus, Runtime(store=store), language).key for language in ("en", "de", "fr")}
    assert len(keys) == 3


def test_an_unknown_language_is_refused_when_the_system_is_read():
    with pytest.raises(UserError, match="no analysis for the language 'xx'"):
        BM25(language="xx")


@pytest.mark.parametrize("feedback", [RM3, Rocchio])
def test_feedback_adds_terms_of_the_language(feedback, store):
    texts = ["Боли и кашель у детей", *(f"слово{number}" for number in range(20))]
    queries = [Query("q", "болью")]
    dataset = dataset_of(Corpus.of((str(number), text) for number, text in enumerate(texts)), queries)
    retriever = Fusion(parts=(BM25(language="ru"), BM25(language="ru", k1=2.0)))
    [expanded] = feedback().feeding(retriever).expand(dataset, Runtime(store=store)).queries
    assert {term for term, _ in expanded.terms} == {"бол", "кашел", "дет"}


def ward(name, *languages):
    card = DatasetCard(name="ward", languages=languages)
    return replace(dataset_of(Corpus.of([("a", "Fieber")])), name=name, card=card)


def test_a_dataset_in_another_language_is_named_once_before_it_is_searched(caplog):
    caplog.set_level(logging.WARNING, "r2med")
    for system in (System(BM25()), System(Fusion(parts=(BM25(), BM25(k1=2.0))))):
        system.check([ward("hinted ward", "en", "de")])
    assert caplog.messages == [
        "hinted ward is German, but bm25 analyses it as English: use bm25(language=de)",
    ]
    System(BM25()).check([ward("English ward", "de", "en")])
    assert len(caplog.messages) == 1


def test_a_language_that_is_not_that_of_the_card_is_named(caplog):
    caplog.set_level(logging.WARNING, "r2med")
    System(BM25(language="de")).check([ward("french ward", "de")])
    assert caplog.messages == []
    System(BM25(language="fr")).check([ward("french ward", "de")])
    assert caplog.messages == ["french ward is German, but bm25 analyses it as French: use bm25(language=de)"]


def test_a_fusion_with_the_language_of_the_card_gets_no_hint(caplog):
    caplog.set_level(logging.WARNING, "r2med")
    System(Fusion(parts=(BM25(), BM25(language="de")))).check([ward("mixed ward", "de")])
    assert caplog.messages == []
