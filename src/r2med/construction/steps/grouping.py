"""Group the answers of questions by meaning, and let an LLM propose synonyms that people confirm."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from r2med.construction.diagnosis_groups import GROUPS_FACT, DiagnosisGroups, GroupRow, groups_key
from r2med.construction.items import Item, Rejected, SourceQuestion, Stream
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps.asking import AskingStep
from r2med.construction.steps.similar_diagnoses import similar_groups
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.text.synonyms import normal_term
from r2med.models.ask.answers import FieldReader, LLMAnswer
from r2med.models.ask.json_answers import warn_of_identifiers


def _numbers(value: Any) -> list[int]:
    if not isinstance(value, list) or any(isinstance(each, bool) or float(each) != int(each) for each in value):
        raise ValueError(f"{value!r} is not a list of whole numbers")
    return [int(each) for each in value]


class SameDiagnoses(LLMAnswer):
    """The numbers of the diagnoses that mean the same as the given one, from 1."""

    same: Annotated[list[int], FieldReader(json.dumps({"type": "array", "items": {"type": "integer"}}), _numbers)]


@dataclass(frozen=True)
class SimilarDiagnoses:
    """A diagnosis and others that are written similarly."""

    term: str
    others: tuple[str, ...]


class ProposedSynonyms(Item):
    """Diagnoses that an LLM takes for synonyms of a diagnosis."""

    term: str
    others: tuple[str, ...]

    @property
    def key(self) -> str:
        """The diagnosis."""
        return self.term


class GroupDiagnoses(AskingStep[SimilarDiagnoses], kind="build", needs="llm"):
    """Group answers that mean the same, by a table of synonyms, by spelling, and by proposals that people confirm."""

    template: ClassVar[str] = "group-diagnoses"
    answer: ClassVar[type[LLMAnswer]] = SameDiagnoses
    reads: ClassVar[tuple[Stream, ...]] = ("questions", "pages")
    optional: ClassVar[tuple[Stream, ...]] = ("pages",)
    writes: ClassVar[Stream] = "questions"

    name: str = "group-diagnoses"
    synonyms: str = Field(
        "",
        description="Table of synonyms beside the plan: a CSV file with the columns concept and term, or MeSH "
        "descriptors (d2026.bin or desc2026.xml).",
    )

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the groups depend on. Without a named LLM nothing is proposed."""
        key = super().key(streams, runtime) if self.llm else Step.key(self, streams, runtime)
        return {**key, **groups_key(streams, self.synonyms)}

    def run(self, streams: Streams, work: StepWork) -> Iterator[Item | Rejected]:
        """Yield every question with the group of its answer, the other names of its answer, and more positives."""
        groups = DiagnosisGroups.read(streams, self.synonyms)
        spellings = _spellings(streams, groups)
        known = [(*written, *groups.base_terms(base)) for base, written in spellings.items()]
        work.facts[GROUPS_FACT] = [*_grouped(spellings, groups), *self._proposals(known, streams, work)]
        named = defaultdict[str, list[str]](list)
        for terms in spellings.values():
            named[groups.group(terms[0])].extend(terms)
        positives = _positives(streams, groups)
        for question in streams.questions():
            yield _with_group(question, groups, named, positives)

    def fields(self, item: SimilarDiagnoses) -> Mapping[str, str]:
        """Return the diagnosis and the numbered list of similar ones."""
        others = "\n".join(f"{number}. {other}" for number, other in enumerate(item.others, 1))
        return {"text": item.term, "others": others}

    def read(self, item: SimilarDiagnoses, answer: SameDiagnoses) -> ProposedSynonyms:
        """Return the proposed synonyms. Raises ValueError if a number is not in the list."""
        if not set(answer.same) <= set(range(1, len(item.others) + 1)):
            raise ValueError("a number is not in the list")
        return ProposedSynonyms(term=item.term, others=tuple(item.others[n - 1] for n in sorted(set(answer.same))))

    def _proposals(self, known: Sequence[Sequence[str]], streams: Streams, work: StepWork) -> Iterator[GroupRow]:
        """Ask the LLM about groups with terms that are written similarly. Each group is named by its first term."""
        if not self.llm:
            return
        terms = [group[0] for group in known]
        similar = similar_groups(known)
        items = [SimilarDiagnoses(terms[one], tuple(terms[n] for n in others)) for one, others in similar.items()]
        work.facts["prompt"] = self.prompt(streams).text
        if not work.rehearsal:
            warn_of_identifiers(self.name, self.chat(work.runtime), terms)
        for made in self.about(iter(items), streams, work, len(items)):
            if isinstance(made, ProposedSynonyms):
                yield from (GroupRow(other, made.term, "proposal") for other in made.others)


def _spellings(streams: Streams, groups: DiagnosisGroups) -> dict[str, list[str]]:
    """Return the diagnoses of questions and pages as they are written, by table and spelling, in alphabetical order.

    The order does not depend on which cases are questions, because confirmed proposals change that.
    """
    spellings: dict[str, set[str]] = {}
    for term in (*(q.answer for q in streams.questions()), *(page.diagnosis for page in streams.pages())):
        if normal_term(term):
            spellings.setdefault(groups.base(term), set()).add(" ".join(term.split()))
    ordered = {base: sorted(terms, key=lambda term: (term.casefold(), term)) for base, terms in spellings.items()}
    return dict(sorted(ordered.items(), key=lambda item: item[1][0].casefold()))


def _grouped(spellings: Mapping[str, Sequence[str]], groups: DiagnosisGroups) -> Iterator[GroupRow]:
    """Yield the diagnoses that the table has, or that are written in several ways."""
    for base, terms in spellings.items():
        for term in terms:
            if groups.is_in_table(term):
                yield GroupRow(term, base, "table", "yes")
            elif len(terms) > 1:
                yield GroupRow(term, terms[0], "string", "yes")


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
    named: Mapping[str, Sequence[str]],
    positives: Mapping[str, Sequence[str]],
) -> SourceQuestion:
    if not normal_term(question.answer):
        return question
    group = groups.group(question.answer)
    names = {normal_term(name): name for name in (*named.get(group, ()), *groups.table_terms(group))}
    names.pop(normal_term(question.answer), None)
    update: dict[str, Any] = {"answer_group": group, "other_names": tuple(names.values())}
    cases = positives.get(group, ())
    if set(cases) & set(question.positives):  # its positives are cases with the same diagnosis, not articles or links
        update["positives"] = tuple(dict.fromkeys((*question.positives, *cases)))
    return question.model_copy(update=update)
