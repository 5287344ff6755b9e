"""Tables as people have them become a dataset: columns are guessed from names and contents, or named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2med import import_data
from r2med.data import load
from r2med.data.check import check
from r2med.data.dataset_cards import cards, read_card
from r2med.data.tables.import_choices import ImportChoices
from r2med.data.tables.importing import plan_import
from support.facts import each_states, error_states, states

NOTES = [(str(n), f"Visit {n}", f"The patient of note {n} has a fever, and a cough; no rash.") for n in range(1, 8)]
QUESTIONS = [("1", "Who had a fever?", "flu", "3"), ("2", "Who had a cough?", "cold", "5; 6")]


def csv_file(path: Path, heads: str, rows: Any, separator: str = ",", encoding: str = "utf-8") -> Path:
    lines = [heads, *(separator.join(f'"{cell}"' for cell in row) for row in rows)]
    path.write_bytes("\r\n".join(lines).encode(encoding))
    return path


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return csv_file(tmp_path / "notes.csv", "note_id,title,note", NOTES)


def imported(folder: Path, *files: Path, **named: Any) -> dict[str, list[dict[str, Any]]]:
    plan_import(files, **named).write(folder)
    return {
        file.stem: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for file in folder.glob("*.jsonl")
    }


def pairs(rows: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [(row["q_id"], row["p_id"], row["score"]) for row in rows]


def test_notes_and_questions_become_a_sound_dataset(tmp_path: Path, notes: Path) -> None:
    questions = csv_file(tmp_path / "q.csv", "nr,question,diagnosis,relevant notes", QUESTIONS)
    rows = imported(tmp_path / "mine", notes, questions)
    assert rows["corpus"][0] == {"id": "1", "title": "Visit 1", "text": NOTES[0][2]}
    assert rows["query"][1] == {"id": "2", "text": "Who had a cough?", "answer": "cold"}
    assert pairs(rows["qrels"]) == [("1", "3", 1), ("2", "5", 1), ("2", "6", 1)]
    assert not len(check(tmp_path / "mine"))
    assert load(tmp_path / "mine").corpus.text(0).startswith("Visit 1 The patient")


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_any_separator_and_encoding_is_read(tmp_path: Path, separator: str, encoding: str) -> None:
    heads = separator.join(("id", "text"))
    rows = [("a", "Müdigkeit; Fieber, 39 °C | über Nacht"), ("b", 'He said ""no""')]
    file = csv_file(tmp_path / "notes.csv", heads, rows, separator, encoding)
    corpus = imported(tmp_path / "mine", file)["corpus"]
    assert corpus == [{"id": "a", "text": rows[0][1]}, {"id": "b", "text": 'He said "no"'}]


def test_workbooks_parquet_and_json_are_read_too(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Questions"
    for row in (("id", "question", "relevant"), (1, "Who coughs?", 2.0), (2, "Who itches?", "1, 3")):
        book.active.append(row)
    sheet = book.create_sheet("Notes")
    for row in (("id", "note"), (1, "Itching since May."), (2, "A cough."), (3, "Itching again.")):
        sheet.append(row)
    book.save(tmp_path / "ward.xlsx")
    assert pairs(imported(tmp_path / "a", tmp_path / "ward.xlsx")["qrels"]) == [
        ("1", "2", 1),
        ("2", "1", 1),
        ("2", "3", 1),
    ]
    pq.write_table(pa.table({"_id": ["x", "y"], "text": ["A cough.", "An itch."]}), tmp_path / "notes.parquet")
    asked = [{"query_id": 7, "query": "Who coughs?", "relevant": ["x", "y"], "grade": [2, 0]}]
    (tmp_path / "asked.json").write_text(json.dumps({"data": asked}))
    rows = imported(tmp_path / "b", tmp_path / "notes.parquet", tmp_path / "asked.json")
    assert pairs(rows["qrels"]) == [("7", "x", 2), ("7", "y", 0)]


@pytest.mark.parametrize(
    ("heads", "row", "expected"),
    [
        ("question,relevant", ("Who?", "['3', '5']"), [("3", 1), ("5", 1)]),
        ("question,relevant", ("Who?", "3 5"), [("3", 1), ("5", 1)]),
        ("question,relevant", ("Who?", "3:2, 5:0"), [("3", 2), ("5", 0)]),
        ("question,relevant,grade", ("Who?", "3|5", "2|1"), [("3", 2), ("5", 1)]),
        ("question,relevant,relevance", ("Who?", "3", "no"), [("3", 0)]),
        ("question,what we looked for", ("Who?", "4;5"), [("4", 1), ("5", 1)]),
    ],
)
def test_several_ids_and_grades_in_a_cell_are_told_apart(
    tmp_path: Path, notes: Path, heads: str, row: tuple[str, ...], expected: list[tuple[str, int]]
) -> None:
    rows = imported(tmp_path / "mine", notes, csv_file(tmp_path / "asked.csv", heads, [row]))
    assert pairs(rows["qrels"]) == [("q1", document, grade) for document, grade in expected]


def test_a_row_for_each_relevant_document_and_a_table_of_judgements_work(tmp_path: Path, notes: Path) -> None:
    long = csv_file(tmp_path / "long.csv", "question,note_id", [("Who?", "1"), ("Who?", "2"), ("When?", "2")])
    rows = imported(tmp_path / "a", notes, long)
    assert [row["id"] for row in rows["query"]] == ["q1", "q2"]
    assert pairs(rows["qrels"]) == [("q1", "1", 1), ("q1", "2", 1), ("q2", "2", 1)]
    questions = csv_file(tmp_path / "questions.csv", "id,text", [("a", "Who?"), ("b", "When?")])
    qrels = csv_file(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore", [("a", "1", "2")], "\t")
    assert pairs(imported(tmp_path / "b", qrels, questions, notes)["qrels"]) == [("a", "1", 2)]


def test_a_corpus_alone_and_questions_alone_are_welcome(tmp_path: Path, notes: Path) -> None:
    assert list(imported(tmp_path / "alone", notes)) == ["corpus"]
    numbered = csv_file(tmp_path / "numbered.csv", "id,question", [("1", "Who?"), ("2", "When?")])
    assert set(imported(tmp_path / "numbered", notes, numbered)) == {"corpus", "query"}  # not 1 for 1 and 2 for 2
    asked = tmp_path / "asked.txt"
    asked.write_text("Who had a fever, and when?\nWho had a cough?\n")
    assert set(imported(tmp_path / "asked", notes, asked)) == {"corpus", "query"}
    for name, queries in (("alone", 0), ("asked", 2)):
        problems, dataset = check(tmp_path / name), load(tmp_path / name)
        assert not len(problems)
        each_states(problems.notices, ["qrels.jsonl", "scored"])
        assert len(dataset.queries) == queries
        with error_states(name, "scored"):
            dataset.require_scorable()


def test_a_column_of_ids_that_repeat_is_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("id,text\na,first note\na,second note\n")
    [notice] = plan_import([tmp_path / "notes.csv"]).notices
    states(notice, "'id'", "'a'", "lines 2 and 3")


def test_columns_can_be_named_and_a_table_may_have_no_head(tmp_path: Path) -> None:
    odd = csv_file(
        tmp_path / "odd.csv", "code,long,short", [("a", "a rather long remark", "cough"), ("a", "b c d", "itch")]
    )
    rows = imported(tmp_path / "a", odd, text="short", title="long")
    assert rows["corpus"][0] == {"id": "1", "title": "a rather long remark", "text": "cough"}  # no ids: they repeat
    bare = csv_file(tmp_path / "bare.csv", "x1,A cough", [("x2", "An itch")])
    assert [row["id"] for row in imported(tmp_path / "b", bare, typed=ImportChoices(header=False))["corpus"]] == [
        "x1",
        "x2",
    ]


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("a.doc", b"x", ["a.doc", ".csv", ".xlsx"]),
        ("a.csv", b"", ["a.csv", "no rows"]),
        ("a.csv", b"id,text\n", ["a.csv", "no rows"]),
        ("a.csv", b"id,text\n1,one, two\n", ["a.csv:2", "3 cells", 2, "','"]),
        ("a.csv", b'id,text\n1,"one\n', ["a.csv", "quote"]),
        ("a.csv", b"id,text\n1,\x81\n", ["a.csv:2", "UTF-8"]),
        ("a.jsonl", b"{\n", ["a.jsonl:1", "JSON"]),
        ("a.json", b"[1]", ["a.json", "list of objects"]),
        ("a.json", b"[" * 100_000, ["a.json", "JSON"]),
        ("a.parquet", b"x", ["a.parquet", "Parquet"]),
        ("a.xlsx", b"x", ["a.xlsx", "workbook"]),
        ("a.csv", b"question\nWho?\n", ["a.csv", "no documents"]),
    ],
)
def test_what_is_no_table_is_told_in_one_line(tmp_path: Path, name: str, content: bytes, facts: list[object]) -> None:
    (tmp_path / name).write_bytes(content)
    with error_states(*facts):
        plan_import([tmp_path / name]).write(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_bad_grade_leaves_nothing_behind(tmp_path: Path, notes: Path) -> None:
    asked = csv_file(tmp_path / "asked.csv", "question,relevant,grade", [("Who?", "1", "2"), ("When?", "2", "very")])
    with error_states("asked.csv:3", "'very'"):
        plan_import([notes, asked], grade="grade").write(tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir() if "mine" in path.name) == []


GERMAN = [
    (str(n), f"Fall {n}", f"Der Patient klagt seit {n} Tagen über Schmerzen in der linken Hand.") for n in range(6)
]


def test_the_language_is_guessed_and_written_to_the_card(notes: Path, tmp_path: Path) -> None:
    english = plan_import([notes])
    assert english.language is not None and english.language.code == "en"
    english.write(tmp_path / "english")
    assert not (tmp_path / "english" / "card.toml").exists()
    german = plan_import([csv_file(tmp_path / "faelle.csv", "note_id,title,note", GERMAN)])
    assert german.language is not None
    assert (german.language.code, german.language.share, german.language.texts) == ("de", 1.0, 6)
    german.write(tmp_path / "ward")
    card = load(tmp_path / "ward").card
    assert card is not None and card.languages == ("de",)


def test_the_card_of_an_import_belongs_to_the_user(tmp_path: Path) -> None:
    table = csv_file(tmp_path / "faelle.csv", "note_id,title,note", GERMAN)
    plan_import([table]).write(tmp_path / "ward")
    (tmp_path / "ward" / "card.toml").write_text('languages = ["nl"]\n')
    plan_import([table]).write(tmp_path / "ward", update=True)
    assert (tmp_path / "ward" / "card.toml").read_text() == 'languages = ["nl"]\n'


def test_a_folder_with_the_name_of_a_dataset_keeps_its_nature(tmp_path: Path) -> None:
    plan_import([csv_file(tmp_path / "faelle.csv", "note_id,title,note", GERMAN)]).write(tmp_path / "Biology")
    card = read_card(tmp_path / "Biology" / "card.toml", "Biology")
    assert card.languages == ("de",) and card.instruction == cards()["Biology"].instruction


def test_a_named_text_column_that_only_one_of_two_tables_has_leaves_the_other_guessed(tmp_path: Path) -> None:
    notes = csv_file(tmp_path / "notes.csv", "id,findings,plan", [("n1", "A cough since May.", "An X-ray.")])
    letters = csv_file(tmp_path / "letters.csv", "id,letter", [("l1", "An itch since the month of June.")])
    for number, named in enumerate((["plan"], ["plan", "letter"])):
        rows = imported(tmp_path / str(number), notes, letters, text=named)
        assert [row["text"] for row in rows["corpus"]] == ["An X-ray.", "An itch since the month of June."]


def test_personal_data_is_replaced_on_the_way_also_by_an_update(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes = csv_file(tmp_path / "notes.csv", "id,text", [("n1", "Seen on 3 May 2021, MRN 482913."), ("n2", "A fever.")])
    asked = csv_file(tmp_path / "q.csv", "question,answer,relevant", [("Who came on 3 May 2021?", "MRN 482913", "n1")])
    caplog.set_level("INFO", "r2med")
    import_data([notes, asked], tmp_path / "mine", deidentify=True)
    assert caplog.messages[-2:] == [
        "personal data was replaced in 1 of 2 documents and 1 of 1 question",
        "not looked for: names, addresses, anything in languages other than English, German, Spanish, French and "
        "Chinese; ids of documents and questions stay as they are",
    ]
    import_data([notes, asked], tmp_path / "mine", update=True)
    corpus, queries = ((tmp_path / "mine" / f"{name}.jsonl").read_text() for name in ("corpus", "query"))
    assert "Seen on [DATE-1], MRN [ID-1]." in corpus and "A fever." in corpus
    assert "Who came on [DATE-1]?" in queries and '"answer": "MRN [ID-1]"' in queries
