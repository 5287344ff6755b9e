"""Pages as LaTeX: tables with booktabs, and the sentences around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2med.foundation.pages.cells import Marked
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

NEEDS = "% \\usepackage{booktabs}, and with pdflatex \\usepackage[T1]{fontenc}"

_CODES = {
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
"""LaTeX code of special characters."""
_SIGNS: dict[int, str | int | None] = {ord(sign): written for sign, written in _CODES.items()}


def latex(text: str) -> str:
    """Return a text on one line, with all special characters of LaTeX escaped."""
    return " ".join(text.split()).translate(_SIGNS)


def page_latex(page: Page) -> str:
    """Return a page as LaTeX, to be included in a document."""
    blocks = [NEEDS, latex(page.summary)]
    for section in page.sections:
        blocks += _section(section)
    return "\n\n".join(filter(None, blocks)) + "\n"


def table_latex(table: Table) -> str:
    """Return a table as a floating table with its caption, and the packages that it needs."""
    return f"{NEEDS}\n{_table(table)}\n"


def _table(table: Table) -> str:
    columns = table.shown_columns
    sides = "".join("r" if column.is_numeric else "l" for column in columns)
    rows = zip(*([_cell(cell) for cell in column.cells] for column in columns), strict=True)
    caption = " ".join(filter(None, (table.title, table.note)))
    lines = [
        "\\begin{table}",
        "\\centering",
        *([f"\\caption{{{latex(caption)}}}"] if caption else []),
        f"\\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        "\\toprule",
        f"{' & '.join(latex(column.head) for column in columns)} \\\\",
        "\\midrule",
        *(f"{' & '.join(row)} \\\\" for row in rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines)


def _cell(cell: Marked) -> str:
    text = latex(str(cell.value))
    text = f"\\textbf{{{text}}}" if cell.bold else f"\\underline{{{text}}}" if cell.underlined else text
    return text + (f"\\textsuperscript{{{latex(cell.mark)}}}" if cell.mark else "")


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"\\subsection*{{{latex(f'{section.title} {section.aside}')}}}"
    yield latex(section.lead)
    for part in section.parts:
        yield _part(part)
    if section.notes:
        yield _items(section.notes)


def _part(part: Content) -> str:
    match part:
        case str():
            return latex(part)
        case Note():
            return f"\\textbf{{{latex(part.text)}}}" if part.tone == "strong" and part.text else latex(part.text)
        case Bullets():
            return _items(part.texts)
        case Verbatim():
            return f"\\textbf{{{latex(part.title)}}} {latex(part.text)}"
        case MarkedText():
            return f"\\textbf{{{latex(part.label)}}} {latex(''.join(text for text, _ in part.pieces))}"
        case Bars() | Dots() | Curves():
            return _table(part.table)
        case Table():
            return _table(part)


def _items(texts: Sequence[str]) -> str:
    return "\n".join(["\\begin{itemize}", *(f"\\item {latex(text)}" for text in texts), "\\end{itemize}"])
