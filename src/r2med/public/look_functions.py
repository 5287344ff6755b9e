"""Look at results and search: explain a query, make a board, search a corpus, serve systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from r2med.foundation.core.flags import WHAT, Argument, Flag, SetupFlags, as_list
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.data.overlays import Overlay
    from r2med.evaluation.running.story import Story
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.systems.system.question import SearchResult
    from r2med.systems.system.system import System


def why(
    *words: Annotated[
        str | Path | System | Dataset,
        Argument(
            "A record file, or a system and a dataset of --results; then the id or the text of a judged query.",
            metavar="RECORD QUERY | SYSTEM DATASET QUERY",
        ),
    ],
    results: Annotated[str | Path, flags.RESULTS] = "results",
    data: Annotated[
        str | Path | Dataset | None, Flag("The folder of its dataset. Default: found by its name.", metavar="DATASET")
    ] = None,
    setup: Annotated[Setup | Runtime | None, SetupFlags("offline")] = None,
) -> Story:
    """Show a question, its generated texts, the relevant passages with their ranks, and the passages found first.

    `why("results/…/bm25-….json", "q1")` names a record, `why("bm25", "demo/Biology", "q1")` a system and a dataset with
    a record in `results`. A query is named by its id or its whole text. Raises UserError if there is no such record or
    query, or if the data have changed since the record was made.
    """
    from r2med.data.dataset import Dataset
    from r2med.data.dataset_word import DatasetWord
    from r2med.evaluation.running.story import find_record, query_story
    from r2med.foundation.core.errors import UserError
    from r2med.foundation.core.spec import joined_words

    named = joined_words(str(word) for word in words[:-2]) if len(words) > 2 else []
    no_query = len(words) == 2 and not str(words[0]).endswith(".json") and not Path(str(words[0])).exists()
    if len(words) < 2 or len(named) > 1 or no_query:
        example = "r2med why bm25 demo/Biology 3"
        raise UserError(f"name a record and a query, or a system, a dataset and a query: {example}")
    query, given = str(words[-1]), words[-2]
    if not named:
        return query_story(str(given), query, data, setup)
    if isinstance(given, Dataset):
        return query_story(find_record(named[0], given.name, results), query, data or given, setup)
    word = str(DatasetWord.typed(given if isinstance(given, Path) else str(given)))
    folder = word if Path(word).is_dir() else None
    return query_story(find_record(named[0], word, results), query, data or folder, setup)


def board(
    sources: Annotated[
        str | Path | Sequence[str | Path] | None,
        Argument("Folders or files of records. Default: results/.", metavar="RECORDS", kind=str),
    ] = None,
    out: Annotated[str | Path, Flag("The folder of the site.", names=("-o", "--out"), metavar="DIR")] = "board",
    data: Annotated[
        str | Path | Dataset | Sequence[str | Path | Dataset] | None,
        Flag("Folder of a dataset of your own, for its texts. May be repeated."),
    ] = None,
    entries: Annotated[str | Path | None, Flag("Folder with entries written by r2med submit.", metavar="DIR")] = None,
    verdicts: Annotated[
        str | Path | None,
        Flag(
            "The file that r2med verify --verdicts wrote. Entries that it does not call right are marked and ranked "
            "last.",
            metavar="FILE",
        ),
    ] = None,
    overlays: Annotated[
        str | Path | Overlay | Sequence[str | Path | Overlay] | None,
        Flag(
            "Also show scores with the labels of this overlay. May be repeated: later labels replace earlier ones.",
            names=("--overlay",),
            metavar="FILE",
        ),
    ] = None,
    texts: Annotated[bool, Flag("Leave out all texts of documents, queries and LLMs.")] = True,
    max_failures: Annotated[float, flags.MAX_FAILURES] = 0.1,
) -> Path:
    """Make a site from records: leaderboard, system pages and explorer. It opens from disk without a network.

    Returns the page to open. Without sources, the board shows the records of `results`. If `entries` is given, it
    shows only the entries. Those without a verdict in the file `verdicts`, which `verify` writes, are marked and ranked
    last. With `texts=False`, the board contains no text of a document, a query or an LLM. With `overlays`, the
    leaderboard can also show scores with the labels of these files. Answer records among the sources are shown on a
    page of their own, and under the rankings. Those of entries have no texts, and are shown on the page only.
    """
    from r2med.publication.site.site import make_board

    labels = as_list(overlays)
    return make_board(as_list(sources), out, as_list(data), entries, max_failures, texts, labels, verdicts)


def search(
    data: Annotated[
        Dataset | str | Path,
        Argument("A dataset, or a folder with a corpus.", metavar="DATASET", completion="datasets"),
    ],
    question: Annotated[str, Argument("The question, in quotes.")],
    system: Annotated[
        System | str,
        Flag("The system that searches: bm25, 'hyde(o3-mini) → bm25 → bge-reranker@100', …", metavar="SYSTEM"),
    ] = "bm25",
    k: Annotated[int, Flag("Documents returned for each query.", WHAT, ("-k", "--k"))] = 5,
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(*flags.SEARCHING),
    ] = None,
    **settings: Any,
) -> SearchResult:
    """Search a dataset's corpus with a question, and show the best passages with the words that match.

    `settings` are fields of `Setup`. If the store cannot be written, what it lacks is made in a temporary folder.
    Raises UserError if the question is empty or the dataset has no documents.
    """
    from dataclasses import replace

    from r2med.data.loading import loaded
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.runtime.setup import Setup
    from r2med.systems.system.question import ask
    from r2med.systems.system.system import System

    of_system = system.runtime if isinstance(system, System) else None
    with running(setup or of_system or Setup(**settings)) as opened:
        runtime = opened.answering()
        parsed = replace(system, runtime=runtime) if isinstance(system, System) else System.parse(system, runtime)
        parsed.check_installed()
        return ask(parsed, loaded(data, runtime.store), question, k)


def serve(
    data: Annotated[
        Dataset | str | Path,
        Argument("The corpus to search: a dataset, demo/NAME or a folder.", metavar="DATASET", completion="datasets"),
    ],
    systems: Annotated[
        str | Sequence[str] | None,
        Flag(
            "What answers on the page and at /search, e.g. 'hyde(o3-mini) → bm25'; may be repeated.",
            names=("--system",),
            metavar="SYSTEM",
            completion="systems",
        ),
    ] = None,
    setup: Annotated[
        Setup | Runtime | None,
        SetupFlags(*flags.SEARCHING),
    ] = None,
    *,
    retriever: Annotated[
        str | None,
        Flag("What searches at /retrieve, e.g. bm25+minilm. Default: the first system's, else bm25.", metavar="SYSTEM"),
    ] = None,
    host: Annotated[
        str, Flag("Address to listen on. An address beyond this machine needs R2MED_SERVE_TOKEN.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, Flag("Port of the server. 0 picks a free one.", low=0, high=65535)] = 8000,
    mcp: Annotated[
        Literal["stdio", "http"] | None,
        Flag(
            "Let assistants search by the Model Context Protocol: stdio speaks on stdin and stdout instead of HTTP, "
            "http adds the address /mcp.",
            metavar="stdio|http",
        ),
    ] = None,
    access_log: Annotated[bool, Flag("Print a line for each request.", is_rare=True)] = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a search page, POST /search, POST /retrieve in the protocol of Search-R1, and MCP for assistants.

    `systems` answer on the page and at /search. `retriever` answers at /retrieve; by default it is the retriever of the
    first system, or bm25. Port 0 picks a free port. `ready` gets one line with the address when the server accepts
    connections. By default, the line is printed.

    With `mcp`, assistants can search by the Model Context Protocol: "http" adds the address /mcp to the server, and
    "stdio" speaks on stdin and stdout instead of serving HTTP, until stdin ends.

    If a search does not end within 5 seconds after Ctrl-C, the process ends without waiting for it. Raises
    UserError if the server would be open to other machines and R2MED_SERVE_TOKEN is not set.
    """
    from r2med.server.serving import serve_systems

    serve_systems(
        data,
        as_list(systems),
        setup,
        retriever=retriever or "",
        host=host,
        port=port,
        access_log=access_log,
        mcp=mcp or "",
        ready=ready,
    )
