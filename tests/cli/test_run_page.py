"""The report of a run: every figure whole, every error once, and no word that has to be guessed."""

from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.cli.formats import show_page
from r2med.data.dataset_cards import groups
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import DatasetFacts, StageFacts
from r2med.evaluation.running.results import average, averages_by_task
from r2med.evaluation.running.run_page import BM25_CAPTION, PRICE_CAPTION, RECORDED_CAPTION, run_page
from r2med.foundation.core.cost import Cost
from support.facts import each_states, error_states, states
from support.run_results import Cell, results_of

PUBLISHED = {"stage": "bm25", "scorer": "published"}
LUCENE = {"stage": "bm25", "scorer": "lucene"}


def record(system: str, dataset: str, score: float, settings: dict[str, Any] = PUBLISHED, **stage: Any) -> Record:
    facts = {"stage": "retrieve", "name": system, "cost": Cost(seconds=1.0)} | stage
    return Record(
        key="k",
        system=system,
        settings={"expand": None, "retrieve": settings, "rerank": []},
        dataset=DatasetFacts(
            name=dataset, fingerprint="", corpus_fingerprint="", queries=10, documents=1000, judged_queries=10
        ),
        mean={"nDCG@10": score},
        per_query={},
        stages=(StageFacts(**facts),),
        versions={},
        source="",
        created="",
    )


def cell(system: str, dataset: str, score: float, settings: dict[str, Any] = PUBLISHED, **stage: Any) -> Cell:
    return system, dataset, record(system, dataset, score, settings, **stage)


def report(
    capsys: pytest.CaptureFixture[str], *rows: list[Cell], width: int | None = None, demo: bool = False
) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        if width:
            patch.setenv("COLUMNS", str(width))
        show_page(run_page(results_of(*rows), Path("results"), demo), "text")
    lines = capsys.readouterr().out.splitlines()
    return lines


def grid(systems: list[str], datasets: list[str]) -> list[list[Cell]]:
    return [
        [cell(system, dataset, (100 * row + column) / 10_000) for column, dataset in enumerate(datasets)]
        for row, system in enumerate(systems)
    ]


DATASETS = [f"home/of/my-private-collection-{number}" for number in range(14)]
SYSTEMS = ["bm25", "hyde(o3-mini, rounds=1) → fuse(bm25+diver, weights=3:1) → groupwise(o3-mini, shuffles=2)@100"]


@pytest.mark.parametrize("width", [40, 80, 120, None])
def test_every_figure_is_whole_however_many_and_long_named_the_datasets_are(
    width: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = report(capsys, *grid(SYSTEMS, DATASETS), width=width)
    words = " ".join(lines).split()
    assert all(
        f"{point:.2f}" in words
        for point in (100 * kept.mean["nDCG@10"] for kept in results_of(*grid(SYSTEMS, DATASETS)).records)
    )
    assert "…" not in "".join(lines)


def test_a_pipe_gets_one_line_for_each_system(capsys: pytest.CaptureFixture[str]) -> None:
    lines = report(capsys, *grid(SYSTEMS, DATASETS))
    heads = next(line for line in lines if line.startswith("system"))
    assert heads.split()[1:] == [*(name.split("/")[-1] for name in DATASETS), "Avg"]
    row, took = [line for line in lines if line.startswith("bm25 ")]
    assert took.split()[-2:] == ["0.1", "0"]
    assert len(row.split()) == 2 + len(DATASETS)


def test_names_that_could_steer_the_terminal_are_shown_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    name = "evil\x1b[31m[bold]"
    failing = f"{name} 2", f"a/{name}", f"no model in {name}"
    text = "\n".join(report(capsys, [cell(name, f"a/{name}", 0.5)], [failing]))
    assert "\x1b" not in text
    assert text.count(r"evil\x1b[31m[bold]") == 8  # a head, two rows in each of two tables, and thrice in the error


def test_the_caption_says_which_scorer_plain_bm25_is(capsys: pytest.CaptureFixture[str]) -> None:
    within = {"stage": "fuse", "parts": [{"stage": "minilm"}, PUBLISHED]}
    assert BM25_CAPTION in report(capsys, [cell("bm25", "Biology", 0.5)])
    assert BM25_CAPTION in report(capsys, [cell("minilm+bm25", "Biology", 0.5, within)])
    assert BM25_CAPTION not in report(capsys, [cell("bm25(scorer=lucene)", "Biology", 0.5, LUCENE)])


def test_a_price_that_is_not_known_is_not_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    costs = {
        "free": Cost(calls=1, prompt_tokens=1_234_567_890),
        "priced": Cost(calls=1, prompt_tokens=5, dollars=1.5),
        "mixed": Cost(calls=2, prompt_tokens=5, dollars=1.5, unpriced=1),
        "local": Cost(calls=2, prompt_tokens=5, unpriced=2),
    }
    lines = report(capsys, *([cell(name, "Biology", 0.5, cost=cost)] for name, cost in costs.items()), width=80)
    dollars = {line.split()[0]: line.split()[2:-3] for line in lines if line.split()[:1] and len(line.split()) > 4}
    assert {name: " ".join(dollars[name]) for name in costs} == {
        "free": "0.00",
        "priced": "1.50",
        "mixed": "≥ 1.50",
        "local": "unknown",
    }
    assert "1,234,567,890" in "\n".join(lines)
    assert " ".join(PRICE_CAPTION.split()) in " ".join(" ".join(lines).split())
    assert "unknown" not in "\n".join(report(capsys, [cell("priced", "Biology", 0.5, cost=costs["priced"])]))


def test_without_any_record_there_is_no_table_of_dashes_but_each_error_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing(system: str, error: str) -> list[Cell]:
        return [(system, dataset, error) for dataset in ("Biology", "MedQA-Diag")]

    lines = report(capsys, *(failing(f"model-{number}", "no hub") for number in range(89)), failing("nv", "no trust"))
    each_states(
        filter(str.strip, lines),
        ["89 systems", "model-0", "2 datasets", "no hub"],
        ["nv", "2 datasets", "no trust"],
    )


def test_a_hub_that_is_away_is_one_line_whatever_the_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    fault = "cannot fetch R2MED/{} from the hub (no answer at {})"
    names = ("Biology", "MedQA-Diag")
    row = [("bm25", name, fault.format(name, str(number) * 40)) for number, name in enumerate(names)]
    lines = report(capsys, row)
    each_states(filter(str.strip, lines), ["bm25", "2 datasets", fault.format("Biology", "0" * 40)])


def test_an_average_over_some_of_the_datasets_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    whole = [cell("bm25", "Biology", 0.5), cell("bm25", "MedQA-Diag", 0.7)]
    half = [cell("nv", "Biology", 0.9), ("nv", "MedQA-Diag", "no hub")]
    lines = report(capsys, whole, half)
    assert next(line for line in lines if line.startswith("bm25 ")).split()[1:] == ["50.00", "70.00", "60.00"]
    assert next(line for line in lines if line.startswith("nv ")).split()[1:] == ["90.00", "–", "–"]


def test_failures_of_a_stage_that_systems_share_are_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"stage": "expand", "name": "hyde(m)", "failures": 3}
    lines = report(
        capsys, *([cell(f"hyde(m) → {name}", "Biology", 0.5, **failed)] for name in ("bm25", "bm25(scorer=lucene)"))
    )
    (told,) = (line for line in lines if "no generated text" in line)
    states(told, "hyde(m)", "3 queries")


def test_a_real_run_prints_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = r2med.run(["bm25", "hyde(author) → bm25"], ["demo/Biology", "demo/MedQA-Diag"], out=tmp_path / "out")
    show_page(run_page(results, tmp_path / "out", demo=True), "text")
    printed = capsys.readouterr().out
    means = [f"{100 * each.mean['nDCG@10']:.2f}" for each in results.records]
    assert all(mean in printed for mean in means)
    assert "4 records" in printed and "Next" in printed


def test_recorded_texts_have_no_known_cost(capsys: pytest.CaptureFixture[str]) -> None:
    free = record("hyde(gpt4) → bm25", "Biology", 0.5)
    recorded = {**free.settings, "expand": {"stage": "hyde", "llm": "gpt4", "source": "recorded"}}
    lines = report(capsys, [(free.system, "Biology", free.model_copy(update={"settings": recorded}))])
    [cost] = [line for line in lines if line.count("unknown") > 1]
    assert cost.split()[-5:] == ["unknown", "unknown", "0.0", "unknown", "0"]
    assert RECORDED_CAPTION in lines


def test_passages_that_a_reranker_did_not_rank_are_counted_for_each_system(capsys: pytest.CaptureFixture[str]) -> None:
    lazy, thorough = "bm25 → listwise(m)", "bm25 → groupwise(m)"
    facts = {"stage": "rerank", "name": "listwise(m)"}
    names = ("Biology", "MedQA-Diag")
    left_out = [cell(lazy, name, 0.5, **facts, repairs={"missing": 18, "repeated": 1}) for name in names]
    lines = report(capsys, left_out, [cell(thorough, name, 0.5, **facts) for name in names])
    each_states([line for line in lines if "not ranked" in line], [lazy, "36 passages"])


def test_every_group_has_an_average_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"Biology": 0.2, "MedQA-Diag": 0.4, "SciFact": 0.6, "NFCorpus": 0.8}
    row = [cell("bm25", dataset, score) for dataset, score in scores.items()]
    results = results_of(row)
    assert list(results.averages) == ["R2MED", "medical"]
    assert results.table().heads[1:7] == ("Bio", "Diag", "SciFact", "NFC", "Avg R2MED", "Avg medical")
    heads = report(capsys, row)[1].split()
    assert heads[-4:] == ["Avg", "R2MED", "Avg", "medical"]
    with error_states("2 groups", "R2MED, medical"):
        results.best()
    assert results_of(row[2:]).best() == "bm25"


R2MED = dict(zip(groups()["R2MED"], [0.1919, 0.2155, 0.1968, 0.0066, 0.0255, 0.2369, 0.2166, 0.1202], strict=True))
BY_TASK = {
    "Q&A reference": (0.1919 + 0.2155 + 0.1968) / 3,
    "clinical evidence": (0.0066 + 0.0255 + 0.2369) / 3,
    "clinical case": (0.2166 + 0.1202) / 2,
}


def averages(scores: dict[str, float]) -> dict[str, float]:
    return averages_of([cell("bm25", dataset, score) for dataset, score in scores.items()])


def averages_of(row: list[Cell]) -> dict[str, float]:
    results = results_of(row)
    scores, columns = results.rows[0].scores(), {**results.averages, **averages_by_task(results)}
    return {label: average(scores, numbers) or 0.0 for label, numbers in columns.items()}


def test_the_benchmark_is_also_averaged_without_biology_and_by_task() -> None:
    without = (sum(R2MED.values()) - 0.1919) / 7
    assert averages(R2MED) == pytest.approx({"average": 0.15125, **BY_TASK, "without Biology": without})


def test_the_demo_is_averaged_by_task_as_the_benchmark_is() -> None:
    demo = {f"demo/{name}": score for name, score in R2MED.items()}
    assert averages(demo) == pytest.approx({"average": 0.15125, **BY_TASK})


def test_datasets_without_a_card_are_only_averaged_and_two_of_one_name_count_each() -> None:
    assert averages({"mine": 0.5, "yours": 0.7}) == pytest.approx({"average": 0.6})
    assert averages_of([cell("bm25", "mine", score) for score in (0.2, 0.4)]) == {"average": pytest.approx(0.3)}


def test_datasets_of_several_groups_are_never_averaged_together() -> None:
    means = averages({"mine": 0.99, **R2MED, "SciFact": 0.6, "NFCorpus": 0.4})
    assert means == pytest.approx({"own data": 0.99, "R2MED": 0.15125, "medical": 0.5, **BY_TASK})
