import pytest

from r2med.errors import UserError
from support.builds import built


def test_columns_are_known_by_their_names_or_named(tmp_path):
    table = "nr;case;diagnosis;sources\nA;A man coughs.;Flu;https://a.org/1, https://b.org/2\nB;;Cold;\n".encode(
        "cp1252"
    )
    build = built(tmp_path, ["read-table(q.csv, id=nr, links=sources, licence=CC0)"], {"q.csv": table})
    [question] = build.items(1)
    assert (question.id, question.text, question.answer) == ("A", "A man coughs.", "Flu")
    assert question.links == ("https://a.org/1", "https://b.org/2")
    assert [left.reason for left in build.rejected(1)] == ["no text"]


def test_a_column_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"no column 'qestion' \(did you mean question\?\)"):
        built(tmp_path, ["read-table(q.csv, question=qestion)"], {"q.csv": "question,answer\nWhy?,So\n"})
