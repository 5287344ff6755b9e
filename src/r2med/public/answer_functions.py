"""What a benchmark and its answers are worth: let LLMs answer, analyse results, reproduce published scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from r2med.evaluation.records.answer_words import CONDITIONS, READ_CONDITIONS, AnswerForm
from r2med.foundation.core.flags import LLMS, MODELS, OUTPUT, Argument, Flag, SetupFlags, as_list, flattened
from r2med.foundation.core.spec import joined_words
from r2med.public import shared_flags as flags
from r2med.public.call_plan import planned

if TYPE_CHECKING:
    from r2med.analysis.analysis import Analysis
    from r2med.assessment.answers.answering import AnsweredSystems
    from r2med.data.dataset import Dataset
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.publication.leaderboard.reproduction import Reproduction
    from r2med.systems.system.system import System


def answer(
    systems: Annotated[
        object | Sequence[object] | None,
        Argument(
            "Systems whose results are read: bm25, 'hyde(author) → bm25', ….",
            metavar="SYSTEM",
            completion="systems",
            read=joined_words,
        ),
    ] = None,
    readers: Annotated[
        str | Sequence[str] | None,
        Flag("An LLM that reads and answers. May be repeated.", names=("--reader",), metavar="LLM", completion="llms"),
    ] = None,
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.DATASETS] = None,
    *,
    judge: Annotated[
        str | None,
        Flag(
            "An LLM that judges open answers. Without it, only an answer that is the reference is decided.",
            metavar="LLM",
            completion="llms",
        ),
    ] = None,
    passages: Annotated[int, Flag("Number of passages that a reader reads.", low=1)] = 5,
    conditions: Annotated[
        str | Sequence[str] | None,
        Flag(
            f"What is read: {flags.choices(CONDITIONS)}. May be repeated. Default: all but searched, in which an agent "
            "searches and answers by itself.",
            names=("--condition",),
            metavar="NAME",
            read=flags.comma_separated,
        ),
    ] = None,
    without: Annotated[
        Literal["relevant"] | None,
        Flag("Hide the relevant documents and their copies from an agent that searches, without changing the dataset."),
    ] = None,
    form: Annotated[
        AnswerForm | None,
        Flag(
            "Ask for an answer in the reader's own words, or for one of several options. "
            "Default: as the card of the dataset says."
        ),
    ] = None,
    nuggets: Annotated[
        str | Path | None,
        Flag(
            "The facts that answers must contain, for the judge. Default: nuggets.jsonl of the dataset.",
            metavar="FILE",
        ),
    ] = None,
    queries: Annotated[int, Flag("Only the first questions of each dataset. 0: all.", low=0)] = 0,
    repeats: Annotated[int, flags.ASKED_REPEATS] = 1,
    untested: Annotated[bool, Flag("Go on if the answers give too few controls to test the judge.")] = False,
    out: Annotated[str | Path, Flag("Folder for records.", OUTPUT, ("--out", "-o"), metavar="DIR")] = "results",
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(*flags.WEIGHTS, *flags.ASKING, "memory", "engine", "recorded", "generations"),
    ] = None,
    **settings: Any,
) -> AnsweredSystems:
    """Let LLMs answer questions from the results of systems, and record every answer with what was read.

    A reader is an LLM that reads the first `passages` of a system and answers. `conditions` are what it reads: nothing
    ("closed book"), the results ("retrieved"), the labelled passages ("relevant") or random ones ("random"). In the
    condition "searched", which is asked only by name, each system is an agent that searches and answers by itself: its
    LLM is the reader of all conditions. `without="relevant"` hides the relevant documents from it. The form of the
    answers is that of the dataset's card, unless `form` is given. `judge` is an LLM that judges answers in the
    reader's own words. It also looks for the nuggets of the dataset, or those of the file `nuggets`. `queries` limits
    the number of questions of each dataset. Records of systems and of readers that `out` has already are used again.
    With `untested`, a judge is used although the answers give too few controls to test it. With `repeats`, all LLMs are
    asked this often, and each time has its own records. `settings` are fields of `Setup`.

    The result has a record for each combination, and errors for those that have none. Raises UserError if all failed.
    """
    from r2med.assessment.answers.answer_plan import planned_answers
    from r2med.assessment.answers.answering import all_repeats, plan_answers
    from r2med.data.dataset_word import given_data
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.engine.reporting import announcing, notebook_progress
    from r2med.foundation.runtime.runtime import repeated, running
    from r2med.foundation.store.files import check_writable

    with running(setup, **settings) as runtime, notebook_progress():
        asked = dict[str, Any](
            judge=judge or "",
            passages=passages,
            conditions=as_list(conditions) or READ_CONDITIONS,
            without=without or "",
            form=form,
            nuggets=nuggets or "",
            queries=queries,
            untested=untested,
        )
        plans = [
            plan_answers(as_list(systems), as_list(readers), given_data(data), in_repeat, **asked)
            for in_repeat in repeated(runtime, repeats)
        ]
        planned(lambda: planned_answers(plans[0], repeats))
        check_writable(Path(out), "out (--out)")
        announce = announcing(sum(plan.steps for plan in plans))
        done = all_repeats([plan.answer(Path(out), announce) for plan in plans])
    if not done.records and done.errors:
        raise UserError(done.errors[0])
    return done


def analyse(
    *names: Annotated[
        str | Sequence[str],
        Argument("Analyses. Default: all that ask no LLM.", metavar="NAME", kind=str),
    ],
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.DATASETS] = None,
    systems: Annotated[
        str | Path | System | Sequence[str | Path | System] | None,
        Flag("Analyse only these records. May be repeated.", names=("--system",), metavar="SYSTEM|RECORD|FOLDER"),
    ] = None,
    results: Annotated[str | Path, flags.RESULTS] = "results",
    measure: Annotated[
        str | None,
        Flag("A measure of the records: nDCG@10, MRR, R@100, …. Default: nDCG@10.", metavar="NAME"),
    ] = None,
    max_failures: Annotated[float, flags.MAX_FAILURES] = 0.1,
    model: Annotated[
        str | None,
        Flag(
            "An embedding model. The analysis overlap then also measures the cosine of its vectors.",
            MODELS,
            metavar="NAME",
            completion="models",
        ),
    ] = None,
    synonyms: Annotated[
        str | Path | None,
        Flag(
            "A table of synonyms: a CSV file with the columns concept and term. The analysis difficulty "
            "then shows which concepts relevant documents write in other words.",
            metavar="FILE",
        ),
    ] = None,
    queries: Annotated[
        int,
        Flag(
            "Documents and questions per dataset that the LLM continues (contamination). 0 means 50.",
            LLMS,
            low=0,
        ),
    ] = 0,
    out: Annotated[
        str | Path, Flag("Folder for the page and its CSV files.", OUTPUT, ("-o", "--out"), metavar="DIR")
    ] = "analysis",
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(*flags.WEIGHTS, "memory", "llm", *flags.QUESTIONS),
    ] = None,
    **settings: Any,
) -> Analysis:
    """Analyse a benchmark and its results: one page, and a CSV file for every table of it.

    Without names, all analyses run that do not ask an LLM (`r2med list analyses`). `data` are datasets or groups,
    `systems` names of systems with records in `results`, record files or folders. `settings` are fields of `Setup`.
    """
    from r2med.analysis.analysis import analysis_plan, checked_names, run_analyses
    from r2med.data.dataset_word import each_dataset, given_data
    from r2med.foundation.engine.reporting import announcing, notebook_progress
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable

    wanted = checked_names(flattened(names))
    material: dict[str, Any] = {
        **{
            "data": each_dataset(given_data(data)),
            "systems": as_list(systems),
            "results": results,
            "max_failures": max_failures,
        },
        **({"measure": measure} if measure is not None else {}),
        **{"model": model or "", "synonyms": synonyms, "queries": queries},
    }
    with running(setup, **settings) as runtime, notebook_progress():
        planned(lambda: analysis_plan(*wanted, setup=runtime, **material))
        check_writable(Path(out), "out (--out)")
        return run_analyses(*names, out=out, setup=runtime, announce=announcing(len(wanted)), **material)


def reproduce(
    systems: Annotated[
        str | Sequence[str] | None,
        Argument(
            "Systems, e.g. bm25 or 'hyde(o3-mini) → nv'. Default: all that is known on the data.",
            metavar="NAME",
            completion="systems",
            read=joined_words,
        ),
    ] = None,
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.DATASETS] = None,
    *,
    cpu: Annotated[
        bool, Flag("Only systems that need neither a GPU nor a key: BM25, also with recorded texts.")
    ] = False,
    repeats: Annotated[int, flags.RUN_REPEATS] = 1,
    out: Annotated[str | Path, Flag("Folder for records and runs.", names=("--out", "-o"), metavar="DIR")] = "results",
    setup: Annotated[Setup | Runtime | None, SetupFlags(*flags.WEIGHTS, "memory", "base_url", "generations")] = None,
    **settings: Any,
) -> list[Reproduction]:
    """Compare our scores with published ones: OK, near or off. Without --data: the known scores on the demo.

    Systems with expected scores are run on the datasets, and their records are saved in `out`. With `cpu`, only those
    that need neither a GPU nor a key are run. With `repeats`, a system that varies is run this often, and the means
    over its runs are compared. Raises UserError if there are no such systems. The plan without data has all known
    scores, and the published rows that cannot be run.
    """
    from r2med.data.dataset_word import given_data
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable
    from r2med.publication.leaderboard.reproduction import chosen_scores, known_scores, outcome, reproduced

    names, given = as_list(systems), given_data(data)
    if not given:
        planned(lambda: known_scores(names or [""], cpu))
    chosen = chosen_scores(names, given or ["demo"], cpu)
    planned(lambda: [outcome(expectation, {}, list(words)) for expectation, words in chosen])
    check_writable(Path(out), "out (--out)")
    with running(setup, **settings) as runtime:
        return [reproduced(expectation, words, Path(out), runtime, repeats) for expectation, words in chosen]
