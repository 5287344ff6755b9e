"""Group the answers of questions by meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from r2med.construction.diagnosis_groups import GROUPS_FACT, DiagnosisGroups, GroupRow, groups_key
from r2med.construction.items import Rejected, SourceQuestion, Stream, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.text.synonyms import normal_term


class GroupDiagnoses(Step, kind="build"):
    """Group answers that mean the same, by a table of synonyms and by spelling."""

    reads: ClassVar[tuple[Stream, ...]] = ("questions", "pages")
    optional: ClassVar[tuple[Stream, ...]] = ("pages",)
    writes: ClassVar[Stream] = "questions"

    name: str = "group-diagnoses"
    synonyms: str = Field(
        "",
        description="Table of synonyms beside the plan: a CSV file with the columns concept and term.",
    )

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the groups depend on."""
        return {**super().key(streams, runtime), **groups_key(streams, self.synonyms, runtime.store)}

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield every question with the group of its answer, the other names of its answer, and more positives."""
        groups = DiagnosisGroups.read(streams, self.synonyms)
        spellings = _spellings(streams, groups)
        work.facts[GROUPS_FACT] = list(_grouped(spellings, groups))
        positives = _positives(streams, groups)
        for question in streams.questions():
            yield _with_group(question, groups, spellings, positives)


def _spellings(streams: Streams, groups: DiagnosisGroups) -> dict[str, list[str]]:
    """Return group -> the diagnoses of questions and pages as they are written, in alphabetical order."""
    spellings: dict[str, set[str]] = {}
    for term in (*(q.answer for q in streams.questions()), *(page.diagnosis for page in streams.pages())):
        if normal_term(term):
            spellings.setdefault(groups.group(term), set()).add(" ".join(term.split()))
    ordered = {group: sorted(terms, key=lambda term: (term.casefold(), term)) for group, terms in spellings.items()}
    return dict(sorted(ordered.items(), key=lambda item: item[1][0].casefold()))


def _grouped(spellings: Mapping[str, Sequence[str]], groups: DiagnosisGroups) -> Iterator[GroupRow]:
    """Yield the diagnoses that the table has, or that are written in several ways."""
    for group, terms in spellings.items():
        for term in terms:
            if groups.is_in_table(term):
                yield GroupRow(term, group, "table")
            elif len(terms) > 1:
                yield GroupRow(term, terms[0], "string")


def _positives(streams: Streams, groups: DiagnosisGroups) -> Mapping[str, Sequence[str]]:
    """Return the cases of each group that are pages."""
    cases: dict[str, list[str]] = defaultdict(list)
    for page in streams.pages():
        if normal_term(page.diagnosis):
            cases[groups.group(page.diagnosis)].append(page.id)
    return cases


def _with_group(
    question: SourceQuestion,
    groups: DiagnosisGroups,
    spellings: Mapping[str, Sequence[str]],
    positives: Mapping[str, Sequence[str]],
) -> SourceQuestion:
    if not normal_term(question.answer):
        return question
    group = groups.group(question.answer)
    names = {normal_term(name): name for name in (*spellings.get(group, ()), *groups.table_terms(group))}
    names.pop(normal_term(question.answer), None)
    update: dict[str, Any] = {"answer_group": group, "other_names": tuple(names.values())}
    cases = positives.get(group, ())
    if set(cases) & set(question.positives):  # its positives are cases with the same diagnosis, not articles or links
        update["positives"] = tuple(dict.fromkeys((*question.positives, *cases)))
    return question.model_copy(update=update)
