"""Pages about a build: what each step kept and left out, items after each step, and what a build would ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from r2med.assessment.review.review_outcomes import counted_reasons, rejection_reasons
from r2med.assessment.review.reviews import by_candidate, is_unsettled
from r2med.construction.cited_links import links_hint
from r2med.construction.judge_tests import judge_tests, judge_trust
from r2med.construction.pipeline import BuildFolder, Done
from r2med.construction.publish.dataset_folder import lacks_reviews
from r2med.construction.review_items import read_reviews
from r2med.foundation.core.needs import Needs
from r2med.foundation.pages.cells import Column, Value, shown_dollars
from r2med.foundation.pages.page import Page, Paragraph, Section, Table, table_page
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted

LETTERS = 1000
"""Characters of a field that are shown."""


def build_page(made: BuildFolder) -> Page:
    """Return what each step kept and left out, and why; then what people and judges said about it."""
    done = made.status()
    page = steps_page(made, done)
    if not all(done):
        return page
    findings = [Paragraph(line, no_wrap=True) for line in _findings(made, [each for each in done if each])]
    return replace(page, sections=[*page.sections, Section("", findings)]) if findings else page


def _findings(made: BuildFolder, done: Sequence[Done]) -> Iterator[str]:
    """Yield what is known about a finished build: tests of judges, reviews, and what the dataset lacks."""
    if any(each.stream == "judgements" for each in done):
        yield f"{judge_trust(judge_tests(each.facts for each in done).values()).capitalize()}."
    reviews, planned = read_reviews(made.out), made.plan.facts.reviews_per_item
    for noun, reasons in (
        ("question", rejection_reasons(reviews, planned=planned)),
        ("translated page", rejection_reasons(reviews, "pages", planned)),
    ):
        if reasons:
            left_out = f"People rejected {counted(len(reasons), noun)}, which the dataset leaves out"
            yield f"{left_out}: {counted_reasons(reasons)}"
    if waiting := sum(map(is_unsettled, by_candidate(reviews).values())):
        undecided = f"{counted(waiting, 'reviewed candidate')} without a decision"
        yield f"{undecided}, because people disagree or are unsure: r2med review serve {quoted(made.out)} settles them"
    again = f"r2med build run PLAN.toml -o {quoted(made.out)} writes it again"
    if lacks_reviews(made):
        yield f"{made.dataset} lacks reviews: {again}"


def steps_page(made: BuildFolder, done: Sequence[Done | None]) -> Page:
    """Return what each step kept and left out."""
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
    left_out = f"r2med build show {quoted(made.out)} --step N --rejected shows what a step left out."
    saved = any(step.name == "read-web" and left is not None for step, left in zip(made.plan.steps, done, strict=True))
    hints = (left_out, "" if saved else links_hint(made.out))
    notes = [Paragraph(hint, "quiet") for hint in hints if hint]
    return table_page("Steps of a build", Table(columns, rows), notes=notes)


def items_page(title: str, items: Iterable[tuple[str, dict[str, Any]]]) -> Page:
    """Return items with their fields."""
    return Page(title, [_item(heading.replace("\t", ", "), fields) for heading, fields in items])


def _item(title: str, fields: dict[str, Any]) -> Section:
    notes = []
    for name, value in fields.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        short = f"{text[: LETTERS - 1]}…" if len(text) > LETTERS else text
        notes.append(Paragraph(f"  {name}: {short}", no_wrap=True))
    return Section(title, notes)


def calls_page(steps: Sequence[tuple[str, Needs | None]]) -> Page:
    """Return the calls, tokens and dollars of every step."""
    rows = [(str(number), step, *_figures(needs)) for number, (step, needs) in enumerate(steps, 1)]
    known = [needs for _, needs in steps if needs is not None]
    rows.append(("", "together", *_figures(sum(known, Needs()) if len(known) == len(steps) else None)))
    heads = ("#", "step", "calls", "calls at most", "tokens read", "tokens written", "dollars", "dollars at most")
    columns = [Column(head, "text" if head == "step" else "number") for head in heads]
    note = (
        "Calls: no step leaves anything out before it has asked. At most: answers that cannot be used are asked for "
        "again. Answers that are kept already are not subtracted. Nothing was asked."
    )
    if len(known) < len(steps):
        note += " Unknown: the step asks about candidates, which mine has not collected yet."
    return table_page("What the build would ask", Table(columns, rows), notes=[Paragraph(note, "quiet")])


def _figures(needs: Needs | None) -> tuple[str, ...]:
    if needs is None:
        return ("unknown", "", "", "", "unknown", "unknown")
    if not needs.calls:
        return (needs.note, "", "", "", "", "")
    counts = (needs.calls, needs.most_calls, needs.read, needs.written)
    prices = (needs.dollars, needs.most_dollars)
    return (
        *(f"{count or 0:,}" for count in counts),
        *("unknown" if price is None else shown_dollars(price) for price in prices),
    )
