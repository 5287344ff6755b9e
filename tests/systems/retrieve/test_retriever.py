"""How generated text is joined to a query for word matching."""

import pytest

from r2med.data import Query
from r2med.systems.retrieve.retriever import SearchQuery

QUERY = Query("1", "swollen face")


@pytest.mark.parametrize(
    ("copies", "text"),
    [
        (0, "angioedema"),
        (1, "swollen face angioedema"),
        (2, "swollen face swollen face angioedema"),
    ],
)
def test_the_given_number_of_query_copies_comes_before_the_text(copies: int, text: str) -> None:
    assert SearchQuery(QUERY, ("angioedema",), copies).lexical_text == text


def test_a_query_without_generated_text_is_searched_unchanged() -> None:
    assert SearchQuery(QUERY, copies=2).lexical_text == "swollen face"


def test_several_generated_texts_are_joined() -> None:
    assert SearchQuery(QUERY, ("a", "b")).lexical_text == "a b"


def test_the_key_contains_everything_that_a_ranking_depends_on() -> None:
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
