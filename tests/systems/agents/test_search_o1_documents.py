"""Reason-in-documents: the reasoning in short, prompts that fit, and what is taken from the answer."""

import pytest

from r2med.models.llm.chat import RawAnswer
from r2med.models.llm.costs import approximate_tokens
from r2med.models.prompts.templates import open_templates
from r2med.systems.agents.agent_state import Hit
from r2med.systems.agents.search_o1 import (
    BEGIN_QUERY,
    BEGIN_RESULT,
    DOCUMENT_FIELDS,
    NOTHING,
    Reader,
    final_information,
    shortened,
)

TEMPLATE = open_templates().template("search-o1-documents", fields=DOCUMENT_FIELDS)


def test_up_to_four_steps_are_shown_whole_and_numbered():
    assert shortened("one\n\n two \nthree") == "Step 1: one\n\nStep 2: two\n\nStep 3: three"
    assert shortened("\n".join("abcd")).count("Step") == 4
    assert shortened("") == ""


def test_of_more_the_first_the_last_three_and_those_with_a_query_or_result_are_kept():
    lines = [f"thought {number}" for number in range(1, 13)]
    lines[3] += f" {BEGIN_QUERY}gout"
    lines[4] = f"{BEGIN_RESULT}uric acid"
    kept = shortened("\n".join(lines)).split("\n\n")
    assert [step.partition(":")[0] for step in kept] == [
        "Step 1",
        "...",
        "Step 4",
        "Step 5",
        "...",
        "Step 10",
        "Step 11",
        "Step 12",
    ]
    assert shortened("\n".join("abcde")).split("\n\n")[1] == "..."


@pytest.mark.parametrize(
    ("text", "finish", "taken"),
    [
        ("Doc 2 says so.\n**Final Information**\nUric acid\n is high.", "stop", "Uric acid is high."),
        ("**Final Information** old **Final Information** new", "stop", "new"),
        ("**Final Information**\n```\nfenced\n```", "stop", "fenced"),
        ("<think>**Final Information** not yet</think>nothing", "stop", NOTHING),
        ("<think>hm</think>**Final Information** gout", "stop", "gout"),
        ("<think>I will write **Final Information** soon", "stop", NOTHING),
        ("**Final Information** cut of", "length", NOTHING),
        ("**Final Information**", "stop", NOTHING),
        ("no mark", "stop", NOTHING),
        ("", "stop", NOTHING),
    ],
)
def test_what_helps_stands_after_the_mark_and_outside_of_thoughts(text, finish, taken):
    assert final_information(RawAnswer(text, finish_reason=finish)) == taken


def test_the_prompt_has_reasoning_query_and_documents():
    assert all(TEMPLATE.names(field) for field in DOCUMENT_FIELDS)
    documents = [Hit("a", "Gout\nof the toe", 2.0), Hit("b", "\nknee", 1.0)]
    prompt, kept = Reader(TEMPLATE, 10_000).prompt("thinking {search}", "gout", documents)
    assert kept == 2
    assert "Step 1: thinking {search}" in prompt
    assert "Search query:\ngout\n" in prompt
    assert prompt.endswith("Document 1 (Gout): of the toe\n\nDocument 2: knee")


@pytest.mark.parametrize(("room", "fitting"), [(10_000, 3), (2_100, 2), (1_400, 1), (500, 0), (0, 0)])
def test_documents_that_do_not_fit_are_left_out_the_worst_first(room, fitting):
    documents = [Hit(str(number), f"\nword{number} " + "word " * 600, 1.0) for number in range(3)]
    prompt, kept = Reader(TEMPLATE, room).prompt("thinking", "gout", documents)
    assert kept == fitting
    assert [f"word{number}" in prompt for number in range(3)] == [number < fitting for number in range(3)]
    assert not kept or approximate_tokens(prompt) <= room
