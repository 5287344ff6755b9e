"""Import predictions of MTEB: {Task}_predictions.json becomes a run file and a record with scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.loading import load_dataset, loaded
from r2med.data.runs import Run, write_run
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.running.evaluation import DEPTH, evaluate
from r2med.foundation.core.errors import UserError
from r2med.publication.bridges.mteb_results import dataset_of
from r2med.systems.retrieve.candidates import Candidates
from r2med.systems.system import System

ENDING = "_predictions"


def score_predictions(file: Path | str, data: str | Path | Dataset = "", out: Path | str = "results") -> Record:
    """Score predictions of MTEB and write the record to `out`. The dataset is that of the task, unless it is named.

    Raises UserError if the file has the wrong form, or names queries or documents that the dataset does not have.
    """
    file, out = Path(file), Path(out)
    model, rankings = _read(file)
    dataset = loaded(data) if data else load_dataset(dataset_of(file.stem.removesuffix(ENDING)))
    # A folder with one run per dataset is one system, so its records are averaged and compared as one.
    folder = out / "mteb" / slug(model.replace("/", "__"))
    path = folder.joinpath(*dataset.name.split("/"))
    write_run(Run.of(rankings), path.with_name(f"{path.name}.trec"), slug(model))
    return evaluate(System(Candidates.at(folder)), dataset, out, DEPTH)


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of the model, and query id -> document id -> score of the only split."""
    try:
        content = json.loads(file.read_bytes())
        model = content.pop("mteb_model_meta")["model_name"] or "unnamed"
        splits = {f"{subset} {split}": value for subset, parts in content.items() for split, value in parts.items()}
        [rankings] = splits.values()
        assert all(isinstance(scores, dict) for scores in rankings.values())
    except FileNotFoundError:
        raise UserError(f"{file} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"{file} is a folder: name a file TASK{ENDING}.json in it") from None
    except (KeyError, TypeError, AttributeError, AssertionError, UnicodeDecodeError, json.JSONDecodeError):
        raise UserError(
            f"{file} does not hold predictions of a retrieval task, which MTEB 2 writes with prediction_folder=DIR"
        ) from None
    except ValueError:
        raise UserError(
            f"{file} has predictions of {len(splits)} splits ({', '.join(splits)}): one is needed"
        ) from None
    return str(model), rankings
