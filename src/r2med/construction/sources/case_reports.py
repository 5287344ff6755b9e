"""Read case reports: some become queries, and others with the same diagnosis or article are their relevant documents.

Two steps read the same source: `read-cases` yields the queries, and `read-case-pages` yields all other cases as pages.
The first case of each group is the query, so a case is never both a query and a document. With `group=source` every
case is a query, and the article that it comes from is its relevant document. Another step reads that article.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal
from xml.etree.ElementTree import Element

from pydantic import Field

from r2med.construction.diagnosis_groups import DiagnosisGroups, groups_key
from r2med.construction.items import Rejected, SourcePage, SourceQuestion, StreamItem
from r2med.construction.sources.page_readers import ReadJats, paragraphs, words
from r2med.construction.sources.safe_xml import xml_elements
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep, unreadable
from r2med.construction.step import StepWork, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime

_IDS = ("patient_uid", "patient_id", "id")
_TEXTS = ("patient", "text", "case")
_ARTICLES = ("PMID", "pmid", "pmcid", "file_path")
_CASE_TITLES = ("case", "presentation", "report", "patient", "history")


@dataclass(frozen=True)
class CaseReport:
    """The case of one patient."""

    id: str
    text: str
    title: str
    diagnosis: str
    articles: tuple[str, ...]
    """Ids of the article that the case comes from. An article may have several ids."""
    where: str

    @property
    def article(self) -> str:
        """One id of the article; empty if there is none."""
        return next(iter(self.articles), "")


class CaseStep(SourceStep, kind="build"):
    """A step that reads case reports."""

    expects = "case reports: JSON lines, or articles in JATS XML (.jsonl, .xml, .nxml)"
    endings = (".jsonl", ".xml", ".nxml")

    group: Literal["diagnosis", "article", "source", "none"] = Field(
        "diagnosis",
        description="What cases of one group share. The first case of a group is the query, and the others are its "
        "relevant documents. With source, each case is a query, and its article is the relevant document.",
    )

    synonyms: str = Field(
        "",
        description="Table of synonyms beside the plan, so that cases with synonymous diagnoses are one group: a CSV "
        "file with the columns concept and term.",
    )

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return the settings, the digest of the source, and what groups of diagnoses depend on."""
        key = super().key(streams, runtime)
        return {**key, **(groups_key(streams, self.synonyms, runtime.store) if self.group == "diagnosis" else {})}

    def cases(self, streams: Streams) -> Iterator[CaseReport | Rejected]:
        """Yield every case of the source, and every part that cannot be read as rejected."""
        for case in self.parts(streams, _cases):
            yield case if isinstance(case, Rejected) else replace(case, id=self.prefix + case.id)

    def groups(self, streams: Streams) -> dict[str, tuple[str, ...]]:
        """Return each case that is a query, with the ids of its relevant documents: other cases, or articles."""
        if self.group in ("source", "none"):
            reports = [case for case in self.cases(streams) if isinstance(case, CaseReport)]
            return {case.id: case.articles if self.group == "source" else () for case in reports}
        members = defaultdict(list)
        shared = self._shared(streams)
        for case in self.cases(streams):
            if isinstance(case, CaseReport) and (value := shared(case)):
                members[value].append(case.id)
        if not members:
            raise UserError(f"{self}: no case has a {self.group}: set group=article or group=none")
        return {first: tuple(others) for first, *others in members.values() if others}

    def _shared(self, streams: Streams) -> Callable[[CaseReport], str]:
        """Return the function that gives what cases of one group share."""

        def written(case: CaseReport) -> str:
            return " ".join(str(getattr(case, self.group)).lower().split())

        if self.group != "diagnosis" or not self.synonyms:
            return written
        groups = DiagnosisGroups.read(streams, self.synonyms)
        return lambda case: groups.group(case.diagnosis)


class ReadCases(CaseStep, kind="build"):
    """Read case reports as questions, from JSON lines with the fields of PMC-Patients or from JATS XML."""

    writes = "questions"

    name: str = "read-cases"

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield the first case of each group as a question."""
        queries = self.groups(streams)
        for case in self.cases(streams):
            if isinstance(case, Rejected):
                yield case
            elif case.id in queries:
                yield SourceQuestion(
                    id=f"q-{case.id}",
                    text=case.text,
                    answer=case.diagnosis,
                    positives=queries[case.id],
                    source=case.where,
                    licence=self.licence,
                )


class ReadCasePages(CaseStep, kind="build"):
    """Read as pages those case reports that read-cases, with the same settings, does not turn into questions."""

    writes = "pages"
    version = 2

    name: str = "read-case-pages"

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield every case that is not a query as a page."""
        queries = self.groups(streams)
        for case in self.cases(streams):
            if isinstance(case, CaseReport) and case.id not in queries:
                facts = {"title": case.title, "source": case.where, "licence": self.licence}
                diagnosis = case.diagnosis if self.group == "diagnosis" else ""
                yield SourcePage(id=case.id, text=case.text, diagnosis=diagnosis, **facts)


def _cases(file: SourceFile) -> Iterator[CaseReport | Rejected]:
    return _of_lines(file) if ".jsonl" in file.name.lower() else _of_jats(file)


def _of_lines(file: SourceFile) -> Iterator[CaseReport | Rejected]:
    """Yield the cases in a file of JSON lines. PMC-Patients has no diagnosis, but other sets may have one."""
    for line, row in file.rows():
        where = f"{file.name}:{line}"
        if isinstance(row, SourceError):
            yield unreadable(where, str(row))
            continue
        text = _first(row, _TEXTS)
        if not text:
            yield unreadable(where, f"none of the fields {', '.join(_TEXTS)} has a text")
            continue
        identifier = _first(row, _IDS) or where.replace(".jsonl", "").replace(":", "-")
        title, diagnosis = _first(row, ("title",)), _first(row, ("diagnosis", "answer"))
        articles = tuple(PurePosixPath(str(row[field])).stem for field in _ARTICLES if row.get(field))
        yield CaseReport(identifier, text, title, diagnosis, articles, where)


def _first(row: Mapping[str, Any], fields: tuple[str, ...]) -> str:
    values = (row.get(field) for field in fields)
    return next((str(value).strip() for value in values if isinstance(value, str | int) and str(value).strip()), "")


def _of_jats(file: SourceFile) -> Iterator[CaseReport]:
    """Yield the case of each article: the sections that present the case, or the whole body."""
    for line, article in xml_elements(file, "article"):
        page = ReadJats(path=file.name).page(article, f"{file.name}:{line}", file.name)
        sections = [each for each in article.iterfind("./body/sec") if _presents_case(each)]
        text = "\n\n".join(text for section in sections for text in paragraphs(section, ("p",))) or page.text
        if text:
            yield CaseReport(page.id, text, page.title, "", (page.id,), page.source)


def _presents_case(section: Element) -> bool:
    title = words(section.find("title")).lower()
    return section.get("sec-type") == "cases" or any(word in title for word in _CASE_TITLES)
