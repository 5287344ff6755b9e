"""A search server elsewhere: its protocol, its answers kept, and whatever may be wrong with it."""

import json
from collections.abc import Iterator
from functools import partial
from unittest.mock import patch

import pytest

from r2med import UserError
from r2med.data import Query
from r2med.foundation.net.request_loop import Policy
from r2med.foundation.store.holdings import clear_texts, rows_about
from r2med.models.llm.chat import Failure
from r2med.systems.agents import agent_stage
from r2med.systems.agents.remote_search import MalformedAnswer, RemoteSearch, ServerAddress, read_answer
from r2med.systems.agents.search_r1 import SearchR1
from support import retrieve_server as api
from support.agents import agent, dataset, scripted
from support.loopback import nobody_listening

FAST = Policy(concurrency=4, attempts=3, first_wait=0.01, deadline=60, idle=20)
HASTY = Policy(concurrency=4, attempts=2, first_wait=0.01, deadline=60, idle=1.0)
ANSWER = "<answer>the passage</answer>"


@pytest.fixture
def server() -> Iterator[api.RetrieveServer]:
    with api.serve() as running:
        yield running


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("R2MED_SERVE_TOKEN", raising=False)


def at(url, policy=FAST):
    return RemoteSearch(ServerAddress.parse(url), policy)


class Opened:
    """A server that is searched, for what it brings."""

    def __init__(self, source):
        self.source = source

    def search(self, requests):
        return list(self.source.search(requests).documents)


def opened(server, store, topk=3, policy=FAST, data=None):
    return Opened(at(server.url, policy).open(data or dataset(), store, topk))


def wants(*texts, excluded=()):
    return [Query(str(number), text, excluded=excluded) for number, text in enumerate(texts)]


def lead(server, store, policy=FAST, more=()):
    searches = {query.text: [f"<search>{query.text}</search>", ANSWER] for query in dataset().queries}
    for text in more:
        searches[text].insert(1, f"<search>more about {text}</search>")
    with patch.object(agent_stage, "RemoteSearch", partial(RemoteSearch, policy=policy)):
        return agent("search-r1", scripted(searches), remote=server.url).expand(dataset(), store)


def test_a_batch_is_asked_in_the_protocol_of_search_r1(server, store):
    found = opened(server, store).search(wants("gout", "lips", "gout"))
    assert server.asked == [{"queries": ["gout", "lips"], "topk": 3, "return_scores": True}]
    assert [[document.id for document in documents] for documents in found] == [["a", "elsewhere-1", "elsewhere-2"]] * 3
    assert found[0][0].contents == "Title\ngout in version 1" and found[0][0].score == 1.0


def test_many_queries_go_in_several_requests(server, store):
    found = opened(server, store).search(wants(*(f"q{number}" for number in range(40))))
    assert sorted(len(body["queries"]) for body in server.asked) == [8, 16, 16]
    assert [documents[0].contents for documents in found] == [f"Title\nq{number} in version 1" for number in range(40)]


def test_documents_that_a_query_was_made_from_are_left_out(server, store):
    data = dataset((Query("1", "x", excluded=("a", "nowhere")), Query("2", "y")))
    source = opened(server, store, topk=2, data=data)
    (found,) = source.search(wants("gout", excluded=("a", "nowhere")))
    assert [document.id for document in found] == ["elsewhere-1", "elsewhere-2"]
    assert server.asked[0]["topk"] == 4
    (found,) = source.search(wants("gout"))
    assert [document.id for document in found] == ["a", "elsewhere-1"]
    assert len(server.asked) == 1, "whoever asks, it is the same question"


def test_an_address_without_a_path_means_the_usual_one():
    assert ServerAddress.parse("http://127.0.0.1:8000").url == "http://127.0.0.1:8000/retrieve"
    assert ServerAddress.parse("http://127.0.0.1:8000/").url == "http://127.0.0.1:8000/retrieve"
    assert ServerAddress.parse("http://127.0.0.1:8000/other").url == "http://127.0.0.1:8000/other"


SECRET = "http://127.0.0.1:8000/sk-3f9a77/retrieve"


def test_a_token_in_the_path_is_never_shown_and_tells_servers_apart_all_the_same():
    stage, other = (SearchR1(llm="qwen-7b", remote=url) for url in (SECRET, "http://127.0.0.1:8000/sk-other/retrieve"))
    expander = agent("search-r1", scripted({}), remote=SECRET)
    shown = f"{stage} {stage!r} {stage.settings()} {expander!r} {expander.key(dataset())}"
    assert "3f9a77" not in shown
    assert "remote=http://127.0.0.1:8000/…" in str(stage)
    assert str(stage) != str(other)
    assert stage.remote.url == SECRET


def test_a_name_whose_token_was_left_out_does_not_pass_for_an_address():
    name = str(SearchR1(llm="qwen-7b", remote=SECRET).remote)
    with pytest.raises(UserError, match="a part that may be a token is hidden: write the whole address"):
        ServerAddress.parse(name)


def test_a_token_in_the_path_is_in_no_error_and_no_trace(server, store):
    with nobody_listening() as address, pytest.raises(UserError) as error:
        at(f"{address}/sk-3f9a77").open(dataset(), store, 3).search(wants("gout"))
    assert "3f9a77" not in str(error.value)


def test_the_token_of_the_environment_is_sent_and_shown_nowhere(server, store, monkeypatch):
    monkeypatch.setenv("R2MED_SERVE_TOKEN", "marked-token-93")
    opened(server, store).search(wants("gout"))
    assert server.headers[0]["authorization"] == "Bearer marked-token-93"
    server.otherwise = api.status(403, '{"detail": "marked-token-93 is wrong"}')
    with pytest.raises(UserError) as error:
        opened(server, store).search(wants("lips"))
    assert "R2MED_SERVE_TOKEN" in str(error.value) and "marked" not in str(error.value)
    monkeypatch.delenv("R2MED_SERVE_TOKEN")
    server.otherwise = None
    opened(server, store).search(wants("knee"))
    assert "authorization" not in server.headers[-1]


def test_what_was_found_is_kept_so_that_a_run_started_again_sees_the_same(server, store):
    first = opened(server, store).search(wants("gout"))
    server.version = 2
    assert opened(server, store).search(wants("gout", "lips"))[0] == first[0]
    assert [body["queries"] for body in server.asked] == [["gout"], ["lips"]]
    assert opened(server, store, topk=2).search(wants("gout")) != first, "another depth is another question"
    (fresh,) = opened(server, store.with_policy("fresh")).search(wants("gout"))
    assert fresh[0].contents.endswith("version 2"), "a run that starts over asks again"


def test_what_was_found_goes_with_its_dataset_and_a_live_store_keeps_nothing(server, store):
    opened(server, store.with_policy("live")).search(wants("gout"))
    assert not list(store.root.glob("remote/*"))
    opened(server, store.about("ward")).search(wants("gout"))
    assert [file.parent.name for file in rows_about(store, ["ward"])] == ["remote"]
    clear_texts(store, ["ward"])
    opened(server, store).search(wants("gout"))
    assert [body["queries"] for body in server.asked] == [["gout"]] * 3


def test_an_agent_searches_there_and_is_told_of_foreign_documents(server, store):
    expansion = lead(server, store)
    assert expansion.failures == 0 and len(server.asked) == 1
    documents = expansion.traces["1"]["turns"][0]["documents"]
    assert [document["id"] for document in documents] == ["a", "elsewhere-1", "elsewhere-2"]
    assert documents[1]["contents"] == "Title\nswollen face in version 1", "nobody could look it up here"
    (notice,) = expansion.notices
    assert "the search server returned 2 of 3 documents outside the corpus of tiny" in notice
    again = lead(server, store)
    assert again.traces == expansion.traces and len(server.asked) == 1


@pytest.mark.parametrize("step", [api.status(503), api.status(429, Retry_After="0"), api.drop, api.status(500)])
def test_temporary_errors_are_retried(server, store, step):
    server.script = [step]
    (found,) = opened(server, store).search(wants("gout"))
    assert found[0].id == "a" and len(server.asked) == 2


def test_a_server_that_went_away_between_two_runs_is_one_line_too(server, store):
    lead(server, store)
    server.otherwise = api.status(404)
    with pytest.raises(UserError, match="r2med serve"):
        lead(server, store, more=["itching"])


def test_no_server_at_the_start_is_one_line_that_names_it(store):
    with nobody_listening() as address, pytest.raises(UserError) as error:
        at(address).open(dataset(), store, 3).search(wants("gout"))
    said = str(error.value)
    assert f"remote={address}:" in said and "r2med serve DATASET --retriever bm25" in said
    assert "base URL" not in said, "that is an LLM's"
    assert "\n" not in said


MALFORMED = {
    "not JSON": (b"<html>", "it is not JSON"),
    "nested too deep": (b'{"result":' + b"[" * 200_000, "it is not JSON"),
    "no object": (b"[]", "it has no list 'result'"),
    "no result": (b'{"results": []}', "it has no list 'result'"),
    "too few lists": (b'{"result": []}', "it has 0 lists for 1 queries"),
    "no list": (b'{"result": [{}]}', "the documents of a query are not a list"),
    "without scores": (b'{"result": [[{"id": "a", "contents": "t"}]]}', "an entry has no object 'document'"),
    "no id": (b'{"result": [[{"document": {"contents": "t"}, "score": 1}]]}', "lacks 'id' or 'contents'"),
    "no contents": (b'{"result": [[{"document": {"id": "a"}, "score": 1}]]}', "lacks 'id' or 'contents'"),
    "no number": (
        b'{"result": [[{"document": {"id": "a", "contents": ""}, "score": "x"}]]}',
        "the 'score' of a document is not a number",
    ),
    "NaN": (
        b'{"result": [[{"document": {"id": "a", "contents": ""}, "score": NaN}]]}',
        "the 'score' of a document is not a number",
    ),
    "an integer beyond all floats": (
        b'{"result": [[{"document": {"id": "a", "contents": ""}, "score": 1' + b"0" * 400 + b"}]]}",
        "the 'score' of a document is not a number",
    ),
    "10 MB": (b" " * 10_000_000, "is larger than 1.75 MB"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_an_answer_that_is_none_is_one_line_if_there_never_was_another(server, store, name):
    body, says = MALFORMED[name]
    server.otherwise = api.raw(body)
    with pytest.raises(UserError) as error:
        opened(server, store).search(wants("gout"))
    assert says in str(error.value) and "\n" not in str(error.value)
    assert server.address in str(error.value)
    # Once more, for a proxy's hiccup; but not for an answer that is too large.
    assert len(server.asked) == (1 if name == "10 MB" else 2)


@pytest.mark.parametrize("name", MALFORMED)
def test_and_a_counted_failure_if_it_had_answered_before(server, store, name):
    body, says = MALFORMED[name]
    source = opened(server, store)
    source.search(wants("lips"))
    server.otherwise = api.raw(body)
    for _ in range(2):
        (found,) = source.search(wants("gout"))
        assert isinstance(found, Failure) and found.kind == "invalid" and says in found.message
    server.otherwise = None
    (found,) = source.search(wants("gout"))
    assert not isinstance(found, Failure), "a failure is not kept"


@pytest.mark.parametrize(
    ("step", "policy", "kind"),
    [
        (api.hang, HASTY, "timeout"),
        (api.status(503), FAST, "server"),
        (api.drop, FAST, "connection"),
        (api.status(400), FAST, "bad_request"),
        (api.shaped([[]]), FAST, "invalid"),
    ],
)
def test_conversations_whose_search_failed_are_counted_and_the_query_is_searched_as_it_is(
    server, store, step, policy, kind
):
    server.script, server.otherwise = [api.answer], step
    expansion = lead(server, store, policy, more=["blue lips", "itching"])
    assert expansion.failure_kinds == {kind: 2}
    assert [query.generated for query in expansion.queries] == [("the passage",), (), ()]
    assert expansion.traces["2"]["failure"]["message"].startswith(
        ("the search server at 127.0.0.1", "the connection to the search server at 127.0.0.1")
    )


def test_a_server_that_is_slow_from_the_start_is_no_crash_either(server, store):
    server.otherwise = api.hang
    expansion = lead(server, store, HASTY)
    assert expansion.failure_kinds == {"timeout": 3}


@pytest.mark.parametrize("code", [301, 400, 401, 404, 405, 422])
def test_an_address_that_takes_no_questions_is_one_line(server, store, code):
    server.otherwise = api.status(code)
    with pytest.raises(UserError, match=f"HTTP {code}"):
        opened(server, store).search(wants("gout"))
    assert len(server.asked) <= 2, "a plain query, too, is refused: asking again would not help"


def picky(server, handler, body):
    """Refuse a whole request for one query that is too long, as `r2med serve` does."""
    fine = all(len(query) < 100 for query in body["queries"])
    (api.answer if fine else api.status(422))(server, handler, body)


LONG = "angioedema " * 20


@pytest.mark.parametrize("before", [0, 1])
def test_a_query_that_a_server_does_not_take_costs_its_own_conversation_alone(server, store, before):
    server.otherwise = picky
    source = opened(server, store)
    source.search(wants("lips") * before)
    found = source.search(wants("gout", LONG, "hives"))
    assert [getattr(one, "kind", "found") for one in found] == ["found", "bad_request", "found"]
    again = opened(server, store).search(wants("gout", LONG))
    assert [getattr(one, "kind", "found") for one in again] == ["found", "bad_request"], "nor does it stop a second run"


def test_numbers_as_ids_are_names_and_more_documents_than_asked_for_are_cut(server, store):
    entry = {"document": {"id": 7, "contents": "t"}, "score": 2}
    server.otherwise = api.shaped([[entry] * 9])
    (found,) = opened(server, store).search(wants("gout"))
    assert [document.id for document in found] == ["7"] * 3


def test_a_lone_surrogate_in_an_id_is_replaced(server, store):
    entry = b'[{"document": {"id": "x\\ud800", "contents": "t"}, "score": 1}]'
    server.otherwise = api.raw(b'{"result": [' + b",".join([entry] * 3) + b"]}")
    expansion = lead(server, store)
    assert expansion.failures == 0
    assert expansion.traces["1"]["turns"][0]["documents"][0]["id"] == "x\ufffd"


def test_an_answer_is_read_or_refused_never_guessed():
    whole = {"result": [[{"document": {"id": "a", "contents": "T\nt"}, "score": 1}], []]}
    assert [len(found) for found in read_answer(json.dumps(whole).encode(), 2)] == [1, 0]
    with pytest.raises(MalformedAnswer):
        read_answer(json.dumps(whole).encode(), 1)
