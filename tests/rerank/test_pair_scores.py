"""Scores in the cache: what is sound is read back as it was, what is not counts as absent."""

import sqlite3

import pytest

from r2med.crossencoders.pair_scorer import ScoredPair
from r2med.rerank.pair_scores import ScoreCache, pair_key, text_hash

KEYS = [pair_key("model", text_hash("query"), text_hash(text)) for text in ("a", "b", "c")]
ROWS = {
    KEYS[0]: ScoredPair(-3.25, 412, True, 0.125),
    KEYS[1]: ScoredPair(1e-7, 0, False, 0.0),
}


def test_scores_come_back_as_they_were(tmp_path):
    with ScoreCache(tmp_path / "scores" / "tiny.sqlite") as cache:
        cache.put(ROWS)
    with ScoreCache(tmp_path / "scores" / "tiny.sqlite") as cache:
        assert cache.get(KEYS) == ROWS
        cache.put({KEYS[0]: ScoredPair(1.0)})
        assert cache.get(KEYS[:1]) == {KEYS[0]: ScoredPair(1.0)}


def test_a_key_tells_model_query_and_document_apart():
    a, b = text_hash("a"), text_hash("b")
    assert len({pair_key("m", a, b), pair_key("m", b, a), pair_key("n", a, b), pair_key("m", a, a)}) == 4


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE scores SET value = substr(value, 1, 8)",
        "UPDATE scores SET value = zeroblob(25)",
        "UPDATE scores SET value = 'text'",
        "UPDATE scores SET checksum = x'00'",
        "DELETE FROM scores",
    ],
)
def test_a_damaged_row_counts_as_absent(tmp_path, damage):
    file = tmp_path / "tiny.sqlite"
    with ScoreCache(file) as cache:
        cache.put(ROWS)
    database = sqlite3.connect(file)
    database.execute(damage)
    database.commit()
    database.close()
    with ScoreCache(file) as cache:
        assert cache.get(KEYS) == {}
        cache.put(ROWS)
        assert cache.get(KEYS) == ROWS


def test_a_file_that_is_no_cache_is_moved_aside(tmp_path):
    file = tmp_path / "tiny.sqlite"
    file.write_bytes(b"not a database, but somebody's work" * 99)
    with ScoreCache(file) as cache:
        cache.put(ROWS)
        assert cache.get(KEYS) == ROWS
    assert (tmp_path / "tiny.sqlite.damaged").read_bytes().startswith(b"not a database")
