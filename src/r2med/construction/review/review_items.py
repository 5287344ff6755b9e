"""The candidates of a build or of a table, as reviewers see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path

from r2med.construction.items import PageChunk, SourceQuestion
from r2med.construction.pipeline import Build
from r2med.construction.review.labels import labels
from r2med.construction.review.reviews import Pair
from r2med.construction.step import damaged
from r2med.construction.steps.full_candidates import full_candidates
from r2med.core.errors import UserError
from r2med.data.table_files import open_tables
from r2med.store import digest

COLUMNS = ("question_id", "id", "question", "passage", "answer", "reasoning", "title", "url", "source")
"""Columns of a table of candidates. Only question and passage are required."""


@dataclass(frozen=True)
class ReviewItem:
    """A candidate as a reviewer sees it."""

    question: SourceQuestion
    chunk: PageChunk
    stratum: str = "unjudged"
    """Label by the judges, so that a sample has some of each. Reviewers do not see it."""

    @property
    def pair(self) -> Pair:
        """Ids of the question and the chunk. Reviewers do not see them."""
        return self.question.id, self.chunk.id

    @cached_property
    def token(self) -> str:
        """Identifier of the candidate on the page. It changes with the shown texts and reveals nothing."""
        return digest([*self.pair, self.question.text, self.question.answer, self.chunk.text])[:24]


def review_items(source: Path, sample: int = 0) -> list[ReviewItem]:
    """Return the candidates of a build or of a table, or a sample of them, which is the same for all annotators.

    A larger sample contains the smaller ones. It has equal numbers of each label by the judges, as far as possible.
    Controls that are not chunks of the corpus are left out, since they have no source to show.
    """
    items = list(_of_build(source) if source.is_dir() else _of_table(source))
    if not items:
        raise UserError(f"{source} has no candidates to review")
    if not sample:
        return items
    strata: dict[str, list[ReviewItem]] = {}
    for item in sorted(items, key=lambda item: item.token):
        strata.setdefault(item.stratum, []).append(item)
    dealt: Iterable[ReviewItem | None] = chain.from_iterable(zip_longest(*(strata[word] for word in sorted(strata))))
    return [item for item in dealt if item is not None][:sample]


def reviews_file(source: Path) -> Path:
    """Return the path of the file of reviews of a build or a table."""
    return source / "reviews.sqlite" if source.is_dir() else source.with_name(f"{source.name}.reviews.sqlite")


def _of_build(folder: Path) -> Iterator[ReviewItem]:
    build = Build.open(folder)
    for number, done in enumerate(build.status(), 1):
        if done is None:
            raise UserError(f"step {number} of {folder} is not done yet: r2med build run PLAN.toml -o {folder}")
        if changed := done.changed_file(build.folder(number)):
            raise damaged(changed)
    streams = build.streams()
    judged = {
        (label.question, label.chunk): label.label
        for label in labels(streams.judgements(), (), build.plan.facts.labels)
    }
    for case in full_candidates(streams):
        if not case.candidate.text:
            pair = case.question.id, case.chunk.id
            stratum = "control" if case.candidate.control else judged.get(pair, "unjudged")
            yield ReviewItem(case.question, case.chunk, stratum)


def _of_table(path: Path) -> Iterator[ReviewItem]:
    for table in open_tables(path):
        for column in ("question", "passage"):
            if column not in table.columns:
                raise UserError(f"{table}: no column {column!r}: a table of candidates has {', '.join(COLUMNS)}")
        for _, row in table:
            cells = [" ".join(cell) if isinstance(cell := row.get(name, ""), list) else cell for name in COLUMNS]
            question, chunk, query, passage, answer, reasoning, title, url, source = cells
            if query and passage:
                yield ReviewItem(
                    SourceQuestion(id=question or digest(query)[:12], text=query, answer=answer, reasoning=reasoning),
                    PageChunk(
                        id=chunk or digest(passage)[:12], text=passage, page="", title=title, url=url, source=source
                    ),
                )
