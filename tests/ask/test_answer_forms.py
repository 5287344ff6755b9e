"""What an answer holds: one declaration, the schema that is sent and the check of what comes."""

import json

import pytest

from r2med.ask.answer_forms import NAMES, REMARK, TEXT, TRUTH, letter, one_of, read_form, schema_of, score
from r2med.ask.json_answers import json_question
from r2med.llm.llm_cards import LLMCard
from r2med.prompts.fitting import Fitter
from r2med.prompts.templates import Template


def test_a_schema_names_every_field_in_order_and_allows_no_other():
    schema = json.loads(schema_of({"why": TEXT, "score": score(2), "kind": one_of("a", "b"), "names": NAMES}))
    assert list(schema["properties"]) == schema["required"] == ["why", "score", "kind", "names"]
    assert schema["properties"]["score"] == {"type": "integer", "enum": [0, 1, 2]}
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["a", "b"]}
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("part", "value", "read"),
    [
        (score(5), "4", 4),
        (score(5), 4.0, 4),
        (TRUTH, "True", True),
        (one_of("EXM", "none"), "exm", "EXM"),
        (letter(3), "b", 1),
        (letter(3), "(C) Measles", 2),
        (letter(3), "B. Measles", 1),
        (REMARK, None, ""),
    ],
)
def test_what_is_meant_is_read(part, value, read):
    assert part.read(value) == read


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (score(5), True),
        (score(5), 2.5),
        (TRUTH, None),
        (TRUTH, 1),
        (one_of("EXM", "none"), None),
        (letter(3), "D"),
        (letter(3), "Because it itches"),
        (letter(3), "A patient"),
        (TEXT, " "),
        (NAMES, ["x", 1]),
    ],
)
def test_nothing_is_guessed(part, value):
    with pytest.raises((ValueError, TypeError)):
        read_form({"field": part}, {"field": value})


def test_a_schema_goes_only_to_llms_that_keep_one():
    def schema(**fields):
        card = LLMCard(name="m", model="m", **fields)
        question = json_question(Fitter(card, "Be brief."), Template("t", "{text}"), {"text": "Why?"}, {"why": TEXT})
        return question.request(card).schema

    assert schema() == schema_of({"why": TEXT})
    # Reasoning before the answer would break it; a card may say that the API takes none; a script is what it is.
    assert not (schema(answer="think") or schema(json_schema=False) or schema(backend="scripted"))
