import pytest

from r2med.foundation.core.errors import UserError
from support.builds import built


def test_columns_are_known_by_their_names_or_named(tmp_path):
    table = "nr;case;diagnosis;sources\nA;A man coughs.;Flu;https://a.org/1, https://b.org/2\nB;;Cold;\n"
    build = built(tmp_path, ["read-table(q.csv, id=nr, links=sources, licence=CC0)"], {"q.csv": table})
    [question] = build.items(1)
    assert (question.id, question.text, question.answer) == ("A", "A man coughs.", "Flu")
    assert question.links == ("https://a.org/1", "https://b.org/2")
    assert [left.reason for left in build.rejected(1)] == ["no text"]


def test_a_column_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"no column 'qestion' \(did you mean question\?\)"):
        built(tmp_path, ["read-table(q.csv, question=qestion)"], {"q.csv": "question,answer\nWhy?,So\n"})


def test_one_line_that_is_no_json_is_reported_and_the_rest_is_read(tmp_path, caplog):
    text = '{"question": "Why?", "answer": "So"}\n{"question": "Wh\n["a"]\n{"question": "How?", "answer": "Thus"}\n'
    build = built(tmp_path, ["read-table(q.jsonl)"], {"q.jsonl": text})
    assert [(question.id, question.text) for question in build.items(1)] == [("q-1", "Why?"), ("q-4", "How?")]
    assert [left.note for left in build.rejected(1)] == [
        "q.jsonl:2: not valid JSON at column 17",
        "q.jsonl:3: not a JSON object",
    ]
    assert "q.jsonl:2: not valid JSON" in caplog.text
    with pytest.raises(UserError, match=r"q\.jsonl: no line is a JSON object"):
        built(tmp_path / "none", ["read-table(q.jsonl)"], {"q.jsonl": "nothing\n"})


@pytest.mark.parametrize(
    "table",
    [
        "question,A,B,C,answer\nWhich?,Flu,Gout,Mumps,B\n",
        "question,option_a,option_b,option_c,answer\nWhich?,Flu,Gout,Mumps,Gout\n",
        "question,opa,opb,opc,answer\nWhich?,Flu,Gout,Mumps,(b)\n",
        'question,options,answer\nWhich?,"A. Flu; B. Gout; C. Mumps",B\n',
        "question,A,B,C,D,answer\nWhich?,Flu,,Gout,Mumps,C\n",
        "question,choices,answer\nWhich?,Flu|Gout|Mumps,Gout\n",
        'question,options,answer\nWhich?,"{""B"": ""Gout"", ""A"": ""Flu"", ""C"": ""Mumps""}",B\n',
        'question,options,answer\nWhich?,"[""Flu"", ""Gout"", ""Mumps""]",B\n',
    ],
)
def test_exam_questions_in_a_table_keep_their_options(tmp_path, table):
    [question] = built(tmp_path, ["read-table(q.csv)"], {"q.csv": table}).items(1)
    assert (question.text, question.options, question.answer) == ("Which?", ("Flu", "Gout", "Mumps"), "Gout")


def test_an_answer_that_is_none_of_the_options_is_left_out(tmp_path):
    build = built(
        tmp_path, ["read-table(q.csv)"], {"q.csv": "question,A,B,answer\nWhich?,Flu,Gout,Mumps\nHow?,Flu,Gout,A\n"}
    )
    assert [left.reason for left in build.rejected(1)] == ["answer is no option"]


def test_reasoning_that_an_expert_wrote_is_taken_and_not_asked_for_again(tmp_path):
    table = "question,answer,why\nWhy?,So,Fever and rash point to it.\nHow?,Thus,\n"
    answers = [(["path of reasoning"], {"reasoning": "Written by an LLM."})]
    build = built(tmp_path, ["read-table(q.csv, reasoning=why)", "reason"], {"q.csv": table}, answers)
    assert [question.reasoning for question in build.items(2)] == ["Fever and rash point to it.", "Written by an LLM."]
    with pytest.raises(UserError, match=r"no column 'whi' \(did you mean why\?\)"):
        built(tmp_path / "wrong", ["read-table(q.csv, reasoning=whi)"], {"q.csv": table})
