"""Read a corpus once for an audit: copies of relevant documents, empty texts and faults of encoding.

Only hashes of the relevant documents are in memory while the corpus is read, and the texts of one block. Candidates for
near-copies come from MinHash, and the share of common shingles is then counted exactly.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from r2med.assessment.audit.audit_findings import MAX_EVIDENCE
from r2med.assessment.audit.encoding_faults import encoding_faults
from r2med.data.corpus import Corpus
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.text.minhash import PERMUTATIONS, Hashes, Shingles, band_keys, jaccard, rows_per_band

THRESHOLD = 0.8
"""Share of common shingles from which a text is a near-copy. The step drop-duplicates of builds uses it too."""
SHINGLE_WORDS = 3
MAX_CANDIDATES = 100_000
"""Largest number of pairs that are compared. It bounds the time on a corpus of texts that are all alike."""
MAX_COPIES = 1000
"""Largest number of copies of one text that are kept. It bounds the memory on a corpus of equal texts."""
PAIRS_PER_BLOCK = 1024
BLOCK_BYTES = 1 << 20
"""Size of the texts that a thread reads at a time. Their hashes take about twenty times as much memory."""
MAX_CHARACTERS = 100_000
"""Number of characters of a text that are compared with others, so that one huge text does not fill the memory."""

_BANDS = rows_per_band(THRESHOLD)

Digest = bytes


@dataclass(frozen=True)
class CorpusScan:
    """What one pass over a corpus found. Documents are rows of the corpus."""

    first: Mapping[int, int]
    """Relevant document -> the first relevant document with this text."""
    groups: Mapping[int, Sequence[tuple[int, float]]]
    """First relevant document of a text -> its copies, at most `MAX_COPIES`, with their shares of common shingles."""
    digests: Mapping[int, Digest]
    """Judged document -> hash of its text without case and white space. Empty texts have none."""
    empty: Sequence[int]
    """Documents without text, at most `MAX_EVIDENCE`, relevant ones always."""
    empty_count: int
    faults: Mapping[str, Sequence[tuple[int, str]]]
    """Kind of fault -> documents with an example, at most `MAX_EVIDENCE`."""
    fault_counts: Mapping[str, int]
    unread_pairs: int = 0
    """Least number of candidates that were not compared, because there were more than `MAX_CANDIDATES`."""

    def copies(self, row: int) -> Iterator[tuple[int, float]]:
        """Yield the documents with nearly the words of a relevant document, each with the share of common shingles.

        The share is 1 for a text that is equal but for case and white space.
        """
        first = self.first.get(row, row)
        if first != row:
            yield first, 1.0
        yield from (copy for copy in self.groups.get(first, ()) if copy[0] != row)


_LOOK_ALIKES = str.maketrans(
    "авсеһіјкмнорԛѕтԝхуАВСЕНІЈКМОРЅТХУαενορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abcehijkmhopqstwxyABCEHIJKMOPSTXYaevoptuxABEZHIKMNOPTYX",
)
"""Cyrillic and Greek letters -> the Latin letters that look like them."""


def plain_letters(text: str) -> str:
    """Return a text with the letters that it looks like, so that a copy in letters of another script is found."""
    return text if text.isascii() else normalize("NFKC", text).translate(_LOOK_ALIKES)


def normalised(text: str) -> str:
    """Return a text without its case and its white space between words, in plain letters."""
    return " ".join(plain_letters(text).casefold().split())


def near_pairs(texts: Sequence[str], shingle_words: int = 2) -> Iterator[tuple[int, int, float]]:
    """Yield the positions of short texts with nearly the same words, and the share of their common shingles."""
    if not texts:
        return
    plain = [plain_letters(text)[:MAX_CHARACTERS] for text in texts]
    sets = Shingles.of(plain, shingle_words).sets()
    seen: set[tuple[int, int]] = set()
    for band in band_keys(plain, shingle_words, _BANDS):
        places: dict[int, list[int]] = {}
        for place, key in enumerate(band.tolist()):
            for other in places.setdefault(key, [])[:MAX_COPIES]:
                if (other, place) not in seen and len(seen) < MAX_CANDIDATES:
                    seen.add((other, place))
                    if (share := jaccard(sets[other], sets[place])) >= THRESHOLD:
                        yield other, place, share
            places[key].append(place)


def scan_corpus(corpus: Corpus, relevant: Iterable[int], judged: Iterable[int]) -> CorpusScan:
    """Read a corpus once. `relevant` and `judged` are rows of documents."""
    targets = _Targets.of(corpus, sorted(set(relevant)))
    wanted = {*judged, *targets.rows}
    found = _Gathered()
    blocks = ((start, corpus.texts(range(start, stop))) for start, stop in corpus.stretches(BLOCK_BYTES))
    for block in map_threads(lambda each: _read(*each, targets, wanted), blocks):
        found.add(block, wanted)
    return CorpusScan(
        first=targets.first,
        groups=_verified(corpus, found),
        digests=found.digests,
        empty=found.empty,
        empty_count=found.empty_count,
        faults=found.faults,
        fault_counts=found.fault_counts,
        unread_pairs=found.unread_pairs,
    )


@dataclass(frozen=True)
class _Targets:
    """The relevant documents by the hashes of their texts. Equal texts are listed once, by their first row."""

    rows: Sequence[int]
    of_digest: Mapping[Digest, int]
    first: Mapping[int, int]
    """Relevant row -> the first relevant row with this text."""
    keys: Sequence[Hashes]
    """Sorted keys of each band."""
    owners: Sequence[npt.NDArray[np.int64]]
    """The rows that the sorted keys belong to."""

    @classmethod
    def of(cls, corpus: Corpus, rows: Sequence[int]) -> _Targets:
        of_digest: dict[Digest, int] = {}
        first: dict[int, int] = {}
        keys: list[Hashes] = []
        owners: list[int] = []
        for start in range(0, len(rows), PAIRS_PER_BLOCK):
            block = rows[start : start + PAIRS_PER_BLOCK]
            new: dict[int, str] = {}
            for row, text in zip(block, corpus.texts(block), strict=True):
                if not (words := normalised(text)):
                    continue
                first[row] = of_digest.setdefault(_digest(words), row)
                if first[row] == row:
                    new[row] = plain_letters(text)[:MAX_CHARACTERS]
            if new:
                keys.append(band_keys(list(new.values()), SHINGLE_WORDS, _BANDS))
                owners += new
        table = np.hstack(keys) if keys else np.empty((PERMUTATIONS // _BANDS, 0), np.uint64)
        orders = [np.argsort(band, kind="stable") for band in table]
        numbers = np.array(owners, dtype=np.int64)
        return cls(
            rows,
            of_digest,
            first,
            [band[order] for band, order in zip(table, orders, strict=True)],
            [numbers[order] for order in orders],
        )

    def candidates(self, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield (place of the text, relevant row) of texts that may be near-copies."""
        if not self.of_digest:
            return
        seen: set[tuple[int, int]] = set()
        table = band_keys([plain_letters(text)[:MAX_CHARACTERS] for text in texts], SHINGLE_WORDS, _BANDS)
        for band, keys, owners in zip(table, self.keys, self.owners, strict=True):
            low, high = np.searchsorted(keys, band, "left"), np.searchsorted(keys, band, "right")
            for place in np.flatnonzero(high > low).tolist():
                for owner in owners[low[place] : high[place]].tolist():
                    if (place, owner) not in seen:
                        seen.add((place, owner))
                        yield place, owner


@dataclass
class _Gathered:
    """What the blocks of a corpus hold together. Lists are bounded, counts are not."""

    equal: dict[int, list[int]] = field(default_factory=dict)
    """Relevant document -> documents with the same text, at most `MAX_COPIES`."""
    near: list[tuple[int, int]] = field(default_factory=list)
    digests: dict[int, Digest] = field(default_factory=dict)
    empty: list[int] = field(default_factory=list)
    empty_count: int = 0
    faults: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    fault_counts: Counter[str] = field(default_factory=Counter)
    unread_pairs: int = 0

    def add(self, block: _Gathered, wanted: set[int]) -> None:
        """Add what the next block holds."""
        for target, same in block.equal.items():
            copies = self.equal.setdefault(target, [])
            copies += same[: MAX_COPIES - len(copies)]
        room = MAX_CANDIDATES - len(self.near)
        self.near += block.near[:room]
        self.unread_pairs += max(0, len(block.near) - room)
        self.digests |= block.digests
        self.empty += [row for row in block.empty if row in wanted or len(self.empty) < MAX_EVIDENCE]
        self.empty_count += block.empty_count
        for kind, rows in block.faults.items():
            known = self.faults.setdefault(kind, [])
            known += rows[: MAX_EVIDENCE - len(known)]
        self.fault_counts += block.fault_counts


def _read(start: int, texts: Sequence[str], targets: _Targets, wanted: set[int]) -> _Gathered:
    """Return what one block of texts holds."""
    found = _Gathered()
    for row, text in enumerate(texts, start):
        words = normalised(text)
        if not words:
            found.empty.append(row)
            found.empty_count += 1
            continue
        digest = _digest(words)
        if row in wanted:
            found.digests[row] = digest
        if (target := targets.of_digest.get(digest, row)) != row:
            found.equal.setdefault(target, []).append(row)
        for kind, example in encoding_faults(text).items():
            found.faults.setdefault(kind, []).append((row, example))
            found.fault_counts[kind] += 1
    equal = {(row, target) for target, rows in found.equal.items() for row in rows}
    near = ((start + place, target) for place, target in targets.candidates(texts))
    wanted_pairs = (
        pair for pair in near if pair not in equal and pair[0] != pair[1] and texts[pair[0] - start].strip()
    )
    found.near = list(islice(wanted_pairs, MAX_CANDIDATES + 1))
    return found


def _verified(corpus: Corpus, found: _Gathered) -> dict[int, list[tuple[int, float]]]:
    """Return the copies of every relevant document, after comparing the candidates."""
    groups = {target: [(row, 1.0) for row in rows] for target, rows in found.equal.items()}
    for row, target, likeness in _likenesses(corpus, found.near):
        copies = groups.setdefault(target, [])
        if likeness >= THRESHOLD and len(copies) < MAX_COPIES:
            copies.append((row, likeness))
    return groups


def _likenesses(corpus: Corpus, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, float]]:
    for start in range(0, len(pairs), PAIRS_PER_BLOCK):
        block = pairs[start : start + PAIRS_PER_BLOCK]
        rows = sorted({row for pair in block for row in pair})
        texts = [plain_letters(text)[:MAX_CHARACTERS] for text in corpus.texts(rows)]
        sets = dict(zip(rows, Shingles.of(texts, SHINGLE_WORDS).sets(), strict=True))
        for row, target in block:
            yield row, target, jaccard(sets[row], sets[target])


def _digest(words: str) -> Digest:
    return hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest()
