"""Find the texts of a dataset in other data, such as the training data of a model: equal, nearly equal, or in part.

MinHash finds texts that are nearly equal. A run of 13 words finds a text inside a longer one. Other data are read in
chunks, so that a large file does not fill the memory.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from r2med.assessment.audit.answer_leaks import longest_run
from r2med.data.copy_candidates import MAX_OWNERS, Numbers, RunTable, distinct_runs
from r2med.data.dataset import Dataset
from r2med.data.text_copies import CopyKind, ListedTexts, TextRows, find_copies, plain_words
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

_COPY_KINDS: tuple[CopyKind, ...] = ("equal", "near")
_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,1000}>")

SharedKind = Literal["equal", "near", "run"]
"""The same words; at least 80 % of the pairs of words; 13 or more words in a row."""
KnownKind = Literal["question", "passage", "answer", "reasoning"]
"""What a text of a dataset is. A passage is a relevant document. Reasoning is training data only, never looked for."""


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
        other, known = (_WORD.findall(_compared(text)) for text in (self.other, self.known.text))
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


def shared_texts(
    known: Sequence[KnownText], others: Iterable[OtherText], datasets: Iterable[Dataset] = ()
) -> SharedTexts:
    """Return the known texts of datasets that other data hold. What many documents of one share does not count."""
    runs = _known_runs(known, {each.name: each.corpus for each in datasets})
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


def linked_texts(
    known: Sequence[KnownText], dataset: Dataset, reasoning: Sequence[KnownText] = ()
) -> Iterator[tuple[KnownText, KnownText]]:
    """Yield pairs of texts of a dataset if an audit would find one of them in training data that contain the other.

    Reasoning is linked to known texts that it holds, and to its copies. A run of words that two of them share is no
    link, because LLMs repeat their phrases.
    """
    all_texts = [*known, *reasoning]
    texts = ListedTexts([each.text for each in all_texts])
    for copy in find_copies(texts, range(len(all_texts)), kinds=_COPY_KINDS, form=_compared, words=SHINGLE_WORDS).found:
        yield all_texts[copy.original], all_texts[copy.row]
    if known:
        chunk = [OtherText(str(number), each.text) for number, each in enumerate(all_texts)]
        for number, shared in _runs(known, _known_runs(known, {dataset.name: dataset.corpus}), chunk):
            yield known[number], all_texts[int(shared.place)]


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
    copies = find_copies(texts, range(len(known)), kinds=_COPY_KINDS, form=_compared, words=SHINGLE_WORDS)
    found = []
    for number, each in enumerate(known):
        for copy in copies.of(number):
            if copy.row >= len(known):
                other = chunk[copy.row - len(known)]
                kind: SharedKind = "equal" if copy.kind == "equal" or copy.share == 1 else "near"
                found.append((number, SharedText(each, kind, copy.share, *other)))
    return found, copies.unread


def _known_runs(known: Sequence[KnownText], corpora: Mapping[str, TextRows]) -> RunTable:
    """Return the runs of 13 words of known texts, without those that have a word of a set phrase."""
    numbers: dict[str, list[int]] = {}
    for number, each in enumerate(known):
        numbers.setdefault(each.dataset, []).append(number)
    runs = []
    for dataset, own in numbers.items():
        hashes, owners = _rare_runs([known[number].text for number in own], corpora.get(dataset, ListedTexts([])))
        runs.append((hashes, np.array(own)[owners]))
    return RunTable.of(runs, np.arange(len(known)))


def _rare_runs(texts: Sequence[str], corpus: TextRows) -> tuple[Hashes, Numbers]:
    """Return the runs of texts of one dataset. A set phrase is a run that many of them, or of its documents, have."""
    parts = [(hashes, owners + start) for start, (hashes, owners) in _hashed(ListedTexts(texts).text_blocks())]
    hashes, owners = (np.concatenate(part) for part in zip(*parts, strict=True))
    known, own = np.unique(distinct_runs(hashes, owners)[0], return_counts=True)
    if not len(known):
        return hashes, owners
    documents = np.zeros_like(own)
    for _, (others, places) in _hashed(corpus.text_blocks()):
        others = distinct_runs(others, places)[0]
        found = np.minimum(np.searchsorted(known, others), len(known) - 1)
        np.add.at(documents, found[known[found] == others], 1)
    phrases = known[np.maximum(own, documents) > MAX_OWNERS]
    seen = np.concatenate(([0], np.cumsum(np.isin(hashes, phrases))))
    first, last = (np.searchsorted(owners, owners, side) for side in ("left", "right"))
    places = np.arange(len(hashes))
    before, after = np.maximum(first, places - RUN_WORDS + 1), np.minimum(last, places + RUN_WORDS)
    rare = seen[after] == seen[before]
    return distinct_runs(hashes[rare], owners[rare])


def _runs(known: Sequence[KnownText], table: RunTable, chunk: Sequence[OtherText]) -> Iterator[Found]:
    for start, runs in _hashed(ListedTexts([other.text for other in chunk]).text_blocks()):
        for place, number, count in zip(*(each.tolist() for each in table.counts(*distinct_runs(*runs))), strict=True):
            share = count / max(1, int(table.sizes[number]))
            yield number, SharedText(known[number], "run", share, *chunk[start + place])


def _hashed(blocks: Iterable[tuple[int, Sequence[str]]]) -> Iterator[tuple[int, tuple[Hashes, Numbers]]]:
    """Yield the first row of each block of texts, and the runs of 13 words of the block, one text after the other."""
    yield from map_threads(
        lambda block: (block[0], Shingles.of(list(map(_compared, block[1])), RUN_WORDS).runs()), blocks
    )


def _compared(text: str) -> str:
    """Return the words of a text as they are compared: without tags and entities of HTML."""
    return plain_words(html.unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text)
