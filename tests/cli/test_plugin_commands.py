"""Plugins at work: commands use their stages and cards, name what is broken, and replace nothing that is built in."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import r2med
from r2med import System
from r2med.foundation.core import names
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.public.stage_settings import help_of
from support.datasets import random_folder
from support.facts import some_states, states
from support.fork_server import Command

REVERSED = '''
from r2med.systems.rerank.reranking import Reranked
from r2med.foundation.runtime.stages import Stage, depth_field
from r2med.systems.rerank.reranking import reranked
import numpy as np
from pydantic import Field


class Reversed(Stage, kind="rerank"):
    """Turn the first candidates around."""

    name: str = "reversed"
    strength: float = Field(1.0, ge=0, le=1, description="how much it turns")
    depth: int = depth_field(10)

    def rerank(self, dataset, queries, run, runtime):
        scores = [np.arange(min(self.depth, int(count)), dtype=np.float64) for count in run.found]
        return Reranked(reranked(run, self.depth, scores))
'''


def installed(folder: Path, name: str, entries: str, **modules: str) -> Path:
    """Write a package as pip would leave it, into a folder of its own."""
    folder.mkdir(exist_ok=True)
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    return folder


@pytest.fixture
def unplugged() -> Iterator[None]:
    """Look for installed plugins anew, before and after a test."""
    lookups = (names._installed_stages, names._installed_packages, names._raw_cards, names._warn)
    for lookup in lookups:
        lookup.cache_clear()
    yield
    for lookup in lookups:
        lookup.cache_clear()


@pytest.mark.usefixtures("unplugged")
def test_a_class_named_by_an_entry_point_is_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "around", "[r2med.stages]\nreversed = around:Reversed\n", around=REVERSED)
    monkeypatch.syspath_prepend(str(tmp_path))
    dataset = random_folder(tmp_path / "wards", documents=6)
    setup = Runtime(store=Store(tmp_path / "store"))
    system = System.parse("bm25 → reversed(strength=0.5)@3", setup)
    assert str(system) == "bm25 → reversed(strength=0.5)@3" and System.parse(str(system), setup) == system
    assert [setting.name for setting in help_of("reversed", "rerank")] == ["strength", "depth"]
    record = r2med.evaluate(system, dataset)
    [settings] = record.settings["rerank"]
    assert settings.pop("code")
    assert settings == {"stage": "reversed", "strength": 0.5, "depth": 3}
    assert record.stages[-1].name == "reversed(strength=0.5)@3"


def test_an_edited_stage_is_not_taken_for_the_one_that_made_a_number(tmp_path: Path, r2med: Command) -> None:
    site = installed(tmp_path / "site", "around", "[r2med.stages]\nreversed = around:Reversed\n", around=REVERSED)
    words = ("run", "bm25 → reversed@3", "--data", "demo/Biology")
    first = r2med(*words, PYTHONPATH=str(site))
    again = r2med(*words, PYTHONPATH=str(site))
    (site / "around.py").write_text(REVERSED.replace("np.arange(", "-np.arange("))
    edited = r2med(*words, PYTHONPATH=str(site))
    assert "reused" not in first.stdout and "reused" in again.stdout and "reused" not in edited.stdout
    assert edited.returncode == 0, edited.stderr


RETRIEVING = '''
from r2med.systems.retrieve.retriever import Searched
from r2med.data.runs.run import Run
from r2med.foundation.runtime.stages import Stage
import numpy as np

FIRST = 0


class Fixed(Stage, kind="retrieve"):
    """Return one document for every query."""

    name: str = "fixed"

    def key(self, dataset, runtime):
        return {"fixed": True}

    def search(self, dataset, queries, k, runtime):
        found = (np.array([FIRST], np.int32), np.ones(1, np.float32))
        return Searched(Run.ranked([query.query.id for query in queries], [found] * len(queries), dataset.corpus))
'''


def test_an_edited_retriever_is_searched_again_though_its_own_key_is_as_before(tmp_path: Path, r2med: Command) -> None:
    site = installed(tmp_path / "site", "fixing", "[r2med.stages]\nfixed = fixing:Fixed\n", fixing=RETRIEVING)
    found = []
    for first in (0, 1):
        (site / "fixing.py").write_text(RETRIEVING.replace("FIRST = 0", f"FIRST = {first}"))
        words = ("run", "fixed", "--data", "demo/Biology", "--out", f"out-{first}")
        ended = r2med(*words, PYTHONPATH=str(site))
        assert ended.returncode == 0, ended.stderr
        [path] = (tmp_path / f"out-{first}").rglob("*.trec.gz")
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        found.append({line.split()[2] for line in lines if not line.startswith("#")})
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("system", "verb", "facts"),
    [
        ("fixed", "search", ["fixing.Fixed", "search(dataset, queries, k, runtime)"]),
        ("bm25 → reversed", "rerank", ["around.Reversed", "rerank(dataset, queries, run, runtime)"]),
    ],
)
def test_a_stage_that_lacks_a_verb_is_refused_in_one_line(
    tmp_path: Path, r2med: Command, system: str, verb: str, facts: list[str]
) -> None:
    entries = "[r2med.stages]\nfixed = fixing:Fixed\nreversed = around:Reversed\n"
    fixing, around = (text.replace(f"def {verb}(", "def misspelt(") for text in (RETRIEVING, REVERSED))
    site = installed(tmp_path / "site", "fixing", entries, fixing=fixing, around=around)
    ended = r2med("run", system, "--data", "demo/Biology", PYTHONPATH=str(site))
    assert ended.returncode == 2
    states(ended.stderr, *facts)


def test_a_broken_plugin_is_named_in_one_line_and_everything_else_works(tmp_path: Path, r2med: Command) -> None:
    entries = "[r2med.stages]\nbroken = breaking:Broken\nodd = around:np\nreversed = around:Reversed\n"
    entries += "[r2med.plugins]\nbreaking = breaking\nabsent = not_there\n"
    site = installed(
        tmp_path / "site", "broken", entries, breaking="raise RuntimeError('two\\nlines')\n", around=REVERSED
    )
    ended = r2med("run", "bm25 → reversed@3", "--data", "demo/Biology", PYTHONPATH=str(site))
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if "left out" in line]
    assert len(lines) == 4 and "Traceback" not in ended.stderr
    some_states(lines, "broken = breaking:Broken", "RuntimeError: two lines")
    some_states(lines, "odd = around:np", "r2med.extend.Stage", "kind")
    some_states(lines, "absent = not_there")


def test_a_bad_card_of_an_installed_plugin_stops_nothing_and_one_of_the_users_own_is_an_error(
    tmp_path: Path, r2med: Command
) -> None:
    site = installed(tmp_path / "site", "pack", "[r2med.plugins]\npack = card_pack\n", other="")
    for card in ("datasets/bad.toml", "models/bad.toml", "__init__.py"):
        (site / "card_pack" / card).parent.mkdir(parents=True, exist_ok=True)
        (site / "card_pack" / card).write_text("" if card == "__init__.py" else "like = [")
    ended = r2med("run", "bm25", "--data", "demo/Biology", PYTHONPATH=str(site))
    assert ended.returncode == 0, ended.stderr
    some_states(ended.messages, "datasets/bad.toml", "TOML", "left out")
    listed = r2med("list", "models", PYTHONPATH=str(site))
    assert listed.returncode == 0
    some_states(listed.messages, "models/bad.toml", "TOML")
    own = r2med("list", "models", R2MED_PLUGINS=str(site / "card_pack"))
    assert own.returncode == 2
    some_states(own.messages, "models/bad.toml", "TOML")


def test_a_plugin_cannot_replace_what_is_built_in(tmp_path: Path, r2med: Command) -> None:
    entries = "[r2med.stages]\nbm25 = fixing:Fixed\n[r2med.plugins]\nfixing = card_pack\n"
    site = installed(tmp_path / "site", "fixing", entries, fixing=RETRIEVING)
    for card in ("models/bge.toml", "__init__.py"):
        (site / "card_pack" / card).parent.mkdir(parents=True, exist_ok=True)
        (site / "card_pack" / card).write_text("")
    ended = r2med("run", "bm25", "--data", "demo/Biology", PYTHONPATH=str(site))
    alone = r2med("run", "bm25", "--data", "demo/Biology", "--fresh")
    listed = r2med("list", "stages", PYTHONPATH=str(site))
    assert ended.returncode == listed.returncode == 0, ended.stderr + listed.stderr
    some_states(listed.messages, "bm25 = fixing:Fixed", "left out", "stage bm25")
    some_states(listed.messages, "bge.toml", "left out", "a plugin cannot replace it")
    assert r2med("show", "bge", PYTHONPATH=str(site)).stdout == r2med("show", "bge").stdout
    assert score(ended.stdout) == score(alone.stdout)


def score(table: str) -> str:
    """Return the first number with two decimals, the nDCG@10; seconds follow it."""
    found = re.search(r"\d+\.\d\d", table)
    assert found, table
    return found[0]


def test_a_folder_of_the_users_own_replaces_a_card_with_a_notice(tmp_path: Path, r2med: Command) -> None:
    (tmp_path / "mine/prompts").mkdir(parents=True)
    (tmp_path / "mine/prompts/hyde.exam.txt").write_text("Answer.\n\n{query}\n")
    ended = r2med("list", "prompts", R2MED_PLUGINS=str(tmp_path / "mine"))
    assert ended.returncode == 0, ended.stderr
    some_states(ended.messages, "R2MED_PLUGINS", "replaces", "prompts/hyde.exam.txt")


def test_a_model_of_ones_own_without_its_prefix_is_shown_with_it(tmp_path: Path, r2med: Command) -> None:
    (tmp_path / "my/model").mkdir(parents=True)
    (tmp_path / "letters.py").write_text("class Letters: ...")
    for system, right in (
        ("my/model", "path:my/model"),
        ("letters:Letters", "py:letters:Letters"),
        ("bm25 → my/model", "path:my/model"),
        ("bm25 → letters:Letters", "py:letters:Letters"),
    ):
        ended = r2med("run", system, "--data", "demo/Biology")
        assert ended.returncode == 2
        states(ended.stderr, "did you mean", right)
