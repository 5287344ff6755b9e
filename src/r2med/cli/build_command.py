"""`r2med build`: build a benchmark from a plan, and look at what each step kept and left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.construction.pipeline import BuildFolder, Done
    from r2med.foundation.core.plan import Plan
    from r2med.foundation.pages.page import Page

LETTERS = 1000
"""Characters of a field that are shown."""


build = typer.Typer(
    help="Build a benchmark from a plan. Steps that were built before are used again.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a build.", show_default=False)]


@build.command()
@flags.with_settings(
    *("device", "model_paths", "engine", "offline", "llm"),
    *("base_url", "llm_backend", "budget", "concurrency", "ask_again"),
    *flags.TRACE,
    llm="The LLM of steps that name none, instead of the plan's.",
)
def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The plan.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the build.", show_default=False)],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--plan",
            callback=flags.begin_plan,
            help="Print the largest possible calls, tokens and dollars of every step. No LLM is asked.",
        ),
    ] = False,
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Build a benchmark from a plan: r2med build run PLAN.toml -o DIR."""
    import shlex
    from dataclasses import asdict

    from r2med.cli.progress import steps
    from r2med.construction.benchmark import build as build_benchmark
    from r2med.construction.build_plan import BuildPlan
    from r2med.construction.pipeline import BuildFolder
    from r2med.foundation.runtime.runtime import Runtime

    read = BuildPlan.read(plan)
    with Runtime(flags.make_setup(read.setup, **settings)) as runtime:
        if dry_run:
            show_page(_rehearsal(BuildFolder(read, out), runtime), form, as_json)
            return
        flags.check_writable(out)
        with steps(len(read.steps)) as announce:
            built = build_benchmark(read, out, runtime, announce)
    value = [asdict(each) if each else None for each in built.steps]
    show_page(_steps(built.folder, list(built.steps)), form, as_json, value)
    if form == "text" and not as_json:
        if built.dataset is None:
            print(printable(_why_no_dataset(built.steps)))
            return
        folder = shlex.quote(str(built.dataset))
        print(printable(f"{built.dataset}/datasheet.html describes it. Next: r2med run bm25 --data {folder}"))


def _why_no_dataset(steps: Sequence[Done]) -> str:
    """Return why a build wrote no dataset: nothing was judged, because no step judges or a step kept nothing."""
    if not any(done.stream == "judgements" for done in steps):
        return "No dataset was written, because no step of the plan judges candidates."
    empty = next((f": step {done.number}, {done.step}, kept nothing" for done in steps if not done.kept), "")
    return f"No dataset was written, because no candidate was judged{empty}."


@build.command()
def status(folder: Folder, form: Format = "text", as_json: flags.AsJSON = False) -> None:
    """Show what each step kept and left out, and why."""
    from dataclasses import asdict

    from r2med.assessment.review.review_outcomes import counted_reasons, rejection_reasons
    from r2med.assessment.review.reviews import by_candidate, is_unsettled
    from r2med.construction.judge_tests import judge_tests, judge_trust
    from r2med.construction.pipeline import BuildFolder
    from r2med.construction.publish.dataset_folder import lacks_reviewers, lacks_reviews
    from r2med.construction.review_items import read_reviews

    made = BuildFolder.open(folder)
    done = made.status()
    show_page(_steps(made, done), form, as_json, [asdict(each) if each else None for each in done])
    if form == "text" and not as_json and all(done):
        if any(each.stream == "judgements" for each in done if each):
            print(printable(f"{judge_trust(judge_tests(each.facts for each in done if each)).capitalize()}."))
        reviews, planned = read_reviews(folder), made.plan.facts.reviews_per_item
        for noun, reasons in (
            ("question", rejection_reasons(reviews, planned=planned)),
            ("translated page", rejection_reasons(reviews, "pages", planned)),
        ):
            if reasons:
                left_out = f"People rejected {counted(len(reasons), noun)}, which the dataset leaves out"
                print(printable(f"{left_out}: {counted_reasons(reasons)}"))
        if waiting := sum(map(is_unsettled, by_candidate(reviews).values())):
            undecided = f"{counted(waiting, 'reviewed candidate')} without a decision"
            print(printable(f"{undecided}, because people disagree or are unsure: r2med review {folder} settles them"))
        again = f"r2med build run PLAN.toml -o {folder} writes it again"
        if lacks_reviews(made):
            print(printable(f"{made.dataset} lacks reviews: {again}"))
        elif lacks_reviewers(made):
            print(printable(f"{made.dataset} lacks what reviewers stated about their qualification: {again}"))


@build.command()
def show(
    folder: Folder,
    item: Annotated[str, typer.Argument(help="The id of a question, page or chunk.", show_default=False)],
) -> None:
    """Show one item after each step: what changed, and which step left it out."""
    from r2med.construction.pipeline import BuildFolder

    traced = BuildFolder.open(folder).trace(item)
    if not traced:
        raise UserError(f"no item {item!r} in {folder}: r2med build sample {folder} shows some")
    for number, step, (title, fields) in traced:
        _print_item(f"{number}. {step}: {title}", fields)


@build.command()
def sample(
    folder: Folder,
    step: Annotated[int, typer.Option(help="The number of a step (r2med build status). Default: the last.")] = 0,
    rejected: Annotated[bool, typer.Option("--rejected", help="Show items that the step left out.")] = False,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of items.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the random sample.")] = 0,
) -> None:
    """Show some items of a step, drawn at random."""
    from r2med.construction.pipeline import BuildFolder

    for title, fields in BuildFolder.open(folder).sample(step, count, seed, rejected=rejected):
        _print_item(title, fields)


@build.command()
def example(
    name: Annotated[str, typer.Argument(metavar="forum|exam|cases", help="Name of the example.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The new folder.", show_default=False)],
) -> None:
    """Write a small example plan with its sources and scripted answers. It can be built offline."""
    import shlex

    from r2med.construction.example_plans import write_example

    plan = write_example(name, out)
    built = shlex.quote(str(out / "built"))
    print(printable(f"{plan} is written. Next: r2med build run {shlex.quote(str(plan))} -o {built}"))
    print("Its answers are scripted by a person, no model is asked; --llm NAME asks one instead.")


def _steps(made: BuildFolder, done: list[Done | None]) -> Page:
    from r2med.construction.cited_links import links_hint
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Note, Table, table_page

    rows: list[list[Value]] = []
    for number, (step, left) in enumerate(zip(made.plan.steps, done, strict=True), 1):
        if left is None:
            rows.append([number, str(step), "not done yet", None, None, None, ""])
            continue
        out = sum(left.rejected.values())
        reasons = [*left.rejected.items(), *((f"failed: {kind}", count) for kind, count in left.failures.items())]
        personal = left.facts.get("personal data", {})
        why = ", ".join(
            [f"{count:,} {reason}" for reason, count in reasons]
            + [f"{count:,} {kind} replaced" for kind, count in personal.get("kinds", {}).items()]
            + [f"{what} not looked for" for what in personal.get("not looked for", ())]
        )
        rows.append([number, str(step), left.stream, left.kept, out, left.cost.calls, why])
    counts = [Column(head, "integer", missing="") for head in ("kept", "left out", "calls")]
    columns = (Column("#", "integer"), Column("step"), Column("stream"), *counts, Column("why"))
    left_out = f"r2med build sample {made.out} --step N --rejected shows what a step left out."
    hints = (left_out, links_hint(made.out))
    notes = [Note(hint, "quiet") for hint in hints if hint]
    return table_page("Steps of a build", Table(columns, rows), notes=notes)


def _rehearsal(made: BuildFolder, runtime: Any) -> Page:
    from dataclasses import replace

    from r2med.foundation.core.plan import Plan
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Note, Table, table_page

    plans = [(str(step), work.plan) for step, work in made.rehearse(runtime)]
    rows = [(str(number), step, *_figures(plan)) for number, (step, plan) in enumerate(plans, 1)]
    together = sum((plan for _, plan in plans), Plan())
    known = replace(
        together,
        dollars=sum(plan.dollars or 0.0 for _, plan in plans),
        dollars_at_most=sum(plan.dollars_at_most or 0.0 for _, plan in plans),
    )
    more = " + unknown" if together.dollars is None and known.dollars else ""
    calls, _, *tokens, dollars, at_most = _figures(known if known.dollars else together)
    rows.append(("", "together", calls, "", *tokens, f"{dollars}{more}", f"{at_most}{more}"))
    heads = ("#", "step", "calls", "answered", "prompt tokens", "completion tokens", "dollars", "at most")
    columns = [Column(head, "text" if head == "step" else "number") for head in heads]
    note = Note("At most: no step leaves anything out before it has asked. Nothing was asked.", "quiet")
    return table_page("What the build would ask", Table(columns, rows), notes=[note])


def _figures(plan: Plan) -> tuple[str, ...]:
    if not plan.calls and not plan.answered:
        return ("", "", "", "", "", "")
    counts = (plan.calls, plan.answered, plan.prompt_tokens, plan.completion_tokens)
    prices = (plan.dollars, plan.dollars_at_most)
    return (
        *(f"{count or 0:,}" for count in counts),
        *("unknown" if each is None else f"{each:.2f}" for each in prices),
    )


def _print_item(title: str, fields: dict[str, Any]) -> None:
    from r2med.cli.console import console, plain

    output = console()
    output.print(plain(title.replace("\t", ", "), "bold"))  # keys of several parts
    for name, value in fields.items():
        text = (
            value if isinstance(value, str) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        )
        short = f"{text[: LETTERS - 1]}…" if len(text) > LETTERS else text
        first, *others = short.split("\n")
        output.print(plain(f"  {name}: ", "dim") + plain(first), soft_wrap=True)
        for line in others:
            output.print(plain(f"    {line}"), soft_wrap=True)
    output.print()
