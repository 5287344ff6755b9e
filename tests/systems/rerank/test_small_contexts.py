"""Rerankers with a small context on a server that counts tokens exactly, and refuses what is too long as vLLM does."""

import json
from pathlib import Path

import numpy as np
import pytest

from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.data.runs.run import Run
from r2med.foundation.store.reads import noted_reads
from r2med.systems.retrieve.retriever import SearchQuery
from support import chat_server as api
from support.chat_models import setup
from support.chat_server import Exchange, Server, Step
from support.ready import ready_reranker

CONTEXT = 4096
ABSTRACT = "Hypergammaglobulinaemia 1,25-(OH)2D3 IL-17A/F−/− p<0.001 (95% CI 1.02–4.97). "
"""Text with about two bytes for each token."""

OLD = "This model's maximum context length is {context} tokens. However, you requested {both} tokens ({prompt} in the "
OLD += "messages, {answer} in the completion). Please reduce the length of the messages or completion."
NEW = "This model's maximum context length is {context} tokens. However, your prompt contains at least {most} input "
NEW += "tokens. Please reduce the length of the input prompt."


def tokens(exchange: Exchange) -> int:
    messages = exchange.request.body.get("messages", ())
    return sum(len(message["content"].encode()) // 2 for message in messages)


def vllm(message: str, *, counts: bool) -> Step:
    """Return a server that refuses with a message; `counts`: it has /tokenize, too."""

    async def step(exchange: Exchange) -> None:
        body, prompt = exchange.request.body, tokens(exchange)
        if exchange.request.path == "/tokenize":
            said = {"count": prompt, "max_model_len": CONTEXT, "tokens": [1] * prompt}
            await exchange.send(
                200 if counts else 404, json.dumps(said if counts else {"detail": "Not Found"}).encode()
            )
        elif prompt + body["max_tokens"] > CONTEXT:
            answer = body["max_tokens"]
            facts = {"context": CONTEXT, "prompt": prompt, "answer": answer, "both": prompt + answer}
            said = message.format(**facts, most=CONTEXT - answer + 1)
            await api.refuse(400, json.dumps({"error": {"message": said, "code": 400}}))(exchange)
        else:
            await api.answer(" > ".join(f"[{number}]" for number in range(20, 0, -1)))(exchange)

    return step


def abstracts() -> tuple[Dataset, Run]:
    corpus = Corpus.of([(f"d{place:02}", f"{place}: {ABSTRACT * 20}") for place in range(20)])
    queries = tuple(Query(str(query), f"query {query}") for query in range(3))
    rows = np.arange(20, dtype=np.int32)
    run = Run.ranked([query.id for query in queries], [(rows, -rows.astype(np.float32))] * 3, corpus)
    return Dataset("abstracts", queries, corpus, Qrels({}), None), run


@pytest.mark.parametrize(("message", "counts", "most"), [(OLD, False, 4), (NEW, True, 4), (NEW, False, 11)])
def test_no_call_is_lost_where_the_server_counts_more_tokens_than_the_estimate(
    chat_server: Server, tmp_path: Path, message: str, counts: bool, most: int
) -> None:
    chat_server.otherwise = vllm(message, counts=counts)
    runtime = setup(chat_server, tmp_path)
    reranker = ready_reranker("rankzephyr-7b@20", runtime)
    dataset, run = abstracts()
    queries = [SearchQuery(query) for query in dataset.queries]
    done = reranker.rerank(dataset, queries, run)
    assert done.failures == 0
    assert [list(line) for line in done.run.rows] == [list(range(19, -1, -1))] * 3
    assert done.cost.cut == 3
    sent = [request for request in chat_server.requests if request.path != "/tokenize"]
    assert len(sent) <= 3 * most
    last = max(tokens(Exchange(chat_server, request, None)) for request in sent[-1:])  # type: ignore[arg-type]
    assert 0.8 * CONTEXT < last + 150 <= CONTEXT, "as much of each passage as fits"

    chat_server.requests.clear()
    with noted_reads():  # as packing does: everything that was sent is in the journal, the refusals too
        again = reranker.rerank(dataset, queries, run)
    assert not chat_server.requests and again.run.rows.tolist() == done.run.rows.tolist()
