"""Find the properties that may make queries hard: terminology, sparsity, knowledge, reviewers' judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from r2med.analysis.causes import UNKNOWN, Cause, ScoredQueries
from r2med.analysis.closed_book import closed_book
from r2med.analysis.estimates import mean_interval
from r2med.analysis.material import Material
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.synonyms import Synonyms, normal_term

NO_TABLE = (
    "Terminology is left out: r2med analyse difficulty --synonyms FILE compares concepts by a table of "
    "synonyms: a CSV file with the columns concept and term."
)
NO_LLM = "Knowledge is left out: r2med analyse difficulty --llm NAME asks an LLM every question without passages."
NO_ANSWERS = "Knowledge is left out: no query has a reference answer (the field answer of query.jsonl)."
NO_REVIEWS = (
    "Reviewers' judgement is left out: no query says if it needs inference. r2med review serve asks reviewers about "
    "questions, and the published query.jsonl then has the field needs_inference."
)


@dataclass(frozen=True)
class ConceptUse:
    """Numbers of a query's concepts, by how its relevant documents write them."""

    same: int
    """Concepts that a relevant document writes with a term of the query."""
    other: int
    """Concepts that relevant documents write only with other terms."""
    absent: int
    """Concepts that no relevant document contains."""

    @property
    def total(self) -> int:
        """Number of concepts of the query."""
        return self.same + self.other + self.absent

    @property
    def gap(self) -> float:
        """Share of the concepts that appear only under other words; NaN if the query has no concept."""
        return self.other / self.total if self.total else np.nan

    @property
    def missing(self) -> float:
        """Share of the concepts that no relevant document contains; NaN if the query has no concept."""
        return self.absent / self.total if self.total else np.nan


def concept_use(synonyms: Synonyms, query: str, documents: Iterable[str]) -> ConceptUse:
    """Return how the relevant documents of a query write its concepts."""
    asked = _forms(synonyms, query)
    written: dict[str, set[str]] = {}
    for document in documents if asked else ():
        for concept, forms in _forms(synonyms, document).items():
            written.setdefault(concept, set()).update(forms)
    same = sum(bool(forms & written.get(concept, set())) for concept, forms in asked.items())
    absent = sum(concept not in written for concept in asked)
    return ConceptUse(same, len(asked) - same - absent, absent)


def _forms(synonyms: Synonyms, text: str) -> dict[str, set[str]]:
    """Return the concepts of a text with their terms in normal form, so that a plural is not another word."""
    return {concept: set(map(normal_term, terms)) for concept, terms in synonyms.concepts(text).items()}


def query_causes(material: Material, scored: ScoredQueries) -> tuple[list[Cause], list[str]]:
    """Return the properties that are known, and a line for each that is not."""
    makers: Sequence[Callable[[], list[Cause] | str]] = (
        partial(_terminology, material, scored),
        partial(_sparsity, scored),
        partial(_knowledge, material, scored),
        partial(_inference, scored),
    )
    causes: list[Cause] = []
    lacking: list[str] = []
    for make in makers:
        made = make()
        if isinstance(made, str):
            lacking.append(made)
        else:
            causes += made
    return causes, lacking


def relevant_texts(dataset: Dataset, query: Query) -> list[str]:
    """Return the texts of a query's relevant documents in the corpus."""
    wanted = [document for document, grade in dataset.qrels[query.id].items() if grade > 0]
    rows = dataset.corpus.rows(wanted)
    return list(dataset.corpus.texts(rows[rows >= 0].tolist()))


def _terminology(material: Material, scored: ScoredQueries) -> list[Cause] | str:
    if material.synonyms is None:
        return NO_TABLE
    synonyms = Synonyms.read(material.synonyms)
    uses = [concept_use(synonyms, query.text, relevant_texts(dataset, query)) for dataset, query in scored.queries]
    gap = np.array([use.gap for use in uses])
    missing = np.array([use.missing for use in uses])
    slices = np.select([np.isnan(gap), gap > 0], [UNKNOWN, 0], 1)
    shares = mean_interval(gap), mean_interval(missing)
    table = material.synonyms.name
    if shares[0] is None or shares[1] is None:
        finding = f"Terminology: no query has a concept of {table}."
    else:
        finding = (
            f"Terminology: on average, {_percent(shares[0])} of the concepts of a query are in its relevant documents "
            f"only under other words, and {_percent(shares[1])} are not in them at all "
            f"({counted(int((~np.isnan(gap)).sum()), 'query', 'queries')} with a concept of {table})."
        )
    finding += "".join(f" {note}." for note in synonyms.notes)
    columns: dict[str, Sequence[Value]] = {
        "concepts": [use.total for use in uses],
        "under other words only": gap.tolist(),
        "in no relevant document": missing.tolist(),
    }
    labels = ("a concept in other words", "no such concept")
    return [Cause("terminology", labels, slices, 0, 1, finding, columns)]


def _sparsity(scored: ScoredQueries) -> list[Cause]:
    texts = [relevant_texts(dataset, query) for dataset, query in scored.queries]
    counts = np.array([len(each) for each in texts])
    words = np.array([np.mean([len(text.split()) for text in each]) if each else np.nan for each in texts])
    known = counts[counts > 0]
    finding = "Sparsity: no relevant document is in the corpus."
    if len(known):
        finding = (
            f"Sparsity: {float((known == 1).mean()):.0%} of {counted(len(known), 'query', 'queries')} have only one "
            f"relevant document; the mean is {known.mean():.1f}."
        )
    levels = np.where(counts > 0, np.searchsorted([1, 2, 4], counts), UNKNOWN)
    many = ("1 relevant document", "2 relevant documents", "3 or 4 relevant documents", "5 or more documents")
    filled = sorted(set(levels[levels != UNKNOWN].tolist())) or [0]
    columns: dict[str, Sequence[Value]] = {"relevant documents": counts.tolist()}
    number = Cause("relevant documents", many, levels, filled[0], filled[-1], finding, columns)
    return [number, _lengths(words)]


def _lengths(words: Floats) -> Cause:
    """Return thirds of the queries by the mean length of their relevant documents."""
    known = words[~np.isnan(words)]
    low, high = (round(float(bound)) for bound in np.quantile(known, [1 / 3, 2 / 3])) if len(known) else (0, 0)
    labels = (f"up to {low:,} words", f"{low + 1:,} to {high:,} words", f"over {high:,} words")
    slices = np.where(np.isnan(words), UNKNOWN, np.searchsorted([low, high], np.ceil(np.nan_to_num(words))))
    finding = "Length: no relevant document is in the corpus."
    if len(known):
        finding = f"Length: relevant documents have {np.median(known):,.0f} words (median of the means of queries)."
    return Cause("document length", labels, slices, 0, 2, finding, {"words per document": words.tolist()})


def _knowledge(material: Material, scored: ScoredQueries) -> list[Cause] | str:
    if not material.runtime.setup.llm:
        return NO_LLM
    answered = closed_book(material, scored.datasets)
    right = np.array([answered.get((dataset.name, query.id), np.nan) for dataset, query in scored.queries])
    share = mean_interval(right)
    if share is None:
        return NO_ANSWERS if not any(query.answer for _, query in scored.queries) else _undecided(material)
    finding = (
        f"Knowledge: without any passage, {material.questions.card.spec} answers {_percent(share)} of "
        f"{counted(int((~np.isnan(right)).sum()), 'question')} right."
    )
    slices = np.select([np.isnan(right), right == 0], [UNKNOWN, 0], 1)
    labels = ("closed-book answer wrong", "closed-book answer right")
    return [Cause("knowledge", labels, slices, 0, 1, finding, {"closed-book answer right": right.tolist()})]


def _undecided(material: Material) -> str:
    return f"Knowledge is left out: no closed-book answer of {material.questions.card.spec} could be judged."


def _inference(scored: ScoredQueries) -> list[Cause] | str:
    said = [query.needs_inference for _, query in scored.queries]
    order = {"yes": 0, "no": 1, "unsure": 2}
    slices = np.array([order.get(each, UNKNOWN) for each in said])
    reviewed = int((slices != UNKNOWN).sum())
    if not reviewed:
        return NO_REVIEWS
    share = mean_interval((slices[slices != UNKNOWN] == 0).astype(np.float64))
    finding = (
        f"Reviewers: {_percent(share)} of {counted(reviewed, 'reviewed query', 'reviewed queries')} need inference."
    )
    labels = ("needs inference", "needs no inference", "reviewers are unsure")
    return [Cause("inference", labels, slices, 0, 1, finding, {"needs inference": said})]


def _percent(share: Estimate | None) -> str:
    return "–" if share is None else f"{share.value:.0%} (95 % interval {share.interval('.0%')})"
