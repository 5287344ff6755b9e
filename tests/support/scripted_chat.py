"""A chat model that says what a test tells it to, and remembers what it was asked."""

from collections.abc import Callable, Sequence
from typing import Any

from r2med.models.chat.contracts import ChatRequest, Failure, Generation

Reply = Callable[[ChatRequest], str | Failure]


class ScriptedChat:
    """Answers each request by a function; a string becomes a generation of ten tokens in and five out."""

    def __init__(self, reply: Reply, name: str = "scripted") -> None:
        self.name = name
        self.asked: list[ChatRequest] = []
        self._reply = reply

    def describe(self) -> dict[str, Any]:
        return {"model": f"test/{self.name}"}

    def complete(self, requests: Sequence[ChatRequest]) -> list[Generation | Failure]:
        self.asked += requests
        replies = [self._reply(request) for request in requests]
        return [
            reply if isinstance(reply, Failure) else Generation(reply, "", "stop", 10, 5, 0.5 + len(reply) / 1000)
            for reply in replies
        ]

    def usage(self) -> dict[str, float]:
        return {"calls": len(self.asked)}

    @property
    def prompts(self) -> list[str]:
        """The user's turn of every request."""
        return [request.messages[-1].content for request in self.asked]
