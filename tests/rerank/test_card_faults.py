"""Hostile answers, wrong cards and wrong prompt files of rerankers by card: a status or one line, and no traceback."""

from pathlib import Path

import pytest

from r2med.llm.chat import ChatRequest, Failure, Generation
from r2med.rerank.card_answers import read_order, read_scores
from r2med.rerank.llm_reranker_cards import LLM_RERANKERS
from support.judging import judged, permutation, places, rerank


def said(text: str) -> Generation:
    return Generation(text)


@pytest.mark.parametrize("name", ["reasonrank-7b", "rank-k-32b", "rankgpt", "insertrank"])
def test_a_number_with_thousands_of_digits_names_no_passage(name: str) -> None:
    parsed = read_order(LLM_RERANKERS[name])(said(f"[{'9' * 6000}] > [2] > [1]"), 2)
    assert parsed is not None and parsed.value == (1, 0) and parsed.repairs == {"invented": 1}


def test_prose_with_numbers_is_no_order_where_the_authors_read_brackets() -> None:
    assert read_order(LLM_RERANKERS["insertrank"])(said("5 patients of 2010 had 3 symptoms."), 20) is None


def test_a_negative_score_is_clipped_and_not_read_as_positive() -> None:
    card = LLM_RERANKERS["erank-4b"].model_copy(update={"answer": "score"})
    parsed = read_scores(card)(said("<answer> -5 </answer>"), 1)
    assert parsed is not None and parsed.value == {0: 0.0} and parsed.repairs == {"clipped": 1}
    parsed = read_scores(card)(said("<answer>score-7</answer>"), 1)
    assert parsed is not None and parsed.value == {0: 7.0}


def test_a_pattern_that_matches_other_text_reads_no_score() -> None:
    card = LLM_RERANKERS["retro-star-8b"].model_copy(update={"pattern": r"<score>(\w*)</score>"})
    assert read_scores(card)(said("<score>high</score>"), 1) is None


@pytest.mark.parametrize("name", ["grouprank-7b(size=2)", "retro-star-8b"])
def test_documents_of_a_failed_call_keep_their_places_where_unreadable_answers_have_a_score(
    name: str, tmp_path: Path
) -> None:
    def reply(request: ChatRequest) -> str | Failure:
        text = "\n".join(message.content for message in request.messages)
        if "document 0 of query" in text:
            return Failure("rate_limit", "429", 3)
        return '<answer>{"[1]": 9, "[2]": 9}</answer><score>90</score>'

    reranked, _ = rerank(name, reply, judged(permutation(6)), tmp_path)
    assert places(reranked.run) == list(range(6))
    assert reranked.failure_kinds == {"rate_limit": 1}
    assert "keep their positions" in reranked.notices[0]


def test_a_notice_says_that_unreadable_answers_count_as_the_card_says(tmp_path: Path) -> None:
    def reply(request: ChatRequest) -> str:
        return "no idea" if "document 0 of query" in request.messages[-1].content else "<score>90</score>"

    reranked, _ = rerank("retro-star-8b", reply, judged(permutation(3)), tmp_path)
    assert places(reranked.run) == [1, 2, 0]
    assert "1 unreadable answers count as the card says" in reranked.notices[0]
