"""The head of a README by which the hub knows a dataset: configs, splits, licence. JSON values, which are YAML too."""

from __future__ import annotations

import json
from collections.abc import Mapping

from r2med.construction.publish.croissant import CONFIGS
from r2med.construction.publish.outcome import Outcome

LICENCES = ("apache-2.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-sa-4.0", "cc0-1.0", "mit", "odc-by")
"""Those of the hub's own list that data have; any other has its name beside it."""
SHORT = {"cc0": "cc0-1.0", "cc-by": "cc-by-4.0", "cc-by-sa": "cc-by-sa-4.0"}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10**9, "n>1M"))


def hub_card(made: Outcome) -> str:
    """Return the head of what was built."""
    plan = made.plan
    files = {name: f"{name}.jsonl" for name in CONFIGS}
    return hub_head(plan.title or plan.name, plan.licence, made.documents, files)


def hub_head(title: str, licence: str, documents: int, files: Mapping[str, str], split: str = "") -> str:
    """Return the head; `files` has the file of each config, whose split bears the config's name unless told."""
    known = SHORT.get(licence.lower(), licence.lower())
    facts = {
        "pretty_name": title,
        "license": known if known in LICENCES else "other",
        **({} if known in LICENCES else {"license_name": licence or "not stated"}),
        "language": ["en"],
        "task_categories": ["text-retrieval"],
        "tags": ["medical", "reasoning", "retrieval", "r2med"],
        "size_categories": [next(name for most, name in SIZES if documents < most)],
        "configs": [
            {"config_name": name, "data_files": [{"split": split or name, "path": file}], **_default(name)}
            for name, file in files.items()
        ],
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _default(name: str) -> dict[str, bool]:
    return {"default": True} if name == "query" else {}
