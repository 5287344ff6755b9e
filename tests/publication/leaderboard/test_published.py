"""Published figures: all of them, as their sources print them, each with the system of ours that it is."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from r2med import System
from r2med.data.dataset_cards import groups
from r2med.foundation.core.spec import printed_system
from r2med.foundation.runtime.setup import Setup
from r2med.publication.leaderboard import published as published_module
from r2med.publication.leaderboard.published import PublishedRow, published
from r2med.systems.system.suites import suite

ODD_AVERAGES = {("RaDeR-gte-Qwen2-7B", 35.19): 35.215}
"""Averages that their source prints otherwise than its own figures make them."""


def row_of(name: str, average: float) -> PublishedRow:
    [row] = [row for row in published() if (row.name, row.average) == (name, average)]
    return row


def test_every_average_is_the_mean_of_its_row_within_rounding() -> None:
    for row in published():
        if row.average is None or row.average_only:
            continue
        # Eight rounded figures are off by half a unit at most, and so is their rounded mean.
        unit = 0.1 if all(score == round(score, 1) for score in row.scores.values()) else 0.01
        average = ODD_AVERAGES.get((row.name, row.average), row.average)
        assert sum(row.scores.values()) / 8 == pytest.approx(average, abs=unit + 1e-9), row.name


def test_all_174_rows_have_a_source_and_eight_figures_or_an_average_alone() -> None:
    assert len(published()) == 174
    for row in published():
        assert row.reported_by and row.source and len(row.scores) in (0, 8) and row.average is not None
        assert all(0 <= score <= 100 for score in (*row.scores.values(), row.average))
    alone = {row.name: row.average for row in published() if row.average_only}
    assert len(alone) == 9
    assert alone["reason-embed-qwen3-4b → CuRLRank-4B@100"] == 48.85


def test_every_row_has_a_system_or_one_sentence_why_it_has_none() -> None:
    for row in published():
        assert bool(row.system) != bool(row.reason), row.name
        assert row.system or re.fullmatch(r"[^.]+\.", row.reason), row.reason


def test_all_but_four_rows_can_be_run_and_the_docs_say_so() -> None:
    assert sum(bool(row.system) for row in published()) == 170
    assert "can run 170 of them" in (Path(__file__).parents[3] / "docs/reproduce.md").read_text()


def test_every_reason_is_that_of_a_row() -> None:
    file = resources.files("r2med.publication.leaderboard") / "published_systems.toml"
    named = {name for each in tomllib.loads(file.read_text())["unavailable"] for name in each["rows"]}
    assert named == {row.name for row in published() if not row.system}


def test_the_suite_top_has_the_best_twenty_rows_that_can_be_run() -> None:
    ranked = sorted((row for row in published() if row.system), key=lambda row: -(row.average or 0))
    assert list(map(printed_system, suite("top").calls)) == [row.system for row in ranked[:20]]


def csv_row(**given: str) -> dict[str, str]:
    columns = ("retriever", "expansion", "llm", "reranker", "rerank_depth", *groups()["R2MED"], "average", "note")
    return {**dict.fromkeys(columns, ""), "reported_by": "someone", "source": "somewhere", **given}


def test_a_row_of_one_dataset_has_no_average() -> None:
    row = published_module._row(csv_row(retriever="mine", Biology="12.5"), ())
    assert (row.scores, row.average) == ({"Biology": 12.5}, None)
    assert not row.average_only


def test_a_row_may_have_its_average_alone() -> None:
    row = row_of("first stage not published → InsertRank (DeepSeek-R1)", 51.1)
    assert (row.scores, row.average_only) == ({}, True)
    assert row.system == "bm25 → insertrank(deepseek-r1)@100"
    assert "BM25 is our choice" in row.differs


def test_the_benchmark_s_own_rows_are_the_systems_of_its_suites() -> None:
    own = [row.system for row in published() if row.reported_by.startswith("R2MED")]
    runs = {printed_system(calls) for name in ("paper", "rerank") for calls in suite(name).calls}
    assert set(own) == runs
    assert max(Counter(own).values()) == 1


def test_every_system_of_a_row_can_be_built() -> None:
    local = [row.system for row in published() if row.system and not row.system.startswith(("hf:", "mteb:"))]
    assert all(System.parse(spec, Setup(recorded=True)).name for spec in local)


def test_one_model_published_twice_is_told_apart_by_its_maximum_length() -> None:
    long, cut = row_of("Diver-Retriever-4B", 42.9), row_of("Diver-Retriever-4B", 32.23)
    assert (long.system, long.max_length) == ("diver", None)
    assert long.differs.startswith("its maximum length is not published")
    assert (cut.system, cut.max_length, cut.differs) == ("diver:512", 512, "")
    assert (row_of("nv", 31.43).max_length, row_of("bm25", 15.13).max_length) == (4096, None)


def test_rankt5_runs_and_says_that_its_conversion_is_not_known() -> None:
    rows = [row for row in published() if row.reranker == "RankT5-3B"]
    assert {row.system for row in rows} == {"e5 → rankt5-3b@100", "diver → rankt5-3b@100"}
    assert all(row.differs.startswith("which conversion of RankT5 was run") for row in rows)


def test_rows_of_mteb_without_a_card_run_as_mteb_runs_them() -> None:
    by_mteb = [row for row in published() if row.reported_by.startswith("MTEB")]
    assert all(row.system for row in by_mteb)
    assert sum(row.system == f"mteb:{row.retriever}" for row in by_mteb) == 16


def test_every_row_of_reasonembed_runs_unless_its_weights_were_never_published() -> None:
    rows = [row for row in published() if row.reported_by.startswith("ReasonEmbed")]
    assert {row.name for row in rows if not row.system} == {"Qwen3-4B-ms", "Qwen3-8B-ms", "Llama-3.1-8B-ms"}
    assert row_of("ReasonEmbed-Llama-3.1-8B", 42.76).system == "reasonembed-llama:512"


def test_the_two_values_of_medcpt_are_two_systems() -> None:
    assert (row_of("medcpt", 7.87).system, row_of("medcpt", 9.02).system) == ("medcpt:published", "medcpt")


def test_a_row_is_named_as_one_would_type_it() -> None:
    assert row_of("hyde(o3-mini) → nv", 41.35).system == "hyde(o3-mini) → nv:published"
    assert row_of("nv → bge-reranker@100", 14.08).system == "nv:published → bge-reranker:published@100"
    assert row_of("Diver-Retriever-4B → ERank-32B@100", 49.3).system == "diver → erank-32b@100"
    assert row_of("Qwen3-4B-ms", 23.09).system == ""  # its weights were never published
