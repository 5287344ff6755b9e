"""The steps of a search agent: how far a document came, from a result list to the end of the conversation."""

from __future__ import annotations

from typing import Literal, get_args

SearchStep = Literal["returned", "shown", "opened", "cited", "kept"]
"""Returned: a result list had the document. Shown: its text was in the conversation. Opened: the agent opened it, or
looked for words in it. Cited: the answer cites it. Kept: the agent's list of relevant documents at the end has it."""
SEARCH_STEPS: tuple[SearchStep, ...] = get_args(SearchStep)
