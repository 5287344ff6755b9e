"""docs/cards.md: every card that comes with r2med, and every field that a card may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from generators.markdown import NOTICE, code, field_tables, table
from r2med.data.dataset_cards import DatasetCard, cards, groups
from r2med.models.crossencoders.rerank_apis import RERANK_APIS, RerankApi
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard
from r2med.models.encoders.api_account import ApiAccount
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS, EmbeddingApi
from r2med.models.encoders.model_cards import MODELS, ModelCard
from r2med.models.llm.llm_cards import LLMS, LLMCard
from r2med.systems.expand.method_cards import METHODS, MethodCard
from r2med.systems.rerank.llm_prompts import open_prompts
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS, LLMRerankerCard

HEAD = """# Cards

A card is a TOML file that describes a dataset, a model, an embedding API, an LLM, a reranker or a method of expansion.
It is named after what it describes, and is in the folder of its kind, in this package or in a folder of yours
([examples](extend.md)). A family of cards is one file: the fields that all share, and a table `[cards.NAME]` for each
([example](extend-cards.md#a-dataset)). `r2med show NAME` prints a card. A field without a default must be in the card.
"""


def page() -> str:
    """Return the page. Raises KeyError for a field without a meaning: write it below the field."""
    parts = [
        ("Datasets", "datasets/", _datasets(), DatasetCard),
        ("Dense models", "models/", _models(), ModelCard),
        ("Embedding APIs", "embedding-apis/", _apis(EMBEDDING_APIS), EmbeddingApi),
        ("LLMs", "llms/", _llms(), LLMCard),
        ("Rerankers", "rerankers/", _rerankers(), RerankerCard),
        ("Rerank APIs", "rerank-apis/", _apis(RERANK_APIS), RerankApi),
        ("Methods of expansion", "methods/", _methods(), MethodCard),
    ]
    written = [HEAD]
    for title, folder, catalogue, card in parts:
        others = {each for *_, each in parts if each is not card}  # an LLM in another card has a table already
        fields = "".join(field_tables(card, f"### Fields of a card in `{folder}`", known=others))
        written.append(f"\n## {title}\n\n{catalogue}{fields}")
    return "".join((*written, _llm_rerankers(), NOTICE))


def _datasets() -> str:
    rows = []
    for card in cards().values():
        counts = (f"{card.counts.queries:,}", f"{card.counts.documents:,}") if card.counts else ("", "")
        rows.append((code(card.name), card.task, card.scenario, *counts, card.licence))
    members = "".join(f"- `{group}`: {', '.join(names)}\n" for group, names in groups().items())
    heads = ("name", "task", "scenario", "queries", "documents", "licence")
    return f"{table(heads, rows)}\nGroups, for `--data GROUP`:\n\n{members}"


def _models() -> str:
    rows = []
    for name, card in MODELS.items():
        repository, tokens = card.repository or card.query.repository, str(card.document.max_tokens or "")
        rows.append((code(name), repository, card.parameters, tokens, card.licence))
    return table(("name", "model", "parameters", "tokens", "licence"), rows)


def _apis(apis: Mapping[str, ApiAccount]) -> str:
    rows = (
        (code(name), api.urls[-1][1] if api.urls else code(api.url_variable), code(api.key_variable))
        for name, api in apis.items()
    )
    return table(("name", "address", "key"), rows)


def _llms() -> str:
    def price(dollars: float | None) -> str:
        return f"{dollars:g}" if dollars else ""

    rows = (
        (code(name), card.backend, price(card.price.prompt), price(card.price.completion), card.model)
        for name, card in LLMS.items()
    )
    heads = ("name", "runs on", "$ per million tokens read", "written", "model")
    return (
        table(heads, rows)
        + "\nWithout a number the price is not known. Any other LLM runs with `--llm NAME --base-url URL`.\n"
    )


def _rerankers() -> str:
    rows = (
        (code(name), card.repository, card.parameters, str(card.max_tokens or ""), card.licence)
        for name, card in RERANKERS.items()
    )
    return table(("name", "model", "parameters", "tokens", "licence"), rows)


def _llm_rerankers() -> str:
    rows = (
        (code(name), card.form, card.llm.model if card.llm else f"any: `{name}(LLM)`", _server(card), card.licence)
        for name, card in LLM_RERANKERS.items()
    )
    catalogue = table(("name", "form", "LLM", "needs", "licence"), rows)
    fields = "".join(field_tables(LLMRerankerCard, "### Fields of a card in `llm-rerankers/`", nested=False))
    return f"\n## LLM rerankers\n\n{catalogue}{fields}{LLM_RERANKERS_FOOT}"


def _server(card: LLMRerankerCard) -> str:
    asks = "raw texts" if open_prompts(card, "case").is_raw else "chat"
    return f"{asks}, log-probabilities" if card.uses_probabilities else asks


LLM_RERANKERS_FOOT = """
A limit is written `{ most = 300, unit = "words" }`; the unit may also be `characters` or `tokens`. In a limit of words,
`word_characters = 12` counts at most 12 characters as one word, for texts without blanks. `[llm]` has the
fields of a card in [`llms/`](#llms), and `[settings]` those of the form's [stage](stages.md#rerankers).
"""


def _methods() -> str:
    return table(("name", "what it does"), _method_rows())


def _method_rows() -> Iterator[tuple[str, str]]:
    for name, card in METHODS.items():
        yield code(name), card.summary
