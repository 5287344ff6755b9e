"""Keys are content: equal values have equal keys, others have not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.foundation.store import digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_key_is_32_hex_digits(value: Any) -> None:
    assert re.fullmatch("[0-9a-f]{32}", digest(value))


@given(st.dictionaries(st.text(), JSON))
def test_the_order_of_a_dict_does_not_matter(value: dict[str, Any]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@given(st.lists(st.text(), min_size=2, max_size=3), st.lists(st.text(), min_size=2, max_size=3))
def test_lists_of_texts_share_a_key_only_when_they_are_equal(one: list[str], other: list[str]) -> None:
    assert (digest(one) == digest(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, "1"), ([], {}), (None, ""), (["ab"], ["a", "b"]), (0.9, 0.9000000000000001)]
)
def test_values_that_are_told_apart(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_a_key_stays_what_it_is_between_versions() -> None:
    assert digest(["record", 1, {"b": 0.4, "a": "é"}]) == "191ce5b971215cd9750de3e394180069"


def test_a_lone_surrogate_has_a_key() -> None:
    assert digest("\ud800") != digest("\udfff")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
def test_what_json_cannot_hold_has_no_key(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        digest(value)
