"""Let a committee of LLMs label the documents that systems return and that have no label.

Each judge first answers planted controls. If it fails them, the command stops before the pool is paid for. Answers come
from the journal where it has them, so a killed command asks nothing twice.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.assessment.judgements.planted import (
    Control,
    ControlAnswer,
    ControlCount,
    control_counts,
    controls,
    failed_control,
)
from r2med.assessment.rubrics.rubric import RUBRICS, Rubric, highest_grade
from r2med.data.dataset import Dataset
from r2med.data.overlays import Aspect, Overlay, OverlayLabel
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.records.collection import RecordCollection
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.tracing import Attributes, item_spans
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import about, digest
from r2med.models.ask.answers import LLMAnswer
from r2med.models.ask.ask import framed, warn_of_identifiers
from r2med.models.ask.json_answers import JsonQuestion, ask_json, json_question
from r2med.models.llm.costs import CostPreview
from r2med.models.llm.journaled import JournaledChat, open_chat
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.templates import Template

SYSTEM = "You are a careful physician who grades passages. You answer with one JSON object and nothing else."
TRIES = 3
CONTROLS = 20
DEPTH = 10


@dataclass(frozen=True)
class UnjudgedPool:
    """The documents to label in one dataset: query -> documents, in the order of the best rank."""

    dataset: Dataset
    documents: Mapping[str, tuple[str, ...]]
    systems: tuple[str, ...]
    """The systems that returned them."""

    def __len__(self) -> int:
        """Return the number of pairs of a query and a document."""
        return sum(map(len, self.documents.values()))


def pool(collection: RecordCollection, dataset: Dataset, depth: int, aspect: Aspect = "relevance") -> UnjudgedPool:
    """Return the documents of the first `depth` ranks of every system that have no label.

    Documents are pooled for judged queries only. For the aspect "mimic" only a label of this aspect counts, and a
    query needs an answer. Raises UserError if no system has a ranking of the dataset.
    """
    asked = [query for query in dataset.queries if query.id in dataset.qrels]
    if aspect == "mimic":
        asked = [query for query in asked if query.answer]
        if not asked:
            raise UserError(f"no query of {dataset.name} has an answer, so no passage can argue for another one")
    best: dict[str, dict[str, int]] = {query.id: {} for query in asked}
    systems = []
    for (system, name), kept in collection.cells.items():
        if name != dataset.name or (file := kept.run_file) is None:
            continue
        systems.append(system)
        run = WrittenRun(file, [query.id for query in dataset.queries])
        for query, ranks in best.items():
            known = dataset.qrels[query] if aspect == "relevance" else dataset.mimics.get(query, {})
            for rank, (document, _) in enumerate(run.top(query, depth), 1):
                if document not in known:
                    ranks[document] = min(rank, ranks.get(document, rank))
    if not systems:
        raise UserError(f"there is no ranking of {dataset.name}: make one with r2med run SYSTEM --data {dataset.name}")
    ordered = {query: tuple(sorted(ranks, key=lambda each: (ranks[each], each))) for query, ranks in best.items()}
    return UnjudgedPool(
        dataset, {query: documents for query, documents in ordered.items() if documents}, tuple(systems)
    )


@dataclass(frozen=True)
class JudgeReport:
    """How one judge answered on one dataset."""

    judge: str
    dataset: str
    controls: tuple[ControlCount, ...]
    labels: int
    """Number of passages that it labelled."""
    positive: int
    """Number of these to which it said yes."""
    failures: Mapping[str, int]
    """Kind of failure -> number of passages without a usable answer."""


@dataclass(frozen=True)
class JudgedPools:
    """The labels of a committee, and what is known about the judges."""

    overlay: Overlay
    pools: tuple[UnjudgedPool, ...]
    reports: tuple[JudgeReport, ...]
    controls: tuple[ControlAnswer, ...]
    """What the judges said about the planted controls."""
    rubric: Rubric
    cost: Cost = NOTHING


@dataclass
class _Judge:
    """One opened judge with its prompt."""

    card: LLMCard
    chat: JournaledChat
    template: Template
    rubric: Rubric
    cost: Cost = NOTHING

    def questions(self, items: Sequence[Mapping[str, str]]) -> dict[int, JsonQuestion]:
        fitter = Fitter(self.card, SYSTEM)
        return {
            number: json_question(fitter, self.template, values, self.rubric.answer)
            for number, values in enumerate(items)
        }

    def ask(
        self, items: Sequence[Mapping[str, str]], facts: Sequence[Attributes]
    ) -> tuple[dict[int, Any], dict[int, str]]:
        """Return the answers and the failures by the number of the item. `facts` describe the items in a trace."""
        with item_spans(f"judge {self.rubric.aspect}", "EVALUATOR", dict(enumerate(facts)), self.chat.trace) as spans:
            asked = ask_json(self.questions(items), lambda _, answer: answer, self.chat, self.card, TRIES, spans=spans)
            for number in asked.outcomes.keys() & spans.keys():
                spans[number].set({"output.value": _word(self.rubric, asked.outcomes[number])})
        self.cost += asked.cost
        return asked.outcomes, asked.failures

    def preview(self, items: Sequence[Mapping[str, str]]) -> CostPreview:
        """Return what asking would cost. Nothing is asked."""
        questions = self.questions(items).values()
        requests = [each.request(self.card) for each in questions if each.fits]
        return CostPreview.of(self.chat, self.card, requests, unfit=len(questions) - len(requests))


@dataclass(frozen=True)
class JudgePlan:
    """The work of a committee: the pools of datasets, the controls and the judges."""

    pools: tuple[UnjudgedPool, ...]
    controls: tuple[tuple[Control, ...], ...]
    """The controls of each pool."""
    rubric: Rubric
    llms: tuple[str, ...]
    prompt: Path | None
    runtime: Runtime

    def _judges(self) -> list[_Judge]:
        template = self.rubric.template(self.prompt)
        cards = [resolve_llm(name, self.runtime.setup) for name in self.llms]
        return [_Judge(card, open_chat(card, self.runtime), template, self.rubric) for card in cards]

    def preview(self) -> dict[str, CostPreview]:
        """Return judge -> what it would cost. Nothing is asked."""
        items = self._items()
        return {judge.card.spec: judge.preview(items) for judge in self._judges()}

    def _items(self) -> list[dict[str, str]]:
        """Return the fields of all prompts: those of the controls, then those of the pools."""
        return [
            *(_control_fields(control) for each in self.controls for control in each),
            *(values for each in self.pools for _, _, values in _pool_items(each)),
        ]

    def ask(self, announce: Callable[[str], None] = lambda step: None) -> JudgedPools:
        """Ask every judge: first about the controls of all datasets, then about the pools.

        Raises UserError if a judge fails the controls.
        """
        judges = self._judges()
        labels: list[OverlayLabel] = []
        reports: list[JudgeReport] = []
        answers: list[ControlAnswer] = []
        counts: dict[tuple[str, str], tuple[ControlCount, ...]] = {}
        for judge in judges:
            warn_of_identifiers("judge", judge.chat, (" ".join(values.values()) for values in self._items()))
            for each, planted in zip(self.pools, self.controls, strict=True):
                announce(f"{each.dataset.name} · controls · {judge.card.spec}")
                with about(dataset=each.dataset.label):
                    mine = self._control_answers(judge, each.dataset.name, planted)
                answers += mine
                counts[judge.card.spec, each.dataset.name] = control_counts(mine)
                if fault := failed_control(control_counts(mine)):
                    raise UserError(
                        f"{judge.card.spec} cannot judge {each.dataset.name}: {fault}; use another LLM or prompt"
                    )
        for judge in judges:
            for each in self.pools:
                announce(f"{each.dataset.name} · {judge.card.spec}")
                with about(dataset=each.dataset.label):
                    given, failures = self._labels(judge, each)
                labels += given
                yes = sum(self.rubric.by_word[label.said].yes for label in given)
                where = judge.card.spec, each.dataset.name
                reports.append(JudgeReport(*where, counts[where], len(given), yes, failures))
        if not labels:
            raise UserError("no judge gave a usable answer, so there is no overlay: try another LLM")
        cost = sum((judge.cost for judge in judges), NOTHING)
        overlay = Overlay("judged", tuple(labels))
        return JudgedPools(overlay, self.pools, tuple(reports), tuple(answers), self.rubric, cost)

    def _control_answers(self, judge: _Judge, dataset: str, planted: Sequence[Control]) -> list[ControlAnswer]:
        facts = [
            {"r2med.dataset": dataset, "r2med.query.id": each.query.id, "r2med.control": each.kind} for each in planted
        ]
        answers, _ = judge.ask([_control_fields(control) for control in planted], facts)
        return [
            ControlAnswer(
                dataset,
                judge.card.spec,
                planted[number].kind,
                planted[number].positive,
                self.rubric.says_yes(self.rubric.read(answer)),
            )
            for number, answer in sorted(answers.items())
        ]

    def _labels(self, judge: _Judge, pool_: UnjudgedPool) -> tuple[list[OverlayLabel], dict[str, int]]:
        items = list(_pool_items(pool_))
        facts = [
            {"r2med.dataset": pool_.dataset.name, "r2med.query.id": query, "r2med.document.id": document}
            for query, document, _ in items
        ]
        answers, failures = judge.ask([values for _, _, values in items], facts)
        highest = highest_grade(pool_.dataset.qrels)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        prompt = digest([judge.template.text, SYSTEM])[:12]
        labels = []
        for number, answer in sorted(answers.items()):
            query, document, _ = items[number]
            word = _word(self.rubric, answer)
            labels.append(
                OverlayLabel(
                    dataset=pool_.dataset.name,
                    query=query,
                    document=document,
                    aspect=self.rubric.aspect,
                    grade=self.rubric.grade(word, highest),
                    said=word,
                    judge=judge.card.spec,
                    prompt=prompt,
                    at=now,
                    why=answer.why,
                )
            )
        return labels, dict(Counter(failures.values()))


def plan_judging(
    collection: RecordCollection,
    datasets: Sequence[Dataset],
    llms: Sequence[str],
    runtime: Runtime,
    *,
    aspect: Aspect = "relevance",
    depth: int = DEPTH,
    each: int = CONTROLS,
    prompt: Path | None = None,
) -> JudgePlan:
    """Return the work of a committee. Raises UserError if there is nothing to label, or if an LLM is unknown.

    `depth` is the number of ranks of each system that are pooled, and `each` the number of controls of each kind.
    """
    if not llms:
        raise UserError("a judge is an LLM: name one or several, as in r2med judge --llm NAME")
    if repeated := [name for name, count in Counter(llms).items() if count > 1]:
        raise UserError(f"{repeated[0]} is named twice: a committee needs different LLMs")
    rubric = RUBRICS[aspect]
    pools = tuple(pool(collection, dataset, depth, aspect) for dataset in datasets)
    if not any(map(len, pools)):
        raise UserError(f"every document in the first {depth} ranks has a label already: nothing is left to judge")
    planted = tuple(tuple(controls(dataset, rubric, each)) for dataset in datasets)
    plan = JudgePlan(pools, planted, rubric, tuple(llms), prompt, runtime)
    plan._judges()  # an unknown LLM or a missing key is found now
    return plan


def _word(rubric: Rubric, answer: LLMAnswer) -> str:
    return " ".join(rubric.read(answer).values())


def _control_fields(control: Control) -> dict[str, str]:
    return _fields(control.query.text, control.answer, control.text)


def _pool_items(pool_: UnjudgedPool) -> list[tuple[str, str, dict[str, str]]]:
    """Return (query, document, fields of the prompt) of every pair."""
    dataset = pool_.dataset
    by_id = {query.id: query for query in dataset.queries}
    items = []
    for query, documents in pool_.documents.items():
        rows = dataset.corpus.rows(list(documents)).tolist()
        there = [(document, row) for document, row in zip(documents, rows, strict=True) if row >= 0]
        texts = dataset.corpus.texts([row for _, row in there])
        for (document, _), text in zip(there, texts, strict=True):
            items.append((query, document, _fields(by_id[query].text, by_id[query].answer, text)))
    return items


def _fields(query: str, answer: str, text: str) -> dict[str, str]:
    return {"query": query, "answer": answer or "(not known)", "text": framed(text) or "(empty)"}
