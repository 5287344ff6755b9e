"""Events: the innermost block that listens to a kind of event gets it, and no other kind."""

from dataclasses import dataclass
from pathlib import Path

from r2med.foundation.core.events import emit, listener_of, listening_to
from r2med.foundation.store import library_versions
from r2med.foundation.store.library_versions import note_versions, noted_versions


@dataclass(frozen=True)
class Baked:
    what: str


@dataclass(frozen=True)
class Eaten:
    what: str


def test_the_innermost_block_gets_the_events_of_its_kind() -> None:
    outer, inner, eaten = list[str](), list[str](), list[str]()
    emit(Baked("before"))
    with listening_to(Baked, lambda event: outer.append(event.what)):
        emit(Baked("bread"))
        with (
            listening_to(Baked, lambda event: inner.append(event.what)),
            listening_to(Eaten, lambda e: eaten.append(e.what)),
        ):
            emit(Baked("cake"))
            emit(Eaten("cake"))
        emit(Eaten("bread"))
        listener = listener_of(Baked)
    assert listener is not None
    listener(Baked("from a thread"))
    assert listener_of(Baked) is None
    assert (outer, inner, eaten) == (["bread", "from a thread"], ["cake"], ["cake"])


def test_versions_reach_the_block_around_too() -> None:
    with noted_versions() as outer, noted_versions() as inner:
        note_versions({"versions": {library_versions.LIBRARIES[0]: ["1", 2], "numpy": ["3"]}})
        note_versions({"versions": "nonsense"})
    assert inner == outer == {library_versions.LIBRARIES[0]: {"1"}}


def test_the_project_has_two_context_variables() -> None:
    """What work depends on is an argument. Only listeners and the place in a trace belong to a block."""
    import r2med

    files = [path for path in Path(r2med.__file__).parent.rglob("*.py") if "ContextVar(" in path.read_text("utf-8")]
    assert sorted(path.stem for path in files) == ["events", "tracing"]
