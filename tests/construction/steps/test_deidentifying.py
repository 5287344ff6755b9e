import csv
import json

import pytest

from r2med import run_build
from r2med.construction.build_plan import BuildPlan
from r2med.construction.steps.deidentifying import quoted_spans
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from support.builds import built, lines, plan_file

NOTE = "A man, 94 years old, MRN 482913, was seen by Dr. Weber on 3 May 2021. He has Crohn's disease."
CLEAN = "A man, over 89 years old, MRN [ID-1], was seen by Dr. Weber on [DATE-1]. He has Crohn's disease."
EXAM = lines(
    {"id": "q1", "question": NOTE, "options": ["Call MRN 482913", "Gout"], "answer": "Call MRN 482913"},
    {"id": "q2", "question": "A man has a painful toe.", "options": ["Gout", "Flu"], "answer": "Gout"},
)
SECRETS = ("482913", "3 May", "94")


def test_every_text_of_a_question_has_the_same_placeholders(tmp_path):
    made = built(tmp_path, ["read-exam(e.jsonl)", "deidentify"], {"e.jsonl": EXAM})
    first, second = made.items(2)
    assert first.text == CLEAN
    assert first.answer == "Call MRN [ID-1]" and first.options == ("Call MRN [ID-1]", "Gout")
    assert first.original == ""
    assert second.text == "A man has a painful toe."


def test_the_counts_are_facts_and_the_sample_stays_in_the_folder_of_the_step(tmp_path):
    made = built(tmp_path, ["read-exam(e.jsonl)", "deidentify"], {"e.jsonl": EXAM})
    fact = made.status()[1].facts["personal data"]
    assert fact["kinds"] == {"DATE": 1, "AGE": 1, "ID": 3}
    assert (fact["changed"], fact["items"]) == (1, 2)
    assert fact["not looked for"][:2] == ["names", "addresses"]
    with (made.folder(2) / "replaced-sample.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert rows[1] | {"before": "", "after": ""} == {
        **{"item": "q1", "field": "text", "placeholder": "[ID-1]", "kind": "ID", "rule": "word"},
        **{"replaced": "482913", "before": "", "after": ""},
    }


OTHERS = "anything in languages other than English, German, Spanish, French and Chinese"


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        ("deidentify", ["names", "addresses", OTHERS]),
        (
            "deidentify(kinds=name:date)",
            ["names", "addresses", "ages over 89", "ids", "telephone numbers", "mail addresses", OTHERS],
        ),
        ("deidentify(library=presidio)", ["names in languages other than English", OTHERS]),
        ("deidentify(scripted)", []),
    ],
)
def test_the_facts_name_what_was_not_looked_for(tmp_path, step, missing):
    plan = BuildPlan.read(plan_file(tmp_path, ["read-exam(e.jsonl)", step], {"e.jsonl": EXAM}))
    assert plan.steps[1].not_looked_for() == missing


def test_a_second_pass_changes_nothing(tmp_path):
    made = built(tmp_path, ["read-exam(e.jsonl)", "deidentify", "deidentify(kinds=name:date)"], {"e.jsonl": EXAM})
    assert list(made.items(3)) == list(made.items(2))


def test_only_the_chosen_kinds_are_replaced(tmp_path):
    made = built(tmp_path, ["read-exam(e.jsonl)", "deidentify(kinds=date)"], {"e.jsonl": EXAM})
    assert next(made.items(2)).text == NOTE.replace("3 May 2021", "[DATE-1]")
    with pytest.raises(UserError, match="no kind of personal data 'dates'"):
        BuildPlan.read(plan_file(tmp_path, ["read-exam(e.jsonl)", "deidentify(kinds=dates)"]))


@pytest.mark.parametrize(
    ("steps", "stream"),
    [
        (["read-text(p.txt)", "chunk", "deidentify-pages"], "chunks"),
        (["read-exam(e.jsonl)", "read-text(p.txt)", "chunk", "mine(committee=bm25)", "deidentify"], "candidates"),
    ],
)
def test_a_step_that_comes_too_late_is_refused(tmp_path, steps, stream):
    with pytest.raises(UserError, match=f"comes too late: in the plan, put it before the step that makes {stream}"):
        built(tmp_path, steps, {"e.jsonl": EXAM, "p.txt": NOTE})


ASKED = [
    (
        ["List the personal data", "painful toe"],
        {"found": [{"quote": "painful toe", "kind": "ID"}, {"quote": "not there", "kind": "NAME"}]},
    ),
    (
        ["List the personal data", "[ID-1]"],
        {
            "found": [
                {"quote": "Weber", "kind": "NAME"},
                {"quote": "[ID-1]", "kind": "NAME"},
                {"quote": "Gout", "kind": "ADDRESS"},
            ]
        },
    ),
]


def test_an_llm_finds_more_in_what_the_rules_left_and_must_quote_it(tmp_path):
    made = built(tmp_path, ["read-exam(e.jsonl)", "deidentify(scripted)"], {"e.jsonl": EXAM}, ASKED)
    first, second = made.items(2)
    assert first.text == CLEAN.replace("Weber", "[NAME-1]") and first.options == ("Call MRN [ID-1]", "[ADDRESS-1]")
    assert second.text == "A man has a [ID-1]."
    done = made.status()[1]
    assert done.cost.calls == 2 and done.facts["personal data"]["quotes not found"] == 1
    assert done.facts["personal data"]["changed"] == 2


def test_an_item_without_a_usable_answer_is_left_out_without_its_personal_data(tmp_path):
    made = built(tmp_path, ["read-exam(e.jsonl)", "deidentify(scripted)"], {"e.jsonl": EXAM}, ASKED[:1])
    [left] = made.rejected(2)
    assert (left.key, left.reason, left.item["text"]) == ("q1", "no usable answer", CLEAN)


def test_a_long_page_is_asked_about_in_pieces(tmp_path):
    page = "The toe hurts at night and in the morning.\n" * 200 + "Zyx Qwertz was seen."
    answers = [(["List the personal data", "Zyx"], {"found": [{"quote": "Zyx Qwertz", "kind": "name"}]})]
    answers += [(["List the personal data"], {"found": []})]
    made = built(tmp_path, ["read-text(p.txt)", "deidentify-pages(scripted)"], {"p.txt": page}, answers)
    [item] = made.items(2)
    assert item.text.endswith("[NAME-1] was seen.") and made.status()[1].cost.calls == 2


def test_quotes_are_whole_words_and_ages_are_high():
    text = "Al also met Al, aged 45 and 95, in Alabama."
    spans = quoted_spans(text, {"Al": "NAME", "aged 45": "AGE", "95": "AGE"})
    assert [(text[span.start : span.end], span.kind) for span in spans] == [
        ("Al", "NAME"),
        ("Al", "NAME"),
        ("95", "AGE"),
    ]
    assert [(span.start, span.end) for span in quoted_spans("患者王小明因发热入院", {"王小明": "NAME"})] == [(2, 5)]


def test_what_is_published_holds_no_text_from_before(tmp_path):
    posts = lines(
        {"id": "q1", "question": NOTE, "options": ["A", "B"], "answer": "A"},
        {"id": "q1", "question": NOTE, "options": ["A", "B"], "answer": "A"},
        {"id": "q3", "question": "MRN 482913 was seen on 3 May 2021.", "options": [], "answer": "B"},
    )
    steps = ["read-exam(e.jsonl)", "deidentify", "read-text(p.txt)", "deidentify-pages", "chunk"]
    steps += ["mine(committee=bm25)", "judge(untested=yes)"]
    plan = plan_file(
        tmp_path,
        steps,
        {"e.jsonl": posts, "p.txt": f"{NOTE} The gut is inflamed."},
        [(["evidence"], {"why": "It fits.", "relevance": 5, "support": 5})],
    )
    made = run_build(plan, tmp_path / "out", BuildPlan.read(plan).setup(store=Store(tmp_path / "store")))
    files = {path.name: path.read_text("utf-8") for path in made.dataset.iterdir()}
    assert "replaced-sample.csv" not in files
    for name, text in files.items():
        assert not [secret for secret in SECRETS[:2] if secret in text], name
    rejected = [json.loads(line) for line in files["rejected.jsonl"].splitlines()]
    assert (rejected[0]["key"], rejected[0]["reason"], rejected[0]["item"]) == ("q1", "repeated id", "{}")
    assert "[DATE-1]" in files["corpus.jsonl"]
    readme = files["README.md"]
    assert "| deidentify | 1 | names, addresses," in readme and "| deidentify-pages | 1 | names, addresses," in readme
    assert "replaced by placeholders" not in readme
