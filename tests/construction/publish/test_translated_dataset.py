"""A dataset that was translated from Chinese hospital records keeps its source beside the translation."""

import json
import shutil

import pytest

from r2med.assessment.review.reviews import Review
from r2med.construction.pipeline import BuildFolder
from r2med.construction.publish.dataset_folder import write_output
from r2med.construction.review_items import add_reviews, items_by_kind, review_items
from r2med.data import load
from r2med.data.check import check
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.publication.bridges.data_export import write_layout
from support.builds import built, lines
from support.commands import typed

CASE = (
    "患者，女，34岁，因“反复发热、关节痛3个月”入院。",
    "3个月前无明显诱因出现发热，体温最高39.2℃，伴双膝、双腕关节疼痛，面部可见蝶形红斑。",
    "无咳嗽、咳痰，否认结核病史。",
    "血常规：白细胞2.8×10⁹/L，血小板78×10⁹/L；24小时尿蛋白2.1g。",
)
CASE_IN_ENGLISH = (
    "A 34-year-old woman was admitted with recurrent fever and joint pain for 3 months.",
    "Three months ago she developed fever without an obvious trigger, up to 39.2 °C, with pain in both knees and both "
    "wrists and a butterfly rash on the face.",
    "She had no cough or sputum and denied a history of tuberculosis.",
    "Blood count: white cells 2.8 × 10⁹/L, platelets 78 × 10⁹/L; 24-hour urine protein 2.1 g.",
)
PAGE = ("系统性红斑狼疮的治疗。", "轻症可口服羟氯喹200mg，每日两次。", "妊娠期不使用甲氨蝶呤。")
PAGE_IN_ENGLISH = (
    "Treatment of systemic lupus erythematosus.",
    "Mild disease is treated with oral hydroxychloroquine 200 mg twice daily.",
    "Methotrexate is used in pregnancy.",
)
ENGLISH_PAGE = {"id": "e", "title": "Hydroxychloroquine", "text": "It is given for a rash of joints and fever."}


def numbered(*sentences):
    return {str(number): sentence for number, sentence in enumerate(sentences, 1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    answers = [
        (["into English", "面部可见"], numbered(*CASE_IN_ENGLISH, "Systemic lupus erythematosus")),
        (["into Chinese", "butterfly"], numbered(*CASE, "系统性红斑狼疮")),
        (["into English", "轻症可"], numbered("Lupus", *PAGE_IN_ENGLISH)),
        (["into Chinese", "Mild disease"], numbered("狼疮", *PAGE[:2], "妊娠期使用甲氨蝶呤。")),
        (["may stand as evidence"], {"why": "It names the drug.", "relevance": 5, "support": 5}),
    ]
    sources = {
        "q.jsonl": lines({"id": "q", "question": "\n".join(CASE), "answer": "系统性红斑狼疮"}),
        "t.jsonl": lines({"id": "p", "title": "狼疮", "text": "".join(PAGE)}, ENGLISH_PAGE),
        "d.csv": "source,translation\n羟氯喹,hydroxychloroquine\n甲氨蝶呤,methotrexate\n",
    }
    steps = [
        "read-table(q.jsonl)", "translate", "read-textbook(t.jsonl)",
        "translate-pages(drugs=d.csv)", "chunk", "mine(committee=bm25, depth=3)", "judge(untested=yes)",
    ]  # fmt: skip
    place = tmp_path_factory.mktemp("translated")
    written = write_output(built(place, steps, sources, answers), Runtime(store=Store(place / "store")))
    assert written
    return written


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_queries_are_in_english_with_their_source_beside(folder):
    [query] = rows(folder / "query.jsonl")
    assert query["text"] == "\n".join(CASE_IN_ENGLISH)
    assert query["answer"] == "Systemic lupus erythematosus"
    assert (query["source_language"], query["source_text"]) == ("Chinese", "\n".join(CASE))
    assert rows(folder / "corpus.jsonl")[0]["text"] == " ".join(PAGE_IN_ENGLISH)


def test_every_sentence_is_published_beside_its_source_with_its_marks(folder):
    sentences = rows(folder / "translations.jsonl")
    assert [(row["of"], row["id"], row["field"]) for row in sentences] == [
        *[("query", "q", "text")] * 4, ("query", "q", "answer"), ("page", "p", "title"), *[("page", "p", "text")] * 3,
    ]  # fmt: skip
    assert [row["source"] for row in sentences[:4]] == list(CASE)
    assert [row["marks"] for row in sentences if row["marks"]] == ["negation lost: 不"]


def test_the_folder_is_a_dataset_without_flaws(folder, store):
    problems = check(folder, store)
    assert problems.flaws == []
    assert load(folder, store).queries[0].text.startswith("A 34-year-old woman")


def test_people_can_review_each_sentence_beside_its_translation(folder):
    [item] = review_items(folder.parent, kind="translation")
    assert list(item.sentences[:4]) == [(source, text, "") for source, text in zip(CASE, CASE_IN_ENGLISH, strict=True)]


def test_the_datasheet_counts_what_was_translated_and_what_was_marked(folder):
    sheet = (folder / "README.md").read_text("utf-8")
    assert "Chinese into English" in sheet
    assert "1 negation lost" in sheet
    described = json.loads((folder / "croissant.json").read_text("utf-8"))
    record = next(each for each in described["recordSet"] if each["name"] == "translations")
    assert [field["name"] for field in record["field"]] == list(rows(folder / "translations.jsonl")[0])
    assert described["rai:hasSyntheticData"] is True


def test_a_page_whose_translation_people_reject_is_left_out_of_the_corpus(folder, tmp_path, capsys):
    place = shutil.copytree(folder.parent, tmp_path / "out")
    [page] = items_by_kind(place, "all")["page"]
    marks = ("", "", "", "negation lost: 不; 妊娠期使用甲氨蝶呤。")
    assert page.sentences == tuple(zip(("狼疮", *PAGE), ("Lupus", *PAGE_IN_ENGLISH), marks, strict=True))
    add_reviews(place, [Review(question="p", kind="page", annotator="Ann", verdict="reject")])
    build = BuildFolder.open(place)
    written = write_output(build, Runtime(store=Store(tmp_path / "store")))
    assert [row["id"] for row in rows(written / "corpus.jsonl")] == ["e-1"]
    assert [row["p_id"] for row in rows(written / "qrels.jsonl")] == ["e-1"]
    assert {row["of"] for row in rows(written / "translations.jsonl")} == {"query"}
    [left_out] = [row for row in rows(written / "rejected.jsonl") if row["step"] == "review"]
    assert (left_out["key"], left_out["reason"]) == ("p", "unfaithful translation")
    assert "1 unfaithful translation" in (written / "README.md").read_text("utf-8")
    assert check(written, Store(tmp_path / "store")).flaws == []
    typed("build", "show", place)
    assert "rejected 1 translated page, which the dataset leaves out: 1 unfaithful" in capsys.readouterr().out


def test_a_question_and_a_page_with_one_id_are_reviewed_apart(folder, tmp_path):
    place = shutil.copytree(folder.parent, tmp_path / "out")
    with pytest.raises(UserError, match=r"has no translated page for 'q'$"):
        add_reviews(place, [Review(question="q", kind="page", annotator="Ann", verdict="accept")])


def test_cards_name_the_language_that_was_translated_into(folder, tmp_path):
    answers = [
        (["into German"], numbered("Was hilft bei Fieber?", "Ruhe")),
        (["into English"], numbered("What helps with fever?", "Rest")),
        (["may stand as evidence"], {"why": "x", "relevance": 5, "support": 5}),
    ]
    sources = {
        "q.jsonl": lines({"id": "q", "question": "What helps with fever?", "answer": "Rest"}),
        "t.jsonl": lines({"id": "p", "title": "Fieber", "text": "Bei Fieber hilft dem Kranken die Ruhe und viel Tee."}),
    }
    translate = "translate(source=English, to=German)"
    steps = [
        "read-table(q.jsonl)",
        translate,
        "read-textbook(t.jsonl)",
        "chunk",
        "mine(committee=bm25)",
        "judge(untested=yes)",
    ]
    german = write_output(built(tmp_path, steps, sources, answers), Runtime(store=Store(tmp_path / "store")))
    for place, code in ((folder, "en"), (german, "de")):
        assert f'\nlanguage: ["{code}"]\n' in (place / "README.md").read_text("utf-8")
        assert json.loads((place / "croissant.json").read_text("utf-8"))["inLanguage"] == code
    assert 'languages = ["de"]' in (german / "card.toml").read_text("utf-8")
    write_layout(load(german, Store(tmp_path / "store")), "croissant", tmp_path / "exported")
    assert json.loads((tmp_path / "exported/croissant.json").read_text("utf-8"))["inLanguage"] == "de"
