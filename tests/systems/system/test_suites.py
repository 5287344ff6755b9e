"""Suites and presets: whole tables and whole pipelines under one name, whose parts are ordinary systems."""

from pathlib import Path

import pytest

from r2med import System, UserError
from r2med.foundation.core.spec import parse, printed_system
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.systems.system.declared_system import completed
from r2med.systems.system.presets import PRESETS
from r2med.systems.system.suites import suite, suites
from r2med.systems.system.system_specs import cross_product


def specs(name: str) -> list[str]:
    return list(map(printed_system, suite(name).calls))


def spelt_out(spec: str) -> str:
    return printed_system(completed(parse(spec), Setup()))


@pytest.mark.parametrize("name", ["paper", "rerank", "records", "top"])
def test_every_system_of_a_shipped_suite_can_be_built(name: str) -> None:
    found = suite(name)
    setup = Runtime(recorded=found.recorded, llm=found.llm)
    systems = [System.parse(spec, setup) for spec in found.calls]
    assert len({system.name for system in systems}) == len(found.calls)
    assert found.summary and found.data == ("R2MED",)


def test_a_suite_of_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'data = ["demo"]\nsystems = ["bm25"]\n[[grid]]\nexpand = ["", "rm3"]\nretrieve = ["bm25", "bm25(k1=2)"]\n'
        'rerank = ["", "listwise@10"]\n'
    )
    assert specs(str(file)) == [
        "bm25",
        "bm25 → listwise@10",
        "bm25(k1=2)",
        "bm25(k1=2) → listwise@10",
        "rm3 → bm25",
        "rm3 → bm25 → listwise@10",
        "rm3 → bm25(k1=2)",
        "rm3 → bm25(k1=2) → listwise@10",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"no suite '.*mine.toml': paper, records, rerank, top, or a file"),
        ("systems = [", "not a TOML suite"),
        ('sistems = ["bm25"]', r"mine.toml: sistems: .* \(did you mean systems\?\)"),
        ('systems = "bm25"', r"mine.toml: systems: it must be a list in brackets, not 'bm25'"),
        ("", "it names no systems"),
        ("[[grid]]\nexpand = ['rm3']", r"grid\[0\].retrieve"),
    ],
)
def test_a_suite_that_cannot_be_read_is_one_line(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "mine.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=says):
        suite(str(file))


def test_a_misspelt_suite_is_named() -> None:
    assert list(suites()) == ["paper", "records", "rerank", "top"]
    with pytest.raises(UserError, match=r"did you mean records\?"):
        suite("record")


def test_every_part_of_the_reasoner_can_be_replaced() -> None:
    plain = spelt_out("reasoner(o3-mini)")
    assert [stage.partition("(")[0] for stage in plain.split(" → ")] == ["hyde", "fuse", "groupwise"]
    other = spelt_out("reasoner(o3-mini, rounds=2, dense=bge, ranker=qwq-32b, depth=20)")
    assert "rounds=2" in other and "bm25+bge" in other and "groupwise(qwq-32b" in other and other.endswith("@20")
    assert spelt_out("reasoner(o3-mini, rerank=bge-reranker@50 → listwise(gpt4)@10)").endswith(
        "→ bge-reranker@50 → listwise(gpt4)@10"
    )
    assert spelt_out("reasoner(o3-mini, expand=lamer(gpt4), retrieve=nv)").startswith(
        "lamer(gpt4) → nv → groupwise(o3-"
    )
    assert all(preset.summary for preset in PRESETS.values())


def test_what_needs_an_llm_and_names_none_takes_the_one_given() -> None:
    wanting = ("reasoner", "hyde → bm25 → groupwise(shuffles=3)@20")
    for spec in wanting:
        made = cross_product([spec], Setup(), llms=["gpt4", "o3-mini"])
        assert len(made) == 2 and all(
            llm in printed_system(calls) for calls, llm in zip(made, ("gpt4", "o3-mini"), strict=True)
        )
    for spec in ("reasoner(o3-mini)", "rm3 → bm25"):
        with pytest.raises(UserError, match="needs a method"):
            cross_product([spec], Setup(), llms=["gpt4"])
    [calls] = cross_product([wanting[1]], Setup(), llms=["gpt4"])
    assert printed_system(calls) == "hyde(gpt4) → bm25 → groupwise(gpt4, shuffles=3)@20"
    assert System.parse("reasoner(rounds=2)", Setup(llm="gpt4")).name == System.parse("reasoner(gpt4, rounds=2)").name
    assert System.parse("bm25 → listwise@10", Setup(llm="gpt4")).name == "bm25 → listwise(gpt4)@10"
