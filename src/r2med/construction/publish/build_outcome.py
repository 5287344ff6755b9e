"""The outcome of a build: questions with their labels, opinions of judges and people, and origins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from r2med.assessment.panels.planted_controls import ControlTest
from r2med.assessment.review.review_outcomes import Correction, corrections, rejection_reasons
from r2med.assessment.review.reviews import Review, by_candidate, decision, is_unsettled
from r2med.assessment.rubrics.rubric import Verdict
from r2med.construction.build_plan import PlanFile
from r2med.construction.items import Candidate, PageChunk, SourceQuestion, Stream
from r2med.construction.judge_quality import AcceptedShare, Confusion
from r2med.construction.judge_tests import judge_tests, judge_trust
from r2med.construction.labels import Label, LabelName, labels, overrating
from r2med.construction.pipeline import BuildFolder, Done
from r2med.construction.review_items import QUESTION_TEXTS, read_guideline
from r2med.construction.step import Streams
from r2med.foundation.text.language_guess import guess_language
from r2med.foundation.text.search_languages import ENGLISH, search_languages
from r2med.models.llm.llm_cards import LLMS, LLMCard, families

LANGUAGE_SAMPLE = 200
"""Number of documents that are read to guess their language."""


@dataclass(frozen=True)
class LLMUse:
    """An LLM that a step asked, and its prompt."""

    step: str
    model: str
    prompt: str
    digest: str
    scripted: bool = False
    """True if a person wrote its answers in advance."""

    @property
    def families(self) -> tuple[str, ...]:
        """Model families of the LLM."""
        known = (card for card in LLMS.values() if card.model == self.model)
        return families(next(known, LLMCard(name=self.model, model=self.model)))


@dataclass(frozen=True)
class TextCorrection:
    """A text of a query before and after people corrected it."""

    q_id: str
    kind: str
    """The kind of review: question, answer, reasoning or translation."""
    field: str
    """The column of the query that has the corrected text."""
    before: str
    after: str


@dataclass(frozen=True)
class BuildOutcome:
    """Everything that a dataset and its datasheet contain. Corpus texts and rationales are read only when written."""

    plan: PlanFile
    build: BuildFolder
    steps: Sequence[Done]
    streams: Streams
    questions: Sequence[SourceQuestion]
    """Questions with a relevant document. They become the queries."""
    left_over: Sequence[SourceQuestion]
    """Questions without a relevant document."""
    refused: Mapping[str, tuple[str, ...]]
    """Id of each question that people rejected -> their reasons. It does not become a query."""
    refused_pages: Mapping[str, tuple[str, ...]]
    """Id of each page whose translation people rejected -> their reasons. Its chunks do not become documents."""
    labels: Sequence[Label]
    reviews: Sequence[Review]
    corrections: Sequence[TextCorrection] = ()
    """Texts of queries that people corrected."""
    open_corrections: int = 0
    """Number of texts that some people corrected and about which there is no decision. They stay as they are."""
    guideline: str = ""
    """The text that reviewers were given."""
    sources: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(queries or documents, source, licence) -> number. Documents are counted while they are written."""

    @classmethod
    def read(cls, build: BuildFolder, reviews: Sequence[Review] = ()) -> BuildOutcome:
        """Read the outcome from the output of a build's steps."""
        streams = build.streams()
        planned = build.plan.facts.reviews_per_item
        pages = rejection_reasons(reviews, "pages", planned)
        gone = {chunk.id for chunk in streams.chunks() if chunk.page in pages} if pages else set()
        judged = labels(streams.judgements(), reviews, build.plan.facts.labels)
        labelled = [label for label in judged if label.chunk not in gone]
        evident = {label.question for label in labelled if label.label == "positive"}
        questions = list(streams.questions())
        refused = rejection_reasons(reviews, planned=planned)
        accepted = [question for question in questions if question.id not in refused]
        found, undecided = corrections(reviews, planned)
        kept, corrected = _corrected([question for question in accepted if question.id in evident], found)
        made = cls(
            build.plan.facts,
            build,
            [done for done in build.status() if done is not None],
            streams,
            kept,
            [question for question in accepted if question.id not in evident],
            {question.id: refused[question.id] for question in questions if question.id in refused},
            pages,
            labelled,
            reviews,
            corrected,
            undecided,
            read_guideline(build.out),
        )
        for question in kept:
            made.sources["queries", origin(question.source), question.licence] += 1
        return made

    @cached_property
    def positives(self) -> Mapping[str, Sequence[str]]:
        """Query -> its relevant documents."""
        chunks: dict[str, list[str]] = {question.id: [] for question in self.questions}
        for label in self.labels:
            if label.label == "positive" and label.question in chunks:
                chunks[label.question].append(label.chunk)
        return chunks

    @cached_property
    def translations(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Steps that translated something, each with its numbers of items, sentences and marks."""
        found = ((done.step, done.facts.get("translation")) for done in self.steps)
        return [(step, facts) for step, facts in found if isinstance(facts, Mapping) and facts["items"]]

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages of queries and documents, that of the documents last.

        Texts are in the language that they were translated into. The language of other texts is guessed.
        """
        queries = self._translated_into("questions") or _guessed(question.text for question in self.questions)
        chunks = islice(self.chunks(), LANGUAGE_SAMPLE)
        documents = self._translated_into("pages") or _guessed(chunk.text for chunk in chunks)
        return (documents,) if queries == documents else (queries, documents)

    def _translated_into(self, stream: Stream) -> str:
        """Return the code of the language that a stream was translated into; empty if it was not translated."""
        steps = {done.step: done.stream for done in self.steps}
        names = [facts["to"] for step, facts in self.translations if steps[step] == stream]
        codes = {each.name: each.code for each in search_languages().values()}
        return codes[names[-1]] if names else ""

    @property
    def documents(self) -> int:
        """Number of documents that were written."""
        return sum(count for (kind, *_), count in self.sources.items() if kind == "documents")

    def chunks(self) -> Iterator[PageChunk]:
        """Yield the chunks that become documents."""
        return (chunk for chunk in self.streams.chunks() if chunk.page not in self.refused_pages)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the candidates, without planted controls."""
        return (candidate for candidate in self.streams.candidates() if not candidate.control)

    def holds_personal_data(self, done: Done) -> bool:
        """Return True if a later step replaces personal data in the stream of this step."""
        later = self.build.plan.steps[done.number :]
        return any(step.deidentifies and step.writes == done.stream for step in later)

    @cached_property
    def asked(self) -> Sequence[LLMUse]:
        """LLMs that the steps asked."""
        return [asked for done in self.steps for asked in _asked(done)]

    @property
    def judges(self) -> Sequence[LLMUse]:
        """LLMs that judged candidates."""
        judging = {done.step for done in self.steps if done.stream == "judgements"}
        return [asked for asked in self.asked if asked.step in judging]

    @cached_property
    def judge_tests(self) -> Mapping[str, ControlTest]:
        """How each judge answered its controls. A step that did not test its judges has planted controls only."""
        return {**overrating(self.streams.judgements(), self.plan.labels), **self._tested}

    @cached_property
    def _tested(self) -> Mapping[str, ControlTest]:
        return judge_tests(done.facts for done in self.steps)

    @property
    def judge_trust(self) -> str:
        """What readers of the labels must know about the judges. Empty if only people judged."""
        return judge_trust(self._tested.get(judge, ControlTest()) for judge in self.judge_tests) if self.judges else ""

    @cached_property
    def decisions(self) -> Mapping[tuple[str, str], Verdict]:
        """Decisions of people, by candidate."""
        # A candidate of which nobody is sure is undecided like a tie.
        return {pair: decision(reviews)[0] or "unsure" for pair, reviews in self._reviewed.items()}

    @cached_property
    def _reviewed(self) -> Mapping[tuple[str, str], list[Review]]:
        return by_candidate(self.reviews)

    @cached_property
    def unsettled(self) -> int:
        """Number of reviewed candidates on which people did not come to a decision."""
        return sum(map(is_unsettled, self._reviewed.values()))

    def confusion(self) -> Confusion:
        """Count candidates by the label of the judges and the decision of people."""
        return Counter(
            (label.judged, self.decisions[label.question, label.chunk])
            for label in self.labels
            if label.judged and (label.question, label.chunk) in self.decisions
        )

    def accepted(self, judged: LabelName) -> AcceptedShare:
        """Return what people decided about candidates with this label by the judges."""
        counts = self.confusion()
        items = sum(label.judged == judged for label in self.labels)
        return AcceptedShare(items, *(counts[judged, verdict] for verdict in ("accept", "reject", "unsure")))


def _corrected(
    questions: Sequence[SourceQuestion], found: Iterable[Correction]
) -> tuple[list[SourceQuestion], list[TextCorrection]]:
    """Return questions with the texts that people corrected, and each corrected text."""
    changed = {question.id: question for question in questions}
    made = []
    for each in found:
        if question := changed.get(each.question):
            field = QUESTION_TEXTS[each.field]
            made.append(TextCorrection(each.question, each.kind, field, getattr(question, field), each.text))
            changed[each.question] = question.model_copy(update={field: each.text})
    return list(changed.values()), made


def _asked(done: Done) -> Iterator[LLMUse]:
    """Yield the LLMs of a step: its own, or those of its judges or attempts."""
    described: Mapping[str, Any] = done.described
    for each in described.get("judges") or described.get("attempts") or [described]:
        if isinstance(each, Mapping) and isinstance(each.get("llm"), Mapping):
            llm, prompt = each["llm"], str(done.facts.get("prompt", ""))
            scripted = llm.get("backend") == "scripted"
            yield LLMUse(done.step, str(llm["model"]), prompt, str(each["prompt"]), scripted)


def _guessed(texts: Iterable[str]) -> str:
    guess = guess_language(texts)
    return guess.code if guess else ENGLISH


def origin(source: str) -> str:
    """Return the origin of an item without page or line: the site of an address, or a file, folder or archive."""
    if "://" in source:
        return urlsplit(source).netloc
    name, _, line = source.rpartition(":")
    return (name if name and line.isdigit() else source).partition("/")[0]
