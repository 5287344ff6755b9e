"""What is served: one corpus and what searches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r2med.errors import UserError
from r2med.serve.messages import Hit

if TYPE_CHECKING:
    from r2med.data.corpus import Corpus
    from r2med.data.model import Dataset
    from r2med.retrieve.contracts import Searcher
    from r2med.setup import Setup
    from r2med.store import Store


@dataclass(frozen=True)
class Shelf:
    """A corpus by its name, and a searcher over it by its own."""

    dataset: str
    corpus: Corpus
    retriever: str
    searcher: Searcher

    def find(self, texts: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the k best documents of each text, best first; nothing is left out for anybody."""
        from r2med.data.model import Query
        from r2med.retrieve.contracts import SearchQuery
        from r2med.retrieve.run import NO_DOCUMENT

        run = self.searcher.search([SearchQuery(Query(str(i), text)) for i, text in enumerate(texts)], k)
        places = run.rows[run.rows != NO_DOCUMENT]  # all at once: Arrow finds many documents as fast as one
        ids, found = iter(self.corpus.ids(places)), iter(self.corpus.texts(places))
        return [
            [Hit(next(ids), next(found), score) for score in scores[:count].tolist()]
            for scores, count in zip(run.scores, run.found, strict=True)
        ]


def open_shelf(dataset: Dataset, spec: str, options: Setup, store: Store) -> Shelf:
    """Index a dataset's corpus, or open its index, and load what searches it, ready for the first question."""
    from r2med.retrieve.live import live
    from r2med.retrieve.registry import build
    from r2med.spec import parse_stage

    retriever = build(parse_stage(_only_retriever(spec)), options)
    instruction = dataset.card.instruction if dataset.card else None
    searcher = live(retriever.index(dataset.corpus, store, instruction))
    shelf = Shelf(dataset.name, dataset.corpus, retriever.name, searcher)
    shelf.find(["warm up"], 1)  # weights are loaded with the first text: now, and not at a client's expense
    return shelf


def _only_retriever(spec: str) -> str:
    """Return a spec of one stage that can search; anything before or after it needs more than a question."""
    from r2med.expand.registry import KNOWN
    from r2med.spec import parse

    stages = parse(spec)
    if len(stages) > 1:
        raise UserError(f"{spec!r} has {len(stages)} stages: serve takes a retriever alone, such as bm25+minilm")
    if (name := stages[0][0].name) in KNOWN:
        raise UserError(f"{name} is an expansion: serve takes a retriever alone, such as bm25+minilm")
    return spec
