"""Split an answer into sentences, and read which passages each of them cites."""

from __future__ import annotations

import re
from collections.abc import Sequence

from r2med.evaluation.records.answer_facts import CitedSentence
from r2med.foundation.text.citation_marks import AFTER_STOP, CITATION, cited_numbers
from r2med.foundation.text.sentences import sentences

_QUOTED_CHARACTERS = 20
"""Number of characters before a mark that must be those of a passage, so that the mark is quoted from it."""


def cited_sentences(answer: str, read: Sequence[str], texts: Sequence[str] = ()) -> tuple[CitedSentence, ...]:
    """Return the sentences of an answer with the documents that they cite. `read` are the ids by their number.

    `texts` are the passages. A mark such as [3,4] that is quoted from one of them is a reference of that paper.
    """
    # A citation behind the full stop belongs to the sentence before it.
    moved = AFTER_STOP.sub(r"\2\1", _without_quoted(answer, texts))
    found: list[CitedSentence] = []
    for sentence in sentences(moved):
        numbers = cited_numbers(sentence)
        text = without_citations(sentence)
        known = dict.fromkeys(read[number - 1] for number in numbers if 0 < number <= len(read))
        unknown = len({number for number in numbers if not 0 < number <= len(read)})
        if not any(map(str.isalnum, text)) and found:  # a line of citations alone
            last = found.pop()
            documents = tuple(dict.fromkeys((*last.documents, *known)))
            found.append(last.model_copy(update={"documents": documents, "unknown": last.unknown + unknown}))
        elif text:
            found.append(CitedSentence(text=text, documents=tuple(known), unknown=unknown))
    return tuple(found)


def without_citations(text: str) -> str:
    """Return a text without the marks of its citations."""
    return CITATION.sub("", text).strip()


def _without_quoted(answer: str, texts: Sequence[str]) -> str:
    """Return an answer without the marks that stand behind the same words in a passage."""
    passages = [_plain(text) for text in texts if CITATION.search(text)]
    if not passages:
        return answer

    def kept(match: re.Match[str]) -> str:
        before = answer[: match.start()].rstrip(" .!?")[-_QUOTED_CHARACTERS:]
        quoted = len(before) == _QUOTED_CHARACTERS and any(
            _plain(before + match[0].strip()) in passage for passage in passages
        )
        return "" if quoted else match[0]

    return CITATION.sub(kept, answer)


def _plain(text: str) -> str:
    """Return a text without case and white space, and without a full stop before a mark."""
    return re.sub(r"[.!?]+(?=[\[【])", "", "".join(text.casefold().split()))
