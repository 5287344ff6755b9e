"""Checks of an audit: queries that give away what they ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from r2med.assessment.audit.audit_findings import verdict_for
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.query_metadata import query_metadata
from r2med.data.dataset import Query
from r2med.foundation.pages.finding import Evidence, EvidenceCell, Finding
from r2med.foundation.text.named import named_in
from r2med.foundation.text.plurals import counted

QUOTED_WORDS = 12
"""Number of words in a row from which a query quotes a document. Shorter runs are often set phrases."""
MIN_ID = 5
"""Number of characters of a document id that is looked for in metadata. A shorter one, such as 12, is any number."""
SHOWN = 80
"""Number of characters of a text that are shown as evidence."""

_WORD = re.compile(r"\w+")
_CLOSED_WORDS = set("yes no maybe true false unknown none other both all neither of the above and or".split())


def answers_in_queries(material: AuditMaterial) -> Finding:
    """Find queries that contain their answer."""
    answered = [query for query in material.queries.values() if is_open_answer(query.answer)]
    naming = [query for query in answered if named_in(query.text, [query.answer])]
    choices = [query for query in naming if lists_options(query)]
    rows = [(query.id, _cut(query.answer)) for query in naming if query not in choices]
    sentence = f"No query contains its answer ({counted(len(answered), 'answer')} looked for)."
    if rows:
        sentence = (
            f"{counted(len(rows), 'query', 'queries')} of {len(answered):,} "
            f"{'contains' if len(rows) == 1 else 'contain'} the answer. If queries list the options to choose from, "
            "give them the field options."
        )
    if choices:
        listing = "lists its options" if len(choices) == 1 else "list their options"
        sentence += f" {counted(len(choices), 'query', 'queries')} {listing}, the answer among them, which is no fault."
    return Finding(
        verdict=verdict_for(len(rows), len(answered)),
        sentence=sentence,
        numbers={"queries": len(rows), "answers": len(answered), "choices": len(choices)},
        evidence=Evidence.found(("query", "answer"), rows),
    )


def lists_options(query: Query) -> bool:
    """Return True if the text of a query lists all its options. It then names the answer and the wrong ones alike."""
    return len(query.options) > 1 and all(named_in(query.text, [option]) for option in query.options)


def is_open_answer(answer: str) -> bool:
    """Return True for an answer that says something by itself: neither yes or no, nor a number, nor one letter."""
    words = _WORD.findall(answer.lower())
    said = [word for word in words if not word.isdigit() and len(word) > 1 and word not in _CLOSED_WORDS]
    return bool(said)


def quoted_documents(material: AuditMaterial) -> Finding:
    """Find queries that share a long run of words with a relevant document."""
    assert material.dataset is not None
    rows: list[tuple[str, str, int, str]] = []
    for query in material.queries.values():
        places = [document for document in material.relevant.get(query.id, ()) if document in material.rows]
        texts = material.dataset.corpus.texts([material.rows[document] for document in places])
        words = _WORD.findall(query.text.lower())
        for document, text in zip(places, texts, strict=True):
            if quoted := longest_run(words, _WORD.findall(text.lower())):
                rows.append((query.id, document, len(quoted), _cut(" ".join(quoted))))
    rows.sort(key=lambda row: -row[2])
    queries = len({row[0] for row in rows})
    sentence = f"No query shares {QUOTED_WORDS} words in a row with a relevant document."
    if rows:
        share = "shares" if queries == 1 else "share"
        sentence = (
            f"{counted(queries, 'query', 'queries')} of {len(material.qrels):,} {share} {QUOTED_WORDS} or more words "
            f"in a row with a relevant document (at most {rows[0][2]:,}). Matching words is enough to find it."
        )
    heads = ("query", "relevant document", "words in a row", "the words")
    return Finding(
        verdict=verdict_for(queries, len(material.qrels)),
        sentence=sentence,
        numbers={"queries": queries, "pairs": len(rows), "longest": rows[0][2] if rows else 0},
        evidence=Evidence.found(heads, rows),
    )


def longest_run(query: Sequence[str], document: Sequence[str], least: int = QUOTED_WORDS) -> Sequence[str]:
    """Return the longest run of words that both texts contain, or nothing if it has fewer than `least` words."""
    # Only a run that is longer than the best one is looked for, so that a text of one repeated word takes no longer.
    asked, read = f" {' '.join(query)} ", f" {' '.join(document)} "
    starts = [0, *accumulate(len(word) + 1 for word in document)]
    best: Sequence[str] = ()
    for place in range(len(document) - least + 1):
        length = max(least, len(best) + 1)
        while place + length <= len(document) and read[starts[place] : starts[place + length] + 1] in asked:
            best = document[place : place + length]
            length += 1
    return best


def answers_in_metadata(material: AuditMaterial) -> Finding:
    """Find further fields of the query file that name the answer or a relevant document."""
    assert material.dataset is not None
    rows: list[Sequence[EvidenceCell]] = []
    for query, fields in query_metadata(material.dataset).items():
        answer = material.queries[query].answer
        for field, text in fields.items():
            if field == "options" and material.queries[query].options:
                continue  # one of them is the answer, as it should be
            named = named_in(text.replace("_", " "), [answer]) if is_open_answer(answer) else ""
            tokens = set(re.split(r"[\s,;|]+", text)) if field != "id" else set()
            ids = [each for each in material.relevant.get(query, ()) if len(each) >= MIN_ID and each in tokens]
            if named or ids:
                rows.append((query, field, _cut(named or ids[0]), "answer" if named else "relevant document"))
    queries = len({row[0] for row in rows})
    sentence = "No further field of a query names its answer or a relevant document."
    if rows:
        fields_named = ", ".join(dict.fromkeys(str(row[1]) for row in rows))
        sentence = (
            f"{counted(queries, 'query', 'queries')} of {len(material.queries):,} "
            f"{'names' if queries == 1 else 'name'} the answer or a relevant document in another field "
            f"({_cut(fields_named)}). No system may read these fields."
        )
    heads = ("query", "field", "what it names", "which is the")
    return Finding(
        verdict="look" if rows else "sound",
        sentence=sentence,
        numbers={"queries": queries},
        evidence=Evidence.found(heads, rows),
    )


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
