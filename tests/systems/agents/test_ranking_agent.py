"""Documents that an agent found come first, in their order; those of the retriever follow."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from r2med import System
from r2med.data import Corpus, load
from r2med.data.runs.run import Run
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.systems.agents.ranking_agent import finds_first, fused
from support import tiny_rerankers

CORPUS = Corpus.of([(name, name * 3) for name in "abcdef"])
RUN = Run.ranked(
    ["1", "2"],
    [(CORPUS.rows(list("abc")), np.array([3, 2, 1], np.float32)), (CORPUS.rows(["f"]), np.array([9], np.float32))],
    CORPUS,
)


def test_rankings_are_fused_by_reciprocal_rank():
    rankings = ["ab", "bcd", "d"]
    worth = {name: sum(Fraction(1, 61 + each.index(name)) for each in rankings if name in each) for name in "abcd"}
    assert fused(rankings, CORPUS) == tuple(sorted(worth, key=lambda name: (-worth[name], -ord(name))))
    assert fused(["a", "b"], CORPUS) == ("b", "a"), "a tie: the higher id comes first"
    assert fused(["xa"], CORPUS) == ("a",), "the corpus has no x"
    assert fused([], CORPUS) == ()


def test_found_documents_come_first_and_the_others_follow():
    both = finds_first(RUN, {"1": ("e", "b")}, CORPUS, 10)
    assert list(both) == [("1", [("e", 4.0), ("b", 3.0), ("a", 2.0), ("c", 1.0)]), ("2", [("f", 9.0)])]


def test_no_more_documents_are_kept_than_are_wanted():
    assert dict(finds_first(RUN, {"1": ("e", "b", "d")}, CORPUS, 2))["1"] == [("e", 2.0), ("b", 1.0)]
    assert dict(finds_first(RUN, {"2": ("a",)}, CORPUS, 3))["2"] == [("a", 2.0), ("f", 1.0)]


def test_an_agent_searches_with_a_pipeline_that_ends_in_a_real_cross_encoder(tmp_path: Path) -> None:
    """The agent sees what the reranker puts first, and a reranker after the agent works on its list."""
    model = tiny_rerankers.bert(tmp_path / "cross", positions=512, layers=1)
    script = tmp_path / "script.jsonl"
    turns = [(["[d2]"], "<finish>d2, d1</finish>"), ([], "<search k=5>light and water</search>")]
    script.write_text("".join(json.dumps({"when": when, "answer": said}) + "\n" for when, said in turns))
    tool, agent = "bm25 → monobert@20", "agent(script, by=[bm25 → monobert@20], calls=tags)"
    with Runtime(store=Store(tmp_path), model_paths={"script": script, "monobert": model}) as runtime:
        data = load("demo/Biology", runtime.store)
        asked = replace(data, queries=tuple(replace(query, text="light and water") for query in data.queries))
        shown = System.parse(tool, runtime).run(asked, 10).run
        found = System.parse(agent, runtime).run(data, 10)
        again = System.parse(f"{agent} → monobert@2", runtime).run(data, 10).run
    assert found.searched.report.failures == 0
    for query in data.queries:
        first, second = (document for document, _ in shown.top(query.id, 2))
        chosen = [document for document, _ in found.run.top(query.id)]
        assert chosen[:2] == [second, first]
        assert {document for document, _ in again.top(query.id, 2)} == {first, second}
