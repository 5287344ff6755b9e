"""Labels of datasets: the name, and the folder where a user's folder has that name."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.dataset_labels import dataset_label, labels_of

ONE, TWO = (dataset_label("notes", Path(f"/ward{ward}/notes")) for ward in "AB")


def test_a_folder_means_its_own_label_and_the_name_that_may_be_its_own() -> None:
    labels = [ONE, TWO, "notes", "other"]
    assert labels_of("notes", Path("/wardA/notes"), labels) == [ONE, "notes"]
    assert labels_of("renamed", Path("/wardA/notes"), labels) == [ONE, "notes"]
    assert labels_of("notes", Path("/wardC/notes"), labels) == ["notes"]


def test_a_name_means_the_only_folder_that_has_it() -> None:
    assert labels_of("notes", None, [ONE, "notes", "notes (2)"]) == ["notes", ONE]
    with pytest.raises(UserError, match="2 folders have a dataset notes: name one of them: /wardA/notes, /wardB/notes"):
        labels_of("notes", None, [ONE, TWO])
