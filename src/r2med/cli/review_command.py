"""`r2med review`: a page on which people accept or reject candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags


def review(
    source: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The folder of a build, or a table of candidates.", show_default=False),
    ],
    sample: Annotated[int, typer.Option(min=0, help="Candidates to review, of all there are; 0: all.")] = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the review page. 0 picks a free one.")] = 8070,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the reviews as .csv, or as .json for Label Studio.", show_default=False
        ),
    ] = None,
    import_: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Add reviews of such a file.", show_default=False),
    ] = None,
) -> None:
    """Let people accept or reject candidates on a page of this machine, and settle what they disagree about."""
    from r2med.construction.pipeline import Build
    from r2med.construction.publish.dataset_folder import lacks_reviews
    from r2med.construction.review.review_book import ReviewBook, add_reviews, read_reviews
    from r2med.construction.review.review_desk import ReviewDesk
    from r2med.construction.review.review_files import export_reviews, import_reviews
    from r2med.construction.review.review_items import review_items, reviews_file
    from r2med.text.terminal_text import printable

    if import_ is not None:
        print(printable(f"{add_reviews(source, import_reviews(import_)):,} new reviews from {import_}"))
        if source.is_dir() and lacks_reviews(made := Build.open(source)):
            print(
                printable(
                    f"{made.dataset} does not have them yet: r2med build run PLAN.toml -o {source} writes it again"
                )
            )
    if export is not None:
        reviews = read_reviews(source)
        export_reviews(export, reviews, review_items(source, sample))
        print(printable(f"{len(reviews):,} reviews in {export}"))
    if import_ is not None or export is not None:
        return
    with flags.needing_server("r2med review"):
        from r2med.server.http_server import GuardedServer, bind
        from r2med.server.limits import Limits
        from r2med.server.review_app import create_review_app
    items = review_items(source, sample)
    listener = bind("127.0.0.1", port, None)
    with ReviewBook(reviews_file(source)) as book:
        listener.listen()  # whoever reads the line may come at once
        print(printable(f"{listener.url}/ · {source}, {len(items):,} candidates · Ctrl-C stops"), flush=True)
        app = create_review_app(ReviewDesk(items, book), source.resolve().name)
        GuardedServer(app, Limits(), lambda: None).serve_at(listener)
