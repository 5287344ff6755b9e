"""Run analyses and write their report: one page and a CSV file for each table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from r2med.analysis.material import Material
from r2med.evaluation.running.plan_page import Plan
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.flags import flattened
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Page, Section
from r2med.foundation.pages.text_formats import table_csv
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store.files import write_atomically
from r2med.systems.system import System


@dataclass(frozen=True)
class AnalysisKind:
    """The declaration of an analysis."""

    function: str
    """MODULE:NAME of a function that takes Material and returns a Section."""
    summary: str
    plan: str = ""
    """MODULE:NAME of a function that takes Material and returns what would be asked, by prompt template.

    Only an analysis that asks an LLM has one. It runs only if it is named.
    """


ANALYSES = {
    "overlap": AnalysisKind(
        "overlap_report:overlap",
        "what queries share with relevant documents, by words, BM25 and cosine, beside a known medical dataset",
    ),
    "reliability": AnalysisKind(
        "reliability:reliability",
        "smallest visible gap, number of queries needed, rankings by halves and by other measures, unjudged documents",
    ),
    "slices": AnalysisKind(
        "query_slices:query_slices", "scores by task, scenario, body system, length, number of relevant documents"
    ),
    "complementarity": AnalysisKind(
        "system_pairs:complementarity", "what two systems could reach together, and what only one of them finds"
    ),
    "difficulty": AnalysisKind(
        "difficulty:difficulty",
        "why queries are hard: terminology, sparsity, knowledge, reasoning, reviewers' judgement",
    ),
    "contamination": AnalysisKind(
        "contamination:contamination",
        "documents and questions that an LLM continues verbatim",
        "contamination:contamination_plan",
    ),
}


SUMMARY = (
    "Numbers have 95 % intervals, which show how much they would change with other queries of the same kind. "
    "Numbers from only a few queries say little. Every table is also a CSV file beside this page."
)


@dataclass(frozen=True)
class Analysis:
    """The page of an analysis report and the files that were written. The page is the first file."""

    page: Page
    """The report as a page."""
    files: tuple[Path, ...]
    """The files that were written; the page comes first."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """One section for each analysis."""
        return tuple(self.page.sections)


def run_analyses(
    *names: str | Sequence[str],
    out: str | Path = "analysis",
    setup: Setup | Runtime | None = None,
    announce: Callable[[str], None] = lambda name: None,
    **material: Any,
) -> Analysis:
    """Run analyses by name and write their report, like `r2med analyse`.

    Without names, all analyses run that do not ask an LLM. `material` are fields of `Material`: data, systems, results,
    model and so on.
    """
    named = flattened(names)
    wanted = checked_names(named)
    with running(setup) as runtime:
        given = Material.given(runtime, **material)
        if given.model:
            System.parse(given.model, runtime).check_installed()
        return _analysed(named, wanted, Path(out), announce, given)


def _analysed(
    names: Sequence[str], wanted: Sequence[str], out: Path, announce: Callable[[str], None], given: Material
) -> Analysis:
    """Run the analyses that are wanted; an error in one that was not named becomes its section."""
    sections = []
    for name in wanted:
        announce(name)
        try:
            sections.append(_function(ANALYSES[name].function)(given))
        except UserError as error:
            if names:
                raise
            sections.append(Section(name, (), f"Not analysed: {error}", name=name))
    page = Page(
        "What the benchmark and its results show",
        sections,
        SUMMARY,
        kind="analyses",
        about=f"{given.scope} · {given.measure}",
        has_files=True,
    )
    return Analysis(page, tuple(_write(Path(out), page)))


def analysis_plan(*names: str, setup: Setup | Runtime | None = None, **material: Any) -> Plan:
    """Return what the analyses would ask. Nothing is asked or written."""
    with running(setup) as runtime:
        given = Material.given(runtime, **material)
        places = [ANALYSES[name].plan for name in checked_names(names) if ANALYSES[name].plan]
        plans: list[Plan] = [_function(place)(given) for place in places]
        prompts = {template: request for plan in plans for template, request in plan.prompts.items()}
        return Plan(tuple(row for plan in plans for row in plan.rows), prompts)


def checked_names(names: Sequence[str]) -> list[str]:
    """Return the names of the analyses to run. Raises UserError if no analysis has one of these names."""
    for name in names:
        if name not in ANALYSES:
            raise unknown("analysis", name, ANALYSES)
    return list(dict.fromkeys(names)) or [name for name, each in ANALYSES.items() if not each.plan]


def _function(place: str) -> Callable[[Material], Any]:
    """Import and return a function of an analysis."""
    found: Callable[[Material], Any] = resolve_name(f"r2med.analysis.{place}")
    return found


def _write(folder: Path, page: Page) -> list[Path]:
    """Write the CSV files, then the page that names them."""
    content = {f"{table.name}.csv": table_csv(table) for table in page.tables}
    content["index.html"] = page_html(page)
    try:
        for name, text in content.items():
            write_atomically(folder / name, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise UserError(f"cannot write to {folder} ({error.strerror}): choose another folder with -o") from None
    return [folder / name for name in reversed(content)]
