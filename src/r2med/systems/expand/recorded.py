"""Recorded texts: texts that an LLM wrote earlier, read from files without calling an LLM."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.layouts.hub_tables import read_tables
from r2med.data.problems import Problems
from r2med.data.source_rows import SourceRow
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.keys import changed_values
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage
from r2med.models.llm.cleaning import VERSION, recorded_answers
from r2med.models.llm.costs import listed_kinds
from r2med.models.llm.llm_cards import LLMS, AnswerStyle, Cleaning, find_llm
from r2med.models.prompts.prompted_stage import PromptedStage
from r2med.systems.expand.expansion import Expansion, Joining
from r2med.systems.expand.generations import find_generations, folder_name, other_llms

AUTHOR = "author"
"""The author of hand-written texts of a dataset. It is not an LLM, whatever endpoint is named beside it."""

RECORDED = "reads recorded texts"
"""The text in a plan for a stage that calls no LLM."""

SEARCH_SETTINGS = ("query", "cleaning", "joining", "join", "fuse", "weights", "original")
"""Settings that recorded texts can follow: how texts are read and searched. All others are about LLM calls."""

Texts = Mapping[str, tuple[str, ...]]


class WritingStage(PromptedStage):
    """A stage whose texts an LLM writes, unless they were written before: then they are read from files."""

    @abstractmethod
    def open_recorded(self, runtime: Runtime) -> Recorded | None:
        """Return the reader of recorded texts. None if an LLM is called."""

    def recorded(self, runtime: Runtime) -> Recorded | None:
        """Return the reader of recorded texts, opened once. None if an LLM is called."""
        return runtime.part((self, "recorded"), lambda: self.open_recorded(runtime))

    def is_recorded(self, runtime: Runtime) -> bool:
        """Return True if recorded texts are read."""
        return self.recorded(runtime) is not None

    def asks(self, runtime: Runtime) -> bool:
        """Return True if an LLM is called."""
        return not self.is_recorded(runtime)


class RecordedTexts(SourceRow):
    """The texts of one query. A row without text is a query whose generation failed, which is not a fault."""

    id: str
    hy_doc: str | list[Any] | None
    text: str | None = None


def open_recorded(
    stage: Stage,
    llm: str,
    joining: Joining,
    setup: Setup,
    *,
    asked: bool = True,
    cleaning: Cleaning = "strict",
    style: AnswerStyle | None = None,
    whole: bool = False,
    own: bool = False,
) -> Recorded | None:
    """Return the reader of an LLM's recorded texts; None if the LLM must be called.

    Recorded texts are read if the setup says so, if they are hand-written, or if no LLM has this name. `style` is how
    answers are marked in texts that were not cleaned. None means as in the LLM's card, if there is one. With `whole`,
    texts are not cleaned. With `own`, the method has its own LLM.

    Raises UserError if the stage has settings for LLM calls, because recorded texts cannot follow them.
    """
    chosen = setup.recorded or llm == AUTHOR or not asked
    if not chosen and (own or find_llm(llm, setup) is not None):
        return None
    named = f"no known LLM has this name{nearest(llm, LLMS)}: see r2med list llms, or give base_url (--base-url URL)"
    otherwise = "" if chosen else named
    for key, _ in stage.changed:
        if key not in SEARCH_SETTINGS:
            why = otherwise or "recorded texts are searched unchanged"
            raise UserError(f"{stage}: {key} needs an LLM that is called: {why}")
    card = LLMS.get(llm.replace("_", "-"))  # the hub's splits are named with underscores
    style = style or (card.answer if card else "plain")
    return Recorded(stage, llm, joining, setup.generations, otherwise, style, cleaning, whole)


@dataclass(frozen=True)
class Recorded:
    """The recorded texts of one LLM by one method."""

    stage: Stage
    """The settings of the method."""
    llm: str
    joining: Joining
    folder: Path | None = None
    """The folder of the files; None means beside the dataset. A folder for several datasets has one for each."""
    otherwise: str = field(default="", compare=False)
    """Advice for the user if there are no texts; may be empty."""
    style: AnswerStyle = "plain"
    """How answers are marked in texts that were not cleaned."""
    cleaning: Cleaning = "strict"
    whole: bool = False
    """True if the reasoning is part of a text."""

    def __post_init__(self) -> None:
        folder_name(self.llm)  # raises UserError if this is not a name of an LLM

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return the settings that a score depends on. The texts themselves are given by their digest."""
        return {
            "stage": self.stage.name,
            "llm": self.llm,
            "source": "recorded",
            "cleaning": "whole" if self.whole else f"{self.cleaning} {self.style} {VERSION}",
            **changed_values(self.joining),
        }

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError if texts are missing or are not those of these datasets."""
        for dataset in datasets:
            self._texts(dataset)

    def expand(self, dataset: Dataset) -> Expansion:
        """Return the queries of the dataset with their recorded texts."""
        texts, failed, notices = self._texts(dataset)
        queries = [self.joining.join(query, texts[query.id]) for query in dataset.queries]
        return Expansion.of(queries, failure_kinds=_counted(failed), failed=failed, notices=tuple(notices))

    def _texts(self, dataset: Dataset) -> tuple[Texts, dict[str, str], list[str]]:
        """Return the answers of each query, the reasons for missing ones, and notices about the files."""
        files = self._files(dataset)
        rows, notices = _read(files, dataset)
        texts, failed = self._cleaned(rows, [query.id for query in dataset.queries])
        if failed:
            what = f"{len(failed)} of {len(texts)} queries have no text and are searched as they are"
            notices.append(f"{files[0]}: {what} ({listed_kinds(_counted(failed))})")
        return texts, failed, notices

    def _cleaned(self, rows: Texts, ids: list[str]) -> tuple[Texts, dict[str, str]]:
        """Return the answers, and the reasons for missing ones, in the terms of LLM failures."""
        written = {(name, index): text for name, parts in rows.items() for index, text in enumerate(parts)}
        raw = list(written.values())
        cleaned = raw if self.whole else recorded_answers(raw, self.style, self.cleaning)
        answers = dict(zip(written, cleaned, strict=True))
        texts, failed = {}, {}
        for name in ids:
            parts = rows.get(name, ())
            texts[name] = tuple(answer for index in range(len(parts)) if (answer := answers[name, index]))
            if not texts[name]:
                failed[name] = "missing" if name not in rows else "no_marker" if "".join(parts).strip() else "empty"
        return texts, failed

    def _files(self, dataset: Dataset) -> list[Path]:
        roots = [self.folder / dataset.name, self.folder] if self.folder is not None else [dataset.folder]
        existing = [root for root in roots if root is not None]
        if files := find_generations(existing, self.stage.name, self.llm):
            return files
        where = f" in {self.folder}" if self.folder else ""
        known = other_llms(existing, self.stage.name, self.llm)
        rest = f"; {self.otherwise}" if self.otherwise else ""
        raise UserError(f"{dataset.name} has no recorded {self.stage.name} texts of {self.llm!r}{where}{known}{rest}")


def _counted(failed: Mapping[str, str]) -> dict[str, int]:
    return dict(sorted(Counter(failed.values()).items()))


def _read(files: list[Path], dataset: Dataset) -> tuple[Texts, list[str]]:
    """Return the texts by query id as they are in the files. Raises UserError if they belong to other queries."""
    asked = {query.id: " ".join(query.text.split()) for query in dataset.queries}
    problems = Problems()
    texts: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for path, line, row in read_tables(files, RecordedTexts, problems):
        name, parts = row.id, _parts(row.hy_doc)
        if parts is None:
            problems.add(path, line, "field 'hy_doc' must be a string or a list of strings")
        elif name not in asked:
            unknown.append(name)
        elif row.text and " ".join(row.text.split()) != asked[name]:
            why = "these texts were generated for other queries"
            problems.add(path, line, f"id {name!r} has another text than query {name!r} of {dataset.name}: {why}")
        elif texts.setdefault(name, parts) != parts:
            problems.add(path, line, f"id {name!r} was used before with another hy_doc: ids must be distinct")
    if problems.problems:
        more = len(problems.problems) - 1 + problems.dropped
        raise UserError(f"{problems.problems[0]}{f' (and {more} more lines)' if more else ''}")
    if not unknown and not texts and asked:
        raise UserError(f"{files[0]}: the file is empty: copy or generate it again")
    if unknown and not texts:
        raise UserError(f"{files[0]}: none of its {len(unknown)} ids is a query of {dataset.name}")
    notice = f"{files[0]}: {len(unknown)} texts for ids that {dataset.name} does not have, such as {unknown[:1]}"
    return texts, [notice] if unknown else []


def _parts(value: Any) -> tuple[str, ...] | None:
    parts = [value or ""] if isinstance(value, str | None) else value
    return tuple(parts) if all(isinstance(part, str) for part in parts) else None
