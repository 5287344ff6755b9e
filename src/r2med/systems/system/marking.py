"""The language in which a page marks matching words: the one that the system searches."""

from __future__ import annotations

from r2med.data.dataset import Dataset
from r2med.foundation.text.analysers import installed_language
from r2med.foundation.text.search_languages import ENGLISH
from r2med.systems.retrieve.bm25.bm25_retriever import all_bm25
from r2med.systems.system.system import System


def marking_language(system: System, dataset: Dataset) -> str:
    """Return the language of the system's BM25. Without BM25, return the language of the documents if it is known."""
    languages = [bm25.language for bm25 in all_bm25(system.retriever)]
    if not languages and dataset.card:
        languages = [*dataset.card.languages[-1:]]
    return installed_language(languages[0]) if languages else ENGLISH
