"""The data of the explorer: the rankings of each system for each query of a dataset, and the texts.

Each dataset has several files, which a page loads when it needs them: an index of the queries, a file per system with
the top of its rankings, a file per query with the texts of all shown documents, the traces of agents, and the answers
of readers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from r2med.data import Dataset
from r2med.data.runs.trec import WrittenRun
from r2med.data.text_copies import as_written, find_copies
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.search_language import recorded_language
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord, with_rankings
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.text.highlight import Words, around
from r2med.publication.site.answer_texts import answer_files
from r2med.publication.site.board_labels import Said
from r2med.publication.site.word_forms import BLANKS, Mask, WordForms
from r2med.systems.retrieve.bm25.chunks import EDGE_MARKS

log = logging.getLogger("r2med")

DEPTH = 20
"""Number of documents of a ranking that are shown."""

SHOWN = 1_500
"""Number of characters of a document that are shown. A longer document is cut around its best window."""

RELEVANT_SHOWN = 6_000
"""Number of characters of a relevant document that are shown. People want to read more of it."""

_BARE = "no text was generated, so the query was searched unchanged"
_FOUND = "it ended early, so the documents of its searches were ranked"
_PARTLY = "some of its texts could not be generated"
_STAYED = "calls failed, so their documents kept their ranks"

_BLANK = " \t\n\v\f\r"


def copies_of_relevant(dataset: Dataset) -> dict[str, list[str]]:
    """Return relevant document -> other documents with the same text, for documents that have such copies."""
    corpus = dataset.corpus
    relevant = sorted({d for grades in dataset.qrels.values() for d, grade in grades.items() if grade > 0})
    rows = {document: row for document, row in zip(relevant, corpus.rows(relevant).tolist(), strict=True) if row >= 0}
    copies = find_copies(corpus, rows.values(), form=as_written)
    found = {document: sorted(copy.row for copy in copies.of(row)) for document, row in rows.items()}
    return {document: corpus.ids(others) for document, others in found.items() if others}


def ranks_with_copies(
    run: WrittenRun, query: str, relevant: Iterable[str], copies: Mapping[str, list[str]]
) -> list[int] | None:
    """Return the ranks of relevant documents if copies of their texts count too. 0 means not retrieved.

    A copy counts for only one document. Returns None if no rank changes.
    """
    documents = list(relevant)
    if not any(document in copies for document in documents):
        return None
    before = [run.rank(query, document) for document in documents]
    after, used = list(before), set(documents)
    for position, document in enumerate(documents):
        ranks = {o: rank for o in copies.get(document, ()) if o not in used and (rank := run.rank(query, o))}
        if ranks:
            best = min(ranks, key=ranks.__getitem__)
            if not after[position] or ranks[best] < after[position]:
                after[position] = ranks[best]
                used.add(best)
    return after if after != before else None


@dataclass(frozen=True)
class Rankings:
    """The rankings, texts and failures of one system on one dataset, by query id."""

    top: Mapping[str, list[tuple[str, float]]]
    with_copies: Mapping[str, list[int]]
    """The ranks of the relevant documents if copies of their texts count, for queries where this differs."""
    generated: Mapping[str, list[str]]
    traces: Mapping[str, list[Any]]
    failures: Mapping[str, str]
    """Query -> what failed, for queries with failures."""


def explorer_files(
    collection: RecordCollection,
    names: Sequence[str],
    datasets: Mapping[str, Dataset],
    said: Mapping[str, Said] | None = None,
    answers: Iterable[StoredRecord] = (),
) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of all data files. Numbers of systems and datasets are positions in `collection` and `names`.

    Records without a run file and datasets without texts on this machine are left out. `said` is who labelled the
    documents of a dataset with overlays. `answers` are the answer records of all datasets. Raises UserError if a run
    file does not match its record.
    """
    cells = {name: _cells(collection, name) for name in names if name in datasets}
    numbers = [number for number, name in enumerate(names) if cells.get(name)]
    listed = [{"dataset": number, "systems": list(cells[names[number]])} for number in numbers]
    yield "explorer/index", {"datasets": listed}
    for number in numbers:
        name = names[number]
        here = [each for each in answers if each.record.dataset.name == name]
        yield from dataset_files(datasets[name], cells[name], f"explorer/{number}", (said or {}).get(name, {}), here)


def _cells(collection: RecordCollection, dataset: str) -> dict[int, StoredRecord]:
    ranked = with_rankings(collection.on([dataset]))
    return {number: kept for number, system in enumerate(collection.systems) if (kept := ranked.cell(system, dataset))}


def dataset_files(
    dataset: Dataset,
    cells: Mapping[int, StoredRecord],
    folder: str,
    said: Said,
    answers: Sequence[StoredRecord] = (),
) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the data files of a dataset. `cells` are number of a system -> its record with a run."""
    judged = {q.id: {d: g for d, g in dataset.qrels.get(q.id, {}).items() if g > 0} for q in dataset.queries}
    copies = copies_of_relevant(dataset)
    read = partial(_read, queries=list(judged), relevant=judged, copies=copies)
    systems = dict(zip(cells, map_threads(read, cells.values()), strict=True))
    shown = {query: _shown(relevant, query, systems.values()) for query, relevant in judged.items()}
    yield (
        f"{folder}/index",
        {
            "queries": [
                {"id": q.id, "text": q.text, "answer": q.answer, "body": q.body_system} for q in dataset.queries
            ],
            "systems": list(systems),
            "edges": EDGE_MARKS,
            "blanks": BLANKS,
        },
    )
    for number, rankings in systems.items():
        yield f"{folder}/s{number}", _system_file(rankings, shown)
        for position, query in enumerate(judged):
            if query in rankings.traces:
                known = {"relevant": list(judged[query])}
                yield f"{folder}/t{number}-{position}", [{**trace, **known} for trace in rankings.traces[query]]
    language = recorded_language(kept.record.settings for kept in cells.values())
    yield from _query_files(dataset, shown, systems, copies, folder, language, said)
    if answers:
        by_system = {
            number: own
            for number, kept in cells.items()
            if (own := [each for each in answers if each.record.system == kept.record.display_name])
        }
        yield from answer_files(by_system, dataset, shown, folder)


def _read(
    kept: StoredRecord, queries: Sequence[str], relevant: Mapping[str, Any], copies: Mapping[str, list[str]]
) -> Rankings:
    file = kept.run_file
    assert file is not None, "with_rankings() leaves out records without a run"
    run = WrittenRun(file, queries)
    generated, traces = _texts(kept)
    return Rankings(
        top={query: run.top(query, DEPTH) for query in queries},
        with_copies={
            query: ranks for query in queries if (ranks := ranks_with_copies(run, query, relevant[query], copies))
        },
        generated=generated,
        traces=traces,
        failures=_failures(kept.record, generated, traces),
    )


def _texts(kept: StoredRecord) -> tuple[Mapping[str, list[str]], Mapping[str, list[Any]]]:
    """Return generated texts and traces. If their file is missing, the ranking is shown without them."""
    try:
        return kept.generated(), kept.traces()
    except UserError as error:
        log.warning("not in the explorer: %s", error)
        return {}, {}


def _failures(record: Record, generated: Mapping[str, Any], traces: Mapping[str, list[Any]]) -> dict[str, str]:
    """Return query -> what failed, stage by stage. For a search agent, the reason comes from its trace."""
    failures: dict[str, list[str]] = {}
    for stage in record.stages:
        searches = stage.stage != "rerank"
        for query, kinds in stage.failed.items():
            own = traces.get(query, ()) if searches else ()
            failed = [trace["failure"] for trace in own if trace.get("failure")]
            reason = "; ".join(f"{each['kind']}: {each['message']}" for each in failed) or kinds
            found = any(trace.get("finds") for trace in own)
            outcome = _FOUND if found else _PARTLY if query in generated else _BARE
            failures.setdefault(query, []).append(f"{stage.name}: {outcome if searches else _STAYED} ({reason})")
    return {query: "; ".join(lines) for query, lines in failures.items()}


def _shown(relevant: Iterable[str], query: str, systems: Iterable[Rankings]) -> dict[str, int]:
    """Return document -> position for the documents shown for a query. Relevant documents come first."""
    ranked = (document for rankings in systems for document, _ in rankings.top[query])
    return {document: position for position, document in enumerate(dict.fromkeys([*relevant, *ranked]))}


def _system_file(rankings: Rankings, shown: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    position = {query: number for number, query in enumerate(shown)}
    return {
        "rankings": [[shown[query][document] for document, _ in rankings.top[query]] for query in shown],
        "scores": [[float(f"{score:.6g}") for _, score in rankings.top[query]] for query in shown],
        "copies": [{"query": position[query], "ranks": ranks} for query, ranks in rankings.with_copies.items()],
        "failures": [
            {"query": position[query], "text": text} for query in shown if (text := rankings.failures.get(query))
        ],
        "traces": [position[query] for query in shown if query in rankings.traces],
    }


def _query_files(
    dataset: Dataset,
    shown: Mapping[str, Mapping[str, int]],
    systems: Mapping[int, Rankings],
    copies: Mapping[str, list[str]],
    folder: str,
    language: str,
    said: Said,
) -> Iterator[tuple[str, Any]]:
    documents = _Documents(dataset, shown, systems, language)
    for number, query in enumerate(dataset.queries):
        own = _own_generated(query.id, systems)
        words = Words.of(query.text, language=language)
        terms, generated_terms = _terms(words, own)
        telling = documents.words.matching(term for term in terms if not words.is_common(term))
        grades = dataset.qrels.get(query.id, {})
        relevant = {document: place for document, place in shown[query.id].items() if grades.get(document, 0) > 0}
        copy_of = {o: position for document, position in relevant.items() for o in copies.get(document, ())}
        yield (
            f"{folder}/q{number}",
            {
                "documents": [
                    {**cut, "grade": grades.get(document), "copy": copy_of.get(document)}
                    for document, cut in documents.cut(query.id, telling)
                ],
                "gold": len(relevant),
                "said": [
                    {"document": shown[query.id][document], "lines": lines}
                    for document, lines in said.get(query.id, {}).items()
                    if document in shown[query.id]
                ],
                "aspects": [
                    {
                        "name": name,
                        "weight": aspect.weight,
                        "documents": [relevant[document] for document in aspect.documents if document in relevant],
                    }
                    for name, aspect in dataset.aspects.get(query.id, {}).items()
                ],
                "words": len(words.query),
                "common": [number for number, term in enumerate(terms) if words.is_common(term)],
                "forms": documents.words.forms(documents.rows(query.id), terms),
                "generated": [
                    {"texts": texts, "terms": numbers, "systems": own[texts]}
                    for texts, numbers in zip(own, generated_terms, strict=True)
                ],
            },
        )


def _own_generated(query: str, systems: Mapping[int, Rankings]) -> dict[tuple[str, ...], list[int]]:
    """Return each distinct list of generated texts for a query, with the systems that searched with it."""
    own: dict[tuple[str, ...], list[int]] = {}
    for number, rankings in systems.items():
        if query in rankings.generated:
            own.setdefault(tuple(rankings.generated[query]), []).append(number)
    return own


def _terms(query: Words, generated: Iterable[Sequence[str]]) -> tuple[list[str], list[list[int]]]:
    """Return all index terms, those of the query first, and the term numbers of each generated text."""
    words = [Words.of("", texts, query.language) for texts in generated]
    terms = dict.fromkeys(sorted(query.query))
    for each in words:
        terms.update(dict.fromkeys(sorted(each.generated)))
    number_of = {term: number for number, term in enumerate(terms)}
    return list(terms), [sorted(number_of[term] for term in each.generated) for each in words]


class _Documents:
    """The texts of a dataset that the explorer shows. Each is read and analysed once."""

    def __init__(
        self,
        dataset: Dataset,
        shown: Mapping[str, Mapping[str, int]],
        systems: Mapping[int, Rankings],
        language: str,
    ) -> None:
        ids = sorted({document for documents in shown.values() for document in documents})
        rows = dataset.corpus.rows(ids)
        known = [document for document, row in zip(ids, rows, strict=True) if row >= 0]
        self._dataset = dataset
        self._shown = shown
        self._row_of = {document: row for row, document in enumerate(known)}
        self._texts = [text.strip(_BLANK) for text in dataset.corpus.texts(rows[rows >= 0])]
        self._own: dict[str, range] = {}
        for query in dataset.queries:
            first = len(self._texts)
            self._texts.append(query.text)
            self._texts += [text for own in _own_generated(query.id, systems) for text in own]
            self._own[query.id] = range(first, len(self._texts))
        self.words = WordForms(self._texts, language)

    def rows(self, query: str) -> list[int]:
        """Return the rows of the texts shown for a query: its documents, the query itself, and generated texts."""
        return [*(self._row_of[d] for d in self._shown[query] if d in self._row_of), *self._own[query]]

    def cut(self, query: str, telling: Mask) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each document with its id, its text, and the numbers of characters cut before and after the text.

        The text of a document that is not in the corpus is None.
        """
        grades = self._dataset.qrels.get(query, {})
        for document in self._shown[query]:
            row = self._row_of.get(document)
            if row is None:
                yield document, {"id": document, "text": None, "before": 0, "after": 0}
                continue
            text = self._texts[row]
            width = RELEVANT_SHOWN if grades.get(document, 0) > 0 else SHOWN
            start, stop = 0, len(text)
            if stop > width:
                start, stop = around(text, *self.words.densest(row, telling, width), width)
            cut = {"text": text[start:stop], "before": start, "after": len(text) - stop}
            yield document, {"id": document, **cut}
