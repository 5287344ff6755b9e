"""Remarks about open answers: another language than the question, or a copy. They are shown and decide nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from unicodedata import name

from r2med.assessment.answers.citations import without_citations
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_words import AnswerRemark
from r2med.foundation.text.language_guess import guess_language
from r2med.foundation.text.sentences import sentences

MIN_COPIED_WORDS = 25
"""Minimum number of words of a copy. A shorter answer may be the reference, which a question can list."""
MIN_LANGUAGE_WORDS = 6
"""Minimum number of words whose language is guessed. Names of diseases are Latin or English in many languages."""
MIN_SCRIPT_SHARE = 0.5
"""Minimum share of letters in the script of the question."""


def remarks_on(answer: str, question: str, passages: Sequence[str]) -> tuple[AnswerRemark, ...]:
    """Return what is striking about an answer. `passages` are the texts that were read."""
    plain = without_citations(answer)
    found: dict[AnswerRemark, bool] = {
        "another language": is_other_language(plain, question),
        "copy of the question": repeats(plain, [question]),
        "copy of passages": repeats(plain, passages),
    }
    return tuple(remark for remark, true in found.items() if true)


def remark_notices(answers: Sequence[GivenAnswer]) -> Iterator[str]:
    """Yield a sentence for each remark, with the number of answers."""
    counts = Counter(remark for answer in answers for remark in answer.remarks)
    for remark, count in sorted(counts.items()):
        yield f"{count:,} of {len(answers):,} answers have the remark “{remark}”, which changes no score."


def is_other_language(answer: str, question: str) -> bool:
    """Return True if an answer is in another script or language than the question. False if that is not certain."""
    script = _script(question)
    letters = [letter for letter in answer if letter.isalpha()]
    if script and letters:
        same = sum(name(letter, "").startswith(script) for letter in letters)
        if same < MIN_SCRIPT_SHARE * len(letters):
            return True
    if len(answer.split()) < MIN_LANGUAGE_WORDS:
        return False
    asked, answered = guess_language([question]), guess_language([answer])
    return asked is not None and answered is not None and asked.code != answered.code


def _script(text: str) -> str:
    """Return the script of most letters of a text, as Unicode names begin; empty if there is no single script."""
    letters = [letter for letter in text if letter.isalpha()]
    for script in ("LATIN", "CYRILLIC", "ARABIC", "GREEK", "HANGUL", "HEBREW", "DEVANAGARI", "THAI"):
        if sum(name(letter, "").startswith(script) for letter in letters) > MIN_SCRIPT_SHARE * len(letters):
            return script
    return ""


def repeats(answer: str, texts: Sequence[str]) -> bool:
    """Return True if each sentence of a long answer is one of these texts."""
    stated = [_words(sentence) for sentence in sentences(answer)]
    if sum(map(len, stated)) < MIN_COPIED_WORDS:
        return False
    whole = " ".join(f" {' '.join(_words(text))} " for text in texts)
    return all(f" {' '.join(words)} " in whole for words in stated)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
