"""The labels of a dataset: audit them, let LLMs add some, take answers apart into facts. And: advice for a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import MODELS, Argument, Flag, SetupFlags, as_list
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.assessment.answers.nugget_making import MadeNuggets
    from r2med.assessment.audit.audit_findings import Audit
    from r2med.assessment.judgements.committee import JudgedPools
    from r2med.data.dataset import Dataset
    from r2med.evaluation.advice.advice import Advice
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup

_ASKING = SetupFlags(*flags.QUESTIONS, "offline", "model_paths")


def advise(
    dataset: Annotated[
        str | Path | Dataset,
        Argument("A dataset or a folder with judged questions.", completion="datasets", kind=str),
    ],
    setup: Annotated[Setup | Runtime | None, SetupFlags(*flags.WEIGHTS, *flags.ASKING, "memory")] = None,
    *,
    llms: Annotated[str | Sequence[str] | None, flags.LLM_NAMES] = None,
    models: Annotated[
        str | Sequence[str] | None,
        Flag(
            "A dense model to try; may be repeated. Default: those on this machine.",
            MODELS,
            ("--model",),
            metavar="NAME",
            completion="models",
        ),
    ] = None,
    rerankers: Annotated[
        str | Sequence[str] | None,
        Flag(
            "A reranker to try; may be repeated. Default: those on this machine.",
            MODELS,
            ("--rerank",),
            metavar="NAME",
            completion="rerankers",
        ),
    ] = None,
    give_up: Annotated[
        float | None,
        Flag(
            "Points of nDCG@10 that you would give up for a cheaper or faster pipeline. Needs 100 judged questions. "
            "Default: none.",
            metavar="POINTS",
            low=0,
        ),
    ] = None,
) -> Advice:
    """Try the pipelines that can run here, cheap ones first, and recommend one of them.

    By default, `models` and `rerankers` are those whose weights are on this machine. Expansions and LLM rerankers are
    tried with each of `llms`. The best pipeline is recommended. With `give_up` and at least 100 judged questions, it is
    the cheapest pipeline that surely loses no more than this many points. Raises UserError if too few questions are
    judged or can be answered.
    """
    from r2med.data.loading import loaded
    from r2med.evaluation.advice.ladder import advice_for
    from r2med.foundation.runtime.runtime import running

    with running(setup) as runtime:
        given = loaded(dataset, runtime.store)
        chosen = None if models is None else as_list(models), None if rerankers is None else as_list(rerankers)
        return advice_for(given, runtime, as_list(llms), *chosen, give_up)


def audit(
    dataset: Annotated[
        str | Path | Dataset | None,
        Argument("A name or a folder.", metavar="DATASET", completion="datasets", kind=str),
    ] = None,
    *,
    qrels: Annotated[
        str | Path | None,
        Flag("Audit this file of judgements instead of a dataset: a part of the checks.", metavar="FILE"),
    ] = None,
    results: Annotated[
        str | Path | None,
        Flag("Folder with the records of systems. Default: results, if it has records of the dataset.", metavar="DIR"),
    ] = None,
    against: Annotated[
        str | Path | Sequence[str | Path] | None,
        Flag(
            "Look for the texts of the dataset in this file, such as training data: JSON Lines, CSV or Parquet with "
            "any columns of text. May be repeated.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        str | Path | None, Flag("Write the HTML page to this file.", names=("--out", "-o"), metavar="FILE")
    ] = None,
) -> Audit:
    """Check the labels and texts of a dataset. Each check is sound, needs a look or is broken, with the evidence.

    `qrels` is a file of judgements to audit instead of a dataset. `results` is a folder of records, whose rankings show
    what missing labels change. `against` are files of other data, such as the training data of a model: a finding says
    which questions, answers and relevant documents they hold, equal, nearly equal or in part.
    """
    from r2med.assessment.audit.audit_files import check_page, write_page
    from r2med.assessment.audit.checks import audited

    page = Path(out) if out is not None else None
    if page is not None:
        check_page(page)
    files = [Path(file) for file in as_list(against)]
    made = audited(dataset, Path(qrels) if qrels else None, Path(results) if results else None, files)
    if page is not None:
        write_page(made, page)
    return made


def judge(
    *systems: Annotated[str | Path | Sequence[str | Path], flags.COMPARED_SYSTEMS],
    llms: Annotated[
        str | Sequence[str] | None,
        Flag(
            "A judge. May be repeated: the judges then form a committee.",
            names=("--llm",),
            metavar="NAME",
            completion="llms",
        ),
    ] = None,
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.COMPARED_DATA] = None,
    results: Annotated[str | Path, flags.RESULTS] = "results",
    depth: Annotated[int, Flag("Ranks of each system whose documents are labelled.", low=1)] = 10,
    rubric: Annotated[
        str | Path,
        Flag(
            "How to label: relevance, or the TOML file of a rubric of your own.",
            metavar="NAME|FILE",
            kind=str,
        ),
    ] = "relevance",
    repeats: Annotated[
        int, Flag("Number of times that each judge is asked. The lower median of its grades counts.", low=1, high=1000)
    ] = 1,
    untested: Annotated[bool, Flag("Go on if the labels give too few controls to test a judge.")] = False,
    prompt: Annotated[str | Path | None, Flag("A prompt of your own instead of ours.", metavar="FILE")] = None,
    out: Annotated[
        str | Path, Flag("The overlay to write.", names=("--out", "-o"), metavar="FILE")
    ] = "overlays/judged.jsonl",
    max_failures: Annotated[float, flags.MAX_FAILURES] = 0.1,
    setup: Annotated[Setup | Runtime | None, _ASKING] = None,
) -> JudgedPools:
    """Label the documents that systems return and that have no label, in an overlay. The dataset is not changed.

    `systems` are names of systems with records in `results`, record files, or folders of them. Each judge first answers
    planted controls. With `repeats`, each judge is asked this often, and the overlay has all its labels. Raises
    UserError if a judge fails its controls, or if there is nothing to label.
    """
    from r2med.assessment.judgements.committee import all_repeats, plan_judging
    from r2med.data.dataset_word import given_data
    from r2med.data.overlays import check_overlay_name
    from r2med.evaluation.records.collection import collect, given_records
    from r2med.evaluation.records.relabelled import recorded_datasets
    from r2med.foundation.engine.reporting import announcing
    from r2med.foundation.runtime.runtime import repeated, running
    from r2med.foundation.store.files import check_writable
    from r2med.public.call_plan import planned

    check_overlay_name(Path(out))
    with running(setup) as runtime:
        collection = collect(given_records(*systems), results, max_failures)
        datasets = list(recorded_datasets(collection, given_data(data), runtime.store).values())
        plans = [
            plan_judging(
                collection,
                datasets,
                as_list(llms),
                in_repeat,
                rubric=str(rubric),
                depth=depth,
                prompt=Path(prompt) if prompt else None,
                untested=untested,
            )
            for in_repeat in repeated(runtime, repeats)
        ]
        planned(lambda: plans[0].plan(runtime.setup, repeats))
        check_writable(Path(out).parent, "out (--out)")
        announce = announcing(2 * sum(len(plan.llms) for plan in plans))
        with runtime.network():
            judged = all_repeats([plan.ask(announce) for plan in plans])
    judged.overlay.write(Path(out))
    return judged


def nuggets(
    data: Annotated[
        str | Path | Dataset,
        Flag("The dataset, by its name or its folder.", metavar="NAME", completion="datasets", kind=str),
    ],
    llm: Annotated[str, Flag("The LLM that writes the nuggets.", metavar="NAME", completion="llms")],
    out: Annotated[str | Path, Flag("The file to write.", names=("--out", "-o"), metavar="FILE")] = "nuggets.jsonl",
    setup: Annotated[Setup | Runtime | None, _ASKING] = None,
) -> MadeNuggets:
    """Take reference answers apart into nuggets: the facts that an answer must contain. People can review them.

    Raises UserError if no query has a reference answer, or if the LLM wrote nothing that can be used.
    """
    from r2med.assessment.answers.nugget_making import plan_nuggets
    from r2med.data.loading import loaded
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.engine.reporting import announcing
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable
    from r2med.public.call_plan import planned

    file = Path(out)
    if file.suffix != ".jsonl":
        raise UserError(f"{file} does not end in .jsonl: nuggets are JSON lines, such as {file.stem}.jsonl")
    with running(setup) as runtime:
        dataset = loaded(data, runtime.store)
        plan = plan_nuggets(dataset, llm, runtime)
        planned(lambda: plan.plan(runtime.setup))
        check_writable(file.parent, "out (--out)")
        with runtime.network():
            announcing(1)(f"{dataset.name} · nuggets · {plan.llm}")
            made = plan.make()
    made.nuggets.write(file)
    return made
