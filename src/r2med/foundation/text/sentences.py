"""Split running text into sentences by rules for medical English.

A full stop ends a sentence unless a lower-case letter follows, or the word before it is an abbreviation, an initial or
a list number. Some abbreviations can also end a sentence ("at 3 p.m. The patient …"). Then the next word decides: it
must be a word that often starts a sentence. In doubt two sentences stay joined, because this harms a chunk less than
a sentence cut in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_POINTS_ON = frozenset(
    """dr drs mr mrs ms prof rev st fig figs eq eqs ref refs vs v approx ca cf viz e.g i.e eg ie resp incl excl est max
    vol vols pp suppl sect chap nos dept univ gen col capt lt sgt hon messrs""".split()
)
"""Abbreviations that refer to the next word, so they never end a sentence."""

_MAY_END = frozenset(
    """al etc no pt pts wk wks mo mos yr yrs hr hrs min mins sec secs temp inj tab tabs cap caps susp soln sol supp oint
    amp ung gtt vit lat med ant post sup inf dist prox bilat abd art vv nn aa mm rr lig ligg n a m r b.i.d bid tid
    qid qd qod qhs prn po iv im sc sq q.wk q.d q.h q.o.d s.c p.o i.v i.m p.r.n a.c p.c h.s hx dx rx tx sx fx bx cx sp
    spp var subsp ssp ser strep staph diag hosp lab labs exam neg pos ext int avg std dev diff pop freq assoc dis
    syn abbr inc ltd co corp jr sr esq ave blvd jan feb mar apr jun jul aug sept sep oct nov dec mon tue wed thu fri
    sat sun cm mcg tbsp tsp oz lb lbs""".split()
)
"""Abbreviations that occur within sentences and at their ends."""

_STARTERS = frozenset(
    """a after all although among an and another any as at because before both but by clinically common despite during
    each eventually examination finally first following for from further furthermore given he her here his how however
    if imaging in initial initially it its laboratory later many moreover most neither nevertheless none on once one
    other our overall patient patients physical several she since so some subsequently such that the their then there
    therefore these they this those three though thus to treatment two under unlike until upon we were what when whereas
    which while who why with within without you your""".split()
)
"""Words that often start a sentence and never a name."""

_LETTERED = frozenset(
    """appendix arm blood case category child-pugh class coenzyme cohort complex factor figure form grade group
    haemoglobin hemoglobin hepatitis immunoglobulin influenza level omega option panel part patient phase plan protein
    stage strain table type vitamin zone""".split()
)
"""Words before a single letter that is not an initial."""

_CANDIDATE = re.compile(
    r"""[.!?…]["'”’)\]»]{0,5}(?:\[[\d,;\s–-]{1,20}\]){0,9}\s+"""  # a stop, what it closes, notes such as [1,2]
    r"""|[。！？][”’」』）]{0,5}\s*|\n\s*"""
)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_WORD = re.compile(r"""["'“‘(\[«]{0,5}([^\W_]+)""")
_LONGEST_WORD = 30
_SHORT_LINE = 60
"""Maximum length of a line that its writer ended. Lines that a program wrapped are longer."""


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence without surrounding white space. All other characters are covered."""
    start = len(text) - len(text.lstrip())
    for candidate in _CANDIDATE.finditer(text, start):
        following = candidate.end()
        if following < len(text) and _ends(text, start, candidate):
            yield start, start + len(text[start:following].rstrip())
            start = following
    if end := len(text[start:].rstrip()):
        yield start, start + end


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _ends(text: str, start: int, candidate: re.Match[str]) -> bool:
    """Return True if the sentence that began at `start` ends at this candidate."""
    sign, lines = candidate[0][0], candidate[0].count("\n")
    if sign in "。！？" or lines > 1:
        return True
    next_letter = text[candidate.end()]
    if sign == "\n":
        line = candidate.start() - max(start, text.rfind("\n", start, candidate.start()) + 1)
        return line < _SHORT_LINE and not next_letter.islower()
    if next_letter.islower():
        return False
    return sign != "." or not _abbreviates(text, start, candidate)


def _abbreviates(text: str, start: int, candidate: re.Match[str]) -> bool:
    """Return True if a full stop belongs to an abbreviation before it."""
    stop, bound = candidate.start(), max(start, candidate.start() - _LONGEST_WORD)
    word = re.split(r"[\s(\[/–—]", text[bound:stop])[-1].lstrip("\"'“‘")
    begins = text[start:stop].strip() == word if stop - start <= _LONGEST_WORD else False
    lower = word.lower()
    if lower in _POINTS_ON or (begins and (word.isdigit() or lower in ("i", "ii", "iii", "iv", "v"))):
        return True
    starts = _WORD.match(text, candidate.end())
    if starts and starts[1].lower() in _STARTERS:
        return begins and len(word) == 1  # the letter of a list, as in "A. The …"
    if len(word) == 1 and word.isalpha():
        before = text[max(start, bound - _LONGEST_WORD) : stop - 1].rsplit(None, 1)
        return not before or before[-1].lower() not in _LETTERED
    return lower in _MAY_END or _DOTTED.fullmatch(word) is not None
