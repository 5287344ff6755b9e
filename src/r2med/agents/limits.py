"""What all agents do alike when a conversation comes to its limits."""

from __future__ import annotations

from dataclasses import replace

from r2med.agents.contracts import Ask, Conversation, Failed, Part, Said

WORDS = 512
"""Words that are shown of a document, as the benchmark has it for LameR: some are fifty pages long."""


def without_search(conversation: Conversation, notice: str, shown: str) -> Conversation:
    """Return a conversation that outgrew its model's context, asked for the last time: the search is off, and a
    notice, as the model is `shown` it, stands where the results were that no longer fit. If that was tried before, it
    has failed.
    """
    if conversation.shortened:
        return conversation.now(Failed("context_length", "the transcript does not fit the model's context"))
    parts = conversation.parts
    if len(parts) > 1 and parts[-1].role == "user":
        parts = (*parts[:-1], Part("user", shown))
    changed = replace(conversation.noted(notice=notice, information=""), parts=parts, wait=Ask())
    return replace(changed, search_off=True, shortened=True)


def declined(said: Said) -> Failed | None:
    """Return the failure of a model, or a filter before it, that would not answer."""
    if said.finish_reason in ("content_filter", "refusal"):
        return Failed("refused", f"the model declined to answer: {' '.join(said.text.split())[:200]}".rstrip(": "))
    return None


def no_answer(said: Said, what: str) -> Failed:
    """Return the failure of a conversation that ends without its answer: cut off, or done in another way."""
    if said.finish_reason == "length":
        return Failed("truncated", f"{what}: it reached its limit of tokens")
    return Failed("no_marker", what)
