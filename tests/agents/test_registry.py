"""From what is typed to an agent and back, what it is described by, and one line for what cannot be meant."""

import pytest

from r2med import UserError, load
from r2med.agents.registry import METHODS, build
from r2med.agents.settings import sampling
from r2med.agents.sources import Ours
from r2med.expand import METHODS as RECORDED
from r2med.expand.contracts import QUERY_COPIES, Checked, Expander
from r2med.llm.llm_cards import llm_card, llms
from r2med.retrieve.bm25 import BM25
from r2med.setup import Setup
from r2med.spec import parse_stage
from support.agents import agent, dataset, scripted

OPTIONS = Setup(base_url="http://127.0.0.1:1/v1")


def built(spec, store, options=OPTIONS):
    (call,) = parse_stage(spec)
    return build(call, options, store)


@pytest.mark.parametrize(
    "name",
    [
        "search-r1(search-r1-3b)",
        "search-r1(search-r1-7b, turns=2, topk=5)",
        "search-r1(any/model:tag, via=completion, template=llama3)",
        "search-r1(qwen-7b, by=bm25(k1=1.2)+minilm)",
        "search-r1(qwen-7b, corpus=demo/Biology)",
        "search-r1(qwen-7b, remote=http://127.0.0.1:8000/retrieve)",
        "search-o1(qwq-32b)",
        "search-o1(qwq-32b, turns=3, searches=2, topk=1, via=completion)",
    ],
)
def test_a_name_reads_back_as_itself(store, name):
    found: Expander = built(name, store)
    assert found.name == name
    assert built(found.name, store).name == name


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("search-r1(qwen-7b, turns=4, topk=3, by=bm25, via=chat)", "search-r1(qwen-7b)"),
        ("search-o1(qwq-32b, turns=15, searches=10, topk=10)", "search-o1(qwq-32b)"),
        ("search-o1(qwq-32b, via=chat, turns=16)", "search-o1(qwq-32b, turns=16)"),
    ],
)
def test_settings_at_their_defaults_are_left_out(store, typed, name):
    assert built(typed, store).name == name


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("search-r1", "search-r1 needs the name of an LLM, such as search-r1(qwen-7b)"),
        ("search-r1(a, b)", "needs the name of an LLM"),
        ("search-r2(qwen-7b)", "no search agent 'search-r2' (did you mean search-r1?): search-r1, search-o1"),
        ("search-r1(qwen-7b, searches=3)", "search-r1 has no setting 'searches'"),
        ("search-o1(qwen-7b, turn=3)", "search-o1 has no setting 'turn' (did you mean turns?)"),
        ("search-o1(qwen-7b, turns=x)", "search-o1: turns=x is not a whole number"),
        ("search-o1(qwen-7b, turns=0)", "turns must be 1 or more, not 0"),
        ("search-o1(qwen-7b, searches=0)", "searches must be 1 or more, not 0"),
        ("search-r1(qwen-7b, topk=-1)", "topk must be 1 or more, not -1"),
        ("search-r1(qwen-7b, via=char)", "via='char' (did you mean chat?): chat or completion"),
        ("search-r1(qwen-7b, via=completion, template=lama3)", "no chat template 'lama3' (did you mean llama3?)"),
        ("search-r1(qwen-7b, template=llama3)", "template=llama3 is for via=completion"),
        ("search-r1(qwen-7b, by=bm52)", "no retriever 'bm52' (did you mean bm25?)"),
        ("search-r1(qwen-7b, remote=localhost:8000)", "remote=localhost:8000 is no URL: it should look like http"),
        ("search-r1(qwen-7b, remote=http://me:pw@host/retrieve)", "no password or query in it"),
        ("search-r1(qwen-7b, remote=http://h/retrieve, by=bm25)", "by= and corpus= are for searches made here"),
    ],
)
def test_what_cannot_be_meant_is_one_line(store, typed, says):
    with pytest.raises(UserError) as error:
        built(typed, store)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert "pw@" not in str(error.value)


def test_an_llm_without_a_card_needs_an_endpoint(store):
    assert built("search-r1(my-model)", store).name == "search-r1(my-model)"
    with pytest.raises(UserError, match="no LLM 'my-model'"):
        built("search-r1(my-model)", store, Setup())


def test_a_corpus_that_is_not_there_is_one_line(store):
    with pytest.raises(UserError, match="no dataset or folder 'demo/Bology'"):
        built("search-r1(qwen-7b, corpus=demo/Bology)", store).describe(load("demo/Biology", store))


def test_the_answer_is_searched_alone_like_a_recorded_one():
    assert set(METHODS) <= set(RECORDED)
    assert not set(METHODS) & set(QUERY_COPIES), "no copies of the query beside the text"


def test_all_that_a_score_depends_on_is_described():
    data = dataset()
    told = agent("search-o1", scripted({}), via="completion").describe(data)
    assert told["search"] == {"by": told["search"]["by"], "corpus": data.corpus.fingerprint}
    assert (told["turns"], told["searches"], told["topk"], told["via"]) == (15, 10, 10, "completion")
    assert told["chat_template"] == "chatml" and told["sampling"]["seed"] == 42
    other = agent("search-r1", scripted({})).describe(data)
    assert other["templates"] != told["templates"] and other["chat_template"] == ""


class Endpoint:
    name = "x"

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def describe(self):
        return {} if self.endpoint is None else {"endpoint": self.endpoint}


def test_sampling_is_the_authors_where_the_api_takes_it():
    qwq = sampling("search-o1", llm_card("qwq-32b"), Endpoint("1f"))
    assert (qwq.temperature, qwq.top_p, qwq.top_k, qwq.repetition_penalty) == (0.7, 0.8, 20, 1.05)
    assert sampling("search-o1", llm_card("qwen3-32b"), Endpoint(None)).repetition_penalty is None
    openai = sampling("search-o1", llm_card("gpt4"), Endpoint(""))
    assert (openai.temperature, openai.top_p, openai.top_k) == (0.7, 0.8, None)
    reasoning = sampling("search-o1", llm_card("o3-mini"), Endpoint(""))
    assert (reasoning.temperature, reasoning.top_p, reasoning.top_k) == (None, None, None)
    r1 = sampling("search-r1", llm_card("gpt4"), Endpoint(""))
    assert (r1.temperature, r1.max_tokens) == (0.7, 1024)
    assert sampling("search-r1", llm_card("smollm2"), Endpoint(None)).max_tokens == 512
    small = llm_card("qwq-32b").model_copy(update={"context_length": 4096})
    assert sampling("search-o1", small, Endpoint(None)).max_tokens == 2048, "room for more than one turn"


def test_the_models_of_search_r1_have_cards():
    for size in ("3b", "7b"):
        card = llms()[f"search-r1-{size}"]
        assert card.model == f"PeterJinGo/SearchR1-nq_hotpotqa_train-qwen2.5-{size}-it-em-ppo"
        assert (card.answer, card.chat_template) == ("answer-tag", "chatml")


def test_one_s_own_prompts_are_used(store, tmp_path):
    (tmp_path / "search-r1.case.txt").write_text("Mine:\n{query}")
    llm = scripted({"swollen face": ["<answer>a</answer>"], "blue lips": ["<answer>b</answer>"], "itching": ["x"] * 5})
    agent("search-r1", llm, prompts=tmp_path).expand(dataset(), store)
    assert llm.prompts[0] == "Mine:\nswollen face"


@pytest.mark.parametrize(
    ("settings", "files", "says"),
    [
        ({}, {"search-r1.case.txt": "{query} {answer}"}, "unknown field {answer}"),
        ({}, {"search-r1.exma.txt": "{query}"}, "no dataset is of kind 'exma' (did you mean exam?)"),
        ({"corpus": "demo/Bology"}, {"search-r1.case.txt": "{query}"}, "no dataset or folder 'demo/Bology'"),
    ],
)
def test_what_would_stop_it_is_told_before_anything_is_asked(store, tmp_path, settings, files, says):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    llm = scripted({})
    with pytest.raises(UserError) as error:
        agent("search-r1", llm, Ours(BM25(), store=store, **settings), prompts=tmp_path).check([dataset()])
    assert says in str(error.value) and not llm.asked


def test_a_sound_agent_passes_the_check():
    found = agent("search-o1", scripted({}))
    assert isinstance(found, Checked)
    found.check([dataset()])


def test_what_it_searches_with_runs_as_the_flags_say(store):
    chosen = Setup(device="cpu", trust_remote_code=True)
    found = built("search-r1(qwen-7b, by=bge)", store, chosen)
    assert found.source.by.setup == chosen
