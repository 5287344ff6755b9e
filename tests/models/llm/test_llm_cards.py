"""The card of a name: its own card, or one for a GGUF file or an endpoint."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llama import LlamaBackend
from r2med.models.llm.llm_cards import LLMS, LLMCard, families, resolve_llm, sampling_of


def test_a_name_with_a_card_gives_that_card_for_any_setup() -> None:
    assert resolve_llm("gpt4", Setup()) == resolve_llm("gpt4", Setup(base_url="http://h/v1")) == LLMS["gpt4"]


def test_a_name_without_a_card_belongs_to_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(
        UserError, match=r"'gtp4' \(did you mean gpt4\?\): r2med list llms .* base_url \(--base-url URL\)"
    ):
        resolve_llm("gtp4", Setup())
    assert resolve_llm("org/m:free", Setup(base_url="http://h/v1")).model == "org/m:free"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    card = resolve_llm("org/m", Setup())
    assert (card.model, card.backend, card.base_url) == ("org/m", "openai", "")
    assert open_chat(card, Runtime()).key() == open_chat(card, Runtime(base_url="http://127.0.0.1:9/v1")).key()


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_users_gguf_file_needs_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    runtime = Runtime() if by_variable else Runtime(model_paths=[f"mine={file}"])
    if by_variable:
        monkeypatch.setenv("R2MED_MODELS", str(tmp_path))
    card = resolve_llm("mine", runtime.setup)
    assert (card.name, card.backend) == ("mine", "local")
    assert LlamaBackend(card, runtime).file == file


def test_a_card_may_have_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "llms").mkdir()
    text = 'model = "m"\nanswer = "think"\n[variants.published]\ncleaning = "published"\n'
    (tmp_path / "llms" / "mine.toml").write_text(text)
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    assert LLMS["mine"].cleaning == "strict"
    card = resolve_llm("mine:published", Setup())
    assert (card.cleaning, card.spec, card.model) == ("published", "mine:published", "m")
    strict, published = (open_chat(LLMS[name], Runtime()).key() for name in ("mine", "mine:published"))
    assert strict != published


@pytest.mark.parametrize(
    ("field", "value"), [("max_tokens", 0), ("context_length", 10**12), ("price", {"prompt": float("inf")})]
)
def test_invalid_limits_of_a_card_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        LLMCard(name="m", model="m", **{field: value})  # type: ignore[arg-type]


def test_the_family_of_an_llm_follows_from_its_name_or_its_card():
    told = {name: families(LLMS[name]) for name in ("gpt4", "o3-mini", "huatuo-o1-70b", "r1-qwen-32b", "medgemma-27b")}
    assert told == {
        "gpt4": ("gpt",),
        "o3-mini": ("gpt",),
        "huatuo-o1-70b": ("llama",),
        "r1-qwen-32b": ("qwen", "deepseek"),
        "medgemma-27b": ("gemma",),
    }
    assert all(families(card) for card in LLMS.values())
    assert families(LLMCard(name="mine", model="mine")) == ("mine",)


def test_a_card_of_an_alias_says_that_it_serves_other_models_over_time() -> None:
    for name in ("deepseek-r1", "deepseek-chat", "mistral-large"):
        assert "alias" in " ".join(LLMS[name].notes)


def test_a_provider_that_refuses_a_seed_is_sent_none() -> None:
    refusing = {name for name, card in LLMS.items() if "seed" in card.lacks}
    assert refusing == {"gemini-2.5-flash", "gemini-2.5-pro", "mistral-large"}
    assert all((sampling_of(card).seed is None) == (name in refusing) for name, card in LLMS.items())


@pytest.mark.parametrize("name", ["qwen3-4b-llm", "qwen3-8b-llm", "qwen3-14b", "qwen3-32b"])
def test_qwen3_thinks_unless_its_variant_does_not(name: str) -> None:
    thinking, quick = LLMS[name], LLMS[f"{name}:no-think"]
    assert (thinking.thinking, thinking.answer, quick.thinking, quick.answer) == (True, "think", False, "plain")
    assert thinking.model == quick.model
