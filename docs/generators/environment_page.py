"""docs/environment.md: environment variables, and exit codes."""

from __future__ import annotations

from collections.abc import Iterator

from generators.markdown import NOTICE, code, table
from r2med.cli import INTERRUPTED, TERMINATED, USER_FAULT
from r2med.cli.generated import UNDECIDED
from r2med.models.crossencoders.rerank_apis import RERANK_APIS, own_servers
from r2med.models.crossencoders.reranker_cards import RERANKERS
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.llm.llm_cards import LLMS

OPENAI_KEY = "OPENAI_API_KEY"
"""Key of the LLMs of OpenAI, and the default of LLMs that people serve themselves."""
OURS = {
    "R2MED_HOME": (
        "`~/.cache/r2med` on Linux",
        "The folder of the cache: corpora, indexes, vectors, answers of LLMs. Choose a disk that has file locks.",
    ),
    "R2MED_PLUGINS": ("", "Folders of your own cards, prompts, suites and presets, joined as in `PATH`."),
    "R2MED_MODELS": ("", "Folders with weights, joined as in `PATH`. `NAME/` or `NAME.gguf` in one is the model NAME."),
    "R2MED_OFFLINE": ("", "`1` refuses every address that is not on this machine, like `--offline`."),
    "R2MED_THREADS": ("all cores", "The number of cores that r2med uses."),
    "R2MED_SERVE_TOKEN": (
        "",
        "The token of `r2med serve` beyond this machine. Search agents send it to the server that they search.",
    ),
    "R2MED_DEBUG": ("", "`1` shows the traceback of an error."),
}
"""Variables of r2med: default, meaning."""

OTHERS = {
    "HF_TOKEN": "The key of the Hugging Face hub, for models and datasets that need one.",
    "HF_HOME": "The folder of the hub's own cache: weights and datasets.",
    "HF_HUB_OFFLINE": "`1` uses only weights and datasets that are in the hub's cache. `--offline` sets it.",
    "TRANSFORMERS_OFFLINE": "The same as `HF_HUB_OFFLINE`. `--offline` sets it.",
    "HF_HUB_DISABLE_TELEMETRY": "`--offline` sets it to `1`.",
    "HTTP_PROXY": "A proxy for addresses that are not on this machine.",
    "HTTPS_PROXY": "The same for HTTPS.",
    "ALL_PROXY": "The same for both.",
    "RAY_ADDRESS": "The cluster of `--engine ray`. Without it Ray starts on this machine.",
    "RAY_TMPDIR": "The folder of Ray's temporary files.",
    "RAY_USAGE_STATS_ENABLED": "r2med sets it to `0` unless it is set: Ray then sends no usage reports.",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "r2med sets it to `0` unless it is set.",
    "RAY_NUM_REDIS_GET_RETRIES": "r2med sets it to `3` unless it is set: a wrong token then fails after seconds.",
    "XDG_CACHE_HOME": "The folder of caches, in which r2med's is the folder `r2med`. `R2MED_HOME` takes precedence.",
    "LOCALAPPDATA": "The same on Windows.",
    "COLUMNS": "The width of tables, also in a pipe or a file.",
}
"""Variables of other programs that r2med reads or sets."""

EXIT_1 = {
    "run": "A system could not run on a dataset, its budget ran out, or all calls of an LLM failed.",
    "answer": "A system or a reader has no record on a dataset (the line says why), or requests failed.",
    "generate": "Some queries got no text. The same command asks for these alone.",
    "reproduce": "A score is off, or could not be made.",
    "compare": "With `--worse-than`: a system is worse than the baseline by more than this.",
    "audit": "A check says that the dataset is broken.",
    "verify": "An entry does not match its runs.",
    "doctor": "The cache cannot be written to, or an endpoint does not answer.",
}
"""Command -> what exit code 1 means there. tests/test_docs.py compares it with the source."""

EXIT_2 = {
    "data check": "A dataset has a problem.",
    "data import": "The dataset is written, but some rows of the tables did not fit.",
}

EXIT_3 = {
    "compare": "With `--worse-than`: the queries cannot decide if a system is worse by more than this.",
}


def page() -> str:
    """Return the page."""
    ours = [(code(name), default, meaning) for name, (default, meaning) in OURS.items()]
    others = [(code(name), meaning) for name, meaning in OTHERS.items()]
    return "".join(
        (
            "# Environment variables and exit codes\n\n",
            "The variables that r2med reads, and what the exit codes of its commands mean.\n",
            "\n## Variables of r2med\n\n" + table(("variable", "default", "meaning"), ours),
            "\n## Keys and addresses of providers\n\n",
            "Keys are read from the environment only. They are in no record, no log and no message.\n\n",
            table(("variable", "meaning"), _keys()),
            "\n## Variables of other programs\n\n" + table(("variable", "meaning"), others),
            "\n## Exit codes\n\n" + table(("code", "meaning"), _codes()),
            "\n" + table(("command", "code", "meaning"), _meanings()),
            NOTICE,
        )
    )


def _keys() -> Iterator[tuple[str, str]]:
    uses: dict[str, list[str]] = {}
    for name, card in LLMS.items():
        if card.backend != "openai" or (card.api_key_env == OPENAI_KEY and card.licence != "proprietary"):
            continue
        uses.setdefault(card.api_key_env, []).append(f"`{name}`")
    for provider in EMBEDDING_APIS.values():
        uses.setdefault(provider.key_variable, []).append(f"the embeddings `{provider.name}`")
    for name, card in RERANKERS.items():
        if card.is_api:
            uses.setdefault(RERANK_APIS[card.loader].key_variable, []).append(f"the reranker `{name}`")
    uses[OPENAI_KEY].append("every LLM on a server of your own (`--base-url`), if the server needs one")
    for variable, names in sorted(uses.items()):
        yield code(variable), f"Key of {', '.join(names)}."
    for provider in EMBEDDING_APIS.values():
        also = " It is also the address of LLMs whose key is `OPENAI_API_KEY`." if provider.name == "openai" else ""
        yield (
            code(provider.url_variable),
            f"Address of the embeddings `{provider.name}`, if it is not the provider's.{also}",
        )
    yield from _rerank_addresses()


def _rerank_addresses() -> Iterator[tuple[str, str]]:
    yield code("COHERE_BASE_URL"), "Address of the rerank API of Cohere, if it is not the provider's."
    yield code("JINA_BASE_URL"), "Address of the rerank API of Jina, if it is not the provider's."
    for name in own_servers():
        api = RERANK_APIS[name]
        if api.account:  # it shares the variables of another one
            continue
        yield code(api.url_variable), f"Address of your {name} server, for `{name}:MODEL`. Default: `--base-url`."
        yield code(api.key_variable), f"Key of your {name} server, if it needs one."


def _codes() -> Iterator[tuple[str, str]]:
    yield "0", "The command did what it was asked to do."
    yield "1", "The command ran, and something was found or is missing: see below. Also a fault of the program."
    yield str(USER_FAULT), "An error that you can mend. One line on stderr says what, and how. See also below."
    yield str(UNDECIDED), "The command ran, and cannot answer with yes or no: see below."
    yield str(INTERRUPTED), "Stopped by Ctrl-C. The same command continues."
    yield str(TERMINATED), "Stopped by SIGTERM. The same command continues."


def _meanings() -> Iterator[tuple[str, str, str]]:
    for number, meanings in (("1", EXIT_1), (str(USER_FAULT), EXIT_2), (str(UNDECIDED), EXIT_3)):
        for name, meaning in meanings.items():
            yield code(f"r2med {name}"), number, meaning
