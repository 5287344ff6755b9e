"""What is expected is data: every figure has a source and a tolerance, and a record holds its measure."""

from __future__ import annotations

from r2med import System
from r2med.evaluation.measure import DEFAULT_MEASURES
from r2med.foundation.runtime.setup import Setup
from r2med.publication.leaderboard.expectations import Expectation, expectations
from r2med.publication.leaderboard.published import published


def of(system: str, data: str) -> list[Expectation]:
    return [each for each in expectations() if (each.system, each.data) == (system, data)]


def test_every_published_row_that_can_be_run_is_expected() -> None:
    runnable = [row.system for row in published() if row.system]
    assert [each.system for each in expectations() if each.data == "R2MED"] == runnable


def test_every_expectation_can_be_compared() -> None:
    for each in expectations():
        assert each.source and each.seen_with and 0 < each.ok < each.near
        assert {measure for values in each.values.values() for measure in values} <= set(map(str, DEFAULT_MEASURES))
        if not each.system.startswith(("hf:", "mteb:")):
            assert System.parse(each.system, Setup(recorded=each.recorded)).name == each.system


def test_lucene_s_bm25_has_the_figures_of_other_toolkits() -> None:
    [pyserini] = of("bm25(scorer=lucene)", "Biology")
    assert pyserini.values == {"Biology": {"nDCG@10": 18.24, "R@100": 42.05, "R@1000": 76.44}}
    [anserini] = of("bm25(scorer=lucene)", "SciFact")
    assert anserini.values == {"SciFact": {"nDCG@10": 67.89}}


def test_a_tolerance_is_as_wide_as_the_figure_is_unsure() -> None:
    [bm25], [nv] = of("bm25", "R2MED"), of("nv:published", "R2MED")
    [judged], [trained] = of("diver → grouprank(qwen3-32b)@100", "R2MED"), of("diver → grouprank-32b@100", "R2MED")
    assert bm25.ok < nv.ok < judged.ok == trained.ok


def test_an_average_alone_is_expected_on_all_datasets_and_on_none_of_them() -> None:
    [alone] = of("reasonembed-4b", "R2MED")
    assert (alone.average, len(alone.values)) == (39.69, 8)
    assert not any(alone.values.values())
    assert alone.command() == "r2med run reasonembed-4b --data R2MED"


def test_recorded_texts_are_named_in_the_command() -> None:
    [hyde] = of("hyde(o3-mini) → nv:published", "R2MED")
    assert hyde.command() == "r2med run 'hyde(o3-mini) → nv:published' --data R2MED --recorded"
    assert hyde.command(["Biology"]) == "r2med run 'hyde(o3-mini) → nv:published' --data Biology --recorded"
    assert hyde.conditions == ("texts are cut at 4,096 tokens",)
