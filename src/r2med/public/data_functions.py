"""Datasets: import tables of one's own, fetch, check and export datasets, write example data and training sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from r2med.foundation.core.flags import Argument, Flag, as_list

if TYPE_CHECKING:
    from r2med.assessment.training.training_set import TrainingSet
    from r2med.data.dataset import Dataset
    from r2med.data.overlays import Overlay
    from r2med.data.problems import Problems

DOCUMENTS, QUESTIONS = "Columns of documents", "Columns of questions and judgements"
"""Panels of the help page of an import."""
_DATASETS = Argument("Names, groups or folders.", metavar="DATASET", completion="datasets", kind=str)
_NEW_FOLDER = Flag("The new folder.", names=("--out", "-o"), metavar="DIR")


def _column(meaning: str, panel: str) -> Flag:
    return Flag(meaning, panel, metavar="COLUMN")


def import_data(
    files: Annotated[
        str | Path | Sequence[str | Path],
        Argument("CSV, TSV, JSON, JSON Lines, Parquet, Excel or OpenDocument.", metavar="FILE"),
    ],
    out: Annotated[str | Path, _NEW_FOLDER],
    *,
    id: Annotated[str | None, _column("The id of a document.", DOCUMENTS)] = None,
    text: Annotated[
        str | Sequence[str] | None,
        _column("The text of a document. May be repeated: the columns are joined under their headings.", DOCUMENTS),
    ] = None,
    title: Annotated[str | None, _column("The title of a document. It is searched as well.", DOCUMENTS)] = None,
    query: Annotated[str | None, _column("The question.", QUESTIONS)] = None,
    query_id: Annotated[str | None, _column("The id of the question.", QUESTIONS)] = None,
    answer: Annotated[str | None, _column("The reference answer. Retrieval never sees it.", QUESTIONS)] = None,
    relevant: Annotated[
        str | None, _column("The ids of relevant documents. A cell can hold several.", QUESTIONS)
    ] = None,
    grade: Annotated[str | None, _column("The grade of the relevant documents.", QUESTIONS)] = None,
    no_grade: Annotated[
        bool, Flag("No column holds grades: every document that is named is relevant.", QUESTIONS)
    ] = False,
    header: Annotated[
        bool | None,
        Flag(
            "The first row holds column names, or not. Default: detected.", names=("--header/--no-header",), kind=bool
        ),
    ] = None,
    skip_rows: Annotated[
        int | Sequence[int] | None,
        Flag("Number of rows above the column names, once or for each file. Default: detected.", metavar="N", low=0),
    ] = None,
    sheets: Annotated[
        str | Sequence[str] | None,
        Flag(
            "A sheet of a workbook. May be repeated. Default: all sheets with tables.",
            names=("--sheet",),
            metavar="NAME",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        Flag("Encoding of CSV and similar files that are not UTF-8, such as cp1252 or gb18030.", metavar="NAME"),
    ] = None,
    language: Annotated[
        str | None, Flag("Language of the documents, such as de. Default: guessed from the texts.", metavar="CODE")
    ] = None,
    keep_markup: Annotated[bool, Flag("Take texts of HTML or RTF as they are, with their markup.")] = False,
    deidentify: Annotated[
        bool,
        Flag("Replace dates, ages over 89, ids, telephone numbers and mail addresses in all texts. Names stay."),
    ] = False,
    update: Annotated[
        bool,
        Flag("Replace the dataset that an earlier import wrote into the folder. Its columns and flags are used again."),
    ] = False,
) -> Dataset:
    """Make a dataset from your own tables of documents and, if you have them, questions and judgements.

    Columns that are not named are guessed. `skip_rows` is a number for all files, or one for each file. With `update`,
    the dataset of an earlier import is replaced. Its columns and other choices are used again, except for those that
    are given now. Raises UserError if a file cannot be read, or if the folder holds anything else.
    """
    from r2med.data.tables.import_choices import ImportChoices
    from r2med.data.tables.importing import plan_import
    from r2med.data.tables.table_import import earlier_choices, write_import
    from r2med.foundation.store import default_store
    from r2med.public.call_plan import planned

    earlier = earlier_choices(Path(out), update)
    columns: dict[str, Any] = {
        **{"id": id, "title": title, "query": query, "query_id": query_id},
        **{"answer": answer, "relevant": relevant, "grade": grade, "text": as_list(text)},
    }
    typed = ImportChoices(
        header=header,
        skip_rows=skip_rows if isinstance(skip_rows, int) else tuple(as_list(skip_rows)) or None,
        sheets=tuple(as_list(sheets)),
        encoding=encoding or "",
        language=language or "",
        keep_markup=keep_markup,
        no_grade=no_grade,
        deidentify=deidentify,
    )
    named = {role: column for role, column in columns.items() if column}
    plan = plan_import(as_list(files), typed=typed, earlier=earlier, **named)
    planned(lambda: plan)
    return write_import(plan, Path(out), default_store(), update)


def example_data(
    out: Annotated[str | Path, Flag("Where to write.", names=("--out", "-o"), metavar="DIR")] = ".",
) -> Dataset:
    """Write example data: the tables notes.csv and questions.csv, and the dataset folder example.

    The texts are those of the demo. Raises UserError if `out` has a file or folder of one of these names.
    """
    from r2med.data.example_data import write_example_data

    return write_example_data(Path(out))


def fetch_data(data: Annotated[str | Path | Sequence[str | Path], _DATASETS]) -> tuple[Dataset, ...]:
    """Download datasets and prepare their corpora, so that later runs need no network."""
    from r2med.data.dataset_word import dataset_names
    from r2med.data.loading import announce_fetching, load_dataset
    from r2med.foundation.store import default_store

    words = dataset_names(data)
    announce_fetching(words, default_store())
    return tuple(map(load_dataset, words))


def check_data(data: Annotated[str | Path | Sequence[str | Path], _DATASETS]) -> dict[str, Problems]:
    """Report all problems of datasets at once, with file and line.

    Return the problems of each dataset by its name.
    """
    from r2med.data.check import check
    from r2med.data.dataset_word import dataset_names

    return {name: check(name) for name in dataset_names(data)}


def export_data(
    data: Annotated[
        Dataset | str | Path, Argument("A name or a folder.", metavar="DATASET", completion="datasets", kind=str)
    ],
    out: Annotated[str | Path, _NEW_FOLDER],
    layout: Annotated[str, Flag("beir, mteb, trec, hub or croissant.", names=("--format",), metavar="NAME")] = "beir",
) -> Path:
    """Write a dataset in the layout of another tool.

    Return the new folder. Raises UserError if the folder exists already, or if the layout cannot hold an id.
    """
    from r2med.data.loading import loaded
    from r2med.publication.bridges.data_export import write_layout

    write_layout(loaded(data), layout, Path(out))
    return Path(out)


def training_data(
    data: Annotated[
        Dataset | str | Path,
        Argument("A name or a folder with judged questions.", metavar="DATASET", completion="datasets", kind=str),
    ],
    out: Annotated[str | Path, _NEW_FOLDER],
    *,
    overlays: Annotated[
        str | Path | Overlay | Sequence[str | Path | Overlay] | None,
        Flag("Use the labels of this overlay too. May be repeated.", names=("--overlay",), metavar="FILE", kind=Path),
    ] = None,
    formats: Annotated[
        str | Sequence[str] | None,
        Flag(
            "triplets, negatives or listwise (sentence-transformers), flagembedding, or trl. May be repeated. "
            "Default: triplets.",
            names=("--format",),
            metavar="NAME",
        ),
    ] = None,
    negatives: Annotated[int, Flag("Largest number of negatives of a query. 0: positives only.", low=0)] = 5,
    folds: Annotated[
        int | None,
        Flag("Split into this many folds by groups of queries that share nothing, one folder for each.", low=2),
    ] = None,
    synonyms: Annotated[
        str | Path | None,
        Flag("Table of synonyms of diagnoses, with the columns concept and term.", metavar="FILE"),
    ] = None,
    allow_test_set: Annotated[
        str | None,
        Flag("Write this known test set without folds. The datasheet says so.", metavar="NAME"),
    ] = None,
) -> TrainingSet:
    """Write a training set for an embedding model, a reranker or an LLM, with folds that do not leak and a datasheet.

    Positives are relevant documents. Negatives were judged to be clearly irrelevant, by judges (`r2med judge`), people
    or the dataset. A document without a label is never a negative. Raises UserError if the dataset is a known test set
    and is not split, or if one group of queries holds more than half of them.
    """
    from r2med.assessment.training.training_formats import DEFAULT_FORMAT, training_format
    from r2med.assessment.training.training_set import TrainingPlan
    from r2med.data.loading import loaded
    from r2med.data.overlays import given_overlays, overlay_files
    from r2med.foundation.store import default_store
    from r2med.foundation.store.files import check_writable
    from r2med.foundation.text.synonyms import Synonyms

    store = default_store()
    word, files = overlay_files(data) if isinstance(data, str) else (data, [])
    plan = TrainingPlan(
        loaded(word, store),
        tuple(given_overlays([*files, *as_list(overlays)])),
        tuple(dict.fromkeys(map(training_format, as_list(formats or DEFAULT_FORMAT)))),
        negatives,
        folds or 0,
        Synonyms.read(synonyms) if synonyms else None,
        allow_test_set or "",
    )
    check_writable(Path(out).parent, "out (--out)")
    return plan.write(Path(out), store)
