"""Choose the search results that an LLM is shown. Some methods do not show a passage in two rounds."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.data import Dataset
from r2med.data.runs.run import NO_DOCUMENT
from r2med.foundation.core.cost import Cost
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.models.prompts.fitting import first_words
from r2med.systems.expand.method_cards import MethodCard, Passages
from r2med.systems.retrieve.retriever import NO_REPORT, SearchQuery
from r2med.systems.retrieve.stored_search import stored_search

FIRST = -1
"""The lane of the search before the first round, which all lanes share."""


class ShownPassages:
    """The passages of all rounds of one expansion. A lane is one line of drafts: its rounds share a ban."""

    def __init__(self, method: MethodCard, rounds: int) -> None:
        self._passages: Passages = method.passages
        self._ban = method.ban
        # Each round bans as many passages as a search shows at most, so this many results are always enough.
        self.searched = method.passages.depth * (rounds + 1 if method.ban else 1)
        self.report = NO_REPORT
        """What happened inside the searches so far, for example in an LLM that searches."""
        self._last: dict[tuple[int, int], set[int]] = {}
        self._banned: dict[tuple[int, int], set[int]] = {}

    def find(
        self, retriever: Stage, dataset: Dataset, queries: Sequence[SearchQuery], runtime: Runtime, lane: int = FIRST
    ) -> tuple[list[list[str]], Cost]:
        """Return the starts of the passages to show for each query, best first, and the cost of the search."""
        searched = stored_search(retriever, dataset, queries, self.searched, runtime)
        self.report += searched.report
        shown = [
            self._chosen(lane, index, rows[rows != NO_DOCUMENT].tolist())
            for index, rows in enumerate(searched.run.rows)
        ]
        texts = [dataset.corpus.texts(rows) for rows in shown]
        return [[first_words(text, self._passages.words) for text in row] for row in texts], searched.cost

    def _chosen(self, lane: int, query: int, ranking: list[int]) -> list[int]:
        """Return the rows to show. The ban is that of ThinkQE's code.

        A row that was among the best of the search before is banned in this and in all later rounds.
        """
        depth = self._passages.depth
        if not self._ban:
            return ranking[:depth]
        banned = self._banned.setdefault((lane, query), set())
        before = self._last.get((lane, query), self._last.get((FIRST, query), set()))
        self._last[lane, query] = set(ranking[:depth])
        chosen: list[int] = []
        for row in ranking:
            if len(chosen) == depth:
                break
            if row in before:
                banned.add(row)
            if row not in banned:
                chosen.append(row)
        return chosen
