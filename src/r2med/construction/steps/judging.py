"""LLM judges score how well a candidate answers the question and supports the reasoning towards the answer.

A judge first answers controls (`judge_controls.py`). If it fails them, the step stops before the candidates are paid
for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from r2med.assessment.panels.planted_controls import FEWEST_CONTROLS, Control, ControlTest, can_test
from r2med.assessment.panels.raters import UNUSABLE
from r2med.assessment.rubrics.rubric import WHY, Rubric, find_rubric
from r2med.construction.items import Judgement, Rejected, Stream, StreamItem
from r2med.construction.judge_tests import TEST_FACT, facts_of_test
from r2med.construction.labels import HIGHEST_SCORE, Labelling
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.asking import AskingStep
from r2med.construction.steps.full_candidates import FullCandidate, full_candidates
from r2med.construction.steps.judge_controls import build_controls
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Words
from r2med.foundation.store import digest
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.ask import Ask, AskedItem
from r2med.models.llm.costs import listed_kinds
from r2med.models.llm.llm_cards import families
from r2med.models.prompts.templates import Template

FIELDS = ("query", "answer", "reasoning", "text")
"""The texts that a rubric of judges can have."""
SCALES = ("relevance", "support")
"""The points of a rubric whose words are the scores of a judgement."""
UNSURE_SCORE = 3
"""Both scores of a candidate about which a judge cannot decide. By default such a candidate is discarded."""


@dataclass(frozen=True)
class RatedCandidate:
    """A candidate that is rated by a rubric."""

    full: FullCandidate
    rubric: Rubric
    known: StreamItem | Rejected | None = None
    """The result, if the candidate was one of the first controls."""


Outcomes = dict[str, StreamItem | Rejected]
"""Key of a candidate -> its judgement, or the candidate as rejected."""


class Judge(AskingStep[RatedCandidate], kind="build", takes="llm"):
    """Score every candidate for answer relevance and reasoning support, 0 to 5 each, by one LLM or several."""

    template: ClassVar[str] = "judge"
    reads: ClassVar[tuple[Stream, ...]] = ("questions", "chunks", "candidates")
    writes: ClassVar[Stream] = "judgements"
    adds: ClassVar[bool] = True
    version: ClassVar[int] = 2

    name: str = "judge"
    judges: Words = Field((), description="Several LLMs, joined by a colon. Each of them judges every candidate.")
    rubric: str = Field("evidence", description="The name of a rubric, or a TOML file of your own beside the plan.")
    untested: bool = Field(False, description="Go on if there are too few controls to test a judge.")

    def asked(self, streams: Streams) -> Iterator[RatedCandidate]:
        """Yield every candidate together with its question, text and rubric."""
        rubric = self.rubric_card(streams)
        return (RatedCandidate(full, rubric) for full in full_candidates(streams))

    def rubric_card(self, streams: Streams) -> Rubric:
        """Return the rubric. Raises UserError if there is none, or if it needs a text that candidates do not have."""
        own = self.rubric.endswith(".toml")
        card = find_rubric(str(streams.path(self.rubric)) if own else self.rubric)
        if wrong := [each.field for each in card.texts if each.field not in FIELDS]:
            raise UserError(f"judge: the rubric {card.name} has the text {wrong[0]!r}; a build has {', '.join(FIELDS)}")
        return card

    def prompt(self, streams: Streams) -> Template:
        """Return the prompt: judge.txt in the plan's own folder of prompts, or that of the rubric."""
        own = streams.path(self.prompts) / f"{self.template}.txt" if self.prompts else None
        return self.rubric_card(streams).template(own if own is not None and own.is_file() else None)

    def question(self, streams: Streams, runtime: Runtime) -> Ask:
        """Return the question of the rubric."""
        answer = self.rubric_card(streams).answer
        return Ask(self.chat(runtime), self.prompt(streams), answer, tries=self.tries)

    def asked_item(self, item: RatedCandidate) -> AskedItem:
        """Return a candidate as the judge is asked about it."""
        return AskedItem(self.fields(item))

    def fields(self, item: RatedCandidate) -> Mapping[str, str]:
        """Return the fields that the judge sees. They do not reveal a candidate's origin, or that it was planted."""
        texts = texts_of(item.full)
        return {each.field: texts[each.field].strip() or each.absent for each in item.rubric.texts}

    def item_id(self, item: RatedCandidate) -> str:
        """Return the ids of the question and the chunk."""
        return item.full.candidate.key

    def settled(self, item: RatedCandidate) -> StreamItem | Rejected | None:
        """Return the judgement of a control."""
        return item.known

    def read(self, item: RatedCandidate, answer: LLMAnswer) -> Judgement:
        """Return the judgement of this LLM."""
        candidate = item.full.candidate
        relevance, support = scores(item.rubric, item.rubric.read(answer))
        return Judgement(
            question=candidate.question,
            chunk=candidate.chunk,
            judge=self.llm,
            relevance=relevance,
            support=support,
            rationale=str(getattr(answer, WHY)),
            control=candidate.control,
        )

    def failed(self, item: RatedCandidate, kind: str) -> Rejected:
        """Return the candidate as rejected, because this judge gave no usable answer about it."""
        return Rejected.of(item.full.candidate, "no usable answer", f"{self.llm}: {kind}")

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the judgements and the test of each judge depend on."""
        shared = {
            "rubric": digest(self.rubric_card(streams).model_dump_json()),
            "labels": streams.labelling.model_dump(),
        }
        return {"judges": [{**super(Judge, each).key(streams, runtime), **shared} for each in self._single(runtime)]}

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Test each judge, then let it score every candidate.

        The facts record the model families of each judge, since a judge should not rate systems of its own family, and
        how it answered its controls.
        """
        judges = self._single(work.runtime)
        work.facts["judges"] = {}
        work.facts[TEST_FACT] = []
        first = {judge.llm: judge._test(streams, work) for judge in judges}
        for judge in judges:
            card = judge.card(work.runtime)
            work.facts["judges"][judge.llm] = {"model": card.model, "families": list(families(card))}
            yield from judge._judge(streams, work, first[judge.llm])

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what all judges would be asked about all candidates."""
        plans = [super(Judge, judge).calls(streams, runtime) for judge in self._single(runtime)]
        return sum(filter(None, plans), Needs()) if all(plans) else None

    def _single(self, runtime: Runtime) -> list[Judge]:
        """Return one step for each judge."""
        llms = dict.fromkeys((*([self.llm] if self.llm else []), *self.judges)) or [runtime.setup.llm]
        return [self.model_copy(update={"llm": llm, "judges": ()}) for llm in llms]

    def _controls(self, streams: Streams, work: StepWork) -> tuple[Control, ...]:
        return build_controls(list(full_candidates(streams)), self.rubric_card(streams), self.card(work.runtime))

    def _test(self, streams: Streams, work: StepWork) -> Outcomes:
        """Ask the controls, and return the outcomes.

        Raises UserError if there are too few, if the judge fails them, or if its server does.
        """
        controls = self._controls(streams, work)
        if not can_test(controls) and not self.untested and any(True for _ in self.asked(streams)):
            yes = sum(control.yes for control in controls)
            raise UserError(
                f"judge: there are {yes:,} passages that the source cites or that another LLM wrote as evidence, "
                f"and {len(controls) - yes:,} other controls; a test of {self.llm} needs {FEWEST_CONTROLS // 2} of "
                "both: write plant-controls(llm=NAME) before judge, or judge(untested=yes)"
            )
        self.announce(streams, work)
        wanted = {_key(control) for control in controls}
        items = [each for each in self.asked(streams) if self.item_id(each) in wanted]
        before = Counter(work.failures)
        outcomes = _by_key(self.about(iter(items), streams, work, len(items)))
        lost = {kind: count for kind, count in (Counter(work.failures) - before).items() if kind not in UNUSABLE}
        if "budget" in lost:
            raise work.runtime.budget.exceeded(lost["budget"])
        if lost:
            raise UserError(
                f"{self.llm} did not answer {sum(lost.values()):,} of {len(items):,} controls "
                f"({listed_kinds(Counter(lost))}): the answers so far are kept; type the same command again to go on"
            )
        test = _counted(controls, outcomes, streams.labelling)
        if test.fault:
            raise UserError(f"judge: {self.llm} cannot judge candidates: {test.fault}; use another LLM or prompt")
        work.facts[TEST_FACT].append(facts_of_test(self.llm, test))
        return outcomes

    def _judge(self, streams: Streams, work: StepWork, first: Outcomes) -> Iterator[StreamItem | Rejected]:
        """Judge all candidates. Controls have their judgements already."""
        planted = {_key(control) for control in self._controls(streams, work)}
        items = (
            RatedCandidate(each.full, each.rubric, first.get(self.item_id(each)))
            for each in self.asked(streams)
            if not each.full.candidate.control or self.item_id(each) in planted
        )
        yield from self.about(items, streams, work, sum(1 for _ in self.asked(streams)))


def texts_of(full: FullCandidate) -> dict[str, str]:
    """Return the texts of a candidate by the names that rubrics use."""
    question = full.question
    return {"query": question.text, "answer": question.answer, "reasoning": question.reasoning, "text": full.text}


def scores(rubric: Rubric, answers: Mapping[str, str]) -> tuple[int, int]:
    """Return the scores for relevance and support.

    A rubric with these two points and the words 0 to 5 gives them itself. With any other rubric, yes to every point is
    5 on both scales, no is 0, and a word that is not sure 3.
    """
    if tuple(answers) == SCALES and tuple(rubric.by_word) == tuple(map(str, range(HIGHEST_SCORE + 1))):
        return int(answers["relevance"]), int(answers["support"])
    words = [rubric.by_word[word] for word in answers.values()]
    if any(word.sure and not word.yes for word in words):
        return 0, 0
    score = HIGHEST_SCORE if all(word.sure for word in words) else UNSURE_SCORE
    return score, score


def _key(control: Control) -> str:
    return "\t".join(control.item.id)


def _candidate_key(made: StreamItem | Rejected) -> str:
    return f"{made.question}\t{made.chunk}" if isinstance(made, Judgement) else made.key


def _by_key(made: Iterator[StreamItem | Rejected]) -> Outcomes:
    return {_candidate_key(each): each for each in made}


def _counted(controls: Sequence[Control], outcomes: Outcomes, labelling: Labelling) -> ControlTest:
    """Return how controls were answered. Those that the server did not answer are left out."""

    def said(outcome: StreamItem | Rejected) -> bool | None:
        if not isinstance(outcome, Judgement):
            return None
        return labelling.name(outcome.relevance, outcome.support) == "positive"

    def is_answered(outcome: StreamItem | Rejected) -> bool:
        return not isinstance(outcome, Rejected) or outcome.note.rpartition(": ")[2] in UNUSABLE

    asked = [(each, outcomes[_key(each)]) for each in controls if _key(each) in outcomes]
    answered = [(each, outcome) for each, outcome in asked if is_answered(outcome)]
    return ControlTest.of([each for each, _ in answered], (said(outcome) for _, outcome in answered))
