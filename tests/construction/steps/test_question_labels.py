import pytest

from r2med.construction.steps.question_labels import BODY_SYSTEMS, RULES
from r2med.data import load
from r2med.data.dataset_cards import groups
from support.builds import built

TABLE = "id,question,answer\na,Alpha coughs.,Flu\nb,Beta limps.,Gout\n"
READ = "read-table(q.csv)"


def test_the_kind_and_the_kind_of_answer_are_kept_and_others_left_out(tmp_path):
    answers = [(["Alpha"], {"kind": "dia", "answer_kind": "Disease"}), (["Beta"], {"kind": "none", "answer_kind": ""})]
    build = built(tmp_path, [READ, "label-kind"], {"q.csv": TABLE}, answers)
    assert [(question.id, question.kind) for question in build.items(2)] == [("a", "DIA/disease")]
    assert [(left.key, left.reason) for left in build.rejected(2)] == [("b", "Other Kind")]


@pytest.mark.parametrize(
    "answer",
    [{"kind": "DIA", "answer_kind": "drug"}, {"kind": "DIA"}, "DIA", "{", ""],
)
def test_an_answer_that_is_not_valid_is_a_failure_that_is_counted(tmp_path, answer):
    build = built(tmp_path, [READ, "label-kind"], {"q.csv": TABLE}, [([], answer)])
    assert not list(build.items(2))
    assert {left.reason for left in build.rejected(2)} == {"no usable answer"}
    assert sum(build.status()[1].failures.values()) == 2
    assert build.status()[1].cost.calls == 6


def test_each_rule_has_its_label(tmp_path):
    fine = dict.fromkeys(RULES, True)
    for field, label in RULES.items():
        answers = [(["Alpha"], {**fine, field: False, "why": "it is short"}), (["Beta"], {**fine, "why": ""})]
        build = built(tmp_path / field, [READ, "check-rules"], {"q.csv": TABLE}, answers)
        assert [(left.key, left.reason, left.note) for left in build.rejected(2)] == [("a", label, "it is short")]
        assert [question.id for question in build.items(2)] == ["b"]


def test_a_body_system_that_the_source_tells_is_not_asked_for(tmp_path):
    rows = '{"question": "Q", "options": ["x", "y"], "answer": "x", "body_system": "Nervous"}\n'
    build = built(tmp_path, ["read-exam(e.jsonl)", "label-body-system"], {"e.jsonl": rows})
    assert [question.body_system for question in build.items(2)] == ["Nervous"]
    assert build.status()[1].cost.calls == 0


def test_the_body_systems_of_the_demo_are_those_of_the_labels():
    for name in groups()["demo"]:
        assert {query.body_system for query in load(name).queries} <= {*BODY_SYSTEMS}, name
