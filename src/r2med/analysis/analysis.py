"""Run analyses, and write the page and the CSV files of what they found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from r2med.analysis.material import Material
from r2med.core.errors import UserError, unknown
from r2med.llm.costs import Preview
from r2med.pages.csv_text import table_csv
from r2med.pages.html import page_html
from r2med.pages.page import Page, Section
from r2med.runtime.runtime import Runtime, running
from r2med.runtime.setup import Setup
from r2med.store import about
from r2med.store.files import write_atomically


@dataclass(frozen=True)
class Analysis:
    """An analysis by name."""

    function: str
    """MODULE:NAME of a function Material -> Section."""
    summary: str
    asks: bool = False
    """Whether it may ask an LLM: then it runs only if it is named."""


ANALYSES = {
    "overlap": Analysis("overlap:overlap", "what queries share with gold documents: words, BM25's score, cosine"),
    "reliability": Analysis(
        "reliability:reliability", "what gap is seen, whether ranks stand, unjudged documents, copies"
    ),
    "slices": Analysis("query_slices:query_slices", "figures by task, scenario, body system, length, positives"),
    "rank-shift": Analysis("system_pairs:rank_shift", "how gold documents move between systems"),
    "complementarity": Analysis(
        "system_pairs:complementarity", "what two systems reach together, what one alone finds"
    ),
    "scaling": Analysis("scaling:scaling", "quality against the size of the LLM and the length of what it writes"),
    "answers": Analysis(
        "answer_accuracy:answers", "accuracy of generated answers beside what they gain; --llm judges", asks=True
    ),
    "downstream": Analysis("downstream:downstream", "answers of an LLM by what it reads before", asks=True),
    "contamination": Analysis("contamination:contamination", "what an LLM completes verbatim", asks=True),
}


SUMMARY = (
    "Numbers are shown with their 95 % intervals: where they would be if other queries of the same kind had been "
    "asked. Numbers over a handful of queries say little. Every table is a CSV file beside this page."
)


@dataclass(frozen=True)
class Analysed:
    """What was found, and the files that say it; the page is the first."""

    page: Page
    files: tuple[Path, ...]

    @property
    def sections(self) -> tuple[Section, ...]:
        """What each analysis found."""
        return tuple(self.page.sections)


def analyse(
    *names: str,
    out: str | Path = "analysis",
    setup: Setup | Runtime | None = None,
    announce: Callable[[str], None] = lambda name: None,
    **material: Any,
) -> Analysed:
    """Run analyses by name, all that ask no LLM without any, and write the report: what `r2med analyse` does.

    `material` are fields of `Material`: data, systems, results, model, …
    """
    wanted = checked_names(names)
    with running(setup) as runtime:
        return _analysed(names, wanted, Path(out), announce, Material(runtime, **material))


def _analysed(
    names: Sequence[str], wanted: Sequence[str], out: Path, announce: Callable[[str], None], given: Material
) -> Analysed:
    """Run the analyses that are wanted; an error in one that was not named becomes its section."""
    sections = []
    for name in wanted:
        announce(name)
        try:
            with _labels(given) if ANALYSES[name].asks else nullcontext():
                sections.append(function(name)(given))
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
    return Analysed(page, tuple(_write(Path(out), page)))


def _labels(material: Material) -> ExitStack:
    """Label answers of LLMs with all datasets that are analysed."""
    labels = ExitStack()
    for dataset in material.datasets:
        labels.enter_context(about(dataset=dataset))
    return labels


def rehearse(*names: str, setup: Setup | Runtime | None = None, **material: Any) -> dict[str, Preview]:
    """Return what analyses would ask, by the name of the question; nothing is asked or written."""
    with running(setup) as runtime:
        given = Material(runtime, rehearsal=True, **material)
        for name in checked_names(names):
            function(name)(given)
        return given.questions.previews


def checked_names(names: Sequence[str]) -> list[str]:
    """Return the analyses that are wanted. Raises UserError for a name that is none."""
    for name in names:
        if name not in ANALYSES:
            raise unknown("analysis", name, ANALYSES)
    return list(dict.fromkeys(names)) or [name for name, each in ANALYSES.items() if not each.asks]


def function(name: str) -> Callable[[Material], Section]:
    """Return the function of an analysis, imported when it is first wanted."""
    module, _, attribute = ANALYSES[name].function.partition(":")
    found: Callable[[Material], Section] = getattr(import_module(f"r2med.analysis.{module}"), attribute)
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
