"""What each page of the docs assumes its reader to have: words of the page, files, and what was done before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Assumed:
    """What a page assumes. Names in braces are those of `serving_stand_ins`."""

    words: Mapping[str, str | Callable[[Path], str]] = field(default_factory=dict)
    """What is typed instead on this page: a pattern, and what is put in its place, or how the folder gives it."""
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """Commands before the first one of the page."""
    stops: str = ""
    """A command that ends with exit code 2 the first time, as the page says."""


MY_MODULE = """
import numpy as np

class MyModel:
    def encode_queries(self, texts, **_):
        return np.ones((len(texts), 4), dtype=np.float32)
    encode_corpus = encode_queries

class MyReranker:
    def predict(self, pairs, **_):
        return [float(len(document)) for _, document in pairs]
"""
QUESTIONS = 'id,question,answer,url\nq1,"Why is she pale?",Iron deficiency,https://pages.example/iron\n'
PLAN = """name = "small"
llm = "scripted"
answers = "answers.jsonl"
steps = ["read-table(questions.csv)", "read-web(saved-pages)", "chunk", "mine(committee=bm25, depth=1)"]
"""
ARTICLE = f"<html><body><article><p>{'Iron deficiency makes people pale. ' * 9}</p></article></body></html>"
PREDICTIONS = """{"mteb_model_meta": {"model_name": "org/model", "revision": "r"},
 "default": {"test": {"0": {"bio-038": 1}}}}"""
MINE = "cp -r {demo}/Medical-Sciences mine && rm mine/nuggets.jsonl"


def _record(folder: Path) -> str:
    """Return the name of the only record on demo/MedQA-Diag."""
    (path,) = (folder / "results/demo/MedQA-Diag").glob("bm25-*.json")
    return path.stem


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / "biology.r2pack").read_bytes()).hexdigest()


PAGES: Mapping[str, Assumed] = {
    "advise.md": Assumed(
        {"advise example(?!.*--model)": "advise six --model minilm", "advise example": "advise six"},
        before=("cp -r {plugin}/datasets/six six",),
    ),
    "analyse.md": Assumed(before=("cp -r {demo}/Biology nfcorpus",)),
    "answer-scores.md": Assumed(before=(MINE,)),
    "answer-worth.md": Assumed({"nugget-recall --data demo": "nugget-recall --data demo/Medical-Sciences"}),
    "board.md": Assumed(
        before=(
            "r2med run bm25 'rm3 → bm25' --data demo/Biology",
            "r2med submit bm25 -o entries/my-team.json",
            "r2med judge --data demo/Biology --llm gpt4 -o judged.jsonl",
        )
    ),
    "extend-cards.md": Assumed(
        before=("mkdir -p my-plugin/datasets && cp -r {demo}/Biology my-plugin/datasets/ward-data",)
    ),
    "from-r2med.md": Assumed(
        {"--llm o3-mini": "--llm author"}, before=("mkdir -p R2MED/dataset && cp -r {demo}/Biology R2MED/dataset",)
    ),
    "bridges.md": Assumed(
        {"--data R2MED": "--data Biology"},
        {"R2MEDBiologyRetrieval_predictions.json": PREDICTIONS, "NFCorpus_predictions.json": PREDICTIONS},
        before=("cp -r {demo}/Biology nfcorpus", "r2med run bm25 --data Biology"),
    ),
    "build.md": Assumed({"-o ward-built --llm": "-o ward-llm --llm"}),
    "build-corpus.md": Assumed(
        {"wget .*": "cp -r pages saved-pages"},
        {"plan.toml": PLAN, "answers.jsonl": "", "questions.csv": QUESTIONS, "pages/pages.example/iron.html": ARTICLE},
        stops="r2med build run plan.toml -o pages-built",
    ),
    "cluster.md": Assumed({"--engine ray": "--engine threads"}),
    "data.md": Assumed({"QUERY": "1", "RECORD": _record}),
    "difficulty.md": Assumed(before=("cp {tests}/foundation/text/synonyms.csv synonyms.csv",)),
    "expansion.md": Assumed({"o3-mini --recorded": "author --recorded"}),
    "hub.md": Assumed({":psychology": ":economics"}),
    "overlays.md": Assumed(
        before=(
            "r2med run bm25 'rm3 → bm25' --data demo/Biology",
            "r2med judge --data demo/Biology --llm gpt4 --llm qwen-72b -o overlays/judged.jsonl",
            "cp overlays/judged.jsonl mine.jsonl",
            "r2med review serve overlays/judged.jsonl",
            "r2med review export overlays/judged.jsonl -o people.jsonl",
        )
    ),
    "leaderboard.md": Assumed({r"hyde\(gpt4\)": "hyde(author)"}),
    "models.md": Assumed(
        {"hf:ORG/NAME": "path:{models}/bge"}, {"my_module.py": MY_MODULE}, before=("cp -r {models}/minilm my-model",)
    ),
    "query-lists.md": Assumed({"inf-pro": "bge"}),
    "recorded.md": Assumed({"o3-mini --recorded": "author --recorded"}),
    "rerank.md": Assumed(
        {"hf:ORG/NAME": "path:{models}/monobert"},
        {"my_module.py": MY_MODULE},
        before=("cp -r {models}/monobert my-reranker",),
    ),
    "reproduce.md": Assumed({"--data R2MED": "--data=demo"}),
    "review.md": Assumed(
        {},
        {"candidates.csv": "question,passage\nWhy is she pale?,Iron is low.\n"},
        before=(
            MINE,
            "r2med run bm25 'rm3 → bm25' --data demo/Biology",
            "r2med judge --data demo/Biology --llm gpt4 -o judged.jsonl",
            "r2med nuggets --data mine --llm gpt4 -o nuggets.jsonl",
        ),
    ),
    "share.md": Assumed({"--data Biology": "--data small", r"https://\S+/": "{files}/", "DIGEST": _digest}),
    "suites.md": Assumed({"--suite mine.toml": "--suite mine.toml --data small"}),
    "vectors.md": Assumed(
        {"hf:ORG/NAME": "path:{models}/bge", "dims=128": "dims=16"},
        before=("cp -r {models}/reason-moderncolbert my-colbert",),
    ),
}
