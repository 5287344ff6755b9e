"""`r2med models`: which embedding models there are, what their cards say, whether one runs here."""

from __future__ import annotations

from typing import Annotated

import typer

from r2med.cli import options as flags

models = typer.Typer(help="List, show and try embedding models.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name of the list, hf:ORG/NAME, path:DIR or py:MODULE:NAME.")]

SAMPLES = (
    "A young woman with facial swelling after dental work, and an aunt who died of choking.",
    "Hereditary angioedema is caused by a deficiency of C1 esterase inhibitor.",
)


@models.command("list")
def list_() -> None:
    """Show every model that has a card."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from r2med.models.cards import models as cards

    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for head in ("name", "model", "size", "tokens", "licence"):
        table.add_column(head, no_wrap=head == "name", overflow="fold")
    for card in cards().values():
        repository = card.repository or card.query.repository
        tokens = f"{card.document.max_tokens:,}"
        table.add_row(card.spec, repository, card.parameters, tokens, card.licence)
    Console().print(table)


@models.command()
def show(name: Name) -> None:
    """Print all that a model's card says."""
    import json

    from r2med.models.open import card_of

    print(json.dumps(card_of(name).model_dump(exclude_defaults=True), indent=1, ensure_ascii=False))


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
    """Load a model, encode two texts, print dimension, norm and speed."""
    import time

    import numpy as np

    from r2med.models.cards import ANY_DATASET
    from r2med.models.open import card_of, open_encoder
    from r2med.store import default_store

    options = flags.make_options(model_path, device, dtype, backend, trust_remote_code, "2G", budget)
    started = time.perf_counter()
    encoder = open_encoder(card_of(name), ANY_DATASET, options, default_store())
    query = encoder.encode(SAMPLES[:1], "query")
    loaded = time.perf_counter()
    document = encoder.encode(SAMPLES[1:], "document")
    seconds = time.perf_counter() - loaded
    norms = [float(np.linalg.norm(vectors[0])) for vectors in (query, document)]
    cosine = float(query[0] @ document[0]) / (norms[0] * norms[1])
    print(f"{name}: {query.shape[1]} dimensions; norms {norms[0]:.4f} (query), {norms[1]:.4f} (document)")
    print(f"cosine of a case and its diagnosis: {cosine:.4f}")
    print(f"loaded and first text in {loaded - started:.1f} s, then {1 / max(seconds, 1e-9):.1f} texts/s one by one")
    for key, value in encoder.describe("document").items():
        print(f"  {key}: {value!r}")
