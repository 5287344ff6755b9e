"""The grammar of systems: what a shell took apart is put together, and what is no arrow is told in one line."""

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words, parse


@pytest.mark.parametrize(
    ("words", "systems"),
    [
        (["bm25", "→", "bge-reranker@100"], ["bm25 → bge-reranker@100"]),
        (["bm25", "minilm", "→", "monobert", "bge"], ["bm25", "minilm → monobert", "bge"]),
        (["bm25→", "monobert", "->", "bge-reranker"], ["bm25→ monobert -> bge-reranker"]),
        (["bm25", "→monobert"], ["bm25 →monobert"]),
        (["hyde(o3-mini) → bm25", "bm25"], ["hyde(o3-mini) → bm25", "bm25"]),
        (["bm25", "-"], ["bm25 -"]),
        (["bm25", "=>", "bge"], ["bm25 => bge"]),
    ],
)
def test_words_with_an_arrow_between_them_are_one_system(words: list[str], systems: list[str]) -> None:
    assert joined_words(words) == systems


# `bm25 -` and `bm25 =` are what a shell leaves of `bm25 -> bge` and `bm25 => bge`.
@pytest.mark.parametrize("typed", ["bm25 -", "bm25 =", "bm25 > bge", "bm25 => bge", "bm25 | bge", "bm25>bge", "bm25 →"])
def test_what_is_no_arrow_is_told_how_to_write_one(typed: str) -> None:
    with pytest.raises(UserError, match="as in bm25 → bge-reranker@100, or in quotes 'bm25 -> bge-reranker@100'"):
        parse(typed)
