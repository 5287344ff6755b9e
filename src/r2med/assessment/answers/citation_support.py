"""Let a judge decide which sentences of answers are supported by the passages that they cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from r2med.assessment.answers.answer_judge import AnswerJudge
from r2med.assessment.answers.nugget_matching import MAX_SENTENCES
from r2med.data.dataset import Dataset
from r2med.evaluation.records.answer_record import CitedSentence, GivenAnswer
from r2med.foundation.engine.tracing import Span
from r2med.models.ask.answers import LLMAnswer, Remark, Truth
from r2med.models.ask.ask import framed


class SentenceSupport(LLMAnswer):
    """The verdict of a judge on one sentence."""

    why: Remark = ""
    supported: Truth


def sentence_support(
    judge: AnswerJudge, items: Sequence[tuple[str, str]], within: Sequence[Span | None] = ()
) -> list[bool | None]:
    """Judge items (sentence, text of its passages). None if the judge gave no usable answer.

    `within` are the spans of the answers in a trace.
    """
    fields = [{"sentence": framed(sentence), "text": framed(text) or "(empty)"} for sentence, text in items]
    return judge.ask("support-sentence", fields, SentenceSupport, lambda _, said: bool(said.supported), within)


def with_support(
    answers: Sequence[GivenAnswer], dataset: Dataset, judge: AnswerJudge, spans: Mapping[int, Span]
) -> list[GivenAnswer]:
    """Return the answers with a verdict on every sentence. `spans` are those of the answers in a trace.

    A sentence without a citation of a passage that was read is not supported. The judge is not asked about it.
    """
    cited = list(cited_sentences_of(answers))
    items = [(sentence.text, _passages(dataset, sentence)) for _, _, sentence in cited]
    verdicts = sentence_support(judge, items, [spans.get(number) for number, _, _ in cited])
    known = {(number, place): said for (number, place, _), said in zip(cited, verdicts, strict=True)}
    return [_supported(answer, number, known) for number, answer in enumerate(answers)]


def cited_sentences_of(answers: Sequence[GivenAnswer]) -> Iterator[tuple[int, int, CitedSentence]]:
    """Yield the number of the answer, the number of the sentence, and the sentence, for those that a judge checks."""
    for number, answer in enumerate(answers):
        if answer.status == "answered":
            for place, sentence in enumerate(answer.sentences[:MAX_SENTENCES]):
                if sentence.documents:
                    yield number, place, sentence


def _supported(answer: GivenAnswer, number: int, known: Mapping[tuple[int, int], bool | None]) -> GivenAnswer:
    if answer.status != "answered" or not answer.read:
        return answer
    sentences = tuple(
        sentence.model_copy(update={"supported": known.get((number, place), False)})
        for place, sentence in enumerate(answer.sentences)
    )
    return answer.model_copy(update={"sentences": sentences})


def _passages(dataset: Dataset, sentence: CitedSentence) -> str:
    rows = [row for row in dataset.corpus.rows(list(sentence.documents)).tolist() if row >= 0]
    return "\n\n".join(dataset.corpus.texts(rows))
