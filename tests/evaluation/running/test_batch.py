"""Many systems on many datasets: what cannot run is told of, and the others go on without it."""

import json
import shutil
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import r2med
from r2med import System, UserError
from r2med.data import load
from r2med.evaluation.running.batch import plan_run
from r2med.foundation.runtime import stages
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.models.encoders.user_objects import UserObjects
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.dense import dense_retriever
from r2med.systems.retrieve.dense.dense_retriever import Dense
from r2med.systems.system import declared_system, system_specs
from support.datasets import random_folder
from support.facts import error_states


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=30)


@pytest.fixture
def setup(tmp_path: Path) -> Runtime:
    return Runtime(store=Store(tmp_path / "store"))


def test_one_that_cannot_run_does_not_stop_the_others(tmp_path: Path, setup: Setup) -> None:
    systems = ["bm25", "hyde(nobody) → bm25", "nv"]
    results = r2med.run(systems, ["demo/Biology", "no-such-set"], out=tmp_path / "out", setup=setup)
    good, bad, untrusted = results.rows
    assert good.records[0].mean["nDCG@10"] > 0 and good.errors[0] == ""
    assert good.cells[1] is None and "no dataset or folder 'no-such-set'" in good.errors[1]
    assert bad.cells == (None, None) and "nobody" in bad.errors[0]
    assert "trust_remote_code (--trust-remote-code)" in untrusted.errors[0]
    assert not results.complete and len(results.records) == 1
    again = r2med.run("bm25", "demo/Biology", out=tmp_path / "out", setup=setup)
    assert again.reused == 1 and again.complete and not results.reused


@pytest.mark.parametrize(("answer", "complete"), [("I cannot say.", False), ("[2] > [1]", True)])
def test_a_reranker_whose_calls_all_failed_leaves_the_run_incomplete(
    answer: str, complete: bool, tmp_path: Path
) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"when": [], "answer": answer}) + "\n")
    runtime = Runtime(store=Store(tmp_path / "store"), model_paths=(("author", script),))
    results = r2med.run("bm25 → insertrank(author)@5", "demo/Biology", out=tmp_path / "out", setup=runtime)
    assert results.records and results.complete is complete


def test_python_has_the_cross_product_of_the_command_line(setup: Setup) -> None:
    plan = plan_run(
        ["bm25", "bm25(k1=2)"],
        ["demo"],
        expand=["rm3", "hyde"],
        llms=["gpt4", "author"],
        rerank=["listwise@5"],
        setup=setup,
    )
    names = [system.name for system in plan.systems]
    assert len(names) == 2 * 3 * 2 == len(set(names))
    assert "hyde(author) → bm25(k1=2) → listwise(gpt4)@5" in names
    assert "rm3 → bm25 → listwise(author)@5" in names
    assert len(plan.data) == 8


def test_a_suite_brings_its_data_and_reads_recorded_texts(setup: Setup) -> None:
    plan = plan_run([], [], suite="paper", setup=setup)
    assert len(plan.data) == 8 and "Biology" in plan.data
    assert plan.runtime.setup.recorded
    assert all(system.runtime.setup.recorded for system in plan.systems)


def test_a_setting_about_texts_that_no_system_uses_is_refused_unless_a_runtime_has_it(setup: Runtime) -> None:
    for given in ({"recorded": True, "store": setup.store}, {"setup": Setup(recorded=True, store=setup.store)}):
        with error_states("recorded", "expand"):
            r2med.run("bm25", "demo/Biology", out=None, **given)
    shared = setup.with_settings(recorded=True)
    assert len(r2med.run("bm25", "demo/Biology", out=None, setup=shared).records) == 1


def test_datasets_and_systems_may_be_objects(setup: Setup) -> None:
    dataset = load("demo/Biology", setup.store)
    results = r2med.run(System.parse("bm25", setup), dataset, out=None, setup=setup)
    assert results.records[0].dataset.name == "demo/Biology"
    assert repr(results) == "Results(1 system × 1 dataset, 1 record)"


def test_results_without_a_record_say_where_the_reason_is(setup: Setup, tmp_path: Path) -> None:
    results = r2med.run("bm25", str(tmp_path / "absent"), out=None, setup=setup)
    assert repr(results) == "Results(1 system × 1 dataset, 0 records, 1 failed: .errors says why)"


def test_systems_that_share_an_expansion_expand_once(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    expanded: list[str] = []
    expand = System.expand
    monkeypatch.setattr(System, "expand", lambda system, *given: expanded.append(system.name) or expand(system, *given))
    r2med.run(["hyde(author) → bm25", "hyde(author) → bm25(k1=2)"], "demo/Biology", out=None, setup=setup)
    assert len(expanded) == 1


def test_datasets_with_the_same_contents_keep_their_own_recorded_texts_and_cards(
    setup: Setup, mini: Path, tmp_path: Path
) -> None:
    texts = {"good": "hives and swelling", "bad": "a word that no document has"}
    for name, text in texts.items():
        folder = Path(shutil.copytree(mini, tmp_path / name))
        file = folder / "hyde" / "someone" / "query_with_hydoc.jsonl"
        file.parent.mkdir(parents=True)
        ids = [query.id for query in load(folder, setup.store).queries]
        file.write_text("".join(json.dumps({"id": each, "hy_doc": f"{text} {name}"}) + "\n" for each in ids))
    folders = [str(tmp_path / name) for name in texts]
    together = r2med.run("hyde(someone) → bm25", folders, out=None, recorded=True, store=setup.store)
    assert not together.errors
    alone = [r2med.run("hyde(someone) → bm25", each, out=None, recorded=True, store=setup.store) for each in folders]
    first, second = (record.settings["generations"] for record in together.records)
    assert first != second
    assert [first, second] == [results.records[0].settings["generations"] for results in alone]


def test_systems_of_different_setups_do_not_share_recorded_texts(mini: Path, tmp_path: Path, store: Store) -> None:
    ids = [query.id for query in load(mini, store).queries]
    systems = []
    for name, retriever in (("one", "bm25"), ("two", "bm25(k1=2)")):
        file = tmp_path / name / "hyde" / "someone" / "query_with_hydoc.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps({"id": each, "hy_doc": f"text {name}"}) + "\n" for each in ids))
        setup = Setup(store=store, generations=tmp_path / name)
        systems.append(System.parse(f"hyde(someone) → {retriever}", setup))
    records = r2med.run(systems, str(mini), out=None, store=store).records
    assert len({record.settings["generations"] for record in records}) == 2


class Counted:
    """A model that counts the texts that it encodes."""

    revision = "1"
    texts = 0

    def encode(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return [[len(text), 1.0] for text in texts]


def test_a_fresh_run_encodes_a_corpus_once_for_all_systems_and_uses_nothing_of_an_earlier_run(
    setup: Runtime, mini: Path
) -> None:
    model, documents = Counted(), len(load(mini, setup.store).corpus)
    systems = [f"{UserObjects.of(setup).name(model)}{rest}" for rest in ("", "+bm25")]
    counts = []
    for fresh in (False, False, True, True):
        model.texts = 0
        assert not r2med.run(systems, str(mini), out=None, fresh=fresh, setup=setup).errors
        counts.append(model.texts)
    first, again, *anew = counts
    assert documents < first < 2 * documents and again == 0
    assert anew == [first, first]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"systems": []}, "no system to run"),
        ({"systems": ["bm25"], "llms": ["gpt4"]}, r"llms \(--llm\) needs a method"),
        ({"systems": ["bm25"], "expand": ["rm3"], "llms": ["gpt4"]}, "asks no LLM: leave one of the two out"),
        ({"systems": ["bm25"], "expand": ["hide"]}, "did you mean hyde"),
        ({"systems": ["bm25"], "expand": ["hyde"]}, r"expand \(--expand hyde\) needs an LLM"),
        ({"systems": ["bm25"], "expand": ["hyde(gpt4)+rm3"]}, "expansions cannot be fused"),
        ({"systems": ["bm25"], "suite": "papers"}, "did you mean paper"),
    ],
)
def test_what_makes_no_sense_is_one_line_before_anything_runs(
    setup: Setup, given: dict[str, object], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        plan_run(data=["demo"], setup=setup, **given)  # type: ignore[arg-type]


class Letters:
    """A model that counts letters."""

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "aeioutns"] for text in texts], dtype=np.float32)


def test_one_cell_of_a_fusion_is_parsed_once_and_each_part_is_indexed_once(setup: Runtime, monkeypatch) -> None:
    counts: Counter[str] = Counter()

    def count(owner: object, name: str) -> None:
        work = getattr(owner, name)

        def counted(*arguments, **named):
            counts[name if isinstance(owner, ModuleType) else f"{owner.__name__}.{name}"] += 1
            return work(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    for name in ("parse", "parse_stage"):
        count(system_specs, name)
        count(declared_system, name)
    count(stages, "parse_stage")
    count(dense_retriever, "open_encoder")
    for kind in (BM25, Dense):
        count(kind, "_open")
    letters = UserObjects.of(setup).name(Letters())
    results = r2med.run(f"bm25+{letters}", "demo/Biology", out=None, setup=setup)
    assert len(results.records) == 1
    assert counts == {
        "parse": 1,
        "open_encoder": 1,
        "BM25._open": 1,
        "Dense._open": 1,
    }
