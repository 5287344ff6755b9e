"""Methods whose texts are searched apart, rewriters that replace the query, and rounds that accumulate."""

import itertools
import json
import signal
from dataclasses import replace

import pytest

from r2med import System, UserError, evaluate, load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.foundation.core.needs import Size
from r2med.foundation.core.spec import parse_stage, printed_system
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.models.llm.chat import Failure, RawAnswer
from r2med.models.llm.journal import answers_by_model
from r2med.models.prompts.fitting import NO_PASSAGES
from r2med.models.prompts.templates import open_templates
from r2med.systems.expand.method_cards import METHODS, MethodCard
from r2med.systems.expand.text_writer import ShownPassages
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import SearchQuery
from r2med.systems.retrieve.stored_search import stored_search
from r2med.systems.system.system_specs import cross_product
from support import chat_server as api
from support.keys import KEY
from support.processes import started, wait_for
from support.ready import Ready, ScriptedRuntime
from support.scripted_chat import ScriptedChat

DOCUMENTS = [
    ("a", "angioedema of the face and lips"),
    ("b", "swollen knee after a fall"),
    ("c", "lips turn blue in the cold"),
    ("d", "hives and itching"),
    ("e", "a face with hives"),
]
BM = BM25()


@pytest.fixture
def dataset():
    queries = (Query("1", "swollen face"), Query("2", "blue lips"), Query("3", "zzz"))
    return Dataset("tiny", queries, Corpus.of(DOCUMENTS), Qrels({"1": {"a": 1}}))


def scripted(spec, llm, store):
    """Return the expansion of a spec before BM25, whose LLM is scripted."""
    [call] = parse_stage(spec)
    expander = stage_of(call, "expand").feeding(BM)
    setup = Setup(base_url="http://127.0.0.1:9/v1", store=store)
    opened = expander.opened(Runtime(setup))
    runtime = ScriptedRuntime(llm, opened.card, opened.prompts, setup=setup)
    assert expander.asks(runtime)
    return Ready(expander, runtime)


def card_of(expander):
    return expander.stage.opened(expander.runtime).card


def expanded(spec, dataset, store, reply):
    llm = ScriptedChat(reply)
    return scripted(spec, llm, store).expand(dataset), llm


def texts(query):
    """The texts that are searched for a query, each with its weight."""
    return [(part.lexical_text, weight) for part, weight in query.parts]


def listed(*queries):
    return lambda request: json.dumps(queries)


def test_samples_are_searched_apart_and_fused(dataset, store):
    expansion, _ = expanded("hyde(any, samples=2, join=runs)", dataset, store, lambda request: f"lips {request.sample}")
    assert texts(expansion.queries[0]) == [("lips 0", 1.0), ("lips 1", 1.0)]
    assert expansion.queries[0].generated == ("lips 0", "lips 1"), "for rerankers and pages"
    together, _ = expanded("hyde(any, samples=2)", dataset, store, lambda request: f"lips {request.sample}")
    assert together.queries[0].parts == ()
    assert together.digest != expansion.digest


def test_what_is_joined_with_the_query_is_joined_in_every_run(dataset, store):
    spec = "query2doc(any, samples=2, join=runs, original=2, fuse=sum)"
    expansion, _ = expanded(spec, dataset, store, lambda request: f"text {request.sample}")
    twice = "swollen face swollen face"
    assert texts(expansion.queries[0]) == [("swollen face", 2.0), (f"{twice} text 0", 1.0), (f"{twice} text 1", 1.0)]
    assert expansion.queries[0].fuse == "sum"


def test_a_list_of_queries_replaces_the_query_in_each_run(dataset, store):
    expansion, llm = expanded("queries(any, n=2)", dataset, store, listed("hives", "itching face"))
    query = expansion.queries[0]
    assert texts(query) == [("swollen face", 1.0), ("hives", 1.0), ("itching face", 1.0)]
    assert [part.query.text for part, _ in query.parts] == ["swollen face", "hives", "itching face"]
    assert all((part.generated, part.query.id) == ((), "1") for part, _ in query.parts)
    assert "Write 2 different queries" in llm.prompts[0]
    runtime = Runtime(store=store)
    run = stored_search(BM, dataset, expansion.queries, 5, runtime).run
    alone = [stored_search(BM, dataset, [part], 5, runtime).run.top("1", 5) for part, _ in query.parts]
    worth = {}
    for ranking in alone:
        for rank, (document, _) in enumerate(ranking, 1):
            worth[document] = worth.get(document, 0) + 1 / (60 + rank)
    assert dict(run.top("1", 5)) == pytest.approx(worth)


@pytest.mark.parametrize(
    ("method", "n", "weights", "fuse"),
    [
        ("queries", 3, [1, 1, 1, 1], "rrf"),
        ("rag-fusion", 4, [1, 1, 1, 1, 1], "rrf"),
        ("sub-questions", 4, [1, 1, 1, 1, 1], "rrf"),
        ("hypotheses", 3, [1, 1, 1], "rrf"),
        ("target-mimic", 2, [1, 1, -0.5], "minmax"),
    ],
)
def test_the_methods_with_lists_search_what_their_cards_say(dataset, store, method, n, weights, fuse):
    written = [f"query {number}" for number in range(n)]
    expansion, _ = expanded(f"{method}(any)", dataset, store, listed(*written))
    query = expansion.queries[0]
    assert [weight for _, weight in query.parts] == weights
    assert [text for text, _ in texts(query)][-n:] == written
    assert query.fuse == fuse


def test_the_mimic_is_moved_away_from(dataset, store):
    expansion, _ = expanded("target-mimic(any, weights=1:-2, original=0)", dataset, store, listed("face", "hives"))
    run = stored_search(BM, dataset, expansion.queries, 5, Runtime(store=store)).run
    assert [document for document, _ in run.top("1")] == ["a", "e", "d"], "e has a face and hives"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("I would look for hives.", "invalid"),
        ('["…", "…", "…"]', "invalid"),
        ("  ", "empty"),
        (Failure("rate_limit", "429"), "rate_limit"),
    ],
)
def test_a_query_whose_list_cannot_be_read_is_searched_as_it_is_and_counted(dataset, store, said, kind):
    def reply(request):
        return said if "blue lips" in request.messages[-1].content else '["hives", "itching", "face"]'

    expansion, _ = expanded("queries(any)", dataset, store, reply)
    assert expansion.queries[1] == SearchQuery(dataset.queries[1])
    assert (expansion.failures, expansion.failure_kinds, list(expansion.failed)) == (1, {kind: 1}, ["2"])
    assert f"1 of 3 queries got no text and are searched as they are (1 {kind})" in expansion.notices[0]
    assert dict(stored_search(BM, dataset, expansion.queries, 5, Runtime(store=store)).run)["2"]


def test_repairs_of_lists_are_counted_and_told(dataset, store):
    expansion, _ = expanded("queries(any)", dataset, store, lambda request: "1. hives\n2. Hives")
    assert texts(expansion.queries[0]) == [("swollen face", 1.0), ("hives", 1.0)]
    assert expansion.counts == {"lists_lines": 3, "lists_missing": 6, "lists_repeated": 3}
    assert "lists of queries were read with repairs (3 lines, 6 missing, 3 repeated)" in expansion.notices[0]


def test_a_list_that_was_cut_or_is_too_short_for_its_weights_is_a_failure(dataset, store):
    cut, _ = expanded("queries(any)", dataset, store, lambda request: Failure("truncated", "cut"))
    short, _ = expanded("target-mimic(any)", dataset, store, lambda request: '["hives"]')
    assert (cut.failure_kinds, short.failure_kinds) == ({"truncated": 3}, {"invalid": 3})


def test_several_lists_keep_the_weights_of_their_positions(dataset, store):
    spec = "target-mimic(any, samples=2, original=0)"
    expansion, _ = expanded(spec, dataset, store, lambda r: json.dumps([f"yes {r.sample}", f"no {r.sample}"]))
    assert texts(expansion.queries[0]) == [("yes 0", 1.0), ("no 0", -0.5), ("yes 1", 1.0), ("no 1", -0.5)]


def test_a_rewriter_replaces_the_query_in_one_search_whose_scores_stay(dataset, store):
    expansion, llm = expanded("rewrite(any)", dataset, store, lambda request: "hives")
    assert texts(expansion.queries[0]) == [("hives", 1.0)]
    runtime = Runtime(store=store)
    run = stored_search(BM, dataset, expansion.queries, 5, runtime).run
    plain = [SearchQuery(replace(query, text="hives")) for query in dataset.queries]
    assert dict(run) == dict(stored_search(BM, dataset, plain, 5, runtime).run)
    assert llm.prompts[0].startswith("Rewrite the request below")


@pytest.mark.parametrize(
    ("name", "model", "sampling"),
    [
        ("inf-query-aligner", "infly/inf-query-aligner", (None, None, None, None, 512)),
        ("tongsearch-qr-1.5b", "TongSearch/TongSearch-QR-1.5B", (0.7, 0.8, 20, 1.05, 500)),
        ("tongsearch-qr-3b", "TongSearch/TongSearch-QR-3B", (0.7, 0.8, 20, 1.05, 500)),
        ("tongsearch-qr-7b", "TongSearch/TongSearch-QR-7B", (0.7, 0.8, 20, 1.05, 500)),
        ("bge-reasoner-rewriter", "cfli/reasoner-rewriter-qwen2.5-7b-0821", (0.6, 0.9, 20, 1.05, 8192)),
    ],
)
def test_trained_rewriters_name_no_llm_and_are_asked_as_their_authors_do(dataset, store, name, model, sampling):
    llm = ScriptedChat(lambda request: "hives")
    expander = scripted(name, llm, store)
    expander.expand(dataset)
    assert (card_of(expander).model, expander.name) == (model, name)
    asked = llm.asked[0]
    used = asked.sampling
    assert (used.temperature, used.top_p, used.top_k, used.repetition_penalty, used.max_tokens) == sampling
    assert [message.role for message in asked.messages] == ["user"], "Qwen's own system prompt"
    assert "swollen face" in asked.messages[0].content
    assert System.parse(f"{name} → bm25").name == f"{name} → bm25"
    assert card_of(scripted(f"{name}(other)", llm, store)).model == "other", "another LLM with the same prompt"


def test_the_aligner_s_input_may_have_8192_tokens():
    card = METHODS["inf-query-aligner"].llm
    assert card.context_length - card.max_tokens == 8192


def test_five_whole_outputs_thoughts_included_are_searched_and_their_scores_added(store):
    biology = load("demo/Biology", store)
    with api.serve() as server:
        server.otherwise = api.answer("<think>rods</think>\n<response>cones</response>")
        spec = "bge-reasoner-rewriter → bm25"
        system = System.parse(spec, Setup(base_url=server.address, store=store))
        expansion = system.expand(biology)
        first = server.requests[0].question
    assert [part.query.text for part, _ in expansion.queries[0].parts] == [
        "<think>rods</think>\n<response>cones</response>"
    ] * 5
    assert len(server.requests) == 5 * len(biology.queries)
    task = "Given a Biology post, retrieve relevant passages that help answer the post."
    assert f"## Task\n{task}\n\n## Input\n" in first
    assert expansion.queries[0].fuse == "sum"


def test_a_thought_in_a_field_of_its_own_is_part_of_a_whole_output(dataset, store):
    said = RawAnswer("cones", "rods", "stop", prompt_tokens=1, completion_tokens=1)
    expansion, _ = expanded("bge-reasoner-rewriter(samples=1)", dataset, store, lambda request: said)
    assert expansion.queries[0].generated == ("rods\ncones",)


def test_thinkqe_accumulates_bans_and_balances(dataset, store):
    llm = ScriptedChat(lambda request: "hives itching " * 6 if request.sample else "cold knee " * 6)
    method = METHODS["thinkqe"]
    assert (method.accumulate, method.ban, method.balance, method.passages.depth) == (True, True, 3, 5)
    expansion = scripted("thinkqe(any)", llm, store).expand(dataset)
    assert len(llm.asked) == 3 * 2 * 3, "three rounds, two samples, three queries"
    query = expansion.queries[0]
    assert len(query.generated) == 6
    assert query.copies == 12 * 6 // (3 * 2), "a third of the words of the texts, over two words of the query"
    assert query.lexical_text == " ".join(["swollen face"] * 12 + list(query.generated))
    assert expansion.failures == 0
    first, second = llm.prompts[0], llm.prompts[6]
    assert "angioedema of the face" in first and "a face with hives" in first
    assert "angioedema" not in second and "a face with hives" not in second, "they were shown in the round before"
    assert "lips turn blue" in second and "hives and itching" in second


def test_a_short_text_still_has_its_query_once(dataset, store):
    expansion, _ = expanded("thinkqe(any, rounds=0, samples=1)", dataset, store, lambda request: "hives")
    assert expansion.queries[0].lexical_text == "swollen face hives"


def test_a_round_that_fails_adds_nothing_and_takes_nothing_away(dataset, store):
    calls = itertools.count()
    expansion, _ = expanded(
        "thinkqe(any, samples=1)", dataset, store, lambda r: "hives" if next(calls) < 3 else Failure("server", "no")
    )
    assert expansion.queries[0].generated == ("hives",)
    assert (expansion.failures, expansion.failure_kinds) == (0, {"server": 6})


def test_diver_shows_the_newest_answer_and_keeps_only_the_last(dataset, store):
    calls = itertools.count()
    expansion, llm = expanded("diver-qexpand(any)", dataset, store, lambda request: f"answer {next(calls)}")
    assert len(llm.asked) == 2 * 3
    assert "Earlier answer:\nanswer 0" in llm.prompts[3]
    query = expansion.queries[0]
    assert (query.lexical_text, query.dense_form) == ("swollen face answer 3", "{query}\n\n{text}")
    assert "angioedema" in llm.prompts[0] and "angioedema" not in llm.prompts[3]
    assert NO_PASSAGES in llm.prompts[2]


def test_the_ban_is_that_of_the_authors_code(dataset):
    method = MethodCard(name="m", summary="x", ban=True, passages={"depth": 2})
    shown = ShownPassages(method, 3, dataset, Runtime())
    assert shown.searched == 8
    assert shown._chosen(-1, 0, [1, 2, 3, 4]) == [1, 2]
    assert shown._chosen(0, 0, [2, 3, 1, 5]) == [3, 5], "1 and 2 were the best of the search before"
    assert shown._chosen(0, 0, [1, 2, 6, 7]) == [6, 7], "1 and 2 stay banned"
    assert shown._chosen(0, 0, [6, 3, 8, 9]) == [6, 3], "they were shown, but were not the best of the search before"
    assert shown._chosen(0, 0, [6, 3, 8, 9]) == [8, 9]
    assert shown._chosen(1, 0, [1, 3, 4, 5]) == [3, 4], "another sample has its own ban"


def test_passages_are_found_by_the_retriever_of_the_system_unless_another_is_named(store):
    setup = Setup(base_url="http://127.0.0.1:9/v1", store=store)
    names = {
        spec: System.parse(f"{spec} → bm25(k1=2)", setup).expansion_name
        for spec in ("thinkqe(any)", "thinkqe(any, by=bm25)", "lamer(any)")
    }
    assert names == {
        "thinkqe(any)": "thinkqe(any, by=bm25(k1=2))",
        "thinkqe(any, by=bm25)": "thinkqe(any)",
        "lamer(any)": "lamer(any)",
    }
    system = System.parse("thinkqe(any) → bm25(k1=2)", setup)
    assert system.name == "thinkqe(any) → bm25(k1=2)"
    key = system.stage_keys(load("demo/Biology", store))["expand"]
    assert key["by"]["k1"] == key["candidates"]["k1"] == 2.0


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hyde(any, n=3)", "does not write a list of queries"),
        ("hyde(any, join=runs, weights=1)", "does not write a list of queries"),
        ("hyde(any, fuse=sum)", "add join=runs"),
        ("hyde(any, original=1)", "add join=runs"),
        ("queries(any, n=0)", "n must be 1 or more"),
        ("queries(any, weights=1:2)", "writes 3 queries, but weights has 2 numbers"),
        ("queries(any, original=0, weights=0:0:-1)", "no query has a weight above 0, so nothing would be ranked"),
        ("hypotheses(any, n=4)", "always writes 3 queries"),
        ("queries(any, rounds=1)", "rounds, query, joining and join are not for it"),
        ("rewrite(any, query=keep)", "original=1 searches the original query too"),
        ("queries(any, join=runs)", "join are not for it"),
        ("queries(any, fuse=max)", "rrf or minmax or zscore or sum"),
    ],
)
def test_settings_without_effect_are_refused_in_one_line(spec, says):
    with pytest.raises(UserError) as error:
        System.parse(f"{spec} → bm25")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "says"), [({"answer": "queries"}, "needs the number of queries"), ({"balance": -1}, "balance")]
)
def test_a_card_that_cannot_be_used_is_refused(fields, says):
    with pytest.raises(ValueError, match=says):
        MethodCard.model_validate({"name": "m", "summary": "x", **fields})


def test_samples_of_a_trained_rewriter_can_be_given_and_an_llm_cannot():
    [calls] = cross_product(["bm25"], Setup(), expand=["tongsearch-qr-3b(samples=2)"])
    assert printed_system(calls) == "tongsearch-qr-3b(samples=2) → bm25"
    with pytest.raises(UserError, match="has its LLM already"):
        cross_product(["bm25"], Setup(), expand=["tongsearch-qr-3b"], llms=["gpt4"])


def test_settings_print_and_parse_back():
    for spec in ("hyde(any, samples=5, join=runs)", "queries(any, n=5, fuse=zscore, weights=1:1:1:-0.5:2, original=0)"):
        assert System.parse(f"{spec} → bm25").name == f"{spec} → bm25"


def test_every_method_has_its_templates():
    templates = open_templates()
    for name, card in METHODS.items():
        assert templates.template(card.prompt, "case", card.fields), name
        if card.defaults.get("rounds"):
            assert templates.template(card.refine, "case", ("query", "passages", "draft")), name


def write_texts(folder, method, llm, texts):
    path = folder / "tiny" / method / llm / "query_with_hydoc.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({"id": query, "hy_doc": text}) + "\n" for query, text in texts.items()))


def test_recorded_texts_are_searched_apart_too(dataset, store, tmp_path):
    write_texts(tmp_path, "hyde", "gpt4", {"1": ["hives", "face"], "2": "lips", "3": ""})
    write_texts(tmp_path, "queries", "gpt4", {"1": ["hives", "face"], "2": ["lips"], "3": []})
    write_texts(
        tmp_path, "bge-reasoner-rewriter", "bge-reasoner-rewriter", {"1": "<think>a</think>b", "2": "c", "3": "d"}
    )
    runtime = Runtime(recorded=True, generations=tmp_path, store=store)
    found = {}
    for spec in ("hyde(gpt4, join=runs)", "queries(gpt4)", "bge-reasoner-rewriter"):
        [call] = parse_stage(spec)
        expander = stage_of(call, "expand")
        assert expander.is_recorded(runtime)
        found[spec] = [texts(query) for query in expander.expand(dataset, runtime).queries]
    assert found["hyde(gpt4, join=runs)"] == [[("hives", 1.0), ("face", 1.0)], [("lips", 1.0)], []]
    assert found["queries(gpt4)"][0] == [("swollen face", 1.0), ("hives", 1.0), ("face", 1.0)]
    assert found["queries(gpt4)"][2] == []
    assert found["bge-reasoner-rewriter"][0] == [("<think>a</think>b", 1.0)]


def test_recorded_texts_of_rounds_are_read_before_any_retriever(dataset, store, tmp_path):
    write_texts(tmp_path, "thinkqe", "gpt4", {"1": ["hives", "face"], "2": "lips", "3": "zzz"})
    system = System.parse("thinkqe(gpt4) → bm25(k1=2)", Setup(recorded=True, generations=tmp_path, store=store))
    assert system.expand(dataset).queries[0].lexical_text == "swollen face hives face"


def test_how_texts_are_searched_apart_is_in_the_key_of_recorded_texts(dataset, tmp_path, store):
    runtime = Runtime(recorded=True, generations=tmp_path, store=store)
    keys = [
        stage_of(parse_stage(spec)[0], "expand").key(dataset, runtime)
        for spec in ("hyde(gpt4)", "hyde(gpt4, join=runs)", "hyde(gpt4, join=runs, fuse=sum)")
    ]
    assert "apart" not in keys[0]
    assert len({json.dumps(key) for key in keys}) == 3


def test_a_plan_counts_the_calls_without_loading_a_model(dataset, store):
    llm = ScriptedChat(lambda request: "never")
    for spec, calls in (
        ("queries(any, samples=2)", 6),
        ("bge-reasoner-rewriter", 15),
        ("thinkqe(any)", 18),
        ("diver-qexpand(any, by=bge)", 6),
    ):
        made = scripted(spec, llm, store)
        assert made.stage.needs(Size(3, 5), made.runtime)[0].calls == calls
        assert made.example(dataset)
    assert llm.asked == []


def test_a_server_that_answers_badly_leaves_a_status_for_every_query(store, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    biology = load("demo/Biology", store)
    said = ['["a1", "a2", "a3"]', "prose", "", '["b", "b"]', '```\n["c1", "c2", "c3"]\n```\nBye']
    with api.serve() as server:
        server.script = [api.refuse(429), *(api.answer(text) for text in said)]
        server.otherwise = api.answer("1. d1\n2. d2")
        system = System.parse("queries(any) → bm25", Setup(base_url=server.address, store=store, concurrency=1))
        record = evaluate(system, biology, store=store)
    expansion = record.stages[0]
    assert expansion.failure_kinds == {"empty": 1, "invalid": 1}
    assert expansion.failures == 2
    assert expansion.details["lists_repeated"] == 1
    assert len(server.requests) == len(biology.queries) + 1, "the 429 was tried again"


CHILD = """
import sys
from r2med import System, evaluate, load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store

store = Store(sys.argv[2])
system = System.parse("queries(any, samples=2) → bm25", Setup(base_url=sys.argv[1], store=store, concurrency=1))
record = evaluate(system, load("demo/Biology", store), store=store)
print(record.stages[0].failures, record.stages[0].cost.calls)
"""


@pytest.mark.slow
def test_a_run_that_was_killed_in_the_middle_asks_nothing_twice(tmp_path):
    hanging = True

    async def reply(exchange):
        answered = sum(exchange.server.served.values())
        await (api.hang if hanging and answered >= 9 else api.answer('["rods", "cones", "light"]'))(exchange)

    def kept():
        return sum(len(keys) for keys in answers_by_model(Store(tmp_path)).values())

    with api.serve(reply) as server:
        arguments = ["-c", CHILD, server.address, str(tmp_path)]
        with started(arguments, OPENAI_API_KEY=KEY) as first:
            wait_for(lambda: kept() == 9 and len(server.requests) == 10)  # a kill can take no answer
            first.send_signal(signal.SIGKILL)
            first.communicate()
        hanging = False
        with started(arguments, OPENAI_API_KEY=KEY) as second:
            out, err = second.communicate()
        assert second.returncode == 0, err
        assert out.split() == ["0", "16"]
        assert len(server.requests) == 17, "only the call that was under way is made again"
