import pytest

from r2med.construction.build_plan import BuildPlan
from r2med.construction.pipeline import BuildFolder
from support.builds import built, lines, plan_file

EXAM = lines(
    *(
        {"id": name, "question": f"{name}?", "options": ["yes", "no"], "answer": "yes"}
        for name in ("easy", "hard", "odd")
    )
)


@pytest.mark.parametrize(("share", "left_out"), [(0.5, ["easy"]), (0.3, ["easy", "odd"]), (1, [])])
def test_what_most_small_models_answer_right_is_left_out(tmp_path, share, left_out):
    for name, right in {"one": ["easy", "odd"], "two": ["easy"], "three": ["easy"]}.items():
        rules = [{"when": [f"{word}?"], "answer": '{"choice": "A"}'} for word in right]
        wrong = {"when": [], "answer": '{"choice": "b"}'}
        (tmp_path / f"{name}.jsonl").write_text(lines(*rules, wrong))
    steps = ["read-exam(e.jsonl)", f"drop-easy(llms=one:two:three, share={share})"]
    plan = BuildPlan.read(plan_file(tmp_path, steps, {"e.jsonl": EXAM}))
    build = BuildFolder(plan, tmp_path / "out")
    paths = tuple((name, tmp_path / f"{name}.jsonl") for name in ("one", "two", "three"))
    done = build.run(plan.setup(model_paths=paths))
    assert [left.key for left in build.rejected(2)] == left_out
    assert done[1].facts["answered right"] == {"one": 2, "two": 1, "three": 1}
    assert done[1].cost.calls == 9


def test_a_question_without_options_is_easy_if_its_answer_is_named(tmp_path):
    rows = "id,question,answer\na,Alpha?,Gout\nb,Beta?,Measles\nc,Gamma?,\n"
    answers = [(["Choose"], {"choice": "A"}), (["Alpha"], {"answer": "acute gout"}), ([], {"answer": "Rubella"})]
    build = built(tmp_path, ["read-table(q.csv)", "drop-easy"], {"q.csv": rows}, answers)
    assert [left.key for left in build.rejected(2)] == ["a"]
    assert [question.id for question in build.items(2)] == ["b", "c"]
    assert build.status()[1].cost.calls == 2
