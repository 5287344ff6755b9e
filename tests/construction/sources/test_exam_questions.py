from support.builds import built, lines

MEDQA = {
    "question": "Which drug?",
    "answer": "Aspirin",
    "options": {"A": "Aspirin", "B": "Heparin"},
    "answer_idx": "A",
    "meta_info": "step1",
}
MEDXPERT = {
    "id": "Text-4",
    "question": "Which nerve?\nAnswer Choices: (A) Ulnar (B) Radial",
    "options": {"A": "Ulnar", "B": "Radial"},
    "label": "B",
    "body_system": "Nervous",
    "medical_task": "Diagnosis",
}


def test_questions_of_both_exams_are_read(tmp_path):
    first, second = built(
        tmp_path, ["read-exam(exam.jsonl, licence=MIT)"], {"exam.jsonl": lines(MEDQA, MEDXPERT)}
    ).items(1)
    assert (first.id, first.text, first.answer) == ("exam-1", "Which drug?", "Aspirin")
    assert first.options == ("Aspirin", "Heparin")
    assert (second.id, second.text, second.answer) == ("Text-4", "Which nerve?", "Radial")
    assert (second.body_system, second.licence, second.source) == ("Nervous", "MIT", "exam.jsonl:2")


def test_lines_that_make_no_question_are_told_by_position(tmp_path):
    wrong = {**MEDQA, "answer_idx": "C", "answer": "none"}
    text = lines(wrong, {"question": "?"}).encode() + b'{"question": "caf\xe9"}\n' + lines(MEDQA).encode() + b'{"quest'
    build = built(tmp_path, ["read-exam(exam.jsonl)"], {"exam.jsonl": text})
    assert [question.id for question in build.items(1)] == ["exam-4"]
    notes = [left.note for left in build.rejected(1)]
    assert "exam.jsonl:1: none of answer_idx" in notes[0]
    assert "exam.jsonl:2: options must be" in notes[1]
    assert "exam.jsonl:3: not UTF-8 at byte" in notes[2]
    assert "exam.jsonl:5: not valid JSON" in notes[3]
