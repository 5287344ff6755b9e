"""Recommend a pipeline for a dataset: try systems from cheap to expensive, and compare them.

All that is chosen is chosen by cross-validation: the questions are split into folds. For each fold, the settings, the
models to fuse, the pipeline to extend and the best pipeline are those with the highest scores on the other folds. A
question is only asked in the pipelines of its own fold, so an LLM is asked once for each pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from r2med.data import Dataset
from r2med.evaluation.advice.advice import FEWEST_TO_TRADE, Advice, Group, Rung, surely_within
from r2med.evaluation.advice.folds import FOLDS, Pipeline, folds_of, preferred
from r2med.evaluation.advice.question_times import question_seconds
from r2med.evaluation.comparison.gaps import middle_pair
from r2med.evaluation.measure import HEADLINE_MEASURE, significance
from r2med.evaluation.measure.intervals import FEWEST_VALUES, difference_intervals, mean_intervals
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.batch import RunPlan
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.installation import install_extra, missing_part
from r2med.foundation.core.names import Kind, stage_class
from r2med.foundation.core.spec import Call, parse_stage
from r2med.foundation.engine.reporting import announcing
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.text.search_languages import ENGLISH, search_languages
from r2med.foundation.text.terminal_text import quoted
from r2med.models.crossencoders.reranker_cards import RERANKERS
from r2med.models.encoders.model_cards import MODELS
from r2med.models.encoders.weights import is_here
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.fusion import Fusion
from r2med.systems.system import System

FEWEST = 6
"""Fewest judged questions with which a difference can be significant: 2 of 2⁵ sign flips are more than 5 %."""
DEPTH = 100
TRIAL = 1 / 3
"""Share of the questions after which a system that asks an LLM is stopped if it cannot win."""

SATURATIONS, LENGTHS = (0.9, 1.2, 2.0), (0.4, 0.75, 0.9)
"""Values of k1 and of b that are tried with BM25."""
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


def advice_for(
    dataset: Dataset,
    runtime: Runtime,
    llms: Sequence[str] = (),
    models: Sequence[str] | None = None,
    rerankers: Sequence[str] | None = None,
    give_up: float | None = None,
) -> Advice:
    """Try pipelines from cheap to expensive, and recommend one.

    Without `models` or `rerankers`, those are tried whose weights are on this machine. Raises UserError if too few
    questions are judged or can be answered, or if a model or a reranker has an unknown name.
    """
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
    made = _advised(dataset, runtime, llms, *chosen, give_up)
    return replace(made, not_tried=tuple(_not_tried(models, rerankers, *chosen, llms)))


def _advised(
    dataset: Dataset,
    runtime: Runtime,
    llms: Sequence[str],
    models: Sequence[str],
    rerankers: Sequence[str],
    give_up: float | None,
) -> Advice:
    languages = _languages(dataset)
    each_llm = len(EXPANSIONS) + len(LLM_RERANKERS)
    total = 2 * len(languages) + len(models) + min(FUSED, len(models)) + len(rerankers) + each_llm * len(llms)
    ladder = _Ladder(dataset, runtime, announcing(total), give_up)
    english, *others = [
        ladder.climb("words", str(BM25(language=code)), partial(_words, code, runtime)) for code in languages
    ]
    for other in others:
        ladder.climb("words", "bm25 in two languages", _fusions, english, other)
    words = ladder.preferred([each for each in (english, *others) if each is not None])
    unfound = 0 if words is None else ladder.unfound(words)
    ladder.climb("feedback", "rm3", partial(_before, Call("rm3")), words)
    tried = [ladder.climb("dense", name, partial(_alone, name, runtime)) for name in models]
    dense = [each for each in tried if each is not None]
    for place in range(min(FUSED, len(dense))):
        ladder.climb("fusion", f"dense model {place + 1}", _fusions, words, ladder.preferred(dense, place))
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
    words = System(BM25(), runtime=runtime)
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
        yield f"dense models, because no weights are on this machine: models (--model minilm){install}"
    if rerankers is None and not rerankers_here:
        yield f"rerankers, because no weights are on this machine: rerankers (--rerank bge-reranker){install}"
    if not llms:
        yield "LLMs, because none was named: llms (--llm NAME)"


def _languages(dataset: Dataset) -> list[str]:
    """Return English and the other languages of the card that BM25 can analyse."""
    named = dataset.card.languages if dataset.card else ()
    return list(dict.fromkeys([ENGLISH, *(code for code in named if code in search_languages())]))


def _words(language: str, runtime: Runtime) -> list[System]:
    tuned = [BM25(scorer="lucene", k1=k1, b=b, language=language) for k1 in SATURATIONS for b in LENGTHS]
    return [System(each, runtime=runtime) for each in (BM25(language=language), *tuned)]


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


class _Ladder:
    """The questions in folds, and the scores of every system so far."""

    def __init__(
        self,
        dataset: Dataset,
        runtime: Runtime,
        announce: Callable[[str], None],
        give_up: float | None,
    ) -> None:
        # All languages of the card are tried, so that no hint should say that one of them is not the card's.
        card = dataset.card and dataset.card.model_copy(update={"languages": ()})
        self._dataset = replace(dataset, card=card)
        self._runtime = runtime
        self._announce = announce
        self._ids = [query.id for query in dataset.queries if query.id in dataset.qrels]
        self._give_up = (give_up or 0.0) if len(self._ids) >= FEWEST_TO_TRADE else 0.0
        self._folds = folds_of(len(self._ids))
        self._scores: dict[str, Floats] = {}
        self._records: dict[str, list[Record]] = {}
        self._rungs: dict[str, tuple[Pipeline, Rung]] = {}
        self._left_out: list[str] = []

    def preferred(self, pipelines: Sequence[Pipeline], place: int = 0) -> Pipeline | None:
        """Return for each fold the pipeline that is best on the other folds. None if there is none to choose from."""
        return preferred(pipelines, self._folds, place) if pipelines else None

    def best(self) -> Pipeline | None:
        """Return the best pipeline so far."""
        return self.preferred(self._whole())

    def _whole(self) -> list[Pipeline]:
        return [pipeline for pipeline, _ in self._rungs.values() if pipeline.is_whole]

    def unfound(self, pipeline: Pipeline) -> int:
        """Return the number of questions for which a pipeline finds no document."""
        outcome = pipeline.system.run(self._dataset.only(self._ids), DEPTH)
        return int((outcome.run.found == 0).sum())

    def climb(
        self, group: Group, title: str, settings: Callable[..., list[System]], *parts: Pipeline | None
    ) -> Pipeline | None:
        """Try a pipeline made from others with each of its settings. None if it cannot run here or cannot win."""
        if None in parts:
            return None
        pipelines = [part for part in parts if part is not None]
        self._announce(f"{group}: {title}")
        rival = self.best()
        try:
            finals = settings(*(part.system for part in pipelines))
            by_fold = [settings(*(part.folds[fold] for part in pipelines)) for fold in range(FOLDS)]
            folds = zip(*by_fold, strict=True)
            tried = [self._tried(system, each, rival) for system, each in zip(finals, folds, strict=True)]
        except UserError as error:
            self._left_out.append(f"{title}: {error}")
            return None
        chosen = self.preferred([each for each in tried if each.is_whole])
        if chosen is None and rival is not None:
            note = f"stopped: at best {_behind(rival, tried[0].points):.1f} points behind {rival.system}"
            self._add(group, tried[0], tried, note)
        elif chosen is not None:
            self._add(group, chosen, tried)
        return chosen

    def _tried(self, system: System, folds: tuple[System, ...], rival: Pipeline | None) -> Pipeline:
        """Return a pipeline with its points. One that asks an LLM is stopped once it can no longer win."""
        points = np.full(len(self._ids), np.nan)
        for number, (fold, here) in enumerate(zip(self._folds, folds, strict=True)):
            points[fold] = self._score(here, fold)
            if rival is None or not here.asking or (number + 1) / FOLDS < TRIAL:
                continue
            if _behind(rival, points) > self._give_up:
                break
        return Pipeline(system, folds, points)

    def _score(self, system: System, questions: Sequence[int]) -> Floats:
        """Return the points of a system on some questions. Questions that were not asked before are evaluated."""
        scores = self._scores.setdefault(system.name, np.full(len(self._ids), np.nan))
        # A system without LLM calls is evaluated on all questions at once: its corpus is encoded only once anyway.
        wanted = questions if system.asking else range(len(self._ids))
        missing = [question for question in wanted if np.isnan(scores[question])]
        if missing:
            part = self._dataset.only([self._ids[question] for question in missing])
            record = evaluate(system, part, None, DEPTH, self._runtime.store)
            scores[missing] = [100 * record.per_query[self._ids[row]][str(HEADLINE_MEASURE)] for row in missing]
            self._records.setdefault(system.name, []).append(record)
        return np.asarray(scores[np.asarray(questions)])

    def _add(self, group: Group, pipeline: Pipeline, tried: Sequence[Pipeline], note: str = "") -> None:
        asked = pipeline.points[~np.isnan(pipeline.points)]
        low, high = _interval(asked)
        names = dict.fromkeys(system.name for system in pipeline.folds)
        records = [record for name in names for record in self._records[name]]
        questions = sum(record.dataset.queries for record in records)
        share = [record.dataset.queries / questions for record in records]
        dollars = sum(stage.cost.dollars for record in records for stage in record.stages)
        unpriced = any(record.cost.unpriced for record in records)
        if pipeline.system.asking:
            p50, p95 = _weighted([record.seconds_per_query for record in records], share), None
        else:
            judged = self._dataset.only(self._ids)
            seconds = question_seconds(pipeline.system, judged, DEPTH, self._runtime)
            p50, p95 = map(float, np.quantile(seconds, [0.5, 0.95]))
        rung = Rung(
            group,
            pipeline.system.name,
            value=float(asked.mean()),
            low=low,
            high=high,
            questions=len(asked),
            p50=p50,
            p95=p95,
            dollars=None if unpriced else 1000 * dollars / questions,
            tuned=len(tried),
            tuned_from=tried[0].system.name,
            note=note,
            unranked=sum(record.unranked for record in records),
        )
        self._rungs[pipeline.system.name] = (pipeline, rung)

    def verdict(self, give_up: float | None) -> Advice:
        """Return the advice: all pipelines compared with the best one."""
        procedure = self.best()
        if procedure is None:
            raise UserError(f"no pipeline could run on {self._dataset.name}: {'; '.join(self._left_out)}")
        best = procedure.system.name
        whole = [each.system.name for each in self._whole()]
        table = {"": np.stack([each.points for each in self._whole()])}
        # The best is known only from the scores, so that all pairs are tested and not only those with the best.
        every = SystemPairs.all(len(whole))
        [flips] = significance.sign_flips([significance.Sample.whole(table)], every)
        p_of = {best: 1.0}
        for a, b, p in zip(every.first.tolist(), every.second.tolist(), flips.p_adjusted.tolist(), strict=True):
            if best in (whole[a], whole[b]):
                p_of[whole[b] if whole[a] == best else whole[a]] = p
        rungs = {spec: self._held_against(spec, best, p_of.get(spec, 0.0)) for spec in self._rungs}
        chosen = best
        if give_up is not None:
            within = surely_within(table[""], whole.index(best), give_up)
            chosen = min((rungs[whole[row]] for row in within), key=_price).system
        pairs = SystemPairs.against(whole.index(best), len(whole))
        gaps = significance.paired_t(table, pairs).detectable
        middle = middle_pair(gaps)
        low, high = _interval(procedure.points)
        return Advice(
            self._dataset.name,
            len(self._ids),
            tuple(rungs.values()),
            best=best,
            value=float(procedure.points.mean()),
            low=low,
            high=high,
            recommended=chosen,
            fastest=min((rungs[spec] for spec in whole), key=_seconds).system,
            detectable_gap=0.0 if middle is None else float(gaps[middle]),
            detectable_pair=None if middle is None else (whole[pairs.first[middle]], best),
            give_up=give_up,
            left_out=tuple(self._left_out),
            data=self._dataset.word,
        )

    def _held_against(self, spec: str, best: str, p: float) -> Rung:
        pipeline, rung = self._rungs[spec]
        asked = ~np.isnan(pipeline.points)
        rows = np.stack([self._rungs[best][0].points[asked], pipeline.points[asked]])
        low, high = difference_intervals({"": rows}, SystemPairs.all(2))[:, 0].tolist()
        known = spec != best and not np.isnan(low)
        behind = float((rows[0] - rows[1]).mean())
        return replace(rung, behind=behind, behind_low=low if known else None, behind_high=high if known else None, p=p)


def _behind(rival: Pipeline, points: Floats) -> float:
    """Return the smallest likely distance of points to those of a rival; 0 if it is not known."""
    asked = np.flatnonzero(~np.isnan(points))
    if len(asked) < FEWEST_VALUES:
        return 0.0
    rows = np.stack([rival.points[asked], points[asked]])
    low = float(difference_intervals({"": rows}, SystemPairs.all(2))[0, 0])
    # If all questions differ by the same amount, there is no interval and no doubt.
    return float((rows[0] - rows[1]).mean()) if np.isnan(low) else low


def _interval(points: Floats) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a mean; None if there are too few questions."""
    low, high = mean_intervals({"": points[None, :]})[:, 0].tolist()
    return (None, None) if np.isnan(low) else (low, high)


def _weighted(seconds: Sequence[float | None], share: Sequence[float]) -> float | None:
    """Return the weighted mean of seconds; None if one is unknown."""
    known = [value for value in seconds if value is not None]
    return float(np.dot(share, known)) if len(known) == len(seconds) else None


def _seconds(rung: Rung) -> float:
    """Return the sort key for the fastest pipeline. Unknown times come last."""
    return float("inf") if rung.p50 is None else rung.p50


def _price(rung: Rung) -> tuple[float, float]:
    """Return the sort key for the cheapest pipeline: dollars, then seconds."""
    return (float("inf") if rung.dollars is None else rung.dollars, _seconds(rung))
