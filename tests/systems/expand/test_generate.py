"""Expansion by an LLM: what is asked, what becomes of the answers, and what is told of failures and cuts."""

from dataclasses import replace

import pytest

from r2med import UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.needs import Size
from r2med.foundation.engine.work import Threads
from r2med.models.llm.chat import Failure, RawAnswer
from r2med.models.llm.costs import prompt_tokens
from r2med.models.llm.llm_cards import LLMCard, Price
from r2med.models.prompts.fitting import NO_PASSAGES
from r2med.systems.expand.generate import Generated
from r2med.systems.expand.method_cards import METHODS
from r2med.systems.expand.text_writer import open_prompts
from r2med.systems.retrieve.bm25 import BM25, bm25_retriever
from r2med.systems.retrieve.bm25.index import open_index
from r2med.systems.retrieve.retriever import SearchReport
from support.ready import Ready, ScriptedRuntime
from support.scripted_chat import ScriptedChat

CARD = LLMCard(name="scripted", model="test/scripted", price=Price(prompt=1.0, completion=2.0))
DOCUMENTS = [
    ("a", "angioedema of the face and lips"),
    ("b", "swollen knee after a fall"),
    ("c", "lips turn blue in the cold"),
    ("d", "hives and itching"),
]


@pytest.fixture
def dataset():
    queries = (Query("1", "swollen face"), Query("2", "blue lips"), Query("3", "zzz"))
    return Dataset("tiny", queries, Corpus.of(DOCUMENTS), Qrels({"1": {"a": 1}}))


def echo(request):
    return f"text {request.sample}"


def failing_for(word, kind="server"):
    return lambda request: Failure(kind, "no") if word in request.messages[-1].content else echo(request)


def asked(llm, method="hyde", card=CARD, prompts=None, **settings):
    return Ready(Generated(name=method, llm=llm.name, **settings), runtime_of(llm, card, prompts))


def runtime_of(llm, card=CARD, prompts=None, **settings):
    return ScriptedRuntime(llm, card, prompts, base_url="http://127.0.0.1:9/v1", **settings)


def expand(dataset, store, reply=echo, method="hyde", card=CARD, **settings):
    llm = ScriptedChat(reply)
    return asked(llm, method, card, **settings).expand(dataset, store), llm


@pytest.mark.parametrize(
    ("method", "choice", "searched"),
    [
        ("hyde", "", "text 0"),
        ("hyde", "keep", "swollen face text 0"),
        ("lamer", "", "swollen face text 0"),
        ("lamer", "drop", "text 0"),
        ("lamer", "keep", "swollen face text 0"),
        ("query2doc", "", "swollen face swollen face text 0"),
        ("query2doc", "keep", "swollen face swollen face text 0"),
        ("query2doc", "drop", "text 0"),
    ],
)
def test_the_original_query_is_searched_as_the_method_has_it_or_as_asked(dataset, store, method, choice, searched):
    expansion, _ = expand(dataset, store, method=method, query=choice)
    assert expansion.queries[0].lexical_text == searched


def test_copies_of_the_query_are_joined_by_spaces_or_glued_as_the_benchmark_did(dataset, store):
    """The original's BM25 searches text * 2 + " " + generated."""
    spaced, _ = expand(dataset, store, method="query2doc")
    glued, _ = expand(dataset, store, method="query2doc", joining="published")
    assert glued.queries[0].lexical_text == "swollen faceswollen face text 0"
    assert glued.digest != spaced.digest


def test_sampling_and_the_system_prompt_come_with_every_request(dataset, store):
    _, llm = expand(dataset, store)
    assert [message.role for message in llm.asked[0].messages] == ["system", "user"]
    assert llm.asked[0].messages[0].content == open_prompts(METHODS["hyde"], "case").system
    sampling = llm.asked[0].sampling
    assert (sampling.temperature, sampling.seed, sampling.max_tokens) == (0.7, 42, 10240)


def test_several_samples_are_numbered_and_all_good_ones_are_kept(dataset, store):
    def reply(request):
        return (
            Failure("truncated", "cut")
            if request.sample == 1 and "blue" in request.messages[-1].content
            else echo(request)
        )

    expansion, llm = expand(dataset, store, reply, samples=3)
    assert sorted(request.sample for request in llm.asked) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [query.generated for query in expansion.queries] == [
        ("text 0", "text 1", "text 2"),
        ("text 0", "text 2"),
        ("text 0", "text 1", "text 2"),
    ]
    assert (expansion.failures, expansion.failure_kinds) == (0, {"truncated": 1})


def test_a_failed_query_is_searched_as_it_is_and_counted(dataset, store):
    expansion, _ = expand(dataset, store, failing_for("blue lips", "refused"))
    assert [query.lexical_text for query in expansion.queries] == ["text 0", "blue lips", "text 0"]
    assert (expansion.failures, expansion.failure_kinds) == (1, {"refused": 1})
    assert "1 of 3 queries got no text and are searched as they are (1 refused)" in expansion.notices[0]


def test_why_answers_failed_is_told_once_a_kind_in_the_words_of_the_first(dataset, store):
    def reply(request):
        prompt = request.messages[-1].content
        if "zzz" in prompt:
            return Failure("budget", "the budget of $1 allows no further request", attempts=0)
        return Failure("server", "server at x answered 500:\n" + ("first " if "face" in prompt else "second ") * 99)

    expansion, _ = expand(dataset, store, reply)
    first, budget, server = expansion.notices
    assert first.endswith("on tiny: 3 of 3 queries got no text and are searched as they are (1 budget, 2 server)")
    assert budget == "hyde(scripted) on tiny: budget: the budget of $1 allows no further request"
    assert "on tiny: server: server at x answered 500: first first" in server
    assert server.endswith("…")
    assert len(server) < 260
    assert "\n" not in server


def test_failures_inside_the_search_between_rounds_are_in_the_expansion(dataset, store):
    class Failing(BM25):
        def is_replayed(self, runtime):
            return True

        def search(self, dataset, queries, k, runtime):
            report = SearchReport(1, 3, {"timeout": 2}, {"1": "2 timeout"}, notices=("the tool was slow",))
            return replace(super().search(dataset, queries, k, runtime), report=report, cost=Cost(calls=7))

    expansion, _ = expand(dataset, store, failing_for("blue lips"), rounds=2, by=Failing())
    assert expansion.cost.calls == 2 * 7 + 3 + 2 * 2, "searches, drafts and refinements of the two drafts"
    assert expansion.failure_kinds == {"server": 1, "timeout": 4}
    assert expansion.failed == {"2": "1 server", "1": "2 timeout, 2 timeout"}
    assert expansion.notices[-2:] == ("the tool was slow",) * 2


def test_a_refinement_that_failed_is_told_with_its_reason(dataset, store):
    def reply(request):
        return Failure("timeout", "too late") if "Draft:" in request.messages[-1].content else "hives"

    expansion, _ = expand(dataset, store, reply, rounds=1)
    assert expansion.failures == 0
    assert [notice.partition(": ")[2] for notice in expansion.notices] == [
        "3 answers failed (3 timeout)",
        "timeout: too late",
    ]


def test_an_empty_answer_is_a_failure(dataset, store):
    expansion, _ = expand(dataset, store, lambda request: " \n")
    assert (expansion.failures, expansion.failure_kinds) == (3, {"empty": 3})


def test_what_the_answers_took_is_told(dataset, store):
    expansion, _ = expand(dataset, store, failing_for("zzz"))
    cost = expansion.cost
    assert (cost.calls, cost.prompt_tokens, cost.completion_tokens) == (3, 20, 10)
    assert cost.dollars == pytest.approx((20 * 1 + 10 * 2) / 1e6)
    assert cost.cut == 0


def test_lamer_shows_bm25_s_best_passages_of_the_same_dataset(dataset, store):
    _, llm = expand(dataset, store, method="lamer")
    assert "[1] angioedema of the face and lips\n\n[2] swollen knee after a fall\n" in llm.prompts[0]
    assert "[1] lips turn blue in the cold" in llm.prompts[1]
    assert NO_PASSAGES in llm.prompts[2]
    assert "hives" not in "".join(llm.prompts)


def test_lamer_shows_ten_passages_of_512_words(store):
    corpus = Corpus.of((f"d{i}", "fever " * (600 + i)) for i in range(12))
    dataset = Dataset("long", (Query("1", "fever"),), corpus, Qrels({"1": {"d1": 1}}))
    _, llm = expand(dataset, store, method="lamer", card=CARD.model_copy(update={"context_length": 10**6}))
    assert llm.prompts[0].count("fever") == 10 * 512 + 1
    assert "[10] fever" in llm.prompts[0]
    assert "[11]" not in llm.prompts[0]


def test_query2doc_shows_its_examples(dataset, store):
    _, llm = expand(dataset, store, method="query2doc")
    assert open_prompts(METHODS["query2doc"], "case").examples in llm.prompts[0]


def test_each_round_searches_with_the_last_text_and_shows_what_it_found(dataset, store):
    replies = {"hyde": "hives", "first": "blue cold", "second": "done"}

    def reply(request):
        prompt = request.messages[-1].content
        if "Draft:" not in prompt:
            return replies["hyde"]
        return replies["second"] if "Draft:\nblue cold" in prompt else replies["first"]

    expansion, llm = expand(dataset, store, reply, rounds=2)
    assert "Draft:\nhives\n" in llm.prompts[3]
    assert "[1] hives and itching" in llm.prompts[3]
    assert "[1] lips turn blue in the cold" in llm.prompts[6]
    assert [query.generated for query in expansion.queries] == [("done",)] * 3
    assert expansion.cost.calls == 9


def test_a_refinement_that_fails_keeps_the_draft_and_a_failed_draft_is_not_refined(dataset, store):
    def reply(request):
        prompt = request.messages[-1].content
        if "blue lips" in prompt:
            return Failure("refused", "no")
        return Failure("timeout", "late") if "Draft:" in prompt else "hives"

    expansion, llm = expand(dataset, store, reply, rounds=1)
    assert [query.generated for query in expansion.queries] == [("hives",), (), ("hives",)]
    assert (expansion.failures, expansion.failure_kinds) == (1, {"refused": 1, "timeout": 2})
    assert expansion.failed == {"1": "1 timeout", "2": "1 refused", "3": "1 timeout"}
    assert len(llm.asked) == 5


def small(context, dataset, store, **settings):
    card = CARD.model_copy(update={"context_length": context, "max_tokens": 100})
    return expand(dataset, store, card=card, **settings)


def test_a_prompt_over_the_context_is_cut_at_its_passages_and_told(store):
    corpus = Corpus.of((f"d{i}", f"fever number{i} " + "word " * 200) for i in range(10))
    dataset = Dataset("long", (Query("1", "fever {x} and query-end"),), corpus, Qrels({"1": {"d1": 1}}))
    expansion, llm = small(1000, dataset, store, method="lamer")
    assert prompt_tokens(llm.asked[0].messages) <= 900
    assert prompt_tokens(llm.asked[0].messages) > 880
    assert "fever {x} and query-end" in llm.prompts[0]
    assert llm.prompts[0].endswith("Right passage:")
    assert "[1] fever" in llm.prompts[0]
    assert "[10]" not in llm.prompts[0]
    assert expansion.cost.cut == 1
    assert "1 prompts have shortened passages" in expansion.notices[0]
    assert expansion.failures == 0


def test_a_query_that_does_not_fit_is_a_counted_failure_and_not_asked(store):
    queries = (Query("1", "fever"), Query("2", "fever " * 5000))
    dataset = Dataset("long", queries, Corpus.of(DOCUMENTS), Qrels({"1": {"a": 1}}))
    expansion, llm = small(1000, dataset, store)
    assert len(llm.asked) == 1
    assert (expansion.failures, expansion.failure_kinds) == (1, {"context_length": 1})
    assert expansion.cost.calls == 1


def test_an_llm_whose_answers_fill_its_context_is_one_line(dataset, store):
    with pytest.raises(UserError, match="scripted has no room for a prompt"):
        small(100, dataset, store)


def test_a_plan_shows_the_first_request_and_counts_all_without_asking(dataset, store):
    llm = ScriptedChat(echo)
    expander = asked(llm, "hyde", samples=2)
    request = expander.example(dataset, store)
    needs, *_ = expander.stage.needs(Size(len(dataset.queries), 5), expander.runtime)
    assert not llm.asked
    expander.expand(dataset, store)
    assert request == llm.asked[0]
    assert needs.calls == needs.most_calls == len(llm.asked) == 6
    refining = asked(llm, rounds=2)
    assert refining.stage.needs(Size(3, 5), refining.runtime)[0].calls == 9


def test_texts_that_reached_their_limit_are_searched_counted_and_told(dataset, store):
    def reply(request):
        return (
            RawAnswer("kept up to here.", finish_reason="length") if "zzz" in request.messages[-1].content else "whole"
        )

    expansion, _ = expand(dataset, store, reply)
    assert [query.generated for query in expansion.queries] == [("whole",), ("whole",), ("kept up to here.",)]
    assert (expansion.cut_texts, expansion.failures) == (1, 0)
    [notice] = expansion.notices
    assert notice.startswith("hyde(scripted) on tiny: 1 of 3 texts reached the token limit and are kept up to")


def test_names_tell_settings_that_differ_from_their_defaults():
    assert str(Generated(name="hyde", llm="o3-mini")) == "hyde(o3-mini)"
    stage = Generated(name="hyde", llm="o3-mini", samples=3, rounds=2, query="keep")
    assert str(stage) == "hyde(o3-mini, samples=3, rounds=2, query=keep)"
    by = BM25(k1=2.0)
    assert str(Generated(name="hyde", llm="o3-mini", rounds=1, by=by)) == "hyde(o3-mini, rounds=1, by=bm25(k1=2))"


def test_the_key_holds_all_a_text_depends_on(dataset, tmp_path):
    def key_with(card=CARD, method="hyde", **settings):
        return asked(ScriptedChat(echo), method, card, **settings).key(dataset)

    (tmp_path / "hyde.case.txt").write_text("Mine: {query}")
    (tmp_path / "refine.case.txt").write_text("Mine: {query} {draft}")
    plain = key_with()
    assert plain["templates"] == key_with(samples=2)["templates"]
    assert plain["templates"] != key_with(prompts=tmp_path)["templates"]
    assert plain["model"] == {"model": "test/scripted"}
    assert plain["sampling"]["temperature"] == 0.7
    assert plain["method"] == {"name": "hyde"} and key_with(method="query2doc")["method"]["copies"] == 2
    variants = [plain, key_with(samples=2), key_with(rounds=1), key_with(query="keep"), key_with(method="lamer")]
    variants += [key_with(rounds=1, prompts=tmp_path), key_with(CARD.model_copy(update={"temperature": 0.1}))]
    assert all(a != b for i, a in enumerate(variants) for b in variants[:i])


def test_a_dataset_without_queries_asks_nothing(store):
    expansion, llm = expand(Dataset("none", (), Corpus.of(DOCUMENTS), Qrels({})), store, samples=2, rounds=1)
    assert (expansion.queries, expansion.failures, llm.asked) == ((), 0, [])


def test_the_demo_expands_by_every_method(store):
    for method in ("hyde", "query2doc", "lamer"):
        expansion, llm = expand(load("demo/IIYi-Clinical"), store, method=method)
        assert (len(expansion.queries), expansion.failures, len(llm.asked)) == (8, 0, 8)
        assert all("diagnos" in prompt for prompt in llm.prompts)


def test_lamer_s_first_search_takes_the_engine_of_the_setup(dataset, store, monkeypatch):
    engine, llm, indexed = Threads(), ScriptedChat(echo), []

    def opened(corpus, runtime, *settings):
        indexed.append(runtime.engine)
        return open_index(corpus, runtime, *settings)

    monkeypatch.setattr(bm25_retriever, "open_index", opened)
    runtime = runtime_of(llm, store=store, engine=engine)
    Generated(name="lamer", llm=llm.name).expand(dataset, runtime)
    assert indexed == [engine]
