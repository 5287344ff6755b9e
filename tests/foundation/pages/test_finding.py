"""A finding shows its verdict, its sentence and a part of its evidence."""

import pytest

from r2med.foundation.pages.finding import MAX_EVIDENCE, Evidence, Finding, Verdict, worst

ADVICE = "--format json prints all."


def finding(verdict: Verdict = "look", rows: int = 8) -> Finding:
    evidence = Evidence.found(("id", "count"), [(str(number), number) for number in range(rows)])
    return Finding(id="odd-things", title="Odd things", verdict=verdict, sentence="Some.", evidence=evidence)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([], "sound"), (["sound"], "sound"), (["sound", "look"], "look"), (["broken", "look", "sound"], "broken")],
)
def test_the_worst_verdict_counts(verdicts: list[Verdict], expected: str) -> None:
    assert worst(verdicts) == expected


def test_evidence_is_bounded_and_counted() -> None:
    evidence = finding(rows=MAX_EVIDENCE + 7).evidence[0]
    assert (len(evidence.rows), evidence.total) == (MAX_EVIDENCE, MAX_EVIDENCE + 7)
    assert Evidence.found(("id",), []) == ()


def test_ids_of_digits_are_texts_and_counts_are_numbers() -> None:
    assert [column.kind for column in finding().evidence[0].typed_columns] == ["text", "number"]


@pytest.mark.parametrize(("rows", "note"), [(8, ""), (5, f"3 further rows: {ADVICE}"), (7, f"1 further row: {ADVICE}")])
def test_a_table_says_how_many_rows_it_hides(rows: int, note: str) -> None:
    (table,) = finding().tables(rows, ADVICE)
    assert (len(table.rows), table.note, table.name) == (rows, note, "odd-things")


def test_a_section_has_the_verdict_beside_its_title() -> None:
    section = finding("broken").section(3, ADVICE)
    assert (section.title, section.lead, section.aside, section.aside_tone) == (
        "Odd things",
        "Some.",
        "broken",
        "error",
    )


def test_several_tables_have_names_of_their_own_and_sound_ones_the_title_of_the_check() -> None:
    tables = Evidence.of(("a",), [("x",)]), Evidence.of(("b",), [("y",)], "More")
    shown = list(Finding(id="i", title="Title", verdict="sound", sentence="", evidence=tables).tables(9, ADVICE))
    assert [(table.name, table.title) for table in shown] == [("i", "Title"), ("i-1", "More")]


def test_a_finding_is_written_and_read_as_json() -> None:
    assert Finding.model_validate_json(finding().model_dump_json()) == finding()
