"""List and show what has a name, and try a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import Argument, Flag, SetupFlags
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.public.listing import Listing

KINDS_OF_LISTS = ("datasets", "stages", "suites", "models", "llms", "prompts", "rubrics", "analyses", "overlays")
"""The kinds of `list`."""
KINDS_OF_NAMES = ("stages", "suites", "models", "llms", "prompts", "datasets", "rubrics", "packs", "overlays")
"""The kinds of things that `show` knows."""


def list_(
    kind: Annotated[
        str | None,
        Argument(f"{flags.choices(KINDS_OF_LISTS)}. Default: show these kinds.", metavar="[KIND]", completion="kinds"),
    ] = None,
    folder: Annotated[
        str | Path | None,
        Argument("With overlays: a file or a folder of them. Default: overlays.", metavar="[FOLDER]"),
    ] = None,
) -> Listing:
    """List the choices of one kind: datasets, stages, suites, models, LLMs, prompts, rubrics, analyses or overlays."""
    from r2med.public.catalogue import listed

    return listed(kind, Path(folder) if folder else None)


def show(
    name: Annotated[
        str | Path,
        Argument(
            "A name of r2med list, such as hyde, bge, o3-mini, hyde.exam or MedQA-Diag; hf:ORG/NAME; the folder of a "
            "dataset; a pack or an overlay.",
            completion="anything",
            kind=str,
        ),
    ],
    kind: Annotated[
        str | None, Flag(f"Show only this kind: {flags.choices(KINDS_OF_NAMES)}.", metavar="KIND", completion="kinds")
    ] = None,
) -> Listing:
    """Show what a name means: settings of a stage, a suite, a card, prompts, sizes of datasets, or a pack."""
    from r2med.public.named_things import shown

    return shown(str(name), kind)


def check_model(
    name: Annotated[
        str,
        Argument(
            "A name of r2med list models, hf:ORG/NAME, path:DIR, py:MODULE:NAME or vllm:MODEL.", completion="models"
        ),
    ],
    setup: Annotated[Setup | Runtime | None, SetupFlags(*flags.WEIGHTS, "base_url", "budget")] = None,
) -> Listing:
    """Load a model, encode a query and a document, and show how; with a reranker, score two pairs."""
    from r2med.foundation.runtime.runtime import running
    from r2med.public.listing import listed_lines
    from r2med.public.model_check import checked_model

    with running(setup) as runtime:
        lines = list(checked_model(name, runtime))
    return listed_lines(f"Check of {name}", lines, lines)
