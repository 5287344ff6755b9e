"""LLM rerankers: the parts that listwise, groupwise and pointwise reranking share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from r2med.ask.json_in_text import VERSION, Parsed
from r2med.core.stage_plan import PlannedData, StagePlan
from r2med.core.stages import Stage, argument, depth_field
from r2med.data.dataset import Dataset
from r2med.llm.chat import ChatRequest, Failure, Generation
from r2med.llm.costs import Preview, answers_cost, failed_queries, failure_kinds, failure_reasons, listed_kinds
from r2med.llm.journaled import open_chat
from r2med.llm.llm_cards import LLMCard, missing_key, resolve_llm, sampling_of
from r2med.prompts.fitting import Fitted, Fitter
from r2med.prompts.prompt_sets import PROMPTS_MEANING, find_set
from r2med.prompts.templates import Prompted, kind_of
from r2med.rerank.judge_prompts import JudgePrompts, Question, open_prompts, query_block, shortened
from r2med.rerank.reranking import Reranked, Scores, candidates, ordered
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.runtime.runtime import Runtime
from r2med.store import Store

Value = TypeVar("Value")
Complete = Callable[[Sequence[ChatRequest]], list[Generation | Failure]]
"""Function that answers requests in their order."""

SHOWN_WORDS, SHOWN_WORDS_BY_KIND = 300, {"similar-case": 600}
"""Number of words shown of a document.

300 words show nearly all passages of the Q&A and evidence datasets in full; their mean length is 60 to 130 words. Case
reports are several times longer and may name the diagnosis late, so they get 600 words. Twenty of them still fit a
context of 32k tokens.
"""


@dataclass(frozen=True)
class Pool:
    """The candidates of one query, in the order of the previous stage."""

    text: str
    """Text of the query alone."""
    block: str
    """The part of a prompt that shows the query."""
    ids: tuple[str, ...]
    """Ids of the documents. They determine the shuffles and are never part of a prompt."""
    texts: tuple[str, ...]
    first: Scores
    """Scores of the previous stage, scaled to 0 to 1."""
    hinted: bool = False

    def question(self, indices: Sequence[int], sample: int = 0) -> Question:
        """Return a question about some of the candidates."""
        hints = tuple(float(self.first[index]) for index in indices) if self.hinted else ()
        return Question(self.block, tuple(self.texts[index] for index in indices), hints, sample)

    def __len__(self) -> int:
        return len(self.ids)


NewOrder = tuple[Sequence[int], Scores | None]
"""A new order as indices of candidates, and the scores of all candidates. The scores are None if some are unknown."""


class JudgeStage(Stage, kind="rerank", needs="llm"):
    """Settings that all LLM rerankers share. Each method adds its own settings and defines `orders`."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "passages", "count")

    llm: str = argument("the LLM that judges the documents")
    words: int = Field(
        0,
        ge=0,
        le=100_000,
        description="maximum number of words shown of a document; 0: 300 words, or 600 for similar cases",
    )
    scores: Literal["hide", "show"] = Field(
        "hide", description="show: the prompt shows the previous stage's score, from 0 to 1, beside each document"
    )
    query: Literal["original", "expanded"] = Field(
        "original", description="expanded: the prompt shows the generated text below the query"
    )
    prompts: str = Field("", description=PROMPTS_MEANING)
    depth: int = depth_field()

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[StagePlan]:
        """Return a plan which says that an LLM is asked. `preview` gives the details."""
        missing = missing_key(self.llm, runtime.setup)
        return [StagePlan(str(self), "asks an LLM, see below", seconds=0.0, missing=missing)]

    def open(self, runtime: Runtime) -> LLMReranker:
        """Return the reranker. No API key is needed until a question has no saved answer."""
        card = resolve_llm(self.llm, runtime.setup)
        return LLMReranker(self, open_chat(card, runtime), card, find_set(self.prompts or runtime.setup.prompts))

    def orders(self, asker: Asker, pools: Sequence[Pool]) -> list[NewOrder]:
        """Return the new order of each query's candidates."""
        raise NotImplementedError(f"{type(self).__name__} has no orders()")

    def words_for(self, kind: str) -> int:
        """Return the number of words shown of a document for this kind of task."""
        return self.words or SHOWN_WORDS_BY_KIND.get(kind, SHOWN_WORDS)


@dataclass(frozen=True)
class LLMReranker(Prompted[JudgeStage]):
    """Reranker that uses one method with one LLM."""

    @property
    def depth(self) -> int:
        """Number of candidates that are reranked for each query."""
        return self.stage.depth

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their hash."""
        kind = kind_of(dataset)
        return {
            **self.settings(dataset),
            "words": self.stage.words_for(kind),
            "templates": self._prompts(kind).hash,
            "parsing": VERSION,
        }

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError if a template is wrong or if the context has no room for a prompt."""
        super().check(datasets)
        Fitter(self.card, system="")

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Rerank each query that has at least two candidates.

        The journal saves the answers, so nothing else is saved.
        """
        return self._rerank(dataset, queries, run, self.llm.complete)

    def _rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, complete: Complete) -> Reranked:
        kind = kind_of(dataset)
        words = self.stage.words_for(kind)
        asker = Asker(complete, self.card, self._prompts(kind), words)
        pools = self._pools(dataset, queries, run, words)
        orders = self.stage.orders(asker, pools)
        new = ordered(run, [order for order, _ in orders], [scores for _, scores in orders], self.depth)
        blocks = {asked.query.id: pool.block for asked, pool in zip(queries, pools, strict=True)}
        return asker.result(new, blocks, f"{self.name} on {dataset.name}")

    def preview(self, dataset: Dataset, store: Store) -> Preview:
        """Return the requests that a run would send, estimated with documents sampled evenly from the corpus."""
        size = min(self.depth, len(dataset.corpus))
        rows = np.linspace(0, len(dataset.corpus) - 1, size).astype(np.int32)
        scores = np.arange(size, 0, -1, dtype=np.float32)
        queries = [SearchQuery(query) for query in dataset.queries]
        run = Run.ranked([query.id for query in dataset.queries], [(rows, scores)] * len(queries), dataset.corpus)
        asked: dict[ChatRequest, None] = {}

        def listen(requests: Sequence[ChatRequest]) -> list[Generation | Failure]:
            asked.update(dict.fromkeys(requests))
            return [Failure("budget", "a dry run does not ask the LLM", attempts=0) for _ in requests]

        self._rerank(dataset, queries, run, listen)
        note = "estimate: uses a sample of the corpus instead of the documents that a search would find"
        return Preview(self.card, tuple(asked), tuple(asked), note=note)

    def _prompts(self, kind: str) -> JudgePrompts:
        return open_prompts(self.stage.name, kind, self.prompts, self.stage.prompt_fields)

    def _pools(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, words: int) -> list[Pool]:
        return [
            Pool(
                asked.query.text,
                query_block(asked, self.stage.query),
                tuple(dataset.corpus.ids(rows)),
                tuple(shortened(text, words) for text in dataset.corpus.texts(rows)),
                _from_0_to_1(scores[: len(rows)].astype(np.float64)),
                self.stage.scores == "show",
            )
            for asked, rows, scores in zip(queries, candidates(run, self.depth), run.scores, strict=True)
        ]


class Asker:
    """Asks the questions of one reranking and counts failures and repairs."""

    def __init__(self, complete: Complete, card: LLMCard, prompts: JudgePrompts, words: int) -> None:
        self._complete = complete
        self._card = card
        self._prompts = prompts
        self._words = words
        self._answers: list[Generation | Failure] = []
        self._asked: list[str] = []  # The query block of each answer.
        self._repairs: Counter[str] = Counter()
        self._cut = 0

    def ask(
        self, questions: Sequence[Question], parse: Callable[[str, int], Parsed[Value] | None]
    ) -> list[Value | None]:
        """Return the parsed answers. An answer is None if its call failed or if it cannot be parsed.

        `parse` gets the text of an answer and the number of passages in its question.
        """
        prompts = [self._prompts.fitted(question, self._card, self._words) for question in questions]
        self._cut += sum(isinstance(prompt, Fitted) and prompt.cut for prompt in prompts)
        sampling = sampling_of(self._card)
        requests = [
            ChatRequest(prompt.messages, sampling, question.sample)
            for question, prompt in zip(questions, prompts, strict=True)
            if isinstance(prompt, Fitted)
        ]
        answered = iter(self._complete(requests) if requests else ())
        values: list[Value | None] = []
        for question, prompt in zip(questions, prompts, strict=True):
            answer = prompt if isinstance(prompt, Failure) else next(answered)
            parsed = parse(answer.text, len(question.passages)) if isinstance(answer, Generation) else None
            if (
                isinstance(answer, Generation)
                and isinstance(prompt, Fitted)
                and parsed
                and parsed.repairs.get("missing")
            ):
                parsed = None if _is_parrot(answer.text, prompt.messages[-1].content) else parsed
            if isinstance(answer, Generation) and parsed is None:
                answer = _unusable(answer)
            self._answers.append(answer)
            self._asked.append(question.query)
            self._repairs.update(parsed.repairs if parsed else {})
            values.append(parsed.value if parsed else None)
        return values

    def result(self, run: Run, blocks: Mapping[str, str], who: str) -> Reranked:
        """Return the new run with all counts.

        `blocks` maps query ids to query blocks. `who` is the prefix of the notices.
        """
        kinds = failure_kinds(self._answers)
        failed = failed_queries(zip(self._asked, self._answers, strict=True))
        return Reranked(
            run,
            cost=answers_cost(self._answers, self._card, self._cut),
            failures=sum(kinds.values()),
            failure_kinds=kinds,
            failed={query: failed[block] for query, block in blocks.items() if block in failed},
            repairs=dict(sorted(self._repairs.items())),
            notices=tuple(f"{who}: {notice}" for notice in self._notices(run, kinds)),
        )

    def _notices(self, run: Run, kinds: dict[str, int]) -> list[str]:
        notices = []
        if kinds:
            calls = f"{sum(kinds.values())} of {len(self._answers)} calls gave no usable order ({listed_kinds(kinds)})"
            notices.append(f"{calls}; their documents keep their positions")
            notices += [f"{kind}: {reason}" for kind, reason in failure_reasons(self._answers).items()]
        if unranked := self._repairs["missing"]:
            were = "passage was" if unranked == 1 else "passages were"
            notices.append(f"{unranked:,} {were} shown but not ranked; they come after the ranked ones")
        if self._cut:
            notices.append(f"{self._cut} prompts have shortened passages to fit {self._card.context_length} tokens")
        if len(run.queries) and not run.found.any():
            notices.append("there is nothing to rerank: no query of the run has a document")
        return notices


def _from_0_to_1(scores: Scores) -> Scores:
    """Return the scores scaled to 0 for the worst candidate and 1 for the best, or zeros if all are equal."""
    if not len(scores) or not 0 < (span := np.ptp(scores)) < np.inf:
        return np.zeros(len(scores))
    return np.asarray((scores - scores.min()) / span)


PARROT_CHARACTERS = 120
"""Number of characters of the prompt's end, or of an answer, that show that one repeats the other."""


def _is_parrot(answer: str, prompt: str) -> bool:
    """Return True if an answer only repeats its prompt.

    The end of a prompt shows an example of the answer format. This check is used only for answers that leave passages
    out. An answer that ranks all passages is valid even if it repeats the prompt first.
    """
    said, asked = " ".join(answer.split()), " ".join(prompt.split())
    return asked[-PARROT_CHARACTERS:] in said or (len(said) >= PARROT_CHARACTERS and said in asked)


def _unusable(answer: Generation) -> Failure:
    said = " ".join(answer.text.split())[:100]
    message = f"the answer does not have the requested format: {said}"
    return Failure.of(answer, "invalid", message)
