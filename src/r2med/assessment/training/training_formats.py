"""The formats of training files, as the libraries read them: sentence-transformers, FlagEmbedding and trl.

Each writer yields the lines of a file of JSON objects. If a set has negatives, queries without any are left out of the
formats that need them, since a library reads one set of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice
from typing import Any, Literal, get_args

from r2med.assessment.training.training_rows import TrainingQuery, TrainingRows
from r2med.foundation.core.errors import UserError, unknown

TrainingFormat = Literal["triplets", "negatives", "listwise", "flagembedding", "trl"]
FORMATS: tuple[TrainingFormat, ...] = get_args(TrainingFormat)
DEFAULT_FORMAT: TrainingFormat = "triplets"

Line = dict[str, Any]


def training_format(name: str) -> TrainingFormat:
    """Return the format of a name. Raises UserError if there is none."""
    for form in FORMATS:
        if form == name.lower():
            return form
    raise unknown("format", name, FORMATS)


def formatted(rows: TrainingRows, form: TrainingFormat, negatives: int) -> Iterator[Line]:
    """Yield the lines of a training file. `negatives` is the number of negatives in a line of "negatives".

    Raises UserError if no query has a reasoning text, which trl completes.
    """
    return WRITERS[form](rows, negatives)


def complete(rows: TrainingRows) -> list[TrainingQuery]:
    """Return the queries with negatives; all queries if no query has any."""
    return [each for each in rows.queries if each.negatives] or list(rows.queries)


def _triplets(rows: TrainingRows, negatives: int) -> Iterator[Line]:
    """Yield anchor, positive and negative, a line for each pair of a positive and a negative."""
    for each in complete(rows):
        for positive in each.positives:
            line = {"anchor": each.query.text, "positive": rows.texts[positive.document]}
            for negative in each.negatives:
                yield {**line, "negative": rows.texts[negative.document]}
            if not each.negatives:
                yield line


def _negatives(rows: TrainingRows, negatives: int) -> Iterator[Line]:
    """Yield anchor, positive and negative_1 to negative_n. A query with fewer negatives repeats them."""
    for each in complete(rows):
        texts = [rows.texts[pair.document] for pair in each.negatives]
        hard = {f"negative_{number}": text for number, text in enumerate(islice(cycle(texts), negatives), 1)}
        for positive in each.positives:
            yield {"anchor": each.query.text, "positive": rows.texts[positive.document], **hard}


def _listwise(rows: TrainingRows, negatives: int) -> Iterator[Line]:
    """Yield query, docs and labels. A label is the grade of the document; that of a negative is 0."""
    for each in complete(rows):
        pairs = (*each.positives, *each.negatives)
        labels = [float(max(0, pair.grade)) for pair in pairs]
        yield {"query": each.query.text, "docs": [rows.texts[pair.document] for pair in pairs], "labels": labels}


def _flag_embedding(rows: TrainingRows, negatives: int) -> Iterator[Line]:
    """Yield query, pos and neg."""
    for each in complete(rows):
        pos, neg = ([rows.texts[pair.document] for pair in pairs] for pairs in (each.positives, each.negatives))
        yield {"query": each.query.text, "pos": pos, "neg": neg}


def _trl(rows: TrainingRows, negatives: int) -> Iterator[Line]:
    """Yield prompt (the question) and completion (the reasoning text)."""
    reasoned = [each for each in rows.queries if each.reasoning.strip()]
    if not reasoned:
        raise UserError(
            f"no query of {rows.dataset.name} has a reasoning text, which trl completes: add the field reasoning to "
            "its query file, or choose another format"
        )
    for each in reasoned:
        yield {"prompt": each.query.text, "completion": each.reasoning}


WRITERS: Mapping[TrainingFormat, Callable[[TrainingRows, int], Iterator[Line]]] = {
    "triplets": _triplets,
    "negatives": _negatives,
    "listwise": _listwise,
    "flagembedding": _flag_embedding,
    "trl": _trl,
}
