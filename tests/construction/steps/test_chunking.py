"""Chunks are whole sentences up to a size, and say exactly where they stand in their page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.construction.items import Rejected, SourcePage
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.chunking import ChunkPages, chunk_spans, count_tokens
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime

SENTENCE = "The patient had fever and a cough for three days before she came. "
TEXTS = st.lists(st.sampled_from([SENTENCE, "No. ", "\n\n", "x" * 300, " ", "Why? ", "ü 😀. "]), max_size=30).map(
    "".join
)


@given(TEXTS, st.integers(8, 60))
def test_chunks_by_tokens_leave_out_nothing_but_white_space(text, tokens):
    parts = [text[start:end] for start, end in chunk_spans(text, tokens)]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() and part for part in parts)
    assert all(count_tokens(part) <= tokens for part in parts[:-1][:-1])
    assert not parts or count_tokens(parts[-1]) <= 1.25 * tokens


@given(TEXTS, st.integers(1, 200))
def test_chunks_by_characters_are_never_longer(text, characters):
    parts = [text[start:end] for start, end in chunk_spans(text, characters=characters)]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(part) <= characters for part in parts)


def test_chunks_are_as_long_as_whole_sentences_allow():
    text = SENTENCE * 40
    sizes = [count_tokens(text[start:end]) for start, end in chunk_spans(text, 128)]
    assert all(128 - count_tokens(SENTENCE) < size <= 128 for size in sizes[:-1])


def test_every_chunk_says_where_it_stands(tmp_path, store):
    page = SourcePage(id="p", text="  " + SENTENCE * 20, title="T", url="https://x/", licence="CC0")
    (tmp_path / "pages.jsonl").write_text(f"{page.model_dump_json()}\n" + '{"id": "empty", "text": " "}\n')
    streams = Streams({"pages": (tmp_path / "pages.jsonl",)}, tmp_path)
    *chunks, last = ChunkPages(characters=300).run(streams, StepWork(Runtime(store=store)))
    assert [chunk.id for chunk in chunks] == [f"p-{number}" for number in range(1, len(chunks) + 1)]
    assert all(page.text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert {(chunk.page, chunk.title, chunk.url, chunk.licence) for chunk in chunks} == {
        ("p", "T", "https://x/", "CC0")
    }
    assert isinstance(last, Rejected) and last.reason == "no text"


def test_a_size_is_given_in_tokens_or_in_characters():
    with pytest.raises(UserError, match="tokens or characters, not both"):
        ChunkPages(tokens=100, characters=1000)


def test_chinese_chunks_are_as_long_as_their_tokens_allow():
    """A multilingual tokenizer makes about one token of two Chinese letters."""
    text = "患者咳嗽三天，体温三十九度。" * 60
    lengths = [end - start for start, end in chunk_spans(text, 128)]
    assert max(lengths) <= 256 and len(lengths) > 3
