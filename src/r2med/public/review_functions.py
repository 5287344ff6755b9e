"""People review what LLMs wrote and labelled: the page, their reviews as files, and how far they agree.

What is reviewed is recognised: the folder of a build, a table, an overlay, or a file of nuggets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.assessment.review.kinds import KINDS
from r2med.foundation.core.flags import Argument, Flag
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.public.listing import Listing

_SOURCE = Argument("The folder of a build, a table of candidates, an overlay, or a file of nuggets.", metavar="SOURCE")
_KIND = Flag(
    f"What people review in a build or a table: {flags.choices(KINDS)}; all; or the TOML file of a rubric of your own, "
    "for texts of a build or a table with the rubric's columns. Default: passage.",
    names=("--kind",),
    metavar="KIND",
    kind=str,
)
_NUGGET_DATA = Flag("The dataset of a file of nuggets.", metavar="NAME", completion="datasets", kind=str)


def serve_review(
    source: Annotated[str | Path, _SOURCE],
    *,
    kind: Annotated[str | Path | None, _KIND] = None,
    sample: Annotated[
        int | None,
        Flag(
            "Number of items of a kind to review; all without this option or with 0. Of an overlay: number of queries "
            "of each dataset whose whole pool is reviewed, the first by their ids; 30 without this option.",
            metavar="NUMBER",
            low=0,
        ),
    ] = None,
    reviews_per_item: Annotated[
        int | None,
        Flag(
            "Number of people who review each item. 0 shows every item to everybody. Without this option, the number "
            "in the plan of the build, otherwise 0.",
            metavar="NUMBER",
            low=0,
        ),
    ] = None,
    data: Annotated[
        str | Path | Dataset | Sequence[str | Path | Dataset] | None,
        Flag(
            "The dataset of a file of nuggets. Of an overlay: only these datasets, or their folders.",
            metavar="NAME",
            completion="datasets",
            read=flags.comma_separated,
        ),
    ] = None,
    results: Annotated[str | Path, flags.RESULTS] = "results",
    port: Annotated[int, Flag("Port of the review page. 0 picks a free one.", low=0, high=65535)] = 8070,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Let people review passages, labels of judges, and texts that an LLM wrote, on a page of this machine.

    The page is served until Ctrl-C. `ready` gets one line with the address when the server accepts connections.
    """
    from r2med.public.reviewed_sources import serve_source

    serve_source(
        Path(source),
        kind=str(kind) if kind else None,
        sample=sample,
        reviews_per_item=reviews_per_item,
        data=data,
        results=Path(results),
        port=port,
        ready=ready,
    )


def export_review(
    source: Annotated[str | Path, _SOURCE],
    out: Annotated[
        str | Path,
        Flag(
            "File for the reviews, .csv; of an overlay, for people's labels as an overlay of their own, .jsonl; of "
            "nuggets, for those that people keep, .jsonl.",
            names=("--out", "-o"),
            metavar="FILE",
        ),
    ],
    *,
    kind: Annotated[str | Path | None, _KIND] = None,
    data: Annotated[str | Path | Dataset | None, _NUGGET_DATA] = None,
) -> Listing:
    """Write what people said into a file: their reviews, their labels, or the nuggets that they keep."""
    from r2med.public.listing import listed_lines
    from r2med.public.reviewed_sources import export_source

    lines = list(export_source(Path(source), Path(out), str(kind) if kind else None, data))
    return listed_lines(f"Reviews of {source}", lines, lines)


def import_review(
    source: Annotated[str | Path, Argument("The folder of a build, or a table.", metavar="SOURCE")],
    file: Annotated[str | Path, Argument("Reviews as .csv.", metavar="FILE")],
    *,
    kind: Annotated[str | Path | None, _KIND] = None,
) -> Listing:
    """Add the reviews of a .csv file. Reviews that are there already are not added twice."""
    from r2med.public.listing import listed_lines
    from r2med.public.reviewed_sources import import_source

    lines = list(import_source(Path(source), Path(file), str(kind) if kind else None))
    return listed_lines(f"Reviews of {source}", lines, lines)


def show_review(
    source: Annotated[
        str | Path, Argument("The folder of a build, a table of candidates, or an overlay.", metavar="SOURCE")
    ],
    other: Annotated[
        str | Path | None, Argument("Another overlay, whose labels are compared.", metavar="[OVERLAY]")
    ] = None,
    *,
    kind: Annotated[str | Path | None, _KIND] = None,
) -> Listing:
    """Show how far reviewers and judges agree, and how right the labels are; or how far two overlays agree."""
    from r2med.public.reviewed_sources import agreement_of

    return agreement_of(Path(source), Path(other) if other else None, str(kind) if kind else None)
