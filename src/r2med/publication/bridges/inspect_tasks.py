"""Questions of a dataset as a task of Inspect: search and open with any system, and the scores of our answers track."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r2med.assessment.answers.answer_scores import (
    CITATION_RELEVANCE,
    CONFIDENCE,
    STEP_RECALL,
    scores_of,
)
from r2med.assessment.answers.reading import asked_queries
from r2med.assessment.answers.searched_answers import searched_answer
from r2med.data.dataset import Dataset, Query
from r2med.data.loading import load
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.search_steps import SearchStep
from r2med.models.prompts.fitting import first_words
from r2med.publication.bridges.inspect_traces import trace_of_messages
from r2med.systems.agents.agent_state import SHOWN_WORDS
from r2med.systems.system import System
from r2med.systems.system.system import LiveSystem

if TYPE_CHECKING:
    from pathlib import Path

INSTRUCTION = (
    "Answer the medical question from the collection. Search it with the tool search and read whole documents with "
    "get_document. Answer first in one sentence, then give the reason in a few. Put the ids of the documents behind "
    "each sentence in brackets, such as [ID]. End with a line such as Confidence: 80%."
)
STEPS: tuple[SearchStep, ...] = ("returned", "shown", "opened", "cited")
MEASURES = (CITATION_RELEVANCE, CONFIDENCE, *(STEP_RECALL[step] for step in STEPS))
MAX_MESSAGES = 2 + 2 * 20
"""Instruction, question, and 20 turns of the model with their results, as our agents have."""


def inspect_task(data: Dataset | str | Path, system: System | str = "bm25", *, k: int = 10, queries: int = 0) -> Any:
    """Return a task of Inspect (inspect_ai): questions as samples, tools that search and open, and our scores.

    `data` is a dataset, its name or its folder, and `system` what the tool searches with. `k` is the number of
    documents of a search, and `queries` the largest number of questions; 0 for all. Inspect's model answers. After 20
    turns it ends without an answer; `message_limit` of Inspect's `eval` changes that. A measure is averaged over the
    answers that have it. Raises UserError if inspect_ai is not installed; it may need an environment of its own.
    """
    try:
        from inspect_ai import Task
        from inspect_ai.dataset import MemoryDataset, Sample
        from inspect_ai.solver import generate, system_message, use_tools
    except ImportError:
        raise UserError(
            "inspect_task needs inspect_ai: install it with pip install inspect_ai, in an environment of its own if "
            "its fsspec does not fit that of others"
        ) from None
    searching = system if isinstance(system, System) else System.parse(system)
    with searching.runtime.network():
        dataset = data if isinstance(data, Dataset) else load(data, searching.runtime.store)
    if not (asked := asked_queries(dataset, queries)):
        raise UserError(f"{dataset.name} has no query with a reference answer and judgements: nothing can be asked")
    served = _Served(searching.live(dataset), dataset, k)
    samples = [Sample(input=query.text, target=query.answer, id=query.id) for query in asked]
    search, get_document = _tools(served)
    return Task(
        dataset=MemoryDataset(samples, name=dataset.name),
        solver=[system_message(INSTRUCTION), use_tools(search(), get_document()), generate()],
        scorer=_scorer(dataset)(),
        message_limit=MAX_MESSAGES,
        name=f"r2med_{''.join(letter if letter.isalnum() else '_' for letter in dataset.name)}",
    )


@dataclass(frozen=True)
class _Served:
    """A system that is open for the questions of Inspect's model."""

    live: LiveSystem
    dataset: Dataset
    k: int

    def search(self, query: str) -> str:
        """Return the best documents as JSON: docid, score and the first words of each."""
        [(_, ranking)] = self.live.answer(query, self.k).run
        corpus = self.dataset.corpus
        texts = corpus.texts(corpus.rows([document for document, _ in ranking]))
        rows = [
            {"docid": document, "score": score, "snippet": first_words(text, SHOWN_WORDS)}
            for text, (document, score) in zip(texts, ranking, strict=True)
        ]
        return json.dumps(rows, ensure_ascii=False)

    def document(self, docid: str) -> str:
        """Return the whole text of a document as JSON, or an error."""
        row = self.dataset.corpus.row(docid)
        if row is None:
            return json.dumps({"error": f"there is no document {docid[:200]!r}"})
        return json.dumps({"docid": docid, "text": self.dataset.corpus.text(row)}, ensure_ascii=False)


def _tools(served: _Served) -> tuple[Any, Any]:
    from inspect_ai.tool import tool

    def search() -> Any:
        async def execute(query: str) -> str:
            """Search the collection.

            Args:
                query: What to search for.
            """
            return served.search(query)

        return execute

    def get_document() -> Any:
        async def execute(docid: str) -> str:
            """Read the whole text of a document.

            Args:
                docid: The id of the document.
            """
            return served.document(docid)

        return execute

    return tool(search), tool(get_document)


def _scorer(dataset: Dataset) -> Any:
    from inspect_ai.scorer import Score, mean, scorer, stderr

    by_id = {query.id: query for query in dataset.queries}

    def r2med_answers() -> Any:
        async def score(state: Any, target: Any) -> Any:
            query = by_id[str(state.sample_id)]
            trace = trace_of_messages(state.messages, state.output.completion)
            values, text = scored_trace(trace, query, dataset)
            # Inspect leaves values that are not a number out of its means, and needs the same ones of every sample.
            return Score(value={name: values.get(name, math.nan) for name in MEASURES}, answer=text)

        return score

    return scorer(metrics={"*": [mean(), stderr()]})(r2med_answers)


def scored_trace(trace: Mapping[str, Any], query: Query, dataset: Dataset) -> tuple[dict[str, float], str]:
    """Return measure -> value of an answer, and its text. No judge is asked, so it has no accuracy."""
    answer = searched_answer(query, trace, dataset, None)
    return scores_of(answer, (), dataset.qrels.get(query.id, {}), judged=False), answer.text
