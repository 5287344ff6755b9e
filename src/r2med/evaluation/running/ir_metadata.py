"""Write the metadata of a run in the format of ir_metadata: YAML that describes how the run was made (PRIMAD).

The metadata are in a file beside the run, because trec_eval 9 and other readers do not accept comments. They contain no
times, host names or paths, so that the same run has the same bytes on every machine.
"""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.runs.ties import TIE_RULE
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.records.public_values import public_value
from r2med.foundation.core.version import installed_versions, source_digest
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store.files import write_atomically
from r2med.systems.agents.agent_retriever import RankingStage
from r2med.systems.retrieve.fusion import Fusion
from r2med.systems.system import System
from r2med.systems.system.nested_system import NestedSystem

ENDING = ".ir_metadata.yml"


def metadata_path(run: Path) -> Path:
    """Return the path of the metadata of a run file: run.ir_metadata.yml for run.trec.gz."""
    return run.with_name(run.name.removesuffix(".gz").removesuffix(".trec") + ENDING)


def write_run_metadata(run: Path, system: System, dataset: Dataset, settings: Mapping[str, Any], tag: str) -> None:
    """Write the metadata of a system's run beside the run file."""
    command = ["r2med", "run", system.name, "--data", dataset.name, "--k", str(settings["k"])]
    write_metadata(run, tag, command, _components(system, settings), dataset)


def write_metadata(
    run: Path, tag: str, command: Sequence[str], components: Iterable[Mapping[str, Any]], dataset: Dataset
) -> None:
    """Write the metadata of a run beside the run file, with its command and the components that ranked documents."""
    lines = _yaml(public_value(_facts(tag, command, components, dataset)))
    write_atomically(metadata_path(run), "".join(f"{line}\n" for line in lines).encode())


def read_header(run: Path) -> list[str]:
    """Return the metadata of a run as comment lines for its top; empty if the file is missing."""
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
            "score ties": TIE_RULE,
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
    """Yield the stages in their order. A stage that uses the rankings of other stages names them."""
    yield from _stages(system.expander, system.retriever, system.rerankers, settings)


def _stages(
    expander: Stage | None, retriever: Stage, rerankers: Sequence[Stage], settings: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    if expander is not None:
        yield {"name": str(expander), "method": "query expansion", "params": settings["expand"]}
    yield from _retrieval(retriever, settings["retrieve"])
    before = retriever
    for stage, params in zip(rerankers, settings["rerank"], strict=True):
        yield {"name": str(stage), "method": "reranking", "reranks": str(before), "params": params}
        before = stage


def _retrieval(stage: Stage, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(stage, NestedSystem):
        yield from _stages(stage.expander, stage.retriever, stage.rerankers, params)
        yield {"name": str(stage), "method": "system", "params": {"stage": "system"}}
        return
    if isinstance(stage, RankingStage):
        yield from _retrieval(stage.by, params["by"])
        own = {key: value for key, value in params.items() if key != "by"}
        yield {"name": str(stage), "method": "search agent", "searches with": str(stage.by), "params": own}
        return
    if not isinstance(stage, Fusion):
        yield {"name": str(stage), "method": "retrieval", "params": params}
        return
    for part, of_part in zip(stage.parts, params["parts"], strict=True):
        yield from _retrieval(part, of_part)
    own = {key: value for key, value in params.items() if key != "parts"}
    yield {"name": str(stage), "method": "fusion", "interpolates": list(map(str, stage.parts)), "params": own}


def _yaml(value: Any) -> Iterator[str]:
    """Yield the lines of a value as YAML. Scalars and empty values are written as JSON, which is valid YAML."""
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
