"""The head of a README that describes a dataset to the hub: configs, splits and licence. JSON values are valid YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from r2med.foundation.text.search_languages import ENGLISH

LICENCES = ("apache-2.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-sa-4.0", "cc0-1.0", "mit", "odc-by")
"""Licences of the hub's list that are used for data. Any other licence is "other", with its name beside it."""
SHORT_LICENCES = {"cc0": "cc0-1.0", "cc-by": "cc-by-4.0", "cc-by-sa": "cc-by-sa-4.0"}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10**9, "n>1M"))


def hub_head(
    title: str,
    licence: str,
    documents: int,
    files: Mapping[str, str],
    split: str = "",
    languages: Sequence[str] = (ENGLISH,),
) -> str:
    """Return the head of a README. `files` maps each config to its file.

    `split` is the name of every split. Without it, each split has the name of its config. `languages` are codes.
    """
    known = SHORT_LICENCES.get(licence.lower(), licence.lower())
    facts = {
        "pretty_name": title,
        "license": known if known in LICENCES else "other",
        **({} if known in LICENCES else {"license_name": licence or "not stated"}),
        "language": list(languages),
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
