"""What an agent did, turn by turn, fit for JSON: thoughts, queries, documents, tokens, all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from r2med.agents.conversation import WORDS, Answered, Conversation, Failed, Hit, Turn
from r2med.prompts.fitting import first_words

FORMAT = 1


def trace(conversation: Conversation, *, texts: bool = False) -> dict[str, Any]:
    """Return the trace of a conversation that is over; `texts`: with what was shown or read of each document."""
    end = conversation.state
    return {
        "format": FORMAT,
        "prompt": conversation.parts[0].text,
        "turns": [_turn(turn, texts) for turn in conversation.turns],
        "text": end.text if isinstance(end, Answered) else "",
        "failure": {"kind": end.kind, "message": end.message} if isinstance(end, Failed) else None,
        "total": totals([conversation]),
    }


def totals(conversations: Sequence[Conversation]) -> dict[str, float]:
    """Return turns, searches, tokens and seconds of conversations."""
    turns = [turn for conversation in conversations for turn in conversation.turns]
    return {
        "turns": len(turns),
        "searches": sum(conversation.searches for conversation in conversations),
        "prompt_tokens": sum(turn.prompt_tokens for turn in turns),
        "completion_tokens": sum(turn.completion_tokens for turn in turns),
        "seconds": sum(turn.seconds for turn in turns),
    }


def _turn(turn: Turn, texts: bool) -> dict[str, Any]:
    documents = None if turn.documents is None else [_document(hit, texts) for hit in turn.documents]
    return {**asdict(turn), "documents": documents}


def _document(hit: Hit, text: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"id": hit.id, "score": hit.score}
    return {**document, "contents": first_words(hit.contents, WORDS)} if text else document
