"""A table as papers have it, with bold, underlined and marked figures: in Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from r2med.text.csv_table import csv_table


@dataclass(frozen=True)
class Entry:
    """What stands in one cell."""

    text: str
    exact: float | None = None
    """The figure that the text rounds: what CSV has in its place."""
    bold: bool = False
    underlined: bool = False
    mark: str = ""


@dataclass(frozen=True)
class PaperTable:
    """Heads, rows of as many entries, and what a reader has to know. The first columns are words, the rest figures."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    caption: str = ""
    words: int = 1

    def markdown(self) -> str:
        """Return it as a table of GitHub's Markdown."""
        rule = [":--"] * self.words + ["--:"] * (len(self.heads) - self.words)
        lines = [list(map(_markdown, self.heads)), rule, *(list(map(_markdown_entry, row)) for row in self.rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{table}\n\n{_markdown(self.caption)}\n" if self.caption else f"{table}\n"

    def latex(self) -> str:
        """Return it as a LaTeX table with booktabs."""
        columns = "l" * self.words + "r" * (len(self.heads) - self.words)
        lines = [" & ".join(map(_latex, self.heads)), *(" & ".join(map(_latex_entry, row)) for row in self.rows)]
        head, *rows = (f"{line} \\\\" for line in lines)
        return "\n".join(
            [
                "% \\usepackage{booktabs}, and with pdflatex \\usepackage[T1]{fontenc}",
                "\\begin{table}",
                "\\centering",
                f"\\caption{{{_latex(self.caption)}}}",
                f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
                "\\toprule",
                head,
                "\\midrule",
                *rows,
                "\\bottomrule",
                "\\end{tabular}",
                "\\end{table}",
                "",
            ]
        )

    def csv(self) -> str:
        """Return the heads, the texts and the figures to their last digit, without marks."""
        rows = ([entry.text if entry.exact is None else entry.exact for entry in row] for row in self.rows)
        return csv_table([self.heads, *rows])


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "markdown": PaperTable.markdown,
    "latex": PaperTable.latex,
    "csv": PaperTable.csv,
}


_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>|~$"})


def _markdown(text: str) -> str:
    """Return text in which nothing is markup: names have stars, pipes and angles of their own."""
    return " ".join(text.split()).translate(_MARKDOWN)


def _markdown_entry(entry: Entry) -> str:
    text = _markdown(entry.text)
    text = f"**{text}**" if entry.bold else f"<u>{text}</u>" if entry.underlined else text
    return text + _markdown(entry.mark)


LATEX_SIGNS = {
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
    "[": "{[}",  # at the beginning of a row it would be an option of the line break before it, as would a star
    "*": "{*}",
    **{sign: f"\\{sign}" for sign in "#$%&_{}"},
}
"""What a sign is in LaTeX; the board's export has the same list."""
_LATEX: dict[int, str | int | None] = {ord(sign): written for sign, written in LATEX_SIGNS.items()}


def _latex(text: str) -> str:
    return " ".join(text.split()).translate(_LATEX)


def _latex_entry(entry: Entry) -> str:
    text = _latex(entry.text)
    text = f"\\textbf{{{text}}}" if entry.bold else f"\\underline{{{text}}}" if entry.underlined else text
    return text + (f"\\textsuperscript{{{_latex(entry.mark)}}}" if entry.mark else "")
