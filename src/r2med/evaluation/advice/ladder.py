"""Recommend a pipeline for a dataset: try systems from cheap to expensive, and compare them.

Settings are tuned by cross-validation: the questions are split into folds, and the settings of each fold are chosen on
the other folds. So every score comes from questions that were not used to choose its settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, assert_never

import numpy as np

from r2med.data import Dataset
from r2med.evaluation.advice.advice import FEWEST_TO_TRADE, Advice, Group, Rung, surely_within
from r2med.evaluation.comparison.budget_choice import BudgetChoice, CostLimit, PricedSystem, budget_choice
from r2med.evaluation.comparison.gaps import Gap, gaps_from_first, middle_pair
from r2med.evaluation.measure import HEADLINE_MEASURE, significance
from r2med.evaluation.measure.intervals import FEWEST_VALUES, difference_intervals, mean_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.batch import RunPlan
from r2med.evaluation.running.evaluation import evaluated
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.installation import install_extra, missing_part
from r2med.foundation.core.notices import Notice, Setting, joined
from r2med.foundation.core.spec import Call, parse_stage
from r2med.foundation.engine.reporting import announcing
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stage_table import Kind, stage_class
from r2med.foundation.text.terminal_text import quoted
from r2med.models.crossencoders.reranker_cards import RERANKERS
from r2med.models.encoders.model_cards import MODELS
from r2med.models.encoders.weights import is_here
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.fusion import Fusion
from r2med.systems.system import System

FOLDS = 5
FEWEST = 6
"""Fewest judged questions with which a difference can be significant: 2 of 2⁵ sign flips are more than 5 %."""
DEPTH = 100
TRIAL = 1 / 3
"""Share of the questions after which a system that asks an LLM is stopped if it cannot win."""

WORDS = (BM25(), *(BM25(scorer="lucene", k1=k1, b=b) for k1 in (0.9, 1.2, 2.0) for b in (0.4, 0.75, 0.9)))
EQUAL = (1.0, 1.0)
WEIGHTS = ((1.0, 3.0), (1.0, 2.0), EQUAL, (2.0, 1.0), (3.0, 1.0))
FUSED = 2
"""Number of the best dense models that are fused with BM25."""
EXPANSIONS = ("hyde", "query2doc", "lamer")
LLM_RERANKERS = ("groupwise", "listwise")
LLM_DEPTH = 20
MODEL_MODULES = ("torch", "transformers", "sentence_transformers")
"""What loads dense models and rerankers."""
RERANK_DEPTHS = (20, 50, 100)


@dataclass(frozen=True)
class Pipeline:
    """A system, and for each fold the system with the settings that are best on the other folds."""

    system: System
    folds: tuple[System, ...]


def advice_for(
    dataset: Dataset,
    runtime: Runtime,
    llms: Sequence[str] = (),
    models: Sequence[str] | None = None,
    rerankers: Sequence[str] | None = None,
    give_up: float | None = None,
    at: CostLimit | None = None,
) -> Advice:
    """Try pipelines from cheap to expensive, and recommend one. With `at`, the best one within this budget.

    Without `models` or `rerankers`, those are tried whose weights are on this machine. Raises UserError if too few
    questions are judged or can be answered, or if a model or a reranker has an unknown name.
    """
    if give_up is not None and at is not None:
        raise UserError(
            Setting("advise", give_up=give_up),
            " and ",
            Setting("advise", at=...),
            ": give one of the two",
        )
    dataset.require_scorable()
    if len(dataset.qrels) < FEWEST:
        raise UserError(
            f"{dataset.name} has {len(dataset.qrels)} judged questions: pipelines cannot be compared with fewer "
            f"than {FEWEST}; judge more, or look at single questions with r2med search"
        )
    _require_answers(dataset)
    _require_names("retrieve", models or ())
    _require_names("rerank", rerankers or ())
    _require_parts(runtime, llms, models or (), rerankers or ())
    chosen = _here(MODELS, runtime, models), _here(RERANKERS, runtime, rerankers)
    made = _advised(dataset, runtime, llms, *chosen, give_up, at)
    return replace(made, not_tried=tuple(_not_tried(models, rerankers, *chosen, llms)))


def _advised(
    dataset: Dataset,
    runtime: Runtime,
    llms: Sequence[str],
    models: Sequence[str],
    rerankers: Sequence[str],
    give_up: float | None,
    at: CostLimit | None,
) -> Advice:
    each_llm = len(EXPANSIONS) + len(LLM_RERANKERS)
    total = 2 + len(models) + min(FUSED, len(models)) + len(rerankers) + each_llm * len(llms)
    ladder = _Ladder(dataset, runtime, announcing(total), give_up, at)
    words = ladder.climb("words", "bm25", lambda: [System(each, runtime=runtime) for each in WORDS])
    unfound = 0 if words is None else ladder.unfound(words)
    ladder.climb("feedback", "rm3", partial(_before, Call("rm3")), words)
    dense = [ladder.climb("dense", name, partial(_alone, name, runtime)) for name in models]
    for model in sorted(filter(None, dense), key=ladder.value, reverse=True)[:FUSED]:
        ladder.climb("fusion", str(model.system), _fusions, words, model)
    base = ladder.best()
    for llm in llms:
        for method in EXPANSIONS:
            ladder.climb("expansion", f"{method}({llm})", partial(_before, Call(method, (llm,))), base)
    base = ladder.best()
    for name in rerankers:
        ladder.climb("reranking", name, partial(_after, name, RERANK_DEPTHS), base)
    for llm in llms:
        for method in LLM_RERANKERS:
            ladder.climb("reranking", f"{method}({llm})", partial(_after, Call(method, (llm,)), [LLM_DEPTH]), base)
    return replace(ladder.verdict(give_up), unfound=unfound)


def _require_answers(dataset: Dataset) -> None:
    """Raise UserError if no question of the dataset has a relevant passage in the corpus."""
    asked = [query.id for query in dataset.queries if query.id in dataset.qrels]
    relevant = {document for query in asked for document, grade in dataset.qrels[query].items() if grade > 0}
    if relevant.isdisjoint(dataset.corpus.ids(range(len(dataset.corpus)))):
        raise UserError(
            f"the judgements of {dataset.name} match nothing: no question has a relevant passage in the corpus. "
            f"Check the ids with r2med data check {quoted(dataset.word)}"
        )


def _require_names(kind: Kind, typed: Iterable[str]) -> None:
    """Raise UserError for a name that does not exist, before hours of work rather than in the verdict after them."""
    for name in typed:
        for call in parse_stage(name):
            stage_class(call.name, kind)


def _require_parts(runtime: Runtime, llms: Iterable[str], models: Iterable[str], rerankers: Iterable[str]) -> None:
    """Raise MissingExtraError if what was named needs an optional part that is not installed."""
    words = System(WORDS[0], runtime=runtime)
    named = [system for name in models for system in _alone(name, runtime)]
    named += [system for name in rerankers for system in _after(name, RERANK_DEPTHS[:1], words)]
    named += [system for name in llms for system in _before(Call(EXPANSIONS[0], (name,)), words)]
    RunPlan(tuple(named), (), runtime).check_installed()


def _here(cards: Mapping[str, Any], runtime: Runtime, chosen: Sequence[str] | None) -> Sequence[str]:
    if chosen is not None:
        return chosen
    can_load = not missing_part(MODEL_MODULES)
    return [name for name, card in cards.items() if can_load and is_here(card, runtime.setup)]


def _not_tried(
    models: Sequence[str] | None,
    rerankers: Sequence[str] | None,
    models_here: Sequence[str],
    rerankers_here: Sequence[str],
    llms: Sequence[str],
) -> Iterator[str]:
    """Yield the kinds of pipelines of which there is none, with what they need."""
    part = missing_part(MODEL_MODULES)
    install = f" (first {install_extra(part)})" if part else ""
    if models is None and not models_here:
        yield Notice(
            "dense models, because no weights are on this machine: ", Setting("advise", models=["minilm"]), install
        )
    if rerankers is None and not rerankers_here:
        yield Notice(
            "rerankers, because no weights are on this machine: ",
            Setting("advise", rerankers=["bge-reranker"]),
            install,
        )
    if not llms:
        yield Notice("LLMs, because none was named: ", Setting("advise", llms=["NAME"]))


def _alone(name: str, runtime: Runtime) -> list[System]:
    return [System.parse(name, runtime)]


def _before(expansion: Call, system: System) -> list[System]:
    return [system.expanded(expansion)]


def _after(reranker: Call | str, depths: Sequence[int], system: System) -> list[System]:
    [call] = parse_stage(reranker) if isinstance(reranker, str) else [reranker]
    return [system.reranked(replace(call, depth=depth)) for depth in depths]


def _fusions(words: System, model: System) -> list[System]:
    parts = words.retriever, model.retriever
    weighted = [
        Fusion(parts=parts, method=method, weights=weights)
        for method in ("rrf", "minmax")
        for weights in WEIGHTS
        if (method, weights) != ("rrf", EQUAL)
    ]
    return [replace(words, retriever=each) for each in (Fusion(parts=parts), *weighted)]


_Entry = tuple[Pipeline, Rung, Floats]
"""A pipeline that was tried, its score and cost, and its points on each question."""


class _Ladder:
    """The questions in folds, and the scores of every system so far."""

    def __init__(
        self,
        dataset: Dataset,
        runtime: Runtime,
        announce: Callable[[str], None],
        give_up: float | None,
        at: CostLimit | None = None,
    ) -> None:
        self._dataset = dataset
        self._runtime = runtime
        self._announce = announce
        self._ids = [query.id for query in dataset.queries if query.id in dataset.qrels]
        self._at = at
        self._give_up = (give_up or 0.0) if len(self._ids) >= FEWEST_TO_TRADE else 0.0
        order = np.random.default_rng(0).permutation(len(self._ids))
        self._folds = [sorted(order[fold::FOLDS].tolist()) for fold in range(FOLDS)]
        self._scores: dict[str, Floats] = {}
        self._records: dict[str, list[Record]] = {}
        self._rungs: dict[str, _Entry] = {}
        self._left_out: list[str] = []

    def value(self, pipeline: Pipeline) -> float:
        """Return the score of a pipeline that was tried."""
        return self._rungs[pipeline.system.name][1].value

    def best(self) -> Pipeline:
        """Return the best pipeline so far. With a budget, the best one within it, if there is any."""
        whole = [entry for entry in self._rungs.values() if entry[1].questions == len(self._ids)]
        return max(self._within(whole) or whole, key=lambda entry: entry[1].value)[0]

    def _within(self, entries: Sequence[_Entry]) -> list[_Entry]:
        """Return the pipelines within the budget; none without a budget."""
        if self._at is None:
            return []
        prices = [(entry, _spent(entry[1], self._at)) for entry in entries]
        return [entry for entry, price in prices if price is not None and price <= self._at.most]

    def unfound(self, pipeline: Pipeline) -> int:
        """Return the number of questions for which a pipeline finds no document."""
        outcome = pipeline.system.run(self._dataset.only(self._ids), self._runtime.store, DEPTH)
        return int((outcome.run.found == 0).sum())

    def climb(
        self, group: Group, title: str, settings: Callable[..., list[System]], *parts: Pipeline | None
    ) -> Pipeline | None:
        """Try a pipeline made from others with each of its settings. None if it cannot run here or cannot win."""
        if None in parts:
            return None
        pipelines = [part for part in parts if part is not None]
        self._announce(f"{group}: {title}")
        try:
            final = settings(*(part.system for part in pipelines))
            by_fold = [settings(*(part.folds[fold] for part in pipelines)) for fold in range(FOLDS)]
            return self._tried(group, by_fold, final)
        except UserError as error:
            self._left_out.append(Notice(f"{title}: ", error))
            return None

    def _tried(self, group: Group, by_fold: list[list[System]], final: list[System]) -> Pipeline | None:
        tuned = len(final)
        asks = bool(final[0].asking)
        values = np.full(len(self._ids), np.nan)
        chosen: list[System] = []
        for number, (fold, options) in enumerate(zip(self._folds, by_fold, strict=True)):
            others = [question for other in self._folds if other is not fold for question in other]
            chosen.append(self._preferred(options, others))
            values[fold] = self._score(chosen[-1], fold)
            if asks and (number + 1) / FOLDS >= TRIAL and (behind := self._cannot_win(values)) is not None:
                note = f"stopped: at best {behind:.1f} points behind {self.best().system}"
                self._add(group, Pipeline(chosen[-1], tuple(chosen)), values, tuned, note)
                return None
        pipeline = Pipeline(self._preferred(final, range(len(self._ids))), tuple(chosen))
        self._add(group, pipeline, values, tuned)
        return pipeline

    def _preferred(self, options: Sequence[System], questions: Iterable[int]) -> System:
        """Return the settings with the best score on some questions; the first of several with equal scores."""
        if len(options) == 1:
            return options[0]
        asked = list(questions)
        means = [float(self._score(option, asked).mean()) for option in options]
        return options[int(np.argmax(np.round(means, 9)))]

    def _cannot_win(self, values: Floats) -> float | None:
        """Return the smallest likely distance to the best pipeline in points; None if the pipeline may still win."""
        asked = np.flatnonzero(~np.isnan(values))
        rival = self._rungs[self.best().system.name][2]
        rows = {"": np.stack([values[asked], rival[asked]])}
        _, high = difference_intervals(rows, SystemPairs.all(2))
        # If all questions differ by the same amount, there is no interval and no doubt.
        most = float(values[asked].mean() - rival[asked].mean()) if np.isnan(high[0]) else float(high[0])
        return -most if most < -self._give_up and len(asked) >= FEWEST_VALUES else None

    def _score(self, system: System, questions: Sequence[int]) -> Floats:
        """Return the points of a system on some questions. Questions that were not asked before are evaluated."""
        scores = self._scores.setdefault(system.name, np.full(len(self._ids), np.nan))
        # A system without LLM calls is evaluated on all questions at once: its corpus is encoded only once anyway.
        wanted = questions if system.asking else range(len(self._ids))
        missing = [question for question in wanted if np.isnan(scores[question])]
        if missing:
            part = self._dataset.only([self._ids[question] for question in missing])
            record, _ = evaluated(system, part, None, DEPTH, self._runtime.store)
            scores[missing] = [100 * record.per_query[self._ids[row]][str(HEADLINE_MEASURE)] for row in missing]
            self._records.setdefault(system.name, []).append(record)
        return np.asarray(scores[np.asarray(questions)])

    def _add(self, group: Group, pipeline: Pipeline, values: Floats, tuned: int, note: str = "") -> None:
        asked = values[~np.isnan(values)]
        low, high = (None if np.isnan(each) else float(each) for each in mean_intervals({"": asked[None, :]})[:, 0])
        names = dict.fromkeys(system.name for system in pipeline.folds)
        records = [record for name in names for record in self._records[name]]
        questions = sum(record.dataset.queries for record in records)
        share = [record.dataset.queries / questions for record in records]
        dollars = sum(stage.cost.dollars for record in records for stage in record.stages)
        unpriced = any(record.cost.unpriced for record in records)
        rung = Rung(
            group,
            pipeline.system.name,
            value=float(asked.mean()),
            low=low,
            high=high,
            questions=len(asked),
            p50=_weighted([record.latency(0.5) for record in records], share),
            p95=_weighted([record.latency(0.95) for record in records], share),
            dollars=None if unpriced else 1000 * dollars / questions,
            tokens=_tokens(records, questions),
            tuned=tuned,
            note=note,
            unranked=sum(record.unranked for record in records),
        )
        self._rungs[pipeline.system.name] = (pipeline, rung, values)

    def verdict(self, give_up: float | None) -> Advice:
        """Return the advice: all pipelines compared with the best one."""
        if not self._rungs:
            raise UserError(f"no pipeline could run on {self._dataset.name}: ", joined("; ", self._left_out))
        whole = [spec for spec, (_, rung, _) in self._rungs.items() if rung.questions == len(self._ids)]
        best = max(whole, key=lambda spec: self._rungs[spec][1].value)
        table = {"": np.stack([self._rungs[spec][2] for spec in whole])}
        pairs = SystemPairs.against(whole.index(best), len(whole))
        adjusted = significance.holm(significance.sign_flips(table, pairs).p)
        p_of = {best: 1.0} | {whole[row]: float(p) for row, p in zip(pairs.first, adjusted, strict=True)}
        rungs = {spec: self._held_against(spec, best, p_of.get(spec, 0.0)) for spec in self._rungs}
        chosen = best
        if give_up is not None:
            within = surely_within(table[""], whole.index(best), give_up)
            chosen = min((rungs[whole[row]] for row in within), key=_price).system
        choice = None if self._at is None else self._choice(self._at, whole)
        if choice is not None and (within_budget := choice.best or choice.cheapest) is not None:
            chosen = within_budget.system
        gaps = significance.paired_t(table, pairs).detectable
        middle = middle_pair(gaps)
        return Advice(
            self._dataset.name,
            len(self._ids),
            tuple(rungs.values()),
            best=best,
            recommended=chosen,
            fastest=min((rungs[spec] for spec in whole), key=_seconds).system,
            detectable_gap=0.0 if middle is None else float(gaps[middle]),
            detectable_pair=None if middle is None else (whole[pairs.first[middle]], best),
            give_up=give_up,
            at="" if self._at is None else f"{self._at.cost}={self._at.most:g}",
            in_budget=choice is None or choice.best is not None,
            within=() if choice is None else tuple(choice.sentences(str(HEADLINE_MEASURE))),
            left_out=tuple(self._left_out),
            data=self._dataset.word,
        )

    def _choice(self, limit: CostLimit, whole: Sequence[str]) -> BudgetChoice:
        rungs = [self._rungs[spec][1] for spec in whole]

        def tests(leader: str, others: Sequence[str]) -> dict[str, Gap]:
            rows = {"": np.stack([self._rungs[spec][2] for spec in (leader, *others)])}
            return dict(zip(others, gaps_from_first(rows), strict=True)) if others else {}

        return budget_choice(limit, [PricedSystem(r.system, r.value, _spent(r, limit)) for r in rungs], tests)

    def _held_against(self, spec: str, best: str, p: float) -> Rung:
        _, rung, values = self._rungs[spec]
        asked = ~np.isnan(values)
        rows = np.stack([self._rungs[best][2][asked], values[asked]])
        low, high = difference_intervals({"": rows}, SystemPairs.all(2))[:, 0].tolist()
        known = spec != best and not np.isnan(low)
        behind = float((rows[0] - rows[1]).mean())
        return replace(rung, behind=behind, behind_low=low if known else None, behind_high=high if known else None, p=p)


def _weighted(seconds: Sequence[float | None], share: Sequence[float]) -> float | None:
    """Return the weighted mean of latencies; None if one is unknown."""
    known = [value for value in seconds if value is not None]
    return float(np.dot(share, known)) if len(known) == len(seconds) else None


def _tokens(records: Sequence[Record], questions: int) -> float | None:
    """Return the tokens of LLMs for a question; None if a cost is not known."""
    spent = sum(stage.cost.llm_tokens for record in records for stage in record.stages)
    return spent / questions if all(record.cost_is_known for record in records) else None


def _spent(rung: Rung, limit: CostLimit) -> float | None:
    """Return what a question costs, in the unit of a limit; None if it is not known."""
    match limit.cost:
        case "dollars":
            return None if rung.dollars is None else rung.dollars / 1000
        case "tokens":
            return rung.tokens
        case "p95":
            return rung.p95
        case other:
            assert_never(other)


def _seconds(rung: Rung) -> float:
    """Return the sort key for the fastest pipeline. Unknown latencies come last."""
    return float("inf") if rung.p50 is None else rung.p50


def _price(rung: Rung) -> tuple[float, float]:
    """Return the sort key for the cheapest pipeline: dollars, then seconds."""
    return (float("inf") if rung.dollars is None else rung.dollars, _seconds(rung))
