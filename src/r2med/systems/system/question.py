"""Search the corpus of a dataset for one question, with any system."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from r2med.data.dataset import Dataset
from r2med.data.runs.run import NO_DOCUMENT
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.search_languages import ENGLISH
from r2med.foundation.text.unicode import is_unicode
from r2med.systems.system.marking import marking_language
from r2med.systems.system.system import System

log = logging.getLogger("r2med")

NOTHING_FOUND = "nothing was found: no document shares a word with the question"


@dataclass(frozen=True)
class Passage:
    """A document that a search found."""

    id: str
    """The id of the document."""
    score: float
    """The score of the document."""
    text: str
    """The text of the document."""


@dataclass(frozen=True)
class SearchResult:
    """The passages found for a question, best first, and the texts that an expansion wrote before the search."""

    question: str
    """The question."""
    generated: tuple[str, ...]
    """Texts that the expansion wrote about the question."""
    passages: tuple[Passage, ...]
    """The best passages, in order."""
    language: str = ENGLISH
    """The language of the words that a page marks."""


def ask(system: System | str, dataset: Dataset, question: str, k: int = 10) -> SearchResult:
    """Return the passages that a system finds for a question. The dataset needs neither queries nor judgements.

    Raises UserError if the question is empty or the dataset has no documents.
    """
    if not question.strip() or not is_unicode(question):
        raise UserError("the question is empty or not valid text: write it in quotes after the dataset")
    if k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    if not len(dataset.corpus):
        raise UserError(f"{dataset.name} has no documents to search")
    system = System.parse(system) if isinstance(system, str) else system
    outcome = system.answer(dataset, question, k)
    if not system.runtime.store.keeps_questions:  # a system logs no notices about live questions
        reranked = (each for stage in outcome.reranked for each in stage.notices)
        for notice in (*outcome.expansion.notices, *outcome.searched.report.notices, *reranked):
            log.info("%s", notice)
    [rows], [scores] = outcome.run.rows, outcome.run.scores
    found = rows[rows != NO_DOCUMENT]
    passages = zip(dataset.corpus.ids(found), scores.tolist(), dataset.corpus.texts(found), strict=False)
    generated = next(iter(outcome.generated.values()), ())
    language = marking_language(system, dataset)
    return SearchResult(question, generated, tuple(Passage(*passage) for passage in passages), language)
