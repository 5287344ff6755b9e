"""What an agent did, turn by turn, fit for JSON: thoughts, queries, documents, tokens, all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from r2med.agents.contracts import Answered, Conversation, Failed, Turn

FORMAT = 1


def trace(conversation: Conversation) -> dict[str, Any]:
    """Return the trace of a conversation that is over."""
    end = conversation.wait
    return {
        "format": FORMAT,
        "prompt": conversation.parts[0].text,
        "turns": [_turn(turn) for turn in conversation.turns],
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


def _turn(turn: Turn) -> dict[str, Any]:
    found = None
    if turn.documents is not None:
        found = [{"id": document.id, "score": document.score} for document in turn.documents]
    return {
        "text": turn.text,
        "query": turn.query,
        "documents": found,
        "information": turn.information,
        "analysis": turn.analysis,
        "notice": turn.notice,
        "cut": turn.cut,
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "seconds": turn.seconds,
    }
