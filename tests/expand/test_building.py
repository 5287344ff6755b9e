"""From what is typed to an expander: who is asked, whose texts are read, and what is told where neither can be."""

import pytest

from r2med import UserError, load
from r2med.expand import Recorded
from r2med.expand.generate import Generated
from r2med.expand.registry import build
from r2med.setup import Setup
from r2med.spec import parse_stage
from r2med.store import default_store

ENDPOINT = Setup(base_url="http://127.0.0.1:9/v1")


def built(spec, options=None):
    [call] = parse_stage(spec)
    return build(call, options or Setup(), default_store())


def test_an_llm_with_a_card_or_an_endpoint_is_asked_and_others_are_read():
    assert isinstance(built("hyde(gpt4)"), Generated)
    assert isinstance(built("hyde(org/any:thing)", ENDPOINT), Generated)
    assert isinstance(built("hyde(gpt4)", Setup(recorded=True)), Recorded)
    assert isinstance(built("hyde(author)", ENDPOINT), Recorded)
    assert isinstance(built("search-r1(qwen-7b)"), Recorded)


def test_a_misspelt_llm_is_one_line_with_the_nearest_that_can_be_asked():
    with pytest.raises(UserError) as error:
        built("hyde(gtp4)").expand(load("demo/Biology"))
    said = str(error.value)
    assert "demo/Biology has no recorded hyde texts of 'gtp4': it has author" in said
    assert "(did you mean gpt4?)" in said
    assert "r2med llms list" in said
    assert "--base-url URL" in said


def test_who_asks_for_recorded_texts_is_told_of_recorded_texts_alone():
    with pytest.raises(UserError) as error:
        built("hyde(gpt4)", Setup(recorded=True)).expand(load("demo/Biology"))
    assert str(error.value) == "demo/Biology has no recorded hyde texts of 'gpt4': it has author"


@pytest.mark.parametrize("setting", ["samples=2", "rounds=1", "by=bm25"])
def test_settings_of_asking_are_told_apart_from_recorded_texts(setting):
    key = setting.partition("=")[0]
    for llm, recorded in (("gpt4", True), ("author", False)):
        with pytest.raises(UserError, match=f"{key} is for an LLM that is asked: its recorded texts are all searched"):
            built(f"hyde({llm}, {setting})", Setup(recorded=recorded))
    with pytest.raises(UserError, match=r"no LLM to ask has this name \(did you mean gpt4\?\)"):
        built(f"hyde(gtp4, {setting})")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hyde(author)@10", "only rerankers have a depth"),
        ("rm3@10", "only rerankers have a depth"),
        ("hyde(gpt4, samples=2, samples=3)", "samples is given twice"),
        ("hyde(gpt4, by=bm25)", "by=bm25 searches between rounds, and there are none"),
        ("hyde(gpt4, samples=two)", "samples=two is not a whole number"),
        ("rm3(alpha=x)", "alpha=x is not a number"),
    ],
)
def test_what_makes_no_sense_is_one_line(spec, says):
    with pytest.raises(UserError, match=says):
        built(spec)


def test_what_searches_between_rounds_runs_as_the_flags_say():
    chosen = Setup(device="cpu", trust_remote_code=True)
    found = built("hyde(gpt4, rounds=1, by=bge)", chosen)
    assert found.by.setup == chosen
