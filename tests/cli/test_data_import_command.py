"""`r2med data import` shows what it took columns for, writes a dataset and names the next command."""

import json
from pathlib import Path

import openpyxl
import pytest

from support.facts import some_states, states
from support.fork_server import Command


@pytest.fixture(autouse=True)
def tables(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("note_id;note;ward\nn1;A cough \x1b[2Jsince May.;3\nn2;An itch.;4\n")
    (tmp_path / "asked.tsv").write_text("question\trelevant\nWho coughs?\tn1\n")


def test_three_rows_are_shown_and_the_next_command_runs(r2med: Command, tmp_path: Path) -> None:
    ended = r2med("data", "import", "notes.csv", "asked.tsv", "-o", "my ward")
    assert ended.returncode == 0, ended.stderr
    assert "notes.csv: documents" in ended.stdout
    assert "id = note_id" in ended.stdout
    assert "not used: ward" in ended.stdout
    some_states(ended.stdout.splitlines(), "2 documents", "1 question", "1 judgement", "1 relevant")
    assert "\x1b" not in ended.stdout
    states(ended.stdout.splitlines()[-1], "r2med run bm25 --data 'my ward'")
    assert r2med("run", "bm25", "--data", "my ward").returncode == 0


def test_without_judgements_one_can_search_but_not_score(r2med: Command) -> None:
    made = r2med("data", "import", "notes.csv", "-o", "mine").stdout
    states(made.splitlines()[-1], "r2med search mine 'a question'")
    ended = r2med("run", "bm25", "--data", "mine")
    assert ended.returncode == 2
    states(ended.stderr.splitlines()[-1], "mine", "no queries", "scored")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["notes.csv", "-o", "notes.csv"], ["notes.csv", "exists"]),
        (["notes.csv", "-o", "mine", "--text", "nota"], ["--text nota", "note?"]),
        (["nothing.csv", "-o", "mine"], ["nothing.csv", "not exist"]),
        (["notes.csv"], ["--out"]),
    ],
)
def test_bad_input_is_one_line(r2med: Command, words: list[str], facts: list[str]) -> None:
    ended = r2med("data", "import", *words)
    assert ended.returncode == 2
    states(ended.stderr, *facts)


def test_unused_columns_with_long_texts_are_named_with_the_flags_that_read_them(r2med: Command, tmp_path: Path) -> None:
    rows = [
        f"n{n};Luftnot seit drei Tagen und Husten {n};2024-01-0{n} 10:00;Antibiose begonnen und ambulant weiter"
        for n in range(1, 9)
    ]
    (tmp_path / "faelle.csv").write_text("\n".join(["note_id;note;Entlassung;Therapie", *rows]), encoding="utf-8")
    shown = r2med("data", "import", "faelle.csv", "-o", "ward").stdout
    unused = "not used: Entlassung, Therapie (Therapie: texts; to read them too, type --text note --text Therapie)"
    some_states(shown.splitlines(), unused)
    both = r2med("data", "import", "faelle.csv", "-o", "both", "--text", "note", "--text", "Therapie").stdout
    some_states(both.splitlines(), "not used: Entlassung")
    assert "to read" not in both


def test_the_language_is_shown_with_the_command_that_searches_it(r2med: Command, tmp_path: Path) -> None:
    notes = "".join(f"n{n};Der Patient klagt über Schmerzen in der Hand {n}.\n" for n in range(4))
    (tmp_path / "faelle.csv").write_text(f"note_id;note\n{notes}", encoding="utf-8")
    shown = r2med("data", "import", "faelle.csv", "-o", "ward").stdout
    some_states(shown.splitlines(), "German", "100%", "4 documents")
    states(shown.splitlines()[-1], "r2med search ward 'a question' --system 'bm25(language=de)'")


TELEGRAPHIC = "".join(f"n{n};{40 + n}J, m, KHK, Z.n. PTCA de novo, EF 3{n} %. EKG o.B.\n" for n in range(6))


def test_a_language_that_cannot_be_told_is_named(r2med: Command, tmp_path: Path) -> None:
    (tmp_path / "faelle.csv").write_text(f"note_id;note\n{TELEGRAPHIC}", encoding="utf-8")
    shown = r2med("data", "import", "faelle.csv", "-o", "ward").stdout
    some_states(shown.splitlines(), "Cannot tell the language from 6 documents", "--language de")
    named = r2med("data", "import", "faelle.csv", "-o", "named", "--language", "de").stdout
    some_states(named.splitlines(), "The text is read as German")
    states(named.splitlines()[-1], "--system 'bm25(language=de)'")
    assert (tmp_path / "named" / "card.toml").read_text() == 'languages = ["de"]\n'
    again = r2med("data", "import", "faelle.csv", "-o", "named", "--update")
    states(again.stderr, "used again", "--language de")
    some_states(again.stdout.splitlines(), "The text is read as German")
    assert "Cannot tell" not in again.stdout
    other = r2med("data", "import", "faelle.csv", "-o", "named", "--language", "fr", "--update")
    states(other.stderr.splitlines()[-1], "named/card.toml is kept by an update", 'languages = ["fr"]')


@pytest.mark.parametrize("name", ["german", "deutsch", "German"])
def test_a_language_that_is_not_a_code_is_refused_with_the_flag_and_the_codes(
    r2med: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "faelle.csv").write_text(f"note_id;note\n{TELEGRAPHIC}", encoding="utf-8")
    refused = r2med("data", "import", "faelle.csv", "-o", "no", "--language", name).stderr
    states(refused, f"language (--language {name})", "de German")


def test_an_update_keeps_the_language_of_a_corrected_card(r2med: Command, tmp_path: Path) -> None:
    (tmp_path / "faelle.csv").write_text(f"note_id;note\n{TELEGRAPHIC}", encoding="utf-8")
    r2med("data", "import", "faelle.csv", "-o", "ward", "--language", "de")
    (tmp_path / "ward" / "card.toml").write_text('languages = ["fr"]\n')
    again = r2med("data", "import", "faelle.csv", "-o", "ward", "--update")
    assert again.returncode == 0
    some_states(again.stdout.splitlines(), "The text is read as French")
    states(again.stderr, "--language fr")


def test_mixed_languages_are_named_with_their_shares(r2med: Command, tmp_path: Path) -> None:
    german = "".join(f"n{n};Der Patient klagt über Schmerzen in der Hand {n}.\n" for n in range(4))
    english = "".join(f"e{n};The patient has had a cough and a fever for {n} days.\n" for n in range(4))
    (tmp_path / "notes.csv").write_text(f"note_id;note\n{german}{english}", encoding="utf-8")
    shown = r2med("data", "import", "notes.csv", "-o", "ward").stdout
    some_states(shown.splitlines(), "mixed (50% German, 50% English of 8 documents)", "--language de")


def texts(folder: Path) -> list[str]:
    rows = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row)["text"] for row in rows]


def ward_table(path: Path, heads: str, *rows: str) -> None:
    path.write_text("\n".join((heads, *rows, "")), encoding="cp1252")


def test_an_update_uses_the_columns_and_choices_of_the_first_import_again(r2med: Command, tmp_path: Path) -> None:
    first = (
        "Fieber seit gestern, Husten und Übelkeit.;Röntgen;f1",
        "Sturz auf die Hand, Schwellung am Gelenk.;Gips;f2",
    )
    ward_table(tmp_path / "mai.csv", "Befund;Plan;Fall", *first)
    made = r2med(
        "data", "import", "mai.csv", "-o", "mine", "--text", "Plan", "--text", "Befund", "--encoding", "cp1252"
    )
    assert made.returncode == 0, made.stderr
    assert (before := texts(tmp_path / "mine"))[0].startswith("Plan: Röntgen\nBefund: Fieber")
    ward_table(
        tmp_path / "juni.csv",
        "Notiz;Fall;Plan;Befund",
        "Tochter am Telefon ausführlich informiert.;f1;Röntgen;Fieber seit gestern, Husten und Übelkeit.",
        "Verband gewechselt, Wunde ist trocken.;f2;Gips;Sturz auf die Hand, Schwellung am Gelenk.",
        "Wartet seit drei Tagen auf die Visite.;f3;Labor;Müdigkeit seit Wochen, blass.",
    )
    again = r2med("data", "import", "juni.csv", "-o", "mine", "--update")
    assert again.returncode == 0, again.stderr
    some_states(again.stderr.splitlines(), "--text Plan --text Befund", "--id Fall", "--encoding cp1252")
    assert texts(tmp_path / "mine") == [*before, "Plan: Labor\nBefund: Müdigkeit seit Wochen, blass."]


def test_what_an_update_names_replaces_the_earlier_choice_for_good(r2med: Command, tmp_path: Path) -> None:
    ward_table(tmp_path / "mai.csv", "Fall;Befund;Notiz", "f1;Fieber seit gestern Abend.;Tochter wurde angerufen.")
    for words in (["--text", "Befund"], ["--text", "Notiz", "--update"], ["--update"]):
        made = r2med("data", "import", "mai.csv", "-o", "mine", *words)
        assert made.returncode == 0, made.stderr
    assert texts(tmp_path / "mine") == ["Tochter wurde angerufen."]


def test_an_update_names_a_column_of_the_first_import_that_is_gone(r2med: Command, tmp_path: Path) -> None:
    ward_table(
        tmp_path / "mai.csv", "Fall;Befund;Plan", "f1;Fieber seit gestern Abend.;Labor", "f2;Sturz auf die Hand.;Gips"
    )
    r2med("data", "import", "mai.csv", "-o", "mine", "--text", "Befund", "--text", "Plan", "--encoding", "cp1252")
    ward_table(tmp_path / "mai.csv", "Fall;Befund;Procedere", "f1;Fieber seit gestern Abend.;Labor")
    again = r2med("data", "import", "mai.csv", "-o", "mine", "--update")
    assert again.returncode == 0, again.stderr
    some_states(again.stdout.splitlines(), "mai.csv", "'Plan'", "earlier import")


def test_an_update_reads_the_sheet_that_the_first_import_chose(r2med: Command, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name, text in (("Station 3", "Fever since May, with a cough."), ("Archive", "An old note about an itch.")):
        sheet = book.create_sheet(name)
        sheet.append(["id", "note"])
        sheet.append([f"{name}-1", text])
    del book["Sheet"]
    book.save(tmp_path / "ward.xlsx")
    r2med("data", "import", "ward.xlsx", "-o", "mine", "--sheet", "Station 3")
    again = r2med("data", "import", "ward.xlsx", "-o", "mine", "--update")
    some_states(again.stderr.splitlines(), "--sheet 'Station 3'")
    assert texts(tmp_path / "mine") == ["Fever since May, with a cough."]


def test_questions_that_come_with_an_update_are_no_documents(r2med: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\nn1,A cough since the month of May.\nn2,An itch on both arms.\n")
    (tmp_path / "b.csv").write_text("id,text,relevant\nq1,Who has had a cough?,n1\nq2,Who has an itch?,n2\n")
    r2med("data", "import", "a.csv", "-o", "mine")
    again = r2med("data", "import", "a.csv", "b.csv", "-o", "mine", "--update")
    assert again.returncode == 0, again.stderr
    some_states(again.stdout.splitlines(), "2 documents", "2 questions", "2 judgements")
