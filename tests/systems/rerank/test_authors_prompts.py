"""Prompts of rerankers' authors: read from files in the authors' forms, converted, and named in the printed system."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.net import offline
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stage_table import stage
from r2med.foundation.store import Store, default_store
from r2med.models.llm.chat import ChatRequest
from r2med.systems.rerank.authors_prompts import AUTHORS_PROMPTS, equal_words, find_authors, keep_prompt, prompt_name
from r2med.systems.rerank.llm_reranker import OWN_PROMPT, LLMReranker
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS
from support.authors_files import FILES, clone_of
from support.chat_server import Server, answer
from support.facts import error_states, states
from support.fork_server import Command
from support.llm_rerankers import graded, permutation, rerank

DATA, _ = graded(permutation(3))


def bound(spec: str, home: Path, **settings: Any) -> LLMReranker:
    [call] = parse_stage(spec)
    runtime = Runtime(store=Store(home), base_url="http://127.0.0.1:9/v1", **settings)
    reranker = stage(call, "rerank").bind(runtime)
    assert isinstance(reranker, LLMReranker)
    return reranker


def printed(spec: str) -> str:
    [call] = parse_stage(spec)
    return str(stage(call, "rerank"))


def requests(spec: str, home: Path) -> list[ChatRequest]:
    reranker = bound(spec, home)
    reranker.check([DATA])
    return list(reranker.preview(DATA, Store(home)).requests)


def spec_of(name: str) -> str:
    card = next(card for card in LLM_RERANKERS.values() if card.template == name)
    small = "window=3, step=2, " if card.last_window == "none" else ""  # otherwise three documents are too few
    return f"{card.name}({'' if card.is_trained else 'ranker, '}{small}prompts=authors)"


def test_every_place_has_a_card_and_a_file_of_the_tests() -> None:
    assert set(AUTHORS_PROMPTS) == set(FILES) <= {card.template for card in LLM_RERANKERS.values()}
    for name, authors in AUTHORS_PROMPTS.items():
        assert sorted(authors.files) == sorted(FILES[name])
        assert authors.url(authors.files[0]).startswith(f"https://raw.githubusercontent.com/{authors.repository}/")


@pytest.mark.parametrize("name", FILES)
def test_files_of_each_form_become_requests(name: str, tmp_path: Path, home: Path) -> None:
    found = keep_prompt(name, clone_of(name, tmp_path / "clone"))
    assert found.turns == find_authors(name).turns  # type: ignore[union-attr]
    asked = requests(spec_of(name), home)
    assert asked
    for request in asked:
        shown = request.prompt or "\n".join(message.content for message in request.messages)
        assert "query 0" in shown or "query 1" in shown or "query" in shown
        assert "document" in shown
        assert "{" not in shown.replace('{"[1]": 5, "[2]": 3}', "")
        assert "[[" not in shown


def words(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in request.messages]


def test_turns_have_exactly_the_authors_words(tmp_path: Path, home: Path) -> None:
    clone = tmp_path / "clone"
    for name in ("reasonrank", "rankzephyr", "rankgpt", "rank1", "retro-star"):
        keep_prompt(name, clone_of(name, clone))
    (query, documents) = (DATA.queries[0].text, [DATA.corpus.texts([row])[0] for row in range(3)])
    listed = "".join(f"[{number}] {text}\n" for number, text in enumerate(documents, 1))
    [first, *_] = requests("reasonrank-7b(prompts=authors)", home)
    sorting = f"Sort 3 for {query}, as [2] > [1]."
    assert words(first) == [
        ("system", "You think, then sort."),
        ("user", f"Here come 3 things for: {query}.\n\n{listed}{sorting}"),
    ]
    [first, *_] = requests("rankzephyr-7b(prompts=authors)", home)
    assert words(first)[1][1] == f"Here come 3 things for: {query}.\n{listed}Sort for: {query}.\nAll 3, as [] > []."
    [first, *_] = requests("rank1-7b(prompts=authors)", home)
    assert first.prompt == f"Is it of use? Say true or false.\nQuery: {query}\nPassage: {documents[0]}\n<think>"
    [first, *_] = requests("retro-star-7b(prompts=authors)", home)
    rule = "Rule: A document counts if it helps with the query."
    assert words(first)[0][1].startswith(f"{rule}\nQuery (query): {query}\nDocument (document): {documents[0]}\n")


def test_the_printed_name_says_whose_prompt_it_is_and_reads_back(tmp_path: Path) -> None:
    assert printed("reasonrank-7b@20") == "reasonrank-7b(prompts=own)@20"
    keep_prompt("reasonrank", clone_of("reasonrank", tmp_path / "clone"))
    assert printed("reasonrank-7b@20") == "reasonrank-7b(prompts=authors)@20"
    for name in ("reasonrank-7b(prompts=own)", "reasonrank-7b(prompts=authors, window=10)"):
        assert printed(name).removesuffix("@100") == name
    assert "prompts" not in printed("rankgpt(ranker)")  # no model was trained with one prompt
    assert "prompts" not in printed("erank-4b")  # no file of its authors is known


def test_a_record_says_whose_prompt_was_read(tmp_path: Path, home: Path) -> None:
    keep_prompt("rankgpt", clone_of("rankgpt", tmp_path / "clone"))
    theirs, _ = rerank("rankgpt(ranker, prompts=authors)", lambda _: "[1] > [2]", graded(permutation(20)), home)
    ours, _ = rerank("rankgpt(ranker)", lambda _: "[1] > [2]", graded(permutation(20)), home)
    plain, _ = rerank("listwise(ranker)", lambda _: "[1] > [2]", graded(permutation(20)), home)
    assert "rank_gpt_template.yaml" in theirs.prompt
    assert (ours.prompt, plain.prompt) == (OWN_PROMPT, "")


def test_a_missing_prompt_names_the_command_that_fetches_it(home: Path) -> None:
    with pytest.raises(UserError, match=r"fetch_prompts\('rankgpt'\)"):
        bound("rankgpt(ranker, prompts=authors)", home)
    with pytest.raises(UserError, match="prompts=own"):
        bound("erank-4b(prompts=authors)", home)


@pytest.mark.parametrize(
    ("file", "old", "new", "fact"),
    [
        ("rerank.py", "{query}", "{qrels}", "qrels"),
        ("rerank.py", "{query}", "{query!r}", "query"),
        ("rerank.py", "rank_k_prompt", "other_name", "rank_k_prompt"),
        ("rerank.py", '"""\nSort', "(", "cannot be parsed"),
        ("rerank.py", "ties allowed", "{{query}} allowed", "query"),
    ],
)
def test_a_file_that_cannot_be_converted_is_not_kept(file: str, old: str, new: str, fact: str, tmp_path: Path) -> None:
    path = clone_of("rank-k-32b", tmp_path) / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=fact) as refused:
        keep_prompt("rank-k-32b", tmp_path)
    assert "\n" not in str(refused.value)
    assert find_authors("rank-k-32b") is None


MERGED = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10))
YAML = FILES["rankzephyr"]["rank_llm/rerank/prompt_templates/rank_zephyr_template.yaml"]
PYTHON, TOML = FILES["rank-k-32b"]["rerank.py"], FILES["rank-r1"]["Rank-R1/prompts/prompt_setwise-R1.toml"]


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("rankzephyr", "a: [\n", "line 2"),
        ("rankzephyr", "[" * 500, "cannot be parsed"),
        ("rankzephyr", YAML.replace('"You sort things"', "[1]"), "system_message"),
        ("rankzephyr", YAML.replace("sort", "s\xf6rt").encode("latin-1"), "UTF-8"),
        ("rankzephyr", YAML.replace("{query}", "it"), "the query"),
        ("rankzephyr", YAML.replace("{candidate}", "it"), "the text of a passage"),
        ("rankzephyr", YAML.replace('"You sort things"', '"\\n<<user>>\\nSort"'), "<<user>>"),
        ("rankzephyr", YAML.replace("You sort", "[[prefix]] sort"), "[[prefix]]"),
        ("rankzephyr", YAML + "#" * 1_000_000, "1,000,000 bytes"),
        ("rank-r1", "a = \n", "line 1"),
        ("rank-r1", f"a = {'[' * 9_000}", "cannot be parsed"),
        ("rank-r1", f"a = {'1' * 9_000}\n{TOML}", "cannot be parsed"),
        ("rank-k-32b", 'rank_k_prompt = "".join(["{query}", "{docs}"])', "rank_k_prompt"),
        ("rank-k-32b", "def (", "line 1"),
        ("rank-k-32b", f"a = {'-' * 200_000}1\n{PYTHON}", "cannot be parsed"),
        ("rank-k-32b", PYTHON.replace("Sort", "\\ud800"), "UTF-8"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_hostile_file_is_refused_in_one_line(name: str, content: str | bytes, fact: str, tmp_path: Path) -> None:
    path = clone_of(name, tmp_path) / next(iter(FILES[name]))
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with error_states(fact):
        keep_prompt(name, tmp_path)
    assert find_authors(name) is None


def test_yaml_values_are_not_built(tmp_path: Path) -> None:
    """Merged keys that name each other would be 10 to the power of 9, and a date may be none."""
    path = clone_of("rankzephyr", tmp_path) / next(iter(FILES["rankzephyr"]))
    path.write_text(f"a0: &a0 {{k: v}}\n{MERGED}date: 2020-99-99\ncall: !!python/object/apply:exit [1]\n{YAML}")
    assert "You sort things" in keep_prompt("rankzephyr", tmp_path).turns


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    clone_of("rank-k-32b", tmp_path / "elsewhere")
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone/rerank.py").symlink_to(tmp_path / "elsewhere/rerank.py")
    with error_states("clone/rerank.py", "link"):
        keep_prompt("rank-k-32b", tmp_path / "clone")
    keep_prompt("rank-k-32b", tmp_path / "elsewhere")


def test_a_yaml_prompt_without_the_reader_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with error_states("YAML", "prompts"):
        keep_prompt("rankzephyr", clone_of("rankzephyr", tmp_path))


@pytest.mark.slow
def test_no_record_pack_entry_or_page_has_the_words_of_the_authors(
    r2med: Command, chat_server: Server, tmp_path: Path
) -> None:
    keep_prompt("rankzephyr", clone_of("rankzephyr", tmp_path / "clone"))
    chat_server.otherwise = answer("[2] > [1]")
    at = ("--base-url", chat_server.address)
    assert r2med("run", "bm25 -> rankzephyr-7b@5", "--data", "demo/Biology", *at).returncode == 0
    assert any("You sort things" in str(request.body) for request in chat_server.requests)
    for words in (("pack", "-o", "a.r2pack", *at), ("submit", "-o", "me.json"), ("board",)):
        assert r2med(*words).returncode == 0
    with ZipFile(tmp_path / "a.r2pack") as pack:
        pack.extractall(tmp_path / "pack")
    written = [path for folder in ("results", "board", "pack") for path in (tmp_path / folder).rglob("*")]
    contents = [path.read_bytes() for path in (*written, tmp_path / "me.json") if path.is_file()]
    assert any(b"authors' prompt" in content for content in contents)
    for phrase in (b"You sort things", b"Here come ", b"Sort for: "):
        assert not any(phrase in content for content in contents)


def test_a_fetched_prompt_comes_before_that_of_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = clone_of("rankzephyr", tmp_path / "site")
    (site / "rank_llm-1.2.dist-info").mkdir()
    (site / "rank_llm-1.2.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: rank-llm\nVersion: 1.2\n")
    (site / "rank_llm/__init__.py").write_text('raise SystemExit("this package must not be imported")')
    monkeypatch.syspath_prepend(str(site))
    assert find_authors("rankzephyr").source == "rank-llm 1.2"  # type: ignore[union-attr]
    keep_prompt("rankzephyr", clone_of("rankzephyr", tmp_path / "clone"))
    assert find_authors("rankzephyr").source.startswith("copied")  # type: ignore[union-attr]


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"listwise_prompt_r1\.toml"):
        keep_prompt("reasonrank", tmp_path)


def test_a_run_never_fetches_and_an_offline_machine_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "is_offline", lambda: True)
    monkeypatch.setattr("r2med.foundation.net.download.is_offline", lambda: True)
    assert requests("reasonrank-7b", home)
    with pytest.raises(UserError, match=r"raw\.githubusercontent\.com"):
        keep_prompt("reasonrank")


def test_the_store_keeps_one_copy_for_all_sizes_of_a_model(tmp_path: Path) -> None:
    keep_prompt("reasonrank", clone_of("reasonrank", tmp_path / "clone"))
    keep_prompt("reasonrank-8b", tmp_path / "clone")
    assert len(list((default_store().root / "prompts").glob("*/manifest.json"))) == 1
    assert printed("reasonrank-32b") == "reasonrank-32b(prompts=authors)@100"


@pytest.mark.slow
def test_requests_are_those_that_the_templates_of_rank_llm_say(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml = pytest.importorskip("yaml")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "site"), "rank-llm"]
    if subprocess.run(pip, capture_output=True, check=False).returncode:
        pytest.skip("rank-llm cannot be installed from the package registry here")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    query, documents = DATA.queries[0].text, [DATA.corpus.texts([row])[0] for row in range(3)]
    letters = {"first": "ABC"}
    for name in ("rankzephyr", "first", "insertrank", "rankgpt"):
        found = find_authors(name)
        assert found is not None
        assert found.source.startswith("rank-llm ")
        template: dict[str, Any] = yaml.safe_load(next(iter(found.files.values())))
        values = {"num": 3, "query": query}
        scores = ("1.00", "0.50", "0.00")
        names = letters.get(name, "123")
        body = template.get("body") or template["body_user"]
        shown = [
            body.format(rank=names[place], candidate=text, score=scores[place]) for place, text in enumerate(documents)
        ]
        [request, *_] = requests(spec_of(name), home)
        if name == "rankgpt":
            replies = [template["body_assistant"].format(rank=place) for place in (1, 2, 3)]
            pairs = [pair for place in range(3) for pair in (("user", shown[place]), ("assistant", replies[place]))]
            start = [
                ("system", template["system_message"]),
                ("user", template["prefix_user"].format(**values)),
                ("assistant", template["prefix_assistant"]),
            ]
            assert words(request) == [*start, *pairs, ("user", template["suffix_user"].format(**values))]
            continue
        text = template["prefix"].format(**values) + "".join(shown) + template["suffix"].format(**values)
        if name == "first":
            assert request.prompt == f"[INST] {template['system_message']}\n\n{text} [/INST]["
        else:
            assert words(request) == [("system", template["system_message"]), ("user", text)]


def test_the_share_of_equal_words_counts_each_word_as_often_as_both_have_it() -> None:
    assert equal_words("Sort {query} sort now", "sort sort sort then {query}") == 0.5
    assert equal_words("anything", "") == 0.0


def test_a_reranker_is_known_by_its_own_name_and_by_that_of_its_prompt() -> None:
    assert prompt_name("reasonrank-32b") == prompt_name("reasonrank") == "reasonrank"
    with pytest.raises(UserError, match="erank-4b"):
        prompt_name("erank-4b")


def of_set(folder: Path, name: str) -> Path:
    """Write a set of prompts of the user with one template."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text("Mine: {query} {passages}")
    return folder


@pytest.mark.parametrize("fetched", [True, False])
def test_a_prompt_of_the_run_for_a_trained_reranker_must_be_in_its_name(
    fetched: bool, tmp_path: Path, home: Path
) -> None:
    """The printed name says prompts=authors or prompts=own, so no other prompt may be read under it."""
    if fetched:
        keep_prompt("reasonrank", clone_of("reasonrank", tmp_path / "clone"))
    mine = of_set(tmp_path / "mine", "reasonrank")
    whose = "prompts=authors" if fetched else "prompts=own"
    with error_states("reasonrank-7b", whose, "reasonrank.txt", f"reasonrank-7b(prompts={mine})"):
        bound("reasonrank-7b", home, prompts=str(mine))
    named = bound(f"reasonrank-7b(prompts={mine})", home, prompts=str(mine))
    assert named.whose_prompt == OWN_PROMPT
    assert named.preview(DATA, Store(home)).requests[0].messages[0].content.startswith("Mine: ")


def test_a_set_of_the_run_without_a_prompt_of_the_reranker_changes_nothing(tmp_path: Path, home: Path) -> None:
    others = of_set(tmp_path / "others", "listwise")
    for spec in ("reasonrank-7b", "rankgpt(ranker, prompts=own)", "erank-4b"):
        plain = bound(spec, home).preview(DATA, Store(home)).requests
        assert bound(spec, home, prompts=str(others)).preview(DATA, Store(home)).requests == plain


def test_own_means_ours_and_no_name_means_the_set_of_the_run(tmp_path: Path, home: Path) -> None:
    mine = of_set(tmp_path / "mine", "erank")
    [first, *_] = bound("erank-4b", home, prompts=str(mine)).preview(DATA, Store(home)).requests
    assert "Mine: " in first.messages[0].content
    [first, *_] = bound("erank-4b(prompts=own)", home, prompts=str(mine)).preview(DATA, Store(home)).requests
    assert "Mine: " not in first.messages[0].content


def test_a_trained_reranker_with_our_prompt_says_so_in_one_line(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "r2med")
    for spec, fact in (("reasonrank-7b", "fetch_prompts('reasonrank')"), ("erank-4b", "figure 5")):
        bound(spec, home).check([DATA])
        states(caplog.messages[-1], spec, "our prompt", "not comparable", fact)
