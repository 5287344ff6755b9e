"""The metadata of a run in the form of ir_metadata: how it was made, by the parts of PRIMAD, as YAML.

They lie in a file beside the run, since trec_eval 9 and other readers know no comments. They have no times, host names
or paths: the same run has the same bytes wherever it is made.
"""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.core.stages import Stage
from r2med.core.version import installed_versions, source_digest
from r2med.data.dataset import Dataset
from r2med.measure import HEADLINE_MEASURE
from r2med.records.public_values import public_value
from r2med.retrieve.fusion import Fusion
from r2med.store.files import write_atomically
from r2med.system import System

ENDING = ".ir_metadata.yml"


def metadata_path(run: Path) -> Path:
    """Return where the metadata of a run file lie: run.trec.gz has run.ir_metadata.yml."""
    return run.with_name(run.name.removesuffix(".gz").removesuffix(".trec") + ENDING)


def write_run_metadata(run: Path, system: System, dataset: Dataset, settings: Mapping[str, Any], tag: str) -> None:
    """Write the metadata of the run that a system gave, beside it."""
    command = ["r2med", "run", system.name, "--data", dataset.name, "--k", str(settings["k"])]
    write_metadata(run, tag, command, _components(system, settings), dataset)


def write_metadata(
    run: Path, tag: str, command: Sequence[str], components: Iterable[Mapping[str, Any]], dataset: Dataset
) -> None:
    """Write the metadata of a run that a command made out of what some components ranked, beside it."""
    lines = _yaml(public_value(_facts(tag, command, components, dataset)))
    write_atomically(metadata_path(run), "".join(f"{line}\n" for line in lines).encode())


def read_header(run: Path) -> list[str]:
    """Return the metadata beside a run as comment lines to put before it; none if the file is missing."""
    try:
        lines = metadata_path(run).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return ["# ir_metadata.start", *(f"# {line}" for line in lines), "# ir_metadata.end"]


def _facts(
    tag: str, command: Sequence[str], components: Iterable[Mapping[str, Any]], dataset: Dataset
) -> dict[str, Any]:
    versions = installed_versions()
    libraries = [f"{name}=={version}" for name, version in versions.items() if name not in ("r2med", "python")]
    return {
        "tag": tag,
        "actor": {},
        "platform": {
            "hardware": {"cpu": {"architecture": platform.machine()}},
            "operating system": {"platform": platform.system()},
            "software": {
                "libraries": {"python": libraries},
                "retrieval toolkit": [f"r2med=={versions['r2med']}"],
            },
        },
        "implementation": {
            "executable": {"cmd": shlex.join(command), "version": versions["r2med"]},
            "source": {"lang": [f"python {versions['python']}"], "digest": source_digest()},
        },
        "research goal": {"evaluation": {"reported measures": [str(HEADLINE_MEASURE)]}},
        "method": {
            "automatic": True,
            "score ties": "document id, descending",
            "retrieval": list(components),
        },
        "data": {
            "test collection": {
                "name": dataset.name,
                **({"source": dataset.source} if dataset.source else {}),
                "fingerprint": dataset.fingerprint,
            }
        },
    }


def _components(system: System, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stages in their order; one that works on what others ranked names them."""
    if system.expander is not None:
        yield {"name": str(system.expander), "method": "query expansion", "params": settings["expand"]}
    yield from _retrieval(system.retriever, settings["retrieve"])
    before = system.retriever
    for stage, params in zip(system.rerankers, settings["rerank"], strict=True):
        yield {"name": str(stage), "method": "reranking", "reranks": str(before), "params": params}
        before = stage


def _retrieval(stage: Stage, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not isinstance(stage, Fusion):
        yield {"name": str(stage), "method": "retrieval", "params": params}
        return
    for part, of_part in zip(stage.parts, params["parts"], strict=True):
        yield from _retrieval(part, of_part)
    own = {key: value for key, value in params.items() if key != "parts"}
    yield {"name": str(stage), "method": "fusion", "interpolates": list(map(str, stage.parts)), "params": own}


def _yaml(value: Any) -> Iterator[str]:
    """Yield the lines of a value as YAML; scalars and what is empty are JSON, which YAML reads."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            if part and isinstance(part, dict | list):
                yield f"{key}:"
                yield from (f"  {line}" for line in _yaml(part))
            else:
                yield f"{key}: {json.dumps(part, ensure_ascii=False)}"
    elif isinstance(value, list) and value:
        for part in value:
            first, *more = _yaml(part)
            yield f"- {first}"
            yield from (f"  {line}" for line in more)
    else:
        yield json.dumps(value, ensure_ascii=False)
