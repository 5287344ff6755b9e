import pytest

from r2med.construction.build_page import build_page
from r2med.construction.build_plan import BuildPlan
from r2med.construction.cited_links import fetchable, links_hint
from r2med.construction.pipeline import BuildFolder
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from support.builds import built, plan_file

SITE = "https://pages.example"
SAVED = {
    "/doi/10.1/x": "doi/10.1/x.html",  # redirects to a page with another canonical address
    "/page?id=3&x=a/b": "page?id=3&x=a%2Fb.html",
    "/dir/": "dir/index.html",
    "/wiki/Gout#Causes": "wiki/Gout.html",
    "/a%20b/caf%C3%A9": "a b/café.html",
    "/plain.html": "plain.html",
    "": "index.html",
}
"""Path of a link -> the file that `wget -x -E` made of it, seen with wget 1.21 and a server on loopback."""
CANONICAL = '<link rel="canonical" href="https://publisher.example/full">'


def table(*links):
    rows = "".join(f'q{number},Question {number}?,Gout,"{link}"\n' for number, link in enumerate(links))
    return f"id,question,answer,links\n{rows}"


def test_the_list_has_each_cited_page_once_and_in_order(tmp_path):
    cited = [f"{SITE}/b {SITE}/a#part", f"{SITE}/a", "", f"{SITE}/c"]
    build = built(tmp_path, ["read-table(q.csv)", "read-table(r.csv)"], {"q.csv": table(*cited), "r.csv": more()})
    assert (build.out / "links.txt").read_text() == f"{SITE}/b\n{SITE}/a\n{SITE}/c\n{SITE}/d\n"
    assert links_hint(build.out).startswith(f"{build.out / 'links.txt'}: 4 pages")
    assert "wget -x" in str(build_page(build))


def more():
    return table(f"{SITE}/d").replace("q0", "r0").replace("Question", "Other question")


def test_a_list_that_is_outdated_is_removed(tmp_path):
    build = built(tmp_path, ["read-table(q.csv)"], {"q.csv": table(f"{SITE}/a")})
    assert (build.out / "links.txt").exists()
    built(tmp_path, ["read-table(q.csv)"], {"q.csv": table("")})
    assert not (build.out / "links.txt").exists() and links_hint(build.out) == ""


@pytest.mark.parametrize(
    "link", ["ftp://pages.example/a", "http://[", "mailto:a@b.example", "https://a.example/\x1b[1m"]
)
def test_what_cannot_be_fetched_is_not_listed(link):
    assert fetchable(link) == ""


def test_a_missing_folder_of_pages_comes_with_the_command_that_makes_it(tmp_path):
    plan = BuildPlan.read(plan_file(tmp_path, ["read-table(q.csv)", "read-web(saved)"], {"q.csv": table(f"{SITE}/a")}))
    with pytest.raises(UserError, match=r"saved does not exist.*wget -x -E -i \S+links\.txt -P saved-pages$"):
        BuildFolder(plan, tmp_path / "out").run(plan.setup(store=Store(tmp_path / "store")))


def test_every_page_that_wget_saved_is_matched_with_its_link(tmp_path):
    for number, name in enumerate(SAVED.values()):
        file = tmp_path / "saved-pages" / "pages.example" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        head = CANONICAL if "doi" in name else ""
        text = f"Page {number} describes urate crystals in the joint. " * 5
        file.write_text(
            f"<html><head><title>T</title>{head}</head><body><article><p>{text}</p></article></body></html>"
        )
    steps = ["read-table(q.csv)", "read-web(saved-pages)", "chunk", "mine(committee=bm25, depth=1)"]
    build = built(tmp_path, steps, {"q.csv": table(*(SITE + path for path in SAVED))})
    linked = {each.question for each in build.items(4) if any(found.view == "link" for found in each.found)}
    assert linked == {f"q{number}" for number in range(len(SAVED))}
    assert "wget -x" not in str(build_page(build))  # the pages are saved
