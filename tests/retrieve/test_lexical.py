"""What BM25 searches after an expansion, as the benchmark's table says."""

import pytest

from r2med.data import Query
from r2med.retrieve.contracts import SearchQuery
from r2med.retrieve.lexical import lexical_text

QUERY = Query("1", "swollen face")


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("hyde", "angioedema"),
        ("lamer", "swollen face angioedema"),
        ("query2doc", "swollen face swollen face angioedema"),
    ],
)
def test_generated_text_joins_the_query_by_method(method, text):
    assert lexical_text(SearchQuery(QUERY, ("angioedema",), method)) == text


def test_a_query_without_generated_text_is_searched_as_it_is():
    assert lexical_text(SearchQuery(QUERY, (), "hyde")) == "swollen face"


def test_several_generated_texts_are_joined():
    assert lexical_text(SearchQuery(QUERY, ("a", "b"), "hyde")) == "a b"


@pytest.mark.parametrize(("copies", "text"), [(0, "angioedema"), (1, "swollen face angioedema")])
def test_copies_of_the_query_can_be_asked_for_whatever_the_method(copies, text):
    for method in ("hyde", "lamer", "query2doc"):
        assert lexical_text(SearchQuery(QUERY, ("angioedema",), method, copies)) == text
