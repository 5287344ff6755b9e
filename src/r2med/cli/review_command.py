"""`r2med review`: serve a page on which people accept or reject candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.text.plurals import counted
from r2med.text.terminal_text import printable


def review(
    source: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The folder of a build, or a table of candidates.", show_default=False),
    ],
    sample: Annotated[int, typer.Option(min=0, help="Number of candidates to review. 0 means all.")] = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the review page. 0 picks a free one.")] = 8070,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the reviews as .csv, or as .json for Label Studio.", show_default=False
        ),
    ] = None,
    import_: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Add the reviews of a .csv or .json file.", show_default=False),
    ] = None,
) -> None:
    """Let people accept or reject candidates on a page of this machine, and settle what they disagree about."""
    from r2med.server.serving import review as serve_page

    if import_ is not None:
        _import(source, import_)
    if export is not None:
        _export(source, export, sample)
    if import_ is None and export is None:
        serve_page(source, sample, port)


def _import(source: Path, file: Path) -> None:
    from r2med.construction.pipeline import Build
    from r2med.construction.publish.dataset_folder import lacks_reviews
    from r2med.construction.review.review_book import add_reviews
    from r2med.construction.review.review_files import import_reviews

    print(printable(f"{counted(add_reviews(source, import_reviews(file)), 'new review')} from {file}"))
    if source.is_dir() and lacks_reviews(made := Build.open(source)):
        again = f"r2med build run PLAN.toml -o {source} writes it again"
        print(printable(f"{made.dataset} does not have them yet: {again}"))


def _export(source: Path, file: Path, sample: int) -> None:
    from r2med.construction.review.review_book import read_reviews
    from r2med.construction.review.review_files import export_reviews
    from r2med.construction.review.review_items import review_items

    reviews = read_reviews(source)
    export_reviews(file, reviews, review_items(source, sample))
    print(printable(f"{counted(len(reviews), 'review')} in {file}"))
