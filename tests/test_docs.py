"""Every command of README and docs exists with its flags, every system in them can be built, Python blocks run."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml

import r2med
from r2med.cli.app import command as whole_command
from r2med.data.dataset_cards import read_card
from r2med.evaluation.running.batch import plan_run
from r2med.foundation.runtime.setup import Setup

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path, kind: str) -> list[str]:
    return [body for language, body in _FENCE.findall(page.read_text(encoding="utf-8")) if language == kind]


def commands(page: Path) -> list[str]:
    """Return the lines of a page that begin with r2med, those that end in a backslash joined."""
    text = "\n".join(body for kind in ("", "sh", "shell") for body in blocks(page, kind)).replace("\\\n", " ")
    lines = (line.strip().removeprefix("$ ") for line in text.splitlines())
    return [line for line in lines if re.match(r"(?:[A-Z_0-9]+=\S+ )*r2med(?: |$)", line)]


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """Return the verb of a command and its flags, parsed as the command line does, without running it."""
    words = shlex.split(line, comments=True)
    words = words[words.index("r2med") + 1 :]
    words = list(takewhile(lambda word: word not in ("|", ">", ">>"), words))
    command: Any = whole_command()
    context = command.make_context("r2med", list(words), resilient_parsing=not words)
    name, rest = "", list(words)
    while hasattr(command, "resolve_command") and rest:
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context, resilient_parsing=hasattr(command, "commands"))
    return str(name), context.params


LINES = [(page.name, line) for page in PAGES for line in commands(page)]


def test_the_pages_have_commands() -> None:
    assert len(LINES) > 30


@pytest.mark.parametrize(("page", "line"), LINES)
def test_every_command_of_the_docs_exists_and_names_systems_that_can_be_built(page: str, line: str) -> None:
    verb, given = parsed(line)
    # Paths and modules in the docs are the reader's.
    if verb != "run" or page.startswith("extend") or re.search(r"\./|path:|py:|run:|FILE|NAME|DIR|\.toml", line):
        return
    systems = given["systems"] or ([] if given["suite"] else ["bm25"])
    setup = Setup(recorded=bool(given["recorded"]), base_url=given["base_url"] or "")
    plan = plan_run(
        systems,
        ["demo"],
        expand=given["expand"] or [],
        rerank=given["rerank"] or [],
        llms=given["llms"] or [],
        suite=given["suite"],
        setup=setup,
    )
    assert plan.systems


OTHER_FLAGS = {
    "--cross",
    "--lora",
    "--seeds",
    *("--max-model-len", "--served-model-name", "--reasoning-parser", "--generation-config"),  # of vLLM
    *("--enable-auto-tool-choice", "--tool-call-parser", "--max-logprobs"),
    *("--population", "--duplicates"),  # of scripts in benchmarks/
    "--target",  # of podman
    *("--task", "--mode", "--retriever", "--reranker", "--recall", "--gar"),  # of the benchmark's own code
}


def flags(command: Any) -> set[str]:
    """Return the flags of a command and of all commands below it."""
    own = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(flags, getattr(command, "commands", {}).values()))


def test_every_flag_that_the_text_of_a_page_names_exists() -> None:
    known = flags(whole_command()) | OTHER_FLAGS | {"--help", "--help-all", "--install-completion"}
    named = []
    for page in PAGES:
        text = _FENCE.sub("", page.read_text(encoding="utf-8"))
        for quoted in re.findall(r"`((?:r2med |--)[^`\n]+)`", text):
            named += [f"{page.name}: {flag}" for flag in re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", quoted)]
    assert len(named) > 100
    assert [each for each in named if each.partition(": ")[2] not in known] == [], "add flags of other tools"


OTHER_TOOLS = ("pyterrier", "llama_index", "inspect_ai")
"""What examples use and not every machine has."""
PYTHON = [(page.name, body) for page in PAGES for body in blocks(page, "python") if "# file:" not in body]


@pytest.mark.parametrize(("page", "body"), PYTHON)
def test_every_python_block_of_the_docs_runs(
    page: str, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page == "design.md":
        compile(body, page, "exec")
        return
    try:
        exec(compile(body, page, "exec"), {"__name__": "docs"})
    except ModuleNotFoundError as error:
        if error.name not in OTHER_TOOLS:
            raise
        pytest.skip(f"{error.name} is not installed")


def test_the_workflow_of_a_leaderboard_can_be_copied() -> None:
    import yaml

    text = (ROOT / "docs/leaderboard-check.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert set(workflow["jobs"]) == {"verify", "publish"}
    ran = [step["run"] for step in workflow["jobs"]["verify"]["steps"] if "run" in step]
    verbs = [parsed(line)[0] for line in ran if line.startswith("r2med ")]
    assert verbs == ["verify", "board"]
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert len(used) == 5 and all(re.search(r"@[0-9a-f]{40}$", action) for action in used), "pinned by digest"
    assert 'pip install "r2med @ git+$R2MED@$COMMIT"' in ran


def test_the_workflow_of_the_gate_runs_both_systems_and_compares_them() -> None:
    import yaml

    workflow = yaml.safe_load((ROOT / "docs/retrieval-gate.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["gate"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    run, gate = [parsed(line.partition(" || ")[0]) for line in lines if line.startswith("r2med ")]
    assert (run[0], list(run[1]["systems"])) == ("run", ["$old", "$new"])
    assert (gate[0], gate[1]["baseline"], gate[1]["worse_than"]) == ("compare", "$old", 1)
    used = [step["uses"] for step in steps if "uses" in step]
    assert len(used) == 3 and all(re.search(r"@[0-9a-f]{40}$", action) for action in used), "pinned by digest"


def test_the_docs_import_only_what_is_public() -> None:
    for page in PAGES:
        code = "\n".join(blocks(page, "python"))
        assert not re.findall(r"^(?:from|import) r2med\.(?!values |extend |agreement ).*", code, re.MULTILINE), (
            page.name
        )
        for module, line in re.findall(r"^from (r2med[.a-z]*) import (.*)", code, re.MULTILINE):
            assert {name.strip() for name in line.split(",")} <= set(import_module(module).__all__), page.name
        known = {*r2med.__all__, "values", "extend", "agreement"}
        assert set(re.findall(r"\br2med\.([a-zA-Z_]+)\b(?!\.)", code)) <= known, page.name


def test_the_site_of_the_docs_has_every_page() -> None:
    listed = re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


_LINK = re.compile(r"\]\(((?!https?:|mailto:)[^)#\s]*)(?:#([^)\s]*))?\)")


def test_the_site_has_a_first_page_and_links_only_to_its_own_files() -> None:
    """A link out of docs/, to no file or to no heading. docs/check_site.py checks live/ of the gallery."""
    docs = ROOT / "docs"
    assert "- Home: index.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    faults = []
    for page in docs.glob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target, anchor in _LINK.findall(text):
            if page.name == "gallery.md" and target.startswith("live/"):  # the page says where these work
                continue
            file = (docs / target).resolve() if target else page
            if not file.is_relative_to(docs) or not file.is_file():
                faults.append(f"{page.name}: {target}")
            elif anchor and anchor not in headings(file):
                faults.append(f"{page.name}: {target}#{anchor}")
    assert faults == []


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_a_page_of_the_repository_links_to_files_and_headings_that_exist(name: str) -> None:
    found = _LINK.findall((ROOT / name).read_text(encoding="utf-8"))
    pages = [(ROOT / (target or name), target, anchor) for target, anchor in found]
    faults = [target for page, target, _ in pages if not page.exists()]
    faults += [f"{target}#{anchor}" for page, target, anchor in pages if anchor and anchor not in headings(page)]
    assert faults == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings as Markdown makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_every_file_and_folder_that_the_design_page_names_is_there() -> None:
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    source = Path(r2med.__file__).parent
    named = set(re.findall(r"`((?:[a-z0-9_]+/)+(?:[a-z0-9_]+\.(?:py|js|html|toml|d\.ts))?)`", text))
    assert {"cli/app.py", "models/prompts/texts/", "publication/site/data_files.d.ts"} <= named
    assert [path for path in sorted(named) if not any((base / path).exists() for base in (source, ROOT))] == []
    floors = re.findall(r"^\| \*\*`(\w+)/`\*\* ", text, re.MULTILINE)
    assert set(floors) == {path.name for path in source.iterdir() if (path / "__init__.py").is_file()}
    for floor in floors:
        picture = re.search(rf"^{floor} +\S.*\n(?: +(.*))?", text, re.MULTILINE)
        assert picture, floor
        rooms = set(re.findall(rf"^\| `{floor}/(\w+)/` ", text, re.MULTILINE))
        if rooms:
            assert rooms == {path.name for path in (source / floor).iterdir() if (path / "__init__.py").is_file()}
            assert picture[1] and rooms == set(picture[1].split(" · "))


def test_the_design_page_names_the_first_file_of_every_command() -> None:
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    command: Any = whole_command()
    table = text.split("| command | floor | first file |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w, ]+) \| `(\w+)/[\w/]+\.py` \|$", table, re.MULTILINE)
    assert {name for name, _, _ in rows} == set(command.commands)
    assert all(floor in floors.split(", ") for _, floors, floor in rows)


def test_every_name_that_the_design_page_places_in_a_file_is_there() -> None:
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    source = Path(r2med.__file__).parent
    names = r"(?:`[\w.]+`(?:, | and (?:its name in )?))*`[\w.]+`"
    placed = re.findall(rf"({names}),?(?: both)? (?:of|in) `([a-z0-9_/]+\.(?:py|js|d\.ts))`", text)
    assert ("`PANELS`", "cli/app.py") in placed and len(placed) > 50
    lacking = [
        f"{name} in {file}"
        for names, file in placed
        for name in re.findall(r"(\w+)`", names)
        if not re.search(rf"\b{name}\b", (source / file).read_text(encoding="utf-8"))
    ]
    assert lacking == []


def test_the_readme_says_how_to_get_it_how_to_cite_it_and_where_texts_are_kept() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\nmake run\n" in text
    assert "arXiv:2505.14558" in text and "CITATION.cff" in text
    assert all(word in text for word in ("R2MED_HOME", "--without-texts", "r2med cache clear --dataset"))
    assert max(line.count("](docs/") for line in text.splitlines()) <= 6, "a table, not a paragraph of links"
    assert all((ROOT / target).exists() for target, _ in _LINK.findall(text))
    assert len(text.split()) < 800


def test_the_site_has_every_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)) == pages


def test_no_page_needs_a_list_of_links_that_nothing_writes() -> None:
    """A page once gave `wget -i links.txt`, a file that no command of ours makes."""
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(r2med.__file__).parent.rglob("*.py"))
    for page in (ROOT / "docs").glob("*.md"):
        lists = re.findall(r"wget [^`\n]*-i (\S+)", page.read_text(encoding="utf-8"))
        assert [name for name in lists if f'"{Path(name).name}"' not in sources] == [], page


def test_the_citation_file_names_the_paper_and_this_version() -> None:
    content = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert content["version"] == r2med.__version__
    [paper] = content["references"]
    assert paper["authors"][0] == {"family-names": "Zhang", "given-names": "Xiangxu"}
    assert paper["url"].endswith("2505.14558")


def test_the_card_in_the_page_of_languages_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    (tmp_path / "card.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    assert read_card(tmp_path / "card.toml", "mine").languages == ("de",)
