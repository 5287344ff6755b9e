"""`r2med review` recognises what it is given: a build, a table, an overlay, or nuggets."""

import json
from pathlib import Path

import pytest

import r2med
from r2med.public.reviewed_sources import source_kind
from support.facts import error_states

OVERLAY = {"dataset": "d", "query": "q", "document": "x", "grade": 1, "judge": "gpt4"}
NUGGET = {"query": "q", "nugget": "n1", "text": "It is so.", "vital": True}
CANDIDATE = {"question": "q", "query": "why?", "chunk": "c", "text": "because"}


@pytest.mark.parametrize(("row", "kind"), [(OVERLAY, "overlay"), (NUGGET, "nuggets"), (CANDIDATE, "table")])
def test_a_file_of_json_lines_is_known_by_the_fields_of_its_first_line(
    row: dict[str, object], kind: str, tmp_path: Path
) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text(json.dumps(row) + "\n")
    assert source_kind(file) == kind


def test_a_folder_is_a_build_and_any_other_file_a_table(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "broken.jsonl").write_text("{")
    assert source_kind(tmp_path) == "build"
    assert {source_kind(tmp_path / name) for name in ("empty.jsonl", "broken.jsonl", "a.csv", "none.jsonl")} == {
        "table"
    }


def test_what_does_not_belong_to_a_source_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "judged.jsonl"
    file.write_text(json.dumps(OVERLAY) + "\n")
    for call, words in (
        (lambda: r2med.export_review(file, tmp_path / "p.jsonl", kind="question"), ("judged.jsonl", "--kind")),
        (lambda: r2med.import_review(file, tmp_path / "r.csv"), ("judged.jsonl", "build or a table")),
        (lambda: r2med.show_review(file), ("judged.jsonl", "r2med review export")),
    ):
        with pytest.raises(r2med.UserError) as error:
            call()
        assert all(word in str(error.value) for word in words)


def test_a_file_that_does_not_exist_is_said_before_what_belongs_to_it(tmp_path: Path) -> None:
    with error_states("nuggets.jsonl", "does not exist"):
        r2med.serve_review(tmp_path / "nuggets.jsonl", data="mine")
