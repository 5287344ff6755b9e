"""Method cards: those that come with r2med, and a method of one's own without a line of Python."""

import re

import pytest

from r2med import System, UserError, load
from r2med.foundation.core.names import known_names, stage_class
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import stage_of
from r2med.models.llm.llm_cards import LLMS
from r2med.systems.expand.generate import Generated
from r2med.systems.expand.method_cards import METHODS, MethodCard
from r2med.systems.retrieve.retriever import MEAN
from support.ready import Ready, ScriptedRuntime
from support.scripted_chat import ScriptedChat

CARD = """
summary = "Let an LLM name the key terms."
fields = ["query", "passages"]
copies = 3
dense = "{query} {text}"

[passages]
depth = 2
words = 4

[sampling]
temperature = 0.1
max_tokens = 99

[defaults]
samples = 2

[variants.bare]
copies = 0
dense = ""
template = "bare-terms"
fields = ["query"]
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    folder = tmp_path / "plugin"
    for kind in ("methods", "prompts"):
        (folder / kind).mkdir(parents=True)
    (folder / "methods/key-terms.toml").write_text(CARD)
    (folder / "prompts/key-terms.txt").write_text("Terms for {query} given {passages}")
    (folder / "prompts/bare-terms.post.txt").write_text("Terms for the post {query}")
    monkeypatch.setenv("R2MED_PLUGINS", str(folder))
    return folder


def asking(name, store, llm):
    [call] = parse_stage(name)
    expander, setup = stage_of(call, "expand"), Setup(base_url="http://127.0.0.1:9/v1", store=store)
    opened = expander.opened(Runtime(setup))
    runtime = ScriptedRuntime(llm, opened.card, opened.prompts, setup=setup)
    assert expander.asks(runtime)
    return Ready(expander, runtime)


@pytest.mark.parametrize(
    ("method", "copies", "dense"), [("hyde", 0, MEAN), ("query2doc", 2, "{query}[SEP]{text}"), ("lamer", 1, MEAN)]
)
def test_the_benchmark_s_methods_join_texts_as_the_benchmark_does(method, copies, dense):
    card = METHODS[method]
    assert (card.copies, card.dense) == (copies, dense)
    assert (card.passages.depth, card.passages.words) == (10, 512)
    assert Generated.summary(method) == card.summary


def test_a_method_of_one_s_own_is_a_card_and_a_prompt(plugin, store):
    assert {"key-terms", "hyde"} <= set(known_names("expand"))
    assert stage_class("key-terms", "expand").summary("key-terms") == "Let an LLM name the key terms."
    system = System.parse("key-terms(any) → bm25", Setup(base_url="http://127.0.0.1:9/v1"))
    assert system.name == "key-terms(any) → bm25"
    assert System.parse("key-terms(any, samples=1) → bm25").name == "key-terms(any, samples=1) → bm25"
    llm = ScriptedChat(lambda request: f"term {request.sample}")
    expansion = asking("key-terms(any)", store, llm).expand(load("demo/Biology", store))
    query = expansion.queries[0]
    assert query.lexical_text == " ".join([query.query.text] * 3 + ["term 0", "term 1"])
    assert query.dense_form == "{query} {text}"
    assert llm.prompts[0].startswith(f"Terms for {query.query.text} given [1] ")
    shown = llm.prompts[0].partition(" given ")[2].split("\n\n")
    assert [len(passage.split()) for passage in shown] == [5, 5], "a number and four words each"
    assert (llm.asked[0].sampling.temperature, llm.asked[0].sampling.max_tokens) == (0.1, 99)


def test_a_variant_of_a_method_changes_what_it_says(plugin, store):
    llm = ScriptedChat(lambda request: "term")
    expander = asking("key-terms:bare(any, samples=1)", store, llm)
    expansion = expander.expand(load("demo/Biology", store))
    assert expansion.queries[0].lexical_text == "term"
    assert llm.prompts[0] == f"Terms for the post {expansion.queries[0].query.text}"


def test_how_texts_join_the_query_is_part_of_the_key(plugin, store):
    (plugin / "methods/key-terms.toml").write_text(f"{CARD}\n[variants.often]\ncopies = 4\n")
    llm, dataset = ScriptedChat(lambda request: "term"), load("demo/Biology", store)
    once, often = (asking(name, store, llm).key(dataset) for name in ("key-terms(any)", "key-terms:often(any)"))
    assert (once["method"]["copies"], often["method"]["copies"]) == (3, 4)


def test_a_method_that_is_never_asked_reads_recorded_texts(plugin, tmp_path):
    (plugin / "methods/old.toml").write_text('summary = "Texts of old."\nasked = false\n')
    assert stage_class("old", "expand")(name="old", llm="gpt4").is_recorded(Runtime())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("copies = -1", "copies: it must be greater than or equal to 0"),
        ("copies = 1000000000", "copies: it must be less than or equal to 100"),
        ('dense = "{query}"', "names {text}"),
        ('fields = ["query", "answer"]', "fields[1]"),
        ('summry = "x"', "did you mean summary?"),
        ("[passages]\ndepth = 100000", "passages.depth"),
    ],
)
def test_a_card_that_cannot_be_used_is_one_line_with_its_file(plugin, line, says):
    (plugin / "methods/wrong.toml").write_text(f'summary = "x"\n{line}\n')
    with pytest.raises(UserError) as error:
        METHODS.card("hyde")
    assert "wrong.toml" in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [("samples = 1000000", "wrong: samples must be 1000 or less"), ("sample = 2", "did you mean samples?")],
)
def test_the_defaults_of_a_card_are_checked_as_settings_are(plugin, line, says):
    (plugin / "methods/wrong.toml").write_text(f'summary = "x"\n[defaults]\n{line}\n')
    with pytest.raises(UserError, match=re.escape(says)):
        Generated(name="wrong", llm="o3-mini")


def test_the_longest_answer_is_never_longer_than_the_llm_s_card_allows():
    method = MethodCard(name="m", summary="x", sampling={"max_tokens": 5000})
    assert method.llm_card(LLMS.card("smollm2")).max_tokens == LLMS.card("smollm2").max_tokens
    assert method.llm_card(LLMS.card("gpt4")).max_tokens == 5000
