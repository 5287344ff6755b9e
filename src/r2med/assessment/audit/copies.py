"""Checks of an audit: texts and queries that occur more than once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from r2med.assessment.audit.audit_findings import verdict_for
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.data.text_copies import CopyKind, ListedTexts, TextCopy, find_copies
from r2med.evaluation.measure.incomplete_labels import Lists, headline
from r2med.foundation.pages.finding import Evidence, EvidenceCell, Finding, Verdict, worst
from r2med.foundation.text.plurals import counted

EQUAL = "equal"
QUERY_SHINGLE_WORDS = 2
"""Number of words in a shingle of a query, which is short."""

Copies = Mapping[str, Mapping[str, tuple[str, TextCopy]]]
"""Query -> unlabelled copy -> (its relevant document, how alike they are)."""


def unlabelled_copies(material: AuditMaterial) -> Finding:
    """Find copies of relevant documents under other ids that have no label for the query."""
    copies = _unlabelled(material, (EQUAL, "near"))
    rows = _rows(copies)
    equal = {row[2] for row in rows if row[3] == 1}
    near = {row[2] for row in rows} - equal
    touched = {row[0] for row in rows if row[3] == 1}
    unread = material.copies.unread
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
    evidence = [Evidence.of(("query", "relevant document", "copy", "in common"), table)] if table else []
    if table and material.rankings:
        evidence.append(_score_changes(material, copies))
    sentence = _said(len(equal), len(near), len(copies), unread)
    return Finding(verdict=verdict, sentence=sentence, numbers=numbers, evidence=tuple(evidence))


def _rows(copies: Copies) -> list[tuple[str, str, str, float]]:
    """Return query, relevant document, copy and share in common, the most alike first."""
    rows = [(q, document, name, copy.share) for q, each in copies.items() for name, (document, copy) in each.items()]
    return sorted(rows, key=lambda row: -row[3])


def partial_copies(material: AuditMaterial) -> Finding:
    """Find unlabelled documents that contain a relevant one or half of it, or are contained in one."""
    copies = _unlabelled(material, ("contained", "half"))
    rows = _rows(copies)
    kinds = Counter(copy.kind for each in copies.values() for _, copy in each.values())
    sentence = "No document without a label contains a relevant document, or is part of one."
    if rows:
        parts = [f"{kinds[kind]:,} {words}" for kind, words in PARTS.items() if kinds[kind]]
        sentence = (
            f"{counted(len({row[2] for row in rows}), 'document')} without a label for the query "
            f"{'shares' if len(rows) == 1 else 'share'} text with a relevant document of "
            f"{counted(len(copies), 'query', 'queries')} ({', '.join(parts)}). Compare them: they may hold the answer."
        )
    table = [
        (query, relevant, name, copies[query][name][1].kind, round(share, 3)) for query, relevant, name, share in rows
    ]
    heads = ("query", "relevant document", "document", "kind", "share of the shorter text")
    return Finding(
        verdict="look" if rows else "sound",
        sentence=sentence,
        numbers={kind: kinds[kind] for kind in PARTS} | {"queries": len(copies)},
        evidence=Evidence.found(heads, table),
    )


PARTS: Mapping[CopyKind, str] = {
    "contained": "where one contains the other",
    "half": "with half of the shorter text in common",
}


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


def _unlabelled(material: AuditMaterial, kinds: Collection[str]) -> Copies:
    """Return the copies of each query's relevant documents that have no label and are not excluded."""
    found = material.copies
    wanted = sorted({row for copy in found.found for row in (copy.row, copy.original)})
    ids = dict(zip(wanted, material.ids(wanted), strict=True))
    result: dict[str, dict[str, tuple[str, TextCopy]]] = {}
    for query, documents in material.relevant.items():
        known = set(material.qrels[query])
        if query in material.queries:
            known |= set(material.queries[query].excluded)
        for document in documents:
            for copy in found.of(material.rows.get(document, -1)):
                if copy.kind in kinds and (name := ids[copy.row]) not in known:
                    mine = result.setdefault(query, {})
                    if name not in mine or mine[name][1].share < copy.share:
                        mine[name] = document, copy
    return result


def _score_changes(material: AuditMaterial, copies: Copies) -> Evidence:
    """Return the scores of the systems if an unlabelled copy counted as its relevant document."""
    rows: list[Sequence[EvidenceCell]] = []
    for system, lists in material.rankings.items():
        before = headline(material.qrels, lists).mean()
        equal = headline(material.qrels, _replaced(lists, copies, 1.0)).mean()
        after = headline(material.qrels, _replaced(lists, copies, 0.0)).mean()
        rows.append([system, *(round(float(each), 2) for each in (before, equal - before, after - before))])
    heads = ("system", "nDCG@10 × 100", "change if equal copies counted", "change if all copies counted")
    return Evidence.of(heads, rows, "Scores if copies counted as the relevant document")


def _replaced(lists: Lists, copies: Copies, share: float) -> Lists:
    """Return rankings with copies replaced by their relevant documents. The first of them keeps its rank."""
    return {
        query: list(dict.fromkeys(_original(document, copies.get(query, {}), share) for document in documents))
        for query, documents in lists.items()
    }


def _original(document: str, copies: Mapping[str, tuple[str, TextCopy]], share: float) -> str:
    relevant, copy = copies.get(document, (document, None))
    return relevant if copy and copy.share >= share else document


def contradictory_labels(material: AuditMaterial) -> Finding:
    """Find equal texts that have different labels for one query."""
    rows: list[Sequence[EvidenceCell]] = []
    opposed: set[str] = set()
    first = _first_judged(material)
    for query, grades in material.qrels.items():
        groups: dict[str, list[str]] = defaultdict(list)
        for document in grades:
            groups[first.get(document, document)].append(document)
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
    return Finding(
        verdict=verdict,
        sentence=sentence,
        numbers={"contradictions": len(rows), "opposed_queries": len(opposed)},
        evidence=Evidence.found(heads, rows),
    )


def _first_judged(material: AuditMaterial) -> Mapping[str, str]:
    """Return judged document -> the first judged document with its text, for texts that are not empty."""
    assert material.dataset is not None
    judged = list(material.rows)
    texts = material.dataset.corpus.texts(list(material.rows.values()))
    named = [(document, text) for document, text in zip(judged, texts, strict=True) if text.strip()]
    equal = find_copies(ListedTexts([text for _, text in named])).first
    return {named[row][0]: named[original][0] for row, original in equal.items()}


def repeated_queries(material: AuditMaterial) -> Finding:
    """Find queries with the text of another query, or nearly that, and those of the equal ones with other labels."""
    asked = [query for query in material.queries.values() if query.id in material.qrels and query.text.strip()]
    texts = ListedTexts([query.text for query in asked])
    copies = find_copies(texts, range(len(asked)), kinds=("equal", "near"), words=QUERY_SHINGLE_WORDS)
    equal = [copy for copy in copies.found if copy.kind == EQUAL]
    near = [copy for copy in copies.found if copy.kind == "near" and copy.original < copy.row not in copies.first]
    rows: list[Sequence[EvidenceCell]] = []
    differing: set[str] = set()
    for copy in (*equal, *near):
        first, other = asked[copy.original].id, asked[copy.row].id
        same = set(material.relevant[first]) == set(material.relevant[other])
        share = EQUAL if copy.kind == EQUAL else round(copy.share, 3)
        rows.append((other, first, share, "the same" if same else "others"))
        if not same and copy.kind == EQUAL:
            differing |= {first, other}
    verdict: Verdict = verdict_for(len(differing), len(material.qrels))
    sentence = "No query occurs twice."
    if rows:
        verdict = worst([verdict, "look"])
        parts = [f"{_have(len(equal))} the text of an earlier one{_labels(rows[: len(equal)])}."] * bool(equal)
        parts += [f"{_have(len(near))} nearly the text of an earlier one: compare them."] * bool(near)
        sentence = " ".join(parts)
    heads = ("query", "earlier query", "in common", "relevant documents")
    return Finding(
        verdict=verdict,
        sentence=sentence,
        numbers={
            "repeated": len(equal),
            "nearly_repeated": len(near),
            "queries_with_other_labels": len(differing),
        },
        evidence=Evidence.found(heads, rows),
    )


def _have(count: int) -> str:
    return f"{counted(count, 'query', 'queries')} {'has' if count == 1 else 'have'}"


def _labels(rows: Iterable[Sequence[EvidenceCell]]) -> str:
    others = sum(row[-1] == "others" for row in rows)
    return f", {others:,} with other relevant documents" if others else " and the same relevant documents"
