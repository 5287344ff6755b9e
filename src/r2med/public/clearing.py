"""Remove what is kept of a dataset, a model or an LLM, and every text of the dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.data.dataset_word import DatasetWord
from r2med.evaluation.records.dataset_texts import dataset_texts
from r2med.evaluation.records.quoting_files import Hashes, quoting_files, text_hashes
from r2med.evaluation.records.text_files import files_with_texts, has_records
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import folder_in, labels_of, name_in
from r2med.foundation.store.holdings import (
    Holding,
    clear,
    clear_texts,
    clear_unfinished,
    dataset_labels,
    holdings,
    rows_about,
    same_corpus,
    unfinished,
)
from r2med.foundation.store.memo import MEMOS
from r2med.foundation.text.plurals import counted, shown_bytes
from r2med.models.llm.journal import answers_by_model, forget_answers
from r2med.publication.site.board_texts import boards_with_texts

OTHER_PLACES = "and results and boards in other folders (--results DIR shows what one has)"


@dataclass(frozen=True)
class ClearingLine:
    """A sentence about what is removed, and the files that it is about."""

    sentence: str
    files: tuple[Path, ...] = ()

    def whole(self) -> Iterator[str]:
        """Yield the sentence; with files, once for each of them."""
        yield from (f"{self.sentence}: {path}" for path in self.files) if self.files else (self.sentence,)

    def by_folder(self) -> Iterator[str]:
        """Yield the sentence; with files, once for each of their folders."""
        counts = Counter(path.parent for path in self.files)
        lone = {path.parent: path for path in self.files}
        for folder, number in counts.items():
            where = f"{folder}/ ({counted(number, 'file')})" if number > 1 else str(lone[folder])
            yield f"{self.sentence}: {where}"
        if not self.files:
            yield self.sentence


@dataclass(frozen=True)
class Clearing:
    """What is to be removed. Raises UserError if nothing is named, or if the names exclude each other."""

    dataset: str = ""
    model: str = ""
    llm: str = ""
    everything: bool = False
    results: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if not (self.dataset or self.model or self.llm or self.everything):
            raise UserError(
                "say what to clear: --dataset NAME, --model NAME, --llm NAME or --all; r2med cache list shows it"
            )
        if self.results and (not self.dataset or self.model):
            raise UserError("--results removes the texts of a dataset: name it with --dataset, without --model")

    @property
    def _has_texts(self) -> bool:
        """True if no text of the dataset is to stay."""
        return bool(self.dataset and not self.model)

    def carry_out(self, store: Store, really: bool) -> Iterator[ClearingLine]:
        """Yield what is removed, or what would be."""
        answers = answers_by_model(store)
        if self.llm and self.llm not in answers:
            raise unknown("answers of", self.llm, answers)
        labels = _labels(self.dataset, store) if self.dataset else [""]
        datasets = same_corpus(store, labels) if self._has_texts else labels
        held = [each for each in holdings(store) if any(each.is_about(name, self.model) for name in datasets)]
        named = self.dataset or self.model
        wanted = [each for each in held if named or (self.everything and each.kind != "api")]
        parts = list(self._counts(store, wanted, datasets, len(answers.get(self.llm, ()))))
        others = {path.name for h in holdings(store) if h.kind == "corpus" and h not in held for path in h.paths}
        files = _result_files(self.results, self.dataset, labels, others)
        texts = dataset_texts(store, datasets, [Path(self.dataset).expanduser()]) if self.results else ()
        hashes = text_hashes(texts)  # before the texts are removed
        if named and not (wanted or parts[1:] or files or len(hashes)):
            raise self._unknown(store)  # a misspelt name must not look as if its texts were gone
        if really:
            yield from self._remove(store, wanted, datasets, answers.get(self.llm, ()), files)
        if {*datasets} - {*labels}:
            yield ClearingLine(f"these datasets have the same documents, and go together: {', '.join(datasets)}")
        if files:
            yield ClearingLine("removed" if really else "would be removed", tuple(files))
            parts.append(counted(len(files), "file of results and boards", "files of results and boards"))
        if self.results:
            yield from _quoting(self.results, self.dataset, hashes, [*files, store.root])
        listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
        yield ClearingLine(f"{listed} {'removed' if really else 'would be removed: add --yes to do it'}")
        if self._has_texts:
            found = [f"{place}/" for place in _places(self.dataset, datasets, others)]
            yield ClearingLine(f"not in the cache, so still on this machine: {', '.join([*found, OTHER_PLACES])}")

    def _counts(self, store: Store, wanted: Sequence[Holding], datasets: Sequence[str], answers: int) -> Iterator[str]:
        """Yield how much there is of each kind."""
        artefacts = counted(sum(len(each.paths) for each in wanted), "artefact")
        yield f"{artefacts} ({shown_bytes(sum(each.size for each in wanted))})"
        for file, keys in rows_about(store, datasets).items() if self._has_texts else ():
            yield f"{len(keys):,} {MEMOS[file.parent.name].rows}"
        if self.llm:
            yield f"{counted(answers, 'answer')} of {self.llm}"
        if left := unfinished(store) if self._has_texts or self.everything else []:
            yield counted(len(left), "unfinished piece of work", "unfinished pieces of work")

    def _unknown(self, store: Store) -> UserError:
        if self.dataset:
            return unknown("dataset in the cache", self.dataset, dataset_labels(store))
        models = sorted({each.model for each in holdings(store)} - {""})
        return unknown("model in the cache", self.model, models)

    def _remove(
        self,
        store: Store,
        wanted: Sequence[Holding],
        datasets: Sequence[str],
        answers: Sequence[bytes],
        files: Sequence[Path],
    ) -> Iterator[ClearingLine]:
        for holding in wanted:
            clear(store, holding)
        if self.llm:
            forget_answers(store, answers)
        if self._has_texts:
            clear_texts(store, datasets)
        for path in files:
            path.unlink(missing_ok=True)
        if living := clear_unfinished(store) if self._has_texts or self.everything else []:
            pieces = counted(len(living), "piece of work is", "pieces of work are")
            yield ClearingLine(f"{pieces} still going on and keep their files: end the commands that run, clear again")


def _labels(word: str, store: Store) -> list[str]:
    """Return the labels of the dataset that a word means: a name, or a folder that may be gone."""
    word = word.removeprefix("irds:")
    folder = Path(word).expanduser()
    is_folder = folder.is_dir() or len(folder.parts) > 1
    known = dataset_labels(store)
    name = DatasetWord.parse(word).record_name
    return labels_of(name, folder if is_folder else None, known) or [name]


def _result_files(folders: Sequence[Path], word: str, labels: Sequence[str], others: Collection[str]) -> list[Path]:
    """Return the files in folders of results that hold texts of a dataset, and the records that name them.

    `others` are the fingerprints of other corpora. Records about them stay, because two datasets may have one name.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder: name a folder of results or of a board")
    names = _names(word, labels)
    found = [
        path
        for folder in folders
        for path in (*files_with_texts(folder, names, others), *boards_with_texts(folder, names))
    ]
    return list(dict.fromkeys(found))


def _names(word: str, labels: Sequence[str]) -> set[str]:
    """Return the names that a dataset has in records and boards."""
    gone = {Path(word).name} if not Path(word).is_dir() else set()  # a folder here has its own name
    return {DatasetWord.parse(word).record_name, *gone, *map(name_in, labels)}


def _places(word: str, labels: Sequence[str], others: Collection[str]) -> Iterator[Path]:
    """Yield what a user still has of a dataset: its folder, and the folders of results and of the board in this one."""
    folders = [Path(word).expanduser(), *filter(None, map(folder_in, labels))]
    yield from dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir())
    names = _names(word, labels)
    if has_records(Path("results"), names, others):
        yield Path("results")
    if boards_with_texts(Path("board"), names):
        yield Path("board")


def _quoting(folders: Sequence[Path], word: str, hashes: Hashes, leave_out: Sequence[Path]) -> Iterator[ClearingLine]:
    """Yield the other files below folders of results that quote a dataset. They may be anything, so they stay."""
    if not len(hashes):
        yield ClearingLine(f"the texts of {word} are not on this machine, so other files were not searched for them")
        return
    found = quoting_files(folders, hashes, leave_out)
    if found.quoting:
        yield ClearingLine(f"still holds texts of {word}, delete it yourself", tuple(found.quoting))
    if found.unread:
        yield ClearingLine("could not be searched", tuple(found.unread))
