"""Cleaning separates the answer from the reasoning, and never returns reasoning as an answer."""

import pytest

from r2med.models.llm.chat import Failure, Generation, RawAnswer
from r2med.models.llm.cleaning import clean, recorded_answers
from r2med.models.llm.llm_cards import LLMCard

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
def test_the_answer_and_the_reasoning_are_separated(kind: str, content: str, text: str, reasoning: str | None) -> None:
    got = clean(RawAnswer(content, "", "stop", prompt_tokens=5, completion_tokens=7, seconds=1.5), card(kind))
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
def test_a_text_without_an_answer_is_a_failure_of_its_kind(kind: str, content: str, finish: str, failure: str) -> None:
    got = clean(
        RawAnswer(content, "", finish, prompt_tokens=5, completion_tokens=7, seconds=1.5, attempts=2), card(kind)
    )
    assert isinstance(got, Failure), got
    assert got.kind == failure
    assert (got.attempts, got.prompt_tokens, got.completion_tokens) == (2, 5, 7), "it was paid for all the same"


def test_a_server_that_separates_the_reasoning_leaves_no_marker() -> None:
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


PASSAGE = "Gout is a disease of joints. It is treated with colchicine 0.5 mg. The attacks come at ni"


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("plain", PASSAGE, "Gout is a disease of joints. It is treated with colchicine 0.5 mg."),
        ("plain", 'He said "gout." And th', 'He said "gout."'),
        ("plain", "one long sentence that never en", "one long sentence that never"),
        ("plain", "痛风是一种病。它发", "痛风是一种病。"),
        ("plain", "<think>hm</think>It is gout. It is a dis", "It is gout."),
        ("think", f"hm</think>{PASSAGE}", "Gout is a disease of joints. It is treated with colchicine 0.5 mg."),
        ("final-response", f"## Thinking\nhm\n## Final Response\n{PASSAGE[:40]}", "Gout is a disease of joints."),
        ("answer-tag", "<think>x</think><answer>It is gout. It is a dis", "It is gout."),
    ],
)
def test_a_passage_that_was_cut_is_kept_up_to_its_last_whole_sentence(kind: str, content: str, text: str) -> None:
    got = clean(
        RawAnswer(content, "", "length", prompt_tokens=5, completion_tokens=7, seconds=1.5), card(kind), keep_cut=True
    )
    assert isinstance(got, Generation), got
    assert (got.text, got.finish_reason) == (text, "length")


@pytest.mark.parametrize(
    ("kind", "content", "reasoning"),
    [
        ("plain", "", ""),
        ("plain", "<think>hm, it may be", ""),
        ("plain", "<|channel|>analysis<|message|>hm", ""),
        ("think", "hm, it may be gout. Or no", ""),
        ("think", "hm</think> ", ""),
        ("think", "", "hm, it may be"),
        ("final-response", "## Thinking\nhm. It may be", ""),
        ("answer-tag", "<search>gout</search> hm. It may", ""),
    ],
)
def test_a_text_whose_answer_never_began_is_a_failure(kind: str, content: str, reasoning: str) -> None:
    got = clean(RawAnswer(content, reasoning, "length"), card(kind), keep_cut=True)
    assert isinstance(got, Failure) and got.kind == "truncated", got


@pytest.mark.parametrize(
    ("finish", "kind"),
    [
        *((finish, "truncated") for finish in ("length", "max_tokens", "MAX_TOKENS", "model_length")),
        *((finish, "refused") for finish in ("content_filter", "content-filter", "SAFETY", "RECITATION", "refusal")),
        *((finish, "unfinished") for finish in ("function_call", "tool_calls", "cancelled", "pause_turn", "other", "")),
    ],
)
def test_only_known_words_for_finished_give_an_answer(finish: str, kind: str) -> None:
    got = clean(RawAnswer("It is gout.", "", finish), card("plain"))
    assert isinstance(got, Failure) and got.kind == kind, got


@pytest.mark.parametrize("finish", ["stop", "STOP", "end_turn", "stop_sequence", "eos", "COMPLETE"])
def test_the_words_of_other_servers_for_finished_are_known(finish: str) -> None:
    got = clean(RawAnswer("It is gout.", "", finish), card("plain"))
    assert isinstance(got, Generation) and got.finish_reason == "stop"


STYLES = ("think", "answer-tag", "final-response")


def test_published_cleaning_uses_the_first_marker_or_the_whole_text() -> None:
    published = {style: card(style).model_copy(update={"cleaning": "published"}) for style in STYLES}
    for style, content, text in (
        ("think", "a</think>b</think>c", "b</think>c"),
        ("think", "hm, it may be gout", "hm, it may be gout"),
        ("answer-tag", "<answer>one</answer> or <answer>two</answer>", "one"),
        ("final-response", HUATUO, "It is **gout**."),
        ("final-response", "My Final Response is gout.\n## Final Response\nflu", "is gout.\n## Final Response\nflu"),
        ("final-response", "hm **Final Response:** gout", ":** gout"),
        ("final-response", "## FINAL RESPONSE\ngout", "## FINAL RESPONSE\ngout"),
        ("final-response", "## Final response\ngout", "## Final response\ngout"),
        ("final-response", "hm, it may be gout", "hm, it may be gout"),
    ):
        got = clean(RawAnswer(content), published[style])
        assert isinstance(got, Generation) and got.text == text


HUATUO_WITHOUT_HEADING = "So, it hurts. It may be gout.\n\n## Final Response\n\nIt is gout."


@pytest.mark.parametrize(
    ("style", "texts", "answers"),
    [
        ("plain", ["an answer with <answer>tags</answer> in it", "and <search>that</search>"], None),
        ("plain", ["<think>hm</think>gout", "no thoughts", "no marks"], ["gout", "no thoughts", "no marks"]),
        ("plain", ["hm</think>gout", "b</think>flu", "hm, so"], ["gout", "flu", None]),
        ("plain", ["<think>never closed"], [None]),
        ("plain", [HUATUO_WITHOUT_HEADING] * 2 + ["So, it hurts. It m"], ["It is gout."] * 2 + [None]),
        ("final-response", ["It is gout.", "cleaned before"], ["It is gout.", "cleaned before"]),
        ("answer-tag", ["<answer>a</answer><answer>b</answer>", "<answer>c</answer>", "<answer>h"], ["b", "c", None]),
        ("answer-tag", ["cleaned before", "as well"], None),
        ("answer-tag", ["cleaned before", "I need <search>fever</search>", "x"], ["cleaned before", None, "x"]),
        ("plain", ["## Thinking\n\nhm\n\n## Final Response\n\nanswer", "a", "b"], ["answer", "a", "b"]),
        ("plain", ["## Thinking\n\nhm, my Final Response is", "a"], [None, "a"]),
        ("plain", ["The Final Response is here"], None),
        ("plain", ["a</think>answer <think>again", "<think>all of it</think>  "], [None, ""]),
        ("think", ["", "  ", "hm</think>gout"], [None, None, "gout"]),
    ],
)
def test_recorded_texts_are_cleaned_by_the_marks_of_their_file(
    style: str, texts: list[str], answers: list[str | None] | None
) -> None:
    assert recorded_answers(texts, style) == (texts if answers is None else answers)  # type: ignore[arg-type]


def test_recorded_texts_can_be_cleaned_as_published() -> None:
    texts = ["a</think>b</think>c", "d</think>e", "thoughts without end"]
    assert recorded_answers(texts, "think", "published") == ["b</think>c", "e", "thoughts without end"]
    huatuo = ["hm. My Final Response: gout", "## FINAL RESPONSE\nflu"]
    assert recorded_answers(huatuo, "final-response", "published") == [": gout", "## FINAL RESPONSE\nflu"]
