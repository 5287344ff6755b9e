"""Let a committee of LLMs label the documents that systems return and that have no label.

Each judge first answers planted controls. If it fails them, the command stops before the pool is paid for. Answers come
from the journal where it has them, so a killed command asks nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from r2med.assessment.judgements.passage_controls import LabelledDataset, passage_controls
from r2med.assessment.panels.panel import Panel, Rated
from r2med.assessment.panels.planted_controls import ControlTest, in_turn, plant
from r2med.assessment.panels.raters import LLMRater
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import Rubric, find_rubric, highest_grade
from r2med.data.dataset import Dataset
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.records.rankings import ranked_lists
from r2med.evaluation.records.record import llms_of
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.running.plan_page import Plan, PlanRow
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.text.terminal_text import quoted
from r2med.models.llm.llm_cards import LLMS, LLMCard

DEPTH = 10
FIELDS = ("query", "answer", "text")
"""The texts that a rubric of labels can have."""
FAR_ABOVE = 2.0
"""A notice names a judge that says yes more than this many times as often as the labels of the dataset in the same
ranks, and 10 points more."""


@dataclass(frozen=True)
class UnjudgedPool:
    """The documents to label in one dataset: query -> documents, in the order of the best rank."""

    dataset: Dataset
    documents: Mapping[str, tuple[str, ...]]
    systems: tuple[str, ...]
    """The systems that returned them."""
    labelled: int = 0
    """Number of passages in the same ranks that the dataset labels relevant."""

    def __len__(self) -> int:
        """Return the number of pairs of a query and a document."""
        return sum(map(len, self.documents.values()))


def pool(collection: RecordCollection, dataset: Dataset, depth: int) -> UnjudgedPool:
    """Return the documents of the first `depth` ranks of every system that have no label.

    Documents are pooled for judged queries only. Raises UserError if no system has a ranking of the dataset.
    """
    best: dict[str, dict[str, int]] = {query.id: {} for query in dataset.queries if query.id in dataset.qrels}
    systems = []
    positives: set[tuple[str, str]] = set()
    for kept in collection.runs_of_all:
        if kept.record.dataset.name != dataset.name or (file := kept.run_file) is None:
            continue
        systems.append(kept.record.display_name)
        run = WrittenRun(file, [query.id for query in dataset.queries])
        for query, ranks in best.items():
            known = dataset.qrels[query]
            for rank, (document, _) in enumerate(run.top(query, depth), 1):
                if document in known:
                    positives |= {(query, document)} if known[document] > 0 else set()
                else:
                    ranks[document] = min(rank, ranks.get(document, rank))
    if not systems:
        raise UserError(
            f"there is no ranking of {dataset.name}: make one with r2med run SYSTEM --data {quoted(dataset.word)}"
        )
    ordered = {query: tuple(sorted(ranks, key=lambda each: (ranks[each], each))) for query, ranks in best.items()}
    return UnjudgedPool(
        dataset, {query: each for query, each in ordered.items() if each}, tuple(dict.fromkeys(systems)), len(positives)
    )


@dataclass(frozen=True)
class JudgeReport:
    """How one judge labelled one dataset."""

    judge: str
    dataset: str
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
    tests: Mapping[str, ControlTest]
    """Judge -> how it answered the planted controls."""
    rubric: Rubric
    cost: Cost = NOTHING
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgePlan:
    """The work of a committee: the pools of datasets, the judges and their controls."""

    pools: tuple[UnjudgedPool, ...]
    panel: Panel
    rubric: Rubric
    systems_llms: Mapping[str, str] = field(default_factory=dict)
    """LLM of a system -> the system."""
    repeat: int = 0
    """The number of the repeat, from 0."""

    @property
    def llms(self) -> tuple[str, ...]:
        """The judges."""
        return tuple(judge.name for judge in self.panel.judges)

    @cached_property
    def _pool(self) -> list[Item]:
        return [item for each in self.pools for item in pool_items(each, self.rubric)]

    def plan(self, setup: Setup, repeats: int = 1) -> Plan:
        """Return what each judge would be asked in all repeats, controls included. Nothing is asked."""
        items = self.panel.items(self._pool)
        rows = [PlanRow(judge.name, (judge.needs(items, setup).times(repeats),)) for judge in self.panel.judges]
        examples = {judge.name: judge.example(items) for judge in self.panel.judges}
        return Plan(tuple(rows), {name: request for name, request in examples.items() if request})

    def ask(self, announce: Callable[[str], None] = lambda step: None) -> JudgedPools:
        """Ask every judge: first the controls, then the pools of all datasets.

        Raises UserError if there are too few controls, or if a judge fails them.
        """
        self.panel.check("label more passages, or use a judge that is not tested (r2med judge --untested)")
        names = ", ".join(each.dataset.name for each in self.pools)
        tested: dict[str, ControlTest] = {}
        for judge in self.panel.judges:
            announce(f"controls · {judge.name}")
            tested[judge.name] = self.panel.test(judge, names)
        rated: dict[str, Rated] = {}
        for judge in self.panel.judges:
            announce(f"{names} · {judge.name}")
            rated[judge.name] = self.panel.rate(judge, self._pool)
        said = [(judge, tested[judge.name], rated[judge.name]) for judge in self.panel.judges]
        labels = [label for each in said for label in self._labels(*each)]
        if not labels:
            raise UserError("no judge gave a usable answer, so there is no overlay: try another LLM")
        return JudgedPools(
            Overlay("judged", tuple(labels)),
            self.pools,
            tuple(report for judge, _, answers in said for report in self._reports(judge, answers)),
            tested,
            self.rubric,
            sum((judge.cost for judge in self.panel.judges), NOTHING),
            tuple(notice for each in said for notice in self._notices(*each)),
        )

    def _labels(self, judge: LLMRater, test: ControlTest, said: Rated) -> list[OverlayLabel]:
        highest = {each.dataset.name: highest_grade(each.dataset.qrels) for each in self.pools}
        labels = []
        for number, rating in sorted(said.ratings.items()):
            item = self._pool[number]
            query, document = item.id
            labels.append(
                OverlayLabel(
                    dataset=item.source,
                    query=query,
                    document=document,
                    grade=self.rubric.grade(rating.word, highest[item.source]),
                    said=rating.word,
                    judge=judge.name,
                    prompt=judge.prompt,
                    trust=test.trust,
                    at=rating.at,
                    why=rating.why,
                    repeat=self.repeat,
                )
            )
        return labels

    def _reports(self, judge: LLMRater, said: Rated) -> list[JudgeReport]:
        reports = []
        for each in self.pools:
            here = {number for number, item in enumerate(self._pool) if item.source == each.dataset.name}
            given = [rating for number, rating in said.ratings.items() if number in here]
            yes = sum(self.rubric.says_yes(rating.answers) for rating in given)
            failures = Counter(kind for number, kind in said.failures.items() if number in here)
            reports.append(JudgeReport(judge.name, each.dataset.name, len(given), yes, dict(failures)))
        return reports

    def _notices(self, judge: LLMRater, test: ControlTest, said: Rated) -> list[str]:
        """Return what a reader of the labels should know about a judge, one sentence each."""
        notices = list(judge.ask.tally.notices(judge.name))
        cards = {llm: LLMS.get(llm) or LLMCard(name=llm, model=llm) for llm in self.systems_llms}
        kin = [self.systems_llms[llm] for llm, card in cards.items() if judge.shared_families(card)]
        if kin:
            notices.append(
                f"{judge.name} is of the same family of LLMs as a part of {', '.join(dict.fromkeys(kin))}. Judges tend "
                "to favour the texts of their own family."
            )
        notices += [f"{judge.name}: {warning}." for warning in test.warnings]
        if not test.is_enough:
            notices.append(f"{judge.name} was not tested, because the labels give too few controls.")
        if (share := _labelled_share(self.pools)) is not None:
            yes = sum(self.rubric.says_yes(rating.answers) for rating in said.ratings.values())
            mine = yes / max(1, len(said.ratings))
            if mine > FAR_ABOVE * share + 0.1:
                notices.append(
                    f"{judge.name} says yes to {mine:.0%} of the pool. In the same ranks, {share:.0%} of all passages "
                    "are labelled relevant by the dataset: look at some of its labels (r2med review serve OVERLAY)."
                )
        return notices


def _labelled_share(pools: Sequence[UnjudgedPool]) -> float | None:
    """Return the share of passages in the pooled ranks that the datasets label relevant."""
    known = sum(each.labelled for each in pools)
    everything = known + sum(map(len, pools))
    return known / everything if everything else None


def plan_judging(
    collection: RecordCollection,
    datasets: Sequence[Dataset],
    llms: Sequence[str],
    runtime: Runtime,
    *,
    rubric: str = "relevance",
    depth: int = DEPTH,
    prompt: Path | None = None,
    untested: bool = False,
) -> JudgePlan:
    """Return the work of a committee. Raises UserError if there is nothing to label, or if an LLM is unknown.

    `rubric` is the name of a rubric or the file of one's own, and `depth` the number of ranks of each system that are
    pooled. With `untested`, judges are used although the labels give too few controls to test them.
    """
    if not llms:
        raise UserError("a judge is an LLM: name one or several, as in r2med judge --llm NAME")
    if repeated := [name for name, count in Counter(llms).items() if count > 1]:
        raise UserError(f"{repeated[0]} is named twice: a committee needs different LLMs")
    card = find_rubric(rubric)
    if wrong := [each.field for each in card.texts if each.field not in FIELDS]:
        raise UserError(f"the rubric {card.name} needs the text {wrong[0]!r}; a pool has {', '.join(FIELDS)}")
    pools = tuple(pool(collection, dataset, depth) for dataset in datasets)
    if not any(map(len, pools)):
        raise UserError(f"every document in the first {depth} ranks has a label already: nothing is left to judge")
    judges = [LLMRater.open(name, card, runtime, prompt) for name in llms]
    kinds = [passage_controls(LabelledDataset(each, _ranked(collection, each)), card) for each in datasets]
    found = {kind: in_turn([each[kind] for each in kinds]) for kind in card.controls}
    planted = plant(found, " ".join(each.name for each in datasets))
    panel = Panel(judges, planted, untested, {each.name: each.label for each in datasets})
    return JudgePlan(pools, panel, card, _llms_of_systems(collection), runtime.setup.repeat)


def all_repeats(judged: Sequence[JudgedPools]) -> JudgedPools:
    """Return the labels of several repeats together. Each repeat was tested with the same controls."""
    first, *others = judged
    if not others:
        return first
    reports: dict[tuple[str, str], list[JudgeReport]] = {}
    for each in (report for part in judged for report in part.reports):
        reports.setdefault((each.judge, each.dataset), []).append(each)
    tests = {
        f"{judge}, repeat {number}": test for number, part in enumerate(judged) for judge, test in part.tests.items()
    }
    return replace(
        first,
        overlay=Overlay(first.overlay.name, tuple(label for part in judged for label in part.overlay.labels)),
        reports=tuple(map(_summed, reports.values())),
        tests=tests,
        cost=sum((part.cost for part in judged), NOTHING),
        notices=tuple(dict.fromkeys(notice for part in judged for notice in part.notices)),
    )


def _summed(reports: Sequence[JudgeReport]) -> JudgeReport:
    failures = sum((Counter(each.failures) for each in reports), Counter[str]())
    labels, positive = sum(each.labels for each in reports), sum(each.positive for each in reports)
    return replace(reports[0], labels=labels, positive=positive, failures=dict(failures))


def _ranked(collection: RecordCollection, dataset: Dataset) -> dict[str, list[str]]:
    """Return the documents that systems return for each query, by their best rank."""
    best: dict[str, dict[str, int]] = {query: {} for query in dataset.qrels}
    for kept in collection.runs_of_all:
        lists = ranked_lists(kept, dataset) if kept.record.dataset.name == dataset.name else None
        for query, documents in (lists or {}).items():
            for rank, document in enumerate(documents):
                best[query][document] = min(rank, best[query].get(document, rank))
    return {query: sorted(ranks, key=lambda each: (ranks[each], each)) for query, ranks in best.items()}


def _llms_of_systems(collection: RecordCollection) -> dict[str, str]:
    """Return LLM -> a system that asks it."""
    found: dict[str, str] = {}
    for (system, _), kept in collection.cells.items():
        for llm in llms_of(kept.record):
            found.setdefault(llm, system)
    return found


def pool_items(pool_: UnjudgedPool, rubric: Rubric) -> list[Item]:
    """Return the items of a pool. Documents that the dataset does not have are left out."""
    dataset = pool_.dataset
    by_id = {query.id: query for query in dataset.queries}
    items = []
    for query, documents in pool_.documents.items():
        rows = dataset.corpus.rows(list(documents)).tolist()
        there = [(document, row) for document, row in zip(documents, rows, strict=True) if row >= 0]
        for (document, _), text in zip(there, dataset.corpus.texts([row for _, row in there]), strict=True):
            texts = {"query": by_id[query].text, "answer": by_id[query].answer, "text": text}
            items.append(Item((query, document), texts, rubric.name, source=dataset.name))
    return items
