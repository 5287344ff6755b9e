"""Ask an LLM in the form of a card: what a request needs beyond its prompt, and what an answer becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from r2med.models.ask.json_in_text import Parsed
from r2med.models.llm.chat import Generation, Sampling
from r2med.models.llm.cleaning import whole_sentences
from r2med.systems.rerank.card_answers import Order, read_order, read_scores
from r2med.systems.rerank.judge_calls import Asker
from r2med.systems.rerank.judge_prompts import Question
from r2med.systems.rerank.llm_reranker_cards import LLMRerankerCard

TOP_LOGPROBS = 20
"""Alternatives to a token that are asked for: the most that OpenAI gives, and the default of vLLM."""

THOUGHT_END = "</think>"


def ask_for_orders(asker: Asker, questions: Sequence[Question], card: LLMRerankerCard) -> list[Order | None]:
    """Return the order of the passages of each question; None where there is none."""
    # The first token alone is an answer that was cut at its limit.
    first = card.answer == "first-token"
    top = TOP_LOGPROBS if card.uses_probabilities else 0
    return asker.ask(questions, read_order(card), sampling=_sampling(asker, card), top_logprobs=top, as_written=first)


def ask_for_scores(asker: Asker, questions: Sequence[Question], card: LLMRerankerCard) -> list[dict[int, float] | None]:
    """Return the scores of the passages of each question; None where there is none.

    An answer that cannot be read has the score that the card says. A call that failed has none.
    """
    if card.answer == "true-false":
        return _true_shares(asker, questions, card)
    top = TOP_LOGPROBS if card.uses_probabilities else 0
    sampling, instead = _sampling(asker, card), _unreadable(card)
    return asker.ask(questions, read_scores(card), sampling=sampling, top_logprobs=top, unreadable=instead)


def _unreadable(card: LLMRerankerCard) -> Callable[[int], dict[int, float]] | None:
    """Return the function that scores the passages of an answer that cannot be read, if the card does."""
    score = card.unreadable
    return None if score is None else lambda count: dict.fromkeys(range(count), score)


def _true_shares(asker: Asker, questions: Sequence[Question], card: LLMRerankerCard) -> list[dict[int, float] | None]:
    """Return the probability of true after a thought: the thought is written first, then one token is asked for."""
    thinking = replace(asker.sampling, stop=(THOUGHT_END,))
    thoughts = asker.ask(questions, _thought, sampling=thinking, as_written=True)
    thought = [
        replace(question, thought=f"{said}{THOUGHT_END}")
        for question, said in zip(questions, thoughts, strict=True)
        if said is not None
    ]
    one_token = replace(asker.sampling, max_tokens=1)
    asked = asker.ask(
        thought,
        read_scores(card),
        sampling=one_token,
        top_logprobs=TOP_LOGPROBS,
        as_written=True,
        unreadable=_unreadable(card),
    )
    shares = iter(asked)
    return [None if said is None else next(shares) for said in thoughts]


def _thought(answer: Generation, count: int) -> Parsed[str]:
    """Return a thought; one that was cut at its limit ends with its last whole sentence."""
    return Parsed(f"{whole_sentences(answer.text)}\n" if answer.finish_reason == "length" else answer.text)


def _sampling(asker: Asker, card: LLMRerankerCard) -> Sampling:
    return replace(asker.sampling, stop=card.stop) if card.stop else asker.sampling
