"""Check a dataset: report all problems of its files, then compare its parts with each other and with its card."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from r2med.data.aspects_file import aspect_rows
from r2med.data.dataset import Dataset, Query
from r2med.data.dataset_word import DatasetWord
from r2med.data.loading import read
from r2med.data.nuggets_file import NUGGETS_NAME, nugget_rows
from r2med.data.problems import DATA_CHECKS, EXAMPLES, Problems
from r2med.data.source_rows import AspectRow, JudgementRow, QueryRow
from r2med.data.text_copies import ListedTexts, find_copies
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.finding import Evidence, Finding
from r2med.foundation.store import Store, default_store

QUERIES, DOCUMENTS, PARTS, REPEATS = "scorable-queries", "missing-documents", "aspects-and-nuggets", "repeated-queries"
"""Names of checks in `DATA_CHECKS`."""
CONTROLS = {chr(c) for c in range(32)} - set("\t\n\r\f\v") | {"\x7f"}


def check(name_or_path: str | Path, store: Store | None = None) -> Problems:
    """Return all problems of a dataset. The result is empty if there are none."""
    word = DatasetWord.parse(name_or_path)
    if word.files_of_labels:
        raise UserError(f"{word} has labels of its own, and only datasets are checked: r2med data check {word.word}")
    problems = Problems()
    dataset, layout = read(word, problems, store or default_store())
    # Read again for the line numbers. Faults inside the lines have been reported already.
    _check_links(dataset, list(layout.judgements(Problems())), layout.qrels_file, problems)
    _check_aspects(dataset, list(aspect_rows(layout, Problems())), problems)
    _check_nuggets(dataset, layout.root / NUGGETS_NAME, problems)
    judged = layout.qrels_file.is_file()
    _check_queries(dataset, list(layout.queries(Problems())), layout.query_file, judged, problems)
    _check_repeats(dataset, layout.query_file, problems)
    _check_corpus(dataset, layout.corpus_files[0], problems)
    _check_counts(dataset, layout.root, problems)
    if dataset.card and dataset.card.judge_test:
        problems.notice(f"the card says about its labels: {dataset.card.judge_test}")
    return problems


def _check_links(dataset: Dataset, judgements: list[JudgementRow], path: Path, problems: Problems) -> None:
    queries = {query.id for query in dataset.queries}
    documents = sorted({judgement.document for judgement in judgements})
    known = {d for d, row in zip(documents, dataset.corpus.rows(documents), strict=True) if row >= 0}
    for judgement in judgements:
        if judgement.query not in queries:
            message = f"unknown query {judgement.query!r}: not in the query file"
            problems.flaw(
                judgement.path, judgement.line, message, "unknown query: not in the query file", check=QUERIES
            )
        if judgement.document not in known:
            message = f"unknown document {judgement.document!r}: not in the corpus"
            problems.flaw(
                judgement.path, judgement.line, message, "unknown document: not in the corpus", check=DOCUMENTS
            )
    if not path.is_file():
        problems.notice(f"there is no {path.name}: it can be searched and served, not scored", check=QUERIES)
    elif not judgements:
        problems.flaw(path, None, "no judgements: nothing can be scored", check=QUERIES)


def _check_aspects(dataset: Dataset, rows: list[AspectRow], problems: Problems) -> None:
    """Report aspects of unknown queries, documents that are not relevant, and judged queries without an aspect."""
    queries = {query.id for query in dataset.queries}
    for row in rows:
        if row.query not in queries:
            message = f"aspect of an unknown query {row.query!r}: not in the query file"
            problems.flaw(row.path, row.line, message, "aspect of an unknown query", check=PARTS)
            continue
        grades = dataset.qrels.get(row.query, {})
        for document in row.documents:
            if grades.get(document, 0) <= 0:
                cause = "document of an aspect is not relevant in the qrels"
                message = (
                    f"document {document!r} of aspect {row.id!r} is not relevant to query {row.query!r} in the qrels"
                )
                problems.flaw(row.path, row.line, message, cause, check=PARTS)
    if rows:
        for query in (query for query in dataset.qrels if query not in dataset.aspects):
            cause = "has no aspect: its aspect measures are 0"
            problems.flaw(rows[0].path, None, f"query {query!r} {cause}", f"query {cause}", check=PARTS)


def _check_nuggets(dataset: Dataset, path: Path, problems: Problems) -> None:
    """Report faults of the nuggets beside a dataset, and nuggets of unknown queries."""
    queries = {query.id for query in dataset.queries}
    for line, nugget in nugget_rows(path, problems) if path.is_file() else ():
        if nugget.query not in queries:
            message = f"nugget of an unknown query {nugget.query!r}: not in the query file"
            problems.flaw(path, line, message, "nugget of an unknown query", check=PARTS)


def _check_queries(dataset: Dataset, rows: list[QueryRow], path: Path, judged: bool, problems: Problems) -> None:
    by_id = {row.query.id: row for row in rows}
    if not dataset.queries and path.is_file():
        problems.flaw(path, None, "no queries", check=QUERIES)
    for query in dataset.queries if judged else ():
        row = by_id[query.id]
        if query.id not in dataset.qrels:
            cause = "has no qrels: it will not be scored"
            problems.flaw(row.path, row.line, f"query {query.id!r} {cause}", f"query {cause}", check=QUERIES)
        elif not any(grade > 0 for grade in dataset.qrels[query.id].values()):
            cause = "has no relevant document: it always scores 0"
            problems.flaw(row.path, row.line, f"query {query.id!r} {cause}", f"query {cause}", check=QUERIES)


def repeated_queries(queries: Iterable[Query]) -> Finding:
    """Find queries that repeat the text of an earlier one."""
    asked = list(queries)
    found = find_copies(ListedTexts([query.text for query in asked])).first
    rows = [(asked[row].id, asked[first].id) for row, first in found.items()]
    shown = ", ".join(f"{query!r} that of {earlier!r}" for query, earlier in rows[:EXAMPLES])
    more = ", …" if len(rows) > EXAMPLES else ""
    have = "queries have" if len(rows) > 1 else "query has"
    sentence = f"{len(rows):,} {have} the text of an earlier one ({shown}{more})." if rows else DATA_CHECKS[REPEATS][1]
    return Finding(
        id=REPEATS,
        title=DATA_CHECKS[REPEATS][0],
        verdict="look" if rows else "sound",
        sentence=sentence,
        numbers={"repeated": len(rows)},
        evidence=Evidence.found(("query", "earlier query"), rows),
    )


def _check_repeats(dataset: Dataset, path: Path, problems: Problems) -> None:
    finding = repeated_queries(dataset.queries)
    if finding.evidence:
        problems.notice(f"{path}: {finding.sentence.removesuffix('.')}", check=REPEATS)


def _check_corpus(dataset: Dataset, path: Path, problems: Problems) -> None:
    if not len(dataset.corpus):
        problems.flaw(path, None, "no documents", check=DOCUMENTS)
    odd = sum(not CONTROLS.isdisjoint(text) for _, text in dataset.corpus)
    if odd:
        problems.notice(f"{path}: {odd} texts hold control characters (kept as they are)", check="encoding")


def _check_counts(dataset: Dataset, folder: Path, problems: Problems) -> None:
    card = dataset.card
    if card is None or card.counts is None:
        return
    per_query = [sum(grade > 0 for grade in grades.values()) for grades in dataset.qrels.values()]
    counts = {
        "queries": len(dataset.queries),
        "documents": len(dataset.corpus) + len(dataset.corpus.repeats or ()),
        "positives": dataset.qrels.positives,
        "most_positives": max(per_query, default=0),
    }
    for field, number in counts.items():
        expected = getattr(card.counts, field)
        if number != expected and (expected or field != "most_positives"):
            noun = field.replace("_", " ")
            problems.flaw(
                folder, None, f"{number} {noun}, but the card of {card.name} says {expected}", check="card-counts"
            )
