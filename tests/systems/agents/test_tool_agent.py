"""An agent with tools: what each call leads to, how each conversation ends, and which ranking it gives."""

import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from r2med import System, UserError
from r2med.data import Query
from r2med.evaluation.running.text_generation import plan_generation
from r2med.foundation.core.names import kind_of
from r2med.foundation.core.needs import Size
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import stage_of
from r2med.models.llm.chat import Failure, RawAnswer, ToolCall
from r2med.systems.agents.tool_rules import CONTINUE, LAST_TURN, NO_ROOM
from r2med.systems.agents.tools import RANKING_TOOLS, stop_tags, tagged_call
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import SearchQuery
from r2med.systems.retrieve.stored_search import stored_search
from support.agents import CARD, agent, calling, dataset, ranked, ranking_agent, said, scripted
from support.by_day import some_by_day
from support.scripted_chat import ScriptedChat

ONE = (Query("1", "swollen face"),)
SEARCH = ("search", {"query": "angioedema"})
FINISH = ("finish", {"ids": ["d2"]})


def ran(store, *turns, **settings):
    """Return the expansion, the trace and the LLM of one conversation."""
    llm = scripted({"swollen face": turns})
    expansion = ranked(ranking_agent("agent", llm, **settings), dataset(ONE), store)
    return expansion, expansion.traces["1"], llm


def statuses(trace):
    return [turn["status"] for turn in trace["turns"]]


def test_the_chosen_documents_come_first_then_those_of_all_searches(store):
    expansion, trace, llm = ran(store, calling(SEARCH), calling(("search", {"query": "blue", "k": 1})), calling(FINISH))
    assert [hit["id"] for hit in trace["turns"][0]["documents"]] == ["a", "d"]
    assert expansion.rankings == {"1": ("d", "c", "a")}, "d was chosen; a and c are tied, the higher id comes first"
    assert trace["chosen"] == ["d"] and trace["finds"] == ["d", "c", "a"]
    assert (trace["failure"], expansion.failures, statuses(trace)) == (None, 0, ["ok", "ok", "ok"])
    documents = [document for document, _ in expansion.searched.run.top("1")]
    assert documents == ["d", "c", "a", "b"], "the retriever searches the query itself, and finds b too"
    assert (expansion.counts["finished"], expansion.counts["calls_ok"]) == (1, 3)
    assert all(json.loads(request.tools) for request in llm.asked)


def test_ids_of_the_dataset_are_not_shown_and_seen_documents_come_back_without_text(store):
    search_again = ("search", {"query": "hives angioedema"})
    _, _, llm = ran(store, calling(SEARCH), calling(search_again), calling(FINISH))
    first, second = (message.content for message in llm.asked[2].messages if message.role == "tool")
    assert first == "[d1] Angioedema: angioedema of the face and lips\n\n[d2] hives and itching and angioedema"
    assert second == "[d2] (shown before)\n\n[d1] (shown before)"


def test_calls_and_results_are_messages_of_their_own_with_ids_that_every_server_accepts(store):
    think = ("think", {"thought": "hives?"})
    _, _, llm = ran(store, calling(SEARCH, think, text="<think>hm</think>I look."), calling(FINISH))
    assert [message.role for message in llm.asked[1].messages] == ["system", "user", "assistant", "tool", "tool"]
    said, *results = llm.asked[1].messages[2:]
    assert said.content == "I look." and [call.id for call in said.calls] == ["call00001", "call00002"]
    assert [result.call_id for result in results] == ["call00001", "call00002"]


@pytest.mark.parametrize(
    ("turns", "expected", "kind", "ranking"),
    [
        # A tool that does not exist, and arguments that are wrong in all ways.
        ([calling(("look", {})), calling(SEARCH), calling(FINISH)], "unknown_tool ok ok", None, "da"),
        ([calling(("search", '{"query": ')), calling(SEARCH), calling(FINISH)], "bad_arguments ok ok", None, "da"),
        ([calling(("search", "[1]")), calling(SEARCH), calling(FINISH)], "bad_arguments ok ok", None, "da"),
        ([calling(("search", {"q": "x"})), calling(SEARCH), calling(FINISH)], "bad_arguments ok ok", None, "da"),
        ([calling(("search", {"query": " "})), calling(SEARCH), calling(FINISH)], "bad_arguments ok ok", None, "da"),
        ([calling(("search", {"query": "x", "k": "many"})), calling(SEARCH), calling(FINISH)],
         "bad_arguments ok ok", None, "da"),
        ([calling(SEARCH), calling(("finish", {"ids": {"a": 1}})), calling(FINISH)], "ok bad_arguments ok", None, "da"),
        # Ids that do not exist, some or all, and those of the dataset, which were never shown.
        ([calling(SEARCH), calling(("finish", {"ids": ["d9", "D2", "d2"]}))], "ok unknown_ids", None, "da"),
        ([calling(SEARCH), calling(("finish", {"ids": ["a"]})), calling(FINISH)], "ok unknown_ids ok", None, "da"),
        ([calling(("get_document", {"id": "d1"})), calling(SEARCH), calling(FINISH)], "unknown_ids ok ok", None, "da"),
        ([calling(("finish", {"ids": ["d1"]})), calling(SEARCH), calling(FINISH)], "unknown_ids ok ok", None, "da"),
        # Finish twice in one turn: the first counts. Finish with nothing: the searches rank.
        ([calling(SEARCH), calling(FINISH, ("finish", {"ids": ["d1"]}))], "ok ok ignored", None, "da"),
        ([calling(SEARCH), calling(("finish", {"ids": []}))], "ok ok", None, "ad"),
        ([calling(SEARCH), calling(("finish", {"ids": "[\"d2\", 'd1']"}))], "ok ok", None, "da"),
        # No call, a cut text, a cut call, a call before a cut one.
        ([said("Hm."), calling(SEARCH), calling(FINISH)], "no_call ok ok", None, "da"),
        ([said("Hm", "length"), calling(SEARCH), calling(FINISH)], "cut ok ok", None, "da"),
        ([calling(("search", '{"qu'), finish="length"), calling(SEARCH), calling(FINISH)], "cut ok ok", None, "da"),
        ([calling(SEARCH, ("search", '{"qu'), finish="length"), calling(FINISH)], "ok ok", None, "da"),
        # The same query again.
        ([calling(SEARCH), calling(("search", {"query": "Angioedema "})), calling(FINISH)],
         "ok repeated ok", None, "da"),
        # Endless thinking, endless searching, a last turn that is cut; refused; a server that failed.
        ([calling(SEARCH), *[calling(("think", {"thought": "hm"}))] * 3], "ok ok ok ok", "no_marker", "ad"),
        ([calling(SEARCH), *[said("Hm.")] * 3], "ok no_call no_call no_call", "no_marker", "ad"),
        ([*[calling(("think", {"thought": "hm"}))] * 3, calling(SEARCH)], "ok ok ok limit", "no_marker", ""),
        ([said("Hm."), said("Hm", "length"), said("Hm."), calling(SEARCH)], "no_call cut no_call", "no_marker", ""),
        ([calling(SEARCH), *[said("Hm", "length")] * 3], "ok cut cut cut", "truncated", "ad"),
        ([calling(SEARCH), said("No.", "refusal")], "ok -", "refused", "ad"),
        ([calling(SEARCH), said("x", "pause_turn")], "ok -", "unfinished", "ad"),
        ([calling(SEARCH), Failure("rate_limit", "429")], "ok", "rate_limit", "ad"),
        ([Failure("server", "500")], "", "server", ""),
    ],
)  # fmt: skip
def test_every_bad_turn_has_a_status_and_every_end_its_ranking(store, turns, expected, kind, ranking):
    expansion, trace, _ = ran(store, *turns, turns=4)
    assert " ".join(turn.get("status", "-") for turn in trace["turns"]) == expected
    assert (trace["failure"] or {}).get("kind") == kind
    assert "".join(expansion.rankings.get("1", ())) == ranking
    assert expansion.failure_kinds == ({kind: 1} if kind else {}) and expansion.failures == (not ranking)
    assert ("1" in expansion.failed) == bool(kind)


TAGGED = {"search": "<search>angioedema</search>", "finish": "<finish>d2</finish>"}


@pytest.mark.parametrize(
    ("turns", "expected", "kind", "ranking"),
    [
        ([TAGGED["search"], TAGGED["finish"]], "ok ok", None, "da"),
        # The server leaves out the tag at which it stopped.
        (["<think>hm</think> <search>angioedema", "<finish>[d2], [d1]"], "ok ok", None, "da"),
        (['<search k="1">angioedema</search>', "<finish>d1</finish>"], "ok ok", None, "a"),
        (["<search k=many>angioedema</search>", TAGGED["search"], TAGGED["finish"]], "bad_arguments ok ok", None, "da"),
        # Tags that are only mentioned, an unknown tag, a cut one, none at all.
        (["I use <search>query</search>.", TAGGED["search"], TAGGED["finish"]], "no_call ok ok", None, "da"),
        (["<look>x</look>", TAGGED["search"], TAGGED["finish"]], "no_call ok ok", None, "da"),
        ([said("<search>angioe", "length"), TAGGED["search"], TAGGED["finish"]], "cut ok ok", None, "da"),
        (["", TAGGED["search"], TAGGED["finish"]], "no_call ok ok", None, "da"),
        # What follows the first call was made up.
        ([TAGGED["search"] + "[d1] x <finish>d1</finish>", TAGGED["finish"]], "ok ok", None, "da"),
        ([TAGGED["search"], "<get_document>d2</get_document>", TAGGED["finish"]], "ok ok ok", None, "da"),
        ([TAGGED["search"], "<finish>d7</finish>", TAGGED["finish"]], "ok unknown_ids ok", None, "da"),
        ([TAGGED["search"], *["<think>hm</think>"] * 3], "ok no_call no_call no_call", "no_marker", "ad"),
    ],
)
def test_tags_in_the_text_do_the_same_for_models_without_tool_calls(store, turns, expected, kind, ranking):
    expansion, trace, llm = ran(store, *turns, turns=4, calls="tags")
    assert " ".join(statuses(trace)) == expected
    assert (trace["failure"] or {}).get("kind") == kind
    assert "".join(expansion.rankings["1"]) == ranking
    assert not any(request.tools for request in llm.asked)
    assert all(message.role in ("system", "user", "assistant") for message in llm.asked[-1].messages)
    assert llm.asked[0].sampling.stop == stop_tags(RANKING_TOOLS)


def test_a_turn_without_a_call_gets_a_message_and_the_last_turn_a_warning(store):
    _, trace, llm = ran(store, said("Hm."), calling(SEARCH), calling(FINISH), turns=3)
    assert llm.asked[1].messages[-1].content == CONTINUE and trace["turns"][0]["notice"] == CONTINUE
    assert llm.asked[2].messages[-1].role == "tool" and llm.asked[2].messages[-1].content.endswith(LAST_TURN)


def test_thoughts_in_a_field_of_their_own_are_not_sent_back(store):
    thinking = replace(calling(SEARCH), reasoning="It may be hives.")
    _, trace, llm = ran(store, thinking, replace(calling(("think", {"thought": "a"}), text="So."), reasoning="b"),
                        calling(FINISH))  # fmt: skip
    assert [message.content for message in llm.asked[2].messages if message.role == "assistant"] == ["", "So."]
    assert "It may be hives." in trace["turns"][0]["text"], "the trace has them"


def test_the_limit_of_searches_holds_and_every_search_counts_in_a_turn(store):
    three = [("search", {"query": word}) for word in ("angioedema", "blue", "knee")]
    expansion, trace, _ = ran(store, calling(*three), calling(FINISH), searches=2)
    assert statuses(trace) == ["ok", "ok", "limit", "ok"]
    assert [turn.get("further", False) for turn in trace["turns"]] == [False, True, True, False]
    assert (trace["total"]["turns"], trace["total"]["searches"], expansion.counts["turns"]) == (2, 2, 2)
    assert set(expansion.rankings["1"]) == {"a", "c", "d"}


def test_a_whole_document_is_shown_on_request(store):
    long = [("a", "Gout\n" + "urate " * 800), *(("x" * n, "y") for n in range(1, 4))]
    llm = scripted({"swollen face": [calling(("search", {"query": "urate"})), calling(("get_document", {"id": "D1"})),
                                     calling(("finish", {"ids": ["d1"]}))]})  # fmt: skip
    ranked(ranking_agent("agent", llm), dataset(ONE, long), store)
    listed, whole = (message.content for message in llm.asked[-1].messages if message.role == "tool")
    assert (listed.count("urate"), whole.count("urate")) == (512, 800)


def test_results_share_the_room_of_a_small_context(store):
    card = CARD.model_copy(update={"context_length": 4096, "max_tokens": 512})
    long = [(name, f"{name} urate " + "word " * 3000) for name in "abcd"]
    turns = [calling(("search", {"query": "urate"}), ("get_document", {"id": "d1"})), calling(FINISH)]
    llm = scripted({"swollen face": turns})
    expansion = ranked(ranking_agent("agent", llm, card=card), dataset(ONE, long), store)
    results = [message.content for message in llm.asked[1].messages if message.role == "tool"]
    assert all(len(result) <= 4 * 4096 // 8 for result in results)
    assert expansion.cost.cut == 1 and list(expansion.rankings["1"][:1]) == expansion.traces["1"]["chosen"]


def test_a_transcript_that_outgrows_the_context_is_finished_without_its_last_results(store):
    card = CARD.model_copy(update={"context_length": 2048, "max_tokens": 256})
    long = [(f"{name}{n}", f"{name} " + "word " * 3000) for name in ("urate", "tophus", "purine") for n in "123"]
    turns = [calling(("search", {"query": word})) for word in ("urate", "tophus", "purine")]
    llm = scripted({"swollen face": [*turns, calling(("finish", {"ids": ["d1"]}))]})
    expansion = ranked(ranking_agent("agent", llm, card=card), dataset(ONE, long), store)
    last, trace = llm.asked[-1].messages[-1], expansion.traces["1"]
    assert (last.role, last.content) == ("tool", NO_ROOM) and trace["turns"][-2]["status"] == "no_room"
    assert len(trace["chosen"]) == 1 and trace["failure"] is None
    assert len(expansion.rankings["1"]) == 3 * trace["total"]["searches"], "the documents count all the same"


def test_an_agent_sees_nothing_but_the_text_of_a_query(store):
    query = Query("1", "swollen face", answer="SECRET", excluded=("a",))
    llm = scripted({"swollen face": [calling(SEARCH), calling(("finish", {"ids": ["d1"]}))]})
    expansion = ranked(ranking_agent("agent", llm), dataset((query,)), store)
    assert expansion.rankings == {"1": ("d",)}, "the excluded document is not found"
    assert "SECRET" not in repr(llm.asked) and "face and lips" not in repr(llm.asked)


def test_a_model_that_never_calls_a_tool_is_named_with_the_remedy(store):
    expansion, _, _ = ran(store, *[said("Hm.")] * 2, turns=2)
    assert any("calls=tags" in notice for notice in expansion.notices)
    expansion, _, _ = ran(store, *[calling(("rm", {}))] * 2, turns=2)
    assert not any("calls=tags" in notice for notice in expansion.notices), "it did call, though no tool of ours"


def test_half_a_character_in_a_call_is_replaced(store):
    half = "\ud800"  # JSON can write it as an escape, UTF-8 cannot write it at all
    calls = [calling(("search", {"query": f"angioedema {half}"})), calling(("finish", {"ids": [half]}))]
    calls.append(calling((f"look{half}", {half: half})))
    _, trace, _ = ran(store, *calls, calling(FINISH))
    json.dumps(trace, ensure_ascii=False).encode()
    assert statuses(trace)[:2] == ["ok", "unknown_ids"] and statuses(trace)[-1] == "ok"


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("agent", "agent needs the name of an LLM"),
        ("agent(qwen-7b, calls=xml)", "calls=xml: native or tags"),
        ("agent(qwen-7b, turns=0)", "turns must be 1 or more"),
        ("agent(qwen-7b, by=run:x.trec)", "an agent cannot search with it"),
        ("search-r1(qwen-7b, by=bge, remote=http://127.0.0.1:1/retrieve)", "by= and corpus= are for searches on this"),
        ("agent(qwen-7b, via=chat)", "agent has no setting 'via'"),
        ("agent(author)", "name an LLM that is called"),
        ("agent(qwen-7b, by=[run:x.trec → monobert@5])", "an agent cannot search with it"),
        ("search-r1-finds(qwen-7b, corpus=demo/Biology)", "search-r1-finds has no setting 'corpus'"),
    ],
)
def test_what_cannot_be_meant_is_one_line(store, typed, says):
    with pytest.raises(UserError) as error:
        call = parse_stage(typed)[0]
        runtime = Runtime(base_url="http://127.0.0.1:1/v1", store=store)
        stage_of(call, kind_of(call.name)).check([], runtime)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("method", ["agent(any)", "search-o1-finds(any)"])
def test_a_ranking_is_not_a_text_that_can_be_generated(method):
    with pytest.raises(UserError, match="returns documents, not a text"):
        plan_generation(method, ["demo/Biology"], "", Runtime(base_url="http://127.0.0.1:1/v1"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("agent(any) → bge", "agent(any, by=bge)"),
        ("agent(any, turns=5) → bm25+bge → bge-reranker@10", "agent(any, by=bm25+bge, turns=5)"),
        ("agent(any) → [bm25 → bge-reranker@10]", "agent(any, by=[bm25 → bge-reranker@10])"),
        ("agent(any, by=bge) → bm25", "agent(any, by=bge)"),
        ("search-o1-finds(any) → bge", "search-o1-finds(any, by=bge)"),
    ],
)
def test_the_old_form_is_one_line_that_names_the_new_one(old, new):
    setup = Runtime(base_url="http://127.0.0.1:1/v1")
    with pytest.raises(UserError) as error:
        System.parse(old, setup)
    assert f"write {new}" in str(error.value) and "\n" not in str(error.value)
    assert System.parse(new, setup).name == new


def test_an_expansion_before_an_agent_is_one_line():
    with pytest.raises(UserError, match=r"agent\(any\) makes its own queries, so hyde\(any\) before it"):
        System.parse("hyde(any) → agent(any)", Runtime(base_url="http://127.0.0.1:1/v1"))


@pytest.mark.parametrize("method", ["search-r1", "search-o1"])
def test_the_searches_of_the_other_agents_can_be_the_ranking(store, method):
    marks = ("<search>", "</search>") if method == "search-r1" else ("<|begin_search_query|>", "<|end_search_query|>")
    end = "<answer>x</answer>" if method == "search-r1" else "**Final Passage** x"
    turns = [*(marks[0] + word + marks[1] for word in ("angioedema", "hives")), end]
    text = agent(method, scripted({"swollen face": turns}), topk=2).expand(dataset(ONE), store)
    finds = ranked(ranking_agent(f"{method}-finds", scripted({"swollen face": turns}), topk=2), dataset(ONE), store)
    assert text.queries[0].generated == ("x",) and "finds" not in text.traces["1"]
    assert finds.rankings == {"1": ("d", "a")} and finds.traces["1"]["text"] == "x" and finds.failures == 0


def test_an_agent_that_found_nothing_leaves_the_query_to_the_retriever(store):
    llm = scripted({"swollen face": ["<answer>x</answer>"]})
    expansion = ranked(ranking_agent("search-r1-finds", llm), dataset(ONE), store)
    assert (expansion.rankings, expansion.failures, expansion.failure_kinds) == ({}, 1, {"empty": 1})
    assert [document for document, _ in expansion.searched.run.top("1")] == ["b", "a"]


def test_the_most_that_conversations_can_cost_is_known_before(store):
    card = CARD.model_copy(update={"max_tokens": 100})
    agent = ranking_agent("agent", scripted({}), card=card, turns=3)
    needs, *_ = agent.stage.needs(Size(3, 5), agent.runtime)
    assert (needs.calls, needs.most_calls, needs.dollars) == (None, 9, None)
    assert (needs + needs).most_calls == 18


def test_the_text_of_a_turn_ends_at_its_first_call():
    assert tagged_call("a <search>x</search> b", "stop") == (
        "a <search>x</search>",
        ToolCall("", "search", '{"query": "x"}'),
    )
    assert tagged_call("a <search>x", "length") == ("a <search>x", None)


WORDS = ("angioedema", "face", "lips", "swollen", "knee", "fall", "blue", "cold", "hives", "itching")
LIBRARY = [(f"doc{n:02}", " ".join(random.Random(n).choices(WORDS, k=4))) for n in range(40)]


def tagged(name, arguments):
    """Return a call as a model without tool calls writes it."""
    count = f" k={arguments['k']}" if arguments.get("k") else ""
    content = {"search": "query", "finish": "ids", "think": "thought"}.get(name, "id")
    return f"Hm. <{name}{count}>{arguments[content]}</{name}>".replace("'", "")


class Wanderer:
    """Calls tools at random, well and badly, and works out by itself which ranking that must give."""

    def __init__(self, seed, store):
        self.random, self.store = random.Random(seed), store
        self.queries, self.lists, self.seen, self.chosen = {}, [], [], None

    def turn(self, native):
        calls = [self.call() for _ in range(self.random.choice((1, 1, 2, 3)) if native else 1)]
        if self.random.random() < 0.1:
            return RawAnswer("Hm."), []
        return (calling(*calls) if native else RawAnswer(tagged(*calls[0]))), calls

    def call(self):
        name = self.random.choice(("search", "search", "search", "think", "get_document", "finish", "nothing"))
        arguments = {"thought": "hm", "id": f"d{self.random.randint(1, 20)}"}
        if name == "search":
            arguments = {"query": " ".join(self.random.choices(WORDS, k=2)), "k": self.random.choice((None, 1, 3, 99))}
        if name == "finish":
            arguments = {"ids": [f"d{self.random.randint(1, 30)}" for _ in range(self.random.randint(0, 5))]}
        return name, arguments

    def follow(self, turns, limit, topk):
        """Do what the turns say, in the plainest way."""
        for number, calls in enumerate(turns, 1):
            for name, arguments in calls:
                if self.chosen is not None:
                    return
                wanted = arguments.get("k") or topk
                if name == "search" and number < limit and wanted > self.queries.get(arguments["query"], 0):
                    self.queries[arguments["query"]] = wanted
                    self.lists.append(self.found(arguments["query"])[:wanted])
                    self.seen += [each for each in self.lists[-1] if each not in self.seen]
                if name == "finish":
                    positions = [int(each[1:]) for each in arguments["ids"]]
                    known = [self.seen[each - 1] for each in positions if each <= len(self.seen)]
                    if known or not positions:
                        self.chosen = known

    def found(self, text):
        asked = [SearchQuery(Query("x", text))]
        run = stored_search(BM25(), dataset(ONE, LIBRARY), asked, 50, Runtime(store=self.store)).run
        return [document for document, _ in next(iter(run))[1]]

    def ranking(self):
        worth: dict[str, Fraction] = {}
        for found in self.lists:
            for rank, document in enumerate(found, 1):
                worth[document] = worth.get(document, Fraction(0)) + Fraction(1, 60 + rank)
        by_worth = sorted(sorted(worth, reverse=True), key=lambda each: -np.float32(float(worth[each])))
        return tuple(dict.fromkeys([*(self.chosen or ()), *by_worth]))


@pytest.mark.parametrize("calls", some_by_day(["native", "tags"], 2))
def test_the_ranking_of_random_conversations_is_that_of_a_plain_computation(store, calls):
    finished, empty = 0, 0
    for seed in range(50):
        wanderer, turns = Wanderer(seed, store), []

        def reply(request, wanderer=wanderer, turns=turns):
            answer, made = wanderer.turn(calls == "native")
            turns.append(made)
            return answer

        settings = {"turns": 6, "topk": 5, "calls": calls}
        expansion = ranked(ranking_agent("agent", ScriptedChat(reply), **settings), dataset(ONE, LIBRARY), store)
        wanderer.follow(turns, 6, 5)
        assert expansion.rankings.get("1", ()) == wanderer.ranking(), seed
        chosen = None if wanderer.chosen is None else list(dict.fromkeys(wanderer.chosen))
        assert expansion.traces["1"].get("chosen") == chosen
        finished += wanderer.chosen is not None
        empty += not wanderer.lists
    assert 10 < finished < 50 and empty, "all kinds of ends were tried"


def test_the_finds_come_first_and_the_retriever_s_documents_after_them(store):
    data = dataset(ONE)
    llm = scripted({"swollen face": [calling(SEARCH), calling(FINISH)]})
    found = ranked(ranking_agent("agent", llm), data, store, 10)
    plain = stored_search(BM25(), data, [SearchQuery(ONE[0])], 10, Runtime(store=store)).run
    expected = dict.fromkeys(["d", "a", *(document for document, _ in plain.top("1"))])
    assert [document for document, _ in found.searched.run.top("1")] == list(expected)
