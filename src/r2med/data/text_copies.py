"""Find copies of texts: equal, nearly equal, contained in one another, or half the same.

Hashes propose pairs, and the texts themselves decide. Only hashes of the originals are in memory while the texts are
read, and the texts of a few blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol
from unicodedata import category, normalize

import numpy as np

from r2med.data.copy_candidates import BandTable, Numbers, RunTable, sampled_runs, sharing
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.store.files import text_digest
from r2med.foundation.text.minhash import PERMUTATIONS, Shingles, jaccard, rows_per_band

CopyKind = Literal["equal", "near", "contained", "half"]
"""Equal in the chosen form; nearly equal; all or half of the shorter text is in the other."""

EQUAL_COPIES: tuple[CopyKind, ...] = ("equal",)

THRESHOLD = 0.8
"""Share of common shingles from which a text is nearly equal."""
SHINGLE_WORDS = 3
CONTAINED_SHARE = 0.9
"""Share of the shorter text's shingles from which it is contained in the other. A changed word touches three."""
HALF_SHARE = 0.45
"""Share from which half of the shorter text is in the other: runs across the border of the half are not in common."""
MIN_COMMON = 20
"""Smallest number of common shingles of texts that are contained or half the same. Fewer may be a set phrase."""
MAX_CANDIDATES = 100_000
"""Largest number of pairs that are compared. It bounds the time on texts that are all alike."""
MAX_COPIES = 1000
"""Largest number of copies of one text that are kept. It bounds the memory on texts that are all equal."""
PAIRS_PER_BLOCK = 1024
MAX_CHARACTERS = 100_000
"""Number of characters of a text that are compared with originals, so that one huge text does not fill the memory."""


class _PlainCharacters(dict[int, str]):
    """Characters -> how they are compared. Each is looked up once."""

    def __missing__(self, code: int) -> str:
        match category(chr(code)):
            case "Cf":  # nobody sees it: a soft hyphen, a space without width
                plain = ""
            case "Pd":
                plain = "-"
            case "Pc" | "Pe" | "Pf" | "Pi" | "Po" | "Ps" if code > 127:
                plain = " "
            case _:
                plain = chr(code)
        self[code] = plain
        return plain


_PLAIN = _PlainCharacters(
    str.maketrans(
        dict(
            zip(
                "авсеһіјкмнорԛѕтԝхуАВСЕНІЈКМОРЅТХУαενορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
                "abcehijkmhopqstwxyABCEHIJKMOPSTXYaevoptuxABEZHIKMNOPTYX",
                strict=True,
            )
        )
    )
)
"""Cyrillic and Greek letters are the Latin letters that look like them. Dashes are alike, other marks are blanks."""

Form = Callable[[str], str]


def as_written(text: str) -> str:
    """Return a text as it is, so that only the same characters are equal."""
    return text


def spaced(text: str) -> str:
    """Return a text with single spaces between words."""
    return " ".join(text.split())


def plain_words(text: str) -> str:
    """Return a text without its case, its white space and what nobody sees, in the Latin letters that it looks like."""
    plain = text if text.isascii() else normalize("NFKC", text).translate(_PLAIN)
    return spaced(plain.casefold())


class TextRows(Protocol):
    """Texts by row number, such as a corpus."""

    def texts(self, rows: Sequence[int]) -> Sequence[str]:
        """Return the texts of rows."""

    def text_blocks(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield (first row, texts) of consecutive ranges of all rows."""


@dataclass(frozen=True)
class ListedTexts:
    """Texts in memory."""

    listed: Sequence[str]

    def texts(self, rows: Sequence[int]) -> Sequence[str]:
        """Return the texts of rows."""
        return [self.listed[row] for row in rows]

    def text_blocks(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield all texts as blocks of some texts each."""
        for start in range(0, len(self.listed), PAIRS_PER_BLOCK):
            yield start, self.listed[start : start + PAIRS_PER_BLOCK]


@dataclass(frozen=True)
class TextCopy:
    """A text that repeats an original."""

    row: int
    original: int
    """The row of the original. Of equal originals, it is the first one."""
    kind: CopyKind = "equal"
    share: float = 1.0
    """Share of common shingles; for contained and half copies, the share of those of the shorter text."""


@dataclass(frozen=True)
class TextCopies:
    """All copies that were found."""

    found: Sequence[TextCopy]
    unread: int = 0
    """Least number of candidates that were not compared, because there were more than `MAX_CANDIDATES`."""

    @cached_property
    def first(self) -> Mapping[int, int]:
        """Row -> the original that it equals."""
        return {copy.row: copy.original for copy in self.found if copy.kind == "equal"}

    @cached_property
    def _groups(self) -> Mapping[int, Sequence[TextCopy]]:
        groups: dict[int, list[TextCopy]] = {}
        for copy in self.found:
            groups.setdefault(copy.original, []).append(copy)
        return groups

    def of(self, row: int) -> Iterator[TextCopy]:
        """Yield the copies of an original. Of several equal originals, each is a copy of the others."""
        first = self.first.get(row, row)
        if first != row:
            yield TextCopy(first, row)
        yield from (copy for copy in self._groups.get(first, ()) if copy.row != row)


def find_copies(
    texts: TextRows,
    originals: Iterable[int] | None = None,
    *,
    kinds: Collection[CopyKind] = EQUAL_COPIES,
    form: Form = plain_words,
    threshold: float = THRESHOLD,
    words: int = SHINGLE_WORDS,
) -> TextCopies:
    """Find copies of texts in the form in which they are compared.

    With `originals`, all texts are compared with these rows, and at most `MAX_COPIES` of each are returned. Without
    them, a text is a copy if it is equal or nearly equal to an earlier text that is not a copy itself.
    """
    finder = _CopyFinder(texts, kinds, form, threshold, words)
    if originals is not None:
        return finder.copies_of(sorted(set(originals)))
    return TextCopies(list(finder.near_repeats() if "near" in kinds else finder.repeats()))


def repeats(text: str, other: str) -> bool:
    """Return True if half of the shorter of two texts stands in the other, word by word. Form does not matter."""
    one, two = (_words_in_a_row(each) for each in (text, other))
    return len(one & two) >= HALF_SHARE * max(1, min(len(one), len(two)))


def _words_in_a_row(text: str) -> set[tuple[str, ...]]:
    words = plain_words(text).split()
    return {tuple(words[at : at + SHINGLE_WORDS]) for at in range(max(1, len(words) - SHINGLE_WORDS + 1))}


Digest = bytes
CandidatePair = tuple[int, int, bool]
"""Row, original, and True if they share rare runs of words, so that one may be part of the other."""


@dataclass(frozen=True)
class _Originals:
    """What is known about originals. Equal texts are listed once, by their first row."""

    of_digest: Mapping[Digest, int]
    tables: Sequence[BandTable | RunTable]


@dataclass
class _CopyBlock:
    """What one block of texts holds: equal copies, and what to compare."""

    equal: list[TextCopy]
    pairs: list[CandidatePair] = field(default_factory=list)


@dataclass(frozen=True)
class _CopyFinder:
    texts: TextRows
    kinds: Collection[CopyKind]
    form: Form
    threshold: float
    words: int

    def repeats(self) -> Iterator[TextCopy]:
        """Yield the texts that equal an earlier one."""
        first: dict[Digest, int] = {}
        for start, block in self.texts.text_blocks():
            for row, text in enumerate(block, start):
                if (original := first.setdefault(_digest(self.form(text)), row)) != row:
                    yield TextCopy(row, original)

    # All texts with earlier ones. The keys of bands are on disk and are sorted one band at a time, so memory is a few
    # dozen bytes per text.

    def near_repeats(self) -> Iterator[TextCopy]:
        """Yield the texts that equal or nearly equal an earlier text that is not a copy itself."""
        originals: dict[int, int] = {}
        pairs = self._pairs()
        for start in range(0, len(pairs), PAIRS_PER_BLOCK):
            block = pairs[start : start + PAIRS_PER_BLOCK]
            compared = self._compared(np.unique(block).tolist())
            for row, earlier in block.tolist():
                if row in originals:
                    continue
                kept = originals.get(earlier, earlier)  # it may be less like this text than the earlier one
                if kept not in compared:
                    compared |= self._compared([kept])
                (text, shingles), (other, others) = compared[row], compared[kept]
                likeness = jaccard(shingles, others)
                if text == other or likeness >= self.threshold:
                    originals[row] = kept
                    yield TextCopy(row, kept) if text == other else TextCopy(row, kept, "near", likeness)

    def _compared(self, rows: Sequence[int]) -> dict[int, tuple[str, set[int]]]:
        texts = list(map(self.form, self.texts.texts(rows)))
        return dict(zip(rows, zip(texts, Shingles.of(texts, self.words).sets(), strict=True), strict=True))

    def _pairs(self) -> Numbers:
        """Return the pairs of rows (later, earlier) that share a band, in the order of the later row."""
        per_band = rows_per_band(self.threshold)
        pairs = np.empty(0, dtype=np.int64)
        with TemporaryDirectory() as scratch, ExitStack() as stack:
            paths = [Path(scratch) / str(band) for band in range(PERMUTATIONS // per_band)]
            files = [stack.enter_context(path.open("wb")) for path in paths]
            blocks = map_threads(lambda each: self._shingles(each[1]).band_keys(per_band), self.texts.text_blocks())
            for keys in blocks:
                for file, band in zip(files, keys, strict=True):
                    file.write(band.tobytes())
            for file, path in zip(files, paths, strict=True):
                file.close()
                pairs = np.union1d(pairs, sharing(np.fromfile(path, dtype=np.uint64)))
        return np.column_stack((pairs >> 32, pairs & 0xFFFFFFFF))

    def _shingles(self, texts: Sequence[str], limit: int | None = None) -> Shingles:
        return Shingles.of([self.form(text)[:limit] for text in texts], self.words)

    # All texts with originals.

    def copies_of(self, rows: Sequence[int]) -> TextCopies:
        """Return the copies of originals."""
        originals = self._originals(rows)
        found: dict[int, list[TextCopy]] = {}
        pairs: list[CandidatePair] = []
        unread = 0
        for block in map_threads(lambda each: self._read(*each, originals), self.texts.text_blocks()):
            for copy in block.equal:
                _keep(copy, found)
            room = MAX_CANDIDATES - len(pairs)
            pairs += block.pairs[:room]
            unread += max(0, len(block.pairs) - room)
        for start in range(0, len(pairs), PAIRS_PER_BLOCK):
            for copy in self._verified(pairs[start : start + PAIRS_PER_BLOCK]):
                _keep(copy, found)
        return TextCopies([copy for copies in found.values() for copy in copies], unread)

    def _originals(self, rows: Sequence[int]) -> _Originals:
        of_digest: dict[Digest, int] = {}
        per_band = rows_per_band(self.threshold)
        keys, runs = [np.empty((PERMUTATIONS // per_band, 0), np.uint64)], []
        owners: list[int] = []
        for start in range(0, len(rows), PAIRS_PER_BLOCK):
            block = rows[start : start + PAIRS_PER_BLOCK]
            new = {}
            for row, text in zip(block, map(self.form, self.texts.texts(block)), strict=True):
                is_first = of_digest.setdefault(_digest(text), row) == row
                if is_first and any(map(str.isalnum, text)):  # texts without a word are all alike
                    new[row] = text[:MAX_CHARACTERS]
            if new and set(self.kinds) != {"equal"}:
                shingles = Shingles.of(list(new.values()), self.words)
                keys.append(shingles.band_keys(per_band))
                hashes, texts = sampled_runs(shingles)
                runs.append((hashes, texts + len(owners)))
                owners += new
        numbers = np.array(owners, dtype=np.int64)
        tables: list[BandTable | RunTable] = []
        if "near" in self.kinds and owners:
            tables.append(BandTable.of(np.hstack(keys), numbers, per_band))
        if not {"contained", "half"}.isdisjoint(self.kinds) and owners:
            tables.append(RunTable.of(runs, numbers))
        return _Originals(of_digest, tables)

    def _read(self, start: int, texts: Sequence[str], originals: _Originals) -> _CopyBlock:
        """Return what one block of texts holds."""
        formed = list(map(self.form, texts))
        owners = [originals.of_digest.get(_digest(text), -1) for text in formed]
        equal = [TextCopy(row, owner) for row, owner in enumerate(owners, start) if owner not in (-1, row)]
        if not originals.tables:
            return _CopyBlock(equal)
        shingles = Shingles.of([text[:MAX_CHARACTERS] for text in formed], self.words)
        proposed: dict[tuple[int, int], bool] = {}
        for table in originals.tables:
            others = (pair for pair in table.pairs(shingles) if pair[1] not in (start + pair[0], owners[pair[0]]))
            for place, owner in islice(others, MAX_CANDIDATES + 1):
                proposed[start + place, owner] = isinstance(table, RunTable)
        return _CopyBlock(equal, [(row, owner, in_part) for (row, owner), in_part in proposed.items()])

    def _verified(self, pairs: Sequence[CandidatePair]) -> Iterator[TextCopy]:
        """Yield the copies among pairs, after comparing their texts."""
        rows = sorted({row for pair in pairs for row in pair[:2]})
        shingles = self._shingles(self.texts.texts(rows), MAX_CHARACTERS)
        sets = dict(zip(rows, shingles.sets(), strict=True))
        for row, original, in_part in pairs:
            likeness = jaccard(sets[row], sets[original])
            if likeness >= self.threshold:
                if "near" in self.kinds:
                    yield TextCopy(row, original, "near", likeness)
                continue
            common = len(sets[row] & sets[original])
            share = common / min(len(sets[row]), len(sets[original]))
            kind: CopyKind = "contained" if share >= CONTAINED_SHARE else "half"
            if in_part and kind in self.kinds and share >= HALF_SHARE and common >= MIN_COMMON:
                yield TextCopy(row, original, kind, share)


def _keep(copy: TextCopy, found: dict[int, list[TextCopy]]) -> None:
    copies = found.setdefault(copy.original, [])
    if len(copies) < MAX_COPIES:
        copies.append(copy)


def _digest(text: str) -> Digest:
    return text_digest(text)[:16]
