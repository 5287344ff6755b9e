"""The kinds of items that people review: what is shown of each kind, what is asked, and what an answer leads to.

Items of `KINDS` belong to a build or a table. Those of `LABEL_KINDS` are passages that judges labelled in an overlay,
and those of `NUGGET_KIND` are facts that answers must contain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

YesNo = Literal["yes", "no", "unsure"]
"""What a person can answer to a review point."""

Verdict = Literal["accept", "reject", "unsure"]

ONLY_POINT = "verdict"
"""Name of the point of a kind that has only one."""


@dataclass(frozen=True)
class ScaleWord:
    """One of the answers to a point."""

    word: str
    """The answer in files."""
    label: str
    """The answer on its button."""
    key: str
    """The key that gives the answer."""
    verdict: Verdict
    """The verdict that follows from the answer. It also decides the colour of the button."""


YES_NO = (
    ScaleWord("no", "No", "r", "reject"),
    ScaleWord("unsure", "Unsure", "u", "unsure"),
    ScaleWord("yes", "Yes", "a", "accept"),
)
"""The usual answers, from no to yes."""


@dataclass(frozen=True)
class ReviewPoint:
    """One question to a reviewer about an item, which is answered by a word of the kind's scale."""

    name: str
    """Column of the answer in files."""
    text: str
    """The question as the reviewer reads it."""
    rejects: str = ""
    """Reason for leaving out an item for which most people answer no. Empty if no answer leaves anything out."""
    publishes: bool = False
    """True if the answer becomes a column of the query, with the name of the point."""


@dataclass(frozen=True)
class ShownText:
    """A text of an item on the review page."""

    label: str
    field: str
    """Path of the text from the review item, such as `question.answer`."""
    folds: bool = False
    """True if the text is folded on small screens."""


@dataclass(frozen=True)
class ReviewKind:
    """A kind of review items. A new kind is a row of `KINDS`."""

    name: str
    """The kind in commands and files."""
    noun: str
    """An item of the kind, in a sentence."""
    task: str
    """What the reviewer is asked to do, in one sentence."""
    beside: tuple[ShownText, ...]
    """Texts that the item is compared with."""
    main: tuple[ShownText, ...]
    """Texts that are reviewed."""
    points: tuple[ReviewPoint, ...]
    pairs: str = ""
    """Path of sentences and their translations, which are shown instead of whole texts if they are known."""
    needs: tuple[str, ...] = ()
    """Fields of the question that must not be empty. Other questions have no item of this kind."""
    of: Literal["questions", "pages"] = "questions"
    """What is reviewed. A rejected question is no query, and the chunks of a rejected page are no documents."""
    scale: tuple[ScaleWord, ...] = YES_NO
    """The answers to each point, from the lowest to the highest. Coefficients of agreement use their places."""

    @property
    def has_several_points(self) -> bool:
        """True if a review has an answer to each of several points, and not one verdict."""
        return len(self.points) > 1

    @property
    def has_answers(self) -> bool:
        """True if a review has words of the scale. Otherwise it has one verdict: accept, unsure or reject."""
        return self.has_several_points or self.scale[0].word != YES_NO[0].word

    @property
    def has_passage(self) -> bool:
        """True if an item has a passage."""
        return any(shown.field == _PASSAGE.field for shown in self.main)


_TRANSLATION = ShownText("Translation", "question.text")
_SOURCE = ShownText("Source", "question.source_text")

PASSAGE = "passage"
"""The kind of candidates. A file of reviews names no other kind if it is older than the kinds."""

_QUESTION = ShownText("Question", "question.text")
_ANSWER = ShownText("Answer", "question.answer")
_REASONING = ShownText("Reasoning", "question.reasoning", folds=True)
_ORIGINAL = ShownText("Before it was rewritten", "question.original")
_PASSAGE = ShownText("Passage", "chunk.text")

KINDS: Mapping[str, ReviewKind] = {
    kind.name: kind
    for kind in (
        ReviewKind(
            name=PASSAGE,
            noun="passage",
            task="Decide whether the passage is evidence for the answer.",
            beside=(_QUESTION, _ANSWER, _REASONING),
            main=(_PASSAGE,),
            points=(ReviewPoint(ONLY_POINT, "Is this passage evidence for the answer?"),),
            scale=tuple(replace(word, label=word.verdict.capitalize()) for word in YES_NO),
        ),
        ReviewKind(
            name="question",
            noun="question",
            task="Judge the question as a query of a benchmark.",
            beside=(_ANSWER, _ORIGINAL),
            main=(_QUESTION,),
            points=(
                ReviewPoint("answerable", "Can it be answered, and is this the answer?", rejects="not answerable"),
                ReviewPoint(
                    "self_contained",
                    "Is it self-contained, without a picture, options or a text that is missing?",
                    rejects="not self-contained",
                ),
                ReviewPoint(
                    "needs_inference",
                    "Does the answer need inference, so that looking up the words is not enough?",
                    publishes=True,
                ),
                ReviewPoint(
                    "words_mislead",
                    "Do its words mislead, so that they point to other texts than those with the answer?",
                    publishes=True,
                ),
            ),
        ),
        ReviewKind(
            name="answer",
            noun="answer",
            task="Compare the answer with the text from which the question was rewritten.",
            beside=(_ORIGINAL,),
            main=(_QUESTION, _ANSWER),
            points=(
                ReviewPoint(
                    ONLY_POINT,
                    "Is the answer right for the rewritten question, with the meaning of the original?",
                    rejects="answer changed",
                ),
            ),
            needs=("original", "answer"),
        ),
        ReviewKind(
            name="reasoning",
            noun="reasoning path",
            task="Judge the path of reasoning that an LLM wrote.",
            beside=(_QUESTION, _ANSWER),
            main=(ShownText("Reasoning", "question.reasoning"),),
            points=(
                ReviewPoint(
                    ONLY_POINT,
                    "Is every step sound, and does the path lead to the answer?",
                    rejects="unsound reasoning",
                ),
            ),
            needs=("reasoning",),
        ),
        ReviewKind(
            name="translation",
            noun="translation",
            task="Compare the translation with its source.",
            beside=(_SOURCE,),
            main=(_TRANSLATION,),
            points=(
                ReviewPoint(
                    ONLY_POINT,
                    "Is the translation faithful, with nothing added, lost or changed?",
                    rejects="unfaithful translation",
                ),
            ),
            pairs="question.sentences",
            needs=("source_text",),
        ),
        ReviewKind(
            name="page",
            noun="translated page",
            task="Compare the translation of a page with its source.",
            beside=(_SOURCE,),
            main=(_TRANSLATION,),
            points=(
                ReviewPoint(
                    ONLY_POINT,
                    "Is the translation of the page faithful, with nothing added, lost or changed?",
                    rejects="unfaithful translation",
                ),
            ),
            pairs="question.sentences",
            needs=("source_text",),
            of="pages",
        ),
    )
}

LABEL_KINDS: Mapping[str, ReviewKind] = {
    kind.name: kind
    for kind in (
        ReviewKind(
            name="relevance",
            noun="passage",
            task="Grade how useful the passage is for the question.",
            beside=(_QUESTION, _ANSWER),
            main=(_PASSAGE,),
            points=(ReviewPoint("grade", "How useful is this passage for the question?"),),
            scale=(
                ScaleWord("0", "Unrelated", "0", "reject"),
                ScaleWord("1", "Same field", "1", "reject"),
                ScaleWord("2", "Leads to it", "2", "accept"),
                ScaleWord("3", "Answers it", "3", "accept"),
            ),
        ),
        ReviewKind(
            name="mimic",
            noun="argument",
            task="Decide which answer the passage argues for.",
            beside=(_QUESTION, _ANSWER),
            main=(_PASSAGE,),
            points=(ReviewPoint("stance", "Which answer does this passage argue for?"),),
            scale=(
                ScaleWord("other", "Another answer", "r", "reject"),
                ScaleWord("neither", "None", "u", "unsure"),
                ScaleWord("supports", "The right answer", "a", "accept"),
            ),
        ),
    )
}
"""Aspect of an overlay -> what people are asked. The words of a scale are those of the rubric of judges."""

NUGGET_KIND = ReviewKind(
    name="nugget",
    noun="nugget",
    task="Decide whether a good answer to the question must contain the fact.",
    beside=(_QUESTION, _ANSWER),
    main=(ShownText("Fact", "chunk.text"),),
    points=(ReviewPoint("importance", "Must a good answer contain this fact?"),),
    scale=(
        ScaleWord("drop", "Wrong or useless", "0", "reject"),
        ScaleWord("okay", "Useful", "1", "accept"),
        ScaleWord("vital", "Vital", "2", "accept"),
    ),
)
"""The kind of the facts in a file of nuggets."""

REVIEW_KINDS: Mapping[str, ReviewKind] = {**KINDS, **LABEL_KINDS, NUGGET_KIND.name: NUGGET_KIND}
"""All kinds by name."""
