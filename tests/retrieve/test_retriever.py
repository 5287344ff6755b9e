"""How generated text joins a query where words are matched."""

import pytest

from r2med.data import Query
from r2med.retrieve.retriever import SearchQuery

QUERY = Query("1", "swollen face")


@pytest.mark.parametrize(
    ("copies", "text"),
    [
        (0, "angioedema"),
        (1, "swollen face angioedema"),
        (2, "swollen face swollen face angioedema"),
    ],
)
def test_the_query_stands_before_the_text_as_often_as_it_is_told(copies: int, text: str) -> None:
    assert SearchQuery(QUERY, ("angioedema",), copies).lexical_text == text


def test_a_query_without_generated_text_is_searched_as_it_is() -> None:
    assert SearchQuery(QUERY, copies=2).lexical_text == "swollen face"


def test_several_generated_texts_are_joined() -> None:
    assert SearchQuery(QUERY, ("a", "b")).lexical_text == "a b"


def test_all_that_a_ranking_depends_on_is_in_the_key() -> None:
    plain = SearchQuery(QUERY, ("text",))
    others = [
        SearchQuery(QUERY, ("text",), copies=1),
        SearchQuery(QUERY, ("text",), dense_form="{query}[SEP]{text}"),
        SearchQuery(QUERY, ("text",), terms=(("gout", 1.0),)),
        SearchQuery(QUERY, ("other",)),
        SearchQuery(Query("1", "swollen face", excluded=("d1",)), ("text",)),
    ]
    keys = [str(search.key) for search in (plain, *others)]
    assert len(set(keys)) == len(keys)
