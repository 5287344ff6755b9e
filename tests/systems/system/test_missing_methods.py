"""A stage of a user that lacks its method is found before an LLM is asked, also where it searches for one."""

from __future__ import annotations

import pytest

from r2med import System
from r2med.extend import Stage
from r2med.foundation.core import names
from r2med.foundation.core.errors import UserError


class Unfinished(Stage, kind="retrieve"):
    """A retriever without `search`."""

    name: str = "unfinished"


@pytest.mark.parametrize(
    "spec",
    [
        "unfinished",
        "bm25+unfinished",
        "hyde(gpt4, rounds=1, by=unfinished) → bm25",
        "search-r1(gpt4, by=unfinished) → bm25",
        "[unfinished → bge-reranker]+bm25",
    ],
)
def test_a_retriever_without_search_is_found_before_anything_is_paid(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "_installed_stages", lambda: {"unfinished": Unfinished})
    with pytest.raises(UserError, match=r"Unfinished has no search\(dataset, queries, k, runtime\)"):
        System.parse(spec)
