"""Files of folds that cannot be used: one line each."""

from pathlib import Path

import pytest

from r2med import Query, UserError
from r2med.data.fold_file import Folds, QueryFold, query_digest
from support.facts import states

GOUT = Query("1", "Why does my toe hurt?")


def row(query: Query, fold: int = 1) -> QueryFold:
    return QueryFold(query=query.id, text=query_digest(query), fold=fold, group=1)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (None, ("r2med data training --folds",)),
        ("", ("no queries",)),
        ('{"query": "1"}', (":1:", "text")),
        ('{"query": "1", "text": "x", "fold": 0, "group": 1}', (":1:", "fold")),
        ('{"query": "1", "text": "x", "fold": 1, "group": 1}\n{"query": "1", "text": "x", "fold": 2, "group": 1}',
         (":2:", "'1'", "1 and 2")),
    ],
)  # fmt: skip
def test_a_file_that_gives_no_single_fold_for_each_query_is_refused(
    content: str | None, facts: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "folds.jsonl"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError) as refused:
        Folds.read(file)
    states(refused.value, file.name, *facts)


def test_a_query_without_a_fold_and_one_of_another_dataset_are_refused() -> None:
    folds = Folds.of([row(GOUT, 3)])
    assert folds.fold_of(Query("1", " Why does  my toe hurt? ")) == 3
    with pytest.raises(UserError) as refused:
        folds.fold_of(Query("2", GOUT.text))
    states(refused.value, "'2'", "no fold")
    with pytest.raises(UserError) as refused:
        folds.fold_of(Query("1", "Another question?"))
    states(refused.value, "'1'", "another dataset")
