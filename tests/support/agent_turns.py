"""The turns of an agent with tools, as native calls and as tags, for the server on loopback."""

from typing import Any

from support import chat_server as api

TURNS: dict[str, list[dict[str, Any]]] = {
    "native": [
        {"calls": [("search", '{"query": "light and rods", "k": 3}'), ("think", '{"thought": "rods"}')]},
        {"calls": [("search", '{"query": "skin and water"}')]},
        {"calls": [("finish", '{"ids": ["d2", "d5"]}')]},
    ],
    "tags": [
        {"text": "Rods? <search k=3>light and rods</search>"},
        {"text": "<search>skin and water</search>"},
        {"text": "<finish>d2, d5</finish>"},
    ],
}


def turn_of(exchange: api.Exchange) -> int:
    return sum(message["role"] == "assistant" for message in exchange.request.body["messages"])


def taking_turns(calls: str, stream: bool = True) -> api.Step:
    async def step(exchange: api.Exchange) -> None:
        turn = TURNS[calls][turn_of(exchange)]
        await api.answer(turn.get("text", ""), calls=turn.get("calls", ()), stream=stream)(exchange)

    return step


TOOL = "agent(any, by=[bm25 → listwise(any)@3])"
"""An agent that searches with a whole system."""


async def agent_and_reranker(exchange: api.Exchange) -> None:
    """Take the turns of the agent. A request without tools is one of the reranker in its search."""
    reranks = "tools" not in exchange.request.body
    await (api.answer("[2] > [1] > [3]") if reranks else taking_turns("native"))(exchange)
