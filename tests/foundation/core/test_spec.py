"""The grammar of systems: what a shell took apart is put together, and what is no arrow is told in one line."""

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import decoded, encoded, joined_words, parse, variants
from support.facts import error_states


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


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("bm25", ["bm25"]),
        ("bm25 → x@{10,20}", ["bm25 → x@10", "bm25 → x@20"]),
        (
            "hyde(m, n={1, 4}) → {bm25,bge}",
            [f"hyde(m, n={n}) → {r}" for n in (1, 4) for r in ("bm25", "bge")],
        ),
        ("{bm25,fuse(bm25+bge, weights=1:2)}", ["bm25", "fuse(bm25+bge, weights=1:2)"]),
        ("x@{1,2{0,5}}", ["x@1", "x@20", "x@25"]),
        ("x@{10}", ["x@10"]),
        ("x@{1,1}", ["x@1"]),
    ],
)
def test_braces_make_several_texts(typed: str, texts: list[str]) -> None:
    assert variants(typed) == texts


@pytest.mark.parametrize(
    ("typed", "fact"),
    [
        ("x@{10,20", "is not closed"),
        ("x(a={1,2)}", "not closed before"),
        ("x@{10,}", "empty choice"),
        ("x@{}", "empty choice"),
        ("{0,1}" * 11, 1000),
    ],
)
def test_wrong_braces_are_one_line(typed: str, fact: object) -> None:
    with error_states(fact):
        variants(typed)


def test_braces_where_one_system_is_needed_are_refused() -> None:
    with error_states("2 systems", "braces"):
        parse("bm25 → x@{10,20}")
    with error_states("'}' at position 8", "missing"):
        parse("x@10,20}")


def test_braces_in_a_path_are_percent_encoded() -> None:
    assert encoded("/data/{a,b}") == "/data/%7Ba%2Cb%7D"
    assert decoded(encoded("/data/{a,b}")) == "/data/{a,b}"
