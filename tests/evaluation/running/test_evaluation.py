"""`evaluate`: what a record says, when it is reused, and what keeps two of them apart."""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import r2med
from r2med import score
from r2med.data import Corpus, Dataset, Qrels, Query, load
from r2med.data.runs import Run
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import source_digest
from r2med.foundation.store import Store
from r2med.systems.system import System
from support.datasets import random_folder, with_short_documents
from support.workspaces import Workspace


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


def files(out: Path) -> list[Path]:
    return sorted(path for path in out.rglob("*") if path.is_file())


# What a record says


def test_a_record_holds_all_its_numbers_depend_on(mini: Path, workspace: Workspace) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    record = evaluate("bm25(k1=1.2)", mini, workspace.out, k=20)
    dataset = load(mini)
    assert record.system == "bm25(k1=1.2)"
    assert record.settings["k"] == 20
    assert record.settings["retrieve"] == {
        "stage": "bm25",
        "version": 1,
        "analysis": "lucene-english",
        "k1": 1.2,
    }
    assert record.dataset.name == "mini"
    assert record.dataset.fingerprint == dataset.fingerprint
    assert record.dataset.corpus_fingerprint == dataset.corpus.fingerprint
    assert (record.dataset.queries, record.dataset.documents, record.dataset.judged_queries) == (5, 30, 5)
    for package in ("numpy", "scipy", "pyarrow"):
        assert record.versions[package] == metadata.version(package)
    assert record.versions["r2med"] == r2med.__version__
    assert record.versions["python"] == platform.python_version()
    [stage] = record.stages
    assert (stage.stage, stage.name) == ("retrieve", "bm25(k1=1.2)")
    assert stage.prepared.seconds > 0 and record.cost.seconds == stage.cost.seconds + stage.prepared.seconds
    assert (record.failures, record.cost.llm_tokens, record.cost.dollars, record.seeds) == (0, 0, 0.0, {})
    assert record.source == source_digest()
    assert before <= datetime.fromisoformat(record.created) <= datetime.now(UTC)


def test_the_scores_of_a_record_are_those_of_its_run_file(mini: Path, workspace: Workspace) -> None:
    record = evaluate("bm25", mini, workspace.out)
    (path,) = workspace.out.rglob("*.trec.gz")
    assert record.run is not None
    assert record.run.file == path.name
    scores = score(load(mini).qrels, Run.read(path))
    assert record.mean == {str(measure): value for measure, value in scores.mean.items()}
    assert record.per_query == {
        query: {str(measure): value for measure, value in values.items()} for query, values in scores.per_query.items()
    }
    assert set(record.per_query) == {f"q{i}" for i in range(5)}
    for measure, mean in record.mean.items():
        assert mean == pytest.approx(np.mean([values[measure] for values in record.per_query.values()]), abs=1e-12)


def test_a_record_of_the_benchmark_names_task_and_failures(tmp_path: Path) -> None:
    record = evaluate("hyde(author) → bm25", "demo/Biology")
    assert record.dataset.task == "Q&A reference"
    expansion = record.settings["expand"]
    assert (expansion["stage"], expansion["llm"], expansion["source"]) == ("hyde", "author", "recorded")
    assert record.settings["generations"] != ""
    assert record.failures == 0


def test_a_query_without_a_generated_text_is_a_failure_that_is_counted(mini: Path) -> None:
    texts = mini / "hyde" / "someone"
    texts.mkdir(parents=True)
    rows = [{"id": f"q{i}", "hy_doc": "word"} for i in range(3)]
    (texts / "query_with_hydoc.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert evaluate("hyde(someone) → bm25", mini).failures == 2


def test_without_a_results_folder_nothing_is_written_but_the_store(mini: Path, home: Path, tmp_path: Path) -> None:
    record = evaluate("bm25", mini)
    assert record.run is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mini", home.name]


def test_what_is_returned_is_what_was_written(mini: Path, workspace: Workspace) -> None:
    record = evaluate("bm25", mini, workspace.out)
    (path,) = workspace.out.rglob("*.json")
    assert Record.read(path) == record


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_at_least_one(k: int, mini: Path) -> None:
    with pytest.raises(UserError, match=f"k must be at least 1, not {k}"):
        evaluate("bm25", mini, k=k)


def test_a_dataset_without_judgements_cannot_be_scored(mini: Path, workspace: Workspace) -> None:
    (mini / "qrels.jsonl").write_text("")
    with pytest.raises(UserError):
        evaluate("bm25", mini, workspace.out)
    assert not workspace.out.exists()


# Reuse


def unnamed(record: Record) -> Record:
    """Return a record without the time of the last run that named it."""
    return record.model_copy(update={"named": ""})


def test_a_sound_record_is_returned_as_it_is(mini: Path, workspace: Workspace) -> None:
    first = evaluate("bm25", mini, workspace.out)
    beside = [path for path in files(workspace.out) if path.suffix != ".json"]
    times = [path.stat().st_mtime_ns for path in beside]
    again = evaluate("bm25", mini, workspace.out)
    assert unnamed(again) == unnamed(first) and again.named > first.named
    assert [path.stat().st_mtime_ns for path in beside] == times


def test_a_record_is_reused_even_when_the_store_is_gone(mini: Path, workspace: Workspace) -> None:
    store = Store(workspace.home)
    first = evaluate("bm25", mini, workspace.out, store=store)
    shutil.rmtree(workspace.home)
    assert unnamed(evaluate("bm25", mini, workspace.out, store=store)) == unnamed(first)
    assert not (workspace.home / "run").exists()


def test_fresh_redoes_everything_and_comes_to_the_same(
    mini: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate("bm25", mini, workspace.out)
    builds: list[str] = []
    add = Store.add

    def adding(store: Store, kind: str, *arguments: object) -> object:
        builds.append(kind)
        return add(store, kind, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "add", adding)
    again = evaluate("bm25", mini, workspace.out, fresh=True)
    assert sorted(builds) == ["bm25-impacts", "bm25-postings", "corpus", "run"]
    times = ("created", "named", "stages")
    assert again.model_copy(update={name: getattr(first, name) for name in times}) == first
    assert len(files(workspace.out)) == 2


# What keeps records apart


def test_different_settings_never_overwrite_each_other(mini: Path, workspace: Workspace) -> None:
    systems = ["bm25", "bm25(k1=1.2)", "bm25(b=0.5)", "bm25(scorer=lucene)"]
    records = [evaluate(system, mini, workspace.out, k) for system in systems for k in (1000, 10)]
    assert len({record.key for record in records}) == len(records)
    assert len(files(workspace.out)) == 2 * len(records)  # record, run
    assert sorted(Record.read(path).key for path in workspace.out.rglob("*.json")) == sorted(r.key for r in records)


@pytest.mark.parametrize("spec", ["bm25()", " bm25 ", "bm25(k1=0.9)", "bm25(k1=.90, b=0.4)", "bm25(scorer=published)"])
def test_the_same_settings_written_otherwise_are_the_same_record(spec: str, mini: Path, workspace: Workspace) -> None:
    one, other = evaluate(spec, mini, workspace.out), evaluate("bm25", mini, workspace.out)
    assert unnamed(one) == unnamed(other)
    assert len(files(workspace.out)) == 2


def test_the_key_is_content_not_a_name_or_a_place(mini: Path, workspace: Workspace, tmp_path: Path) -> None:
    copy = shutil.copytree(mini, tmp_path / "elsewhere" / "another-name")
    one, other = evaluate("bm25", mini, workspace.out), evaluate("bm25", copy, workspace.out)
    assert one.key == other.key
    assert (one.dataset.name, other.dataset.name) == ("mini", "another-name")
    assert (one.mean, one.per_query) == (other.mean, other.per_query)


def test_rows_of_judgements_in_another_order_are_the_same_content(mini: Path) -> None:
    before = evaluate("bm25", mini).key
    lines = (mini / "qrels.jsonl").read_text().splitlines(keepends=True)
    (mini / "qrels.jsonl").write_text("".join(reversed(lines)))
    assert evaluate("bm25", mini).key == before


@pytest.mark.parametrize("name", ["corpus.jsonl", "query.jsonl", "qrels.jsonl"])
def test_changed_data_give_another_record_and_the_old_one_stays(name: str, mini: Path, workspace: Workspace) -> None:
    before = evaluate("bm25", mini, workspace.out)
    lines = (mini / name).read_text().splitlines(keepends=True)
    if name == "qrels.jsonl":
        lines[0] = lines[0].replace('"score": 1', '"score": 2')
    else:
        lines[0] = lines[0].replace('"text": "', '"text": "more ')
    assert lines != (mini / name).read_text().splitlines(keepends=True)
    (mini / name).write_text("".join(lines))
    after = evaluate("bm25", mini, workspace.out)
    assert after.key != before.key
    assert len(list(workspace.out.rglob("*.json"))) == 2


def test_changed_generations_give_another_record(mini: Path, workspace: Workspace) -> None:
    path = mini / "hyde" / "someone" / "query_with_hydoc.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "q0", "hy_doc": "one"}\n')
    before = evaluate("hyde(someone) → bm25", mini, workspace.out)
    path.write_text('{"id": "q0", "hy_doc": "two"}\n')
    assert evaluate("hyde(someone) → bm25", mini, workspace.out).key != before.key


def test_names_become_safe_file_names(mini: Path, workspace: Workspace) -> None:
    odd = mini.rename(mini.with_name("..né w; name"))
    record = evaluate("bm25(k1=1.2, b=0.5)", odd, workspace.out)
    assert record.dataset.name == "..né w; name"
    (path,) = workspace.out.rglob("*.json")
    assert path == workspace.out / "né_w_name" / f"bm25_k1=1.2_b=0.5-{record.key[:10]}.json"


def test_the_same_run_gives_the_same_bytes(mini: Path, workspace: Workspace, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        evaluate("bm25", mini, tmp_path / folder, store=Store(tmp_path / f"store of {folder}"))
    (one,), (two,) = ((tmp_path / folder).rglob("*.gz") for folder in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    first = gzip.decompress(one.read_bytes()).decode().split()
    assert (first[0], first[1], first[3], first[5]) == ("q0", "Q0", "1", "bm25")


TINY = Dataset("tiny", (Query("1", "fever"),), Corpus.of([("a", "fever")]), Qrels({"1": {"a": 1}}))


def test_a_name_keeps_what_a_person_reads_and_loses_what_files_cannot_have() -> None:
    assert slug("hyde(o3-mini) → bm25(k1=2.0)+nv@10") == "hyde_o3-mini_bm25_k1=2.0_+nv_10"
    assert slug("../..") == "unnamed"


def test_a_system_with_a_very_long_name_is_recorded_and_read_back(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["心é" * 20] * 5)
    folder.mkdir(parents=True)
    (folder / "run.trec").write_text("1 Q0 a 1 1.0 x\n")
    system, out, store = f"run:{folder / 'run.trec'}", tmp_path / "out", Store(tmp_path / "store")
    record = evaluate(system, TINY, out, store=store)
    assert len(record.system.encode()) > 255 and record.mean["nDCG@10"] == 1
    [written] = out.rglob("*.trec.gz")
    before = written.stat().st_mtime_ns
    assert unnamed(evaluate(system, TINY, out, store=store)) == unnamed(record)
    assert written.stat().st_mtime_ns == before  # reading it may change its time of access


def test_a_record_that_replaces_a_failed_try_removes_it(mini: Path, workspace: Workspace) -> None:
    path = mini / "hyde" / "someone" / "query_with_hydoc.jsonl"
    path.parent.mkdir(parents=True)
    rows = [{"id": f"q{i}", "hy_doc": "one"} for i in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:3]))
    assert evaluate("hyde(someone) → bm25", mini, workspace.out).failures == 2
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = evaluate("hyde(someone) → bm25", mini, workspace.out)
    assert whole.failures == 0
    assert [Record.read(file) for file in workspace.out.rglob("*.json")] == [whole]
    assert len(list(workspace.out.rglob("*.trec.gz"))) == 1


def test_a_failed_try_beside_a_sound_record_is_removed_when_the_system_is_run_again(
    mini: Path, workspace: Workspace
) -> None:
    path = mini / "hyde" / "someone" / "query_with_hydoc.jsonl"
    path.parent.mkdir(parents=True)
    rows = [json.dumps({"id": f"q{i}", "hy_doc": "one"}) + "\n" for i in range(5)]
    for kept in (5, 1, 5):  # the last one reuses the first
        path.write_text("".join(rows[:kept]))
        whole = evaluate("hyde(someone) → bm25", mini, workspace.out)
    assert [Record.read(file) for file in workspace.out.rglob("*.json")] == [whole]
    assert len(list(workspace.out.rglob("*.trec.gz"))) == 1


def test_an_expansion_is_asked_for_before_the_record_is_looked_for_and_once(
    mini: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    expand = System.expand
    monkeypatch.setattr(System, "expand", lambda system, *given: asked.append(system.name) or expand(system, *given))
    evaluate("rm3 → bm25", mini, workspace.out)
    evaluate("rm3 → bm25", mini, workspace.out)
    assert asked == ["rm3 → bm25"] * 2


@pytest.mark.slow
def test_on_the_demo_minilm_and_its_fusion_give_sensible_recorded_scores(tmp_path: Path) -> None:
    dataset = with_short_documents(load("demo/Biology"), 200)
    records = {spec: evaluate(spec, dataset, out=tmp_path) for spec in ("bm25", "minilm", "bm25+minilm")}
    scores = {spec: record.mean["nDCG@10"] for spec, record in records.items()}
    assert scores["minilm"] > scores["bm25"] > 0.1
    assert scores["bm25+minilm"] > scores["bm25"]
    document = records["minilm"].settings["retrieve"]["document"]
    assert (document["max_tokens"], document["dtype"]) == (256, "float32")
    assert document["revision"]
    (stage,) = records["minilm"].stages
    assert (stage.prepared.texts, stage.cost.texts) == (len(dataset.corpus), len(dataset.queries))
    expanded = evaluate("hyde(author) → minilm", dataset, out=tmp_path)
    assert expanded.mean["nDCG@10"] > scores["minilm"]


def test_a_folder_whose_name_is_not_utf_8_can_be_evaluated(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/ward\xff"))
    try:
        random_folder(folder, documents=20)
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    record = evaluate("bm25", folder, tmp_path / "out")
    assert record.dataset.name == "ward\ufffd"
    assert [Record.read(path).key for path in (tmp_path / "out").rglob("bm25-*.json")] == [record.key]
