"""From what is typed to an agent and back, its key, and one line for what cannot be meant."""

import pytest

from r2med import UserError, load
from r2med.data import Query
from r2med.foundation.core.needs import Size
from r2med.foundation.core.spec import encoded, parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import stage_of
from r2med.models.llm.llm_cards import LLMS
from support.agents import agent, dataset, scripted
from support.datasets import r2med_folder
from support.ready import Ready

ONE = (Query("1", "swollen face"),)
SETUP = Runtime(base_url="http://127.0.0.1:1/v1")


def built(spec, store, setup=SETUP):
    (call,) = parse_stage(spec)
    return Ready(stage_of(call, "expand"), setup.with_settings(store=store))


def is_recorded(expander):
    return expander.stage.is_recorded(expander.runtime)


@pytest.mark.parametrize(
    "name",
    [
        "search-r1(search-r1-3b)",
        "search-r1(search-r1-7b, turns=2, topk=5)",
        "search-r1(any/model:tag, via=completion, template=llama3)",
        "search-r1(qwen-7b, by=bm25(k1=1.2)+minilm)",
        "search-r1(qwen-7b, corpus=demo/Biology)",
        "search-r1(qwen-7b, remote=http://127.0.0.1:8000)",
        "search-o1(qwq-32b)",
        "search-o1(qwq-32b, turns=3, topk=1, via=completion, searches=2)",
    ],
)
def test_a_name_reads_back_as_itself(store, name):
    expander = built(name, store)
    assert expander.name == name
    assert built(expander.name, store).name == name


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
        ("search-r1", "search-r1 needs the name of an LLM, such as search-r1("),
        ("search-r1(a, b)", "search-r1 does not know what 'b' is"),
        (
            "search-r2(qwen-7b)",
            "no expansion 'search-r2' (did you mean search-r1?): rm3, rocchio, search-r1, search-o1",
        ),
        ("search-r1(qwen-7b)@10", "only rerankers have a depth"),
        ("search-r1(qwen-7b, searches=3)", "search-r1 has no setting 'searches'"),
        ("search-o1(qwen-7b, turn=3)", "search-o1 has no setting 'turn' (did you mean turns?)"),
        ("search-o1(qwen-7b, turns=x)", "search-o1: turns=x is not a whole number"),
        ("search-o1(qwen-7b, turns=0)", "turns must be 1 or more, not 0"),
        ("search-o1(qwen-7b, searches=0)", "searches must be 1 or more, not 0"),
        ("search-r1(qwen-7b, topk=-1)", "topk must be 1 or more, not -1"),
        ("search-r1(qwen-7b, turns=1000000000)", "turns must be 1000 or less"),
        ("search-o1(qwen-7b, topk=1000000000)", "topk must be 1000 or less"),
        ("search-r1(qwen-7b, via=char)", "via=char (did you mean chat?): chat or completion"),
        ("search-r1(qwen-7b, via=completion, template=lama3)", "no chat template 'lama3' (did you mean llama3?)"),
        ("search-r1(qwen-7b, template=llama3)", "template=llama3 needs via=completion"),
        ("search-r1(qwen-7b, by=bm52)", "no retriever 'bm52' (did you mean bm25?)"),
        ("search-r1(qwen-7b, remote=localhost:8000)", "is not a URL: it must look like http"),
        ("search-r1(qwen-7b, remote=http://me:pw@host/retrieve)", "must have no password or query"),
        ("search-r1(qwen-7b, remote=http://h/retrieve, by=bge)", "by= and corpus= are for searches on this machine"),
    ],
)
def test_what_cannot_be_meant_is_one_line(store, typed, says):
    with pytest.raises(UserError) as error:
        built(typed, store).check([])
    assert says in str(error.value) and "\n" not in str(error.value)
    assert "pw@" not in str(error.value)


def test_an_llm_without_a_card_needs_an_endpoint(store):
    assert built("search-r1(my-model)", store).name == "search-r1(my-model)"
    expander = built("search-r1(my-model)", store, Runtime())
    assert is_recorded(expander)
    with pytest.raises(UserError, match=r"has no recorded search-r1 texts of 'my-model'.*no known LLM has this name"):
        expander.check([load("demo/Biology", store)])


def test_a_corpus_s_folder_may_have_signs_of_the_grammar_in_its_name(store, tmp_path):
    folder = r2med_folder(tmp_path / "my corpus (2)", [{"id": "x", "text": "Gluten and angioedema."}])
    typed = f"search-r1(qwen-7b, corpus={encoded(str(folder))})"
    expander = built(typed, store)
    assert expander.name == typed
    assert expander.key(dataset())["search"]["corpus"] == load(str(folder), store).corpus.fingerprint


def test_recorded_texts_are_read_where_the_setup_says_so(store):
    assert not is_recorded(built("search-r1(qwen-7b)", store))
    assert is_recorded(built("search-r1(qwen-7b)", store, Runtime(recorded=True)))
    assert is_recorded(built("search-o1(author)", store))
    with pytest.raises(UserError, match="turns needs an LLM that is called"):
        built("search-r1(qwen-7b, turns=2)", store, Runtime(recorded=True)).check([])


def test_a_corpus_that_is_not_there_is_one_line(store):
    with pytest.raises(UserError, match="no dataset or folder 'demo/Bology'"):
        built("search-r1(qwen-7b, corpus=demo/Bology)", store).key(load("demo/Biology", store))


@pytest.mark.parametrize("method", ["search-r1", "search-o1"])
@pytest.mark.parametrize(("choice", "searched"), [("", "a"), ("keep", "swollen face a"), ("drop", "a")])
def test_the_answer_is_searched_alone_unless_the_query_is_kept(store, method, choice, searched):
    turn = "<answer>a</answer>" if method == "search-r1" else "**Final Passage** a"
    expansion = agent(method, scripted({"swollen face": [turn]}), query=choice).expand(dataset(ONE), store)
    assert expansion.queries[0].lexical_text == searched


def test_the_key_holds_all_that_a_score_depends_on():
    data = dataset()
    key = agent("search-o1", scripted({}), via="completion").key(data)
    assert key["search"] == {"by": key["search"]["by"], "corpus": data.corpus.fingerprint}
    assert not {"turns", "searches", "topk", "give"} & key.keys()
    assert agent("search-o1", scripted({}), via="completion", turns=3).key(data) == {**key, "turns": 3}
    assert (key["stage"], key["llm"], key["via"]) == ("search-o1", "scripted", "completion")
    assert key["chat_template"] == "chatml" and key["sampling"]["seed"] == 42
    assert key["reading"]["repetition_penalty"] == 1.05
    other = agent("search-r1", scripted({})).key(data)
    assert other["templates"] != key["templates"] and other["chat_template"] == ""


class Endpoint:
    name = "x"

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def key(self):
        return {} if self.endpoint is None else {"endpoint": self.endpoint}


def sampling(method, card, endpoint=None, reading=False):
    """Return how the turns of an agent are drawn, or its reading of documents."""
    key = agent(method, Endpoint(endpoint), card=card).key(dataset())
    return key["reading" if reading else "sampling"]


def drawn(sampling):
    return tuple(sampling[name] for name in ("temperature", "top_p", "top_k", "repetition_penalty", "max_tokens"))


def test_sampling_is_the_authors_where_the_api_takes_it():
    assert drawn(sampling("search-o1", LLMS.card("qwq-32b"), "1f")) == (0.7, 0.8, 20, 1.05, 20480)
    assert drawn(sampling("search-o1", LLMS.card("qwen3-32b"))) == (0.7, 0.8, 20, None, 8192)
    assert drawn(sampling("search-o1", LLMS.card("gpt4"), ""))[:4] == (0.7, 0.8, None, None)
    assert drawn(sampling("search-o1", LLMS.card("o3-mini"), ""))[:4] == (None, None, None, None)
    r1 = sampling("search-r1", LLMS.card("gpt4"), "")
    assert (r1["temperature"], r1["max_tokens"]) == (0.7, 1024)
    assert sampling("search-r1", LLMS.card("qwq-32b"))["max_tokens"] == 1024
    assert sampling("search-r1", LLMS.card("smollm2"))["max_tokens"] == 512
    small = LLMS.card("qwq-32b").model_copy(update={"context_length": 4096})
    assert sampling("search-o1", small)["max_tokens"] == 2048, "room for more than one turn"


def test_every_model_reads_documents_with_a_penalty_where_the_api_takes_it():
    assert drawn(sampling("search-o1", LLMS.card("qwen3-32b"), reading=True)) == (0.7, 0.8, 20, 1.05, 8192)
    assert drawn(sampling("search-o1", LLMS.card("qwq-32b"), reading=True))[3] == 1.05
    assert drawn(sampling("search-o1", LLMS.card("gpt4"), "", reading=True))[3] is None
    assert drawn(sampling("search-o1", LLMS.card("o3-mini"), "", reading=True))[3] is None
    assert sampling("search-r1", LLMS.card("qwen3-32b"), reading=True) is None


def test_the_models_of_search_r1_have_cards():
    for size in ("3b", "7b"):
        card = LLMS[f"search-r1-{size}"]
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
        ({}, {"search-r1.exma.txt": "{query}"}, "no dataset has the kind 'exma' (did you mean exam?)"),
        ({"corpus": "demo/Bology"}, {"search-r1.case.txt": "{query}"}, "no dataset or folder 'demo/Bology'"),
    ],
)
def test_what_would_stop_it_is_told_before_anything_is_asked(store, tmp_path, settings, files, says):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    llm = scripted({})
    with pytest.raises(UserError) as error:
        agent("search-r1", llm, prompts=tmp_path, **settings).check([dataset()])
    assert says in str(error.value) and not llm.asked


def test_a_sound_agent_passes_the_check():
    expander = agent("search-o1", scripted({}))
    expander.check([dataset()])


@pytest.mark.parametrize(("method", "calls"), [("search-r1", 5), ("search-o1", 25)])
def test_a_plan_has_the_first_request_and_the_most_calls(store, method, calls):
    llm = scripted({query.text: ["no action"] * 30 for query in dataset().queries})
    expander = agent(method, llm)
    assert expander.stage.asks(expander.runtime)
    request = expander.example(dataset(), store)
    needs, *_ = expander.stage.needs(Size(3, 5), expander.runtime)
    assert not llm.asked
    expander.expand(dataset(), store)
    assert request == llm.asked[0]
    assert (needs.calls, needs.most_calls) == (None, 3 * calls)


def test_what_it_searches_with_runs_as_the_flags_say(store):
    chosen = Runtime(device="cpu", trust_remote_code=True)
    expander = built("search-r1(qwen-7b, by=bge)", store, chosen)
    assert expander.stage.source(expander.runtime).runtime.setup.device == "cpu"
