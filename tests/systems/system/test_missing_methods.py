"""A stage of a user that lacks its method is found before an LLM is asked, also where it searches for one."""

from __future__ import annotations

import pytest

from r2med import Dataset, System
from r2med.extend import Stage
from r2med.foundation.core.errors import UserError
from r2med.systems.agents.search_r1 import SearchR1
from r2med.systems.expand.generate import Generated
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.fusion import Fusion

DATA = Dataset.of({"1": "gout"}, {"a": "gout", "b": "flu"}, {"1": {"a": 1}}, name="mine")


class Unfinished(Stage, kind="retrieve"):
    """A retriever without `search`."""

    name: str = "unfinished"


@pytest.mark.parametrize(
    "system",
    [
        System(Unfinished()),
        System(Fusion(parts=(BM25(), Unfinished()))),
        System(BM25(), Generated(name="hyde", llm="gpt4", rounds=1, by=Unfinished())),
        System(BM25(), SearchR1(llm="gpt4", by=Unfinished())),
    ],
    ids=["alone", "in a fusion", "between rounds", "for an agent"],
)
def test_a_retriever_without_search_is_found_before_anything_is_paid(system: System) -> None:
    with pytest.raises(UserError, match=r"Unfinished has no search\(dataset, queries, k, runtime\)"):
        system.check([DATA])
