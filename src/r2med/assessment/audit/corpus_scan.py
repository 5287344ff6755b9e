"""Read a corpus once for an audit: empty texts and faults of encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from r2med.assessment.audit.encoding_faults import encoding_faults
from r2med.data.corpus import Corpus
from r2med.foundation.pages.finding import MAX_EVIDENCE


@dataclass
class CorpusScan:
    """What one pass over a corpus found. Documents are rows of the corpus. Lists are bounded, counts are not."""

    empty: list[int] = field(default_factory=list)
    """Documents without text, at most `MAX_EVIDENCE`, judged ones always."""
    empty_count: int = 0
    faults: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Kind of fault -> documents with an example, at most `MAX_EVIDENCE`."""
    fault_counts: Counter[str] = field(default_factory=Counter)


def scan_corpus(corpus: Corpus, judged: Collection[int]) -> CorpusScan:
    """Read a corpus once. `judged` are rows of documents."""
    scan = CorpusScan()
    for start, texts in corpus.text_blocks():
        for row, text in enumerate(texts, start):
            if not text.strip():
                scan.empty_count += 1
                if row in judged or len(scan.empty) < MAX_EVIDENCE:
                    scan.empty.append(row)
            for kind, example in encoding_faults(text).items():
                scan.fault_counts[kind] += 1
                if len(known := scan.faults.setdefault(kind, [])) < MAX_EVIDENCE:
                    known.append((row, example))
    return scan
