"""List and show what has a name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import Argument, Flag
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
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
    out: Annotated[
        str | Path | None,
        Flag(
            "With --kind prompts: write the built-in templates of a method into this folder, to change them.",
            names=("--out", "-o"),
            metavar="DIR",
        ),
    ] = None,
) -> Listing:
    """Show what a name means: settings of a stage, a suite, a card, prompts, sizes of datasets, or a pack."""
    from r2med.foundation.core.errors import UserError
    from r2med.public.named_things import shown, written_prompts

    if out is None:
        return shown(str(name), kind)
    if kind != "prompts":
        raise UserError("only prompts can be written to a folder: add kind (--kind prompts)")
    return written_prompts(str(name), Path(out))
