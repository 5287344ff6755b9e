"""`r2med score`: means and queries, for a person and as JSON."""

import json
from pathlib import Path

import pytest

from r2med import load
from r2med.cli.app import command
from support.facts import error_states
from support.fork_server import Command

FACTS = Path(__file__).parents[1] / "evaluation/measure/trec_eval"
QRELS, RUN = FACTS / "qrels.txt", FACTS / "run.txt"


def score(qrels: Path, run: Path, *words: str) -> None:
    command()(["score", "--qrels", str(qrels), "--run", str(run), *words], standalone_mode=False)


def test_json_holds_the_means_and_on_demand_each_query(capsys: pytest.CaptureFixture[str]) -> None:
    score(QRELS, RUN, "--format", "json")
    content = json.loads(capsys.readouterr().out)
    assert set(content) == {"mean"}
    assert f"{content['mean']['nDCG@10']:.4f}" == "0.0354"
    assert {"nDCG@10", "MAP@10", "R@10", "P@10", "MRR", "R@1000"} <= set(content["mean"])
    score(QRELS, RUN, "--format", "json", "--per-query")
    assert len(json.loads(capsys.readouterr().out)["per_query"]) == 24


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_a_table_for_a_person_has_every_figure_whole(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    score(QRELS, RUN, "--format", "json")
    mean = json.loads(capsys.readouterr().out)["mean"]
    monkeypatch.setenv("COLUMNS", width)
    score(QRELS, RUN)
    printed = capsys.readouterr().out
    assert "24 queries" in printed
    figures = [word for word in printed.split() if word.startswith(("0.", "1."))]
    assert sorted(figures) == sorted(f"{value:.4f}" for value in mean.values())


def test_ids_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qrels").write_text("q\x1b[31m[bold] 0 d 1\n")
    (tmp_path / "run").write_text("q\x1b[31m[bold] Q0 d 1 0.5 t\n")
    score(tmp_path / "qrels", tmp_path / "run", "--per-query")
    printed = capsys.readouterr().out
    assert r"query q\x1b[31m[bold]" in printed
    assert "\x1b" not in printed
    score(tmp_path / "qrels", tmp_path / "run", "--format", "json", "--per-query")
    assert list(json.loads(capsys.readouterr().out)["per_query"]) == ["q\x1b[31m[bold]"]


def test_a_run_of_r2med_scores_the_same_with_score(tmp_path: Path, r2med: Command) -> None:
    r2med("run", "bm25", "--data", "demo/Biology", "--out", tmp_path)
    [record] = tmp_path.glob("demo/Biology/*.json")
    folder = load("demo/Biology").folder
    assert folder is not None
    done = r2med(
        "score", "--qrels", folder / "qrels.jsonl", "--run", record.with_suffix(".trec.gz"), "--format", "json"
    )
    assert json.loads(done.stdout)["mean"] == pytest.approx(json.loads(record.read_text())["mean"], abs=1e-12)


def test_ids_that_our_writer_encoded_are_read_back(tmp_path: Path, r2med: Command) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "query.jsonl").write_text('{"id": "q 1", "text": "fever"}\n')
    rows = [{"id": "d%20x y", "text": "fever and cough"}, {"id": "other", "text": "fever fever"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels.jsonl").write_text('{"q_id": "q 1", "p_id": "d%20x y", "score": 1}\n')
    r2med("run", "bm25", "--data", folder, "--out", tmp_path / "out")
    [record] = (tmp_path / "out").glob("odd/*.json")
    done = r2med(
        "score", "--qrels", folder / "qrels.jsonl", "--run", record.with_suffix(".trec.gz"), "--format", "json"
    )
    assert json.loads(done.stdout)["mean"] == json.loads(record.read_text())["mean"]


def test_a_run_and_qrels_of_different_datasets_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("other Q0 d 1 0.5 t\n")
    with error_states(tmp_path / "run", "no query"):
        score(QRELS, tmp_path / "run")
