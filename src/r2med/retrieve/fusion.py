"""Fusion: several retrievers as one. Each part's run is an artefact of its own, so adding a part searches only that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.data.corpus import Corpus
from r2med.data.dataset_cards import Instruction
from r2med.errors import UserError, nearest
from r2med.retrieve.cached import Searched, cached_search
from r2med.retrieve.contracts import Retriever, Searcher, SearchQuery
from r2med.retrieve.live import live
from r2med.retrieve.run import NO_DOCUMENT, Run
from r2med.retrieve.took import Took
from r2med.retrieve.topk import best
from r2med.spec import Call
from r2med.store import Store, digest

Floats = npt.NDArray[np.float64]

RRF_K = 60
"""Cormack, Clarke and Büttcher (2009) found 60; larger values flatten the first ranks."""


def _reciprocal_rank(scores: Floats) -> Floats:
    return 1.0 / (RRF_K + 1 + np.arange(len(scores)))


def _min_max(scores: Floats) -> Floats:
    spread = scores.max() - scores.min()
    return (scores - scores.min()) / spread if spread > 0 else np.ones_like(scores)


def _z_score(scores: Floats) -> Floats:
    # Shifted so that the last document found is worth 0, the same as one not found.
    deviation = scores.std()
    z = (scores - scores.mean()) / deviation if deviation > 0 else np.ones_like(scores)
    return np.asarray(z - min(z.min(), 0.0))


METHODS: dict[str, Callable[[Floats], Floats]] = {"rrf": _reciprocal_rank, "minmax": _min_max, "zscore": _z_score}
"""Ranked scores of one query -> what each document is worth; one that a part did not find is worth 0."""

SEARCHED = ("expanded", "original", "generated", "both")
"""What a part searches where a query was expanded: the method's own combination, the query as it came, the generated
text alone, or the first two as two runs."""


@dataclass(frozen=True)
class Fusion:
    """Several retrievers and how their rankings are added up."""

    parts: tuple[Retriever, ...]
    method: str = "rrf"
    weights: tuple[float, ...] = ()
    queries: tuple[str, ...] = ()
    depth: int = 1000

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UserError(f"no fusion {self.method!r}{nearest(self.method, METHODS)}: {', '.join(METHODS)}")
        for what, values in (("weights", self.weights), ("queries", self.queries)):
            if len(values) not in (0, 1, len(self.parts)) or (what == "weights" and len(values) == 1):
                raise UserError(f"fusion of {len(self.parts)} parts has {len(values)} {what}: give one for each")
        if any(not 0 <= weight < float("inf") for weight in self.weights):
            raise UserError("the weights of a fusion must be 0 or more")
        for word in self.queries:
            if word not in SEARCHED:
                raise UserError(f"a part cannot search {word!r}{nearest(word, SEARCHED)}: {', '.join(SEARCHED)}")
        if self.depth < 1:
            raise UserError(f"the depth of a fusion must be at least 1, not {self.depth}")

    @property
    def name(self) -> str:
        """What one types to get it: the parts joined, inside fuse(…) if a setting differs from its default."""
        parts = "+".join(f"fuse({p.name})" if _is_bare(p) else p.name for p in self.parts)
        defaults = Fusion(self.parts)
        written = {
            "method": self.method,
            "weights": ":".join(repr(float(weight)).removesuffix(".0") for weight in self.weights),
            "queries": ":".join(self.queries),
            "depth": str(self.depth),
        }
        plain = {"method": defaults.method, "weights": "", "queries": "", "depth": str(defaults.depth)}
        changed = tuple((key, value) for key, value in written.items() if value != plain[key])
        return str(Call("fuse", (parts,), changed)) if changed or len(self.parts) == 1 else parts

    def describe(self, instruction: Instruction | None) -> dict[str, Any]:
        """Return every setting a score depends on."""
        return {
            "retriever": "fusion",
            "method": self.method,
            "weights": list(self.weights or [1.0] * len(self.parts)),
            "queries": list(self.searched),
            "depth": self.depth,
            "parts": [part.describe(instruction) for part in self.parts],
        }

    @property
    def searched(self) -> tuple[str, ...]:
        """What each part searches."""
        if len(self.queries) == len(self.parts):
            return self.queries
        return (self.queries or ("expanded",)) * len(self.parts)

    def index(self, corpus: Corpus, store: Store, instruction: Instruction | None) -> FusionSearcher:
        """Return a searcher; the parts are indexed when they search, and not at all if their runs are in the store."""
        return FusionSearcher(self, corpus, store, instruction)


def _is_bare(part: Retriever) -> bool:
    """Tell whether a part is a fusion that prints without its parentheses: inside another it needs them."""
    return isinstance(part, Fusion) and not part.name.startswith("fuse(")


class FusionSearcher:
    """Searches one corpus with every part."""

    def __init__(
        self,
        fusion: Fusion,
        corpus: Corpus,
        store: Store,
        instruction: Instruction | None,
        opened: Sequence[Searcher] = (),
    ) -> None:
        self._fusion, self._corpus, self._store, self._instruction = fusion, corpus, store, instruction
        self._opened = opened
        self.timings: Mapping[str, float] = {}
        self.prepared: Mapping[str, float] = {}
        self._usage: Counter[str] = Counter()

    @cached_property
    def _described(self) -> list[str]:
        """What each part is, by all its settings: two of the same are one."""
        return [digest(part.describe(self._instruction)) for part in self._fusion.parts]

    def search(self, queries: Sequence[SearchQuery], k: int) -> Run:
        """Return the k documents of each query that are worth most over all parts."""
        worth: list[dict[int, float]] = [{} for _ in queries]
        value = METHODS[self._fusion.method]
        took = Took()
        for part, weight, asked in self._runs(queries):
            searched = self._search(part, asked, max(self._fusion.depth, k))
            took.add(self._described[part], asked, searched)
            for line, (rows, scores) in enumerate(zip(searched.run.rows, searched.run.scores, strict=True)):
                found = rows[rows != NO_DOCUMENT].tolist()
                if found:
                    for row, amount in zip(found, value(scores[: len(found)].astype(np.float64)).tolist(), strict=True):
                        worth[line][row] = worth[line].get(row, 0.0) + weight * amount
        self.timings, self.prepared = took.timings, took.prepared
        self._usage.update(took.usage)
        ranks = self._corpus.id_ranks()
        found_by_query = [_best(line, k, ranks) for line in worth]
        return Run.ranked([query.query.id for query in queries], found_by_query, self._corpus)

    def usage(self) -> dict[str, float]:
        """Return what the parts used."""
        total = self._usage.copy()
        for searcher in self._opened:
            total.update(searcher.usage())
        return dict(total)

    def live(self) -> FusionSearcher:
        """Return one whose parts are all opened now, once, and that keeps no run."""
        settings = self._corpus, self._store, self._instruction
        return FusionSearcher(self._fusion, *settings, [live(part.index(*settings)) for part in self._fusion.parts])

    def _search(self, part: int, queries: Sequence[SearchQuery], depth: int) -> Searched:
        if self._opened:
            return Searched(self._opened[part].search(queries, depth), {}, {}, {})
        retriever = self._fusion.parts[part]
        return cached_search(retriever, self._corpus, queries, depth, self._store, self._instruction)

    def _runs(self, queries: Sequence[SearchQuery]) -> list[tuple[int, float, list[SearchQuery]]]:
        """Return (number of the part, weight, what it searches)."""
        weights = self._fusion.weights or (1.0,) * len(self._fusion.parts)
        runs = []
        for part, (weight, word) in enumerate(zip(weights, self._fusion.searched, strict=True)):
            words = ("original", "expanded") if word == "both" and any(q.expanded for q in queries) else (word,)
            runs += [(part, weight / len(words), [_asked(query, one) for query in queries]) for one in words]
        return runs


def _asked(search: SearchQuery, word: str) -> SearchQuery:
    if word == "original" or not search.expanded:
        return SearchQuery(search.query)
    if word == "generated" and search.generated:
        return SearchQuery(search.query, search.generated, "alone")
    return search


def _best(
    worth: Mapping[int, float], k: int, ranks: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    rows = np.fromiter(worth, np.int32, len(worth))
    scores = np.fromiter(worth.values(), np.float64, len(worth)).astype(np.float32)
    kept = best(scores, k, ranks[rows])
    return rows[kept], scores[kept]
