"""Look after what is kept on this machine, and examine the machine and a model on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import Flag, SetupFlags, as_list
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.evaluation.running.doctor import Diagnosis
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
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
    folders of results are kept, unless these are named. Your own files in such a folder (packs, exports,
    overlays, …) are never removed: those that quote the dataset are listed. Without `yes`, nothing is removed. The
    page counts the files of each folder, and the value names every file.
    """
    from r2med.data.dataset_word import DatasetWord
    from r2med.foundation.store import default_store
    from r2med.public.clearing import Clearing
    from r2med.public.listing import listed_lines

    word = str(DatasetWord.typed(dataset)) if dataset else ""
    wanted = Clearing(word, model or "", llm or "", everything, tuple(map(Path, as_list(results))))
    lines = list(wanted.carry_out(store or default_store(), yes))
    by_folder = [sentence for line in lines for sentence in line.by_folder()]
    whole = [sentence for line in lines for sentence in line.whole()]
    return listed_lines("Cleared" if yes else "What would be cleared", by_folder, whole)


def doctor(
    model: Annotated[
        str | None,
        Flag(
            "Also load this model, and encode a query and a document; with a reranker, score two pairs: "
            "a name of r2med list models, hf:ORG/NAME, path:DIR, py:MODULE:NAME or vllm:MODEL.",
            metavar="NAME",
            completion="models",
        ),
    ] = None,
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(
            *flags.WEIGHTS,
            "base_url",
            "budget",
            base_url="An endpoint to test, and the server of vllm:MODEL and tei:MODEL.",
        ),
    ] = None,
    store: Store | None = None,
) -> Diagnosis:
    """Show versions, devices, extras, the cache, which keys are set (never their values), and endpoints that answer.

    It contacts only the endpoints of `setup` and of the environment. With `model`, it shows how the model reads texts.
    """
    from dataclasses import replace

    from r2med.evaluation.running.doctor import diagnosed
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store import default_store
    from r2med.public.model_check import checked_model

    with running(setup) as runtime:
        diagnosis = diagnosed(runtime.setup.base_url, store or default_store())
        return replace(diagnosis, model=tuple(checked_model(model, runtime))) if model else diagnosis
