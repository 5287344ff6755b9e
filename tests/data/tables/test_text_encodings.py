"""A file is read in UTF-8 or in the encoding that is named. Otherwise a word is shown as Windows-1252 would read it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from r2med.data.tables.import_choices import ImportChoices
from r2med.data.tables.importing import plan_import
from support.facts import error_states

TEXTS = {
    "ru": "Пациент кашляет третий день, температура тридцать девять, одышки нет.",
    "zh": "患者咳嗽发热三天，胸片提示右下肺炎症，无皮疹。",
    "ja": "患者は三日前から咳と発熱があり、右下肺に陰影を認める。",
    "pl": "Pacjent kaszle i ma gorączkę od trzech dni, świsty po prawej stronie, ból głowy łagodny.",
    "de": "Müdigkeit und Fieber über Nacht, großflächiger Ausschlag, Verdacht auf Ménière.",
    "fr": "Fièvre élevée et toux à l'effort, œdème des membres, né à terme.",
    "en": "Sjögren’s syndrome – 39 °C, naïve to treatment, “no rash”, area 3 m².",
}


def table(tmp_path: Path, language: str, encoding: str, name: str = "notes.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(f"id;text\n1;{TEXTS[language]}\n2;{TEXTS[language]} 2\n".encode(encoding))
    return path


@pytest.mark.parametrize(
    ("language", "encoding", "word"),
    [
        ("de", "cp1252", "Müdigkeit"),
        ("fr", "cp1252", "Fièvre"),
        ("en", "cp1252", "Sjögren’s"),
        ("de", "cp850", "M�digkeit"),
        ("ru", "cp1251", "Ïàöèåíò"),
        ("pl", "iso-8859-2", "gor±czkê"),
        ("zh", "gb18030", ""),
        ("ja", "shift_jis", ""),
    ],
)
def test_another_encoding_stops_the_import_and_a_word_shows_if_it_is_windows_1252(
    tmp_path: Path, language: str, encoding: str, word: str
) -> None:
    path = table(tmp_path, language, encoding)
    with error_states("notes.csv:2", "UTF-8", f"'{word}", "cp1252", "encoding (--encoding cp1252)"):
        plan_import([path])
    document = next(plan_import([path], typed=ImportChoices(encoding=encoding))._catalogue.documents())
    assert document == {"id": "1", "text": TEXTS[language]}


def test_of_two_files_the_named_encoding_is_that_of_the_one_that_is_not_utf_8(tmp_path: Path) -> None:
    old, new = table(tmp_path, "de", "cp1252", "old.csv"), table(tmp_path, "fr", "utf-8", "new.csv")
    texts = [
        document["text"]
        for part in ([old], [new])
        for document in plan_import(part, typed=ImportChoices(encoding="cp1252"))._catalogue.documents()
    ]
    assert texts[::2] == [TEXTS["de"], TEXTS["fr"]]
    old.write_bytes(f"id,text\n1,{TEXTS['ja']}\n".encode("iso2022_jp"))
    assert (
        next(plan_import([old], typed=ImportChoices(encoding="iso2022_jp"))._catalogue.documents())["text"]
        == TEXTS["ja"]
    )


def test_an_encoding_that_does_not_fit_or_exist_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "ru", "cp1251")
    with error_states("notes.csv:2", "not utf-8"):
        plan_import([path], typed=ImportChoices(encoding="utf-8"))
    for unknown in ("klingon", "base64", "rot13", "idna"):
        with error_states(f"encoding (--encoding {unknown})", "no such"):
            plan_import([path], typed=ImportChoices(encoding=unknown))
    (tmp_path / "marked.csv").write_text("id,text\na,A cough.\n", encoding="utf-8-sig")
    assert (
        next(plan_import([tmp_path / "marked.csv"], typed=ImportChoices(encoding="UTF-8"))._catalogue.documents())["id"]
        == "a"
    )


@pytest.mark.parametrize("content", [random.Random(0).randbytes(3000), "id,text\na,A cough.\n".encode("utf-16-le")])
def test_a_file_with_zeros_is_no_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.csv").write_bytes(content)
    with error_states("notes.csv", "no text", "UTF-16 without its mark", "UTF-8"):
        plan_import([tmp_path / "notes.csv"])


def test_utf_16_without_its_mark_can_be_named(tmp_path: Path) -> None:
    path = table(tmp_path, "de", "utf-16-le")
    assert (
        next(plan_import([path], typed=ImportChoices(encoding="utf-16-le"))._catalogue.documents())["text"]
        == TEXTS["de"]
    )
