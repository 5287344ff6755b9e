"""The ranking that a finished conversation gives: the chosen documents, then those of all its searches."""

from __future__ import annotations

from r2med.data.corpus import Corpus
from r2med.systems.agents.conversation import Chosen, Conversation
from r2med.systems.retrieve.finds import fused


def ranking_of(conversation: Conversation, corpus: Corpus) -> tuple[str, ...]:
    """Return the documents that the agent chose, in its order, then the others by reciprocal rank of its searches.

    Without a choice the searches alone decide. The ranking is empty if no search found a document of the corpus.
    """
    searches = [turn.documents for turn in conversation.turns if turn.documents is not None]
    found = fused([[hit.id for hit in documents] for documents in searches], corpus)
    chosen = conversation.state.ids if isinstance(conversation.state, Chosen) else ()
    known = set(found)  # A remote server may return documents that the corpus does not have.
    return tuple(dict.fromkeys([*(each for each in chosen if each in known), *found]))
