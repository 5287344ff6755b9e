"""`r2med models`: which embedding models and rerankers there are, what their cards say, whether one runs here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags

if TYPE_CHECKING:
    from rich.console import Console

    from r2med.setup import Setup

models = typer.Typer(help="List, show and try embedding models and rerankers.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name of the list, hf:ORG/NAME, path:DIR or py:MODULE:NAME.")]

SAMPLES = (
    "A young woman with facial swelling after dental work, and an aunt who died of choking.",
    "Hereditary angioedema is caused by a deficiency of C1 esterase inhibitor.",
)


@models.command("list")
def list_() -> None:
    """Show every model and reranker that has a card."""
    from rich.console import Console

    from r2med.crossencoders.reranker_cards import RERANKERS
    from r2med.encoders.model_cards import MODELS

    encoders = (
        (card.spec, card.repository or card.query.repository, card.parameters, card.document.max_tokens, card.licence)
        for card in MODELS.values()
    )
    cross = (
        (name, card.repository, card.parameters, card.max_tokens, card.licence) for name, card in RERANKERS.items()
    )
    console = Console()
    _print_table(console, "model", encoders)
    console.print()
    _print_table(console, "reranker", cross)


def _print_table(console: Console, kind: str, rows: Iterable[tuple[str, str, str, int, str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for head in ("name", kind, "size", "tokens", "licence"):
        table.add_column(head, no_wrap=head == "name", overflow="fold")
    for name, repository, size, tokens, licence in rows:
        table.add_row(name, repository, size, f"{tokens:,}", licence)
    console.print(table)


@models.command()
def show(name: Name) -> None:
    """Print all that the card of a model or a reranker says."""
    import json

    from r2med.crossencoders.reranker_cards import RERANKERS
    from r2med.encoders.model_cards import resolve_card

    card = RERANKERS[name] if name in RERANKERS else resolve_card(name)
    print(json.dumps(card.model_dump(exclude_defaults=True), indent=1, ensure_ascii=False))


@models.command()
def check(
    name: Name,
    model_path: flags.ModelPaths = None,
    device: flags.Device = "auto",
    dtype: flags.DType = "auto",
    backend: flags.Backend = "torch",
    trust_remote_code: flags.TrustRemoteCode = False,
    budget: flags.Budget = None,
) -> None:
    """Load a model, encode two texts, print dimension, norm and speed; of a reranker, score two pairs."""
    import time

    import numpy as np

    from r2med.crossencoders.reranker_cards import RERANKERS
    from r2med.data.dataset_cards import ANY_DATASET
    from r2med.encoders.encoder import open_encoder
    from r2med.encoders.model_cards import resolve_card
    from r2med.store import default_store

    options = flags.make_setup(
        model_path=model_path,
        memory="2G",
        budget=budget,
        device=device,
        dtype=dtype,
        backend=backend,
        trust_remote_code=trust_remote_code,
    )
    if name in RERANKERS:
        return _check_reranker(name, options)
    started = time.perf_counter()
    encoder = open_encoder(resolve_card(name), ANY_DATASET, options, default_store())
    query = encoder.encode(SAMPLES[:1], "query").vectors
    loaded = time.perf_counter()
    document = encoder.encode(SAMPLES[1:], "document").vectors
    seconds = time.perf_counter() - loaded
    norms = [float(np.linalg.norm(vectors[0])) for vectors in (query, document)]
    cosine = float(query[0] @ document[0]) / (norms[0] * norms[1])
    print(f"{name}: {query.shape[1]} dimensions; norms {norms[0]:.4f} (query), {norms[1]:.4f} (document)")
    print(f"cosine of a case and its diagnosis: {cosine:.4f}")
    print(f"loaded and first text in {loaded - started:.1f} s, then {1 / max(seconds, 1e-9):.1f} texts/s one by one")
    for key, value in encoder.describe("document").items():
        print(f"  {key}: {value!r}")


def _check_reranker(name: str, options: Setup) -> None:
    import time

    from r2med.crossencoders.pair_scorer import open_scorer
    from r2med.crossencoders.reranker_cards import RERANKERS
    from r2med.data.dataset_cards import ANY_DATASET

    scorer = open_scorer(RERANKERS[name], ANY_DATASET, options)
    started = time.perf_counter()
    right = scorer.score([SAMPLES])[0]
    loaded = time.perf_counter()
    wrong = scorer.score([(SAMPLES[0], "Income tax is due at the end of the month.")])[0]
    seconds = time.perf_counter() - loaded
    print(f"{name}: {right.score:.4f} for a case and its diagnosis, {wrong.score:.4f} for the case and a tax notice")
    print(f"loaded and first pair in {loaded - started:.1f} s, then {1 / max(seconds, 1e-9):.1f} pairs/s one by one")
    for key, value in scorer.describe().items():
        print(f"  {key}: {value!r}")
