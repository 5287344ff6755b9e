"""`r2med advise` as a person reads it, and as a program does."""

from __future__ import annotations

import json
from pathlib import Path

from support.datasets import random_folder
from support.facts import some_states


def test_a_person_reads_a_table_a_verdict_and_the_command_that_serves_it(r2med, tmp_path: Path) -> None:
    random_folder(tmp_path / "mine", documents=60, queries=12)
    done = r2med("advise", "mine", "--model", "path:nonesuch")
    assert done.returncode == 0, done.stderr
    assert "Best: " in done.stdout
    some_states(done.stdout.splitlines(), "Not tried", "LLMs", "--llm NAME")
    some_states(done.stdout.splitlines(), "r2med serve mine", "--system")
    some_states(done.stdout.splitlines(), "left out", "nonesuch")


def test_german_notes_are_advised_without_a_hint_at_the_language_that_is_tried(r2med, tmp_path: Path) -> None:
    folder = random_folder(tmp_path / "mine", documents=60, queries=12)
    (folder / "card.toml").write_text('languages = ["de"]\n', "utf-8")
    done = r2med("advise", "mine", "--model", "path:nonesuch")
    assert done.returncode == 0, done.stderr
    assert "analyses it as" not in done.stderr
    some_states(done.stdout.splitlines(), "Tried: 10 settings of bm25, 10 settings of bm25(language=de), ")
    assert "settings of words" not in done.stdout


def test_json_holds_every_rung(r2med, tmp_path: Path) -> None:
    random_folder(tmp_path / "mine", documents=60, queries=12)
    body = json.loads(r2med("advise", "mine", "--model", "path:nonesuch", "--format", "json").stdout)
    assert {rung["group"] for rung in body["rungs"]} >= {"words", "feedback"}
    assert body["best"] in [rung["system"] for rung in body["rungs"]]


def test_a_folder_that_is_not_there_is_one_line(r2med) -> None:
    done = r2med("advise", "nowhere")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_passages_that_a_reranker_did_not_rank_are_counted_beside_its_score(r2med, tmp_path: Path) -> None:
    random_folder(tmp_path / "mine", documents=60, queries=12)
    (tmp_path / "rules.jsonl").write_text('{"when": [], "answer": "[2] > [1]"}\n', "utf-8")
    done = r2med(
        *("advise", "mine", "--model", "path:nonesuch", "--llm", "scripted", "--model-path", "scripted=rules.jsonl")
    )
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stdout.splitlines() if "passages were shown to the reranker and not ranked" in line]
    assert any("listwise(scripted)" in line for line in notes)
    assert all(int(line.rpartition(": ")[2].split()[0].replace(",", "")) > 0 for line in notes)
