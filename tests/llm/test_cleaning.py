"""Cleaning: what a model answered, apart from what it thought; and never a thought as an answer."""

import pytest

from r2med.llm.chat import Failure, Generation, RawAnswer
from r2med.llm.cleaning import clean
from r2med.llm.llm_cards import LLMCard

HUATUO = "## Thinking\n\nIt may be gout. My final response should say so.\n\n## Final Response\n\nIt is **gout**."


def card(answer: str, thinking: bool | None = None) -> LLMCard:
    return LLMCard(name="m", model="m", answer=answer, thinking=thinking)


@pytest.mark.parametrize(
    ("kind", "content", "text", "reasoning"),
    [
        ("plain", "  It is gout.\n", "It is gout.", ""),
        ("plain", "<think>hm</think>\n\nIt is gout.", "It is gout.", "hm"),
        ("plain", "\n<think>\na\n</think>b</think>It is gout.", "It is gout.", "a\n</think>b"),
        ("plain", "hm, so\n</think>\nIt is gout.", "It is gout.", "hm, so"),
        ("plain", "Sure.\n<think>hm</think> It is gout.", "It is gout.", "Sure.\nhm"),
        ("plain", "<Thinking>hm</THINKING>It is gout.", "It is gout.", "hm"),
        ("plain", "<|channel|>analysis<|message|>hm<|channel|>final<|message|>It is gout.", "It is gout.", None),
        ("plain", HUATUO, "It is **gout**.", None),
        ("plain", "half \ud83d\ude00 and \ud800", "half 😀 and �", ""),
        ("think", "<think>\nhm\n</think>\n\nIt is gout.", "It is gout.", "hm"),
        ("think", "hm\n</think>It is gout.", "It is gout.", "hm"),
        ("think", "a</think>b</think>It is gout.", "It is gout.", "a</think>b"),
        ("final-response", HUATUO, "It is **gout**.", "It may be gout. My final response should say so."),
        ("final-response", "hm\n\n**Final Response:** **Gout** it is", "**Gout** it is", "hm"),
        ("final-response", "hm\nFinal Response: gout", "gout", "hm"),
        ("final-response", "hm\nFinal Response\ngout", "gout", "hm"),
        ("final-response", "### Final Response:\nno\n## Final Response ##\ngout", "gout", "### Final Response:\nno"),
        ("answer-tag", "<think>x</think><answer>no</answer> hm <answer> gout </answer> bye", "gout", None),
        ("answer-tag", "<answer>half <answer>gout</answer>", "gout", None),
    ],
)
def test_the_answer_is_taken_and_the_reasoning_kept_apart(
    kind: str, content: str, text: str, reasoning: str | None
) -> None:
    got = clean(RawAnswer(content, "", "stop", 5, 7, 1.5), card(kind))
    assert isinstance(got, Generation), got
    assert got.text == text
    assert reasoning is None or got.reasoning == reasoning
    assert (got.prompt_tokens, got.completion_tokens, got.seconds) == (5, 7, 1.5)


@pytest.mark.parametrize(
    ("kind", "content", "finish", "failure"),
    [
        ("plain", "It is go", "length", "truncated"),
        ("think", "hm</think>It is go", "length", "truncated"),
        ("think", "hm, it may be gout", "length", "truncated"),
        ("think", "hm, it may be gout", "stop", "no_marker"),
        ("think", "", "stop", "no_marker"),
        ("think", "hm</think> \n", "stop", "empty"),
        ("plain", "", "stop", "empty"),
        ("plain", " \n ", "stop", "empty"),
        ("plain", "<think>hm", "stop", "no_marker"),
        ("plain", "<think>hm</think>", "stop", "empty"),
        ("final-response", "The final response should be gout, I think.", "stop", "no_marker"),
        ("final-response", "hm\n## Final Response\n\n", "stop", "empty"),
        ("answer-tag", "it is gout", "stop", "no_marker"),
        ("answer-tag", "<answer>gout", "stop", "no_marker"),
        ("answer-tag", "<answer> </answer>", "stop", "empty"),
        ("plain", "I cannot help with that.", "refusal", "refused"),
        ("think", "", "content_filter", "refused"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_kind(kind: str, content: str, finish: str, failure: str) -> None:
    got = clean(RawAnswer(content, "", finish, 5, 7, 1.5, attempts=2), card(kind))
    assert isinstance(got, Failure), got
    assert got.kind == failure
    assert (got.attempts, got.prompt_tokens, got.completion_tokens) == (2, 5, 7), "it was paid for all the same"


def test_a_server_that_keeps_the_reasoning_apart_leaves_no_marker() -> None:
    got = clean(RawAnswer("It is gout.", "hm"), card("think"))
    assert isinstance(got, Generation)
    assert (got.text, got.reasoning) == ("It is gout.", "hm")
    nothing = clean(RawAnswer("", "hm"), card("think"))
    assert isinstance(nothing, Failure)
    assert nothing.kind == "empty"


def test_a_thinking_switch_that_is_off_leaves_no_marker() -> None:
    got = clean(RawAnswer("It is gout."), card("think", thinking=False))
    assert isinstance(got, Generation)
    assert got.text == "It is gout."


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("plain", "Sure, here it is.\n<think> reasoning that never closes"),
        ("plain", "<think>a</think> <think> still thinking"),
        ("plain", "<THINK>hm"),
        ("plain", "<thinking>hm"),
        ("plain", "## Thinking\nhm"),
        ("plain", "<|channel|>analysis<|message|>hm"),
        ("think", "<think>a</think> answer <think> more"),
        ("final-response", "## Thinking\nI should now give my final response: gout and so on"),
    ],
)
def test_reasoning_that_was_not_ended_is_never_an_answer(kind: str, content: str) -> None:
    got = clean(RawAnswer(content), card(kind))
    assert isinstance(got, Failure), got
    assert got.kind == "no_marker"
