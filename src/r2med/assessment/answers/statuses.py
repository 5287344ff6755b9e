"""Decide what came back from a reader: an answer, a refusal, another language, or only the question."""

from __future__ import annotations

import re
from unicodedata import name

from r2med.assessment.answers.citations import without_citations
from r2med.evaluation.records.answer_words import AnswerStatus
from r2med.foundation.text.language_guess import guess_language
from r2med.foundation.text.sentences import sentences

MIN_COPIED_WORDS = 25
"""Minimum number of words of a copy. A shorter answer may be the reference, which a question can list."""
MIN_LANGUAGE_WORDS = 6
"""Minimum number of words whose language is guessed. Names of diseases are Latin or English in many languages."""
MIN_SCRIPT_SHARE = 0.5
"""Minimum share of letters in the script of the question."""

_REFUSAL = re.compile(
    r"\bI(?:['’]m| am) (?:sorry|unable|not able|not qualified)\b"
    r"|\bI (?:can(?:not|['’]t)|could(?: not|n['’]t)|won['’]t|will not|must decline|have to decline|do(?: not|n['’]t)) "
    r"(?:\w+ )?(?:answer|help|assist|provide|give|offer|diagnose|determine|comply|know|advise|respond|say)\b"
    r"|\bas an? (?:AI|artificial|language model)\b"
    r"|\b(?:no|not enough|insufficient) (?:relevant )?information\b"
    r"|\b(?:passages?|texts?|context|documents?) (?:\w+ )?(?:do(?:es)? not|don['’]t|doesn['’]t) "
    r"(?:\w+ )?(?:contain|provide|mention|answer|give|say|include|state|address)\b"
    r"|\b(?:question|this|it) (?:can(?:not|['’]t)) be (?:answered|determined)\b"
    r"|^\s*(?:unknown|n/?a|none|no answer|not known|unanswerable)\W*$"
    r"|\b(?:es tut mir leid|kann ich nicht beantworten|je ne peux pas|je suis désolé|lo siento|no puedo)\b"
    r"|抱歉|无法回答|無法回答|죄송",
    re.IGNORECASE,
)
_EVEN_SO = re.compile(r"\b(?:but|however|nevertheless|nonetheless|that said|still)\b", re.IGNORECASE)


def status_of(text: str, question: str) -> AnswerStatus:
    """Return the status of an answer in a reader's own words."""
    if refuses(text):
        return "refused"
    if is_other_language(without_citations(text), question):
        return "other language"
    if repeats(text, question):
        return "copied"
    return "answered"


def refuses(text: str) -> bool:
    """Return True if a text declines to answer and gives no answer even so."""
    first, *others = sentences(text.strip()) or [""]
    if not _REFUSAL.search(_EVEN_SO.split(first)[-1]):
        return False
    return not any(_EVEN_SO.match(other) and not _REFUSAL.search(other) for other in others)


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


def repeats(answer: str, question: str) -> bool:
    """Return True if each sentence of a long answer is one of the question.

    Sentences of passages are no fault: an answer may quote its evidence.
    """
    stated = [_words(sentence) for sentence in sentences(without_citations(answer))]
    whole = f" {' '.join(_words(question))} "
    return sum(map(len, stated)) >= MIN_COPIED_WORDS and all(f" {' '.join(words)} " in whole for words in stated)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
