"""`r2med review`: serve a page on which people review candidates, texts of questions, labels of judges, or nuggets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from r2med.assessment.review.kinds import KINDS
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable


def review(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder of a build, or a table of candidates.", show_default=False),
    ] = None,
    overlay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Review the labels of judges in this overlay, instead of a build or a table.",
            show_default=False,
        ),
    ] = None,
    nuggets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Review the nuggets in this file: the facts that answers must contain. Name their dataset with "
            "--data.",
            show_default=False,
        ),
    ] = None,
    results: flags.Results = Path("results"),
    data: flags.ComparedData = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            "--rubric",
            metavar="KIND",
            help=f"What people review: {flags.choices(KINDS)}; all; or the TOML file of a rubric of your own, for "
            "texts of a build or a table with the rubric's columns.",
        ),
    ] = "passage",
    sample: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Number of items of a kind to review; all without this option or with 0. With --overlay: number of "
            "random queries of each dataset whose whole pool is reviewed, 30 without this option.",
            show_default=False,
        ),
    ] = None,
    influential: Annotated[
        int,
        typer.Option(
            min=0,
            help="With --overlay: number of further documents, those whose labels could change the order of systems "
            "most.",
        ),
    ] = 50,
    reviews_per_item: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Number of people who review each item. 0 shows every item to everybody. Without this option, the "
            "number in the plan of the build, otherwise 0.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the review page. 0 picks a free one.")] = 8070,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the reviews as .csv. With --overlay: write people's labels as "
            "an overlay of their own, .jsonl. With --nuggets: write the nuggets that people keep, .jsonl.",
            show_default=False,
        ),
    ] = None,
    import_: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Add the reviews of a .csv file.", show_default=False),
    ] = None,
    agreement: Annotated[
        bool,
        typer.Option("--agreement", help="Print the agreement of reviewers and judges, and how right the labels are."),
    ] = False,
    form: Format = "text",
) -> None:
    """Let people review passages, labels of judges, and texts that an LLM wrote, on a page of this machine."""
    from r2med.server.serving import review as serve_page

    if nuggets is not None:
        if source is not None or overlay is not None or import_ is not None or agreement or kind != "passage":
            raise UserError("--nuggets takes no DIR, --overlay, --kind, --import or --agreement")
        _review_nuggets(nuggets, flags.comma_separated(data), reviews_per_item or 0, port, export)
        return
    if overlay is not None:
        if source is not None or import_ is not None or agreement or kind != "passage":
            raise UserError("--overlay takes no DIR, --kind, --import or --agreement: its labels are reviewed apart")
        _review_labels(overlay, results, data, sample, influential, reviews_per_item or 0, port, export)
        return
    if source is None:
        raise UserError(
            "name the folder of a build or a table, r2med review DIR, or a file with --overlay or --nuggets"
        )
    sample = sample or 0
    if import_ is not None:
        _import(source, import_, kind)
    if export is not None:
        _export(source, export, kind)
    if agreement:
        from r2med.construction.publish.label_trust import agreement_page
        from r2med.construction.review_items import review_rubrics

        show_page(agreement_page(source, review_rubrics(kind)[1]), form)
    if import_ is None and export is None and not agreement:
        serve_page(source, sample, port, kind=kind, reviews_per_item=reviews_per_item)


def _review_labels(
    overlay: Path,
    results: Path,
    data: list[str] | None,
    sample: int | None,
    influential: int,
    reviews_per_item: int,
    port: int,
    export: Path | None,
) -> None:
    """Write people's labels of an overlay, or serve the page on which they give them."""
    from r2med.assessment.judgements.drawing import SAMPLE_QUERIES
    from r2med.assessment.review.label_reviews import people_overlay
    from r2med.data.overlays import SUFFIX, Aspect
    from r2med.server.serving import review_labels

    if export is None:
        chosen = SAMPLE_QUERIES if sample is None else sample
        words = flags.comma_separated(data)
        review_labels(overlay, results, words, chosen, influential, port, reviews_per_item=reviews_per_item)
        return
    if export.suffix != SUFFIX:
        raise UserError(
            f"{export} does not end in {SUFFIX}: an overlay is a file of JSON lines, as {export.stem}.jsonl"
        )
    if export.resolve() == overlay.resolve():
        raise UserError(f"{export} has the labels of the judges: write people's labels to a file of their own")
    people = people_overlay(overlay, export.stem)
    people.write(export)
    names = {label.reviewer for label in people.labels}
    print(printable(f"{counted(len(people.labels), 'label')} of {counted(len(names), 'reviewer')} in {export}"))
    waiting = sum(len(people.unsettled(name, aspect)) for name in people.datasets for aspect in get_args(Aspect))
    if waiting:
        tied = f"As many people say yes as no about {counted(waiting, 'passage')}, whose labels do not count"
        print(printable(f"{tied}: r2med review --overlay {overlay} settles them"))


def _review_nuggets(file: Path, data: list[str], reviews_per_item: int, port: int, export: Path | None) -> None:
    """Write the nuggets that people keep, or serve the page on which they check them."""
    from r2med.assessment.review.nugget_reviews import reviewed_nuggets
    from r2med.data.loading import load
    from r2med.server.serving import review_nuggets

    if len(data) != 1:
        raise UserError("--nuggets needs the dataset of its questions: add --data NAME")
    if export is None:
        review_nuggets(file, data[0], port, reviews_per_item=reviews_per_item)
        return
    if export.suffix != ".jsonl" or export.resolve() == file.resolve():
        raise UserError(f"{export}: write the reviewed nuggets to another file, which ends in .jsonl")
    kept, dropped = reviewed_nuggets(file, load(data[0]))
    kept.write(export)
    checked = sum(nugget.reviewed for nugget in kept)
    print(printable(f"{counted(len(kept), 'nugget')} in {export}, {checked:,} of them reviewed; {dropped:,} dropped"))


def _import(source: Path, file: Path, kind: str) -> None:
    from r2med.assessment.review.review_files import import_reviews
    from r2med.construction.pipeline import BuildFolder
    from r2med.construction.publish.dataset_folder import lacks_reviews
    from r2med.construction.review_items import add_reviews, review_rubrics

    _, rubrics = review_rubrics(kind)
    added = add_reviews(source, import_reviews(file, rubrics), rubrics)
    print(printable(f"{counted(added, 'new review')} from {file}"))
    if source.is_dir() and lacks_reviews(made := BuildFolder.open(source)):
        again = f"r2med build run PLAN.toml -o {source} writes it again"
        print(printable(f"{made.dataset} does not have them yet: {again}"))


def _export(source: Path, file: Path, kind: str) -> None:
    from r2med.assessment.review.annotators import export_annotators, read_annotators
    from r2med.assessment.review.review_files import export_reviews
    from r2med.construction.review_items import items_by_kind, read_reviews, review_rubrics

    kinds, (_, rubrics) = items_by_kind(source, kind), review_rubrics(kind)
    reviews = [review for review in read_reviews(source, rubrics) if review.kind in kinds]
    export_reviews(file, reviews)
    print(printable(f"{counted(len(reviews), 'review')} in {file}"))
    people = read_annotators(source, rubrics)
    if any(each.qualification or each.years is not None for each in people):
        beside = file.with_name(f"{file.stem}.annotators.csv")
        export_annotators(beside, people)
        print(printable(f"{beside} has the qualifications of {counted(len(people), 'reviewer')}, without names"))
