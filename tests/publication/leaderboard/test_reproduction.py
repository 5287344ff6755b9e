"""Reproducing: figures that come out are OK, others near or off, and what cannot be run says why."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from r2med import UserError, load, plan, reproduce
from r2med.data.dataset_cards import BENCHMARK, bundled_cards, groups
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import Record
from r2med.publication.leaderboard import reproduction
from r2med.publication.leaderboard.expectations import Expectation, expectations
from r2med.publication.leaderboard.published import published
from r2med.publication.leaderboard.reproduction import Reproduction, chosen_scores, known_scores, outcome
from support.docs_stand_ins import DEMO
from support.facts import error_states, some_states, states
from support.fork_server import Command
from support.records import record

BM25 = next(each for each in expectations() if (each.system, each.data) == ("bm25", "demo"))
RECORDED = "hyde/gpt4/query_with_hydoc.jsonl"


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the benchmark's names. Folders in the shape of its repositories, with texts of an LLM, are read."""
    folders = {}
    for name in groups()[BENCHMARK]:
        folder = Path(shutil.copytree(DEMO / name, tmp_path / "data" / name))
        (folder / RECORDED).parent.mkdir()
        shutil.copy(folder / "hyde/author/query_with_hydoc.jsonl", folder / RECORDED)
        folders[bundled_cards()[name].hub] = folder
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda hub, store: folders[hub])
    return list(groups()[BENCHMARK])


def only(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """Let one changed expectation of the demo be all there is."""
    changed = Expectation(**{**BM25.model_dump(), **changes})
    monkeypatch.setattr(reproduction, "expectations", lambda: (changed,))


def runs_of(folder: Path) -> dict[str, list[Record]]:
    return {name: [record] for name, record in collect([folder]).records("bm25").items()}


def test_a_difference_that_one_more_run_could_make_is_not_off() -> None:
    def made(*scores: float) -> Reproduction:
        runs = {
            "demo/Biology": [record("bm25", "demo/Biology", [score] * 5, repeat=n) for n, score in enumerate(scores)]
        }
        return outcome(expected, runs, ["demo/Biology"])

    expected = BM25.model_copy(update={"values": {"demo/Biology": {"nDCG@10": 50.0}}, "average": None})
    [spread] = made(0.45, 0.47, 0.51, 0.53).figures
    assert (spread.verdict, spread.observed) == ("near", pytest.approx(49.0))
    # 3.1824 (t of 3 degrees of freedom at 97.5 %) × 3.6515 (standard deviation) × √(1 + 1/4)
    assert spread.spread == pytest.approx(12.992, abs=0.001)
    assert made(0.48, 0.481, 0.48, 0.481).verdict == "off"
    assert made(0.45, 0.53).verdict == "off"  # two runs say nothing about their spread


def test_the_demo_comes_out_offline(tmp_path: Path) -> None:
    outcomes = reproduce(out=tmp_path)
    assert [each.expectation.system for each in outcomes] == [
        "bm25",
        "bm25(scorer=lucene)",
        "rm3 → bm25",
        "hyde(author) → bm25",
    ]
    for each in outcomes:
        assert each.verdict == "OK"
        assert [figure.dataset for figure in each.figures][-2:] == ["demo/IIYi-Clinical", "average"]
        assert {"r2med", "python", "numpy"} <= set(each.versions)


def test_records_are_all_that_a_verdict_needs(tmp_path: Path) -> None:
    [made] = reproduce(["bm25"], ["demo"], out=tmp_path)
    assert outcome(BM25, runs_of(tmp_path)) == made


def test_datasets_that_were_not_run_do_not_spoil_the_verdict(tmp_path: Path) -> None:
    reproduce(["bm25"], ["demo/Biology"], out=tmp_path)
    some = outcome(BM25, runs_of(tmp_path))
    assert some.verdict == "OK"
    assert [figure.verdict for figure in some.figures] == ["OK", *["not run"] * 8]


@pytest.mark.parametrize(
    ("stage", "prompt", "verdict"),
    [
        ("reasonrank-7b@20", "own prompt", "not comparable"),
        ("reasonrank-7b(prompts=./theirs)@20", "prompt of the set theirs", "OK"),
        ("listwise(gpt4)@20", "", "OK"),
        ("grouprank(gpt4)@20", "own prompt", "OK"),  # no model was trained with one prompt
    ],
)
def test_a_trained_reranker_with_our_prompt_is_not_comparable(
    stage: str, prompt: str, verdict: str, tmp_path: Path
) -> None:
    reproduce(["bm25"], ["demo/Biology"], out=tmp_path)
    [(name, ranked)] = collect([tmp_path]).records("bm25").items()
    reranked = ranked.stages[0].model_copy(update={"stage": "rerank", "name": stage, "prompt": prompt})
    changed = ranked.model_copy(update={"stages": (*ranked.stages, reranked)})
    made = outcome(BM25, {name: [changed]}, [name])
    assert [figure.verdict for figure in made.figures] == [verdict]
    assert [stage in remark and "own prompt" in remark for remark in made.remarks] == [True] * (verdict != "OK")


@pytest.mark.parametrize(("shift", "verdict"), [(0.009, "OK"), (0.05, "near"), (0.2, "off"), (-0.2, "off")])
def test_a_verdict_is_that_of_the_worst_figure(
    shift: float, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [figure] = reproduce(["bm25"], ["demo/Biology"], out=tmp_path)[0].figures
    assert figure.observed is not None
    only(monkeypatch, values={"demo/Biology": {"nDCG@10": figure.observed + shift, "MRR": 100.0}}, average=None)
    [made] = reproduce(["bm25"], ["demo/Biology"], out=tmp_path)
    assert made.figures[0].verdict == verdict
    assert made.verdict == "off"  # no system finds everything first


def test_some_of_the_datasets_have_no_average(tmp_path: Path) -> None:
    [made] = reproduce(["bm25"], ["demo/Biology", "demo/MedQA-Diag"], out=tmp_path)
    assert [figure.dataset for figure in made.figures] == ["demo/Biology", "demo/MedQA-Diag"]
    assert made.command == "r2med run bm25 --data demo/Biology,demo/MedQA-Diag"


def test_an_average_alone_is_compared_once_all_of_its_datasets_were_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, values={name: {} for name in BM25.values})
    [made] = reproduce(["bm25"], ["demo"], out=tmp_path)
    assert [(figure.dataset, figure.expected, figure.verdict) for figure in made.figures] == [("average", 17.95, "OK")]
    with pytest.raises(UserError, match="no scores are known for bm25 on demo/Biology, only on demo"):
        reproduce(["bm25"], ["demo/Biology"], out=tmp_path)
    [expectation] = reproduction.expectations()
    assert outcome(expectation, {}).verdict == "not run"


def test_a_row_that_cannot_be_run_says_why() -> None:
    with pytest.raises(UserError, match=r"Qwen3-4B-ms cannot be run. The authors .* never published its weights"):
        plan(reproduce, ["Qwen3-4B-ms"], ["R2MED"])


def test_a_folder_with_the_name_of_a_dataset_in_any_case_is_not_that_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, values={"SciFact": {"nDCG@10": 27.59}}, average=None)
    folder = load("demo/Biology").folder
    assert folder is not None
    (tmp_path / "scifact").mkdir()
    for name in ("corpus.jsonl", "query.jsonl", "qrels.jsonl"):
        (tmp_path / "scifact" / name).write_bytes((folder / name).read_bytes())
    [made] = reproduce(["bm25"], [str(tmp_path / "scifact")], out=tmp_path)
    assert (made.verdict, made.errors) == ("not run", ("the data are not the dataset SciFact of the benchmark",))


def test_a_dry_run_tells_all_and_writes_nothing(tmp_path: Path) -> None:
    [made] = plan(reproduce, ["hyde(o3-mini) -> nv"], ["R2MED"], out=tmp_path)
    assert (made.verdict, made.figures[-1].expected, made.figures[-1].observed) == ("not run", 41.35, None)
    assert not list(tmp_path.iterdir())


def test_what_cannot_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, system="bm25 → qwen3-reranker-8b@10")
    [made] = reproduce([], ["demo/Biology"], out=tmp_path)
    assert made.verdict == "not run"
    assert made.errors


@pytest.mark.parametrize(
    ("names", "data", "message"),
    [
        (["bm26"], ["demo"], "no expectation 'bm26' .did you mean bm25"),
        (["nv:published"], ["demo"], "no scores are known for nv:published on demo, only on R2MED"),
        ([], ["elsewhere"], "no scores are known for any system on elsewhere"),
    ],
)
def test_what_nothing_is_known_of_is_one_line(names: list[str], data: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        reproduce(names, data, out=tmp_path)


def test_the_command_line_lists_tells_and_ends_with_the_verdict(
    r2med: Command,
) -> None:
    listed = json.loads(r2med("reproduce", "--plan", "--format", "json").stdout)
    own = len([each for each in expectations() if not each.label])
    assert len(listed) == own + len(published())
    assert all(each["command"] or each["reason"] for each in listed)
    shown = r2med("reproduce", "--plan", "Qwen3-4B-ms").stdout
    assert "never published its weights" in " ".join(shown.split())
    assert "15.13" in r2med("reproduce", "bm25", "--plan").stdout
    done = r2med("reproduce", "bm25", "--data", "demo/Biology", "--format", "json")
    [printed] = json.loads(done.stdout)
    assert (done.returncode, printed["verdict"]) == (0, "OK")
    shown = r2med("reproduce", "bm25", "--data", "demo/Biology").stdout
    for part in ("bm25: OK", "27.59", "command: r2med run bm25 --data demo/Biology", "OK within 0.01 points", "numpy"):
        assert part in shown
    page = (Path(__file__).parents[3] / "docs/reproduce.md").read_text("utf-8")
    sample = page.split("\nbm25: OK\n")[1].split("```")[0].splitlines()
    parts = ("  source: ", "  tolerance: ", "demo/Biology ", "  versions: r2med ")
    for line in (line.split(", python")[0] for line in sample if line.startswith(parts)):
        assert " ".join(line.split()) in " ".join(shown.split()), f"reproduce.md shows {line!r}, which is not printed"
    dry = r2med("reproduce", "nv:published", "--data", "R2MED", "--plan")
    assert (dry.returncode, "31.43" in dry.stdout) == (0, True)


def test_other_data_under_the_name_of_the_benchmark_are_not_compared_with_its_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, values={"Biology": {"nDCG@10": 27.59}}, average=None)
    renamed = replace(load("demo/Biology"), name="Biology")
    [made] = reproduce(["bm25"], [renamed], out=tmp_path)
    assert (made.verdict, made.errors) == ("not run", ("the data are not the dataset Biology of the benchmark",))


def test_a_hub_that_is_away_is_one_line_for_all_systems_and_datasets(r2med: Command) -> None:
    names = ("bm25", "hyde(o3-mini) -> bm25")
    done = r2med("reproduce", names[0], "--data", "R2MED", "--offline")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 1)
    states(done.stdout, "bm25", "8 datasets", "R2MED/Biology", "--data DIR/Biology")
    every = r2med("reproduce", "--cpu", "--data", "R2MED", "--offline").stdout.splitlines()
    assert len(every) < 10
    some_states(every, "systems, such as", "8 datasets", "R2MED/Biology")


def test_every_published_row_of_bm25_needs_neither_gpu_nor_key_and_no_other_does() -> None:
    known, others = known_scores([""], cpu=True)
    of_rows = [each for each in known if each.label]
    rows = [row for row in published() if row.retriever == "bm25" and not row.reranker]
    assert {(each.label, each.source) for each in of_rows} == {(row.name, row.source) for row in rows}
    assert len(of_rows) > 15 and not others
    assert {each.system.split(" → ")[-1].partition("(")[0] for each in known} == {"bm25"}
    assert all(each.recorded for each in of_rows if "→" in each.system)
    chosen = chosen_scores([], [BENCHMARK], cpu=True)
    assert {each.system for each, _ in chosen} == {each.system for each in of_rows} | {"bm25(scorer=lucene)"}


def test_a_system_that_needs_a_gpu_is_refused_in_one_line() -> None:
    with error_states("nv:published", "GPU", "--cpu"):
        chosen_scores(["nv:published"], [BENCHMARK], cpu=True)


def test_the_benchmark_is_compared_without_gpu_and_key_also_with_recorded_texts(
    benchmark: list[str], tmp_path: Path
) -> None:
    made = reproduce(["bm25", "hyde(gpt4) → bm25"], benchmark, cpu=True, out=tmp_path / "results")
    averages = {each.expectation.system: each.figures[-1] for each in made}
    observed = {system: round(figure.observed, 2) for system, figure in averages.items() if figure.observed is not None}
    assert observed == {"bm25": 17.95, "hyde(gpt4) → bm25": 91.4}
    assert {figure.dataset for figure in averages.values()} == {"average"}


def test_a_plan_of_many_systems_is_a_table_with_a_row_for_each(r2med: Command) -> None:
    planned = json.loads(r2med("reproduce", "--cpu", "--data", "R2MED", "--plan", "--format", "json").stdout)
    lines = r2med("reproduce", "--cpu", "--data", "R2MED", "--plan").stdout.splitlines()
    assert len(planned) > 1 and len(lines) == 2 + len(planned)
