"""LLM rerankers: the parts that all forms share."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import argument, depth_field
from r2med.models.ask.json_in_text import VERSION
from r2med.models.llm.chat import Ability, ChatRequest, Failure, repeat_seed
from r2med.models.llm.llm_cards import LLMCard, resolve_llm, sampling_of, with_own_file
from r2med.models.llm.llm_needs import INSTRUCTION_TOKENS, llm_needs
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.prompted_stage import PromptedStage
from r2med.models.prompts.templates import PROMPTS_MEANING, kind_of, open_templates
from r2med.systems.rerank.llm_answers import LETTERS
from r2med.systems.rerank.llm_calls import Asker, LLMAsker
from r2med.systems.rerank.llm_prompts import FIELDS, Question, RerankPrompts, open_prompts
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS, LLMRerankerCard
from r2med.systems.rerank.reranking import Reranked, Scores, candidates, ordered
from r2med.systems.retrieve.retriever import SearchQuery

log = logging.getLogger("r2med")

ABILITIES: Mapping[Ability, str] = {
    "completions": "a server that continues raw texts (/v1/completions)",
    "logprobs": "the log-probabilities of tokens",
}
"""What a form may need besides chat, in words."""

OWN_PROMPT = "own prompt"
"""What a record says about a prompt of ours, where the authors have another."""


@dataclass(frozen=True)
class QueryCandidates:
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
    raw: Scores
    """Scores of the previous stage as they are."""
    hinted: bool = False

    def question(self, indices: Sequence[int], sample: int = 0) -> Question:
        """Return a question about some of the candidates."""
        hints = tuple(float(self.first[index]) for index in indices) if self.hinted else ()
        return Question(self.block, tuple(self.texts[index] for index in indices), hints, sample)

    def __len__(self) -> int:
        return len(self.ids)


NewOrder = tuple[Sequence[int], Scores | None]
"""A new order as indices of candidates, and the scores of all candidates. The scores are None if some are unknown."""


class LLMRerankerStage(PromptedStage, kind="rerank", takes="llm"):
    """Settings that all LLM rerankers share. Each form adds its own settings and defines `orders`."""

    answers: ClassVar[Sequence[str]] = ()
    """The kinds of answers that the form can use. The first is that of a form without a card."""

    llm: str = argument("the LLM that ranks the documents")
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
    temperature: float | None = Field(
        None, ge=0, le=2, description="temperature of the LLM; without it, that of the LLM's card"
    )
    prompts: str = Field("", description=PROMPTS_MEANING)
    depth: int = depth_field()

    @classmethod
    def defaults(cls, name: str) -> Mapping[str, Any]:
        """Return the settings of a card."""
        card = cls.card_of(name)
        return {**({"llm": ""} if card.llm else {}), **card.settings}

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's reranker."""
        card = cls.card_of(name)
        if not (card.llm or card.published):
            return super().summary(name)
        what = f"the model {card.llm.model}" if card.llm else "any LLM"
        return f"{card.form.capitalize()} reranking by {what}, in the form of its authors."

    @classmethod
    def notes(cls, name: str) -> tuple[str, ...]:
        """Return the facts on the card of a reranker, and where its authors publish their wording."""
        card = cls.card_of(name)
        wording = (f"The authors publish their prompt: {card.published}.",) if card.published else ()
        return (*wording, *card.notes)

    @model_validator(mode="after")
    def _follows_card(self) -> Self:
        card = self.reranker_card
        if self.words and not card.adjustable:
            raise ValueError(f"{self.name} has no setting 'words': its card says how much of a passage is shown")
        if card.labels == "letters" and self.shown_at_once > len(LETTERS):
            raise ValueError(
                f"{self.shown_at_once} documents in a call are too many: {self.name} labels them with letters, "
                f"{len(LETTERS)} at most"
            )
        return self

    @classmethod
    def settings_of_card(cls, name: str) -> tuple[str, ...]:
        """Return the settings that a card decides."""
        return () if cls.card_of(name).adjustable else ("words",)

    @classmethod
    def template_fields(cls, name: str) -> tuple[str, ...]:
        """Return the fields of a prompt, which may also show passages one by one."""
        return FIELDS

    @classmethod
    def card_of(cls, name: str) -> LLMRerankerCard:
        """Return the card of a name. A form of a plugin may be without a card."""
        return LLM_RERANKERS.get(name) or LLMRerankerCard(name=name, form=name, answer=cls.answers[0])

    @property
    def shown_at_once(self) -> int:
        """Largest number of documents in a call."""
        return 1

    @property
    def is_shuffled(self) -> bool:
        """True if documents are shown in a random order, which is another one in each repeat."""
        return False

    def in_repeat(self, repeat: int) -> Self:
        """Return the stage with the seed of a repeat. In repeat 0, this is the seed as typed."""
        seed = getattr(self, "seed", None)
        return self if not repeat or seed is None else self.model_copy(update={"seed": repeat_seed(seed, repeat)})

    @property
    def reranker_card(self) -> LLMRerankerCard:
        """The card: the layout of prompts and the form of answers."""
        return self.card_of(self.name)

    def llm_card(self, setup: Setup) -> LLMCard:
        """Return the card of the LLM: the one that was named, or the model of the reranker's card."""
        own = self.reranker_card.llm
        card = with_own_file(own, setup) if own and not self.llm else resolve_llm(self.llm, setup)
        return card if self.temperature is None else card.model_copy(update={"temperature": self.temperature})

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return how often an LLM is asked, computed from the form of the questions."""
        depth = min(self.depth, size.documents)
        usual, most = self.questions(depth), self.most_questions(depth)
        times = self.reranker_card.calls_per_question * size.queries
        fixed = INSTRUCTION_TOKENS + size.query_tokens
        read, most_read = (
            times * sum(fixed + shown * size.document_tokens for shown in each) for each in (usual, most)
        )
        card = self.llm_card(runtime.setup)
        bound = times * len(most), most_read
        return [llm_needs(str(self), card, runtime.setup, times * len(usual), read, bound)]

    def questions(self, count: int) -> list[int]:
        """Return the number of passages in each question about a query with this many candidates.

        If answers decide what is asked next, these are the questions that they usually lead to.
        """
        raise NotImplementedError(f"{type(self).__name__} has no questions()")

    def most_questions(self, count: int) -> list[int]:
        """Return the same with the answers that lead to the most questions."""
        return self.questions(count)

    def varies(self, runtime: Runtime) -> bool:
        """Return True if another run can give another order: the LLM varies, or documents are shuffled."""
        return super().varies(runtime) or self.is_shuffled

    def whose_prompt(self, prompts: Traversable | None) -> str:
        """Return what a record says about the prompt of a set; empty if its authors publish no other."""
        card = self.reranker_card
        if not card.published:
            return ""
        if prompts is None:
            return OWN_PROMPT
        of_set = open_templates(prompts).own
        is_changed = any(name.partition(".")[0] == card.template for name in of_set)
        return f"prompt of the set {prompts.name}" if is_changed else OWN_PROMPT

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their digest."""
        prompts = self._prompts(kind_of(dataset), runtime)
        seed = {"seed": seed} if (seed := getattr(self, "seed", None)) is not None else {}  # records list seeds
        key = {**super().key(dataset, runtime), **seed, "templates": prompts.digest, "parsing": VERSION}
        return {**key, "card": prompts.card.key()}

    def check(self, datasets: Sequence[Dataset], runtime: Runtime) -> None:
        """Raise UserError if a template is wrong, a prompt has no room, or the LLM lacks what the form needs."""
        super().check(datasets, runtime)
        opened, card = self.opened(runtime), self.reranker_card
        Fitter(opened.card, system="")
        if card.is_trained and self.whose_prompt(opened.prompts) == OWN_PROMPT:
            log.info(
                "%s reads our prompt, and its scores are not comparable with published ones; its authors publish "
                "theirs in %s",
                self.name,
                card.published,
            )
        for kind in {kind_of(dataset) for dataset in datasets}:
            prompts = self._prompts(kind, runtime)
            needed: dict[Ability, bool] = {"completions": prompts.is_raw, "logprobs": prompts.card.uses_probabilities}
            for ability, words in ABILITIES.items():
                if needed[ability] and ability in opened.chat.lacks:
                    raise UserError(
                        f"{self} needs {words}, and {opened.chat.name} does not offer this; serve the model with "
                        "vLLM, and give its address with base_url (--base-url URL)",
                    )

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, runtime: Runtime) -> Reranked:
        """Rerank each query that has at least two candidates.

        The journal saves the answers, so nothing else is saved.
        """
        opened, prompts = self.opened(runtime), self._prompts(kind_of(dataset), runtime)
        listed = self._candidates(dataset, queries, run, prompts)
        blocks = {asked.query.id: each.block for asked, each in zip(queries, listed, strict=True)}
        asker = LLMAsker(opened.chat, opened.card, prompts)
        orders = self.in_repeat(runtime.setup.repeat).orders(asker, listed)
        new = ordered(run, [order for order, _ in orders], [scores for _, scores in orders], self.depth)
        done = asker.result(new, blocks, f"{self} on {dataset.name}")
        notices = (f"{self} on {dataset.name}: {notice}" for notice in self.notices(listed))
        return replace(done, notices=(*done.notices, *notices), prompt=self.whose_prompt(opened.prompts))

    def example(self, dataset: Dataset, runtime: Runtime) -> ChatRequest | None:
        """Return a request about the first query. Documents of the corpus stand for those that are found."""
        opened, prompts = self.opened(runtime), self._prompts(kind_of(dataset), runtime)
        count = min(self.depth, self.shown_at_once, len(dataset.corpus))
        rows = np.linspace(0, len(dataset.corpus) - 1, count).astype(np.int32)
        queries = [SearchQuery(query) for query in dataset.queries[:1]]
        hits = [(rows, np.arange(count, 0, -1).astype(np.float32)) for _ in queries]
        run = Run.ranked([asked.query.id for asked in queries], hits, dataset.corpus)
        for listed in self._candidates(dataset, queries, run, prompts):
            fitted = prompts.fitted(listed.question(range(len(listed))), opened.card, prompts.size)
            if not isinstance(fitted, Failure):
                return ChatRequest(fitted.messages, sampling_of(opened.card), prompt=fitted.text)
        return None

    @property
    def template_names(self) -> list[str]:
        """The names of the templates that the stage uses, without a kind."""
        card = self.reranker_card
        return [*filter(None, [card.system]), card.template]

    def _prompts(self, kind: str, runtime: Runtime) -> RerankPrompts:
        return open_prompts(self.reranker_card, kind, self.opened(runtime).prompts, self.words)

    def _candidates(
        self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, prompts: RerankPrompts
    ) -> list[QueryCandidates]:
        return [
            QueryCandidates(
                asked.query.text,
                prompts.query(asked, self.query),
                tuple(dataset.corpus.ids(rows)),
                tuple(prompts.shortened(text, prompts.size) for text in dataset.corpus.texts(rows)),
                _from_0_to_1(scores[: len(rows)].astype(np.float64)),
                scores[: len(rows)].astype(np.float64),
                self.scores == "show",
            )
            for asked, rows, scores in zip(queries, candidates(run, self.depth), run.scores, strict=True)
        ]

    def orders(self, asker: Asker, queries: Sequence[QueryCandidates]) -> list[NewOrder]:
        """Return the new order of each query's candidates."""
        raise NotImplementedError(f"{type(self).__name__} has no orders()")

    def notices(self, queries: Sequence[QueryCandidates]) -> Iterator[str]:
        """Yield what a reader should know about the candidates of the previous stage, one sentence each."""
        yield from ()


def _from_0_to_1(scores: Scores) -> Scores:
    """Return the scores scaled to 0 for the worst candidate and 1 for the best, or zeros if all are equal."""
    if not len(scores) or not 0 < (span := np.ptp(scores)) < np.inf:
        return np.zeros(len(scores))
    return np.asarray((scores - scores.min()) / span)
