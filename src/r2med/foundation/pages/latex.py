"""Tables as LaTeX, with booktabs."""

from __future__ import annotations

from r2med.foundation.pages.cells import Marked
from r2med.foundation.pages.page import Page, Table

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
    """Return the tables of a page, separated by empty lines."""
    return "\n".join(map(table_latex, page.tables))


def table_latex(table: Table) -> str:
    """Return a table as a floating table with its caption, and the packages that it needs."""
    columns = table.shown_columns
    sides = "".join("r" if column.is_numeric else "l" for column in columns)
    caption = " ".join(filter(None, (table.title, table.note)))
    lines = [
        NEEDS,
        "\\begin{table}",
        "\\centering",
        *([f"\\caption{{{latex(caption)}}}"] if caption else []),
        f"\\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        "\\toprule",
        f"{' & '.join(latex(column.head) for column in columns)} \\\\",
        "\\midrule",
        *(f"{' & '.join(map(_cell, row))} \\\\" for row in table.shown_rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(cell: Marked) -> str:
    text = latex(str(cell.value))
    text = f"\\textbf{{{text}}}" if cell.bold else f"\\underline{{{text}}}" if cell.underlined else text
    return text + (f"\\textsuperscript{{{latex(cell.mark)}}}" if cell.mark else "")
