"""What stands in for the keys, servers, models and downloads that commands of the docs need: tables, and who serves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import r2med
from data import test_hub_tables as hub_tables
from r2med.data import load
from r2med.data.dataset_cards import cards
from r2med.foundation.store import Store
from support import chat_server, docs_llm, rerank_server, retrieve_server
from support.datasets import r2med_folder, write_jsonl
from support.keys import KEY

DEMO = Path(r2med.__file__).parent / "data/demo"
WORDS = {
    r"--data (R2MED|demo)(?=\s|$)": "--data small",
    r"(?<![\w/-])(MedQA-Diag|MedXpertQA-Exam)(?![\w-])": r"demo/\1",
    r"--base-url \S+": "--base-url {chat}",
    r"remote=[^)]+": "remote={retrieve}",
    r"\bsmollm2\b": "gpt4",
}
"""What is typed instead, on every page: a pattern, and what is put in its place."""

VARIABLES = {
    "R2MED_MODELS": "{models}",
    "R2MED_PLUGINS": "{plugin}",
    "OPENAI_BASE_URL": "{chat}",
    "COHERE_BASE_URL": "{cohere}",
    "VOYAGE_BASE_URL": "{voyage}",
    "VLLM_BASE_URL": "{vllm}",
    "TEI_BASE_URL": "{tei}",
    "OPENAI_API_KEY": KEY,
    "COHERE_API_KEY": KEY,
    "VOYAGE_API_KEY": KEY,
}
"""The environment: servers on loopback instead of the providers', a folder of weights, and the dataset `small`."""


def revision(name: str) -> str:
    """Return the revision that the card of a dataset names."""
    source = cards()[name].hub
    assert source is not None
    return source.revision


HUB: dict[str, tuple[Callable[[Path], Path], str]] = {
    "mteb/scifact": (hub_tables.mteb, hub_tables.COMMIT),
    "clinia/CUREv1": (hub_tables.cure, hub_tables.COMMIT),
    "xlangai/BRIGHT": (hub_tables.bright, revision("BRIGHT-biology")),
    "R2MED/Biology": (lambda folder: Path(shutil.copytree(DEMO / "Biology", folder)), revision("Biology")),
}
"""Datasets of the hub: a few rows in the form of each, and the revision."""


@contextmanager
def serving_stand_ins(folder: Path) -> Iterator[dict[str, str]]:
    """Start the servers, and give where everything is by the names in braces of the tables."""
    with ExitStack() as stack:
        places = {name: str(folder / name) for name in ("models", "hub", "plugin")}
        places |= {"demo": str(DEMO), "tests": str(Path(__file__).parents[1])}
        places["chat"] = stack.enter_context(chat_server.serve(docs_llm.answer)).address
        places["retrieve"] = stack.enter_context(retrieve_server.serve()).url
        for api in ("cohere", "voyage", "vllm", "tei"):
            places[api] = stack.enter_context(rerank_server.serve(api)).address
        for name, (write, commit) in HUB.items():
            repository = folder / "hub" / f"datasets--{name.replace('/', '--')}"
            write(repository / "snapshots" / commit)
            (repository / "refs").mkdir()
            (repository / "refs" / "main").write_text(commit)
        _write_beginning(folder / "plugin/datasets/small", queries=3, characters=300)
        _write_beginning(folder / "plugin/datasets/six", queries=6, characters=100)
        yield places


def _write_beginning(folder: Path, queries: int, characters: int) -> None:
    """Write a dataset with a card: the beginnings of the first queries and of some documents of demo/Biology."""
    dataset = load("demo/Biology", Store(folder.with_name("store")))
    first = dataset.queries[:queries]
    qrels = [(query.id, name, grade) for query in first for name, grade in dataset.qrels[query.id].items()]
    names = {name for _, name, _ in qrels} | {name for name, _ in [*dataset.corpus][:9]}
    r2med_folder(
        folder,
        [{"id": name, "text": text[:characters]} for name, text in dataset.corpus if name in names],
        [{"id": query.id, "text": query.text[:characters], "answer": query.answer} for query in first],
        [{"q_id": query, "p_id": name, "score": grade} for query, name, grade in qrels],
    )
    recorded = "hyde/author/query_with_hydoc.jsonl"
    texts = [json.loads(line) for line in (DEMO / "Biology" / recorded).read_text(encoding="utf-8").splitlines()]
    write_jsonl(folder / recorded, [{**row, "text": row["text"][:characters]} for row in texts[:queries]])
    folder.with_suffix(".toml").write_text(f'like = "Biology"\nfolder = "{folder.name}"\nlicence = "CC-BY-4.0"\n')


def write_models(models: Path) -> None:
    """Write the models; for a process that has imported torch."""
    from support import docs_models

    docs_models.write_models(models)


def use_hub_cache(folder: str) -> None:
    """Let the hub's client of this process use a cache of its own."""
    from huggingface_hub import constants

    constants.HF_HUB_CACHE = folder
