"""Search-o1: which query is taken, every way that its loop can take, and that no thought is ever searched."""

import pytest

from r2med.data import Query
from r2med.models.llm.chat import Failure
from r2med.models.prompts.templates import open_templates
from r2med.systems.agents.search_o1 import (
    ASKED_BEFORE,
    BEGIN_RESULT,
    END_RESULT,
    LIMIT_REACHED,
    NOTHING,
    SEARCH_IS_OFF,
    last_query,
)
from support.agents import CARD, READING, agent, dataset, said, scripted

ONE = (Query("1", "swollen face"),)
THINKS = CARD.model_copy(update={"answer": "think"})
ANSWER = "so it is</think>\n**Final Passage**\nangioedema swells the face"


def asks(query):
    return f"<think>hm <|begin_search_query|>{query}"


def lead(store, *turns, card=THINKS, reading="**Final Information** it fits", data=None, **settings):
    llm = scripted({"swollen face": turns}, reading)
    expansion = agent("search-o1", llm, card=card, **settings).expand(data or dataset(ONE), store)
    return expansion, llm, expansion.traces["1"]


def shown(text):
    return f"{BEGIN_RESULT}{text}{END_RESULT}"


@pytest.mark.parametrize(
    ("text", "finish", "kept", "query"),
    [
        ("a <|begin_search_query|> what  is\nit <|end_search_query|>", "stop", None, "what is it"),
        ("<|begin_search_query|>open", "stop", "<|begin_search_query|>open<|end_search_query|>", "open"),
        ("<|begin_search_query|>open", "length", "<|begin_search_query|>open", ""),
        (
            "<|begin_search_query|>one<|end_search_query|> made up <|begin_search_query|>two<|end_search_query|> more",
            "stop",
            "<|begin_search_query|>one<|end_search_query|> made up <|begin_search_query|>two<|end_search_query|>",
            "two",
        ),
        ("<|begin_search_query|>a <|begin_search_query|>b<|end_search_query|>", "stop", None, "b"),
        ("<|begin_search_query|> <|end_search_query|>", "stop", None, ""),
        ("stray <|end_search_query|>", "stop", None, ""),
        ("plain", "stop", None, ""),
    ],
)
def test_the_last_query_of_the_new_text_is_taken_and_what_follows_it_dropped(text, finish, kept, query):
    assert last_query(text, finish) == (text if kept is None else kept, query)


def test_documents_are_read_apart_and_what_helps_enters_the_reasoning(store):
    expansion, llm, trace = lead(store, asks("angioedema"), ANSWER)
    first, reading, second = llm.asked
    assert first.sampling.stop == ("<|end_search_query|>",) and reading.sampling.stop == ()
    assert [message.role for message in reading.messages] == ["system", "user"]
    prompt = reading.messages[1].content
    assert "Step 1: <think>hm <|begin_search_query|>angioedema<|end_search_query|>" in prompt
    assert "Search query:\nangioedema" in prompt and "Document 1 (Angioedema): angioedema of the face" in prompt
    assert second.messages[2].content == "<think>hm <|begin_search_query|>angioedema<|end_search_query|>"
    assert second.messages[3].content == shown("it fits")
    turn = trace["turns"][0]
    assert (turn["query"], turn["information"], turn["analysis"]) == (
        "angioedema",
        "it fits",
        "**Final Information** it fits",
    )
    assert [document["id"] for document in turn["documents"]] == ["a", "d"]
    assert (turn["prompt_tokens"], turn["completion_tokens"]) == (20, 10), "both calls count"
    assert turn["seconds"] > 1
    assert expansion.queries[0].lexical_text == "angioedema swells the face"


def test_completion_goes_on_with_one_text_exactly(store):
    _, llm, _ = lead(store, asks("angioedema"), ANSWER, via="completion")
    first, reading, second = (request.prompt for request in llm.asked)
    assert second == f"{first}{asks('angioedema')}<|end_search_query|>\n\n{shown('it fits')}\n\n"
    assert READING in reading and reading.endswith("<|im_end|>\n<|im_start|>assistant\n")


def test_the_limit_of_searches_is_told_and_kept_to(store):
    queries = [asks("angioedema"), asks("hives"), asks("lips")]
    expansion, llm, trace = lead(store, *queries, ANSWER, searches=2)
    assert llm.asked[-1].messages[-1].content == shown(LIMIT_REACHED)
    assert [turn["notice"] for turn in trace["turns"]] == ["", "", LIMIT_REACHED, ""]
    assert (trace["turns"][2]["documents"], trace["total"]["searches"]) == (None, 2)
    assert expansion.failures == 0
    assert "2 times at most" in llm.asked[0].messages[1].content


@pytest.mark.parametrize("again", ["angioedema", " Angioedema\n"])
def test_a_query_that_was_searched_before_is_not_searched_again(store, again):
    expansion, llm, trace = lead(store, asks("angioedema"), asks(again), ANSWER)
    assert llm.asked[-1].messages[-1].content == shown(ASKED_BEFORE)
    assert trace["total"]["searches"] == 1 and expansion.failures == 0


def test_the_limit_goes_before_the_repetition(store):
    _, _, trace = lead(store, asks("angioedema"), asks("angioedema"), ANSWER, searches=1)
    assert trace["turns"][1]["notice"] == LIMIT_REACHED


def test_a_search_that_finds_nothing_needs_no_reading(store):
    _, llm, trace = lead(store, asks("zzz"), ANSWER)
    assert len(llm.asked) == 2 and llm.asked[1].messages[-1].content == shown(NOTHING)
    assert trace["turns"][0]["documents"] == []


def test_a_reading_without_its_mark_found_nothing_helpful(store):
    expansion, llm, trace = lead(store, asks("angioedema"), ANSWER, reading="They are all about something else.")
    assert llm.asked[-1].messages[-1].content == shown(NOTHING)
    assert trace["turns"][0]["analysis"] == "They are all about something else."
    assert expansion.failures == 0


@pytest.mark.parametrize(("failure", "kinds"), [("server", {"server": 1}), ("context_length", {})])
def test_a_reading_that_fails_ends_the_conversation_unless_it_was_too_long(store, failure, kinds):
    expansion, _, trace = lead(store, asks("angioedema"), ANSWER, reading=Failure(failure, "no"))
    assert expansion.failure_kinds == kinds
    assert trace["turns"][0]["information"] == ("" if kinds else NOTHING)


def test_who_searches_in_the_last_turn_has_not_answered(store):
    expansion, llm, trace = lead(store, asks("angioedema"), asks("hives"), turns=2)
    assert [READING in prompt for prompt in llm.prompts] == [False, True, False]
    assert (expansion.failures, expansion.failure_kinds) == (1, {"no_marker": 1})
    assert expansion.queries[0].lexical_text == "swollen face"
    assert trace["failure"]["message"] == "the model searched again in the last of 2 turns"


PLAIN, THOUGHT = "plain", "think"


@pytest.mark.parametrize(
    ("card", "last", "text", "kind"),
    [
        (THOUGHT, "<think>hm</think>\nthe passage", "the passage", ""),
        (THOUGHT, "hm</think>**Final Passage**: the passage", "the passage", ""),
        (THOUGHT, "hm</think>As asked:\n**final passage:**\nthe passage", "the passage", ""),
        (THOUGHT, "<think>hm</think>one<think>again</think>two", "two", ""),
        (THOUGHT, "only thoughts, never closed", "", "no_marker"),
        (THOUGHT, "<think>hm **Final Passage** in thoughts", "", "no_marker"),
        (THOUGHT, "<think>hm</think>one<think>and then", "", "no_marker"),
        (THOUGHT, "<think>hm</think>  ", "", "empty"),
        (THOUGHT, "<think>hm</think>**Final Passage**\n", "", "empty"),
        (THOUGHT, said("<think>hm</think>One. Half a pass", "length"), "One.", ""),
        (THOUGHT, said("<think>hm. So it", "length"), "", "truncated"),
        (PLAIN, said("I think so. And **Final Passage**\nOne. Two. Half a", "length"), "One. Two.", ""),
        (PLAIN, said("I think so. And then", "length"), "", "truncated"),
        (PLAIN, said("the passage", "tool_calls"), "", "unfinished"),
        (THOUGHT, said("<think><|begin_search_query|>half", "length"), "", "truncated"),
        (THOUGHT, said("the passage", reasoning="hm"), "the passage", ""),
        (THOUGHT, said("", reasoning="nothing but thoughts"), "", "no_marker"),
        (THOUGHT, said("I cannot.", "content_filter"), "", "refused"),
        (PLAIN, "Let me see. It is clear.\n**Final Passage**\nthe passage", "the passage", ""),
        (PLAIN, "It is clear.\n\n### Final Passage\n\nthe passage", "the passage", ""),
        (PLAIN, "It is clear.\nFinal passage: the passage", "the passage", ""),
        (PLAIN, "The final passage of the gut", "The final passage of the gut", ""),
        (PLAIN, "the passage", "the passage", ""),
        (PLAIN, "<think>hm</think>the passage", "the passage", ""),
        (PLAIN, "<think>never closed", "", "no_marker"),
        (PLAIN, "<|begin_search_query|> <|end_search_query|>", "", "no_marker"),
        (PLAIN, "as in <|begin_search_result|>made up<|end_search_result|>", "", "no_marker"),
        (PLAIN, "", "", "empty"),
    ],
)
@pytest.mark.parametrize("searched", [False, True])
def test_the_text_is_what_follows_the_thoughts_and_never_the_thoughts(store, card, last, text, kind, searched):
    before = [asks("angioedema")] if searched else []
    expansion, _, trace = lead(store, *before, last, card=CARD.model_copy(update={"answer": card}))
    assert expansion.queries[0].generated == ((text,) if text else ())
    assert expansion.failure_kinds == ({kind: 1} if kind else {})
    assert trace["text"] == text


@pytest.mark.parametrize(("via", "kinds"), [("completion", {}), ("chat", {"no_marker": 1})])
def test_thoughts_that_were_closed_before_a_search_stay_closed_in_one_text_only(store, via, kinds):
    closed = "<think>hm</think>I look it up: <|begin_search_query|>angioedema"
    expansion, _, _ = lead(store, closed, "**Final Passage** the passage", via=via)
    assert expansion.failure_kinds == kinds
    assert expansion.queries[0].generated == (() if kinds else ("the passage",))


def test_reasoning_that_outgrows_the_context_is_finished_without_search(store):
    small = THINKS.model_copy(update={"context_length": 2200, "max_tokens": 1000})
    ramble = f"<think>{'and then ' * 400}<|begin_search_query|>angioedema"
    expansion, llm, trace = lead(store, ramble, ANSWER, card=small)
    assert llm.asked[-1].messages[-1].content == shown(SEARCH_IS_OFF)
    assert (trace["turns"][0]["notice"], trace["turns"][0]["information"]) == (SEARCH_IS_OFF, "")
    assert llm.asked[-1].sampling.max_tokens < 1000
    assert expansion.failures == 0
    expansion, _, trace = lead(store, ramble, asks("hives"), card=small)
    assert trace["failure"] == {"kind": "no_marker", "message": "the model searched again when the search was off"}


def test_documents_that_do_not_fit_are_counted_as_cut(store):
    small = THINKS.model_copy(update={"context_length": 1500, "max_tokens": 300})
    data = dataset(ONE, [("a", "angioedema " * 300), ("b", "angioedema of the lips " * 100)])
    expansion, _, trace = lead(store, asks("angioedema"), ANSWER, card=small, data=data)
    assert trace["turns"][0]["cut"] and expansion.cost.cut == 1


@pytest.mark.parametrize("kind", ["post", "exam", "case", "similar-case"])
def test_every_kind_of_task_has_a_prompt_that_names_the_marks_and_the_limit(kind):
    template = open_templates().template("search-o1", kind)
    marks = ("<|begin_search_query|>", "<|end_search_query|>", BEGIN_RESULT, END_RESULT, "**Final Passage**")
    assert all(mark in template.text for mark in marks) and template.names("limit")
