"""All conversations advance together, none is another's trouble, and what was said once is never asked again."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from r2med.data import Query
from r2med.foundation.core.spec import encoded
from r2med.foundation.store import Store
from r2med.models.llm.chat import Failure
from r2med.models.llm.journaled import JournaledChat
from r2med.systems.retrieve.bm25 import BM25
from support import chat_server as api
from support.agents import CARD, agent, dataset, said, scripted
from support.datasets import r2med_folder
from support.keys import KEY
from support.processes import environment, wait_for

SEARCH, ANSWER = "<search>angioedema</search>", "<answer>the passage</answer>"


class Counted(BM25):
    """A retriever that remembers how many were asked at a time, and all that it was told."""

    def search(self, dataset, queries, k, runtime):
        SEEN.append(list(queries))
        return super().search(dataset, queries, k, runtime)


SEEN: list[list[Any]] = []


@pytest.fixture(autouse=True)
def _nothing_seen():
    SEEN.clear()


class Calls:
    """An LLM that remembers how many were asked at a time."""

    def __init__(self, llm):
        self.llm, self.sizes, self.name = llm, [], llm.name

    def key(self):
        return self.llm.key()

    def about(self, *datasets):
        return self

    def answers(self, requests):
        self.sizes.append(len(requests))
        return self.llm.answers(requests)


def test_one_call_and_one_search_for_all_that_wait(store):
    llm = Calls(
        scripted(
            {
                "swollen face": [SEARCH, "<search>hives</search>", ANSWER],
                "blue lips": [ANSWER],
                "itching": ["prose", "<search>itching</search>", ANSWER],
            }
        )
    )
    expansion = agent("search-r1", llm, by=Counted()).expand(dataset(), store)
    assert llm.sizes == [3, 2, 2]
    assert [[asked.query.text for asked in batch] for batch in SEEN] == [["angioedema"], ["hives", "itching"]]
    assert expansion.failures == 0


def test_readings_and_turns_are_asked_in_one_call(store):
    query = "<|begin_search_query|>angioedema"
    llm = Calls(
        scripted(
            {
                "swollen face": [query, "**Final Passage** a"],
                "blue lips": ["<|begin_search_query|>zzz", query, "**Final Passage** b"],
                "itching": ["**Final Passage** c"],
            }
        )
    )
    expansion = agent("search-o1", llm).expand(dataset(), store)
    # Three turns; a reading and the turn after a search without results; a turn and a reading; a turn.
    assert llm.sizes == [3, 2, 2, 1]
    assert [query.generated for query in expansion.queries] == [("a",), ("b",), ("c",)]


def test_a_conversation_that_fails_is_no_matter_of_the_others(store):
    llm = scripted(
        {
            "swollen face": [SEARCH, Failure("timeout", "slow")],
            "blue lips": [SEARCH, ANSWER],
            "itching": [said("no", "refusal")],
        }
    )
    expansion = agent("search-r1", llm).expand(dataset(), store)
    assert [query.lexical_text for query in expansion.queries] == ["swollen face", "the passage", "itching"]
    assert (expansion.failures, expansion.failure_kinds) == (2, {"refused": 1, "timeout": 1})
    assert [notice.removeprefix("search-r1(scripted) on tiny: ") for notice in expansion.notices] == [
        "2 of 3 queries got no answer and are searched as they are (1 refused, 1 timeout)",
        "refused: the model declined to answer: no",
        "timeout: slow",
    ]


def test_a_reason_that_many_conversations_share_is_told_once(store):
    llm = scripted({query.text: [Failure("server", "answered HTTP 500")] for query in dataset().queries})
    expansion = agent("search-o1", llm).expand(dataset(), store)
    assert sum("answered HTTP 500" in notice for notice in expansion.notices) == 1


def test_what_it_took_is_told(store):
    llm = scripted({"swollen face": [SEARCH, ANSWER], "blue lips": [ANSWER], "itching": [Failure("server", "no")]})
    expansion = agent("search-r1", llm).expand(dataset(), store)
    cost, counts = expansion.cost, expansion.counts
    assert (cost.calls, cost.prompt_tokens, cost.completion_tokens) == (4, 30, 15)
    assert cost.dollars == pytest.approx((30 * 1 + 15 * 2) / 1e6)
    assert (counts["turns"], counts["searches"]) == (3, 1)
    assert (counts["turns_per_query"], counts["searches_per_query"]) == (1, pytest.approx(1 / 3))
    assert counts["seconds_per_query"] > 0 and counts["search_seconds"] > 0


def test_nothing_of_the_gold_data_reaches_a_prompt_or_a_search(store):
    gold = Query("1", "swollen face", answer="GOLDANSWER", body_system="GOLDSYSTEM")
    for method, turns in (("search-r1", [SEARCH, ANSWER]), ("search-o1", ["<|begin_search_query|>lips", "done"])):
        llm = scripted({"swollen face": turns})
        expansion = agent(method, llm, by=Counted()).expand(dataset((gold,)), store)
        assert expansion.failures == 0
        assert "GOLD" not in f"{llm.asked}{SEEN}{expansion.traces}"


def test_a_dataset_without_queries_asks_nothing(store):
    llm = scripted({})
    assert agent("search-r1", llm).expand(dataset(()), store).queries == ()
    assert not llm.asked


def test_another_corpus_can_be_searched(store, tmp_path):
    elsewhere = r2med_folder(tmp_path / "other", [{"id": "x", "text": "Gluten and angioedema."}])
    llm = scripted({"swollen face": [SEARCH, ANSWER]})
    found = agent("search-r1", llm, corpus=encoded(str(elsewhere)))
    data = dataset((Query("1", "swollen face"),))
    trace = found.expand(data, store).traces["1"]
    assert [document["id"] for document in trace["turns"][0]["documents"]] == ["x"]
    assert found.key(data)["search"]["corpus"] != data.corpus.fingerprint


class Backend:
    """Takes the turns of every question by how far its conversation is; may stop dead before a turn."""

    is_local = False

    def __init__(self, dead_at: int | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.dead_at = dead_at

    def key(self) -> dict[str, Any]:
        return {"backend": "test"}

    def answer(self, requests, done):
        for place, request in enumerate(requests):
            turn = sum(message.role == "assistant" for message in request.messages) + 1
            if turn == self.dead_at:
                raise KeyboardInterrupt
            self.asked.append((request.messages[1].content[-12:], turn))
            done(place, said([SEARCH, "<search>hives</search>", ANSWER][turn - 1]))


@pytest.mark.parametrize("dead_at", [2, 3])
def test_a_run_that_stopped_goes_on_inside_its_conversations(store, dead_at):
    first, second, third = Backend(dead_at), Backend(), Backend()
    with pytest.raises(KeyboardInterrupt):
        agent("search-r1", JournaledChat(CARD, first, store)).expand(dataset(), store)
    resumed = agent("search-r1", JournaledChat(CARD, second, store)).expand(dataset(), store)
    assert len(first.asked) == 3 * (dead_at - 1)
    assert not set(first.asked) & set(second.asked) and len(first.asked) + len(second.asked) == 9
    again = agent("search-r1", JournaledChat(CARD, third, store)).expand(dataset(), store)
    assert not third.asked
    assert again == resumed and again.traces == resumed.traces and again.cost == resumed.cost


CHILD = """
import sys
from r2med import System, load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store

store = Store(sys.argv[2])
runtime = Runtime(base_url=sys.argv[1], store=store)
system = System.parse("search-r1(any) → bm25", runtime)
expansion = system.expander.expand(load("demo/Biology", store), runtime)
print(expansion.failures, *{query.generated for query in expansion.queries})
"""


def child(server: api.Server, home: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CHILD, server.address, str(home)]
    settings = environment(OPENAI_API_KEY=KEY)
    return subprocess.Popen(arguments, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_run_that_was_killed_in_turn_three_asks_no_turn_twice(tmp_path):
    turns = ["<search>light and rods</search>", "<search>cones</search>", ANSWER]
    hanging = True

    async def take_a_turn(exchange):
        done = sum(message["role"] == "assistant" for message in exchange.request.body["messages"])
        step = api.hang if done == 2 and hanging else api.answer(turns[done])
        await step(exchange)

    with api.serve(take_a_turn) as server:
        with child(server, tmp_path) as first:
            wait_for(lambda: sum(server.served.values()) == 16 and server.at_once == 8)
            first.send_signal(signal.SIGKILL)
            first.communicate()
        hanging = False
        asked = len(server.requests)
        with child(server, tmp_path) as second:
            out, err = second.communicate()
        assert second.returncode == 0, err
        assert out.split(maxsplit=1) == ["0", "('the passage',)\n"]
        assert asked == 24 and len(server.requests) == 32, "eight more: the third turns, which had no answer"


def test_a_store_that_is_new_asks_again(tmp_path):
    for number in range(2):
        backend = Backend()
        chat = JournaledChat(CARD, backend, Store(tmp_path / str(number)))
        agent("search-r1", chat).expand(dataset(), Store(tmp_path / str(number)))
        assert len(backend.asked) == 9
