"""Our systems as retrievers of LangChain."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("langchain_core") is None:  # imported by the tests alone: it takes seconds
    pytest.skip("langchain-core is not installed: extra langchain", allow_module_level=True)

from r2med import System, load
from r2med.foundation.core.errors import UserError


def test_a_system_answers_with_documents_their_ids_and_scores() -> None:
    from langchain_core.runnables import RunnableLambda

    from r2med.publication.bridges.langchain import LangChainRetriever

    demo = load("demo/Biology")
    question = demo.queries[0].text
    retriever = LangChainRetriever(system="rm3 → bm25", data=demo, k=3)
    documents = (retriever | RunnableLambda(lambda found: found)).invoke(question)
    system = System.parse("rm3 → bm25")
    expected = system.live(demo).answer(question, 3).run.top(demo.queries[0].id)
    assert [(document.id, document.metadata["score"]) for document in documents] == expected
    assert documents[0].page_content == demo.corpus.text(demo.corpus.row(expected[0][0]) or 0)


def test_a_system_that_does_not_exist_is_told_in_one_line() -> None:
    from r2med.publication.bridges.langchain import LangChainRetriever

    with pytest.raises(UserError, match="no retriever 'bm52'"):
        LangChainRetriever(system="bm52", data="demo/Biology")
