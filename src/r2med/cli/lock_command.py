"""`r2med lock`: decide an evaluation and its comparisons beforehand, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.foundation.runtime.runtime import Runtime


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING, "depth", "recorded", "generations", "candidates")
def lock(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="What will be evaluated, as for r2med run.",
            show_default=False,
            autocompletion=completion.systems,
        ),
    ] = None,
    expand: flags.Expansions = None,
    rerank: flags.Rerankers = None,
    samples: flags.Samples = 1,
    k: flags.TopK = 1000,
    data: flags.Data = None,
    llm: flags.LLMs = None,
    measure: flags.OneMeasure = "nDCG@10",
    baseline: flags.Baseline = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="File of the lock.")] = Path("plan.lock"),
    *,
    runtime: Runtime,
) -> None:
    """Write systems, settings, fingerprints of datasets, the measure and the pairs to compare, before anything runs."""
    from r2med.evaluation.running.locking import lock as write

    if not systems:
        raise UserError("name the systems that are to be evaluated, such as: r2med lock bm25 bge --data Biology")
    if out.exists():
        raise UserError(f"{out} exists: a lock is decided once; name another file with -o")
    flags.check_writable(out.absolute().parent)
    made = write(
        joined_words(systems),
        flags.dataset_names(data),
        out,
        k=k,
        measure=measure,
        baseline=baseline,
        expand=expand or [],
        rerank=rerank or [],
        llms=llm or [],
        samples=samples,
        setup=runtime,
    )
    sizes = f"{counted(len(made.systems), 'system')}, {counted(len(made.datasets), 'dataset')}"
    print(
        printable(f"{out}: {sizes}, {counted(len(made.pairs), 'comparison')} by {made.measure}; digest {made.digest}")
    )
    print(printable(f"then: r2med run --lock {out}, and r2med compare --lock {out}"))
