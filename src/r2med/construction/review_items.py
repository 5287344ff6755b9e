"""The items of a build or of a table that people review: candidates, texts of questions, and translated pages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path

from r2med.assessment.review.kinds import KINDS, PASSAGE
from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.reviews import Review, Rubrics
from r2med.assessment.review.table_items import has_columns, table_items
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS, Rubric, find_rubric
from r2med.construction.build_plan import GUIDELINE
from r2med.construction.items import SentencePair, SourcePage, SourceQuestion, TranslatableText
from r2med.construction.labels import labels
from r2med.construction.pipeline import BuildFolder
from r2med.construction.step import damaged
from r2med.construction.steps.full_candidates import full_candidates
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.text.terminal_text import quoted

log = logging.getLogger("r2med")

ALL_KINDS = "all"
"""Name for all kinds, in commands."""
UNJUDGED = "unjudged"
"""Stratum of items that no judge labelled."""

QUESTION_TEXTS = {
    "question": "text",
    "query": "text",
    "answer": "answer",
    "reasoning": "reasoning",
    "original": "original",
    "source_text": "source_text",
}
"""Text of a rubric -> field of a question."""
CANDIDATE_TEXTS = (PASSAGE, "text")
"""Texts of rubrics about candidates. Rubrics of judges call the passage `text`, so that people can rate by them too."""
PAGE_TEXTS = {"page": "text", "source_text": "source_text"}
"""Text of a rubric -> field of a page."""


BUILD_TEXTS = (*QUESTION_TEXTS, *CANDIDATE_TEXTS, "page")
"""Texts of a build that a rubric can show."""


def review_rubrics(kind: str) -> tuple[list[Rubric], Rubrics]:
    """Return the rubrics of a kind, or of "all", and all rubrics by name. A kind can be the user's own TOML file.

    Raises UserError if there is no such rubric.
    """
    if kind == ALL_KINDS:
        return [RUBRICS[name] for name in KINDS], RUBRICS
    if not kind.endswith(".toml") and kind not in RUBRICS:
        raise unknown("kind of review items", kind, (*KINDS, ALL_KINDS))
    rubric = find_rubric(kind)
    return [rubric], {**RUBRICS, rubric.name: rubric}


def review_items(source: Path, sample: int = 0, kind: str = PASSAGE) -> list[Item]:
    """Return the items of one kind of a build or of a table, or a sample, which is the same for all annotators.

    A larger sample contains the smaller ones. It has equal numbers of each label by the judges, as far as possible.
    Controls that are not chunks of the corpus are left out, since they have no source to show.
    """
    [rubric], _ = review_rubrics(kind)
    fields = [each.field for each in rubric.texts]
    if source.is_dir() and (wrong := [each for each in fields if each not in BUILD_TEXTS]):
        known = ", ".join(BUILD_TEXTS)
        raise UserError(f"a build has no text {wrong[0]!r}, which the rubric {rubric.name} shows: it has {known}")
    items = all_items(source, rubric) if source.is_dir() else list(table_items(source, rubric))
    if not items:
        raise UserError(f"{source} has no {'candidate' if rubric.name == PASSAGE else rubric.noun}s to review")
    return _sampled(items, sample)


def _sampled(items: list[Item], sample: int) -> list[Item]:
    if not sample:
        return items
    strata: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.token):
        strata.setdefault(item.stratum, []).append(item)
    dealt: Iterable[Item | None] = chain.from_iterable(zip_longest(*(strata[word] for word in sorted(strata))))
    return [item for item in dealt if item is not None][:sample]


def items_by_kind(source: Path, kind: str = PASSAGE, sample: int = 0) -> dict[str, list[Item]]:
    """Return the items to review by kind. `kind` is one kind, or "all" for each kind that the source has texts of.

    Raises UserError for an unknown kind, or if there is nothing to review.
    """
    rubrics, _ = review_rubrics(kind)
    if kind != ALL_KINDS:
        return {rubrics[0].name: review_items(source, sample, kind)}
    build = finished_build(source) if source.is_dir() else None  # its files are checked once for all kinds
    items = {rubric.name: all_items(source, rubric, build) for rubric in rubrics}
    found = {name: _sampled(each, sample) for name, each in items.items() if each}
    if not found:
        raise UserError(f"{source} has nothing to review")
    return found


def all_items(source: Path, rubric: Rubric, build: BuildFolder | None = None) -> list[Item]:
    """Return all items of a rubric. The list is empty if the build or the table has no texts for it.

    `build` is the build of the folder `source`, if its files were checked already.
    """
    if not source.is_dir():
        return list(table_items(source, rubric)) if has_columns(source, rubric) else []
    made = build or finished_build(source)
    fields = {each.field for each in rubric.texts}
    if fields <= {*QUESTION_TEXTS, *CANDIDATE_TEXTS} and not fields.isdisjoint(CANDIDATE_TEXTS):
        return list(_candidates(made, rubric))
    if fields <= {*QUESTION_TEXTS}:
        return list(_texts(made.streams().questions(), QUESTION_TEXTS, rubric))
    if fields <= {*PAGE_TEXTS}:
        return list(_texts(made.streams().pages(), PAGE_TEXTS, rubric))
    return []  # labels of judges belong to overlays, facts to files of nuggets


def _texts(
    items: Iterable[SourceQuestion] | Iterable[SourcePage], fields: Mapping[str, str], rubric: Rubric
) -> Iterator[Item]:
    for each in items:
        texts = {name: getattr(each, field) for name, field in fields.items()}
        sentences = _sentences(each) if "source_text" in (shown.field for shown in rubric.texts) else ()
        if item := rubric.item((each.id, ""), texts, stratum=UNJUDGED, sentences=sentences):
            yield item


def _sentences(text: TranslatableText) -> tuple[tuple[str, str, str], ...]:
    """Return sentences beside their translations, with what is marked and the translation back of marked ones.

    Empty if they are not known, or if the text was changed since.
    """
    pairs: tuple[SentencePair, ...] = text.sentences
    if not all(pair.target in text.text for pair in pairs if pair.field == "text"):
        return ()
    return tuple((pair.source, pair.target, _to_look_at(pair)) for pair in pairs)


def _to_look_at(pair: SentencePair) -> str:
    """Return the marks of a sentence and its translation back; empty for a sentence without marks."""
    return "; ".join(filter(None, (*pair.marks, pair.back))) if pair.marks else ""


def _candidates(build: BuildFolder, rubric: Rubric) -> Iterator[Item]:
    streams = build.streams()
    judged = {
        (label.question, label.chunk): label.label
        for label in labels(streams.judgements(), (), build.plan.facts.labels)
    }
    for case in full_candidates(streams):
        if not case.candidate.text:
            question, chunk = case.question, case.chunk
            texts = {name: getattr(question, field) for name, field in QUESTION_TEXTS.items()}
            stratum = "control" if case.candidate.control else judged.get((question.id, chunk.id), UNJUDGED)
            origin = {"title": chunk.title, "url": chunk.url, "source": chunk.source}
            texts |= dict.fromkeys(CANDIDATE_TEXTS, chunk.text)
            if item := rubric.item((question.id, chunk.id), texts, stratum=stratum, origin=origin):
                yield item


def read_guideline(source: Path) -> str:
    """Return the project's guideline for reviewers: guideline.md in a build or beside a table; empty without one."""
    path = (source if source.is_dir() else source.parent) / GUIDELINE
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def planned_reviews(source: Path) -> int:
    """Return the number of reviews that the plan of a build states for each item; 0 if it states none, or for a table.

    A plan that states none leaves out what one person rejects, but everybody may review everything.
    """
    facts = BuildFolder.open(source).plan.facts if source.is_dir() else None
    return facts.reviews_per_item if facts and "reviews_per_item" in facts.model_fields_set else 0


def finished_build(folder: Path) -> BuildFolder:
    """Return a build. Raises UserError if a step is not done, or a file was changed since."""
    build = BuildFolder.open(folder)
    for number, done in enumerate(build.status(), 1):
        if done is None:
            raise UserError(f"step {number} of {folder} is not done yet: r2med build run PLAN.toml -o {quoted(folder)}")
        if changed := done.changed_file(build.folder(number)):
            raise damaged(changed)
    return build


def read_reviews(source: Path | str, rubrics: Rubrics = RUBRICS) -> list[Review]:
    """Return the reviews of all kinds of items of a build or a table.

    Reviews of texts that have changed since are left out, and their number is logged.
    """
    path = reviews_file(Path(source))
    if not path.is_file():
        return []
    with ReviewBook(path, rubrics) as book:
        reviews = [kept.review for kept in book.kept().values()]
    tokens = {item.token for item in _items_of(reviews, Path(source))}
    if outdated := sum(review.item not in tokens for review in reviews):
        message = "%s: reviews left out because their texts changed or are gone: %d (r2med review serve %s asks again)"
        log.warning(message, path, outdated, source)
    return [review for review in reviews if review.item in tokens]


def _items_of(reviews: Iterable[Review], source: Path) -> Iterator[Item]:
    """Yield all items of the kinds of these reviews."""
    rubrics = {review.kind: review.rubric for review in reviews}
    build = finished_build(source) if rubrics and source.is_dir() else None
    return (item for rubric in rubrics.values() for item in all_items(source, rubric, build))


def add_reviews(source: Path | str, reviews: Iterable[Review], rubrics: Rubrics = RUBRICS) -> int:
    """Add reviews that were made elsewhere, all or none, and return how many were new.

    Raises UserError if a review does not belong to an item of the build or table.
    """
    given = list(reviews)
    tokens = {(item.rubric, item.id): item.token for item in _items_of(given, Path(source))}
    placed = []
    for review in given:
        if (review.kind, review.pair) not in tokens:
            noun = f"candidate {review.chunk!r}" if review.chunk else review.rubric.noun
            raise UserError(f"{source} has no {noun} for {review.question!r}")
        placed.append(review.model_copy(update={"item": tokens[review.kind, review.pair]}))
    with ReviewBook(reviews_file(Path(source)), rubrics) as book:
        return book.add_all(placed)
