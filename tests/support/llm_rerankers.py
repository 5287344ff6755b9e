"""A scripted LLM that knows how good each document is, and the candidates it is asked about."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.data.runs.run import Run
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatModel, ChatRequest, Failure, Generation, RawAnswer
from r2med.models.llm.llm_cards import LLMCard, Price
from r2med.systems.rerank.reranking import Reranked
from r2med.systems.retrieve.retriever import SearchQuery
from support.ready import Ready, ScriptedRuntime, ready_reranker
from support.scripted_chat import ScriptedChat

CARD = LLMCard(name="ranker", model="test/ranker", price=Price(prompt=1.0, completion=2.0))

_PASSAGE = re.compile(r"<passage (\d+)[^>\n]*>\n(.*)\n</passage \1>")
_WORTH = re.compile(r"worth (-?[\d.]+)")

Reply = Callable[[ChatRequest], str | RawAnswer | Failure]


class Ranker(ScriptedChat):
    """A scripted LLM that also remembers how many questions came at a time."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply, "ranker")
        self.batches: list[int] = []

    def complete(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[Generation | Failure]:
        self.batches.append(len(requests))
        return super().complete(requests, keep_cut=keep_cut)


def shown(request: ChatRequest) -> dict[int, str]:
    """Return the passages of a prompt by their numbers."""
    return {int(number): text for number, text in _PASSAGE.findall(request.messages[-1].content)}


def worths(request: ChatRequest) -> dict[int, float]:
    """Return how good each passage of a prompt is: its text says so."""
    return {number: float(_WORTH.findall(text)[-1]) for number, text in shown(request).items()}


def in_order(request: ChatRequest) -> str:
    """Answer with the true order."""
    found = worths(request)
    return " > ".join(f"[{number}]" for number in sorted(found, key=lambda number: -found[number]))


def in_scores(request: ChatRequest) -> str:
    """Answer with the true scores."""
    return "Answer: it is.\n" + json.dumps({str(number): worth for number, worth in worths(request).items()})


def in_one_score(request: ChatRequest) -> str:
    """Answer with the true score of the one passage."""
    [worth] = worths(request).values()
    return json.dumps({"score": worth})


def graded(*worth_lists: Sequence[float]) -> tuple[Dataset, Run]:
    """Return a dataset with a query for each list, and a run that has its documents in the order of the list.

    A document is called after its query and its place in that run: q0-003.
    """
    documents = [
        (f"q{query}-{place:03}", f"document {place} of query {query}, worth {worth}")
        for query, worth_list in enumerate(worth_lists)
        for place, worth in enumerate(worth_list)
    ]
    corpus = Corpus.of(documents)
    queries = tuple(Query(str(query), f"what is wrong with patient {query}?") for query in range(len(worth_lists)))
    found = []
    for query, worth_list in enumerate(worth_lists):
        rows = corpus.rows([f"q{query}-{place:03}" for place in range(len(worth_list))])
        found.append((rows, np.linspace(9, 1, len(rows), dtype=np.float32)))
    run = Run.ranked([query.id for query in queries], found, corpus)
    return Dataset("graded", queries, corpus, Qrels({}), None), run


def rerank(
    spec: str,
    reply: Reply,
    data: tuple[Dataset, Run],
    home: Path,
    *,
    card: LLMCard = CARD,
    prompts: Path | None = None,
    generated: tuple[str, ...] = (),
) -> tuple[Reranked, Ranker]:
    """Rerank by what one types; return the outcome and the LLM that was asked."""
    llm = Ranker(reply)
    dataset, run = data
    queries = [SearchQuery(query, generated) for query in dataset.queries]
    reranker = reranker_of(spec, llm, card=card, prompts=prompts)
    return reranker.rerank(dataset, queries, run, Store(home / "store")), llm


def reranker_of(spec: str, llm: ChatModel, *, card: LLMCard = CARD, prompts: Path | None = None) -> Ready:
    """Return the reranker that one types, with a scripted LLM in place of its own."""
    return ready_reranker(spec, ScriptedRuntime(llm, card, prompts))


def places(run: Run, query: int = 0) -> list[int]:
    """Return the places that a query's documents had before, read as trec_eval reads a file: ties by id descending."""
    found = [*run][query][1]
    assert [document for document, _ in found] == [
        document for document, _ in sorted(found, key=lambda one: (one[1], one[0]), reverse=True)
    ]
    return [int(document.partition("-")[2]) for document, _ in found]


def true_order(worth_list: Sequence[float]) -> list[int]:
    """Return places by worth, the best first; equals stay as they are."""
    return sorted(range(len(worth_list)), key=lambda place: -worth_list[place])


def scores(run: Run, query: int = 0) -> list[float]:
    """Return the scores of a query's documents, the best first."""
    return [score for _, score in [*run][query][1]]


def permutation(count: int, seed: int = 7) -> list[float]:
    """Return distinct worths from 0 to 10, in no order."""
    return [round(float(worth), 3) for worth in np.random.default_rng(seed).permutation(np.linspace(0, 10, count))]
