"""Pages on a terminal: sections with an empty line between them, sentences in the colour of their tone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from rich.console import Console

from r2med.foundation.pages.cells import Tone
from r2med.foundation.pages.page import (
    Bars,
    Bullets,
    Content,
    Curves,
    Dots,
    MarkedText,
    Note,
    Page,
    Section,
    Table,
    Verbatim,
)
from r2med.foundation.pages.terminal_tables import has_names, name_labels, plain, print_table

STYLES: Mapping[Tone, str] = {
    "": "",
    "strong": "bold",
    "quiet": "dim",
    "good": "bold green",
    "warning": "yellow",
    "error": "red",
}
LEGEND = "Words of the question are yellow, words that the LLM wrote cyan, words of both green."
MARKS = {"": "", "query": "bold yellow", "generated": "bold cyan", "both": "bold green"}


def print_page(page: Page, output: Console) -> None:
    """Print the facts and sections of a page. Its title is left out, because the command says it."""
    if page.facts:
        for label, fact, note in page.facts:
            output.print(plain(f"{label}: ") + plain(fact, "bold"), plain(note, "dim"))
        output.print()
    for number, section in enumerate(page.sections):
        if number:
            output.print()
        _print_section(section, output)
    if output.is_terminal and any(_has_generated_words(part) for section in page.sections for part in section.parts):
        output.print(plain(LEGEND, "dim"))


def _has_generated_words(part: Content) -> bool:
    return isinstance(part, MarkedText) and any(source in ("generated", "both") for _, source in part.pieces)


def _print_section(section: Section, output: Console) -> None:
    if section.title:
        aside = [plain(section.aside, STYLES[section.aside_tone])] if section.aside else []
        output.print(plain(section.title, "bold"), *aside)
    if section.lead:
        output.print(plain(section.lead))
    named = next((table for table in section.tables if has_names(table)), None)
    labels = name_labels(named, output.width) if named else {}
    for name, label in labels.items():
        output.print(plain(f"{label} {name}"))
    for before, part in pairwise([None, *section.parts]):
        if isinstance(before, Table) and isinstance(part, Table):
            output.print()
        if part is not None:
            _print_part(part, output, labels)
    for note in section.notes:
        output.print(plain(f"Note: {note}", "yellow"))


def _print_part(part: Content, output: Console, labels: Mapping[str, str]) -> None:
    match part:
        case str():
            output.print(plain(part))
        case Note():
            output.print(plain(part.text, STYLES[part.tone]), soft_wrap=part.whole)
        case Bullets():
            for text in part.texts:
                output.print(plain(f"- {text}"))
        case Verbatim():
            output.print(plain(part.title, "bold"))
            for line in part.text.split("\n"):
                output.print(plain(line), soft_wrap=True)
        case MarkedText():
            label = plain(f"{part.label} " if part.label else "", "bold")
            pieces = [plain(text, MARKS[source]) for text, source in part.pieces]
            output.print(label.append_text(plain("").join(pieces)))
        case Table():
            if part.title:
                output.print(plain(part.title))
            print_table(part, output, labels)
            if part.note:
                output.print(plain(part.note, "dim"))
        case Bars() | Dots() | Curves():
            _print_part(part.table, output, labels)
