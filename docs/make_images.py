"""Take the pictures of docs/images: python docs/make_images.py [BOARD DATASHEET].

Without arguments it takes those of labels (audit, labels, label-review, review), from data that it makes in a temporary
folder. With arguments it takes those of the board and of a datasheet. BOARD is the folder of a board with the results
of `r2med run`. DATASHEET is the datasheet.html of the example `exam`. Every picture is taken in both themes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

import r2med
from r2med import Overlay, OverlayLabel

IMAGES = Path(__file__).parent / "images"
R2MED = str(Path(sys.executable).with_name("r2med"))
PAIR = "data=demo%2FBiology&q=1&a=bm25&b=hyde%28author%29+%E2%86%92+bm25"
DATASETS = ("demo/Biology", "demo/MedQA-Diag", "demo/PMC-Treatment")
SYSTEMS = ("bm25", "bm25(scorer=lucene)", "hyde(author) → bm25")


class View(NamedTuple):
    """What a picture shows."""

    address: str
    wait_for: str
    """A selector of what must be there."""
    size: tuple[int, int]
    click: str = ""
    """A selector of what to click first."""


def board_views(board: Path, datasheet: Path) -> Iterator[tuple[str, View]]:
    """Yield the pictures of a board and a datasheet."""
    index = (board / "index.html").resolve().as_uri()
    yield "leaderboard", View(f"{index}#/leaderboard?set=R2MED", "tr[data-position]", (1400, 900))
    yield "explorer", View(f"{index}#/explorer?{PAIR}", "text=Two rankings", (1100, 980))
    yield "datasheet", View(datasheet.resolve().as_uri(), "h2", (1100, 760))


def label_views(folder: Path, servers: ExitStack) -> Iterator[tuple[str, View]]:
    """Make demo data with planted faults, made-up labels and a build, and yield the pictures that show them."""
    _write_faulty(folder / "Biology-with-faults")
    _command(folder, "audit", "Biology-with-faults", "-o", "audit.html")
    yield "audit", View((folder / "audit.html").as_uri(), "h2", (900, 760))
    _command(folder, "run", *SYSTEMS, *(word for name in DATASETS for word in ("--data", name)))
    _made_up_labels(folder / "results").write(folder / "judged.jsonl")
    _command(folder, "board", "results", "--overlay", "judged.jsonl")
    board = (folder / "board/index.html").as_uri()
    switch = "[aria-label=Labels] button:has-text('with overlay')"
    yield (
        "labels",
        View(f"{board}#/leaderboard?set=demo", "tr[data-position] .chip:has-text('with overlay')", (1100, 760), switch),
    )
    _command(folder, "build", "example", "exam", "-o", "exam")
    _command(folder, "build", "run", "exam/plan.toml", "-o", "exam-built")
    for name, source in (("label-review", ("judged.jsonl",)), ("review", ("exam-built",))):
        address = servers.enter_context(_review_page(folder, *source))
        yield name, View(f"{address}#/review?name=Ann", "button:has(kbd)", (1000, 720))


def _write_faulty(folder: Path) -> None:
    """Write demo/Biology with a second copy of one relevant document for each of five queries."""
    dataset = r2med.load("demo/Biology")
    documents = [{"id": identifier, "text": text} for identifier, text in dataset.corpus]
    texts = {row["id"]: row["text"] for row in documents}
    qrels = [
        {"q_id": query, "p_id": document, "score": grade}
        for query, grades in dataset.qrels.items()
        for document, grade in grades.items()
    ]
    for number, grades in enumerate(list(dataset.qrels.values())[:5], 1):
        documents.append({"id": f"copy-{number}", "text": texts[next(iter(grades))]})
    queries = [{"id": query.id, "text": query.text, "answer": query.answer} for query in dataset.queries]
    folder.mkdir()
    for name, rows in (("corpus", documents), ("query", queries), ("qrels", qrels)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def _made_up_labels(results: Path) -> Overlay:
    """Return labels of a judge for the first ten documents of every system, and of a person for most queries."""
    chance = random.Random(7)
    labels = []
    for name in DATASETS:
        dataset = r2med.load(name)
        runs = [r2med.Run.read(path) for path in sorted((results / name).glob("*.trec.gz"))]
        for query in dataset.queries:
            pool = {document for run in runs for document, _ in run.top(query.id)[:10]} - set(dataset.qrels[query.id])
            reviewed = chance.random() < 0.9
            for document in sorted(pool):
                grade = int(chance.random() < 0.2)
                pair = OverlayLabel(dataset=name, query=query.id, document=document, grade=grade, judge="gpt4")
                labels.append(pair)
                if reviewed:
                    other = grade if chance.random() < 0.9 else 1 - grade
                    labels.append(pair.model_copy(update={"judge": "", "reviewer": "Ann", "grade": other}))
    return Overlay("judged", tuple(labels))


def _command(folder: Path, *words: str) -> None:
    done = subprocess.run([R2MED, *words], cwd=folder, env=_settings(folder), check=False)
    if done.returncode and words[0] != "audit":  # its code 1 says that the data is broken, as it is
        sys.exit(done.returncode)


@contextmanager
def _review_page(folder: Path, *source: str) -> Iterator[str]:
    """Serve a review page, and yield its address."""
    command = [R2MED, "review", "serve", *source, "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=_settings(folder), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.:]+/", line)))
        server.terminate()


def _settings(folder: Path) -> dict[str, str]:
    return {**os.environ, "R2MED_HOME": str(folder / "cache"), "R2MED_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


def _take(browser: Any, view: View, theme: str, target: Path) -> None:
    width, height = view.size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.goto(view.address)
    if view.click:
        page.click(view.click)
    page.wait_for_selector(view.wait_for)
    page.wait_for_timeout(500)
    page.screenshot(path=str(target))
    page.close()


def main(*given: str) -> None:
    """Take the pictures, light as NAME.png and dark as NAME-dark.png."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        views = board_views(*map(Path, given)) if given else label_views(Path(folder), servers)
        for name, view in views:
            for theme, ending in (("light", ""), ("dark", "-dark")):
                _take(browser, view, theme, IMAGES / f"{name}{ending}.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
