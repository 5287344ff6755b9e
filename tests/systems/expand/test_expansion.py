"""From what is typed to an expansion: who is asked, whose texts are read, and what is told where neither can be."""

import pytest

from r2med import System, UserError, load
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import retriever_of, stage_of
from r2med.models.llm.llm_cards import LLMS
from r2med.systems.expand.generate import Generated
from r2med.systems.retrieve.bm25 import BM25
from support.ready import ScriptedRuntime
from support.scripted_chat import ScriptedChat

ENDPOINT = Runtime(base_url="http://127.0.0.1:9/v1")


def parsed(spec):
    [call] = parse_stage(spec)
    return stage_of(call, "expand")


def test_an_llm_with_a_card_or_an_endpoint_is_asked_and_others_are_read():
    assert parsed("hyde(gpt4)").asks(Runtime())
    assert parsed("hyde(org/any:thing)").asks(ENDPOINT)
    assert parsed("hyde(gpt4)").is_recorded(Runtime(recorded=True))
    assert parsed("hyde(author)").is_recorded(ENDPOINT)
    assert parsed("search-r1(qwen-7b)").asks(Runtime())
    assert parsed("search-r1(nobody)").is_recorded(Runtime())


def test_a_misspelt_llm_is_one_line_with_the_nearest_that_can_be_asked():
    with pytest.raises(UserError) as error:
        parsed("hyde(gtp4)").expand(load("demo/Biology"), Runtime())
    said = str(error.value)
    assert "demo/Biology has no recorded hyde texts of 'gtp4': it has author, qwen-coder" in said
    assert "(did you mean gpt4?)" in said
    assert "r2med list llms" in said
    assert "base_url (--base-url URL)" in said


def test_who_asks_for_recorded_texts_is_told_of_recorded_texts_alone():
    with pytest.raises(UserError) as error:
        parsed("hyde(gpt4)").expand(load("demo/Biology"), Runtime(recorded=True))
    assert str(error.value) == "demo/Biology has no recorded hyde texts of 'gpt4': it has author, qwen-coder"


@pytest.mark.parametrize("setting", ["samples=2", "rounds=1", "prompts=mine"])
def test_settings_of_asking_are_told_apart_from_recorded_texts(setting):
    key = setting.partition("=")[0]
    for llm, recorded in (("gpt4", True), ("author", False)):
        with pytest.raises(UserError, match=f"{key} needs an LLM that is called: recorded texts are searched"):
            parsed(f"hyde({llm}, {setting})").check([], Runtime(recorded=recorded))
    with pytest.raises(UserError, match=r"no known LLM has this name \(did you mean gpt4\?\)"):
        parsed(f"hyde(gtp4, {setting})").check([], Runtime())


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hyde(author)@10", "only rerankers have a depth"),
        ("rm3@10", "only rerankers have a depth"),
        ("hyde(gpt4, samples=2, samples=3)", "samples is given twice"),
        ("hyde(gpt4, by=bge)", "by=bge searches between rounds, but rounds=0"),
        ("hyde", "hyde needs the name of an LLM, such as hyde"),
        ("hide(gpt4)", r"no expansion 'hide' \(did you mean hyde\?\)"),
        ("hyde(gpt4, samples=0)", "samples must be 1 or more, not 0"),
        ("hyde(gpt4, samples=1000000000)", "samples must be 1000 or less, not 1000000000"),
        ("hyde(gpt4, rounds=-1)", "rounds must be 0 or more, not -1"),
        ("hyde(gpt4, rounds=1000000000)", "rounds must be 100 or less, not 1000000000"),
        ("hyde(gpt4, query=kep)", r"query=kep \(did you mean keep\?\)"),
        ("rm3(gpt4)", "rm3 does not know what 'gpt4' is"),
        ("rm3(documents=1000000000)", "documents must be 1000 or less"),
        ("rm3(by=bge)", "the first search must be BM25, whose index has the terms and their statistics, not bge"),
        ("hyde(gpt4, samples=two)", "samples=two is not a whole number"),
        ("rm3(alpha=x)", "alpha=x is not a number"),
    ],
)
def test_what_makes_no_sense_is_one_line(spec, says):
    with pytest.raises(UserError, match=says):
        parsed(spec)


def test_what_searches_between_rounds_runs_as_the_flags_say():
    runtimes = []

    class Watched(BM25):
        def search(self, dataset, queries, k, runtime):
            runtimes.append(runtime)
            return super().search(dataset, queries, k, runtime)

    llm = ScriptedChat(lambda request: "rods")
    chosen = ScriptedRuntime(llm, LLMS.card("gpt4"), device="cpu", trust_remote_code=True)
    Generated(name="hyde", llm="gpt4", rounds=1, by=Watched()).expand(load("demo/Biology"), chosen)
    assert [runtime.setup for runtime in runtimes] == [chosen.setup]


@pytest.mark.parametrize(
    ("spec", "fed_retriever", "searches"),
    [
        ("rm3", "bm25", "bm25"),
        ("rm3", "bm25(scorer=lucene)", "bm25(scorer=lucene)"),
        ("rocchio", "minilm+bm25(k1=1.5)", "bm25(k1=1.5)"),
        ("rm3", "fuse(fuse(minilm+bm25(b=0.5))+minilm, method=minmax)", "bm25(b=0.5)"),
        ("rm3", "minilm", "bm25"),
        ("rm3(by=bm25)", "bm25(scorer=lucene)", "bm25"),
        ("rm3(by=bm25(scorer=lucene))", "bm25", "bm25(scorer=lucene)"),
    ],
)
def test_feedback_searches_with_what_it_feeds_unless_told_otherwise(spec, fed_retriever, searches):
    assert str(parsed(spec).feeding(retriever_of(parse_stage(fed_retriever))).first) == searches


def test_feedback_for_two_scorers_is_not_shared_and_keeps_its_name():
    systems = [System.parse(f"rm3 → {searcher}") for searcher in ("bm25", "bm25(scorer=lucene)", "bm25+minilm")]
    assert [str(system.expander) for system in systems] == ["rm3"] * 3
    assert systems[0].expansion_name == systems[2].expansion_name != systems[1].expansion_name


def test_other_expansions_do_not_depend_on_what_they_feed():
    made = parsed("hyde(gpt4)")
    assert made.feeding(retriever_of(parse_stage("bm25(scorer=lucene)"))) is made


def test_a_folder_of_prompts_may_have_signs_of_the_grammar_in_its_name(tmp_path):
    folder = tmp_path / "my prompts (v2)"
    folder.mkdir()
    (folder / "hyde.post.txt").write_text("Mine: {query}")
    system = System.parse("hyde(gpt4) → bm25", Setup(prompts=str(folder)))
    again = System.parse(system.name)
    assert again.name == system.name
    [request] = [stage.example(load("demo/Biology"), again.runtime) for stage in again.asking.values()]
    assert request.messages[-1].content.startswith("Mine: ")
