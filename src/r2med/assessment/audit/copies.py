"""Checks of an audit: texts and queries that occur more than once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from r2med.assessment.audit.audit_findings import (
    AuditEvidence,
    AuditFinding,
    EvidenceCell,
    Verdict,
    verdict_for,
    worst,
)
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.corpus_scan import near_pairs, normalised
from r2med.evaluation.records.rankings import Lists, headline
from r2med.foundation.text.plurals import counted

EQUAL = "equal"

Copies = Mapping[str, Mapping[str, tuple[str, float]]]
"""Query -> unlabelled copy -> (its relevant document, share of common shingles)."""


def unlabelled_copies(material: AuditMaterial) -> AuditFinding:
    """Find copies of relevant documents under other ids that have no label for the query."""
    copies = _unlabelled(material)
    rows = sorted(
        ((query, relevant, copy, share) for query, each in copies.items() for copy, (relevant, share) in each.items()),
        key=lambda row: -row[3],
    )
    equal = {copy for _, _, copy, share in rows if share == 1}
    near = {copy for _, _, copy, _ in rows} - equal
    touched = {query for query, _, _, share in rows if share == 1}
    unread = material.scan.unread_pairs
    numbers = {
        "copies": len(equal | near),
        "equal": len(equal),
        "near": len(near),
        "queries": len(copies),
        "pairs_not_compared": unread,
    }
    verdict: Verdict = verdict_for(len(touched), len(material.qrels))
    if rows or unread:
        verdict = worst([verdict, "look"])
    table = [(query, relevant, copy, EQUAL if share == 1 else round(share, 3)) for query, relevant, copy, share in rows]
    evidence = [AuditEvidence.of(("query", "relevant document", "copy", "in common"), table)] if table else []
    if table and material.rankings:
        evidence.append(_score_changes(material, copies))
    sentence = _said(len(equal), len(near), len(copies), unread)
    return AuditFinding(verdict=verdict, sentence=sentence, numbers=numbers, evidence=tuple(evidence))


def _said(equal: int, near: int, queries: int, unread: int) -> str:
    """Return the finding about copies in plain words."""
    sentence = "No relevant document has an unlabelled copy under another id."
    if equal + near:
        kinds = [f"{equal:,} equal"] * bool(equal) + [f"{near:,} nearly equal"] * bool(near)
        sentence = (
            f"{counted(equal + near, 'document')} without a label for the query ({', '.join(kinds)}) repeat a relevant "
            f"document of {counted(queries, 'query', 'queries')}. A system that returns the copy gets nothing for it."
        )
        if not equal:
            sentence += " Near-copies may differ in the words that matter: compare them."
    return f"{sentence} At least {unread:,} further pairs of similar texts were not compared." if unread else sentence


def _unlabelled(material: AuditMaterial) -> Copies:
    """Return the copies of each query's relevant documents that have no label and are not excluded."""
    scan = material.scan
    wanted = sorted({*scan.first, *(row for copies in scan.groups.values() for row, _ in copies)})
    ids = dict(zip(wanted, material.ids(wanted), strict=True))
    result: dict[str, dict[str, tuple[str, float]]] = {}
    for query, documents in material.relevant.items():
        known = set(material.qrels[query])
        if query in material.queries:
            known |= set(material.queries[query].excluded)
        for document in documents:
            for row, share in scan.copies(material.rows.get(document, -1)):
                if (copy := ids[row]) not in known:
                    mine = result.setdefault(query, {})
                    mine[copy] = max(mine.get(copy, ("", 0.0)), (document, share), key=lambda each: each[1])
    return result


def _score_changes(material: AuditMaterial, copies: Copies) -> AuditEvidence:
    """Return the scores of the systems if an unlabelled copy counted as its relevant document."""
    rows: list[Sequence[EvidenceCell]] = []
    for system, lists in material.rankings.items():
        before = headline(material.qrels, lists).mean()
        equal = headline(material.qrels, _replaced(lists, copies, 1.0)).mean()
        after = headline(material.qrels, _replaced(lists, copies, 0.0)).mean()
        rows.append([system, *(round(float(each), 2) for each in (before, equal - before, after - before))])
    heads = ("system", "nDCG@10 × 100", "change if equal copies counted", "change if all copies counted")
    return AuditEvidence.of(heads, rows, "Scores if copies counted as the relevant document")


def _replaced(lists: Lists, copies: Copies, share: float) -> Lists:
    """Return rankings with copies replaced by their relevant documents. The first of them keeps its rank."""
    return {
        query: list(dict.fromkeys(_original(document, copies.get(query, {}), share) for document in documents))
        for query, documents in lists.items()
    }


def _original(document: str, copies: Mapping[str, tuple[str, float]], share: float) -> str:
    relevant, known = copies.get(document, (document, 0.0))
    return relevant if known >= share else document


def contradictory_labels(material: AuditMaterial) -> AuditFinding:
    """Find equal texts that have different labels for one query."""
    rows: list[Sequence[EvidenceCell]] = []
    opposed: set[str] = set()
    digests = material.scan.digests
    for query, grades in material.qrels.items():
        groups: dict[bytes, list[str]] = defaultdict(list)
        for document in grades:
            if digest := digests.get(material.rows.get(document, -1)):
                groups[digest].append(document)
        for documents in groups.values():
            low, high = (pick(documents, key=grades.__getitem__) for pick in (min, max))
            if grades[low] != grades[high]:
                rows.append((query, high, grades[high], low, grades[low]))
                if grades[low] <= 0 < grades[high]:
                    opposed.add(query)
    verdict: Verdict = verdict_for(len(opposed), len(material.qrels))
    if not rows:
        sentence = "Equal texts have equal labels."
    else:
        verdict = worst([verdict, "look"])
        queries = counted(len({row[0] for row in rows}), "query", "queries")
        sentence = f"Equal texts have different labels for {queries}."
    heads = ("query", "document", "grade", "equal document", "its grade")
    return AuditFinding(
        verdict=verdict,
        sentence=sentence,
        numbers={"contradictions": len(rows), "opposed_queries": len(opposed)},
        evidence=(AuditEvidence.of(heads, rows),) if rows else (),
    )


def repeated_queries(material: AuditMaterial) -> AuditFinding:
    """Find queries with the text of another query, or nearly that, and those of the equal ones with other labels."""
    groups: dict[str, list[str]] = defaultdict(list)
    for query in material.queries.values():
        if query.id in material.qrels and (text := normalised(query.text)):
            groups[text].append(query.id)
    rows: list[Sequence[EvidenceCell]] = []
    differing: set[str] = set()
    for first, *others in groups.values():
        for other in others:
            same = set(material.relevant[first]) == set(material.relevant[other])
            rows.append((other, first, EQUAL, "the same" if same else "others"))
            if not same:
                differing |= {first, other}
    repeated, ids = len(rows), [first for first, *_ in groups.values()]
    for one, later, share in near_pairs(list(groups)):
        same = set(material.relevant[ids[one]]) == set(material.relevant[ids[later]])
        rows.append((ids[later], ids[one], round(share, 3), "the same" if same else "others"))
    verdict: Verdict = verdict_for(len(differing), len(material.qrels))
    sentence = "No query occurs twice."
    if rows:
        verdict = worst([verdict, "look"])
        parts = [f"{_have(repeated)} the text of an earlier one{_labels(rows[:repeated])}."] * bool(repeated)
        near = len(rows) - repeated
        parts += [f"{_have(near)} nearly the text of an earlier one: compare them."] * bool(near)
        sentence = " ".join(parts)
    heads = ("query", "earlier query", "in common", "relevant documents")
    return AuditFinding(
        verdict=verdict,
        sentence=sentence,
        numbers={
            "repeated": repeated,
            "nearly_repeated": len(rows) - repeated,
            "queries_with_other_labels": len(differing),
        },
        evidence=(AuditEvidence.of(heads, rows),) if rows else (),
    )


def _have(count: int) -> str:
    return f"{counted(count, 'query', 'queries')} {'has' if count == 1 else 'have'}"


def _labels(rows: Iterable[Sequence[EvidenceCell]]) -> str:
    others = sum(row[-1] == "others" for row in rows)
    return f", {others:,} with other relevant documents" if others else " and the same relevant documents"
