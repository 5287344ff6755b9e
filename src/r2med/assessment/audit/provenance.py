"""Checks of an audit: how the texts were read, and where the dataset comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from r2med.assessment.audit.audit_findings import BROKEN_SHARE
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.encoding_faults import ENTITIES, encoding_faults
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import OWN_PREFIX, DatasetCard
from r2med.foundation.core.version import __version__
from r2med.foundation.pages.finding import Evidence, EvidenceCell, Finding, Verdict
from r2med.foundation.text.plurals import counted

LOOK_SHARE = 0.01
"""Share of the documents or of the queries from which a fault of encoding is worth a look."""

_LICENCE_NAMES = ("LICENSE", "LICENCE", "COPYING")
_LICENCE_LINE = re.compile(r"^license:\s*\S", re.MULTILINE)


def encoding(material: AuditMaterial) -> Finding:
    """Find characters that a wrong encoding left in queries and documents."""
    assert material.dataset is not None
    scan = material.scan
    documents = max(1, len(material.dataset.corpus))
    rows: list[Sequence[EvidenceCell]] = []
    in_queries: dict[str, int] = {}
    for query in material.queries.values():
        for kind, example in encoding_faults(query.text).items():
            in_queries[kind] = in_queries.get(kind, 0) + 1
            rows.append((kind, "query", query.id, shown_characters(example)))
    for kind, found in scan.faults.items():
        ids = material.ids([row for row, _ in found])
        rows += [(kind, "document", i, shown_characters(each)) for i, (_, each) in zip(ids, found, strict=True)]
    shares = {
        kind: max(scan.fault_counts.get(kind, 0) / documents, in_queries.get(kind, 0) / max(1, len(material.queries)))
        for kind in {**scan.fault_counts, **in_queries}
    }
    verdict: Verdict = "look" if any(share > LOOK_SHARE for share in shares.values()) else "sound"
    if any(share >= BROKEN_SHARE for kind, share in shares.items() if kind != ENTITIES):
        verdict = "broken"
    parts = [
        f"{kind} in {counted(scan.fault_counts.get(kind, 0), 'document')}"
        + (f" and {counted(in_queries[kind], 'query', 'queries')}" if kind in in_queries else "")
        for kind in shares
    ]
    sentence = f"{'; '.join(parts)}." if parts else "No fault of encoding was found."
    return Finding(
        verdict=verdict,
        sentence=sentence[0].upper() + sentence[1:],
        numbers={kind: scan.fault_counts.get(kind, 0) + in_queries.get(kind, 0) for kind in shares},
        evidence=Evidence.found(("fault", "in", "id", "such as"), rows),
    )


def shown_characters(text: str) -> str:
    """Return a text with its invisible characters as code points."""
    return "".join(sign if sign.isprintable() and sign != "\ufffd" else f"U+{ord(sign):04X}" for sign in text)


def provenance(material: AuditMaterial) -> Finding:
    """Look for the licence and the source of the dataset."""
    assert material.dataset is not None
    licence, source = _licence(material.dataset), _source(material.dataset)
    missing = [what for what, known in (("licence", licence), ("source", source)) if not known]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        sentence = (
            f"The {' and the '.join(missing)} of the dataset {verb} not stated: write a README.md beside the data."
        )
    else:
        sentence = f"Licence: {licence}. Source: {source}."
    return Finding(
        verdict="look" if missing else "sound",
        sentence=sentence,
        numbers={"licence": int(bool(licence)), "source": int(bool(source))},
    )


def _licence(dataset: Dataset) -> str:
    if (card := _own_card(dataset)) and card.licence:
        return card.licence
    if file := _file(dataset.folder, _LICENCE_NAMES):
        return file.name
    readme = _readme(dataset)
    return "in README.md" if _LICENCE_LINE.search(readme) else ""


def _source(dataset: Dataset) -> str:
    card = _own_card(dataset)
    if dataset.source:
        return dataset.source
    if dataset.name.startswith("demo/"):
        return f"r2med {__version__}"
    if card and card.hub:
        return f"{card.hub.repository}@{card.hub.revision}" if card.hub.revision else card.hub.repository
    if card and card.by_hand:
        return "fetched by hand, as its card says"
    return "README.md" if _readme(dataset).strip() else ""


def _own_card(dataset: Dataset) -> DatasetCard | None:
    """Return the card of the dataset, unless it is that of a benchmark whose name the folder only shares."""
    own = dataset.folder is not None and (dataset.folder / "card.toml").is_file()
    return None if dataset.name.startswith(OWN_PREFIX) and not own else dataset.card


def _readme(dataset: Dataset) -> str:
    file = _file(dataset.folder, ("README",))
    try:
        return file.read_text("utf-8", "replace")[:100_000] if file else ""
    except OSError:
        return ""


def _file(folder: Path | None, stems: Sequence[str]) -> Path | None:
    """Return the first file of a folder with one of these names, whatever their endings."""
    if folder is None or not folder.is_dir():
        return None
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return next((path for path in files if path.stem.upper() in stems), None)
