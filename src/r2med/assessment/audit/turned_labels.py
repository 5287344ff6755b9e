"""A check of an audit: do labels look turned, so that 0 means relevant, or 1 the best of several grades?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from r2med.assessment.audit.answer_leaks import is_open_answer
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.evaluation.measure.intervals import FEWEST_VALUES, mean_intervals
from r2med.foundation.pages.finding import Evidence, Finding
from r2med.foundation.text.english import english
from r2med.foundation.text.plurals import counted

MAX_QUERIES = 200
"""Number of queries that are compared. More hardly change the verdict."""
MAX_OF_GRADE = 20
"""Number of documents of one grade that are compared for a query."""
MAX_POSITIVE = 0.8
"""Share of relevant documents above which the labels of a pool look turned."""
MOSTLY_RELEVANT = 2 / 3
"""Share of relevant documents above which the order by the words of the query counts: see `turned_labels`."""
MIN_POOL = 20
"""Mean number of labels of a query from which they are a pool: most of what systems return is irrelevant."""
MAX_OF_CORPUS = 0.5
"""Share of the corpus above which a query has too many relevant documents, whatever the pool."""


def turned_labels(material: AuditMaterial) -> Finding:
    """Compare the words that documents of higher and of lower grades share with the answer, or else with the query."""
    assert material.dataset is not None
    judged, relevant = (sum(map(len, each.values())) for each in (material.qrels, material.relevant))
    share = relevant / max(1, judged)
    graded = _graded(material)
    texts = {query: known.answer for query, known in material.queries.items() if is_open_answer(known.answer)}
    by_answer = len(graded.keys() & texts) >= FEWEST_VALUES
    if not by_answer:
        texts = {query: known.text for query, known in material.queries.items()}
    orders = _orders(material, {query: documents for query, documents in graded.items() if query in texts}, texts)
    mean, high = _mean(orders)
    # Without answers, irrelevant documents may share more words with the query because they were chosen for that.
    reversed_ = high < 50 and (by_answer or share > MOSTLY_RELEVANT)
    what = "answer" if by_answer else "query"
    parts = []
    if reversed_:
        parts.append(
            f"Documents with a lower grade share more words with the {what}: only in {mean:.0f} % of the pairs of "
            f"documents does the higher grade share more (95 % interval to {high:.0f} %, "
            f"{counted(len(orders), 'query', 'queries')})."
        )
    if flooded := _is_flooded(material, judged, relevant):
        parts.append(f"{relevant:,} of {judged:,} documents with a label are relevant, which is unusually many.")
    if parts:
        parts.append("Grades may be turned: read some of these documents.")
    elif orders:
        parts.append(f"In {mean:.0f} % of the pairs of documents, the higher grade shares more words with the {what}.")
    else:
        parts.append("No query has documents of two grades to compare.")
    rows = sorted(
        ((query, pairs, round(100 * in_order, 1)) for query, (pairs, in_order) in orders.items()),
        key=lambda row: row[2],
    )
    return Finding(
        verdict="look" if reversed_ or flooded else "sound",
        sentence=" ".join(parts),
        numbers={"queries": len(orders), "relevant_share": round(share, 4)}
        | ({"in_order": round(mean / 100, 4)} if orders else {}),
        evidence=Evidence.found(("query", "pairs", "% in the order of their grades"), rows if reversed_ else []),
    )


def _is_flooded(material: AuditMaterial, judged: int, relevant: int) -> bool:
    """Return True if a pool has hardly any irrelevant document, or most of the corpus is relevant to a query."""
    assert material.dataset is not None
    queries, documents = len(material.qrels), len(material.dataset.corpus)
    pooled = any(grade <= 0 for grades in material.qrels.values() for grade in grades.values())
    is_pool_relevant = pooled and judged >= MIN_POOL * queries and relevant > MAX_POSITIVE * judged
    return is_pool_relevant or (documents >= MIN_POOL and relevant > MAX_OF_CORPUS * queries * documents)


def _mean(orders: Mapping[str, tuple[int, float]]) -> tuple[float, float]:
    """Return how many pairs are in the right order on average, and the upper end of the interval, in percent."""
    if not orders:
        return np.nan, np.nan
    values = np.array([[100 * share for _, share in orders.values()]])
    return float(values.mean()), float(mean_intervals({"": values})[1, 0])


def _graded(material: AuditMaterial) -> dict[str, list[str]]:
    """Return the queries with documents of two grades or more, and some documents of each grade."""
    graded = {}
    for query, grades in material.qrels.items():
        by_grade: dict[int, list[str]] = {}
        for document, grade in grades.items():
            if document in material.rows:
                by_grade.setdefault(grade, []).append(document)
        if len(by_grade) > 1:
            graded[query] = [document for documents in by_grade.values() for document in documents[:MAX_OF_GRADE]]
    return graded


def _orders(
    material: AuditMaterial, graded: Mapping[str, Sequence[str]], texts: Mapping[str, str]
) -> dict[str, tuple[int, float]]:
    """Return query -> pairs of documents with different grades, and the share in which the higher shares more words."""
    assert material.dataset is not None
    compared = dict(list(graded.items())[:MAX_QUERIES])
    documents = sorted({document for each in compared.values() for document in each})
    read = material.dataset.corpus.texts([material.rows[document] for document in documents])
    words = {document: {*english(text)} for document, text in zip(documents, read, strict=True)}
    found = {}
    for query, judged in compared.items():
        terms = {*english(texts[query])}
        shared = np.array([len(terms & words[document]) for document in judged])
        grades = np.array([material.qrels[query][document] for document in judged])
        higher = grades[:, None] > grades
        ahead = np.sign(shared[:, None] - shared)[higher]
        found[query] = int(higher.sum()), float((ahead.mean() + 1) / 2)
    return found
