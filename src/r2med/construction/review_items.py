"""The items of a build or of a table, as reviewers see them: candidates, texts of questions, and translated pages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from operator import attrgetter
from pathlib import Path

from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.review_kinds import KINDS, PASSAGE, REVIEW_KINDS, ReviewKind, ShownText
from r2med.assessment.review.reviews import Pair, Review
from r2med.construction.build_plan import GUIDELINE
from r2med.construction.items import PageChunk, SentencePair, SourcePage, SourceQuestion
from r2med.construction.labels import labels
from r2med.construction.pipeline import Build
from r2med.construction.step import damaged
from r2med.construction.steps.full_candidates import full_candidates
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.store import digest

log = logging.getLogger("r2med")

ALL_KINDS = "all"
"""Name for all kinds, in commands."""

COLUMNS = ("question_id", "id", "question", "passage", "answer", "reasoning", "title", "url", "source")
"""Columns of a table of candidates. Only question and passage are required."""
TEXT_COLUMNS = ("question_id", "question", "answer", "reasoning", "original", "source_text", "source")
"""Columns of a table of questions whose texts are reviewed. Only question is required."""


@dataclass(frozen=True)
class ReviewItem:
    """A candidate, or a text of a question, as a reviewer sees it."""

    question: SourceQuestion
    """The question. A translated page is shown like a question without an answer, with the id of the page."""
    chunk: PageChunk | None = None
    """The passage of a candidate. None for items of other kinds."""
    stratum: str = "unjudged"
    """Label by the judges, so that a sample has some of each. Reviewers do not see it."""
    kind: str = PASSAGE

    @property
    def pair(self) -> Pair:
        """Ids of the question and the chunk. Reviewers do not see them."""
        return self.question.id, self.chunk.id if self.chunk else ""

    @cached_property
    def token(self) -> str:
        """Identifier of the item on the page. It changes with the shown texts and reveals nothing."""
        if self.chunk:
            kinds = [] if self.kind == PASSAGE else [self.kind]
            return digest([*kinds, *self.pair, self.question.text, self.question.answer, self.chunk.text])[:24]
        kind = REVIEW_KINDS[self.kind]
        texts = [text for pair in self.sentences for text in pair] or map(self.text, (*kind.beside, *kind.main))
        return digest([self.kind, self.question.id, *texts])[:24]

    @property
    def sentences(self) -> list[tuple[str, str]]:
        """Sentences beside their translations; empty if they are not known, or the text was changed since."""
        path = REVIEW_KINDS[self.kind].pairs
        pairs: Sequence[SentencePair] = attrgetter(path)(self) if path else ()
        if not all(pair.target in self.question.text for pair in pairs if pair.field == "text"):
            return []
        return [(pair.source, pair.target) for pair in pairs]

    def text(self, shown: ShownText) -> str:
        """Return one of the texts that the kind shows."""
        return str(attrgetter(shown.field)(self))


def review_items(source: Path, sample: int = 0, kind: str = PASSAGE) -> list[ReviewItem]:
    """Return the items of one kind of a build or of a table, or a sample, which is the same for all annotators.

    A larger sample contains the smaller ones. It has equal numbers of each label by the judges, as far as possible.
    Controls that are not chunks of the corpus are left out, since they have no source to show.
    """
    items = all_items(source, kind)
    if not items:
        raise UserError(f"{source} has no {'candidates' if kind == PASSAGE else KINDS[kind].noun + 's'} to review")
    return _sampled(items, sample)


def _sampled(items: list[ReviewItem], sample: int) -> list[ReviewItem]:
    if not sample:
        return items
    strata: dict[str, list[ReviewItem]] = {}
    for item in sorted(items, key=lambda item: item.token):
        strata.setdefault(item.stratum, []).append(item)
    dealt: Iterable[ReviewItem | None] = chain.from_iterable(zip_longest(*(strata[word] for word in sorted(strata))))
    return [item for item in dealt if item is not None][:sample]


def items_by_kind(source: Path, kind: str = PASSAGE, sample: int = 0) -> dict[str, list[ReviewItem]]:
    """Return the items to review by kind. `kind` is one kind, or "all" for each kind that the source has texts of.

    Raises UserError for an unknown kind, or if there is nothing to review.
    """
    if kind != ALL_KINDS:
        if kind not in KINDS:
            raise unknown("kind of review items", kind, (*KINDS, ALL_KINDS))
        return {kind: review_items(source, sample, kind)}
    kinds = [name for name in KINDS if name != PASSAGE or source.is_dir() or _has_passages(source)]
    build = finished_build(source) if source.is_dir() else None  # its files are checked once for all kinds
    items = {name: all_items(source, name, build) for name in kinds}
    found = {name: _sampled(each, sample) for name, each in items.items() if each}
    if not found:
        raise UserError(f"{source} has nothing to review")
    return found


def _has_passages(table: Path) -> bool:
    return any("passage" in part.columns for part in open_tables(table))


def all_items(source: Path, kind: str, build: Build | None = None) -> list[ReviewItem]:
    """Return all items of one kind. The list is empty if the build has no texts of this kind.

    `build` is the build of the folder `source`, if its files were checked already.
    """
    if kind not in KINDS:  # Labels of judges belong to overlays.
        return []
    if kind == PASSAGE:
        return list(_of_build(build or finished_build(source)) if source.is_dir() else _of_table(source))
    texts = (
        _texts_of_build(build or finished_build(source), KINDS[kind])
        if source.is_dir()
        else _texts_of_table(source, KINDS[kind])
    )
    return [ReviewItem(question, kind=kind) for question in texts if _has_texts(question, KINDS[kind])]


def _texts_of_build(build: Build, kind: ReviewKind) -> Iterator[SourceQuestion]:
    streams = build.streams()
    return streams.questions() if kind.of == "questions" else map(_as_question, streams.pages())


def _texts_of_table(path: Path, kind: ReviewKind) -> Iterable[SourceQuestion]:
    return _questions_of_table(path) if kind.of == "questions" else ()


def _as_question(page: SourcePage) -> SourceQuestion:
    kept = {"source_language", "source_text", "sentences", "source", "licence"}
    return SourceQuestion(id=page.id, text=page.text, **{name: getattr(page, name) for name in kept})


def _has_texts(question: SourceQuestion, kind: ReviewKind) -> bool:
    return all(getattr(question, field) for field in kind.needs)


def read_guideline(source: Path) -> str:
    """Return the project's guideline for reviewers: guideline.md in a build or beside a table; empty without one."""
    path = (source if source.is_dir() else source.parent) / GUIDELINE
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def planned_reviews(source: Path) -> int:
    """Return the number of reviews that the plan of a build states for each item; 0 if it states none, or for a table.

    A plan that states none leaves out what one person rejects, but everybody may review everything.
    """
    facts = Build.open(source).plan.facts if source.is_dir() else None
    return facts.reviews_per_item if facts and "reviews_per_item" in facts.model_fields_set else 0


def finished_build(folder: Path) -> Build:
    """Return a build. Raises UserError if a step is not done, or a file was changed since."""
    build = Build.open(folder)
    for number, done in enumerate(build.status(), 1):
        if done is None:
            raise UserError(f"step {number} of {folder} is not done yet: r2med build run PLAN.toml -o {folder}")
        if changed := done.changed_file(build.folder(number)):
            raise damaged(changed)
    return build


def _of_build(build: Build) -> Iterator[ReviewItem]:
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


def _questions_of_table(path: Path) -> Iterator[SourceQuestion]:
    """Yield the questions of a table once each. A question may have several rows, one for each passage."""
    known = set()
    for table in open_tables(path):
        if "question" not in table.columns:
            raise UserError(f"{table}: no column 'question': a table of questions has {', '.join(TEXT_COLUMNS)}")
        for _, row in table:
            cells = {
                name: cell if isinstance(cell := row.get(name, ""), str) else " ".join(cell) for name in TEXT_COLUMNS
            }
            id_, text = cells.pop("question_id"), cells.pop("question")
            question = SourceQuestion(id=id_ or digest(text)[:12], text=text, **cells)
            if text and question.id not in known:
                known.add(question.id)
                yield question


def read_reviews(source: Path | str) -> list[Review]:
    """Return the reviews of all kinds of items of a build or a table.

    Reviews of texts that have changed since are left out, and their number is logged.
    """
    path = reviews_file(Path(source))
    if not path.is_file():
        return []
    with ReviewBook(path) as book:
        reviews = [kept.review for kept in book.kept().values()]
    kinds = dict.fromkeys(review.kind for review in reviews)
    build = finished_build(Path(source)) if kinds and Path(source).is_dir() else None
    tokens = {item.token for kind in kinds for item in all_items(Path(source), kind, build)}
    if outdated := sum(review.item not in tokens for review in reviews):
        message = "%s: reviews left out because their texts changed or are gone: %d (r2med review %s asks again)"
        log.warning(message, path, outdated, source)
    return [review for review in reviews if review.item in tokens]


def add_reviews(source: Path | str, reviews: Iterable[Review]) -> int:
    """Add reviews that were made elsewhere, all or none, and return how many were new.

    Raises UserError if a review does not belong to an item of the build or table.
    """
    given = list(reviews)
    kinds = dict.fromkeys(review.kind for review in given)
    build = finished_build(Path(source)) if kinds and Path(source).is_dir() else None
    tokens = {(kind, item.pair): item.token for kind in kinds for item in all_items(Path(source), kind, build)}
    placed = []
    for review in given:
        if (review.kind, review.pair) not in tokens:
            kind = REVIEW_KINDS[review.kind]
            noun = f"candidate {review.chunk!r}" if review.chunk else kind.noun
            whose = f"for the question {review.question!r}" if kind.of == "questions" else review.question
            raise UserError(f"{source} has no {noun} {whose}")
        placed.append(review.model_copy(update={"item": tokens[review.kind, review.pair]}))
    with ReviewBook(reviews_file(Path(source))) as book:
        return book.add_all(placed)
