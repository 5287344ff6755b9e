"""What people review: recognise a build, a table, an overlay or nuggets, and serve, write, read or compare reviews."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from r2med.assessment.judgements.overlay_files import comparison_page
from r2med.assessment.review.label_reviews import REVIEWED_QUERIES, people_overlay
from r2med.assessment.review.nugget_reviews import reviewed_nuggets
from r2med.assessment.review.review_files import export_reviews, import_reviews
from r2med.construction.pipeline import BuildFolder
from r2med.construction.publish.dataset_folder import lacks_reviews
from r2med.construction.publish.label_trust import agreement_page
from r2med.construction.review_items import add_reviews, items_by_kind, read_reviews, review_rubrics
from r2med.data.dataset_word import GivenData, data_words, given_data
from r2med.data.loading import loaded
from r2med.data.overlays import SUFFIX, check_overlay_name
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.text_formats import page_value
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted
from r2med.public.listing import Listing
from r2med.server import serving

Source = Literal["build", "table", "overlay", "nuggets"]
PASSAGE = "passage"


def source_kind(path: Path) -> Source:
    """Return what a source is. An overlay and a file of nuggets are known by the fields of their first line."""
    if path.is_dir():
        return "build"
    if path.suffix != SUFFIX or not path.is_file():
        return "table"
    with path.open("rb") as lines:
        try:
            first = json.loads(next(lines, b"null"))
        except ValueError:
            return "table"
    fields = set(first) if isinstance(first, dict) else set()
    if {"dataset", "query", "document", "grade"} <= fields:
        return "overlay"
    return "nuggets" if {"query", "nugget", "text"} <= fields else "table"


def _refuse_kind(path: Path, kind: str | None) -> None:
    if kind is not None:
        raise UserError(f"{path}: what people review in it is fixed: leave out --kind")


def _nugget_data(path: Path, data: Any) -> GivenData:
    given = given_data(data)
    if len(given) != 1:
        raise UserError(f"{path} has nuggets: name the dataset of its questions with --data NAME")
    return given[0]


def serve_source(
    path: Path,
    *,
    kind: str | None,
    sample: int | None,
    reviews_per_item: int | None,
    data: Any,
    results: Path,
    port: int,
    ready: Callable[[str], None] | None,
) -> None:
    """Serve the review page of a source until Ctrl-C."""
    found = source_kind(path)
    say = ready or serving.print_line
    if found == "overlay":
        _refuse_kind(path, kind)
        queries = REVIEWED_QUERIES if sample is None else sample
        serving.serve_labels(path, results, data_words(data), queries, port, say, reviews_per_item or 0)
    elif found == "nuggets":
        _refuse_kind(path, kind)
        serving.serve_nuggets(path, loaded(_nugget_data(path, data)), port, say, reviews_per_item or 0)
    else:
        if path.exists() and data:
            raise UserError(f"{path} is not an overlay or a file of nuggets: leave out --data")
        serving.serve_items(path, sample or 0, port, say, kind or PASSAGE, reviews_per_item)


def export_source(path: Path, file: Path, kind: str | None, data: Any) -> Iterator[str]:
    """Write what people said about a source, and yield what was written."""
    found = source_kind(path)
    if found == "overlay":
        _refuse_kind(path, kind)
        yield from _people_labels(path, file)
    elif found == "nuggets":
        _refuse_kind(path, kind)
        yield from _kept_nuggets(path, file, _nugget_data(path, data))
    else:
        yield from _written_reviews(path, file, kind or PASSAGE)


def _people_labels(overlay: Path, file: Path) -> Iterator[str]:
    check_overlay_name(file)
    if file.resolve() == overlay.resolve():
        raise UserError(f"{file} has the labels of the judges: write people's labels to a file of their own")
    people = people_overlay(overlay, file.stem)
    people.write(file)
    names = {label.reviewer for label in people.labels}
    yield f"{counted(len(people.labels), 'label')} of {counted(len(names), 'reviewer')} in {file}"
    waiting = sum(len(people.unsettled(name)) for name in people.datasets)
    if waiting:
        tied = f"As many people say yes as no about {counted(waiting, 'passage')}, whose labels do not count"
        yield f"{tied}: r2med review serve {quoted(overlay)} settles them"


def _kept_nuggets(path: Path, file: Path, data: GivenData) -> Iterator[str]:
    if file.suffix != SUFFIX or file.resolve() == path.resolve():
        raise UserError(f"{file}: write the reviewed nuggets to another file, which ends in {SUFFIX}")
    kept, dropped = reviewed_nuggets(path, loaded(data))
    kept.write(file)
    checked = sum(nugget.reviewed for nugget in kept)
    yield f"{counted(len(kept), 'nugget')} in {file}, {checked:,} of them reviewed; {dropped:,} dropped"


def _written_reviews(source: Path, file: Path, kind: str) -> Iterator[str]:
    kinds, (_, rubrics) = items_by_kind(source, kind), review_rubrics(kind)
    reviews = [review for review in read_reviews(source, rubrics) if review.kind in kinds]
    export_reviews(file, reviews)
    yield f"{counted(len(reviews), 'review')} in {file}"


def import_source(source: Path, file: Path, kind: str | None) -> Iterator[str]:
    """Add the reviews of a file, and yield how many are new."""
    if source_kind(source) in ("overlay", "nuggets"):
        raise UserError(f"{source}: reviews are added to a build or a table only")
    _, rubrics = review_rubrics(kind or PASSAGE)
    added = add_reviews(source, import_reviews(file, rubrics), rubrics)
    yield f"{counted(added, 'new review')} from {file}"
    if source.is_dir() and lacks_reviews(made := BuildFolder.open(source)):
        again = f"r2med build run PLAN.toml -o {quoted(source)} writes it again"
        yield f"{made.dataset} does not have them yet: {again}"


def agreement_of(source: Path, other: Path | None, kind: str | None) -> Listing:
    """Return how far reviewers and judges of a build or a table agree, or how far two overlays do."""
    found = source_kind(source)
    if found == "overlay" or other is not None:
        _refuse_kind(source, kind)
        if other is None:
            raise UserError(
                f"{source} is an overlay: name another one whose labels are compared; "
                f"r2med review export {quoted(source)} -o FILE writes those of people"
            )
        page, value = comparison_page([source, other])
        return Listing(page, value)
    if found == "nuggets":
        raise UserError(
            f"{source} has nuggets: r2med review export {quoted(source)} -o FILE writes those that people keep"
        )
    page = agreement_page(source, review_rubrics(kind or PASSAGE)[1])
    return Listing(page, page_value(page))
