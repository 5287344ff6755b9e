"""The file of folds: the fold of each query, for models that were each trained without one fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from r2med.data.dataset import Query
from r2med.data.source_rows import own_rows
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import digest, json_line, text_digest, write_atomically

FOLDS_NAME = "folds.jsonl"
"""Name of the file in the folder of a training set, and in that of the trained models."""


class QueryFold(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    """The id of the query."""
    text: str
    """A digest of its text, by which the queries of another dataset are recognised."""
    fold: int = Field(ge=1)
    """The fold, from 1. The model of this fold was trained without the query."""
    group: int = Field(ge=1)
    """The number of its group. Queries of a group share a diagnosis, a page, a relevant document or a text."""


def query_digest(query: Query) -> str:
    """Return the digest of a query's text. White space does not matter."""
    return text_digest(" ".join(query.text.split())).hex()[:16]


def fold_folder(fold: int) -> str:
    """Return the name of the folder of a fold: of its training data, and of the model that was trained with them."""
    return f"fold-{fold}"


@dataclass(frozen=True)
class Folds:
    """The fold of each query."""

    of_query: Mapping[str, QueryFold]
    path: Path | None = None
    """The file, for messages."""

    @classmethod
    def of(cls, lines: Iterable[QueryFold]) -> Folds:
        """Return the folds of lines, each about another query."""
        return cls({line.query: line for line in lines})

    @classmethod
    def read(cls, path: Path | str) -> Folds:
        """Read a file. Raises UserError if it is missing, if a line is not one of folds, or if a query has two."""
        file = Path(path)
        found: dict[str, QueryFold] = {}
        for number, row in own_rows(file, QueryFold, "file of folds", "r2med data training --folds writes it"):
            if row.query in found:
                both = f"{found[row.query].fold} and {row.fold}"
                raise UserError(f"{file}:{number}: query {row.query!r} is in the folds {both}: each query has one fold")
            found[row.query] = row
        if not found:
            raise UserError(f"{file} has no queries: r2med data training --folds writes it")
        return cls(found, file)

    def write(self, path: Path | str) -> None:
        """Write the file, completely or not at all."""
        write_atomically(Path(path), (json_line(row.model_dump(mode="json")) for row in self.of_query.values()))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The folds that have queries, in order."""
        return tuple(sorted({row.fold for row in self.of_query.values()}))

    def queries(self, fold: int) -> frozenset[str]:
        """Return the ids of the queries of a fold."""
        return frozenset(row.query for row in self.of_query.values() if row.fold == fold)

    def digest_of(self, fold: int) -> str:
        """Return a digest of the queries of a fold, by which a datasheet states what was held out."""
        return digest(sorted((row.query, row.text) for row in self.of_query.values() if row.fold == fold))

    def fold_of(self, query: Query) -> int:
        """Return the fold of a query. Raises UserError if it has none, or if the folds are of another dataset."""
        row = self.of_query.get(query.id)
        file = self.path or FOLDS_NAME
        if row is None:
            raise UserError(
                f"{f'query {query.id!r}' if query.id else 'a new question'} has no fold in {file}: models of folds "
                "answer only the questions of this file; for others, train one model with all rows, and search or "
                "serve it as path:DIR"
            )
        if row.text != query_digest(query):
            raise UserError(
                f"{file} has folds of another dataset: query {query.id!r} has another text there; "
                "make the folds of this dataset with r2med data training --folds"
            )
        return row.fold
