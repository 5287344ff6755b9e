"""Every public function takes one value or many, names, paths as text or as Path, and objects."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med.foundation.store import Store

DATA = "demo/Biology"
SYSTEMS = ("bm25", "bm25(k1=2)")


@dataclass(frozen=True)
class Made:
    """What the calls work on: records, one of them as a file, a dataset folder, an entry, an overlay, a new place."""

    results: Path
    record: Path
    folder: Path
    entry: Path
    overlay: Path
    new: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("made")
    results, folder = root / "results", root / "mine"
    r2med.run(SYSTEMS, DATA, out=results, store=Store(root / "store"))
    r2med.export_data(r2med.load(DATA, Store(root / "store")), folder)
    r2med.submit(results, root / "entry.json", results)
    (root / "notes.csv").write_text("id,text\na,gout hurts\n")
    label = r2med.OverlayLabel(dataset=DATA, query=_query(), document="none", grade=1, judge="j")
    r2med.Overlay("judged", (label,)).write(root / "judged.jsonl")
    record = next(results.rglob("bm25-*.json"))
    return Made(results, record, folder, root / "entry.json", root / "judged.jsonl", root / "new")


Call = Callable[[Made], Any]

CALLS: dict[str, tuple[Call, ...]] = {
    "advise": (
        lambda m: r2med.advise(r2med.load(m.folder), models=[], rerankers=["path:none"], llms=["nonesuch"]).left_out,
        lambda m: r2med.advise(str(m.folder), models=(), rerankers="path:none", llms="nonesuch").left_out,
    ),
    "analyse": (
        lambda m: r2med.analyse(["slices"], out=m.new, data=[DATA], systems=[*SYSTEMS], results=m.results).page.about,
        lambda m: (
            r2med.analyse("slices", out=str(m.new), data=DATA, systems=SYSTEMS, results=str(m.results)).page.about
        ),
        lambda m: (
            r2med.analyse(
                "slices", out=m.new, data=r2med.load(DATA), systems=map(r2med.System.parse, SYSTEMS), results=m.results
            ).page.about
        ),
    ),
    "answer": (
        lambda m: r2med.answer(["bm25"], ["nonesuch"], [DATA], out=m.new, conditions=["retrieved"]),
        lambda m: r2med.answer("bm25", "nonesuch", r2med.load(DATA), out=str(m.new), conditions="retrieved"),
    ),
    "audit": (
        lambda m: r2med.audit(r2med.load(m.folder), results=m.results).verdict,
        lambda m: r2med.audit(str(m.folder), results=str(m.results)).verdict,
        lambda m: r2med.audit(m.folder, results=m.results).verdict,
    ),
    "board": (
        lambda m: r2med.board([m.results], m.new / "board", [DATA], overlays=[]),
        lambda m: r2med.board(str(m.results), str(m.new / "board"), DATA),
        lambda m: r2med.board(m.results, m.new / "board", r2med.load(DATA)),
    ),
    "check_data": (
        lambda m: str(list(r2med.check_data([m.folder]).values())),
        lambda m: str(list(r2med.check_data(str(m.folder)).values())),
    ),
    "clear_cache": (
        lambda m: r2med.clear_cache(dataset="nonesuch", results=[m.results]),
        lambda m: r2med.clear_cache(dataset=Path("nonesuch"), results=str(m.results)),
    ),
    "compare": (
        lambda m: r2med.compare(*SYSTEMS, results=m.results, data=[DATA], slice_by=["positives"]),
        lambda m: r2med.compare(list(SYSTEMS), results=str(m.results), data=DATA, slice_by="positives"),
        lambda m: r2med.compare(*map(r2med.System.parse, SYSTEMS), results=m.results, data=r2med.load(DATA)),
        lambda m: r2med.compare(str(m.results), data=(DATA,)),
    ),
    "doctor": (lambda m: list(r2med.doctor(setup=r2med.Setup(base_url="http://127.0.0.1:9/v1")).endpoints),),
    "evaluate": (
        lambda m: r2med.evaluate("bm25", m.folder, m.new / "evaluated").mean,
        lambda m: r2med.evaluate(r2med.System.parse("bm25"), str(m.folder), str(m.new / "evaluated")).mean,
        lambda m: r2med.evaluate("bm25", r2med.load(m.folder)).mean,
    ),
    "example_data": (
        lambda m: r2med.example_data(m.new / "c").fingerprint,
        lambda m: r2med.example_data(str(m.new / "d")).fingerprint,
    ),
    "example_build": (
        lambda m: r2med.example_build("nonesuch", m.new),
        lambda m: r2med.example_build("nonesuch", str(m.new)),
    ),
    "why": (
        lambda m: r2med.why(m.record, _query(), data=r2med.load(DATA)),
        lambda m: r2med.why(str(m.record), _query(), data=DATA),
        lambda m: r2med.why("bm25", r2med.load(DATA), _query(), results=m.results),
        lambda m: r2med.why(r2med.System.parse("bm25"), DATA, _query(), results=str(m.results)),
    ),
    "export_data": (
        lambda m: r2med.export_data(r2med.load(DATA), m.new / "beir").name,
        lambda m: r2med.export_data(DATA, str(m.new / "again" / "beir")).name,
    ),
    "training_data": (
        lambda m: r2med.training_data(r2med.load(DATA), m.new / "train", folds=2).sheet.queries,
        lambda m: r2med.training_data(DATA, str(m.new / "train"), folds=2, formats=["triplets"]).sheet.queries,
    ),
    "inspect_task": (  # without inspect_ai it is the same line for every form
        lambda m: type(r2med.inspect_task(m.folder, "bm25")),
        lambda m: type(r2med.inspect_task(str(m.folder), r2med.System.parse("bm25"))),
        lambda m: type(r2med.inspect_task(r2med.load(m.folder))),
    ),
    "export_records": (
        lambda m: r2med.export_records(["bm25"], out=m.new, results=m.results),
        lambda m: r2med.export_records("bm25", out=str(m.new), results=str(m.results)),
        lambda m: r2med.export_records(m.record, out=str(m.new)),
        lambda m: r2med.export_records(str(m.record), out=str(m.new)),
    ),
    "export_review": (
        lambda m: r2med.export_review(m.new / "none.csv", m.new / "out.csv", kind=Path("none.toml")),
        lambda m: r2med.export_review(str(m.new / "none.csv"), str(m.new / "out.csv"), kind="none.toml"),
    ),
    "fetch_data": (
        lambda m: [each.fingerprint for each in r2med.fetch_data([m.folder])],
        lambda m: [each.fingerprint for each in r2med.fetch_data(str(m.folder))],
    ),
    "generate": (
        lambda m: r2med.generate("hyde", [DATA], llm="nonesuch", out=m.new),
        lambda m: r2med.generate("hyde", r2med.load(DATA), llm="nonesuch", out=str(m.new)),
        lambda m: r2med.generate("hyde", DATA, llm="nonesuch"),
    ),
    "import_records": (
        lambda m: r2med.import_records(m.new / "no.json", DATA, m.new),
        lambda m: r2med.import_records(str(m.new / "no.json"), r2med.load(DATA), str(m.new)),
    ),
    "import_data": (
        lambda m: r2med.import_data([m.results.parent / "notes.csv"], m.new / "a").corpus.fingerprint,
        lambda m: r2med.import_data(str(m.results.parent / "notes.csv"), str(m.new / "b")).corpus.fingerprint,
    ),
    "import_review": (
        lambda m: r2med.import_review(m.new / "none.csv", m.new / "out.csv"),
        lambda m: r2med.import_review(str(m.new / "none.csv"), str(m.new / "out.csv")),
    ),
    "judge": (
        lambda m: r2med.judge("bm25", llms=["nonesuch"], data=[DATA], results=m.results, out=m.new / "o.jsonl"),
        lambda m: r2med.judge(
            ["bm25"], llms="nonesuch", data=r2med.load(DATA), results=str(m.results), out=str(m.new / "o.jsonl")
        ),
    ),
    "list_": (
        lambda m: r2med.list_("overlays", m.new / "none"),
        lambda m: r2med.list_("overlays", str(m.new / "none")),
    ),
    "list_cache": (lambda m: len(r2med.list_cache().value),),
    "load": (lambda m: r2med.load(m.folder).fingerprint, lambda m: r2med.load(str(m.folder)).fingerprint),
    "lock": (
        lambda m: r2med.lock(["bm25"], [DATA], m.new / "a.lock", expand=["rm3"], rerank=[], llms=[]).settings,
        lambda m: r2med.lock(r2med.System.parse("rm3 → bm25"), r2med.load(DATA), str(m.new / "b.lock")).settings,
        lambda m: r2med.lock("bm25", DATA, m.new / "c.lock", expand="rm3").settings,
    ),
    "names": (lambda m: r2med.names(m.folder), lambda m: r2med.names(str(m.folder))),
    "nuggets": (
        lambda m: r2med.nuggets(r2med.load(DATA), "nonesuch", m.new / "n.jsonl"),
        lambda m: r2med.nuggets(DATA, "nonesuch", str(m.new / "n.jsonl")),
    ),
    "pack": (
        lambda m: len(r2med.pack([m.record], m.new / "a.r2med", data=[DATA]).files),
        lambda m: len(r2med.pack(str(m.record), str(m.new / "a.r2med"), data=r2med.load(DATA)).files),
        lambda m: len(r2med.pack("bm25", m.new / "a.r2med", results=str(m.results), data=DATA).files),
    ),
    "plan": (lambda m: r2med.plan(r2med.score, {"1": {"d": 1}}, {"1": {"d": 1.0}}),),
    "reproduce": (
        lambda m: r2med.plan(r2med.reproduce, ["bm25"], [DATA], out=m.results),
        lambda m: r2med.plan(r2med.reproduce, "bm25", DATA, out=str(m.results)),
        lambda m: r2med.plan(r2med.reproduce, "bm25", r2med.load(DATA)),
    ),
    "run": (
        lambda m: r2med.run(["bm25"], [DATA], out=None, expand=["rm3"], rerank=[], llms=[]).systems,
        lambda m: r2med.run("bm25", DATA, out=None, expand="rm3").systems,
        lambda m: r2med.run(r2med.System.parse("rm3 → bm25"), r2med.load(DATA), out=str(m.new)).systems,
    ),
    "run_build": (
        lambda m: r2med.run_build(m.new / "no.toml", m.new),
        lambda m: r2med.run_build(str(m.new / "no.toml"), str(m.new)),
    ),
    "score": (
        lambda m: r2med.score({"1": {"d": 1}}, {"1": {"d": 1.0}}, ["nDCG@10"]).mean,
        lambda m: r2med.score({"1": {"d": 1}}, {"1": {"d": 1.0}}, "nDCG@10").mean,
        lambda m: r2med.score({"1": {"d": 1}}, {"1": {"d": 1.0}}, r2med.Measure.parse("nDCG@10")).mean,
    ),
    "search": (
        lambda m: r2med.search(m.folder, "why do cells age?"),
        lambda m: r2med.search(str(m.folder), "why do cells age?", r2med.System.parse("bm25")),
        lambda m: r2med.search(r2med.load(m.folder), "why do cells age?"),
    ),
    "serve": (
        lambda m: r2med.serve(r2med.load(DATA), ["nonesuch"], port=0),
        lambda m: r2med.serve(DATA, "nonesuch", port=0),
    ),
    "serve_review": (
        lambda m: r2med.serve_review(m.new / "none"),
        lambda m: r2med.serve_review(str(m.new / "none")),
    ),
    "show": (lambda m: r2med.show(m.folder).value, lambda m: r2med.show(str(m.folder)).value),
    "show_build": (lambda m: r2med.show_build(m.new / "no"), lambda m: r2med.show_build(str(m.new / "no"))),
    "show_review": (lambda m: r2med.show_review(m.new / "no"), lambda m: r2med.show_review(str(m.new / "no"))),
    "submit": (
        lambda m: r2med.submit([m.record], m.new / "entry.json"),
        lambda m: r2med.submit(str(m.record), str(m.new / "entry.json")),
        lambda m: r2med.submit("bm25", m.new / "entry.json", str(m.results)),
    ),
    "unpack": (
        lambda m: r2med.unpack(m.new / "no.r2med", m.new),
        lambda m: r2med.unpack(str(m.new / "no.r2med"), str(m.new)),
    ),
    "verify": (
        lambda m: r2med.verify([m.entry], m.results, [DATA]),
        lambda m: r2med.verify(str(m.entry), str(m.results), DATA),
        lambda m: r2med.verify(m.entry, m.results, r2med.load(DATA)),
    ),
    "with_overlays": (
        lambda m: r2med.with_overlays(r2med.load(DATA), [r2med.Overlay.read(m.overlay)]).name,
        lambda m: r2med.with_overlays(DATA, m.overlay).name,
        lambda m: r2med.with_overlays(DATA, str(m.overlay)).name,
    ),
}

VALUES_ONLY = {
    **dict.fromkeys(r2med.agreement.__all__, "a table of ratings"),
    **dict.fromkeys(("labels", "overrating"), "all judgements of a build"),
    **dict.fromkeys(("sentences",), "one text"),
    **dict.fromkeys(("argument", "depth_field", "derived"), "declares a field of a stage"),
    "reranked": "a run and one row of scores for each query",
}
"""Functions that take neither names nor paths, and why."""


def _query() -> str:
    return r2med.load(DATA).queries[0].id


MODULES = (r2med, r2med.values, r2med.extend, r2med.agreement)


def test_every_public_function_has_a_row():
    names = [name for module in MODULES for name in module.__all__ if name[0].islower() or module is r2med.agreement]
    assert sorted([*CALLS, *VALUES_ONLY]) == sorted(names)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_one_value_and_many_and_text_and_path_and_object_mean_the_same(name: str, made: Made) -> None:
    first, *others = (outcome(call, made) for call in CALLS[name])
    for other in others:
        assert other == first


def outcome(call: Call, made: Made) -> object:
    """Return what a call returns, or the line of its error, without what differs by nature."""
    try:
        result = call(made)
    except r2med.UserError as error:
        return str(error)
    if isinstance(result, r2med.Comparison):
        return result.systems, result.datasets
    return result


def parts(annotation: str) -> list[ast.expr]:
    """Return the members of a union."""
    node = ast.parse(annotation, mode="eval").body
    waiting, found = [node], []
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.BinOp):
            waiting += [each.left, each.right]
        else:
            found.append(each)
    return found


def type_of(annotation: str) -> str:
    """Return an annotation without the declaration of its flag."""
    node = ast.parse(annotation, mode="eval").body
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
        return ast.unparse(node.slice.elts[0])
    return annotation


def faults(function: Callable[..., object], sequences: bool) -> Iterator[str]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation is parameter.empty or not isinstance(parameter.annotation, str):
            continue
        members = parts(type_of(parameter.annotation))
        words = {ast.unparse(each) for each in members}
        inside = {
            ast.unparse(part)
            for each in members
            if isinstance(each, ast.Subscript) and ast.unparse(each.value) in ("Sequence", "Iterable")
            for part in parts(ast.unparse(each.slice))
        }
        if sequences and inside - words:
            yield f"{parameter.name}: {parameter.annotation} takes several, but not one"
        if "Path" in words | inside and "str" not in words | inside:
            yield f"{parameter.name}: {parameter.annotation} takes a Path, but no text"


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_signature_says_that_one_or_many_and_text_or_path_are_taken(name: str) -> None:
    assert list(faults(getattr(r2med, name), sequences=True)) == []


def methods() -> Iterator[tuple[str, Callable[..., object]]]:
    for module, name in ((each, name) for each in MODULES for name in each.__all__):
        if not name[0].isupper() or name == "PyTerrierRetriever":  # needs its package; takes no paths
            continue
        kind = getattr(module, name)
        for method, function in inspect.getmembers(kind, callable):
            if not method.startswith("_") and getattr(function, "__module__", "").startswith("r2med"):
                yield f"{name}.{method}", function


def test_every_public_method_that_takes_a_path_takes_text() -> None:
    assert {name: found for name, each in methods() if (found := list(faults(each, sequences=False)))} == {}


def test_records_are_read_and_written_by_text(made: Made, tmp_path: Path) -> None:
    record = r2med.Record.read(str(made.record))
    record.write(str(tmp_path / "again.json"))
    assert r2med.Record.read(tmp_path / "again.json") == record
    assert record.files_are_sound(str(made.record.parent))
    with pytest.raises(r2med.UserError, match="there is no such record"):
        r2med.Record.read("none.json")


def test_a_misspelt_keyword_of_analyse_is_one_line() -> None:
    with pytest.raises(r2med.UserError, match=r"no setting 'dta'"):
        r2med.analyse("overlap", dta="demo/Biology")


def test_a_path_of_weights_may_be_one_text(tmp_path: Path) -> None:
    assert r2med.Setup(model_paths=f"minilm={tmp_path}").path_of("minilm") == tmp_path


def test_a_model_that_can_be_iterated_over_is_one_model() -> None:
    class Iterable:
        name, revision = "iterable", "1"

        def __iter__(self) -> Iterator[object]:
            return iter([1, 2])

        def encode(self, texts: list[str]) -> Any:
            return np.ones((len(texts), 2), np.float32)

    assert len(r2med.run(Iterable(), DATA, out=None).systems) == 1
