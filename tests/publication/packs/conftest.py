"""One person's pack for all tests of packs."""

import pytest

from support.packs import Person, first_person


@pytest.fixture(scope="session")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Someone whose records were made once. No test changes anything of theirs."""
    return first_person(tmp_path_factory.mktemp("first"))
