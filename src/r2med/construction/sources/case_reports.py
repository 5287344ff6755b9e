"""Case reports: some become queries, the others of the same diagnosis or article their positives.

Two steps read the same source: `read-cases` yields the queries, `read-case-pages` all other cases as pages. Each group
of cases has one query, its first: a case that is asked about is never a document as well. With `group=source` every
case is a query, and the article that it comes from, which another step reads, is its positive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal
from xml.etree.ElementTree import Element

from pydantic import Field

from r2med.construction.items import Item, Question, Rejected, SourcePage
from r2med.construction.sources.page_readers import ReadJats, paragraphs, words
from r2med.construction.sources.safe_xml import xml_elements
from r2med.construction.sources.source_files import (
    UNREADABLE,
    SourceError,
    SourceFile,
    SourceStep,
    source_files,
    unreadable,
)
from r2med.construction.step import Streams, Work
from r2med.core.errors import UserError

_IDS = ("patient_uid", "patient_id", "id")
_TEXTS = ("patient", "text", "case")
_ARTICLES = ("PMID", "pmid", "pmcid", "file_path")
_CASE_TITLES = ("case", "presentation", "report", "patient", "history")


@dataclass(frozen=True)
class CaseReport:
    """One patient's case."""

    id: str
    text: str
    title: str
    diagnosis: str
    articles: tuple[str, ...]
    """The ids of the article that it comes from; it may have several."""
    where: str

    @property
    def article(self) -> str:
        """One of them, or nothing."""
        return next(iter(self.articles), "")


class CaseStep(SourceStep, kind="build"):
    """A step that reads case reports."""

    endings = (".jsonl", ".xml", ".nxml")

    group: Literal["diagnosis", "article", "source", "none"] = Field(
        "diagnosis",
        description="what cases share of which one is the query and the others are its positives; "
        "source: each is a query, and the article that it comes from its positive",
    )

    def cases(self, streams: Streams) -> Iterator[CaseReport | Rejected]:
        """Yield every case of the source, and what of it cannot be read."""
        for file in source_files(streams.path(self.path), self.endings):
            if isinstance(file, Rejected):
                yield file
                continue
            try:
                for case in _of_lines(file) if ".jsonl" in file.name.lower() else _of_jats(file):
                    yield case if isinstance(case, Rejected) else replace(case, id=self.prefix + case.id)
            except (SourceError, *UNREADABLE) as fault:
                yield unreadable(file.where, str(fault) or type(fault).__name__)

    def groups(self, streams: Streams) -> dict[str, tuple[str, ...]]:
        """Return the ids of its positives for each case that is a query: the other cases of its group, or articles."""
        if self.group in ("source", "none"):
            reports = [case for case in self.cases(streams) if isinstance(case, CaseReport)]
            return {case.id: case.articles if self.group == "source" else () for case in reports}
        members = defaultdict(list)
        for case in self.cases(streams):
            if isinstance(case, CaseReport) and (shared := " ".join(getattr(case, self.group).lower().split())):
                members[shared].append(case.id)
        if not members:
            raise UserError(f"{self}: no case tells its {self.group}: say group=article or group=none")
        return {first: tuple(others) for first, *others in members.values() if others}


class ReadCases(CaseStep, kind="build"):
    """Read case reports as questions: the fields of PMC-Patients as JSON lines, or articles in JATS XML."""

    writes = "questions"

    name: str = "read-cases"

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Yield the first case of each group as a question."""
        queries = self.groups(streams)
        for case in self.cases(streams):
            if isinstance(case, Rejected):
                yield case
            elif case.id in queries:
                yield Question(
                    id=f"q-{case.id}",
                    text=case.text,
                    answer=case.diagnosis,
                    positives=queries[case.id],
                    source=case.where,
                    licence=self.licence,
                )


class ReadCasePages(CaseStep, kind="build"):
    """Read as pages the case reports that read-cases, with the same settings, does not make questions of."""

    writes = "pages"

    name: str = "read-case-pages"

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Yield every case that is no query."""
        queries = self.groups(streams)
        for case in self.cases(streams):
            if isinstance(case, CaseReport) and case.id not in queries:
                facts = {"title": case.title, "source": case.where, "licence": self.licence}
                yield SourcePage(id=case.id, text=case.text, **facts)


def _of_lines(file: SourceFile) -> Iterator[CaseReport | Rejected]:
    """Yield cases of JSON lines; PMC-Patients tells no diagnosis, other sets may."""
    for line, row in file.rows():
        where = f"{file.name}:{line}"
        if isinstance(row, SourceError):
            yield unreadable(where, str(row))
            continue
        text = _first(row, _TEXTS)
        if not text:
            yield unreadable(where, f"it has no text in one of {', '.join(_TEXTS)}")
            continue
        identifier = _first(row, _IDS) or where.replace(".jsonl", "").replace(":", "-")
        title, diagnosis = _first(row, ("title",)), _first(row, ("diagnosis", "answer"))
        articles = tuple(PurePosixPath(str(row[field])).stem for field in _ARTICLES if row.get(field))
        yield CaseReport(identifier, text, title, diagnosis, articles, where)


def _first(row: Mapping[str, Any], fields: tuple[str, ...]) -> str:
    values = (row.get(field) for field in fields)
    return next((str(value).strip() for value in values if isinstance(value, str | int) and str(value).strip()), "")


def _of_jats(file: SourceFile) -> Iterator[CaseReport]:
    """Yield the case of each article: the sections that present it, or the whole body."""
    for line, article in xml_elements(file, "article"):
        page = ReadJats(path=file.name).page(article, f"{file.name}:{line}", file.name)
        sections = [each for each in article.iterfind("./body/sec") if _presents_case(each)]
        text = "\n\n".join(text for section in sections for text in paragraphs(section, ("p",))) or page.text
        if text:
            yield CaseReport(page.id, text, page.title, "", (page.id,), page.source)


def _presents_case(section: Element) -> bool:
    title = words(section.find("title")).lower()
    return section.get("sec-type") == "cases" or any(word in title for word in _CASE_TITLES)
