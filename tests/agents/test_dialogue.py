"""What is sent: messages or one text, with room for the answer; and an answer as one text."""

import pytest

from r2med import UserError
from r2med.agents.chat_templates import TEMPLATES, chat_template
from r2med.agents.contracts import Conversation, Part, Read
from r2med.agents.dialogue import Dialogue, joined, messages
from r2med.llm.contracts import Message, RawAnswer, Sampling
from r2med.llm.llm_cards import llms

PARTS = (Part("user", "Q"), Part("model", " text "), Part("user", "\n\n<information>i</information>\n\n"))


def test_messages_take_turns_and_none_is_empty():
    assert messages("S", PARTS) == (
        Message("system", "S"),
        Message("user", "Q"),
        Message("assistant", "text"),
        Message("user", "<information>i</information>"),
    )
    assert messages("", PARTS)[0] == Message("user", "Q")
    told = (Part("user", "Q"), Part("model", " "), Part("user", "again"))
    assert messages("S", told) == (Message("system", "S"), Message("user", "Q\n\nagain"))


@pytest.mark.parametrize("template", TEMPLATES)
def test_one_text_is_the_template_and_the_transcript_after_it(template):
    request = Dialogue("S", Sampling(max_tokens=50), 4096, ("</x>",), template).request(Conversation(PARTS))
    assert request is not None and not request.messages
    opening = chat_template(template).render({"system": "S", "user": "Q"})
    assert request.prompt == f"{opening} text \n\n<information>i</information>\n\n"
    assert request.sampling == Sampling(max_tokens=50, stop=("</x>",))


def test_the_rendered_templates_are_those_that_the_models_know():
    assert chat_template("chatml").render({"system": "S", "user": "Q"}) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat_template("chatml-think").text == chat_template("chatml").text + "<think>\n"
    for card in llms().values():
        chat_template(card.chat_template)
    with pytest.raises(UserError, match=r"no chat template 'chatm' \(did you mean chatml\?\): chatml, "):
        chat_template("chatm")


def test_a_reading_is_a_question_of_its_own():
    reading = Conversation(PARTS, Read("look at these"))
    request = Dialogue("S", Sampling(max_tokens=50), 4096, ("</x>",)).request(reading)
    assert request is not None and request.sampling.stop == ()
    assert request.messages == (Message("system", "S"), Message("user", "look at these"))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (RawAnswer("plain"), "plain"),
        (RawAnswer("content", "thought"), "<think>thought</think>content"),
        (RawAnswer("", "stopped in thought <search>"), "<think>stopped in thought <search>"),
        (RawAnswer("content", " \n"), "content"),
        (RawAnswer("half a pair \ud83d"), "half a pair �"),
    ],
)
def test_reasoning_of_its_own_field_is_joined(answer, text):
    assert joined(answer).text == text
