"""Values that must not change: run one list of commands with an earlier commit and with this tree, and compare them.

    python benchmarks/unchanged.py                 # against 6cc73424, the commit before version 5
    python benchmarks/unchanged.py --kept DIR      # with the outputs of that commit that DIR holds

What the earlier commit writes is kept in `build/unchanged`, so it runs once; its folder gets its name when it is
complete. The LLM is a server of this script (`unchanged_llm.py`), the models are tiny. Values are read by
`unchanged_values.py`. A value that differs is a fault unless `EXCEPTIONS` names it, one that is gone unless `GONE`
does; then the script ends with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from unchanged_llm import NAME as LLM
from unchanged_llm import serving
from unchanged_values import Comparison, Key, Value, compare, read_values

ROOT = Path(__file__).parents[1]
EARLIER = "6cc73424ff91"

CONTROLS = (
    "a sentence of another passage",
    "a sentence of the cited passage",
    "a wrong answer with orders to the judge",
    "an answer that denies the reference",
    "an answer with another reference",
    "an answer with the reference",
    "denied nuggets",
    "nuggets of another question",
    "the nuggets themselves",
    "the reader's sentence with another passage",
)
"""Controls of a judge of answers, as records name them."""

EXCEPTIONS: dict[Key, str] = {
    Key("advise", measure="not_tried"): "52 row 14: messages name a setting and its flag",
    Key("audit", query="turned-labels", measure="findings numbers in_order"): "52 row 10: one BM25",
    Key("compare", condition="answers", measure="notices"): "51: equal notes are one",
    Key("prompts judge", measure="digest"): "52 row 10: one set of controls",
    Key("table reliability-splits"): "52 row 8: halves of all queries, not of each dataset",
    **{
        Key(kind, measure=measure): "53.1: one family of sign flips for all pairs and datasets"
        for kind, measure in (
            ("advise", "rungs p"),
            ("compare", "pairs p"),
            ("compare", "pairs p_adjusted"),
            ("compare", "slices p"),
            ("compare", "slices p_adjusted"),
        )
    },
    **{
        Key("advise", measure=f"rungs {part}"): "53.1: what is fused is chosen on other folds"
        for part in ("value", "low", "high", "behind", "behind_low", "behind_high")
    },
    **{
        Key(
            "answer", query="mean", measure=measure
        ): "53.2: an answer that abstains has no citation or nugget precision"
        for measure in ("citation-support", "citation-relevance", "nugget-precision")
    },
    Key("ranking", system="bm25+medcpt", dataset="large"): "52 row 12: shards of 512 documents have other batches",
    **{
        Key("answer", measure=f"judge controls {control}"): "52 row 10: one set of controls, with all answers"
        for control in CONTROLS
    },
}
"""What has another value on purpose -> the line of an issue that wants it. Empty fields of a key stand for all.

A key names one measure, one system or one table: `Key("compare", measure="pairs low")`, `Key("table reliability-gap")`.
"""
GONE: dict[Key, str] = {
    Key("advise", measure="in_budget"): "52 row 9: --at",
    Key("advise", measure="rungs tokens"): "52 row 9: --at",
    Key("advise", measure="within"): "52 row 9: --at",
    Key("answer", measure="undecided"): "52 row 10: an open answer has an accuracy only by a judge",
    **{
        Key("answer", measure=measure): "53.2: an answer that abstains has no citation or nugget precision"
        for measure in ("citation-support", "citation-relevance", "nugget-precision")
    },
    **{
        Key("answer", measure=f"judge mixed {control}"): "52 row 10: the second set of controls" for control in CONTROLS
    },
    **{
        Key(kind, measure=f"facts judge tests {set_of}"): "52 row 10: one set of controls, --accept"
        for kind in ("build", "build with judges")
        for set_of in ("first", "mixed", "untested")
    },
    **{
        Key(kind, measure=f"facts linked chunks {part}"): "52 row 7: rates by stratum"
        for kind in ("build", "build with judges")
        for part in ("given", "retrieved")
    },
    **{
        Key("compare", measure=measure): f"52 row 9: {what}"
        for measure, what in {
            "means from_queries": "plans of runs and queries",
            "means from_runs": "plans of runs and queries",
            "means mean most": "accuracies between bounds",
            "means most": "accuracies between bounds",
            "pairs carried": "5 queries make N %",
            "pairs effect": "d_z",
            "pairs from_queries": "plans of runs and queries",
            "pairs from_runs": "plans of runs and queries",
            "pairs movers a": "most-moved queries",
            "pairs movers b": "most-moved queries",
            "pairs turns_on_new_queries": "turned orders",
            "pairs turns_on_same_queries": "turned orders",
        }.items()
    },
    **{
        Key("compare", measure=f"classes {system}"): "53.1: marks in place of classes"
        for system in ("bm25", "bm25(k1=1.2, b=0.75)", "hyde(author) → bm25", "rm3 → bm25")
    },
    Key("prompts analyse answers"): "52 row 8: LLM-text answers",
    Key("table datasheet Controls of the judges"): "52 row 10: one set of controls, new labels of rows",
    Key("table datasheet Overlap of a query and a document"): "52 row 8: Jaccard",
    Key("table datasheet Side by side: coverage"): "52 row 8: shares below a limit",
    Key("table datasheet Side by side: relative BM25"): "52 row 8: relative BM25",
    **{
        Key(f"table {name}"): "52 row 8: analyses of one paper"
        for name in (
            *("answers", "answers-agreement", "answers-llms", "answers-queries", "answers-slices"),
            *("contamination", "contamination-questions"),  # one table, with other columns
            *("difficulty-document-length", "difficulty-queries", "difficulty-reasoning"),
            *("difficulty-relevant-documents", "measures-agreement"),
            *("overlap-bm25", "overlap-by-cosine", "overlap-by-coverage", "overlap-by-idf-weighted"),
            *("overlap-by-jaccard", "overlap-by-relative-bm25", "overlap-cosine", "overlap-queries", "overlap-terms"),
            *("rank-shift", "reliability-copies", "reliability-duplicates", "reliability-labels"),
            *("reliability-queries", "reliability-ranks", "reliability-removal", "reliability-splits", "worth"),
        )
    },
}
"""What is gone on purpose -> the line of an issue that removes it."""


class Command(NamedTuple):
    """A command of r2med. What it prints as JSON is kept under its name."""

    name: str
    words: str
    now: str | None = None
    """Its words in this tree, where they have changed; empty if the command is gone."""


BASIC = "bm25 'rm3 → bm25' 'bm25(k1=1.2, b=0.75)'"
COMPARED = f"{BASIC} 'hyde(author) → bm25'"
ANALYSED = " ".join(f"--system {system}" for system in ("bm25", "'rm3 → bm25'", "'hyde(author) → bm25'"))
ASKING = f"--llm {LLM} --base-url SERVER"
DENSE = "--data demo/Biology --data demo/Medical-Sciences"

COMMANDS = [
    Command("run words", f"run {BASIC} 'hyde(author) → bm25' --data demo"),
    Command(
        "run other words",
        "run 'bm25(scorer=lucene)' 'rocchio → bm25' 'fuse(bm25+bm25(k1=1.2), weights=1:3)' --data demo",
    ),
    Command("run dense", f"run minilm bm25+minilm '[hyde(author) → bm25]+[minilm]' {DENSE}"),
    Command("run late and sparse", "run reason-moderncolbert splade-v3 medcpt --data demo/Medical-Sciences"),
    Command(
        "run cross-encoders",
        "run 'bm25 → bge-reranker@20' 'bm25 → monobert@20' 'bm25 → maxsim(reason-moderncolbert)@20' "
        "--data demo/Medical-Sciences",
    ),
    Command(
        "run expansions",
        f"run 'hyde({LLM}) → bm25' 'query2doc({LLM}) → minilm' 'lamer({LLM}) → bm25' 'queries({LLM}) → bm25' "
        f"'thinkqe({LLM}) → bm25' --data demo/Biology --base-url SERVER",
    ),
    Command(
        "run LLM rerankers",
        f"run 'bm25 → listwise({LLM})@10' 'bm25 → pointwise({LLM})@5' 'bm25 → groupwise({LLM})@10' "
        f"'bm25 → rankgpt({LLM})@20' 'bm25 → setwise({LLM})@5' --data demo/Biology --base-url SERVER",
    ),
    Command(
        "run repeats", f"run 'bm25 → groupwise({LLM})@20' --repeats 3 --data demo/Medical-Sciences --base-url SERVER"
    ),
    Command(
        "run agents",
        f"run 'agent({LLM})' 'search-r1({LLM}) → bm25' 'search-o1({LLM}) → bm25' --data demo/Medical-Sciences "
        "--base-url SERVER",
    ),
    Command("run large", f"run {BASIC} 'bm25(scorer=lucene)' 'rocchio → bm25' --data ./large"),
    Command("run large, dense", "run medcpt bm25+medcpt --data ./large"),
    Command("score", "score --qrels large/qrels.jsonl --run made-up.trec --per-query --format json"),
    Command("judge", f"judge {BASIC} --data demo/Biology --data demo/PMC-Clinical {ASKING} -o labels/judged.jsonl"),
    Command("nuggets", f"nuggets --data demo/Biology {ASKING} -o labels/nuggets.jsonl"),
    Command(
        "answer openly",
        f"answer bm25 'rm3 → bm25' --reader {LLM} --judge {LLM} --form open --data demo/Medical-Sciences "
        "--data demo/Biology --base-url SERVER",
    ),
    Command(
        "answer by choice",
        f"answer bm25 --reader {LLM} --form choice --data demo/MedQA-Diag --data demo/MedXpertQA-Exam "
        "--base-url SERVER",
    ),
    Command(
        "answer as agent",
        f"answer 'agent({LLM})' --judge {LLM} --condition searched --form open --data demo/Medical-Sciences "
        "--base-url SERVER",
    ),
    Command("compare", f"compare {COMPARED} --data demo --format json"),
    Command(
        "compare, with a baseline",
        f"compare {COMPARED} --data demo --baseline bm25 --slice task --slice length --format json",
    ),
    Command("compare, recall", f"compare {COMPARED} --data demo --measure R@10 --format json"),
    Command("compare, overlay", f"compare {BASIC} --overlay labels/judged.jsonl --data demo/Biology --format json"),
    Command("compare, answers", "compare bm25 'rm3 → bm25' --answers --format json"),
    Command("audit, demo", "audit demo/Biology --format json"),
    Command("audit, large", "audit ./large --against ward/questions.csv --against large/query.jsonl --format json"),
    Command(
        "advise",
        "advise demo/Biology --model minilm --format json -o advice",
        now="advise demo/Biology --model minilm --format json",
    ),
    Command(
        "data training", "data training demo/Medical-Sciences -o training --format triplets --format listwise --folds 3"
    ),
    Command(
        "data training, labels",
        "data training demo/Biology -o training-labels --overlay labels/judged.jsonl --format negatives --folds 2",
    ),
    Command("build example", "build example exam -o plan"),
    Command("build", "build run plan/plan.toml -o made/exam --format json"),
    Command("build with judges", "build run judged-plan/plan.toml -o made/judged --base-url SERVER --format json"),
    Command("data import", "data import ward/notes.csv ward/questions.csv -o made/imported --yes"),
    *(
        Command(f"analyse {name}", f"analyse {name} {ANALYSED} --data demo -o analysis-{name}", now)
        for name, now in (
            *(("reliability", None), ("measures", ""), ("slices", None)),
            *(("rank-shift", ""), ("complementarity", None), ("difficulty", None)),
        )
    ),
    Command("analyse overlap", f"analyse overlap --model minilm {DENSE} -o analysis-overlap"),
    Command(
        "analyse contamination",
        f"analyse contamination --data demo/Biology --queries 5 {ASKING} -o analysis-contamination",
    ),
    Command("analyse answers", f"analyse answers --data demo/Biology --queries 4 {ASKING} -o analysis-answers", ""),
    Command("analyse downstream", "analyse downstream --data demo/Biology -o analysis-downstream", ""),
    Command("why", "why bm25 demo/Biology 0 --format json"),
    Command(
        "search, minilm",
        "search demo/Biology 'Why do some people sneeze in bright light?' --system minilm --format json",
    ),
]
SECONDS = 900
"""A command that takes longer is stopped, and counts as refused."""


def run_all(source: Path, inputs: Path, folder: Path, is_earlier: bool) -> dict[str, str]:
    """Run every command with the package in `source`, in a folder and a store of its own.

    Return the names of the commands that were refused, and what they said.
    """
    shutil.copytree(inputs / "data", folder)
    for name in ("printed", "prompts", "labels"):
        (folder / name).mkdir()
    variables = {
        **{"PYTHONPATH": str(source), "R2MED_HOME": str(folder / "home"), "R2MED_MODELS": str(inputs / "models")},
        **{"R2MED_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    }
    refused = {}
    prompts: set[str] = set()
    with serving(inputs / "demo", prompts) as address:
        for command in COMMANDS:
            words = command.words if is_earlier or command.now is None else command.now
            if not words:
                continue
            prompts.clear()
            began = time.monotonic()
            fault = _run(command.name, shlex.split(words.replace("SERVER", address)), folder, variables)
            print(f"{time.monotonic() - began:6.1f} s  r2med {words}", flush=True)
            if fault:
                print(f"REFUSED: {fault}", flush=True)
                refused[command.name] = fault
            elif prompts:
                digest = hashlib.sha256(" ".join(sorted(prompts)).encode()).hexdigest()
                counts = json.dumps({"number": len(prompts), "digest": digest})
                (folder / "prompts" / f"{command.name}.json").write_text(counts, encoding="utf-8")
    shutil.rmtree(folder / "home")
    (folder / "refused.json").write_text(json.dumps(refused), encoding="utf-8")
    return refused


def _run(name: str, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> str:
    """Run a command, and keep what it prints as JSON. Return why it was refused; empty if it was not."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "r2med", *words],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    if "json" in words and done.stdout.strip():  # also with code 1: `audit` found something
        (folder / "printed" / f"{name}.json").write_text(done.stdout, encoding="utf-8")
        return ""
    return (done.stderr.strip().splitlines() or ["no message"])[-1] if done.returncode else ""


def earlier_outputs(commit: str, kept: Path) -> Path:
    """Return the folder with the inputs and the outputs of a commit; they are made once."""

    def make(folder: Path) -> None:
        tree = folder / "tree"
        tree.mkdir()
        archive = subprocess.run(["git", "archive", commit, "src", "tests"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        maker = Path(__file__).with_name("unchanged_inputs.py")
        subprocess.run([sys.executable, maker, tree, folder / "inputs"], check=True, capture_output=True)
        if refused := run_all(tree / "src", folder / "inputs", folder / "outputs", is_earlier=True):
            sys.exit(f"commit {commit} refuses commands of the list: {refused}")
        shutil.rmtree(tree)

    place = kept / f"{commit[:12]}-{_digest(commit)}"
    print(f"commit {commit[:12]}, made once; its outputs stay in {place}", flush=True)
    return made_once(place, make)


def made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder; `make` fills it if it does not exist.

    It is filled under another name and renamed at the end, so what a killed run leaves is never taken for whole. If two
    processes make it at once, the first one's stays.
    """
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="unfinished-") as name:
            aside = Path(name, "folder")
            aside.mkdir()
            make(aside)
            if not place.exists():
                aside.rename(place)
    return place


def _digest(commit: str) -> str:
    """Return a digest of everything that the outputs of a commit depend on."""
    files = [Path(__file__).with_name(f"unchanged_{part}.py").read_text(encoding="utf-8") for part in ("llm", "inputs")]
    versions = [sys.version, *(version(package) for package in ("numpy", "scipy", "torch", "transformers"))]
    commands = [(command.name, command.words) for command in COMMANDS]
    return hashlib.sha256(repr((commit, commands, files, versions)).encode()).hexdigest()[:10]


def report(
    before: Mapping[Key, Value], now: Mapping[Key, Value], compared: Comparison, refused: Mapping[str, str], lines: int
) -> int:
    """Print counts of each kind, what differs and what is gone. Return the number of faults."""
    kinds = Counter(key.kind for key in (*before, *compared.new))
    counts = {
        name: Counter(key.kind for key in getattr(compared, name)) for name in ("equal", "differs", "gone", "new")
    }
    width = max(map(len, kinds))
    print(f"\n{'kind':{width}} " + "".join(f"{name:>9}" for name in ("values", *counts)))
    for kind in sorted(kinds):
        total = sum(counts[name][kind] for name in ("equal", "differs", "gone"))
        print(f"{kind:{width}} {total:9,}" + "".join(f"{counts[name][kind]:9,}" for name in counts))
    print(f"{'all':{width}} {len(before):9,}" + "".join(f"{each.total():9,}" for each in counts.values()))
    for name, said in refused.items():
        print(f"REFUSED {name}: {said}")
    faults = 0
    for title, keys, reasons in (("DIFFERS", compared.differs, EXCEPTIONS), ("GONE", compared.gone, GONE)):
        named = Counter(reason for key in keys if (reason := _reason(key, reasons)))
        for reason, count in named.items():
            print(f"{count:,} {title.lower()} on purpose: {reason}")
        faulty = [key for key in keys if not _reason(key, reasons)]
        faults += len(faulty)
        for key in faulty[:lines]:
            print(f"{title} {key}: {_short(before[key])}" + (f" → {_short(now[key])}" if key in now else ""))
        if len(faulty) > lines:
            print(f"{title} and {len(faulty) - lines:,} more")
    return faults


def _reason(key: Key, reasons: Mapping[Key, str]) -> str:
    fitting = (why for named, why in reasons.items() if all(not n or n == k for n, k in zip(named, key, strict=True)))
    return next(fitting, "")


def _short(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def main() -> None:
    """Run what must be run, compare, and print what differs and what is gone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default=EARLIER)
    parser.add_argument("--kept", type=Path, default=ROOT / "build/unchanged", help="folder of the earlier outputs")
    parser.add_argument(
        "--compare-only", action="store_true", help="compare the outputs of the last run, and run nothing"
    )
    parser.add_argument("--lines", type=int, default=40, help="number of values that differ or are gone to show")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # removes what is unfinished; after SIGKILL it stays
    commit = subprocess.run(
        ["git", "rev-parse", options.commit], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    earlier = earlier_outputs(commit, options.kept.resolve())
    outputs = ROOT / "build/unchanged-now"
    if not options.compare_only:
        shutil.rmtree(outputs, ignore_errors=True)
        print(f"this tree; its outputs stay in {outputs}", flush=True)
        run_all(ROOT / "src", earlier / "inputs", outputs, is_earlier=False)
    refused = json.loads((outputs / "refused.json").read_text(encoding="utf-8"))
    before, now = read_values(earlier / "outputs"), read_values(outputs)
    faults = report(before, now, compare(before, now), refused, options.lines)
    sys.exit(f"{faults:,} values differ or are gone without a reason" if faults else 0)


if __name__ == "__main__":
    main()
