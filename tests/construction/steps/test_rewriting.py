import json

import pytest

from support.builds import built

EXAM = json.dumps(
    {
        "id": "a",
        "question": "A man of 60 has chest pain for an hour. Which of the following drugs should be given first?",
        "options": {"A": "Aspirin", "B": "Warfarin"},
        "label": "A",
    }
)
CASE = "A girl had a rash and fever for three days. Koplik spots were seen. Measles was confirmed. She got vitamin A."


def test_options_are_removed_with_minimal_edits(tmp_path):
    text = "A man of 60 has chest pain for an hour. Which drug should be given first?"
    build = built(tmp_path, ["read-exam(e.jsonl)", "open-question"], {"e.jsonl": EXAM}, [([], {"question": text})])
    [question] = build.items(2)
    assert (question.text, question.options) == (text, ())
    assert question.original.endswith("drugs should be given first?")


def test_more_than_a_rewording_is_asked_again_and_then_fails(tmp_path):
    text = "Somebody of a certain age complains about the thorax. What helps?"
    build = built(tmp_path, ["read-exam(e.jsonl)", "open-question"], {"e.jsonl": EXAM}, [([], {"question": text})])
    assert not list(build.items(2))
    assert build.status()[1].failures == {"unreadable": 1}
    assert build.status()[1].cost.calls == 3


def test_an_open_question_that_still_speaks_of_options_is_asked_again(tmp_path):
    text = "A man of 60 has chest pain for an hour. Which of the following drugs should be given first?"
    build = built(tmp_path, ["read-exam(e.jsonl)", "open-question"], {"e.jsonl": EXAM}, [([], {"question": text})])
    assert not list(build.items(2))
    assert build.status()[1].failures == {"unreadable": 1}


@pytest.mark.parametrize(
    "text", ["The rash is shown in the photograph. Which virus?", "See figure 2. Which?", "An ECG is shown below. Why?"]
)
def test_a_question_that_points_to_a_picture_is_left_out_and_nothing_is_asked(tmp_path, text):
    row = json.dumps({**json.loads(EXAM), "question": text})
    build = built(tmp_path, ["read-exam(e.jsonl)", "open-question"], {"e.jsonl": row}, [([], {"question": text})])
    assert [left.reason for left in build.rejected(2)] == ["Needs A Figure"]
    assert build.status()[1].cost.calls == 0


@pytest.mark.parametrize("said", ["the path", "…", "<reasoning>", "N/A.", "So"])
def test_a_placeholder_is_no_path_of_reasoning(tmp_path, said):
    sources = {"q.csv": "question,answer\nWhy?,So\n"}
    build = built(tmp_path, ["read-table(q.csv)", "reason"], sources, [([], {"reasoning": said})])
    assert not list(build.items(2))
    assert build.status()[1].failures == {"unreadable": 1}


def hidden(folder, **answer):
    case = json.dumps({"id": "c", "text": CASE, "diagnosis": "Measles"})
    return built(folder, ["read-cases(c.jsonl, group=none)", "hide-diagnosis"], {"c.jsonl": case}, [([], answer)])


def test_a_case_keeps_its_presentation_and_loses_its_diagnosis(tmp_path):
    text = "A girl had a rash and fever for three days. Koplik spots were seen."
    [question] = hidden(tmp_path, confirmed=True, diagnosis="Rubeola", presentation=text).items(2)
    assert (question.text, question.answer, question.original) == (text, "Measles", CASE)


def test_a_case_with_findings_that_were_added_fails_and_one_without_a_diagnosis_is_left_out(tmp_path):
    text = "A girl had a rash, meningism, photophobia and lymph nodes."
    added = hidden(tmp_path / "added", confirmed=True, diagnosis="Measles", presentation=text)
    assert [left.reason for left in added.rejected(2)] == ["no usable answer"]
    unclear = hidden(tmp_path / "unclear", confirmed=False, diagnosis="", presentation="")
    assert [left.reason for left in unclear.rejected(2)] == ["No Confirmed Diagnosis"]


def test_the_path_of_reasoning_is_kept_with_the_question(tmp_path):
    steps = ["read-table(q.csv)", "reason"]
    sources = {"q.csv": "question,answer\nWhy?,So\n"}
    [question] = built(tmp_path, steps, sources, [(["Why?", "So"], {"reasoning": "First, then."})]).items(2)
    assert question.reasoning == "First, then."
