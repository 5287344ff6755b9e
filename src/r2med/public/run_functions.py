"""Evaluate systems: run them, decide a run beforehand, and let an LLM write texts for queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from r2med.foundation.core.flags import LLMS, OUTPUT, Argument, Flag, SetupFlags, as_list
from r2med.foundation.core.spec import joined_words
from r2med.public import shared_flags as flags
from r2med.public.call_plan import planned

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.evaluation.records.lock_file import Lock
    from r2med.evaluation.running.results import Results
    from r2med.evaluation.running.text_generation import GeneratedTexts
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup

DEMO_SYSTEMS = ("bm25", "hyde(qwen-coder) → bm25", "hyde(author) → bm25")


def run(
    systems: Annotated[
        object | Sequence[object] | None,
        Argument(
            "What to evaluate: bm25, 'hyde(author) → bm25', py:MODULE:NAME for a model of your own, …. "
            "Default: the three systems of the demo.",
            metavar="SYSTEM",
            completion="systems",
            read=joined_words,
        ),
    ] = None,
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.DATASETS] = None,
    *,
    expand: Annotated[str | Sequence[str] | None, flags.EXPANSIONS] = None,
    rerank: Annotated[object | Sequence[object] | None, flags.RERANKERS] = None,
    suite: Annotated[str | None, flags.SUITE] = None,
    repeats: Annotated[int | None, flags.REPEATS] = None,
    k: Annotated[int | None, flags.DEPTH] = None,
    llms: Annotated[str | Sequence[str] | None, flags.LLM_NAMES] = None,
    name: Annotated[
        str | None,
        Flag(
            "What tables, boards and papers call the system, such as 'mine v1'. Only for a run of one system.", OUTPUT
        ),
    ] = None,
    out: Annotated[
        str | Path | None, Flag("Folder for records and runs.", OUTPUT, ("--out", "-o"), metavar="DIR")
    ] = "results",
    measure: Annotated[
        str | None,
        Flag(
            "The measure of the table. Records hold all measures. Default: nDCG@10, or that of the lock.",
            OUTPUT,
            metavar="NAME",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        Flag(
            "Order the rows by score, seconds, dollars, tokens, name or a dataset. Default: as typed.",
            OUTPUT,
            metavar="COLUMN",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        Flag(
            "Compute everything again, except what was paid for: answers of LLMs, embedding APIs and rerank APIs.",
            OUTPUT,
        ),
    ] = False,
    lock: Annotated[str | Path | None, flags.LOCK] = None,
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(
            *flags.WEIGHTS,
            *flags.ASKING,
            "memory",
            "engine",
            "depth",
            "recorded",
            "generations",
            "candidates",
        ),
    ] = None,
    **settings: Any,
) -> Results:
    """Evaluate systems on datasets. Without arguments: BM25 with and without expansion on the bundled demo.

    A system is a spec, a `System`, or a model. A model is an object with `encode`, or with `encode_queries` and
    `encode_corpus`. An object with `predict` may be one of `rerank`. All combinations of `systems` with `expand`,
    `rerank` and `llms` are evaluated, and each pair of a system and a dataset gets a record. `settings` are fields of
    `Setup`. If `setup` is a `Runtime`, its models stay loaded for the next call. The default data are the suite's, the
    lock's or the demo. `lock` is the file of an evaluation that was decided beforehand: its systems and data are the
    default, and anything else is an error. With `repeats`, each system that varies is run this often. Every run asks
    the LLMs and shuffles anew, and has its own record. `name` is what tables call the only system, so that two versions
    of it stay side by side; of several versions under one name, the one that was run last counts.
    """
    from r2med.data.dataset_word import given_data
    from r2med.evaluation.running.batch import check_texts_are_used, plan_run
    from r2med.evaluation.running.planning import planned_run
    from r2med.evaluation.running.results import check_order
    from r2med.foundation.engine.reporting import announcing, notebook_progress
    from r2med.foundation.runtime.runtime import Runtime, running
    from r2med.foundation.store.files import check_writable

    with running(setup, **settings) as opened, notebook_progress():
        runtime = opened.fresh() if fresh else opened
        named = as_list(systems)
        if not named and not suite and not lock and runtime.setup.candidates is None:
            named = list(DEMO_SYSTEMS)
        plan = plan_run(
            named,
            given_data(data),
            expand=as_list(expand),
            rerank=as_list(rerank),
            llms=as_list(llms),
            suite=suite or "",
            lock=lock or "",
            repeats=repeats,
            k=k,
            measure=measure,
            name=name or "",
            setup=runtime,
        )
        if not isinstance(setup, Runtime):  # a runtime is shared with other systems
            check_texts_are_used(plan)
        if sort:
            check_order(sort, plan.dataset_names)
        planned(lambda: planned_run(plan))
        if out is not None:
            check_writable(Path(out), "out (--out)")
        folder = Path(out) if out is not None else None
        results = plan.evaluate(folder, fresh, announcing(plan.steps))
    return results.sorted(sort) if sort else results


def lock(
    systems: Annotated[
        object | Sequence[object] | None,
        Argument(
            "What will be evaluated, as for r2med run.", metavar="SYSTEM", completion="systems", read=joined_words
        ),
    ] = None,
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.DATASETS] = None,
    out: Annotated[str | Path, Flag("File of the lock.", names=("--out", "-o"), metavar="FILE")] = "plan.lock",
    *,
    expand: Annotated[str | Sequence[str] | None, flags.EXPANSIONS] = None,
    rerank: Annotated[object | Sequence[object] | None, flags.RERANKERS] = None,
    suite: Annotated[str | None, flags.SUITE] = None,
    repeats: Annotated[int | None, flags.REPEATS] = None,
    k: Annotated[int | None, flags.DEPTH] = None,
    llms: Annotated[str | Sequence[str] | None, flags.LLM_NAMES] = None,
    measure: Annotated[str | None, Flag("The measure that is compared. Default: nDCG@10.", metavar="NAME")] = None,
    baseline: Annotated[str | None, flags.BASELINE] = None,
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(*flags.WEIGHTS, *flags.LLM_SETTINGS, "depth", "recorded", "generations", "candidates"),
    ] = None,
    **settings: Any,
) -> Lock:
    """Write systems, settings, fingerprints of datasets, the measure and the pairs to compare, before anything runs.

    Nothing is searched or asked. Without a baseline, every pair of systems is compared. The other arguments are those
    of `run`. Raises UserError if a system cannot run, or if the file exists: a lock is decided once.
    """
    from r2med.data.dataset_word import given_data
    from r2med.evaluation.running.batch import plan_run
    from r2med.evaluation.running.locking import locked_plan
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable

    file, named = Path(out), as_list(systems)
    if not named and not suite:
        example = "r2med lock bm25 bge --data Biology"
        raise UserError(f"name the systems that are to be evaluated, such as: {example}")
    if file.exists():
        raise UserError(f"{file} exists: a lock is decided once; name another file with out (--out)")
    check_writable(file.absolute().parent, "out (--out)")
    with running(setup, **settings) as runtime:
        plan = plan_run(
            named,
            given_data(data),
            expand=as_list(expand),
            rerank=as_list(rerank),
            llms=as_list(llms),
            suite=suite or "",
            repeats=repeats,
            k=k,
            measure=measure,
            setup=runtime,
        )
        plan.check_installed()
        made = locked_plan(plan, baseline or "")
    made.write(file)
    return made


def generate(
    method: Annotated[
        str,
        Argument("hyde, query2doc, lamer or an agent; the LLM and settings in parentheses: 'hyde(o3-mini, rounds=2)'."),
    ],
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.DATASETS] = None,
    *,
    llm: Annotated[
        str | None,
        Flag(
            "The LLM that writes, if the method does not name it: one of r2med list llms, or any with --base-url.",
            LLMS,
            metavar="NAME",
            completion="llms",
        ),
    ] = None,
    out: Annotated[
        str | Path, Flag("Folder for the folders DATASET/METHOD/LLM.", OUTPUT, ("--out", "-o"), metavar="DIR")
    ] = "generations",
    overwrite: Annotated[bool, Flag("Replace files even if they have more texts than the new ones.", OUTPUT)] = False,
    setup: Annotated[Setup | Runtime | None, SetupFlags(*flags.WEIGHTS, *flags.ASKING, "memory")] = None,
    **settings: Any,
) -> list[GeneratedTexts]:
    """Write an LLM's texts for every query; `r2med run --generations DIR` searches with them, without an LLM.

    `method` is an expansion or an agent such as "hyde(o3-mini)"; `llm` names the LLM if the method does not. The files
    are out/DATASET/METHOD/LLM/query_with_hydoc.jsonl. A file with more texts is replaced only with `overwrite`.
    `settings` are fields of `Setup`. The default data are the demo.
    """
    from r2med.data.dataset_word import given_data
    from r2med.evaluation.running.text_generation import plan_generation
    from r2med.foundation.engine.reporting import announcing, notebook_progress
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable

    with running(setup, **settings) as runtime, notebook_progress():
        plan = plan_generation(method, given_data(data) or ["demo"], llm or "", runtime)
        planned(plan.plan)
        check_writable(Path(out), "out (--out)")
        return plan.write(Path(out), overwrite, announcing(len(plan.datasets)))
