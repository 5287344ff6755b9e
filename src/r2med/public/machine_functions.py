"""Look after what is kept on this machine, examine the machine, and cite r2med."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import Flag

if TYPE_CHECKING:
    from r2med.evaluation.running.doctor import Diagnosis
    from r2med.foundation.store import Store
    from r2med.public.listing import Listing


def list_cache(store: Store | None = None) -> Listing:
    """Show the kept artefacts by kind, dataset and model, and the answers of each LLM."""
    from r2med.foundation.store import default_store
    from r2med.public.cache_contents import cache_contents

    return cache_contents(store or default_store())


def clear_cache(
    dataset: Annotated[
        str | Path | None,
        Flag("Remove everything that was computed for this dataset.", metavar="NAME", completion="datasets", kind=str),
    ] = None,
    model: Annotated[
        str | None, Flag("Remove vectors and scores of this model.", metavar="NAME", completion="models")
    ] = None,
    llm: Annotated[
        str | None,
        Flag("Remove the answers of this LLM. To get them again costs money again.", metavar="NAME", completion="llms"),
    ] = None,
    everything: Annotated[
        bool, Flag("Remove everything except answers of LLMs and embedding APIs.", names=("--all",))
    ] = False,
    results: Annotated[
        str | Path | Sequence[str | Path] | None,
        Flag(
            "With --dataset: also remove records with texts of the dataset, and boards that show it, from this folder, "
            "and count all other files in it that quote the dataset; --format json names each. May be repeated.",
            metavar="DIR",
        ),
    ] = None,
    yes: Annotated[bool, Flag("Remove the artefacts. Without this flag they are only counted.")] = False,
    store: Store | None = None,
) -> Listing:
    """Remove what is kept of a dataset, a model or an LLM. It is computed or requested again when it is needed.

    With a dataset alone, no text of the dataset stays in the cache: LLM answers about it are removed too. Files in
    folders of results are kept, unless these are named. Your own files in such a folder (traces, packs, exports,
    overlays, …) are never removed: those that quote the dataset are listed. Without `yes`, nothing is removed. The
    page counts the files of each folder, and the value names every file.
    """
    from r2med.data.locating import unambiguous
    from r2med.foundation.core.one_or_many import several
    from r2med.foundation.store import default_store
    from r2med.public.clearing import Clearing
    from r2med.public.listing import listed_lines

    word = unambiguous(dataset) if dataset else ""
    wanted = Clearing(word, model or "", llm or "", everything, tuple(map(Path, several(results))))
    lines = list(wanted.carry_out(store or default_store(), yes))
    by_folder = [sentence for line in lines for sentence in line.by_folder()]
    whole = [sentence for line in lines for sentence in line.whole()]
    return listed_lines("Cleared" if yes else "What would be cleared", by_folder, whole)


def verify_cache(
    repair: Annotated[bool, Flag("Remove damaged artefacts. They are computed again when they are needed.")] = False,
    store: Store | None = None,
) -> Listing:
    """Read every file of the store byte by byte, and report damaged ones."""
    from r2med.foundation.store import default_store
    from r2med.public.cache_contents import verified_cache

    return verified_cache(store or default_store(), repair)


def doctor(
    base_urls: Annotated[
        str | Sequence[str] | None, Flag("An endpoint to test. May be repeated.", names=("--base-url",), metavar="URL")
    ] = None,
    store: Store | None = None,
) -> Diagnosis:
    """Show versions, devices, extras, the cache, which keys are set (never their values), and endpoints that answer.

    It contacts only the endpoints of `base_urls` and of the environment.
    """
    from r2med.evaluation.running.doctor import diagnosed
    from r2med.foundation.core.one_or_many import several
    from r2med.foundation.store import default_store

    return diagnosed(several(base_urls), store or default_store())


def cite() -> str:
    """Show what to cite as BibTeX: the benchmark's paper, and this software in the version that is installed."""
    from importlib import resources

    from r2med.foundation.core.version import __version__

    text = (resources.files("r2med") / "citation.bib").read_text(encoding="utf-8")
    return text.replace("VERSION", __version__)
