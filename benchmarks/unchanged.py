"""Values that must not change: run one list of commands with an earlier commit and with this tree, and compare them.

    python benchmarks/unchanged.py 24230716                    # the demo
    python benchmarks/unchanged.py 24230716 --data SciFact     # and a dataset folder

Every number in the records of systems and answers, in the tables of `compare` and in the CSV files of `analyse` is
compared without rounding. The LLM is a server of this script: its answer is a function of the prompt alone. A value
that changed on purpose is listed in `ON_PURPOSE` with its reason. The script ends with 1 if any other value differs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LLM = "fixed/llm"

SYSTEMS = [
    "bm25",
    "bm25(k1=1.2, b=0.75)",
    "rm3 → bm25",
    "minilm",
    "bm25+minilm",
    f"hyde({LLM}) → bm25",
    f"query2doc({LLM}) → minilm",
    f"bm25 → listwise({LLM})@10",
    f"bm25 → pointwise({LLM})@5",
    f"bm25 → groupwise({LLM})@10",
]
COMMANDS = [
    ["run", *SYSTEMS, "--data", "demo", "--base-url", "SERVER"],
    ["answer", "bm25", "--reader", LLM, "--form", "choice", "--data", "demo", "--queries", "4", "--base-url", "SERVER"],
    ["answer", "bm25", "--reader", LLM, "--form", "open", "--data", "demo", "--queries", "4", "--base-url", "SERVER"],
    ["compare", "--format", "json"],
    ["analyse", "overlap", "reliability", "measures", "slices", "rank-shift", "complementarity", "-o", "analysis"],
]
ON_DATA = ["run", "bm25", "bm25(k1=1.2, b=0.75)", "rm3 → bm25", "rocchio → bm25"]

ON_PURPOSE = {
    r"^answers/.*(accuracy|undecided|right|verdict)": "open answers: without a judge accuracy is a range",
    r"^answers/.*\bformat\b": "records of answers have format 2",
    r"^analysis/(reliability|queries).*": "queries needed: the pair and the range are named, variants are left out",
}
"""Pattern of a value's path -> why it differs from commit 24230716."""

NOT_VALUES = re.compile(
    r"(seconds|latency|created|date|time|version|p50|p95|key|sha256|hash|checksum|memory|settings|format|bytes)", re.I
)
"""Parts of records that are no results."""


class FixedLLM(BaseHTTPRequestHandler):
    """Answers with an order, a number or a sentence, which follow from the prompt alone."""

    def do_POST(self) -> None:
        """Answer one request of the chat protocol."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = answer_to("\n".join(str(message["content"]) for message in request["messages"]))
        delta = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
        usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}}
        whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
        if request.get("stream"):
            body = "".join(f"data: {json.dumps(part)}\n\n" for part in (delta, usage)) + "data: [DONE]\n\n"
        else:
            body = json.dumps(whole | {"usage": usage["usage"]})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if request.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def answer_to(prompt: str) -> str:
    """Return what the prompt asks for: a score, scores, an order of passages, a choice, or a passage of its words."""
    seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")

    def drawn(word: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{seed}{word}".encode()).digest()[:4], "big")

    words = re.findall(r"[A-Za-z]{5,}", prompt)
    start = seed % max(1, len(words) - 30)
    passage = " ".join(words[start : start + 30])
    count = re.search(r"(?:from 1 to|numbers of all) (\d+)", prompt)
    numbers = sorted((str(number) for number in range(1, int(count[1]) + 1)), key=drawn) if count else []
    if '{"score": 3.5}' in prompt:
        return f'Answer: {passage}\n{{"score": {seed % 11}}}'
    if '{"1": 3, "2": 8.5}' in prompt:
        return f"Answer: {passage}\n{json.dumps({number: drawn(number) % 11 for number in numbers})}"
    if numbers:
        return f"Answer: {passage}\n" + " > ".join(f"[{number}]" for number in numbers)
    if '{"choice": "A"}' in prompt:
        return json.dumps({"choice": "ABCD"[seed % 4]})
    return json.dumps({"answer": f"{passage} [1]."}) if '{"answer": "…"}' in prompt else passage


def run_all(source: Path, folder: Path, address: str, data: Path | None) -> Path:
    """Run every command with the package in `source`, in a folder and a store of its own; return the folder."""
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    variables = {"PYTHONPATH": str(source), "R2MED_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
    commands = [*COMMANDS, *([[*ON_DATA, "--data", str(data)]] if data else [])]
    for number, words in enumerate(commands):
        arguments = [address if word == "SERVER" else word for word in words]
        print(f"{folder.name}: r2med {' '.join(arguments)}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "r2med", *arguments],
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"r2med {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        (folder / f"output-{number}-{words[0]}.txt").write_text(done.stdout, encoding="utf-8")
    return folder


def values(folder: Path) -> dict[str, Any]:
    """Return path of a value -> value, for everything that the commands wrote."""
    found: dict[str, Any] = {}
    for file in sorted(folder.joinpath("results").rglob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or "system" not in record:
            continue
        kind = "answers" if "reader" in record else "systems"
        reader = record.get("reader") if isinstance(record.get("reader"), str) else ""
        dataset = record["dataset"]["name"].removeprefix("own/")  # as version 1.0 called a folder with a known name
        name = f"{kind}/{record['system']}/{reader}/{record.get('settings', {}).get('form', '')}/{dataset}"
        found |= dict(numbers(record, name))
    for file in sorted(folder.joinpath("analysis").rglob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            head, *rows = csv.reader(lines)
        for cells in rows:
            of_row = {
                f"analysis/{file.stem}/{cells[0]}/{column}": cell for column, cell in zip(head, cells, strict=True)
            }
            found |= {path: cell for path, cell in of_row.items() if re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)}
    for file in folder.glob("output-*-compare.txt"):
        found |= dict(numbers(json.loads(file.read_text(encoding="utf-8")), "compare"))
    return found


def numbers(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every number and truth value of a tree with its path."""
    if isinstance(value, dict):
        for name, part in value.items():
            if not NOT_VALUES.search(str(name)):
                yield from numbers(part, f"{path}/{name}")
    elif isinstance(value, list):
        for position, part in enumerate(value):
            yield from numbers(part, f"{path}/{position}")
    elif isinstance(value, int | float):
        yield path, value


def main() -> None:
    """Run both, compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--data", type=Path, help="a dataset folder besides the demo")
    parser.add_argument("--keep", type=Path, help="a folder for the results; those that it holds are not made again")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), FixedLLM)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, data = f"http://127.0.0.1:{server.server_port}/v1", options.data and options.data.resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep.resolve() if options.keep else Path(folder)
        earlier = Path(folder, "earlier")
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", earlier, options.commit], cwd=ROOT, check=True)
        try:
            before = values(run_all(earlier / "src", place / "before", address, data))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", earlier], cwd=ROOT, check=True)
        now = values(run_all(ROOT / "src", place / "now", address, data))
    different = [path for path in before if before[path] != now.get(path)]
    reasons = {path: next((why for rule, why in ON_PURPOSE.items() if re.search(rule, path)), "") for path in different}
    equal, new = len(before) - len(different), len(now.keys() - before.keys())
    print(f"{len(before):,} values at {options.commit}: {equal:,} are equal now; {new:,} values are new")
    for why, count in Counter(filter(None, reasons.values())).items():
        print(f"{count:,} differ on purpose: {why}")
    others = sorted(path for path, why in reasons.items() if not why)
    for path in others[:40]:
        print(f"DIFFERS {path}: {before.get(path, 'absent')} → {now.get(path, 'absent')}")
    sys.exit(f"{len(others):,} values differ without a reason" if others else 0)


if __name__ == "__main__":
    main()
