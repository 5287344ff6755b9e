"""Export the conversations of agents that answered as run files in the form of BrowseComp-Plus."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from r2med.evaluation.records.collection import MAX_FAILURES, collect, given_records
from r2med.evaluation.running.evaluation import slug
from r2med.evaluation.running.run_export import stem_with_repeat
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import write_atomically
from r2med.systems.agents.agent_run_files import file_of_trace
from r2med.systems.system import System


def export_agent_runs(
    sources: str | Path | Sequence[str | Path],
    out: Path | str,
    results: Path | str = "results",
    max_failures: float = MAX_FAILURES,
) -> list[Path]:
    """Write a file for each question that an agent worked on (DATASET/SYSTEM-KEY/run_NUMBER.json), and return them.

    `sources` are record files, folders, or names of systems in `results`. Raises UserError if no record has a
    conversation that ends with an answer.
    """
    written = []
    for kept in collect(given_records(sources), results, max_failures).runs_of_all:
        folder = Path(out).joinpath(*map(slug, kept.record.dataset.name.split("/")), _plain(stem_with_repeat(kept)))
        for number, (query, traces) in enumerate(kept.traces().items()):
            if "steps" in traces[0]:
                value = file_of_trace(query, traces[0], _model(kept.record.system))
                text = json.dumps(value, ensure_ascii=False, indent=2)
                write_atomically(folder / f"run_{number:05}.json", text.encode())
                written.append(folder / f"run_{number:05}.json")
    if not written:
        raise UserError("no record has answers of an agent: r2med answer 'agent(LLM)' --condition searched makes some")
    return written


def _plain(name: str) -> str:
    """Return a name without signs that have a meaning in the grammar of systems, so that its path can be typed."""
    return re.sub(r"[^\w.-]+", "_", name)


def _model(system: str) -> str:
    """Return the LLM of an agent; the whole system if it has none."""
    try:
        return str(getattr(System.parse(system).retriever, "llm", system))
    except UserError:
        return system
