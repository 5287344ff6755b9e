"""Prompts: fetch those of the authors of a reranker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import Argument, Flag

if TYPE_CHECKING:
    from r2med.systems.rerank.authors_prompts import FoundPrompt


def fetch_prompts(
    reranker: Annotated[
        str,
        Argument(
            "A reranker whose authors publish their prompt: reasonrank-7b, rank1-7b, ….",
            metavar="RERANKER",
            completion="rerankers",
        ),
    ],
    clone: Annotated[
        str | Path | None,
        Flag(
            "A folder with the authors' files, such as a clone of their repository. Default: their repository.",
            names=("--from",),
            metavar="DIR",
        ),
    ] = None,
) -> FoundPrompt:
    """Put the prompt of a reranker's authors into the store, so that runs can use it: `reasonrank-7b(prompts=authors)`.

    The files are copied from the folder `clone`, or fetched from the authors' repository at one commit. A run never
    fetches a prompt. Raises UserError if the prompt cannot be had or cannot be converted.
    """
    from r2med.systems.rerank.authors_prompts import keep_prompt, prompt_name

    return keep_prompt(prompt_name(reranker), Path(clone).expanduser() if clone is not None else None)


def new_prompts(
    method: Annotated[str, Argument("The method that uses the prompts: hyde, listwise, search-r1, ….")],
    out: Annotated[str | Path, Flag("The folder of the set.", names=("--out", "-o"), metavar="DIR")],
) -> tuple[Path, ...]:
    """Write the built-in templates of a method into a folder, where you can change them."""
    from r2med.models.prompts.prompt_sets import write_set
    from r2med.public.prompt_users import used_by

    return tuple(write_set(used_by(method)[0], Path(out)))
