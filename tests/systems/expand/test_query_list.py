"""Lists of queries in answers of LLMs: what is read, what is repaired and counted, what is no list."""

import json
import random

import pytest

from r2med.models.ask.json_in_text import MAX_CHARACTERS
from r2med.systems.expand.query_list import parse_queries


@pytest.mark.parametrize(
    ("text", "queries", "repairs"),
    [
        ('["a b", "c"]', ("a b", "c"), {}),
        ('Sure! Here they are:\n```json\n["a", "b"]\n```\nI hope this helps.', ("a", "b"), {}),
        ('["a", "b",]', ("a", "b"), {}),
        ('{"queries": ["a", "b"]}', ("a", "b"), {}),
        ('{"support": "a", "verify": "b"}', ("a", "b"), {}),
        ('[{"query": "a", "why": "x"}, {"query": "b", "why": "y"}]', ("a", "b"), {}),
        ('[{"text": "a"}, {"text": "b"}]', ("a", "b"), {}),
        ('First I think of ["x"]. Better: ["a", "b"]', ("a", "b"), {}),
        (r'["a \ud800", "b"]', ("a \ufffd", "b"), {}),
        ("1. a\n2. b", ("a", "b"), {"lines": 1}),
        ("1) **a**\n\n2) `b`", ("a", "b"), {"lines": 1}),
        ('- "a"\n- “b”\nThese find both.', ("a", "b"), {"lines": 1}),
        ("Query 1: a\nQuery 2: b", ("a", "b"), {"lines": 1}),
        ("Here is a list:\n* a\n* b\n", ("a", "b"), {"lines": 1}),
        ('["a", "A ", "b"]', ("a", "b"), {"repeated": 1}),
        ('["a", "", "…", "b"]', ("a", "b"), {"empty": 2}),
        ('["a", "b", "c"]', ("a", "b"), {"extra": 1}),
        ('["a\\n  b"]', ("a b",), {"missing": 1}),
        ('["a", "b"', None, None),
        ("", None, None),
        ("I would search for measles.", None, None),
        ('["…", "…"]', None, None),
        ("[1, 2]", None, None),
        ("[[]]", None, None),
    ],
)
def test_a_list_is_read_and_every_repair_is_counted(text, queries, repairs):
    parsed = parse_queries(text, 2)
    assert (parsed and (parsed.value, dict(parsed.repairs))) == (queries and (queries, repairs))


def test_where_positions_have_weights_a_short_list_is_none():
    assert parse_queries('["a"]', 2, whole=True) is None
    assert parse_queries('["a", "a"]', 2, whole=True) is None
    assert parse_queries('["a", "b"]', 2, whole=True).value == ("a", "b")


@pytest.mark.parametrize("seed", range(50))
def test_any_list_in_any_prose_comes_back(seed):
    draw = random.Random(seed)
    letters = "abc é\"'\\[]{}:,-0123456789"
    noise = [draw.choices(letters, k=draw.randint(0, 30)) for _ in range(draw.randint(1, 6))]
    queries = [f"q{number} {''.join(each)}" for number, each in enumerate(noise)]
    before = draw.choice(["", "Sure:\n", "I thought about it. [sic]\n```json\n"])
    after = draw.choice(["", "\n```", "\nDone."])
    parsed = parse_queries(before + json.dumps(queries, ensure_ascii=draw.random() < 0.5) + after, len(queries))
    assert parsed.value == tuple(" ".join(query.split()) for query in queries)


@pytest.mark.parametrize("text", ["[" * 50_000, '["' * 20_000, "1. " * 50_000, "- a\n" * 30_000, '{"a":' * 9_000])
def test_hostile_answers_are_read_within_bounds(text):
    parsed = parse_queries(text, 3)
    assert parsed is None or len(parsed.value) <= 3
    assert len(text) > MAX_CHARACTERS
