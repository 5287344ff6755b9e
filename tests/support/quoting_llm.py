"""An LLM that quotes everything it is sent, and answers in the form that each prompt asks for."""

from __future__ import annotations

import json
from collections.abc import Callable

from support import chat_server, docs_llm
from support.chat_server import Exchange


def quoting(relevant: Callable[[str], bool], seen: Callable[[str], None]) -> chat_server.Step:
    """Return what a server does: it thinks aloud with the whole prompt. Its answers are those of the docs' LLM.

    `relevant` decides about a passage in a prompt of a judge. `seen` gets every prompt before it is answered.
    """

    async def answer(exchange: Exchange) -> None:
        messages = exchange.request.body.get("messages", ())
        prompt = "\n".join(str(message["content"]) for message in messages) or exchange.request.question
        seen(prompt)
        if "grade how useful a passage is" in prompt:
            reply = json.dumps({"why": "It is known.", "grade": 3 if relevant(prompt) else 0})
        else:
            found = next((reply for words, reply in docs_llm.REPLIES.items() if words in prompt), prompt)
            reply = found(prompt) if callable(found) else found
        await chat_server.answer(reply, reasoning=prompt)(exchange)

    return answer
