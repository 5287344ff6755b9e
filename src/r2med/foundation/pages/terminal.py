"""Pages on a terminal: sections with an empty line between them, sentences in the colour of their tone."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from r2med.foundation.pages.cells import Tone
from r2med.foundation.pages.page import Block, Bullets, Heading, Page, Paragraph, Section, Table, Verbatim
from r2med.foundation.pages.terminal_tables import has_names, name_labels, plain, print_table

STYLES: Mapping[Tone, str] = {
    "": "",
    "lead": "",
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
    for label, fact, note in page.facts:
        output.print(plain(f"{label}: ") + plain(fact, "bold"), plain(note, "dim"))
    if page.facts:
        output.print()
    for number, section in enumerate(page.sections):
        if number:
            output.print()
        _print_section(section, output)
    paragraphs = [part for section in page.sections for part in section.parts if isinstance(part, Paragraph)]
    sources = {source for paragraph in paragraphs for _, _, source in paragraph.marks}
    if output.is_terminal and not sources.isdisjoint(("generated", "both")):
        output.print(plain(LEGEND, "dim"))


def _print_section(section: Section, output: Console) -> None:
    with_names = next((table for table in section.tables if has_names(table)), None)
    labels = name_labels(with_names, output.width) if with_names else {}
    before: Block | None = None
    for block in section.blocks:
        if isinstance(before, Table) and isinstance(block, Table):
            output.print()
        if block is with_names:
            for name, label in labels.items():
                output.print(plain(f"{label} {name}"))
        _print_block(block, output, labels)
        before = block


def _print_block(block: Block, output: Console, labels: Mapping[str, str]) -> None:
    match block:
        case Heading():
            aside = [plain(block.aside, STYLES[block.aside_tone])] if block.aside else []
            output.print(plain(block.text, "bold"), *aside)
        case Paragraph():
            label = plain(f"{block.label} " if block.label else "", "bold")
            pieces = [plain(text, MARKS[source] or STYLES[block.tone]) for text, source in block.pieces]
            output.print(plain("").join([label, *pieces]), soft_wrap=block.whole)
        case Bullets():
            for text in block.texts:
                output.print(plain(f"Note: {text}", "yellow") if block.are_notes else plain(f"- {text}"))
        case Verbatim():
            output.print(plain(block.title, "bold"))
            for line in block.text.split("\n"):
                output.print(plain(line), soft_wrap=True)
        case Table():
            if block.title:
                output.print(plain(block.title))
            print_table(block, output, labels)
            if block.note:
                output.print(plain(block.note, "dim"))
