"""Let an LLM write texts for all queries of a dataset: drafts, then rounds that see the search results of a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

import numpy as np

from r2med.data import Dataset, Query
from r2med.data.dataset_cards import ANY_DATASET
from r2med.data.runs.run import NO_DOCUMENT
from r2med.foundation.core.cost import NOTHING
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.models.llm.chat import ChatRequest, Failure, Generation
from r2med.models.llm.costs import answers_cost, failed_queries, failure_kinds, failure_notices, listed_kinds
from r2med.models.llm.llm_cards import sampling_of
from r2med.models.prompts.fitting import Fitted, Fitter, ask_fitted, first_words
from r2med.models.prompts.prompted_stage import OpenedLLM
from r2med.models.prompts.templates import Template, kind_of, open_templates
from r2med.systems.expand.expansion import Expansion, cut_notice
from r2med.systems.expand.generated_settings import GeneratedSettings
from r2med.systems.expand.method_cards import REFINE_FIELDS, MethodCard
from r2med.systems.expand.query_list import parse_queries
from r2med.systems.retrieve.retriever import NO_REPORT, SearchQuery, SearchReport
from r2med.systems.retrieve.stored_search import stored_search

Answer = Generation | Failure

NO_DRAFT = Failure("empty", "there is no draft to refine", attempts=0)


@dataclass(frozen=True)
class Prompts:
    """The templates of one method for one kind of task."""

    system: str
    ask: Template
    examples: str
    refine: Template | None
    digest: str


def open_prompts(method: MethodCard, kind: str, folder: Traversable | None = None, *, refine: bool = False) -> Prompts:
    """Return the templates of a method. Files of a set have priority over built-in ones."""
    templates = open_templates(folder, [kind])
    system = templates.template("system").text if method.system else ""
    ask = templates.template(method.prompt, kind, method.fields)
    examples = templates.read(templates.name_of("examples", kind))[1] if ask.names("examples") else ""
    refining = templates.template(method.refine, kind, REFINE_FIELDS) if refine else None
    return Prompts(system, ask, examples, refining, templates.digest)


class TextWriter:
    """Asks one LLM for the texts of one dataset, and counts what happened.

    Every list of prompts and of answers has the queries in order, once for each sample.
    """

    def __init__(self, stage: GeneratedSettings, llm: OpenedLLM, dataset: Dataset, runtime: Runtime) -> None:
        self._stage = stage
        self._method = stage.card
        self._llm = llm
        self._dataset = dataset
        self.prompts = open_prompts(self._method, kind_of(dataset), llm.prompts, refine=stage.rounds > 0)
        """The templates for the kind of the dataset."""
        self._fitter = Fitter(llm.card, self.prompts.system)
        self._passages = ShownPassages(self._method, stage.rounds, dataset, runtime)
        self._answers: list[tuple[str, Answer]] = []  # each with the id of its query
        self._cut_prompts = 0

    def example(self) -> ChatRequest | None:
        """Return the first request about the first query. Passages of the corpus stand for those that are found."""
        queries, shown, corpus = self._dataset.queries[:1], self._method.passages, self._dataset.corpus
        rows = np.linspace(0, len(corpus) - 1, min(shown.depth, len(corpus))).astype(np.int32)
        texts = [first_words(text, shown.words) for text in corpus.texts(rows)]
        prompts = self._first_prompts(queries, [texts for _ in queries])
        return next((self._request(0, prompt) for prompt in prompts if isinstance(prompt, Fitted)), None)

    def expansion(self) -> Expansion:
        """Return the queries with their texts. A query without any text is searched unchanged."""
        queries = self._dataset.queries
        if not queries:
            return Expansion.of(())
        passages: Sequence[Sequence[str]] = [() for _ in queries]
        if self.prompts.ask.names("passages"):
            passages = self._passages.find(self._stage.first, [SearchQuery(query) for query in queries], FIRST)
        # The answers that count, round by round.
        rounds = [self._ask(self._first_prompts(queries, passages) * self._stage.samples)]
        for _ in range(self._stage.rounds):
            answers = self._ask(self._refinements(rounds))
            if not self._method.accumulate:
                drafts = rounds.pop()  # a draft whose refinement failed is still an answer to the query
                answers = [new if self._texts(new) else old for new, old in zip(answers, drafts, strict=True)]
            rounds.append(answers)
        joining = self._stage.how_joined
        joined = [joining.join(query, self._texts_of(index, rounds)) for index, query in enumerate(queries)]
        return self._counted(joined, [answer for answers in rounds for answer in answers])

    def _first_prompts(self, queries: Sequence[Query], passages: Sequence[Sequence[str]]) -> list[Fitted | Failure]:
        """Return the first prompt of each query. Nothing of a query except its text can get into a prompt."""
        instruction = self._dataset.card.instruction if self._dataset.card else None
        task = (instruction or ANY_DATASET).fill("Given a {kind}, retrieve {what}.")
        values = {"count": str(self._stage.n), "task": task}
        return [
            self._fitter.fill(self.prompts.ask, query.text, self.prompts.examples, texts, more=values)
            for query, texts in zip(queries, passages, strict=True)
        ]

    def _refinements(self, rounds: Sequence[Sequence[Answer]]) -> list[Fitted | Failure]:
        """Return the prompts of the next round."""
        if self._method.accumulate:  # all samples see the texts of all samples and rounds
            return self._refined(rounds, 0) * self._stage.samples
        size, drafts = len(self._dataset.queries), rounds[-1]
        samples = [drafts[start : start + size] for start in range(0, len(drafts), size)]
        return [prompt for chain, sample in enumerate(samples) for prompt in self._refined([sample], chain)]

    def _refined(self, rounds: Sequence[Sequence[Answer]], chain: int) -> list[Fitted | Failure]:
        """Return a prompt for each query that shows its last text, and what a search with all its texts found."""
        queries, joining, template = self._dataset.queries, self._stage.how_joined, self.prompts.refine
        assert template is not None
        drafts = [self._texts_of(index, rounds) for index in range(len(queries))]
        searches = [joining.join(query, texts) for query, texts in zip(queries, drafts, strict=True)]
        passages = self._passages.find(self._stage.by, searches, chain)
        return [
            self._fitter.fill(template, query.text, passages=shown, draft=texts[-1]) if texts else NO_DRAFT
            for query, texts, shown in zip(queries, drafts, passages, strict=True)
        ]

    def _ask(self, prompts: Sequence[Fitted | Failure]) -> list[Answer]:
        """Return the answer to each prompt. A prompt that did not fit, and an answer without content, is a failure."""
        fitting = {number: prompt for number, prompt in enumerate(prompts) if isinstance(prompt, Fitted)}
        sent = ask_fitted(fitting, self._send)
        self._cut_prompts += sum(prompt.cut for prompt, _ in sent.values())
        answers = [
            prompt if isinstance(prompt, Failure) else self._checked(sent[number][1])
            for number, prompt in enumerate(prompts)
        ]
        ids = [query.id for query in self._dataset.queries] * self._stage.samples
        pairs = zip(ids, answers, strict=True)
        self._answers += [(query, answer) for query, answer in pairs if answer is not NO_DRAFT]
        return answers

    def _send(self, prompts: Mapping[int, Fitted]) -> list[Answer]:
        requests = [self._request(number, prompt) for number, prompt in prompts.items()]
        # The last query of a list that was cut at the token limit would not be whole.
        return self._llm.chat.complete(requests, keep_cut=self._method.answer != "queries")

    def _request(self, number: int, prompt: Fitted) -> ChatRequest:
        return ChatRequest(prompt.messages, sampling_of(self._llm.card), number // len(self._dataset.queries))

    def _checked(self, answer: Answer) -> Answer:
        """Return the answer. An answer without content is a failure, and so is one without a list of queries."""
        if isinstance(answer, Failure) or self._texts(answer):
            return answer
        if not answer.text.strip():
            return Failure.of(answer, "empty", "an empty answer")
        start = " ".join(answer.text.split())[:100]
        return Failure.of(answer, "invalid", f"the answer is not a list of {self._stage.n} queries: {start}")

    def _texts(self, answer: Answer) -> tuple[str, ...]:
        """Return the texts of an answer: one, or the queries of a list."""
        if isinstance(answer, Failure):
            return ()
        if self._method.answer == "queries":
            parsed = parse_queries(answer.text, self._stage.n, whole=bool(self._stage.weights))
            return parsed.value if parsed else ()
        # A server may give the reasoning in a field of its own.
        with_reasoning = self._method.whole and answer.reasoning
        text = f"{answer.reasoning}\n{answer.text}" if with_reasoning else answer.text
        return tuple(filter(None, (text.strip(),)))

    def _texts_of(self, index: int, rounds: Sequence[Sequence[Answer]]) -> list[str]:
        """Return the texts of one query: round by round, sample by sample."""
        size = len(self._dataset.queries)
        return [text for answers in rounds for answer in answers[index::size] for text in self._texts(answer)]

    def _counted(self, queries: Sequence[SearchQuery], used: Sequence[Answer]) -> Expansion:
        """Return the queries with everything that is counted about all answers and about those that are used."""
        answers = [answer for _, answer in self._answers]
        texts = [answer for answer in used if isinstance(answer, Generation)]
        cut_texts = sum(answer.finish_reason == "length" for answer in texts)
        repairs = self._repairs(texts)
        inside = self._passages.report
        report = SearchReport(failure_kinds=failure_kinds(answers), failed=failed_queries(self._answers)) + inside
        bare = sum(not query.generated for query in queries)
        without_text = f"{bare} of {len(queries)} queries got no text and are searched as they are"
        failed = f"{sum(isinstance(answer, Failure) for answer in answers)} answers failed"
        lines = failure_notices(without_text if bare else failed, answers)
        if repairs:
            lines.append(f"lists of queries were read with repairs ({listed_kinds(repairs)})")
        if cut_texts:
            lines.append(cut_notice(cut_texts, len(used)))
        if self._cut_prompts:
            context = self._llm.card.context_length
            lines.append(f"{self._cut_prompts} prompts have shortened passages to fit {context} tokens")
        return Expansion.of(
            queries,
            cost=answers_cost(answers, self._llm.card, self._cut_prompts) + self._passages.cost,
            failure_kinds=report.failure_kinds,
            failed=report.failed,
            cut_texts=cut_texts,
            counts={f"lists_{kind}": count for kind, count in repairs.items()},
            notices=(*(f"{self._stage} on {self._dataset.name}: {line}" for line in lines), *inside.notices),
        )

    def _repairs(self, answers: Sequence[Generation]) -> dict[str, int]:
        """Return kind of repair -> number, over all lists of queries."""
        counts: Counter[str] = Counter()
        for answer in answers if self._method.answer == "queries" else ():
            parsed = parse_queries(answer.text, self._stage.n)
            counts.update(parsed.repairs if parsed else {})
        return dict(sorted(counts.items()))


FIRST = -1
"""The chain of the search before the first round, which all chains share."""


class ShownPassages:
    """The passages that an LLM is shown in all rounds of one expansion.

    A chain is a draft and its revisions. Some methods do not show a passage in two rounds of a chain.
    """

    def __init__(self, method: MethodCard, rounds: int, dataset: Dataset, runtime: Runtime) -> None:
        self._passages = method.passages
        self._bans = method.ban
        self._dataset = dataset
        self._runtime = runtime
        # Each round bans as many passages as a search shows at most, so this many results are always enough.
        self.searched = method.passages.depth * (rounds + 1 if method.ban else 1)
        self.report = NO_REPORT
        """What happened inside the searches so far, for example in an LLM that searches."""
        self.cost = NOTHING
        """The cost of the searches so far."""
        self._last: dict[tuple[int, int], set[int]] = {}
        self._banned: dict[tuple[int, int], set[int]] = {}

    def find(self, retriever: Stage, queries: Sequence[SearchQuery], chain: int) -> list[list[str]]:
        """Return the starts of the passages to show for each query, best first."""
        searched = stored_search(retriever, self._dataset, queries, self.searched, self._runtime)
        self.report += searched.report
        self.cost += searched.cost
        passages = []
        for index, rows in enumerate(searched.run.rows):
            chosen = self._chosen(chain, index, rows[rows != NO_DOCUMENT].tolist())
            passages.append([first_words(text, self._passages.words) for text in self._dataset.corpus.texts(chosen)])
        return passages

    def _chosen(self, chain: int, query: int, ranking: list[int]) -> list[int]:
        """Return the rows to show. The ban is that of ThinkQE's code.

        A row that was among the best of the search before is banned in this and in all later rounds.
        """
        depth = self._passages.depth
        if not self._bans:
            return ranking[:depth]
        banned = self._banned.setdefault((chain, query), set())
        before = self._last.get((chain, query), self._last.get((FIRST, query), set()))
        self._last[chain, query] = set(ranking[:depth])
        chosen: list[int] = []
        for row in ranking:
            if len(chosen) == depth:
                break
            if row in before:
                banned.add(row)
            if row not in banned:
                chosen.append(row)
        return chosen
