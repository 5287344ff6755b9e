"""Prompts that fit the LLM: the largest size that has room, what is cut first, and what never is."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as some

from r2med.foundation.core.errors import UserError
from r2med.models.llm.chat import Failure, Generation
from r2med.models.llm.costs import prompt_tokens
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.fitting import MAX_SHORTENINGS, Fitted, Fitter, ask_fitted, first_words, fit
from r2med.models.prompts.templates import Template

TEMPLATE = Template("t", "{query}|{draft}|{passages}")


def fitter(room: int, system: str = "system") -> Fitter:
    return Fitter(LLMCard(name="m", model="m", context_length=100 + room, max_tokens=100), system)


@given(room=some.integers(-5, 40), least=some.integers(0, 10), more=some.integers(0, 30))
def test_the_largest_size_that_has_room_is_taken(room: int, least: int, more: int) -> None:
    sizes = [size for size in range(least, least + more + 1) if size <= room]
    expected = ("x" * sizes[-1], sizes[-1]) if sizes else None
    assert fit(lambda size: "x" * size, len, room, least, least + more) == expected


def test_the_draft_is_cut_after_the_passages_and_the_query_never() -> None:
    fitted = fitter(60).fill(TEMPLATE, "query " * 10, passages=["passage " * 20], draft="draft " * 100)
    assert isinstance(fitted, Fitted) and fitted.cut
    query, draft, passages = fitted.messages[-1].content.split("|")
    assert query == "query " * 10
    assert draft.startswith("draft draft") and len(draft) < 200
    assert passages == ""
    assert 55 < prompt_tokens(fitted.messages) <= 60
    kept = fitter(60).fill(TEMPLATE, "query", passages=["passage " * 100], draft="draft")
    assert isinstance(kept, Fitted)
    assert kept.messages[-1].content.startswith("query|draft|[1] passage passage")


def test_what_fits_is_not_cut() -> None:
    fitted = fitter(60).fill(TEMPLATE, "query", passages=["one", "two"], draft="draft")
    assert isinstance(fitted, Fitted) and not fitted.cut
    assert fitted.messages[-1].content == "query|draft|[1] one\n\n[2] two"


def test_an_empty_system_prompt_is_left_out() -> None:
    fitted = fitter(60, "").fill(TEMPLATE, "query")
    assert isinstance(fitted, Fitted) and [message.role for message in fitted.messages] == ["user"]


def test_a_query_that_does_not_fit_is_a_failure() -> None:
    failure = fitter(60).fill(TEMPLATE, "query " * 100)
    assert isinstance(failure, Failure) and failure.kind == "context_length" and failure.attempts == 0
    assert failure.message.startswith("the question alone takes about 1")
    assert failure.message.endswith("m has 60 for a prompt")


def test_an_llm_whose_answers_fill_its_context_has_no_room() -> None:
    with pytest.raises(
        UserError, match="m has no room for a prompt: its answers may take 100 tokens of a context of 100"
    ):
        fitter(0)


def test_the_first_words_of_a_text_are_kept_as_they_stand() -> None:
    assert first_words("a  b\nc d", 3) == "a  b\nc"
    assert first_words("a  b\nc ", 3) == "a  b\nc "
    assert first_words("a b", 10**30) == "a b"


def too_long(fits: float = 0.0) -> Failure:
    return Failure("context_length", "too long", fits=fits)


@pytest.mark.parametrize(("fits", "most_tries"), [(0.0, 6), (0.45, 3)])
def test_a_prompt_that_the_server_finds_too_long_is_shortened_and_sent_again(fits: float, most_tries: int) -> None:
    """Each byte is a token for this server, so that the estimate is four times too small."""
    tries: list[int] = []

    def ask(prompts: Mapping[int, Fitted]) -> list[Generation | Failure]:
        sizes = {number: len(prompt.messages[-1].content) for number, prompt in prompts.items()}
        tries.append(sizes[4])
        return [Generation("yes") if size <= 500 else too_long(fits and 500 / size) for size in sizes.values()]

    whole = fitter(250).fill(TEMPLATE, "query", passages=["passage " * 200])
    assert isinstance(whole, Fitted)
    prompt, answer = ask_fitted({4: whole}, ask)[4]
    assert answer == Generation("yes") and prompt.cut
    assert 400 < tries[-1] <= 500 < tries[0] and len(tries) <= most_tries
    assert prompt.messages[-1].content.startswith("query|")


def test_a_prompt_that_cannot_be_shortened_is_sent_once() -> None:
    question = fitter(60).fill(Template("t", "{query}"), "query")
    assert isinstance(question, Fitted)
    assert ask_fitted({0: question}, lambda prompts: [too_long()]) == {0: (question, too_long())}


def test_a_server_that_refuses_every_prompt_is_asked_a_bounded_number_of_times() -> None:
    tries: list[int] = []
    whole = fitter(10_000).fill(TEMPLATE, "q", passages=["passage " * 4000])
    assert isinstance(whole, Fitted)
    _, answer = ask_fitted({0: whole}, lambda prompts: tries.append(1) or [too_long(0.97)])[0]
    assert answer == too_long(0.97) and len(tries) == MAX_SHORTENINGS + 1
