"""What every command and every public function keeps of a private dataset, and what it sends.

Each has a row: how it is called, or why it keeps and sends nothing. After a row has run, the dataset is cleared, and no
byte of the store and of temporary folders may hold its words. Other files that hold them are listed. The LLM quotes
everything. A second pass runs each row offline on a dataset of the hub: no name of another machine may be looked up.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

import r2med
from r2med import Setup, UserError
from r2med.cli.app import command
from r2med.data.dataset_cards import cards
from r2med.foundation.net.endpoint import Endpoint
from r2med.foundation.net.offline import offline
from support import chat_server
from support.by_day import some_by_day
from support.found_bytes import files_holding
from support.quoting_llm import quoting

NOTE, QUERY, ANSWER, ASKED = PLANTED = ("zorbluxnotek", "quibzanquerik", "wimpelansk", "vorplaskedik")
"""Words of documents, queries and reference answers, and of a question that is asked by hand. Stemming keeps them."""
LONG = (NOTE, QUERY)
"""Words of texts that are long enough to be recognised in any file. A reference answer has one or two words."""
QUESTION = f"What ails Mr. Jones, {ASKED}?"
TOPICS = ("liver", "heart", "kidney", "lung", "spleen", "brain", "skin", "bone")
LLM = "org/m"
HUB = "Biology"
"""A dataset that is not on this machine."""


@dataclass
class Bench:
    """A private dataset and what was made of it, a store, and an LLM on loopback."""

    root: Path
    server: chat_server.Server
    offline: bool = False
    data: str = ""
    """The dataset of a row: the private folder, or a dataset of the hub."""
    warned: bool = False
    unwarned: list[str] = field(default_factory=list)
    """Prompts with planted words that were sent before a warning."""

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary"

    @property
    def ward(self) -> Path:
        return self.root / "ward"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def record(self) -> Path:
        return next(path for path in self.results.glob("ward/bm25-*.json") if "answers" not in path.name)

    @property
    def asked(self) -> list[str]:
        """The flags of a command that asks the LLM."""
        return ["--base-url", self.server.address]

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of a Setup that asks the LLM."""
        return {"base_url": self.server.address, "offline": self.offline}

    @property
    def setup(self) -> Setup:
        return Setup(**self.settings)

    def run(self, *words: object) -> None:
        """Run a command in this process."""
        code = command()([*map(str, words)], prog_name="r2med", standalone_mode=False)
        assert code in (None, 0, 1), words

    def saw(self, prompt: str) -> None:
        """Note a prompt with planted words that was sent before a warning."""
        if not self.warned and any(word in prompt for word in PLANTED):
            self.unwarned.append(prompt[:200])

    def clear(self, *datasets: object, results: Path | None = None) -> None:
        for dataset in datasets:
            with suppress(UserError):  # nothing is kept
                named = ["--results", results] if results else []
                self.run("cache", "clear", "--dataset", dataset, *named, "--yes")

    def kept(self, *below: str) -> set[str]:
        """Return the files of the store and of temporary folders that hold a planted word."""
        return files_holding(PLANTED, self.home.joinpath(*below), *([] if below else [self.temporary]))

    @contextmanager
    def inside(self, *, remote: bool = True) -> Iterator[None]:
        """Work in the surroundings of the bench. If `remote`, the LLM counts as one on another machine."""
        handler = _Handler(self)
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if "proxy" in name.lower()]:
                patch.delenv(name)
            patch.chdir(self.root)
            patch.setenv("R2MED_HOME", str(self.home))
            patch.setenv("HF_HOME", str(self.root / "hub"))
            patch.setattr(tempfile, "tempdir", str(self.temporary))
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
            patch.setattr("r2med.evaluation.advice.ladder.is_here", lambda *_: False)  # no models: they keep no texts
            if remote:
                patch.setattr(Endpoint, "is_local", property(lambda endpoint: False))
            self.warned = False
            self.unwarned.clear()
            logger = logging.getLogger("r2med")
            logger.addHandler(handler)
            try:
                yield
            finally:
                logger.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self._bench = bench

    def emit(self, record: logging.LogRecord) -> None:
        self._bench.warned |= "texts are sent to" in record.getMessage()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Import the tables and make what later rows read: records, answers, an overlay, nuggets, an entry, a pack."""
    with chat_server.serve() as server:
        made = Bench(tmp_path_factory.mktemp("privacy"), server)
        server.otherwise = quoting(_is_relevant, made.saw)
        for folder in (made.home, made.temporary):
            folder.mkdir()
        _write_tables(made.root)
        with made.inside():
            r2med.import_data([made.root / "notes.csv", made.root / "questions.csv"], made.ward)
            made.run("run", "bm25", "bm25(b=0)", f"hyde({LLM}) → bm25", "--data", "ward", *made.asked)
            made.run("answer", "bm25", "--reader", LLM, "--data", "ward", *made.asked)
            made.run("judge", "--llm", LLM, "--data", "ward", "--depth", "2", "--untested", *made.asked)
            made.run("nuggets", "--data", "ward", "--llm", LLM, *made.asked)
            made.run("submit", "bm25", "--out", "entry.json")
            made.run("pack", "bm25", "--data", "ward", "--out", "ward.zip", *made.asked)
            made.run("build", "run", "plan.toml", "--out", "built", "--llm", LLM, *made.asked)
            made.run("lock", "bm25", "--data", "ward", "--out", "plan.lock")
            made.clear("ward", "built/small")
        yield made


def _write_tables(root: Path) -> None:
    notes = [
        [f"n{n}{part}", f"Mr. Jones came on 3 May 2021: {NOTE} {part} of the {topic} {topic}. True for the {topic}."]
        for n, topic in enumerate(TOPICS)
        for part in "abc"
    ]
    notes += [[f"x{n}", f"A {NOTE} letter about harbour number {n} and its boats."] for n in range(30)]
    asked = [
        [f"What ails the {topic} of Mr. Jones, {QUERY}?", f"{topic}{ANSWER}", f"n{n}a"]
        for n, topic in enumerate(TOPICS)
    ]
    for name, rows in (
        ("notes.csv", [["id", "text"], *notes]),
        ("questions.csv", [["question", "answer", "relevant"], *asked]),
        ("exam.csv", [["question", "answer"], *(row[:2] for row in asked)]),
    ):
        with (root / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    steps = json.dumps(["read-table(exam.csv)", "reason"])
    (root / "plan.toml").write_text(f'name = "small"\nsteps = {steps}\n')


def _is_relevant(prompt: str) -> bool:
    """Return True if a prompt of a judge has a question and a passage about the same organ."""
    question, passage = re.search(r"ails the (\w+)", prompt), re.search(rf"{NOTE} [abc] of the (\w+)", prompt)
    return bool(question and passage and question[1] == passage[1])


def _predictions(out: Path) -> Path:
    """Write the predictions of another tool."""
    file = out / "ward_predictions.json"
    model = {"model_name": "org/model"}
    file.write_text(json.dumps({"mteb_model_meta": model, "default": {"test": {"q1": {"n0a": 1.0}}}}))
    return file


Row = Callable[[Bench, Path], Any]
"""How a command or function is called: with the bench and an empty folder. It may return a further dataset to clear."""


def typed(*words: object) -> Row:
    """Return the row of a command. "{out}", "{data}" and names of the bench are filled in."""

    def row(bench: Bench, out: Path) -> None:
        places = {"{out}": out, "{data}": bench.data, "{record}": bench.record, "{root}": bench.root}
        places["{run}"] = bench.record.with_suffix(".trec.gz")
        places["{predictions}"] = _predictions(out)
        asked = [word for each in words for word in (bench.asked if each == "{asked}" else [each])]
        filled = [re.sub(r"\{\w+\}", lambda match: str(places[match[0]]), str(word)) for word in asked]
        bench.run(*filled, *(["--offline"] if bench.offline and _has_flag(filled, "--offline") else []))

    return row


def refused(row: Row, why: str) -> Row:
    """Return a row that ends with an error of the user."""

    def expecting(bench: Bench, out: Path) -> None:
        with suppress(UserError) if bench.offline else pytest.raises(UserError, match=why):
            row(bench, out)

    return expecting


def after_run(row: Row) -> Row:
    """Return a row that needs what a run keeps in the store, and records in the folder `results` of its own."""

    def after(bench: Bench, out: Path) -> None:
        if not bench.offline:
            asked = ("--reader", LLM, "--data", bench.data, "--out", out / "results", *bench.asked)
            bench.run("answer", "bm25", *asked)
        row(bench, out)

    return after


def _has_flag(words: Sequence[str], flag: str) -> bool:
    found: Any = command()
    for word in words:
        if not hasattr(found, "commands"):
            break
        found = found.commands[word]
    return any(flag in parameter.opts for parameter in found.params)


def served(work: Callable[[Callable[[str], None]], None], *paths: tuple[str, Any]) -> None:
    """Serve in this thread, send requests from another one, and stop with Ctrl-C."""

    def ask(line: str) -> None:
        address = re.findall(r"http://[^/ ]+", line)[0]
        with suppress(httpx.HTTPError):
            for path, body in paths:
                httpx.request("POST" if body else "GET", address + path, json=body, timeout=60)
        os.kill(os.getpid(), signal.SIGINT)

    work(lambda line: threading.Thread(target=ask, args=(line,)).start())


NOTHING_KEPT = {
    "prints what this package holds": ["list", "cache list"],
    "removes what is kept; the test itself uses it": ["cache clear"],
    "writes files of this package": ["build example", "data example"],
    "looks at this machine, and encodes two sentences of its own": ["doctor"],
    "fetches public datasets": ["data fetch"],
}
"""Why -> commands without a row."""

COMMANDS: dict[str, Row] = {
    "run": typed(
        *("run", "rm3 → bm25", f"lamer({LLM}) → bm25", f"search-r1({LLM}) → bm25", f"bm25 → listwise({LLM})@5"),
        *("--data", "{data}", "--out", "{out}/results", "{asked}"),
    ),
    "generate": typed("generate", f"hyde({LLM})", "--data", "{data}", "--out", "{out}/texts", "{asked}"),
    "lock": typed("lock", "bm25", "--data", "{data}", "--out", "{out}/plan.lock"),
    "compare": typed("compare", "--data", "{data}", "--out", "{out}/report", "--overlay", "overlays/judged.jsonl"),
    "score": typed("score", "--qrels", "{root}/ward/qrels.jsonl", "--run", "{run}"),
    "answer": typed(
        *("answer", "bm25", "--reader", LLM, "--judge", LLM, "--data", "{data}", "--nuggets", "nuggets.jsonl"),
        *("--out", "{out}/results", "--form", "open", "{asked}"),
    ),
    "analyse": typed(
        *("analyse", "difficulty", "contamination", "--data", "{data}", "--llm", LLM),
        *("--out", "{out}/analysis", "{asked}"),
    ),
    "reproduce": refused(
        typed("reproduce", "bm25", "--data", "{data}", "--out", "{out}/results"), "no scores are known"
    ),
    "why": typed("why", "{record}", "q1", "--data", "{data}"),
    "records import": typed("records", "import", "{predictions}", "--data", "{data}", "--out", "{out}"),
    "records export": typed("records", "export", "bm25", "--out", "{out}/runs"),
    "board": typed("board", "--data", "{data}", "--out", "{out}/board", "--overlay", "overlays/judged.jsonl"),
    "search": typed("search", "{data}", QUESTION, "--system", f"hyde({LLM}) → bm25", "{asked}"),
    "serve": typed("serve", "{data}", "--system", f"hyde({LLM}) → bm25", "--mcp", "stdio", "{asked}"),
    "data import": typed("data", "import", "notes.csv", "questions.csv", "--out", "{root}/ward", "--update", "--yes"),
    "data check": typed("data", "check", "{data}"),
    "show": typed("show", "{data}"),
    "data export": typed("data", "export", "{data}", "--out", "{out}/exported"),
    "data training": typed(
        *("data", "training", "{data}", "--overlay", "overlays/judged.jsonl", "--folds", "2", "--out", "{out}/train")
    ),
    "advise": typed("advise", "{data}", "--llm", LLM, "{asked}"),
    "audit": typed("audit", "{data}", "--against", "notes.csv", "--out", "{out}/audit.html"),
    "judge": typed(
        *("judge", "--llm", LLM, "--data", "{data}", "--depth", "3", "--untested"),
        *("--out", "{out}/judged.jsonl", "{asked}"),
    ),
    "nuggets": typed("nuggets", "--data", "{data}", "--llm", LLM, "--out", "{out}/nuggets.jsonl", "{asked}"),
    "review serve": refused(
        typed("review", "serve", "overlays/judged.jsonl", "--results", "{out}", "--data", "{data}", "--port", "0"),
        "no records",
    ),
    "review export": refused(
        typed("review", "export", "nuggets.jsonl", "--data", "{data}", "-o", "{out}/kept.jsonl"),
        "people have reviewed nothing",
    ),
    "review import": refused(typed("review", "import", "built", "{out}/none.csv"), "none.csv"),
    "review show": typed("review", "show", "built"),
    "submit": typed("submit", "bm25", "--out", "{out}/entry.json"),
    "verify": typed("verify", "entry.json", "--runs", "results", "--data", "{data}"),
    "pack": after_run(
        typed(
            *("pack", "bm25", "--data", "{data}", "--results", "{out}/results", "--out", "{out}/ward.zip", "{asked}"),
        )
    ),
    "unpack": typed("unpack", "ward.zip", "--out", "{out}/results"),
    "build run": lambda bench, out: _built(bench, out),
    "build show": typed("build", "show", "built", "-n", "5"),
}


def _built(bench: Bench, out: Path) -> str:
    bench.run("build", "run", "plan.toml", "--out", out / "built", "--llm", LLM, *bench.asked)
    return str(out / "built" / "small")


def _langchain(bench: Bench, out: Path) -> None:
    pytest.importorskip("langchain_core")
    system = r2med.System.parse(f"hyde({LLM}) → bm25", bench.setup)
    retriever = r2med.LangChainRetriever(system=system, data=bench.data)
    retriever.invoke(QUESTION)
    retriever._live.system.runtime.store.close()  # as the end of the process does


def _inspect(bench: Bench, out: Path) -> None:
    pytest.importorskip("inspect_ai", reason="its fsspec conflicts: it needs an environment of its own")
    r2med.inspect_task(bench.data, r2med.System.parse("bm25", bench.setup))


def _pyterrier(bench: Bench, out: Path) -> None:
    frames, _ = pytest.importorskip("pandas"), pytest.importorskip("pyterrier")
    system = r2med.System.parse(f"hyde({LLM}) → bm25", bench.setup)
    r2med.PyTerrierRetriever(system, bench.data).transform(
        frames.DataFrame([["q", QUESTION]], columns=["qid", "query"])
    )


VALUES = [
    *("Comparison", "Corpus", "Cost", "Dataset", "Lock", "Measure", "Overlay", "OverlayLabel", "Qrels"),
    *("Query", "Record", "Results", "Run", "Runtime", "Scores", "Setup", "System", "UserError"),
]
NOTHING_KEPT_BY_FUNCTIONS = {
    "a value, a protocol or an error; the functions that use it have rows": VALUES,
    "computes from its arguments": ["score", "with_overlays"],
    "calls another function, and stops it before it does anything": ["plan"],
    "looks at this machine, and encodes two sentences of its own": ["doctor"],
    "writes or shows what this package holds": ["example_build", "example_data", "list_"],
    "removes or lists what is kept; the test itself uses it": ["clear_cache", "list_cache"],
    "fetches public datasets": ["fetch_data"],
}
"""Why -> public names without a row. Those of r2med.values, r2med.extend and r2med.agreement keep nothing."""

FUNCTIONS: dict[str, Row] = {
    "LangChainRetriever": _langchain,
    "inspect_task": _inspect,
    "PyTerrierRetriever": _pyterrier,
    "advise": lambda bench, out: r2med.advise(bench.data, bench.setup, llms=LLM, models=[], rerankers=[]),
    "analyse": lambda bench, out: r2med.analyse(
        *("difficulty", "contamination"),
        data=[bench.data],
        out=out,
        setup=Setup(llm=LLM, **bench.settings),
    ),
    "answer": lambda bench, out: r2med.answer(
        "bm25", LLM, bench.data, judge=LLM, out=out / "results", **bench.settings
    ),
    "audit": lambda bench, out: r2med.audit(bench.data),
    "board": lambda bench, out: r2med.board(out=out / "board", data=[bench.data]),
    "check_data": lambda bench, out: r2med.check_data(bench.data),
    "compare": lambda bench, out: r2med.compare(data=[bench.data], overlays=["overlays/judged.jsonl"]),
    "evaluate": lambda bench, out: r2med.evaluate(
        r2med.System.parse(f"hyde({LLM}) → bm25", bench.setup), bench.data, out
    ),
    "training_data": lambda bench, out: r2med.training_data(bench.data, out / "train", folds=2),
    "why": lambda bench, out: r2med.why(bench.record, "q1", data=bench.data, setup=bench.setup),
    "export_data": lambda bench, out: r2med.export_data(bench.data, out / "exported"),
    "export_records": lambda bench, out: r2med.export_records("bm25", out=out),
    "export_review": refused(
        lambda bench, out: r2med.export_review("nuggets.jsonl", out / "kept.jsonl", data=bench.data),
        "people have reviewed nothing",
    ),
    "generate": lambda bench, out: r2med.generate("hyde", bench.data, llm=LLM, out=out, **bench.settings),
    "import_data": lambda bench, out: r2med.import_data(["notes.csv", "questions.csv"], bench.ward, update=True),
    "import_records": lambda bench, out: r2med.import_records(_predictions(out), bench.data, out),
    "import_review": refused(lambda bench, out: r2med.import_review("built", out / "none.csv"), "none.csv"),
    "judge": lambda bench, out: r2med.judge(
        llms=LLM, data=bench.data, depth=3, untested=True, out=out / "judged.jsonl", setup=bench.setup
    ),
    "load": lambda bench, out: r2med.load(bench.data),
    "lock": lambda bench, out: r2med.lock("bm25", bench.data, out / "plan.lock", **bench.settings),
    "names": lambda bench, out: r2med.names(bench.data),
    "nuggets": lambda bench, out: r2med.nuggets(bench.data, LLM, out / "nuggets.jsonl", bench.setup),
    "pack": after_run(
        lambda bench, out: r2med.pack(
            "bm25", out / "ward.zip", results=out / "results", data=[bench.data], **bench.settings
        )
    ),
    "reproduce": refused(
        lambda bench, out: r2med.reproduce(["bm25"], [bench.data], out=out, setup=bench.setup),
        "no scores are known",
    ),
    "run_build": lambda bench, out: str(
        r2med.run_build("plan.toml", out / "b", llm=LLM, **bench.settings).folder.dataset
    ),
    "run": lambda bench, out: r2med.run(
        [f"query2doc({LLM}) → bm25", f"bm25 → groupwise({LLM})@5"], bench.data, out=out / "results", **bench.settings
    ),
    "search": lambda bench, out: r2med.search(bench.data, QUESTION, f"hyde({LLM}) → bm25", **bench.settings),
    "serve": lambda bench, out: served(
        lambda ready: r2med.serve(bench.data, [f"hyde({LLM}) → bm25"], bench.setup, port=0, ready=ready),
        ("/search", {"question": QUESTION}),
        ("/retrieve", {"queries": [QUESTION]}),
    ),
    "serve_review": lambda bench, out: served(
        lambda ready: r2med.serve_review("exam.csv", port=0, ready=ready, kind="question"), ("/", None)
    ),
    "show": lambda bench, out: r2med.show(bench.data),
    "show_build": lambda bench, out: r2med.show_build("built", "exam-2"),
    "show_review": lambda bench, out: r2med.show_review("built"),
    "submit": lambda bench, out: r2med.submit(["bm25"], out / "entry.json"),
    "unpack": lambda bench, out: r2med.unpack("ward.zip", out / "results"),
    "verify": lambda bench, out: r2med.verify([Path("entry.json")], Path("results"), [bench.data]),
}


def all_commands() -> list[str]:
    """Return the words of every command."""

    def below(found: Any, words: tuple[str, ...]) -> Iterator[str]:
        if not hasattr(found, "commands"):
            yield " ".join(words)
        for name, inner in getattr(found, "commands", {}).items():
            yield from below(inner, (*words, name))

    return sorted(below(command(), ()))


def test_every_command_and_every_public_name_has_a_row_or_a_reason() -> None:
    reasons = [name for names in NOTHING_KEPT.values() for name in names]
    assert sorted([*COMMANDS, *reasons]) == all_commands()
    reasons = [name for names in NOTHING_KEPT_BY_FUNCTIONS.values() for name in names]
    assert sorted([*FUNCTIONS, *reasons]) == sorted(r2med.__all__)


LIVE = ("r2med serve", "r2med.serve", "r2med.LangChainRetriever")
"""Rows whose answers of LLMs end with the server."""
ROWS = {
    **{f"r2med {name}": row for name, row in COMMANDS.items()},
    **{f"r2med.{name}": row for name, row in FUNCTIONS.items()},
}


@pytest.mark.parametrize("name", some_by_day(ROWS, 3))
def test_no_byte_of_a_cleared_dataset_is_left(
    name: str, bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.offline, bench.data = False, str(bench.ward)
    with bench.inside():
        before = len(bench.server.requests)
        further = ROWS[name](bench, tmp_path)
        assert bench.unwarned == [], "the warning comes before the first text is sent"
        if len(bench.server.requests) > before and name not in LIVE:
            assert bench.kept("journal"), "the LLM quotes, so its answers must be there before they are cleared"
        capsys.readouterr()
        bench.clear(bench.ward, *([further] if isinstance(further, str) else []), results=tmp_path)
        assert bench.kept() == set()
        assert files_holding(PLANTED, tmp_path / "results", tmp_path / "board") == set()
        left = {each.rpartition(": ")[0] for each in files_holding(LONG, tmp_path)}
        listed = capsys.readouterr().out
        # Several files of one folder are one line with their number.
        assert {
            path
            for path in left
            if not any(f"delete it yourself: {named}" in listed for named in (f"{path}\n", f"{Path(path).parent}/ ("))
        } == set()


@pytest.mark.parametrize("name", some_by_day(reversed(ROWS), 3))
def test_offline_no_name_is_looked_up(name: str, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    bench.offline, bench.data = True, HUB
    for each in ("getaddrinfo", "gethostbyname", "gethostbyaddr"):
        monkeypatch.setattr(socket, each, _watched(getattr(socket, each), looked_up))
    switch = nullcontext() if _can_be_offline(name) else offline()  # as R2MED_OFFLINE does before the start
    with bench.inside(remote=False), switch, suppress(UserError):
        ROWS[name](bench, tmp_path)
    assert looked_up == []


def _can_be_offline(name: str) -> bool:
    """Return True if a command has the flag --offline, or a function has a setting for it."""
    if name.startswith("r2med "):
        return _has_flag(name.split()[1:], "--offline")
    function = name.removeprefix("r2med.")
    if function in ("LangChainRetriever", "PyTerrierRetriever", "evaluate", "inspect_task"):
        return True  # by their system
    return bool({"setup", "settings"} & set(inspect.signature(getattr(r2med, function)).parameters))


def _watched(look_up: Callable[..., Any], looked_up: list[str]) -> Callable[..., Any]:
    def watched(host: Any, *rest: Any, **more: Any) -> Any:
        if host and not re.fullmatch(r"[\d.:]+|localhost", str(host)):
            looked_up.append(str(host))
            raise OSError(f"{host} was looked up")
        return look_up(host, *rest, **more)

    return watched


def test_the_hub_dataset_of_the_offline_pass_is_not_a_folder() -> None:
    assert cards()[HUB].hub and not cards()[HUB].folder
