"""Encoders behind an API: texts cut by the provider's tokenizer, and requests within its limits."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.api_encoder import ApiEncoder, PendingText, batches
from r2med.models.encoders.api_tokenizers import TokenLimiter, load_hub, load_tiktoken
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.encoders.model_cards import Side
from support.api_encoders import WORDS, card, expected, opened
from support.embedding_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_texts_over_the_limit_are_cut_by_the_tokenizer_and_counted(server: Server, home: Path, provider: str) -> None:
    encoder = opened(server, home, provider, document=Side(max_tokens=20))
    texts = ["short", "word " * 50, "a" * 90]
    encoded = encoder.encode(texts, "document")
    np.testing.assert_array_equal(encoded.vectors, expected(["short", " ".join(["word"] * 20), "a" * 90]))
    assert encoded.cost.cut == 1
    assert encoder.encode(texts, "document").cost.cut == 1, "a cut text is counted from the cache, too"
    assert len(server.requests) == 1


def test_a_short_text_needs_no_tokenizer() -> None:
    limiter = TokenLimiter(lambda: pytest.fail("it was loaded"))
    assert limiter.cut("ä" * 3, 6) == "ä" * 3
    assert limiter.bound("ä" * 3) == 6


def test_a_long_text_without_a_tokenizer_gives_a_one_line_error(
    server: Server, home: Path, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")  # no network, at once
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    options = Runtime(endpoints=((provider, server.address),))
    encoder = ApiEncoder(card(provider), WORDS, options, Store(home))
    with pytest.raises(UserError, match="TIKTOKEN_CACHE_DIR" if provider == "openai" else "HF_HOME"):
        encoder.encode(["short", "x" * 501], "document")
    assert not server.requests, "nothing is paid for before all texts are known to fit"


def test_a_cut_may_not_go_through_a_character_or_add_tokens() -> None:
    import tiktoken

    ranks = {bytes([i]): i for i in range(256)} | {b"ab": 256, b"abc": 257}
    encoding = tiktoken.Encoding("tiny", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 258})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiktoken, "get_encoding", lambda name: encoding)
        limiter = TokenLimiter(lambda: load_tiktoken("cl100k_base", "m"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiktoken, "get_encoding", lambda name: encoding)
        assert limiter.cut("ää" * 3, 5) == "ää"
        assert limiter.cut("abcabcabc", 2) == "abcabc"
        assert limiter.cut("abcabcabc", 3) == "abcabcabc"
        assert limiter.cut("<|end|>", 4) == "<|en", "what looks like a special token is text"


def test_voyage_texts_are_cut_by_its_hub_tokenizer() -> None:
    import tokenizers

    vocabulary = {word: i for i, word in enumerate(["[UNK]", "[CLS]", "one", "two", "three"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizers, "Tokenizer", SimpleNamespace(from_pretrained=lambda name: tokenizer))
        limiter = TokenLimiter(lambda: load_hub("voyageai/m", "m"))
        assert limiter.cut("one two  three", 3) == "one two", "its first special token counts"
        assert limiter.cut("one two  three", 4) == "one two  three"


def test_requests_stay_within_the_limits_of_a_provider() -> None:
    openai = EMBEDDING_APIS["openai"]
    assert [len(b) for b in batches([PendingText(b"", "", 1)] * 600, openai)] == [256, 256, 88]
    assert [len(b) for b in batches([PendingText(b"", "", 40_000)] * 5, openai)] == [2, 2, 1]
    assert [len(b) for b in batches([PendingText(b"", "", 200_000)] * 2, openai)] == [1, 1]
