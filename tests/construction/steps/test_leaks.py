from support.builds import built


def test_the_answer_and_its_synonyms_must_not_stand_in_the_question(tmp_path):
    table = (
        "id,question,answer\nown,A child with varicella.,Varicella\nother,A child with chickenpox.,Varicella\n"
        "fine,A child with vesicles.,Varicella\n"
    )
    answers = [(["Varicella"], {"names": ["chickenpox", "VZV infection"]})]
    build = built(tmp_path, ["read-table(q.csv)", "check-leaks"], {"q.csv": table}, answers)
    assert [question.id for question in build.items(2)] == ["fine"]
    assert [(left.key, left.note) for left in build.rejected(2)] == [("own", "Varicella"), ("other", "chickenpox")]
    assert build.status()[1].cost.calls == 2
