"""A corpus and the retriever that searches it: what the server serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r2med.core.errors import UserError

if TYPE_CHECKING:
    from r2med.agents.conversation import Hit
    from r2med.core.stages import Stage
    from r2med.data.corpus import Corpus
    from r2med.data.dataset import Dataset
    from r2med.retrieve.retriever import Searcher
    from r2med.runtime.runtime import Runtime
    from r2med.store import Store
    from r2med.system.system import LiveSystem


@dataclass(frozen=True)
class ServedCorpus:
    """A corpus by the name of its dataset, and a searcher over it by the name of its retriever."""

    dataset: str
    corpus: Corpus
    retriever: str
    searcher: Searcher

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return the k best documents of each query, best first; no document is excluded for any query."""
        from r2med.agents.sources import hits_of
        from r2med.data.dataset import Query
        from r2med.retrieve.retriever import SearchQuery

        asked = [SearchQuery(Query(str(i), text)) for i, text in enumerate(queries)]
        return hits_of(self.searcher.search(asked, k).run, self.corpus)


def open_served_corpus(dataset: Dataset, spec: str | Stage, runtime: Runtime, store: Store) -> ServedCorpus:
    """Index a dataset's corpus, or open its index, and load the models that search it; once for each live store.

    Raises UserError if the spec is not a single retriever.
    """
    from r2med.core.stages import Stage
    from r2med.retrieve.retriever import live_searcher

    stage = spec if isinstance(spec, Stage) else _only_retriever(spec)
    searcher = live_searcher(stage.bind(runtime), dataset, store.with_policy("live"))
    served = ServedCorpus(dataset.name, dataset.corpus, str(stage), searcher)
    served.search(["warm up"], 1)  # weights are loaded with the first text: now, and not at a client's expense
    return served


def open_served(
    dataset: Dataset, specs: Sequence[str], retriever: str, runtime: Runtime, store: Store
) -> tuple[ServedCorpus, tuple[LiveSystem, ...]]:
    """Return the corpus, and the systems of the specs for questions; what they share is opened once.

    Without a retriever the first system's searches the corpus, else BM25. It stands among the systems in any case, as
    what the others can be compared with.
    """
    from r2med.system.system import System

    systems = [System.parse(spec, runtime) for spec in specs]
    stage = systems[0].retriever if systems and not retriever else _only_retriever(retriever or "bm25")
    served = open_served_corpus(dataset, stage, runtime, store)
    named = {system.name: system for system in (*systems, System(stage, runtime=runtime))}
    return served, tuple(system.live(dataset, store) for system in named.values())


def _only_retriever(spec: str) -> Stage:
    """Return the stage of a spec that is one retriever; a stage before or after it needs more than a query."""
    from r2med.core.spec import parse
    from r2med.core.stages import names, retriever

    stages = parse(spec)
    if len(stages) > 1:
        raise UserError(f"{spec!r} has {len(stages)} stages: serve takes a retriever alone, such as bm25+minilm")
    if (name := stages[0][0].name) in names("expand"):
        raise UserError(f"{name} is an expansion: serve takes a retriever alone, such as bm25+minilm")
    return retriever(stages[0])
