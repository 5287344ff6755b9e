"""Systems compared by the share of passages that argue for another answer: lower is better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from r2med import UserError, compare, load, run
from r2med.data.given_data import with_overlays
from r2med.data.overlays import Overlay, random_order
from r2med.data.runs.trec import read_judged_run
from r2med.evaluation.comparison import verdicts
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.corrected_scores import corrected_scores
from r2med.evaluation.comparison.report_tables import score_table
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.relabelled import relabelled
from r2med.foundation.pages.cells import Marked
from support.records import collection, record

NAME = "demo/MedQA-Diag"
LABELS = "demo/mimics.jsonl"
BM25, HYDE = "bm25", "hyde(author) → bm25"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run([BM25, HYDE], NAME, out=folder)
    return folder


def test_scores_with_an_overlay_equal_a_plain_count_and_a_run_with_the_labels(results: Path) -> None:
    dataset, overlay = load(NAME), Overlay.read(LABELS)
    others = {(each.query, each.document) for each in overlay.labels if each.said == "other"}
    found = relabelled(collect(results=results), [overlay], {NAME: dataset})
    for kept in found:
        assert kept.run_file
        ranked = read_judged_run(kept.run_file, dataset.qrels)
        for query, documents in zip(ranked.queries, ranked.id_lists(), strict=True):
            count = sum((query, document) in others for document in documents[:10])
            assert kept.record.per_query[query]["Mimic@10"] == pytest.approx(count / 10)
        assert kept.record.mean["MimicLabelled@10"] == 1
    direct = run(BM25, with_overlays(dataset, [overlay]), out=None).records[0]
    again = found.cells[BM25, f"{NAME}+mimics"].record
    assert (direct.mean, direct.per_query, direct.dataset) == (again.mean, again.per_query, again.dataset)
    first = collect(results=results).cells[BM25, NAME].record
    assert "Mimic@10" not in first.mean
    assert first.mean.items() <= again.mean.items(), "no other measure changes"


def with_rate(system: str, rates: Sequence[float]) -> Record:
    made = record(system, "Biology", [0.5] * len(rates))
    per_query = {query: {"Mimic@10": rate} for query, rate in zip(made.per_query, rates, strict=True)}
    mean = {"Mimic@10": sum(rates) / len(rates), "MimicLabelled@10": 0.9}
    return made.model_copy(update={"mean": mean, "per_query": per_query})


def test_the_system_with_the_lower_rate_is_better_in_every_order() -> None:
    safe, risky = with_rate("safe", [0.1, 0.2] * 20), with_rate("risky", [0.4, 0.5] * 19 + [0.0, 0.1])
    for given in ([safe, risky], [risky, safe]):
        compared = comparison(collection(given), "Mimic@10", resamples=500)
        (pair,) = compared.pairs
        assert [standing.system for standing in compared.ranked] == ["safe", "risky"]
        assert compared.classes() == {"safe": 1, "risky": 2}
        text = verdicts.verdict(pair, lower_is_better=True)
        assert text.startswith("safe is better than risky: −28.00 points (95 % interval −3")
        assert verdicts.details(pair, lower_is_better=True).startswith("wins 38, ties 0, losses 2;")
        rows = {row[0]: row[1] for row in score_table(compared).rows}
        assert isinstance(rows["safe"], Marked)
        assert rows["safe"].bold
        assert compared.heading == "Mimic@10 × 100, lower is better"
        assert "lower bound: of the first 10 passages of each system, 90 % or more have a label" in compared.notices[0]


def test_a_dataset_without_labels_is_left_out_or_the_reason_is_one_line(results: Path) -> None:
    unlabelled = [record(name, "PMC-Clinical", [0.5] * 30) for name in ("a", "b")]
    rated = [with_rate(name, [0.1, 0.2] * 20) for name in ("a", "b")]
    compared = comparison(collection([*rated, *unlabelled]), "Mimic@10", resamples=100)
    assert compared.datasets == ["Biology"]
    assert "PMC-Clinical is left out: it has no labels for Mimic@10" in compared.notices
    with pytest.raises(UserError, match=r"Mimic@10 needs labels of passages .* compare\(overlays='FILE'\)"):
        compare(results=results, measure="Mimic@10")


def test_a_report_has_the_tables_and_only_figures_that_fit(results: Path, tmp_path: Path) -> None:
    made = compare(results=results, out=tmp_path, measure="Mimic@10", overlays=[LABELS], resamples=200)
    names = {file.name for file in made.files}
    assert {"table.md", "bars.svg", "heat-map.svg"} <= names
    assert not {name for name in names if name.startswith(("cost", "body"))}
    assert "no figure cost-p95: with Mimic@10, lower is better" in made.notices
    assert "**33.75**" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_people_correct_the_rate_that_a_judge_gives(results: Path) -> None:
    given = Overlay.read(LABELS).labels
    judge = [each.model_copy(update={"reviewer": "", "judge": "j", "grade": 1}) for each in given]
    sample = random_order(NAME, {each.query for each in given})[:5]
    people = [each.model_copy(update={"drawn": "random"}) for each in given if each.query in sample]
    found = corrected_scores(
        collect(results=results), [Overlay("x", (*judge, *people))], {NAME: load(NAME)}, "Mimic@10"
    )
    assert list(found.scores) == [HYDE, BM25], "the lower rate comes first"
    assert found.scores[BM25].reviewed == 5
    assert found.scores[BM25].value == pytest.approx(42.0)


def test_results_show_the_rate_beside_the_scores(tmp_path: Path) -> None:
    found = run([BM25, HYDE], f"{NAME}+{LABELS}", out=tmp_path)
    assert found.best("Mimic@10") == HYDE
    assert found.sorted("score", "Mimic@10").systems == [HYDE, BM25]
    assert "33.75" in str(found.table("Mimic@10").rows)
