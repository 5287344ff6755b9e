"""A file is read in its own encoding, or refused with two encodings to try; garbage is never imported."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from r2med.data.tables.importing import plan_import
from support.facts import error_states, some_states

TEXTS = {
    "ru": "Пациент кашляет третий день, температура тридцать девять, одышки нет.",
    "zh": "患者咳嗽发热三天，胸片提示右下肺炎症，无皮疹。",
    "zh-tw": "病患咳嗽發燒三天，胸部影像顯示右下肺發炎。",
    "ja": "患者は三日前から咳と発熱があり、右下肺に陰影を認める。",
    "ko": "환자는 사흘 전부터 기침과 열이 있으며 발진은 없다.",
    "pl": "Pacjent kaszle i ma gorączkę od trzech dni, świsty po prawej stronie, ból głowy łagodny.",
    "cs": "Pacient kašle a má horečku už třetí den, dýchání vpravo je oslabené, bolest na hrudníku.",
    "hu": "A beteg három napja köhög és lázas, erős mellkasi fájdalma van, bőrkiütés nincs, fűszeres étel.",
    "ro": "Pacientul tuşeşte de trei zile şi are febră, fără erupţie, în observaţie.",
    "tr": "Hastanın üç gündür öksürüğü ve ateşi var, göğüs ağrısı yok, şikâyeti artıyor.",
    "el": "Ο ασθενής βήχει εδώ και τρεις ημέρες και έχει πυρετό.",
    "he": "החולה משתעל כבר שלושה ימים ויש לו חום",
    "ar": "المريض يسعل منذ ثلاثة أيام ولديه حمى",
    "th": "ผู้ป่วยมีไข้และไอมาสามวัน ไม่มีผื่น",
    "de": "Müdigkeit und Fieber über Nacht, großflächiger Ausschlag, Verdacht auf Ménière.",
    "fr": "Fièvre élevée et toux à l'effort, œdème des membres, né à terme.",
    "es": "¿Dolor torácico? El niño está mejor, señora de 80 años.",
    "pt": "Não há lesões, coração em posição habitual, pressão à direita.",
    "fi": "Potilaalla on ollut yskää ja kuumetta kolme päivää, ei ihottumaa.",
    "en": "Sjögren’s syndrome – 39 °C, naïve to treatment, “no rash”, area 3 m².",
}


def table(tmp_path: Path, language: str, encoding: str) -> Path:
    path = tmp_path / "notes.csv"
    path.write_bytes(f"id;text\n1;{TEXTS[language]}\n2;{TEXTS[language]} 2\n".encode(encoding))
    return path


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        ("ru", "cp1251"),
        ("ru", "koi8-r"),
        ("zh", "gb18030"),
        ("zh-tw", "big5"),
        ("ja", "shift_jis"),
        ("ko", "cp949"),
        ("pl", "iso-8859-2"),
        ("pl", "cp1250"),
        ("cs", "cp1250"),
        ("hu", "cp1250"),
        ("ro", "iso-8859-2"),
        ("tr", "cp1254"),
        ("el", "cp1253"),
        ("he", "cp1255"),
        ("ar", "cp1256"),
        ("th", "cp874"),
        ("de", "cp850"),
        ("de", "mac-roman"),
        ("fr", "mac-roman"),
    ],
)
def test_another_encoding_is_refused_and_is_one_of_two_that_are_named(
    tmp_path: Path, language: str, encoding: str
) -> None:
    path = table(tmp_path, language, encoding)
    with error_states("notes.csv:2", "UTF-8", f"import_data(encoding={encoding!r})"):
        plan_import([path])
    document = next(plan_import([path], encoding=encoding)._documents())
    assert document == {"id": "1", "text": TEXTS[language]}


@pytest.mark.parametrize("language", ["de", "fr", "es", "pt", "fi", "en"])
def test_western_text_is_read_as_windows_1252(tmp_path: Path, language: str) -> None:
    plan = plan_import([table(tmp_path, language, "cp1252")])
    assert next(plan._documents()) == {"id": "1", "text": TEXTS[language]}
    some_states(plan.notices, "notes.csv", "Windows-1252")


def test_an_encoding_that_does_not_fit_or_exist_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "ru", "cp1251")
    with error_states("notes.csv:2", "utf-8", "cp1251"):
        plan_import([path], encoding="utf-8")
    for unknown in ("klingon", "base64", "rot13", "idna"):
        with error_states(f"import_data(encoding={unknown!r})", "no such"):
            plan_import([path], encoding=unknown)
    (tmp_path / "marked.csv").write_text("id,text\na,A cough.\n", encoding="utf-8-sig")
    assert next(plan_import([tmp_path / "marked.csv"], encoding="UTF-8")._documents())["id"] == "a"


def test_a_file_that_is_no_text_is_not_taken_for_russian(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_bytes(random.Random(0).randbytes(3000))
    with error_states("notes.csv", "no text", "UTF-8"):
        plan_import([tmp_path / "notes.csv"])
