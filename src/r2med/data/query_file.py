"""Gather the queries of a dataset from the rows of its files."""

from __future__ import annotations

from r2med.data.dataset import Qrels, Query
from r2med.data.layouts import Layout
from r2med.data.problems import Problems
from r2med.data.source_rows import QueryRow, where


def gather_queries(layout: Layout, qrels: Qrels, problems: Problems) -> tuple[Query, ...]:
    """Return the queries. Of rows with one id the last counts, with a notice."""
    rows: dict[str, QueryRow] = {}
    repeated = 0
    other_texts: list[str] = []
    for row in layout.queries(problems):
        earlier = rows.get(row.id, row)
        rows[row.id] = row
        if earlier is not row:
            repeated += 1
            if earlier.text != row.text:
                line = where(earlier.path, earlier.line, seen_from=row.path)
                other_texts.append(f"{row.id!r}: {line} and {row.path.name}:{row.line}")
    if repeated:
        also = (
            f"; {len(other_texts):,} ids came with another text, and the last one counts (such as {other_texts[0]})"
            if other_texts
            else ""
        )
        problems.notice(f"{layout.query_file}: {repeated:,} repeated rows merged{also}")
    judged = [row for row in rows.values() if row.id in qrels or not layout.judged_queries_only]
    if len(judged) < len(rows):
        problems.notice(f"{layout.query_file}: {len(rows) - len(judged)} queries of other splits left out")
    return tuple(_query(row, qrels) for row in judged)


def _query(row: QueryRow, qrels: Qrels) -> Query:
    relevant = {document for document, grade in qrels.get(row.id, {}).items() if grade > 0}
    excluded = tuple(document for document in dict.fromkeys(row.excluded) if document not in relevant)
    return Query(row.id, row.text, row.answer, row.body_system, excluded, row.needs_inference, row.options)
