"""Checks of an audit: judgements, queries and documents must fit together."""

from __future__ import annotations

from r2med.assessment.audit.audit_findings import verdict_for
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.foundation.pages.finding import Evidence, Finding, Verdict, worst
from r2med.foundation.text.plurals import counted

LOOK_SHARE = 0.001
"""Share of documents from which a fault that concerns no relevant document is worth a look."""


def checked_files(check: str, material: AuditMaterial) -> Finding:
    """Return what a check of `r2med data check` found."""
    assert material.problems is not None
    return material.problems.finding(check)


def scorable_queries(material: AuditMaterial) -> Finding:
    """Find queries that cannot be scored, or always score 0."""
    if not material.qrels:
        return Finding(verdict="broken", sentence="There are no judgements: nothing can be scored.")
    barren = [query for query, documents in material.relevant.items() if not documents]
    texts = {query.id for query in material.queries.values() if query.text.strip()}
    lost = [query for query in material.qrels if material.dataset and query not in texts]
    unjudged = [query for query in material.queries if query not in material.qrels]
    parts = [
        (barren, "without a relevant document (score 0)"),
        (lost, "with judgements but without a text (score 0)"),
        (unjudged, "without judgements (not scored)"),
    ]
    found = [f"{counted(len(queries), 'query', 'queries')} {what}" for queries, what in parts if queries]
    verdict = verdict_for(len({*barren, *lost}), len(material.qrels))
    sentence = f"{'; '.join(found)}." if found else "Every judged query has a text and a relevant document."
    rows = [(query, what) for queries, what in parts for query in queries]
    return Finding(
        verdict=worst([verdict, "look"]) if unjudged else verdict,
        sentence=sentence,
        numbers={"without_relevant": len(barren), "unknown": len(lost), "unjudged": len(unjudged)},
        evidence=Evidence.found(("query", "problem"), rows),
    )


def missing_documents(material: AuditMaterial) -> Finding:
    """Find relevant documents that the corpus does not have."""
    rows = [
        (query, document, material.qrels[query][document])
        for query, documents in material.relevant.items()
        for document in documents
        if document not in material.rows
    ]
    queries = len({row[0] for row in rows})
    sentence = "The corpus has every relevant document."
    if rows:
        ids = counted(len({row[1] for row in rows}), "relevant document")
        sentence = f"The corpus lacks {ids} of {counted(queries, 'query', 'queries')}, which no system can find."
    return Finding(
        verdict=verdict_for(queries, len(material.qrels)),
        sentence=sentence,
        numbers={"missing": len(rows), "queries": queries},
        evidence=Evidence.found(("query", "document", "grade"), rows),
    )


def empty_documents(material: AuditMaterial) -> Finding:
    """Find documents without text."""
    if not (material.dataset and len(material.dataset.corpus)):
        return Finding(verdict="broken", sentence="There are no documents.")
    scan = material.scan
    empty = dict(zip(scan.empty, material.ids(scan.empty), strict=True))
    relevant = {document for documents in material.relevant.values() for document in documents}
    lost = relevant & set(empty.values())
    queries = sum(any(document in lost for document in documents) for documents in material.relevant.values())
    total = len(material.dataset.corpus)
    verdict: Verdict = verdict_for(queries, len(material.qrels))
    if scan.empty_count > LOOK_SHARE * total:
        verdict = worst([verdict, "look"])
    sentence = "Every document has text."
    if scan.empty_count:
        have = "has" if scan.empty_count == 1 else "have"
        also = f"{len(lost):,} of them relevant" if lost else "none of them relevant"
        sentence = f"{scan.empty_count:,} of {total:,} documents {have} no text, {also}."
    rows = sorted(
        ((document, "yes" if document in lost else "no") for document in empty.values()),
        key=lambda row: row[1],
        reverse=True,
    )
    return Finding(
        verdict=verdict,
        sentence=sentence,
        numbers={"empty": scan.empty_count, "relevant": len(lost), "queries": queries},
        evidence=Evidence.found(("document", "relevant"), rows),
    )
