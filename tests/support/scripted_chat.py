"""A chat model that says what a test tells it to, and remembers what it was asked."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from r2med.models.llm.chat import ChatRequest, Failure, Generation, RawAnswer

Reply = Callable[[ChatRequest], str | RawAnswer | Failure]


class ScriptedChat:
    """Answers each request by a function; a string becomes an answer of ten tokens in and five out.

    Nothing is cleaned: what a test writes is what `complete` returns.
    """

    lacks = ()
    trace = None

    def __init__(self, reply: Reply, name: str = "scripted") -> None:
        self.name = name
        self.asked: list[ChatRequest] = []
        self._reply = reply

    def key(self) -> dict[str, Any]:
        return {"model": f"test/{self.name}"}

    def varies(self, temperature: float | None) -> bool:
        return True

    def about(self, *datasets: str) -> Self:
        return self

    def complete(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[Generation | Failure]:
        return [answer if isinstance(answer, Failure) else _as_it_is(answer) for answer in self.answers(requests)]

    def answers(self, requests: Sequence[ChatRequest]) -> list[RawAnswer | Failure]:
        self.asked += requests
        replies = [self._reply(request) for request in requests]
        return [
            RawAnswer(reply, prompt_tokens=10, completion_tokens=5, seconds=0.5 + len(reply) / 1000)
            if isinstance(reply, str)
            else reply
            for reply in replies
        ]

    @property
    def prompts(self) -> list[str]:
        """The user's turn of every request, or its raw prompt."""
        return [request.messages[-1].content if request.prompt is None else request.prompt for request in self.asked]


def _as_it_is(raw: RawAnswer) -> Generation:
    return Generation(raw.content, raw.reasoning, raw.finish_reason, raw.first_choices, raw.last_tokens, **raw.usage)
