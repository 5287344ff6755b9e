"""Pages as text: Markdown, LaTeX, CSV and JSON. All data is escaped.

LaTeX and CSV have the tables of a page, Markdown and JSON the whole page.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from r2med.foundation.pages.cells import Column, Estimate, Marked, Value, value_of
from r2med.foundation.pages.page import Block, Bullets, Heading, Page, Paragraph, Part, Section, Table, Verbatim

# Markdown, as GitHub reads it.

_MARKDOWN_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~!$"})


def markdown_text(text: str) -> str:
    """Return a text on one line in which nothing is markup: names have stars, pipes and angles of their own."""
    return " ".join(text.split()).translate(_MARKDOWN_SIGNS)


def page_markdown(page: Page) -> str:
    """Return a page as Markdown."""
    facts = [Table((Column(""), Column(""), Column("")), page.facts)] if page.facts else []
    blocks = [*facts, *(block for section in page.sections for block in section.blocks)]
    texts = [
        f"# {markdown_text(page.title)}" if page.title else "",
        markdown_text(page.about),
        markdown_text(page.summary),
        *(text for block in blocks for text in _markdown_texts(block)),
        markdown_text(page.foot),
    ]
    return "\n\n".join(filter(None, texts)) + "\n"


def table_markdown(table: Table) -> str:
    """Return a table, and its title and note below it: as much as a paper's table has."""
    texts = (_markdown_rows(table), markdown_text(table.title), markdown_text(table.note))
    return "\n\n".join(filter(None, texts)) + "\n"


def _markdown_texts(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"## {markdown_text(f'{block.text} {block.aside}')}"
        case Paragraph():
            text = markdown_text(block.text)
            label = f"**{markdown_text(block.label)}** " if block.label else ""
            yield label + (f"**{text}**" if block.tone == "strong" and text else text)
        case Bullets():
            yield "\n".join(f"- {markdown_text(text)}" for text in block.texts)
        case Verbatim():
            yield f"**{markdown_text(block.title)}**"
            yield "\n".join(f"    {line}" for line in block.text.splitlines())
        case Table():
            yield f"**{markdown_text(block.title)}**" if block.title else ""
            yield _markdown_rows(block)
            yield markdown_text(block.note)


def _markdown_rows(table: Table) -> str:
    columns = table.shown_columns
    heads = [markdown_text(column.head) for column in columns]
    rules = ["--:" if column.is_numeric else ":--" for column in columns]
    lines = [heads, rules, *(map(_markdown_cell, row) for row in table.shown_rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(cell: Marked) -> str:
    text = markdown_text(str(cell.value))
    text = f"**{text}**" if cell.bold else f"<u>{text}</u>" if cell.underlined else text
    return text + markdown_text(cell.mark)


# LaTeX, with booktabs.

LATEX_PACKAGES = "% \\usepackage{booktabs}, and with pdflatex \\usepackage[T1]{fontenc}"

_LATEX_SIGNS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "→": r"$\rightarrow$",
        "×": r"$\times$",
        "−": r"$-$",
        "±": r"$\pm$",
        "≈": r"$\approx$",
        "†": r"$\dagger$",
        "α": r"$\alpha$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "<": r"$<$",
        ">": r"$>$",
        "–": "--",
        "…": r"\ldots{}",
        "|": r"\textbar{}",
        "[": "{[}",  # at the start of a row, it would be read as an option of the line break before it; so would a star
        "*": "{*}",
        **{sign: f"\\{sign}" for sign in "#$%&_{}"},
    }
)
"""LaTeX code of special characters."""


def latex_text(text: str) -> str:
    """Return a text on one line, with all special characters of LaTeX escaped."""
    return " ".join(text.split()).translate(_LATEX_SIGNS)


def page_latex(page: Page) -> str:
    """Return the tables of a page, separated by empty lines."""
    return "\n".join(map(table_latex, page.tables))


def table_latex(table: Table) -> str:
    """Return a table as a floating table with its caption, and the packages that it needs."""
    columns = table.shown_columns
    sides = "".join("r" if column.is_numeric else "l" for column in columns)
    caption = " ".join(filter(None, (table.title, table.note)))
    lines = [
        LATEX_PACKAGES,
        "\\begin{table}",
        "\\centering",
        *([f"\\caption{{{latex_text(caption)}}}"] if caption else []),
        f"\\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        "\\toprule",
        f"{' & '.join(latex_text(column.head) for column in columns)} \\\\",
        "\\midrule",
        *(f"{' & '.join(map(_latex_cell, row))} \\\\" for row in table.shown_rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Marked) -> str:
    text = latex_text(str(cell.value))
    text = f"\\textbf{{{text}}}" if cell.bold else f"\\underline{{{text}}}" if cell.underlined else text
    return text + (f"\\textsuperscript{{{latex_text(cell.mark)}}}" if cell.mark else "")


# CSV.

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_rows(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV. A text that starts like a formula gets an apostrophe in front; numbers are unchanged."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_guarded, row) for row in rows)
    return out.getvalue()


def table_csv(table: Table) -> str:
    """Return all values at full precision, without marks. A column of estimates becomes three columns."""
    widths = [max([1, *(_width(row[number]) for row in table.rows)]) for number in range(len(table.columns))]
    suffixes = ("", " low", " high")
    heads = [head + suffix for head, width in zip(table.heads, widths, strict=True) for suffix in suffixes[:width]]
    rows = ([text for pair in zip(row, widths, strict=True) for text in _flat(*pair)] for row in table.rows)
    return csv_rows([heads, *rows])


def page_csv(page: Page) -> str:
    """Return the tables of a page, separated by empty lines."""
    return "\n".join(map(table_csv, page.tables))


def _width(cell: Value | Marked) -> int:
    """Return the number of columns that a cell needs: an estimate has an interval."""
    return 3 if isinstance(value_of(cell), Estimate) else 1


def _flat(cell: Value | Marked, width: int) -> Iterator[object]:
    value = value_of(cell)
    parts = (value.value, value.low, value.high) if isinstance(value, Estimate) else (value, None, None)
    yield from ("" if part is None else part for part in parts[:width])


def _guarded(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


# JSON.


def page_value(page: Page) -> dict[str, Any]:
    """Return a page as a value of dictionaries, lists, texts and numbers."""
    facts = [{"label": label, "fact": fact, "note": note} for label, fact, note in page.facts]
    top = {"title": page.title, "about": page.about, "summary": page.summary, "facts": facts}
    return {**_without_empty(top), "sections": list(map(_json_section, page.sections))}


def _json_table(table: Table) -> dict[str, Any]:
    """Return the columns of a table, each with its kind, and its rows; an estimate is a value with its bounds."""
    columns = [{"head": column.head, "kind": column.kind} for column in table.columns]
    about = {"name": table.name, "title": table.title, "note": table.note}
    rows = [[_json_cell(cell) for cell in row] for row in table.rows]
    return {**_without_empty(about), "columns": columns, "rows": rows}


def _json_section(section: Section) -> dict[str, Any]:
    head = {"name": section.name, "title": section.title, "aside": section.aside, "lead": section.lead}
    texts = [text for part in section.body for text in _json_texts(part)]
    rest = {"texts": texts, "tables": list(map(_json_table, section.tables)), "notes": list(section.notes)}
    return _without_empty({**head, **rest})


def _json_texts(part: Part) -> Sequence[str]:
    match part:
        case Paragraph():
            return [f"{part.label} {part.text}" if part.label else part.text]
        case Bullets():
            return part.texts
        case Verbatim():
            return [part.text]
        case Table():
            return []


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _json_cell(cell: Value | Marked) -> Any:
    value = value_of(cell)
    if isinstance(value, Estimate):
        return {"value": value.value, "low": value.low, "high": value.high}
    return value
