"""An audit finds what is wrong with a dataset, and says nothing about a sound one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from r2med import Dataset, Query, UserError, audit
from r2med.assessment.audit.answer_leaks import is_open_answer, longest_run
from r2med.assessment.audit.audit_findings import Audit, verdict_for
from r2med.assessment.audit.audit_material import AuditMaterial
from r2med.assessment.audit.audit_page import audit_page
from r2med.assessment.audit.checks import CHECKS, QUICK_CHECKS
from r2med.assessment.audit.copies import unlabelled_copies
from r2med.assessment.audit.label_power import detectable_gap, unjudged_documents
from r2med.data.check import check
from r2med.data.corpus import Corpus
from r2med.data.dataset import Qrels
from r2med.foundation.pages.finding import Finding
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.text_formats import page_markdown
from support.datasets import r2med_folder
from support.fork_server import Command

RANDOM = random.Random(7)
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def words(count: int) -> list[str]:
    return RANDOM.choices(WORDS, k=count)


def passages(prefix: str, count: int) -> dict[str, str]:
    return {f"{prefix}{number}": f"{' '.join(words(60)).capitalize()}." for number in range(count)}


def sound() -> tuple[list[Query], dict[str, str], dict[str, dict[str, int]]]:
    """Thirty queries with two relevant documents each, among other documents."""
    queries = [Query(f"q{n}", " ".join(words(20)), "granuloma annulare") for n in range(30)]
    relevant = passages("r", 60)
    qrels = {f"q{n}": {f"r{2 * n}": 1, f"r{2 * n + 1}": 1} for n in range(30)}
    return queries, {**relevant, **passages("x", 240)}, qrels


def unchecked(queries: list[Query], corpus: dict[str, str], qrels: dict[str, dict[str, int]]) -> Dataset:
    """Return a dataset whose parts need not fit together, as one from a folder."""
    return Dataset("mine", queries, Corpus.of(corpus.items()), Qrels(qrels))


def of(found: Audit, check: str) -> Finding:
    return next(finding for finding in found.findings if finding.id == check)


def test_a_sound_dataset_is_found_sound() -> None:
    found = audit(unchecked(*sound()))
    odd = {finding.id for finding in found.findings if finding.verdict != "sound"}
    assert odd == {"detectable-gap", "provenance"}  # thirty queries, and values in memory have no source
    assert {gap.id for gap in found.left_out} == {"unjudged-documents", "answers-in-metadata", *QUICK_CHECKS}


def test_all_copies_of_relevant_documents_are_found_whatever_their_case_and_space() -> None:
    """As in BRIGHT's Biology, 21 passages are copies of relevant ones under other ids."""
    queries, corpus, qrels = sound()
    for n in range(7):
        corpus[f"space{n}"] = corpus[f"r{n}"].replace(" ", "  \n", 9) + " "
        corpus[f"case{n}"] = corpus[f"r{n + 7}"].upper()
        changed = corpus[f"r{n + 14}"].split()
        changed[30] = "altered"
        corpus[f"word{n}"] = " ".join(changed)
    corpus["far"] = " ".join(corpus["r20"].split()[:30] + words(30))
    finding = of(audit(unchecked(queries, corpus, qrels)), "unlabelled-copies")
    copies = {row[2]: row[3] for row in finding.evidence[0].rows}
    assert copies.keys() == {f"{kind}{n}" for kind in ("space", "case", "word") for n in range(7)}
    assert finding.numbers["copies"] == 21 and finding.numbers["equal"] == 14
    assert {each for copy, each in copies.items() if not copy.startswith("word")} == {"equal"}
    assert finding.verdict == "broken"


def test_a_copy_in_letters_that_look_alike_and_a_nearly_repeated_query_are_found() -> None:
    queries, corpus, qrels = sound()
    corpus["copy"] = corpus["r0"].translate(str.maketrans("aeo", "аео"))  # Cyrillic letters
    words_of = queries[3].text.split()
    queries[4] = Query("q4", " ".join([*words_of, "please"]), "granuloma annulare")
    found = audit(unchecked(queries, corpus, qrels))
    assert [row[2:] for row in of(found, "unlabelled-copies").evidence[0].rows] == [("copy", "equal")]
    near = of(found, "repeated-queries")
    assert near.numbers == {"repeated": 0, "nearly_repeated": 1, "queries_with_other_labels": 0}
    assert near.verdict == "look"
    assert near.evidence[0].rows[0][:2] == ("q4", "q3")


def test_documents_that_share_half_of_a_relevant_document_or_contain_it_need_a_look() -> None:
    queries, corpus, qrels = sound()
    corpus["around"] = " ".join([*words(200), corpus["r0"], *words(90)])
    corpus["within"] = " ".join(corpus["r2"].split()[20:50])
    corpus["half"] = " ".join([*words(30), *corpus["r4"].split()[:31]])
    corpus["labelled"] = corpus["half"]
    qrels["q2"]["labelled"] = 0
    found = audit(unchecked(queries, corpus, qrels))
    finding = of(found, "partial-copies")
    rows = {row[2]: (row[0], row[1], row[3]) for row in finding.evidence[0].rows}
    assert rows == {
        "around": ("q0", "r0", "contained"),
        "within": ("q1", "r2", "contained"),
        "half": ("q2", "r4", "half"),
    }
    assert finding.verdict == "look"
    assert finding.numbers == {"contained": 2, "half": 1, "queries": 3}
    assert of(found, "unlabelled-copies").verdict == "sound"


def test_a_copy_with_a_label_or_that_is_excluded_is_no_finding() -> None:
    queries, corpus, qrels = sound()
    corpus |= {"labelled": corpus["r0"], "excluded": corpus["r2"]}
    qrels["q0"]["labelled"] = 1
    queries[1] = Query("q1", queries[1].text, excluded=("excluded",))
    assert of(audit(unchecked(queries, corpus, qrels)), "unlabelled-copies").verdict == "sound"


def test_the_score_of_a_system_that_returns_copies_rises_if_they_counted() -> None:
    queries, corpus, qrels = sound()
    corpus["copy"] = corpus["r0"]
    dataset = unchecked(queries, corpus, qrels)
    lists = {query: ["x1", *documents] for query, documents in qrels.items()}
    other = {**lists, "q0": ["copy", "r0", "r1"]}
    finding = unlabelled_copies(AuditMaterial("mine", dataset.qrels, dataset, {"a": lists, "b": other}))
    changes = {row[0]: row[2:] for row in finding.evidence[1].rows}
    assert changes["a"] == (0, 0)
    assert (
        changes["b"][0]
        == changes["b"][1]
        == pytest.approx((1 - (1 / 1.58496 + 0.5) / (1 + 1 / 1.58496)) * 100 / 30, abs=0.01)
    )


def test_faults_of_links_labels_and_queries_are_found() -> None:
    queries, corpus, qrels = sound()
    corpus |= {"empty": " \n", "twin": corpus["r4"].upper()}
    qrels["q0"]["nowhere"] = 1
    qrels["q1"]["empty"] = 1
    qrels["q2"]["twin"] = 0
    qrels["q3"] = {"r6": 0}
    qrels["ghost"] = {"r7": 1}
    queries[8] = Query("q8", " ")
    queries[5] = Query("q5", queries[4].text.upper())
    found = audit(unchecked(queries, corpus, qrels))
    assert of(found, "missing-documents").evidence[0].rows == (("q0", "nowhere", 1),)
    assert of(found, "empty-documents").evidence[0].rows == (("empty", "yes"),)
    assert of(found, "contradictory-labels").evidence[0].rows == (("q2", "r4", 1, "twin", 0),)
    assert of(found, "repeated-queries").evidence[0].rows == (("q5", "q4", "equal", "others"),)
    assert [row[0] for row in of(found, "scorable-queries").evidence[0].rows] == ["q3", "q8", "ghost"]
    assert {of(found, name).verdict for name in ("missing-documents", "contradictory-labels")} == {"look"}


def test_queries_that_give_away_their_answer_are_found(tmp_path: Path) -> None:
    queries, corpus, qrels = sound()
    quoted = " ".join(corpus["r0"].split()[10:25]).upper()
    queries[0] = Query("q0", f"Is it {quoted}?", "granuloma annulare")
    queries[1] = Query("q1", "A rash like granuloma-annulare, is it?", "Granuloma annulare")
    queries[2] = Query("q2", "Yes or no?", "yes")
    found = audit(unchecked(queries, corpus, qrels))
    assert of(found, "answers-in-queries").evidence[0].rows == (("q1", "Granuloma annulare"),)
    assert of(found, "quoted-documents").evidence[0].rows[0][:3] == ("q0", "r0", 15)


def test_a_query_that_lists_its_options_gives_nothing_away() -> None:
    queries, corpus, qrels = sound()
    options = ("granuloma annulare", "ringworm", "lichen planus")
    queries = [Query(each.id, f"{each.text} {', '.join(options)}?", options[0], options=options) for each in queries]
    finding = of(audit(unchecked(queries, corpus, qrels)), "answers-in-queries")
    assert finding.verdict == "sound"
    assert "30 queries list their options" in finding.sentence
    alone = [Query(each.id, f"{each.text.split(',')[0]}?", options[0], options=options) for each in queries]
    assert of(audit(unchecked(alone, corpus, qrels)), "answers-in-queries").verdict == "broken"


def test_an_error_of_the_records_beside_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "bm25-0123456789.json").write_text("{}")
    gap = next(each for each in audit(unchecked(*sound())).left_out if each.id == "unjudged-documents")
    assert gap.why.startswith("the records in results could not be read: ")
    assert "is not a record of r2med" in gap.why


def test_answers_in_other_fields_of_a_query_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine" / "qrels").mkdir(parents=True)
    (tmp_path / "mine" / "corpus.jsonl").write_text('{"_id": "doc-100", "title": "", "text": "a b c"}\n')
    rows = '{"_id": "1", "text": "what is it", "metadata": {"doc-100": [{"label": "SUPPORT"}]}}\n'
    (tmp_path / "mine" / "queries.jsonl").write_text(rows)
    (tmp_path / "mine" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tdoc-100\t1\n")
    finding = of(audit(tmp_path / "mine"), "answers-in-metadata")
    assert finding.evidence[0].rows == (("1", "metadata", "doc-100", "relevant document"),)


def test_the_longest_common_run_of_words_is_found() -> None:
    assert longest_run("a b c d e f".split(), "x c d e y b c".split(), 2) == ["c", "d", "e"]
    assert longest_run("a b".split(), "a b".split(), 2) == ["a", "b"]
    assert not longest_run("a b c".split(), "c b a".split(), 2)
    assert not longest_run([], [], 2)
    assert longest_run("no on".split(), "on no on x".split(), 2) == ["no", "on"]
    assert longest_run(["ha"] * 5_000, ["ha"] * 6_000) == ["ha"] * 5_000  # one comparison for each pair never ends


def test_closed_answers_are_not_looked_for() -> None:
    assert is_open_answer("Type 1 diabetes")
    assert not any(map(is_open_answer, ("yes", "No.", "B", "12", "", "All of the above")))


def test_systems_at_hand_show_the_gap_and_the_documents_without_a_label() -> None:
    dataset = unchecked(*sound())
    lists = {query: ["x1", "r0", "x2", "x3"] for query in dataset.qrels}
    better = {query: list(documents) for query, documents in dataset.qrels.items()}
    mixed = {query: [lists, better][number % 2][query] for number, query in enumerate(dataset.qrels)}
    material = AuditMaterial("mine", dataset.qrels, dataset, {"a": lists, "b": mixed})
    assert "systems at hand" in detectable_gap(material).sentence
    finding = unjudged_documents(material)
    assert finding.verdict == "look"
    assert finding.evidence[0].rows[0][1] > finding.evidence[0].rows[1][1] > 0


def test_an_audit_of_files_shows_what_data_check_finds(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "mine")
    (folder / "card.toml").write_text("[counts]\nqueries = 9\ndocuments = 3\npositives = 2\n")
    found, quick = audit(folder), {finding.id: finding for finding in check(folder).findings()}
    assert [of(found, name) for name in QUICK_CHECKS] == [quick[name] for name in QUICK_CHECKS]
    assert of(found, "card-counts").verdict == "look"
    assert {quick[name].title for name in set(quick) & set(CHECKS)} <= {each.title for each in CHECKS.values()}


def test_a_fault_of_few_queries_is_worth_a_look_and_one_of_many_breaks() -> None:
    assert [verdict_for(*each) for each in ((0, 0), (0, 9), (1, 9), (2, 2), (3, 30), (3, 31), (9, 100))] == [
        "sound",
        "sound",
        "look",
        "broken",
        "broken",
        "look",
        "look",
    ]


def test_judgements_alone_are_enough_for_a_part(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n")
    found = audit(qrels=tmp_path / "qrels.tsv")
    made = {finding.id for finding in found.findings}
    assert made == {"scorable-queries", "detectable-gap", "single-relevant", "label-distribution"}
    assert made | {gap.id for gap in found.left_out} == set(CHECKS)
    gap = of(found, "detectable-gap")
    assert gap.verdict == "broken" and "With 2 queries, no difference" in gap.sentence
    assert not any("ranking" in gap.why for gap in found.left_out)  # they cannot be given without a dataset
    with pytest.raises(UserError, match="about one dataset or one file of judgements"):
        audit()
    with pytest.raises(UserError, match="there are no records"):
        audit(unchecked(*sound()), results=tmp_path)


def test_hostile_data_end_in_a_verdict() -> None:
    none: list[Query] = []
    assert audit(unchecked(none, {}, {})).verdict == "broken"
    assert audit(unchecked(none, {"d": "x"}, {})).verdict == "broken"
    long = "i" * 100_000
    hostile = unchecked(
        [Query(long, "\x00\x01</script><b>")], {long: "\x00\ufffd\x1b[31m", "e": "", "s": "a"}, {long: {long: 1}}
    )
    found = audit(hostile)
    assert of(found, "detectable-gap").verdict == "broken"
    assert of(found, "encoding").verdict == "broken"
    page = page_html(audit_page(found))
    assert "</script>" not in page and "\x1b" not in page


def test_the_page_names_the_worst_first_and_all_that_was_left_out() -> None:
    queries, corpus, qrels = sound()
    corpus |= {f"copy{n}": corpus[f"r{n}"] for n in range(20)}
    found = audit(unchecked(queries, corpus, qrels))
    text = page_markdown(audit_page(found, 5))
    assert text.index("Copies of relevant documents broken") < text.index("Licence and source needs a look")
    assert "15 further rows" in text and "Left out" in text


def test_the_command_writes_the_page_and_fails_on_broken_data(r2med: Command, tmp_path: Path) -> None:
    done = r2med("audit", "demo/Biology", "-o", "a/audit.html")
    assert done.returncode == 0 and "Verdict: needs a look" in done.stdout
    assert "<h1>Audit of demo/Biology</h1>" in (tmp_path / "a" / "audit.html").read_text("utf-8")
    (tmp_path / "one.txt").write_text("q 0 d 1\n")
    assert r2med("audit", "--qrels", "one.txt").returncode == 1
    for wrong in (("demo/Biology", "-o", "audit.txt"), ("--qrels", "none")):
        ended = r2med("audit", *wrong)
        assert ended.returncode == 2 and len(ended.stderr.strip().splitlines()) == 1
