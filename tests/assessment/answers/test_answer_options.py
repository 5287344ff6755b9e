"""The options of a multiple choice."""

from r2med.assessment.answers.answer_options import options_of
from r2med.data import Query


def test_options_hold_the_right_answer_once_and_depend_on_the_query_alone() -> None:
    queries = [Query(str(n), "?", f"answer {n}") for n in range(9)]
    options = options_of(queries[3], queries)
    assert len(options) == 4
    assert options.count("answer 3") == 1
    assert options == options_of(queries[3], queries[::-1])
