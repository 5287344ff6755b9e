"""Read qrels files in the usual formats: JSON Lines, TREC (4 columns), TSV (3 columns, with or without a header)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.data.dataset import Qrels
from r2med.data.grades import GradeError, written_grade
from r2med.data.problems import Problems, where
from r2med.data.source_rows import JudgementLine, JudgementRow, judgement_row, read_lines, read_rows

_JSON_ROW = re.compile(r"\s*\{.*[^\d\s]\s*", re.DOTALL)  # a line of columns ends in a grade
_HEAD = (
    frozenset("query queryid qid topic topicid question questionid".split()),
    frozenset("corpusid document documentid doc docid docno passage passageid pid".split()),
    frozenset("score grade relevance rel label judgement judgment".split()),
)
"""The letters of the names of columns that a first line may have."""


def read_judgements(path: Path, problems: Problems) -> Iterator[JudgementRow]:
    """Yield every judgement. The format is recognised by the content, because file names do not say it."""
    # Do not use the first line alone: if it is damaged, every correct line after it would be reported.
    if any(_JSON_ROW.fullmatch(line) for _, line, _ in read_lines(path, Problems())):
        for line, row in read_rows(path, JudgementLine, problems):
            if judgement := judgement_row(row, path, line, problems):
                yield judgement
        return
    widths = {3: "3 (query document grade)", 4: "4 (TREC)"}
    for line, text, ended in read_lines(path, problems):
        columns = text.rstrip("\r\n").split("\t") if "\t" in text else text.split()
        if line == 1 and _is_head(columns):
            continue
        if len(columns) not in widths:
            needed = " or ".join(widths[width] for width in widths)
            tail = "" if ended else " (the last line is truncated?)"
            message = f"{len(columns)} columns instead of {needed}{tail}"
            problems.add(path, line, message, f"lines without {needed} columns")
            continue
        try:
            grade = written_grade(columns[-1])
        except GradeError as error:
            problems.add(path, line, f"grade {columns[-1][:40]!r} {error.fault}", f"grade {error.fault}")
            continue
        # Use one format for the whole file. Otherwise a TREC line without its grade would be read as three columns.
        widths = {len(columns): widths[len(columns)]}
        yield JudgementRow(columns[0], columns[-2], grade, path, line)


def gather(judgements: Iterator[JudgementRow], path: Path, problems: Problems) -> Qrels:
    """Return the qrels. A pair with two equal grades is merged with a notice; two different grades are a problem."""
    grades: dict[str, dict[str, int]] = {}
    origins: dict[tuple[str, str], tuple[Path, int]] = {}
    repeated = 0
    for judgement in judgements:
        known = grades.setdefault(judgement.query, {})
        if judgement.document not in known:
            known[judgement.document] = judgement.grade
            origins[judgement.query, judgement.document] = (judgement.path, judgement.line)
        elif known[judgement.document] == judgement.grade:
            repeated += 1
        else:
            earlier = where(*origins[judgement.query, judgement.document], seen_from=judgement.path)
            problems.add(
                judgement.path,
                judgement.line,
                f"query {judgement.query!r}, document {judgement.document!r} was judged "
                f"{known[judgement.document]} at {earlier} and {judgement.grade} here",
                "pair judged twice, differently",
            )
    if repeated:
        problems.notice(f"{path}: {repeated:,} repeated judgements merged")
    return Qrels(grades)


def read_qrels(path: Path) -> Qrels:
    """Read a qrels file by itself, for scoring a run. Raises UserError for its first fault."""
    problems = Problems()
    qrels = gather(read_judgements(path, problems), path, problems)
    problems.raise_first()
    return qrels


def _is_head(columns: Sequence[str]) -> bool:
    """Return True if the columns of a line are names, as in the first line of BEIR's files."""
    names = [re.sub(r"[^a-z]", "", column.lower()) for column in columns]
    return len(names) == len(_HEAD) and all(name in known for name, known in zip(names, _HEAD, strict=True))
