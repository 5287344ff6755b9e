"""Parsing of LLM answers: every notation, every kind of fault, and never an exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.models.ask import json_in_text
from r2med.systems.rerank.parse_order import parse_order
from r2med.systems.rerank.parse_scores import parse_score, parse_scores

ORDER_3_1_2 = [
    "[3] > [1] > [2]",
    "[3]>[1]>[2]",
    "Answer: lupus nephritis.\n[3] > [1] > [2]",
    "The ranking is [3] > [1] > [2]. Passage 3 names lupus.",
    "The ranking is 3 > 1 > 2, since 3 names lupus.",
    "**Final ranking:** [3] > [1] > [2]",
    "最终排序：【3】>【1】>【2】",
    "3 > 1 > 2",
    "3, 1, 2",
    "3 1 2",
    "[3], [1], [2]",
    "[3] [1] [2]",
    "(3) > (1) > (2)",
    "[3] = [1] > [2]",
    "[3, 1, 2]",
    '["3", "1", "2"]',
    "['3', '1', '2',]",
    '```json\n{"ranking": [3, 1, 2], "scores": [1, 2, 3]}\n```',
    '{"result": {"order": ["[3]", "[1]", "[2]"]}}',
    '[{"id": 3, "why": "lupus"}, {"id": 1}, {"id": 2}]',
    "[\n  3,\n  1,\n  2\n]",
    "[3] > [1] >\n[2]",
    "1. [3]\n2. [1]\n3. [2]",
    "1. Passage 3: names lupus\n2. Passage 1: a step [2]\n\n3. Passage 2",
    "1) 3\n2) 1\n3) 2",
    "- [3]\n- [1]\n- [2]",
    "[3]\n[1]\n[2]",
    "3\n1\n2",
    "Passage 3 > Passage 1 > Passage 2",
    "<passage 3> > <passage 1> > <passage 2>",
    "doc3 > doc1 > doc2",
    "1. [3] > [1] > [2]",
    # What comes last counts, and what is only mentioned does not.
    "At first: [1] > [2] > [3]. No, better:\n[3] > [1] > [2]",
    "[1] is irrelevant, [2] too.\n[3] > [1] > [2]",
    "[3] > [1] > [2]\n\nExplanation: [3] is best, and [1] > [2] because of [2].\n[1]",
    "The pressure was 120 > 90 > 60.\n[3] > [1] > [2]",
    "- [1] is irrelevant\n- [2] too\n- [3] names lupus\nScore: 7\n[3] > [1] > [2]",
    "[1] - irrelevant\n[2] - irrelevant\n[3] - names lupus\n\nRanking: [3], [1], [2]",
]


@pytest.mark.parametrize("text", ORDER_3_1_2)
def test_an_order_is_read_in_any_notation(text):
    parsed = parse_order(text, 3)
    assert parsed is not None
    assert (parsed.value, parsed.repairs) == ((2, 0, 1), {})


@pytest.mark.parametrize(
    ("text", "order", "repairs"),
    [
        ("[3] > [1]", (2, 0, 1, 3), {"missing": 2}),
        ("[4]", (3, 0, 1, 2), {"missing": 3}),
        ("[3] > [3] > [1] > [3] > [2] > [4]", (2, 0, 1, 3), {"repeated": 2}),
        ("[9] > [3] > [1] > [2] > [4] > [123456789012]", (2, 0, 1, 3), {"invented": 1}),
        ("[0] > [1] > [2] > [3]", (0, 1, 2, 3), {"invented": 1, "missing": 1}),  # counted from zero: 0 is nobody's
        ("[5] > [4] > [3] > [2]", (3, 2, 1, 0), {"invented": 1, "missing": 1}),  # off by one
        ("[2, 2, 7.5, -1]", (1, 0, 2, 3), {"repeated": 1, "invented": 2, "missing": 3}),
    ],
)
def test_an_order_with_faults_is_repaired_and_the_repairs_are_counted(text, order, repairs):
    parsed = parse_order(text, 4)
    assert parsed is not None
    assert (parsed.value, parsed.repairs) == (order, repairs)


NO_ANSWERS = [
    "",
    "I cannot rank these passages without more information.",
    "第三段最相关，因为它提到了狼疮。",
    "Лучше всего подходит третий отрывок.",
    "{}",
    "[]",
    "{{{[[[",
    '{"ranking": {}}',
    "null",
    "Fever for 3, 4 days; the pressure was 120 > 90.",
    "1. Fever\n2. Cough",
    "- [1] is irrelevant\n- [2] too",
    '{"confidence": 2}',
    "Confidence: 2",
    "As reviewed [1], [2] elsewhere.",
    "[99] > [98]",
    "<think>[",
]


@pytest.mark.parametrize("text", NO_ANSWERS)
def test_an_answer_without_passages_parses_to_none(text):
    assert parse_order(text, 3) is None
    assert parse_scores(text, 3) is None


SCORES_7_0_10 = [
    '{"1": 7, "2": 0, "3": 10}',
    'Answer: lupus.\n{"1": 7, "2": 0, "3": 10}',
    '```json\n{"1": 7.0, "2": "0", "3": "10/10"}\n```\nI hope this helps!',
    '{"scores": {"1": 7, "2": 0, "3": 10}}',
    '{"answer": "lupus", "result": {"scores": [{"id": 1, "score": 7}, {"id": 2, "score": 0}, {"id": 3, "score": 10}]}}',
    '[{"passage": "[1]", "rating": 7}, {"passage": "Passage 2", "rating": 0}, {"passage": 3, "rating": "10"}]',
    '{"1": {"score": 7, "why": "a {brace}"}, "2": {"relevance": 5, "score": 0}, "passage 3": {"score": 10}}',
    '{"id": 1, "score": 7}\n{"id": 2, "score": 0}\n{"id": 3, "score": 10}',
    "[[1, 7], [2, 0], [3, 10]]",
    "{'1': 7, '2': 0, '3': 10,}",
    "{1: 7, 2: 0, 3: 10}",
    "[1]: 7\n[2]: 0\n[3]: 10",
    "Passage 1: 7/10\nPassage 2: 0/10\nPassage 3: 10/10",
    "1: 7, 2: 0, 3: 10",
    "[1]: 7 - a step\n[2]: 0 - nothing\n[3]: 10 (the answer)",
    "| 1 | 7 |\n| 2 | 0 |\n| 3 | 10 |",
    # The last counts, and remarks do not.
    '{"1": 1, "2": 1, "3": 1}\nOn reflection:\n{"1": 7, "2": 0, "3": 10}',
    '{"1": 7, "2": 0, "3": 10}\nAn example of doubt: {"1": 6}. At 10: 30 [2] it was over.',
]


@pytest.mark.parametrize("text", SCORES_7_0_10)
def test_scores_are_read_in_any_shape(text):
    parsed = parse_scores(text, 3)
    assert parsed is not None
    assert (parsed.value, parsed.repairs) == ({0: 7.0, 1: 0.0, 2: 10.0}, {})


@pytest.mark.parametrize(
    ("text", "scores", "repairs"),
    [
        ('{"1": 7}', {0: 7.0}, {"missing": 2}),
        ('{"1": 7, "2": "high", "3": null}', {0: 7.0}, {"missing": 2}),
        ('{"1": true, "2": NaN, "3": 4}', {2: 4.0}, {"missing": 2}),
        ('{"1": 7, "2": 3, "3": 1, "1": 5}', {0: 5.0, 1: 3.0, 2: 1.0}, {"repeated": 1}),
        ('{"0": 9, "1": 7, "2": 3}', {0: 7.0, 1: 3.0}, {"invented": 1, "missing": 1}),
        ('{"1": 85, "2": -3, "3": 1e999}', {0: 10.0, 1: 0.0, 2: 10.0}, {"clipped": 3}),
        ('{"1": 7, "2": 3, "3": 1, "44": 2}', {0: 7.0, 1: 3.0, 2: 1.0}, {"invented": 1}),
    ],
)
def test_scores_with_faults_are_repaired_and_the_repairs_are_counted(text, scores, repairs):
    parsed = parse_scores(text, 3)
    assert parsed is not None
    assert (parsed.value, parsed.repairs) == (scores, repairs)


def test_a_ranking_is_not_taken_for_scores():
    for text in ("[3, 1, 2]", "[2, 1]", "[3] > [1] > [2]", '{"ranking": [2, 1]}', "as reviewed [1, 2]"):
        assert parse_scores(text, 3) is None


@pytest.mark.parametrize(
    ("text", "score", "repairs"),
    [
        ('Answer: lupus.\n{"score": 7}', 7.0, {}),
        ('{"score": "7.5"}', 7.5, {}),
        ('{"relevance": 2, "details": {"score": 6}}', 6.0, {}),
        ("Score: 7", 7.0, {}),
        ("Score (0-10): 7", 7.0, {}),
        ("**Score:** 7/10", 7.0, {}),
        ("I give it 7 out of 10.", 7.0, {}),
        ("7", 7.0, {}),
        ("Answer: lupus.\n7.0\n", 7.0, {}),
        ('{"score": 3}\nNo: {"score": 7}', 7.0, {}),
        ('{"score": 70}', 10.0, {"clipped": 1}),
        ('{"score": -1}', 0.0, {"clipped": 1}),
    ],
)
def test_one_score_is_read_at_any_position(text, score, repairs):
    parsed = parse_score(text)
    assert parsed is not None
    assert (parsed.value, parsed.repairs) == (score, repairs)


@pytest.mark.parametrize(
    "text", ["", "{}", "It is relevant.", "这段文字很相关。", "In 2019, 45 patients were treated.", '{"score": "high"}']
)
def test_an_answer_without_a_score_parses_to_none(text):
    assert parse_score(text) is None


PIECES = st.lists(
    st.sampled_from(
        [*"[]{}()<>:;,.=→'\"\n \t#*-0123456789", "passage ", "score", '"id": ', "】", "٣", "\ud800", "1e999"]
    )
    | st.text(max_size=3)
    | st.integers(-5, 30).map(lambda number: f"[{number}]"),
    max_size=60,
).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["1", "2", "id", "score"]), inner),
    max_leaves=20,
).map(json.dumps)


@given(text=PIECES | JSON, count=st.integers(1, 25))
def test_for_any_text_an_order_is_a_permutation_and_scores_are_on_the_scale(text, count):
    order = parse_order(text, count)
    assert order is None or sorted(order.value) == list(range(count))
    for scores in (parse_scores(text, count), parse_score(text)):
        if scores is not None:
            found = scores.value if isinstance(scores.value, dict) else {0: scores.value}
            assert found
            assert all(0 <= place < count and 0 <= score <= 10 for place, score in found.items())


@given(order=st.permutations(range(20)), prose=st.text(alphabet="abc ,.\n", max_size=40))
def test_a_complete_order_is_read_unchanged(order, prose):
    for form in (" > ".join, ", ".join, "\n".join):
        parsed = parse_order(f"Answer: {prose}\n" + form(f"[{place + 1}]" for place in order), 20)
        assert parsed is not None
        assert (parsed.value, parsed.repairs) == (tuple(order), {})


@given(scores=st.lists(st.integers(0, 20).map(lambda half: half / 2), min_size=1, max_size=25))
def test_complete_scores_are_read_unchanged(scores):
    text = json.dumps({str(place): score for place, score in enumerate(scores, 1)})
    parsed = parse_scores(f"Answer: some.\n{text}", len(scores))
    assert parsed is not None
    assert (parsed.value, parsed.repairs) == (dict(enumerate(scores)), {})


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("[" * 50_000, None),
        ('{"1":' * 20_000, None),
        ("[1," * 20_000, tuple(range(20))),
        ("1 > " * 20_000, tuple(range(20))),
        ("\n" * 50_000, None),
        ("9" * 50_000, None),
        ("[3] > " * 20_000 + "[2]", (2, 1, 0, *range(3, 20))),
    ],
)
def test_only_the_end_of_a_huge_answer_is_read_and_few_brackets_are_tried(monkeypatch, text, order):
    in_vain = []
    decode = json_in_text._DECODER.raw_decode

    def counted(text, start):
        try:
            return decode(text, start)
        except (ValueError, RecursionError):
            in_vain.append(start)
            raise

    monkeypatch.setattr(json_in_text._DECODER, "raw_decode", counted)
    parsed = parse_order(text, 20)
    assert (parsed.value if parsed else None) == order
    assert parse_scores(text, 20) is None
    assert parse_score(text) is None
    assert len(in_vain) <= 3 * json_in_text.MAX_FAILED_BRACKETS
    assert parse_order("[1] > [2]" + " " * json_in_text.MAX_CHARACTERS + "[2] > [1]", 2).value == (1, 0)
    assert parse_order("[1] > [2]" + " " * json_in_text.MAX_CHARACTERS, 2) is None
