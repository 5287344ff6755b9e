"""Find the option that an answer to a multiple choice states as its choice, by its letter or its text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from r2med.assessment.answers.answer_options import LETTERS

SHORT = 3
"""Options of so few characters, such as "no", are also words of other sentences. "There is no fever" chooses none."""
CLAUSE = 200
"""Number of characters before a statement that are searched for words that take it back."""

_EMPHASIS = re.compile(r"[*_`]+")
_AND = r"(?:\s*[,/&]\s*|\s+(?:and|or|und|oder|et|ou)\s+)"
_ARTICLE = r"(?:(?:an?|the|eine?n?|der|die|das|une?|la|le|el)\s+)?"
_LETTER = r"(?:[Oo]ption\s+[A-Za-z]|[(\[\"'“‘]?[A-Z])[)\]\"'”’]?(?!\w)"
_LETTERS = rf"{_LETTER}(?:{_AND}{_LETTER}){{0,{len(LETTERS)}}}"
_IS = r"(?:is|ist|est|es|would be|must be|should be)"
_LIKELY = r"(?:(?:most likely|most probably|likely|probably|clearly|therefore)\s+)?"
_NOUN = r"(?i:answer|choice|option|diagnosis|antwort|lösung|diagnose|réponse|respuesta)"

_INTRODUCTIONS = (
    # "The answer is", "The most likely diagnosis is probably", "Final answer:"
    rf"\b{_NOUN}\b(?:[^.:;,\n]{{0,40}}?\s{_IS}\b\s*:?|\s*:|\s+-)\s*{_LIKELY}",
    rf"(?m:^){_NOUN}\s+",
    r"\b(?i:I|I['’]d|I['’]ll|we)\s+(?:would\s+|will\s+)?(?:choose|pick|select|go with|went with|chose)\s+",
    r"\b(?i:ich)\s+(?:wähle|nehme)\s+",
)
_PRAISE = r"\s+(?:is|seems)\s+(?:the\s+)?(?:most likely|most probable|correct|right|best)\b"
"""What stands behind an option that is chosen: "Option E is correct"."""
_DOUBT = re.compile(r"(?:\b(?:not|nicht|whether|ob|if|might|doubt)\b|n['’]t\b)[^.,:;!?\n]*$", re.IGNORECASE)
"""Words before a statement in its clause that take it back: "I do not think that the answer is B"."""


def stated_option(text: str, options: Sequence[str]) -> int | None:
    """Return the number of the option that an answer states as its choice; None if it states none or several.

    The first of these places that names an option decides: the whole answer, a sentence such as "The answer is B", the
    start of the answer. Last comes an option behind "is", if the answer names no other option.
    """
    plain = _EMPHASIS.sub("", text).strip()
    for read in (_whole, _introduced, _at_start, _only_named):
        if found := read(plain, options):
            return found.pop() if len(found) == 1 else None
    return None


def _whole(text: str, options: Sequence[str]) -> set[int]:
    """Return the options that are the whole answer: "(c)", "Gout"."""
    bare = text.strip(" .()[]:\"'")
    if len(bare) == 1:
        return _numbers(bare.upper(), options)
    return {number for number, option in enumerate(options) if _folded(option) in (_folded(text), _folded(bare))}


def _introduced(text: str, options: Sequence[str]) -> set[int]:
    """Return the options that a sentence calls the answer: "The answer is B", "I choose gout", "B is correct"."""
    named = rf"(?P<option>{_option_pattern(options, shortest=2)}|{_LETTERS})"
    patterns = [rf"{introduction}{_ARTICLE}{named}" for introduction in _INTRODUCTIONS]
    patterns.append(rf"(?:^|[.,:;!?\n]|\b(?:but|so|and))\s*(?P<option>{_LETTERS}){_PRAISE}")
    return set().union(*(_stated(pattern, text, options) for pattern in patterns))


def _at_start(text: str, options: Sequence[str]) -> set[int]:
    """Return the options that an answer begins with: "B. Because …", "Gout, since …". A list of all states none."""
    listed = [LETTERS.index(letter) for letter in re.findall(r"(?m)^\s*[(\[]?([A-Z])[.):\]]", text)]
    if listed == [*range(len(options))]:
        return set()
    named = _option_pattern(options, shortest=2)
    option = named if re.match(named, text) else _LETTERS  # "C. difficile" can be an option
    match = re.match(rf"(?P<option>{option})(?=\s*(?:$|[.):,;\n\[(]|[-–—]\s))", text)
    return _numbers(match["option"], options) if match else set()


def _only_named(text: str, options: Sequence[str]) -> set[int]:
    """Return the option that follows "is", if it is the only one that the answer names."""
    named = _option_pattern(options, shortest=SHORT + 1)
    if len({_folded(each) for each in re.findall(named, text)}) != 1:
        return set()
    return _stated(rf"\b{_IS}\s+{_LIKELY}{_ARTICLE}(?P<option>{named})", text, options)


def _stated(pattern: str, text: str, options: Sequence[str]) -> set[int]:
    """Return the options that a pattern finds in a text, without those that their clause takes back."""
    found: set[int] = set()
    for match in re.finditer(pattern, text):
        if not _DOUBT.search(text[max(0, match.start() - CLAUSE) : match.start()]):
            found |= _numbers(match["option"], options)
    return found


def _option_pattern(options: Sequence[str], shortest: int) -> str:
    """Return a pattern of the texts of options, the longest first, because a text can contain another."""
    texts = sorted((_folded(each) for each in options if len(each) >= shortest), key=len, reverse=True)
    words = "|".join(r"\s+".join(map(re.escape, text.split())) for text in texts) or "(?!)"
    return rf"(?i:(?<![\w-])(?<!\d[.,])(?:{words})(?!\w|-\w|[.,]\d))"


def _numbers(said: str, options: Sequence[str]) -> set[int]:
    """Return the numbers of the options that words name: the text of an option, or letters."""
    by_text = {number for number, option in enumerate(options) if len(option) > 1 and _folded(option) == _folded(said)}
    letters = re.findall(r"(?<!\w)[A-Z](?!\w)", said.upper())
    return by_text or {LETTERS.index(letter) for letter in letters if LETTERS.index(letter) < len(options)}


def _folded(text: str) -> str:
    return " ".join(text.split()).rstrip(".").lower()
