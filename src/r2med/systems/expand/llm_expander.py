"""Ask an LLM for the texts of all queries of a dataset, with samples and rounds of refinement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from r2med.data import Dataset
from r2med.foundation.core.cost import NOTHING, Cost, total
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.models.llm.chat import ChatRequest, Failure, Generation
from r2med.models.llm.costs import (
    answers_cost,
    failed_queries,
    failure_kinds,
    failure_notices,
    listed_kinds,
)
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.prompts.fitting import Fitted, Fitter, ask_fitted, first_words
from r2med.models.prompts.prompted_stage import OpenedLLM
from r2med.models.prompts.templates import kind_of
from r2med.systems.expand.expansion import (
    Expansion,
    cut_notice,
)
from r2med.systems.expand.expansion_prompts import Prepared, Prompts, open_prompts, task_of
from r2med.systems.expand.generated_settings import GeneratedSettings
from r2med.systems.expand.method_cards import MethodCard
from r2med.systems.expand.query_list import parse_queries
from r2med.systems.expand.shown_passages import ShownPassages
from r2med.systems.retrieve.retriever import SearchQuery, SearchReport


@dataclass(frozen=True)
class LLMExpander:
    """The texts of one expansion method by one LLM, in one runtime."""

    stage: GeneratedSettings
    opened: OpenedLLM
    runtime: Runtime
    by: Stage
    """The retriever that searches between rounds."""
    first: Stage
    """The retriever of the passages that a method shows before the first round."""

    @property
    def method(self) -> MethodCard:
        """The card of the method."""
        return self.stage.card

    @property
    def card(self) -> LLMCard:
        """The card of the LLM."""
        return self.opened.card

    def example(self, dataset: Dataset) -> ChatRequest | None:
        """Return the first request about the first query. Passages of the corpus stand for those that are found."""
        dataset = replace(dataset, queries=dataset.queries[:1])
        shows = self.prompts(dataset).ask.names("passages")
        prepared = self._prompted(dataset, self._sampled(dataset) if shows else [[] for _ in dataset.queries])
        return next(iter(prepared.requests), None)

    def expand(self, dataset: Dataset) -> Expansion:
        """Call the LLM for every query. A query without any text is searched unchanged."""
        if not dataset.queries:
            return Expansion.of(())
        size = len(dataset.queries)
        shown = ShownPassages(self.method, self.stage.rounds)
        prepared = [self._drafts(dataset, shown)]
        # The answers that count: all samples, each with the queries in order, and once more for each round that adds.
        asked = [query.id for query in dataset.queries] * self.stage.samples
        prepared[0], answers = self._ask(prepared[0])
        kept = [answers]
        answered = list(zip(asked, kept[0], strict=True))
        for _ in range(self.stage.rounds):
            refinement, new = self._ask(self._refinement(dataset, kept, shown))
            prepared.append(refinement)
            answered += [pair for pair in zip(asked, new, strict=True) if pair[1] is not NO_DRAFT]
            # A draft whose refinement failed is still an answer to the query.
            merged = [one if self._texts(one) else old for one, old in zip(new, kept[-1], strict=True)]
            kept = [*kept, new] if self.method.accumulate else [merged]
        queries = [
            self.stage.how_joined.join(query, self._all_texts(kept, index, size))
            for index, query in enumerate(dataset.queries)
        ]
        return self._expansion(dataset.name, queries, answered, kept, prepared, shown.report)

    def _expansion(
        self,
        dataset: str,
        queries: Sequence[SearchQuery],
        answered: Sequence[tuple[str, Generation | Failure]],
        kept: Sequence[Sequence[Generation | Failure]],
        prepared: Sequence[Prepared],
        inside: SearchReport,
    ) -> Expansion:
        """Return the queries with everything that is counted about their answers. `inside` is about the searches."""
        answers = [answer for _, answer in answered]
        cut_prompts = sum(part.cut for part in prepared)
        counted = [answer for part in kept for answer in part if isinstance(answer, Generation)]
        cut_texts = sum(answer.finish_reason == "length" for answer in counted)
        cut_notices = [cut_notice(cut_texts, sum(map(len, kept)))] if cut_texts else []
        repairs = self._repairs(counted)
        failed = SearchReport(failure_kinds=failure_kinds(answers), failed=failed_queries(answered)) + inside
        return Expansion.of(
            queries,
            cost=answers_cost(answers, self.card, cut_prompts) + total(part.cost for part in prepared),
            failure_kinds=failed.failure_kinds,
            failed=failed.failed,
            cut_texts=cut_texts,
            counts={f"lists_{kind}": count for kind, count in repairs.items()},
            notices=(*self._notices(dataset, queries, answers, cut_prompts, cut_notices, repairs), *inside.notices),
        )

    def prompts(self, dataset: Dataset) -> Prompts:
        """Return the templates for the kind of a dataset."""
        return open_prompts(self.method, kind_of(dataset), self.opened.prompts, refine=self.stage.rounds > 0)

    def _drafts(self, dataset: Dataset, shown: ShownPassages | None = None) -> Prepared:
        """Return the first prompt of every query, once per sample."""
        if not self.prompts(dataset).ask.names("passages"):
            return self._prompted(dataset, [[] for _ in dataset.queries])
        shown = shown or ShownPassages(self.method, self.stage.rounds)
        plain = [SearchQuery(query) for query in dataset.queries]
        return self._prompted(dataset, *shown.find(self.first, dataset, plain, self.runtime))

    def _prompted(self, dataset: Dataset, candidates: Sequence[Sequence[str]], cost: Cost = NOTHING) -> Prepared:
        """Return the first prompts with these passages."""
        prompts = self.prompts(dataset)
        fitter = Fitter(self.card, prompts.system)
        # From here on only the text of a query is used, so that nothing else of it can get into a prompt.
        values = {"count": str(self.stage.n), "task": task_of(dataset)}
        fitted = [
            fitter.fill(prompts.ask, query.text, prompts.examples, passages, more=values)
            for query, passages in zip(dataset.queries, candidates, strict=True)
        ]
        return self._prepared([fitted] * self.stage.samples, cost)

    def _sampled(self, dataset: Dataset) -> list[list[str]]:
        """Return passages drawn evenly from the corpus, the same for each query."""
        shown, last = self.method.passages, len(dataset.corpus) - 1
        rows = np.linspace(0, last, min(shown.depth, last + 1)).astype(np.int32)
        texts = [first_words(text, shown.words) for text in dataset.corpus.texts(rows)]
        return [texts for _ in dataset.queries]

    @property
    def _lanes(self) -> int:
        """Number of texts that are searched between rounds for each query: one per sample, unless they accumulate."""
        return 1 if self.method.accumulate else self.stage.samples

    def _refinement(
        self,
        dataset: Dataset,
        kept: Sequence[Sequence[Generation | Failure]],
        shown: ShownPassages,
    ) -> Prepared:
        """Return the prompts that show each draft with its search results. Queries without a draft are not refined."""
        prompts = self.prompts(dataset)
        assert prompts.refine is not None
        fitter = Fitter(self.card, prompts.system)
        size = len(dataset.queries)
        cost, rows = Cost(), []
        for lane in range(self._lanes):
            own = kept if self.method.accumulate else [kept[-1][lane * size : (lane + 1) * size]]
            drafts = [self._all_texts(own, index, size) for index in range(size)]
            searches = [
                self.stage.how_joined.join(query, texts) for query, texts in zip(dataset.queries, drafts, strict=True)
            ]
            passages, searched = shown.find(self.by, dataset, searches, self.runtime, lane)
            cost += searched
            rows.append(
                [
                    fitter.fill(prompts.refine, query.text, passages=found, draft=texts[-1]) if texts else NO_DRAFT
                    for query, texts, found in zip(dataset.queries, drafts, passages, strict=True)
                ]
            )
        rows = rows * self.stage.samples if self.method.accumulate else rows
        return self._prepared(rows, cost)

    def _prepared(self, rows: Sequence[Sequence[Fitted | Failure]], cost: Cost) -> Prepared:
        samples = tuple(sample for sample, prompts in enumerate(rows) for _ in prompts)
        return Prepared(tuple(prompt for prompts in rows for prompt in prompts), samples, sampling_of(self.card), cost)

    @property
    def _keeps_cut(self) -> bool:
        """True if an answer that was cut at the token limit is used. The last query of a list would not be whole."""
        return self.method.answer != "queries"

    def _ask(self, prepared: Prepared) -> tuple[Prepared, list[Generation | Failure]]:
        """Return the prompts as they were sent, and the answer to each."""

        def ask(prompts: Mapping[int, Fitted]) -> list[Generation | Failure]:
            requests = [prepared.request(number, prompt) for number, prompt in prompts.items()]
            return self.opened.chat.complete(requests, keep_cut=self._keeps_cut)

        fitting = {number: each for number, each in enumerate(prepared.prompts) if isinstance(each, Fitted)}
        answered = ask_fitted(fitting, ask)
        sent = [answered[number][0] if number in answered else each for number, each in enumerate(prepared.prompts)]
        answers = [
            each if isinstance(each, Failure) else self._checked(answered[number][1])
            for number, each in enumerate(prepared.prompts)
        ]
        return replace(prepared, prompts=tuple(sent)), answers

    def _checked(self, answer: Generation | Failure) -> Generation | Failure:
        """Return the answer. An answer without content is a failure, and so is one without a list of queries."""
        if isinstance(answer, Failure) or self._texts(answer):
            return answer
        if not answer.text.strip():
            return Failure.of(answer, "empty", "an empty answer")
        said = " ".join(answer.text.split())[:100]
        return Failure.of(answer, "invalid", f"the answer is not a list of {self.stage.n} queries: {said}")

    def _texts(self, answer: Generation | Failure) -> tuple[str, ...]:
        """Return the texts of an answer: one, or the queries of a list."""
        if isinstance(answer, Failure):
            return ()
        if self.method.answer == "queries":
            parsed = parse_queries(answer.text, self.stage.n, whole=bool(self.stage.weights))
            return parsed.value if parsed else ()
        # A server may give the reasoning in a field of its own.
        said = f"{answer.reasoning}\n{answer.text}" if self.method.whole and answer.reasoning else answer.text
        return tuple(filter(None, (said.strip(),)))

    def _all_texts(self, kept: Sequence[Sequence[Generation | Failure]], index: int, size: int) -> list[str]:
        """Return the texts of one query: round by round, sample by sample."""
        return [text for answers in kept for answer in answers[index::size] for text in self._texts(answer)]

    def _repairs(self, answers: Sequence[Generation]) -> dict[str, int]:
        """Return kind of repair -> number, over all lists of queries."""
        counts: Counter[str] = Counter()
        for answer in answers if self.method.answer == "queries" else ():
            parsed = parse_queries(answer.text, self.stage.n)
            counts.update(parsed.repairs if parsed else {})
        return dict(sorted(counts.items()))

    def _notices(
        self,
        dataset: str,
        queries: Sequence[SearchQuery],
        answers: Sequence[Generation | Failure],
        cut_prompts: int,
        cut_notices: Sequence[str],
        repairs: Mapping[str, int],
    ) -> tuple[str, ...]:
        bare = sum(not query.generated for query in queries)
        failed = sum(isinstance(answer, Failure) for answer in answers)
        what = f"{bare} of {len(queries)} queries got no text and are searched as they are"
        lines = failure_notices(what if bare else f"{failed} answers failed", answers)
        if repairs:
            lines.append(f"lists of queries were read with repairs ({listed_kinds(repairs)})")
        lines += cut_notices
        if cut_prompts:
            lines.append(f"{cut_prompts} prompts have shortened passages to fit {self.card.context_length} tokens")
        return tuple(f"{self.stage} on {dataset}: {line}" for line in lines)


NO_DRAFT = Failure("empty", "there is no draft to refine", attempts=0)
