"""A corpus to serve: BM25 over four small documents."""

import pytest

from r2med.data import Corpus
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.server.served_corpus import ServedCorpus, open_served_corpus
from support.datasets import dataset_of

DOCUMENTS = [
    ("gluten", "Gluten harms the small bowel in coeliac disease."),
    ("ärzte", "Ärzte und 漢字 und 😀 in one line."),
    ("titled", "Iron deficiency\nIron deficiency has many causes.\nCoeliac disease is one."),
    ("marked", '<script>alert("1")</script> "quoted" iron\tand\u2028separators'),
]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus.of(DOCUMENTS)


@pytest.fixture(scope="session")
def served(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> ServedCorpus:
    store = Store(tmp_path_factory.mktemp("store"))
    return open_served_corpus(dataset_of(corpus), "bm25", Runtime(), store)
