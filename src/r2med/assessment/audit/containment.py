"""Find the texts of a dataset in other data, such as the training data of a model: equal, nearly equal, or in part.

MinHash finds texts that are nearly equal. A run of 13 words finds a text inside a longer one. Other data are read in
chunks, so that a large file does not fill the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from r2med.assessment.audit.answer_leaks import longest_run
from r2med.data.copy_candidates import Numbers, RunTable, all_runs
from r2med.data.dataset import Dataset
from r2med.data.text_copies import CopyKind, ListedTexts, find_copies, plain_words
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.store.files import text_digest
from r2med.foundation.text.minhash import Hashes, Shingles
from r2med.foundation.text.word_counts import count_words

RUN_WORDS = 13
"""Number of words in a row that two texts share hardly ever by chance, as in the papers about contamination."""
SHINGLE_WORDS = 2
"""Number of words in a shingle for MinHash. Questions are short."""
MIN_ANSWER_WORDS = 5
"""Number of words of an answer that is looked for. A shorter one, such as gout, is in any medical text."""
TEXTS_PER_CHUNK = 32_768
TEXTS_PER_BLOCK = 1024

_WORD = re.compile(r"[^\W_]+")

SharedKind = Literal["equal", "near", "run"]
"""The same words; at least 80 % of the pairs of words; 13 or more words in a row."""
KnownKind = Literal["question", "passage", "answer"]
"""What a text of a dataset is. A passage is a relevant document."""


class OtherText(NamedTuple):
    """A text of other data, and where it is."""

    place: str
    text: str


@dataclass(frozen=True)
class KnownText:
    """A text of a dataset that other data should not hold."""

    dataset: str
    kind: KnownKind
    id: str
    """The id of the query or of the document."""
    queries: tuple[str, ...]
    """The queries that the text belongs to."""
    text: str


@dataclass(frozen=True)
class SharedText:
    """A text of a dataset that other data hold."""

    known: KnownText
    kind: SharedKind
    share: float
    """Share of the pairs of words, or of the runs of 13 words of the known text, that are in the other text."""
    place: str
    """Where the first such text is in the other data."""
    other: str
    """The other text."""

    @cached_property
    def words(self) -> str:
        """The words that both share: the longest run, or the whole text."""
        if self.kind != "run":
            return self.known.text
        other, known = (_WORD.findall(plain_words(text)) for text in (self.other, self.known.text))
        run = longest_run(other, known, RUN_WORDS)
        return " ".join(run) or self.known.text


@dataclass(frozen=True)
class SharedTexts:
    """All texts of datasets that other data hold, each once, by the closest copy."""

    found: tuple[SharedText, ...]
    read: int
    """Number of different texts in the other data."""
    unread: int = 0
    """Least number of pairs of similar texts that were not compared, because there were too many."""


def known_texts(dataset: Dataset, queries: Iterable[str] | None = None) -> list[KnownText]:
    """Return the questions, the longer answers and the relevant documents of a dataset, or of some of its queries."""
    wanted = {query.id for query in dataset.queries} if queries is None else set(queries)
    asked = [query for query in dataset.queries if query.id in wanted]
    known = [KnownText(dataset.name, "question", each.id, (each.id,), each.text) for each in asked if each.text.strip()]
    known += [
        KnownText(dataset.name, "answer", each.id, (each.id,), each.answer)
        for each in asked
        if count_words(each.answer) >= MIN_ANSWER_WORDS
    ]
    owners: dict[str, list[str]] = {}
    for query, judged in dataset.qrels.items():
        for document in (name for name, grade in judged.items() if grade > 0 and query in wanted):
            owners.setdefault(document, []).append(query)
    rows = dict(zip(owners, dataset.corpus.rows(list(owners)).tolist(), strict=True))
    there = [document for document, row in rows.items() if row >= 0]
    texts = dataset.corpus.texts([rows[document] for document in there])
    return known + [
        KnownText(dataset.name, "passage", document, tuple(owners[document]), text)
        for document, text in zip(there, texts, strict=True)
        if text.strip()
    ]


def shared_texts(known: Sequence[KnownText], others: Iterable[OtherText]) -> SharedTexts:
    """Return the known texts that other data hold."""
    runs = _known_runs([each.text for each in known])
    best: dict[int, SharedText] = {}
    read = unread = 0
    distinct = _distinct(others)
    while chunk := list(islice(distinct, TEXTS_PER_CHUNK)):
        read += len(chunk)
        found, skipped = _copies(known, chunk)
        unread += skipped
        for number, shared in (*found, *_runs(known, runs, chunk)):
            if number not in best or _closeness(shared) > _closeness(best[number]):
                best[number] = shared
    return SharedTexts(tuple(best[number] for number in sorted(best)), read, unread)


def _closeness(shared: SharedText) -> tuple[bool, bool, float]:
    return shared.kind == "equal", shared.kind == "near", shared.share


def _distinct(others: Iterable[OtherText]) -> Iterator[OtherText]:
    """Yield each text once. Documents are in many rows of a training file."""
    seen: set[bytes] = set()
    for other in others:
        if (key := text_digest(other.text)[:16]) not in seen:
            seen.add(key)
            yield other


Found = tuple[int, SharedText]
"""The number of a known text, and what was found of it."""


def _copies(known: Sequence[KnownText], chunk: Sequence[OtherText]) -> tuple[list[Found], int]:
    texts = ListedTexts([*(each.text for each in known), *(other.text for other in chunk)])
    kinds: tuple[CopyKind, ...] = ("equal", "near")
    copies = find_copies(texts, range(len(known)), kinds=kinds, words=SHINGLE_WORDS)
    found = []
    for number, each in enumerate(known):
        for copy in copies.of(number):
            if copy.row >= len(known):
                other = chunk[copy.row - len(known)]
                kind: SharedKind = "equal" if copy.kind == "equal" or copy.share == 1 else "near"
                found.append((number, SharedText(each, kind, copy.share, *other)))
    return found, copies.unread


def _known_runs(texts: Sequence[str]) -> RunTable:
    """Return the runs of 13 words of known texts. Runs that many of them share are set phrases, and are left out."""
    blocks = [(start, texts[start : start + TEXTS_PER_BLOCK]) for start in range(0, len(texts), TEXTS_PER_BLOCK)]
    runs = [(hashes, owners + start) for (start, _), (hashes, owners) in zip(blocks, _hashed(blocks), strict=True)]
    return RunTable.of(runs, np.arange(len(texts)))


def _runs(known: Sequence[KnownText], table: RunTable, chunk: Sequence[OtherText]) -> Iterator[Found]:
    texts = [other.text for other in chunk]
    blocks = [(start, texts[start : start + TEXTS_PER_BLOCK]) for start in range(0, len(texts), TEXTS_PER_BLOCK)]
    for (start, _), (hashes, owners) in zip(blocks, _hashed(blocks), strict=True):
        for place, number, count in zip(*(each.tolist() for each in table.counts(hashes, owners)), strict=True):
            share = count / max(1, int(table.sizes[number]))
            yield number, SharedText(known[number], "run", share, *chunk[start + place])


def _hashed(blocks: Sequence[tuple[int, Sequence[str]]]) -> Iterator[tuple[Hashes, Numbers]]:
    """Yield the distinct runs of 13 words of each block of texts."""
    yield from map_threads(
        lambda block: all_runs(Shingles.of([plain_words(text) for text in block[1]], RUN_WORDS)), blocks
    )
