"""An LLM as a reranker: what the three methods share, from a run's candidates to a run in a new order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data.dataset import Dataset
from r2med.llm.contracts import ChatModel
from r2med.llm.llm_cards import LLMCard
from r2med.llm.open import sampling_of
from r2med.prompts.fitting import Fitter
from r2med.prompts.templates import kind_of, open_templates
from r2med.rerank.contracts import Reranked
from r2med.rerank.llm import answers
from r2med.rerank.llm.asking import Asker
from r2med.rerank.llm.fit import Question, open_prompts
from r2med.rerank.llm.marks import query_block, shortened
from r2med.rerank.llm.settings import Settings
from r2med.rerank.order import Scores, candidates, ordered
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.spec import Call
from r2med.store import Store


@dataclass(frozen=True)
class Pool:
    """One query's candidates, in the order they came in."""

    text: str
    """The query's own text."""
    block: str
    """What a prompt shows of the query."""
    ids: tuple[str, ...]
    """Documents' ids: they make shuffles, and never reach a prompt."""
    texts: tuple[str, ...]
    first: Scores
    """What the stage before thought of them, from 0 to 1."""
    hinted: bool = False

    def question(self, places: Sequence[int], sample: int = 0) -> Question:
        """Return a call about some of the candidates."""
        hints = tuple(float(self.first[place]) for place in places) if self.hinted else ()
        return Question(self.block, tuple(self.texts[place] for place in places), hints, sample)

    def __len__(self) -> int:
        return len(self.ids)


Placing = tuple[Sequence[int], Scores | None]
"""A new order, as places among the candidates, and the candidates' scores where there are some for all of them."""


@dataclass(frozen=True)
class Method:
    """One way to ask: its settings, and what makes orders of pools."""

    settings: type[Settings]
    order: Callable[[Asker, Sequence[Pool], Any], Sequence[Placing]]


@dataclass(frozen=True)
class LLMReranker:
    """One method with one LLM."""

    word: str
    method: Method
    llm: ChatModel
    card: LLMCard
    settings: Settings
    depth: int
    prompts: Path | None = None
    """A folder of the user's own templates; those it does not have are ours."""

    @property
    def name(self) -> str:
        """What one types to get it."""
        return str(Call(self.word, (self.llm.name,), self.settings.changed, self.depth))

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; templates by their hash."""
        kind = kind_of(dataset)
        return {
            "reranker": self.word,
            "llm": self.llm.name,
            "model": self.llm.describe(),
            "sampling": asdict(sampling_of(self.card)),
            "context_length": self.card.context_length,
            "depth": self.depth,
            **self.settings.describe(kind),
            "kind": kind,
            "templates": open_prompts(self.word, kind, self.prompts).hash,
            "parsing": answers.VERSION,
        }

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise for what would stop a reranking on one of these datasets, before the first question costs anything."""
        kinds = {kind_of(dataset) for dataset in datasets}
        open_templates(self.prompts, kinds, every=True)
        for kind in sorted(kinds):
            Fitter(self.card, open_prompts(self.word, kind, self.prompts).system)

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Ask about every query with candidates to choose from; answers are journaled, so nothing else is kept."""
        kind = kind_of(dataset)
        words = self.settings.words_for(kind)
        asker = Asker(self.llm, self.card, open_prompts(self.word, kind, self.prompts), words)
        pools = self._pools(dataset, queries, run, words)
        placings = self.method.order(asker, pools, self.settings)
        new = ordered(run, [order for order, _ in placings], [scores for _, scores in placings], self.depth)
        return asker.account(new, f"{self.name} on {dataset.name}")

    def _pools(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, words: int) -> list[Pool]:
        return [
            Pool(
                asked.query.text,
                query_block(asked, self.settings.query),
                tuple(dataset.corpus.ids(rows)),
                tuple(shortened(text, words) for text in dataset.corpus.texts(rows)),
                _from_0_to_1(scores[: len(rows)].astype(np.float64)),
                self.settings.scores == "show",
            )
            for asked, rows, scores in zip(queries, candidates(run, self.depth), run.scores, strict=True)
        ]


def _from_0_to_1(scores: Scores) -> Scores:
    """Return scores on the scale from the worst candidate's to the best one's; all 0 where they are equal."""
    if not len(scores) or not 0 < (span := np.ptp(scores)) < np.inf:
        return np.zeros(len(scores))
    return np.asarray((scores - scores.min()) / span)
