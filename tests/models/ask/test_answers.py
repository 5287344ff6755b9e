"""Answer models: one declaration gives the schema that is sent and the check of the answer."""

import json
from typing import Annotated

import pytest
from pydantic import ValidationError, create_model

from r2med.models.ask.answers import LLMAnswer, Remark, Text, Texts, Truth, letter, number_up_to, one_of
from r2med.models.ask.ask import json_question
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.fitting import Fitter
from r2med.models.prompts.templates import Template


def test_a_schema_names_every_field_in_order_and_allows_no_other():
    class Judged(LLMAnswer):
        why: Text
        score: Annotated[int, number_up_to(2)]
        kind: Annotated[str, one_of("a", "b")]
        names: Texts

    schema = json.loads(Judged.json_schema())
    assert list(schema["properties"]) == schema["required"] == ["why", "score", "kind", "names"]
    assert schema["properties"]["score"] == {"type": "integer", "enum": [0, 1, 2]}
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["a", "b"]}
    assert schema["additionalProperties"] is False


def model(kind):
    """Return a model with one field of a kind."""
    return create_model("One", __base__=LLMAnswer, field=(kind, ...))


SCORE, KIND, LETTER = Annotated[int, number_up_to(5)], Annotated[str, one_of("EXM", "none")], Annotated[int, letter(3)]


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (SCORE, "4", 4),
        (SCORE, 4.0, 4),
        (Truth, "True", True),
        (KIND, "exm", "EXM"),
        (LETTER, "b", 1),
        (LETTER, "(C) Measles", 2),
        (LETTER, "B. Measles", 1),
        (Remark, None, ""),
    ],
)
def test_different_forms_of_a_value_are_read(kind, value, read):
    assert model(kind)(field=value).field == read


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (SCORE, True),
        (SCORE, 2.5),
        (Truth, None),
        (Truth, 1),
        (KIND, None),
        (LETTER, "D"),
        (LETTER, "Because it itches"),
        (LETTER, "A patient"),
        (Text, " "),
        (Texts, ["x", 1]),
    ],
)
def test_nothing_is_guessed(kind, value):
    with pytest.raises(ValidationError):
        model(kind)(field=value)


def test_a_schema_is_sent_only_to_llms_that_support_it():
    class Reason(LLMAnswer):
        why: Text

    def schema(**fields):
        card = LLMCard(name="m", model="m", **fields)
        question = json_question(Fitter(card, "Be brief."), Template("t", "{text}"), {"text": "Why?"}, Reason)
        return question.request(card).schema

    assert schema() == Reason.json_schema()
    # Reasoning before the answer would break it; a card may say that the API takes none; a script is what it is.
    assert not (schema(answer="think") or schema(json_schema=False) or schema(backend="scripted"))
