"""Hostile answers, wrong cards and wrong prompt files of rerankers by card: a status or one line, and no traceback."""

import re
from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.stages import stage_of
from r2med.models.llm.chat import ChatRequest, Failure, Generation
from r2med.systems.rerank.llm_answers import read_order, read_scores
from r2med.systems.rerank.llm_prompts import Question, RerankPrompts, open_prompts
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS, LLMRerankerCard
from support.llm_rerankers import graded, permutation, places, rerank


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
            return Failure("rate_limit", "429", attempts=3)
        return '<answer>{"[1]": 9, "[2]": 9}</answer><score>90</score>'

    reranked, _ = rerank(name, reply, graded(permutation(6)), tmp_path)
    assert places(reranked.run) == list(range(6))
    assert reranked.failure_kinds == {"rate_limit": 1}
    assert "keep their positions" in reranked.notices[0]


def test_a_notice_says_that_unreadable_answers_count_as_the_card_says(tmp_path: Path) -> None:
    def reply(request: ChatRequest) -> str:
        return "no idea" if "document 0 of query" in request.messages[-1].content else "<score>90</score>"

    reranked, _ = rerank("retro-star-8b", reply, graded(permutation(3)), tmp_path)
    assert places(reranked.run) == [1, 2, 0]
    assert "1 unreadable answers count as the card says" in reranked.notices[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"pattern": r"\d+"}, "it needs a group around the number"),
        ({"passage": "{foo} {text}"}, "{foo} is not a field of passage: {text} or {number} or {score}"),
    ],
)
def test_a_wrong_card_is_refused_when_it_is_read(change: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        LLMRerankerCard(name="mine", form="listwise", answer="order", **change)  # type: ignore[arg-type]


def test_a_fault_of_two_fields_together_has_one_colon(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('form = "setwise"\nanswer = "order"\n')
    with pytest.raises(UserError, match=r"mine\.toml: form setwise reads answers as label, not order$"):
        LLM_RERANKERS.read_file(tmp_path / "mine.toml", "mine")


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            "first-7b(window=30)@40",
            "30 documents in a call are too many: first-7b labels them with letters",
        ),
        ("setwise(ranker, children=26)@40", "27 documents in a call are too many"),
        ("rankgpt(ranker)@10", "depth 10 with window=20 would rerank nothing"),
        ("rearank-7b@19", "give rearank-7b@20 or a smaller window"),
    ],
)
def test_settings_that_a_card_cannot_follow_are_refused(spec: str, fault: str) -> None:
    [call] = parse_stage(spec)
    with pytest.raises(UserError, match=re.escape(fault)):
        stage_of(call, "rerank")


def test_a_run_in_which_no_window_is_full_says_so(tmp_path: Path) -> None:
    reranked, llm = rerank("rankgpt(ranker)", lambda request: "[1]", graded(permutation(5)), tmp_path)
    assert not llm.asked and "nothing was asked" in reranked.notices[0]


def test_scores_of_a_group_reach_to_the_highest_of_the_card() -> None:
    card = LLM_RERANKERS["grouprank"].model_copy(update={"highest": 100.0})
    parsed = read_scores(card)(said('{"[1]": 85, "[2]": 101}'), 2)
    assert parsed is not None and parsed.value == {0: 85.0, 1: 100.0} and parsed.repairs == {"clipped": 1}


def prompts_of(card: str, name: str, text: str, folder: Path) -> RerankPrompts:
    (folder / name).write_text(text)
    return open_prompts(LLM_RERANKERS[card], "case", folder)


def test_a_turn_of_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="<<System>> is not a turn: write <<system>>"):
        prompts_of("reasonrank-7b", "reasonrank.txt", "<<System>>\nRank.\n<<user>>\n{query} {passages}", tmp_path)


def test_a_form_that_continues_a_text_needs_a_completion(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="continues one raw text: begin the file with <<completion>>"):
        prompts_of("rank1-7b", "rank1.txt", "{query} {passages}", tmp_path)


def test_the_wording_of_a_card_may_show_passages_one_by_one(tmp_path: Path) -> None:
    text = "<<user>>\n{query} {count}\n<<each user>>\n[{number}] {passage}\n<<user>>\nOrder them."
    assert len(prompts_of("rankgpt", "rankgpt.txt", text, tmp_path).turns) == 3


@pytest.mark.parametrize("token", ["</s>", "<s>", "[INST]", "[/INST]", "<|im_end|>", "<think>", "</think>"])
@pytest.mark.parametrize("name", ["first-7b", "listwise", "groupwise", "pointwise"])
def test_no_passage_can_end_a_turn_or_a_thought(name: str, token: str) -> None:
    prompts = open_prompts(LLM_RERANKERS[name], "case")
    rendered = prompts._rendered(Question("why?", (f"a {token} b",)), 100)
    text = rendered.text or rendered.messages[-1].content
    assert f"a {token} b" not in text and f"a ‹{token[1:]} b" in text


@pytest.mark.parametrize("tag", ["<passage 2>", "</Passage 1>", "< / query>"])
def test_no_passage_can_write_a_tag_of_its_layout(tag: str) -> None:
    def shown(name: str) -> str:
        rendered = open_prompts(LLM_RERANKERS[name], "case")._rendered(Question("why?", (f"a {tag} b",)), 100)
        return rendered.messages[-1].content

    assert f"a ‹{tag[1:]} b" in shown("listwise")
    assert f"a {tag} b" in shown("rankzephyr-7b"), "the layout of this card has no tags"


def test_a_template_of_the_user_may_have_its_own_system_turn(tmp_path: Path) -> None:
    alone = prompts_of("listwise", "listwise.txt", "Order: {query} {passages}", tmp_path)
    assert [turn.role for turn in alone.turns] == ["system", "user"]
    own = prompts_of("listwise", "listwise.txt", "<<system>>\nMine.\n<<user>>\n{query} {passages}", tmp_path)
    assert [(turn.role, turn.template.text) for turn in own.turns] == [
        ("system", "Mine."),
        ("user", "{query} {passages}"),
    ]
    (tmp_path / "system.txt").write_text(" ")
    (tmp_path / "listwise.txt").write_text("Order: {query} {passages}")
    silent = open_prompts(LLM_RERANKERS["listwise"], "case", tmp_path)
    assert [turn.role for turn in silent.turns] == ["user"], "some servers refuse an empty message"


def test_a_document_that_takes_two_calls_fails_once_and_counts_once(tmp_path: Path) -> None:
    def reply(request: ChatRequest) -> str | Failure:
        return Failure("rate_limit", "429", attempts=3) if request.sampling.max_tokens == 1 else "a thought"

    reranked, _ = rerank("rank1-7b", reply, graded(permutation(6)), tmp_path)
    assert reranked.failures == reranked.asked > 1
    assert f"{reranked.failures} of {reranked.asked} calls gave no usable order" in reranked.notices[0]
