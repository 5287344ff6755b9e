"""Prompts: found, overridden, checked and filled; and nothing of the gold data can get into one."""

import itertools

import pytest

from r2med import UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query, names
from r2med.data.dataset_cards import cards
from r2med.foundation.store import Store
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.templates import Template, Templates, kind_of
from r2med.systems.expand.generate import Generated
from r2med.systems.expand.method_cards import METHODS, REFINE_FIELDS
from r2med.systems.expand.text_writer import open_prompts as open_prompts_of
from support.ready import Ready, ScriptedRuntime
from support.scripted_chat import ScriptedChat

KINDS = ("post", "exam", "case", "similar-case")
CARD = LLMCard(name="scripted", model="test/scripted")
GENERATED = ("hyde", "query2doc", "lamer")


def open_prompts(method, kind, folder=None, **more):
    return open_prompts_of(METHODS[method], kind, folder, **more)


def asked(method, llm=None, prompts=None, **settings):
    llm = llm or ScriptedChat(lambda request: "x")
    runtime = ScriptedRuntime(llm, CARD, prompts, base_url="http://127.0.0.1:9/v1")
    return Ready(Generated(name=method, llm=llm.name, **settings), runtime)


def test_every_dataset_s_kind_has_templates_of_every_method():
    assert {card.kind.replace(" ", "-") for card in cards().values() if card.kind} == set(KINDS)
    for method, kind in itertools.product(GENERATED, KINDS):
        prompts = open_prompts(method, kind, refine=True)
        assert all(prompts.ask.names(field) for field in METHODS[method].fields)
        assert all(prompts.refine.names(field) for field in REFINE_FIELDS)


def test_a_template_without_declared_fields_is_refused_in_one_line(tmp_path):
    (tmp_path / "mine.txt").write_text("{query}")
    templates = Templates({"mine": tmp_path / "mine.txt"})
    with pytest.raises(UserError) as error:
        templates.template("mine")
    expected = "no fields are declared for the template mine.txt: add prompt_fields to the class of mine"
    assert str(error.value) == expected
    assert templates.template("mine", fields=("query",)).names("query")


def test_a_dataset_without_a_card_counts_as_a_case():
    assert kind_of(Dataset("own", (), Corpus.of([]), Qrels({}))) == "case"
    assert kind_of(load("demo/PMC-Clinical")) == "similar-case"


def test_braces_in_what_is_filled_in_are_left_alone():
    template = Template("t", 'Q: {query} / {draft} / {"json": 1}')
    values = {"query": "awk '{print $1}' {draft} {answer} \\1", "draft": "{query}"}
    assert template.render(values) == "Q: awk '{print $1}' {draft} {answer} \\1 / {query} / {\"json\": 1}"


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("hyde.case.txt", "{query} {answer}", "unknown field {answer}: fields of a hyde template: {query}"),
        ("hyde.case.txt", "{query} {passages}", "unknown field {passages}"),
        ("hyde.case.txt", "{querry}", "unknown field {querry} (did you mean query?)"),
        ("hyde.case.txt", "Write something.", "does not name {query}"),
        ("system.txt", "You know {query}.", "unknown field {query}: fields of a system template: none"),
        ("hdye.case.txt", "{query}", "no template has this name (did you mean hyde.case?)"),
        ("hyde.case.txt", b"\xff{query}", "must be UTF-8"),
        ("hyde.case.txt", "{query} {query.answer}", "{query.answer} is not a field"),
        ("hyde.case.txt", "{query} {answer.text}", "{answer.text} is not a field"),
        ("hyde.case.txt", "{query} {query[0]}", "{query[0]} is not a field"),
        ("hyde.case.txt", "{query} {query!r}", "{query!r} is not a field"),
        ("hyde.case.txt", "{query} {query:>5}", "{query:>5} is not a field"),
        ("hyde.case.txt", "{query} { query }", "{ query } is not a field"),
        ("hyde.case.txt", "{query} {{query}}", "{{query}} has double braces"),
        ("hyde.case.txt", '{query} {{"a": 1}}', "has double braces"),
        # Whatever is asked for, the names of all of a user's files are looked at.
        ("hyde.exma.txt", "{query}", "no dataset has the kind 'exma' (did you mean exam?)"),
        ("examples.cas.txt", "Case:", "no dataset has the kind 'cas' (did you mean case?)"),
        ("refines.txt", "{query}", "no template has this name"),
        ("system.case.txt", "You know.", "no template has this name (did you mean"),
        ("hyde.case.md", "{query}", "ends in .txt"),
        ("hyde.case", "{query}", "ends in .txt"),
    ],
)
def test_a_template_that_cannot_be_used_is_one_line_with_its_file(tmp_path, file, text, says):
    (tmp_path / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as error:
        open_prompts("hyde", "case", tmp_path)
    assert str(tmp_path / file) in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": {"b": [1]}}', '{"asked": {query}}', "{key: a value}", "{}", "{1}"])
def test_braces_that_are_no_fields_may_stand_in_a_template(tmp_path, text):
    (tmp_path / "hyde.case.txt").write_text(f"{{query}} {text}")
    assert open_prompts("hyde", "case", tmp_path).ask.render({"query": "q"}) == f"q {text.replace('{query}', 'q')}"


def test_the_mark_that_some_editors_put_before_a_text_is_not_shown_to_the_model(tmp_path):
    (tmp_path / "hyde.case.txt").write_text("Mine: {query}", encoding="utf-8-sig")
    assert open_prompts("hyde", "case", tmp_path).ask.text == "Mine: {query}"


def test_a_kind_of_one_s_own_is_welcome_where_a_dataset_has_it(tmp_path):
    (tmp_path / "hyde.news.txt").write_text("News: {query}")
    news = Dataset("own", (), Corpus.of([]), Qrels({}), cards()["Biology"].model_copy(update={"kind": "news"}))
    expander = asked("hyde", prompts=tmp_path)
    expander.check([news, load("demo/Biology")])
    with pytest.raises(
        UserError, match=r"hyde\.news\.txt: no dataset has the kind 'news': case, exam, post, similar-case"
    ):
        expander.check([load("demo/Biology")])
    assert open_prompts("hyde", "post", tmp_path).ask == open_prompts("hyde", "post").ask  # others may be to come


@pytest.mark.parametrize(
    ("file", "text", "method", "rounds"),
    [
        ("hyde.similar-case.txt", "{query} {answer}", "hyde", 0),
        ("refine.exam.txt", "{draft}", "hyde", 1),
        ("system.txt", "{query}", "lamer", 0),
    ],
)
def test_what_any_dataset_needs_is_checked_before_the_first_is_asked_about(tmp_path, file, text, method, rounds):
    (tmp_path / file).write_text(text)
    llm = ScriptedChat(lambda request: "x")
    expander = asked(method, llm, tmp_path, rounds=rounds)
    with pytest.raises(UserError, match=file):
        expander.check([load(name) for name in names("demo")])
    assert not llm.asked


def test_a_kind_that_nobody_wrote_a_template_for_is_told_before_anything_is_asked():
    news = Dataset("own", (), Corpus.of([]), Qrels({}), cards()["Biology"].model_copy(update={"kind": "news"}))
    with pytest.raises(UserError, match=r"no template hyde\.news\.txt"):
        asked("hyde").check([load("demo/Biology"), news])


def test_an_empty_system_prompt_is_left_out(tmp_path):
    (tmp_path / "system.txt").write_text("")
    llm = ScriptedChat(lambda request: "x")
    asked("hyde", llm, tmp_path).expand(load("demo/Biology"), Store(tmp_path / "store"))
    assert [message.role for message in llm.asked[0].messages] == ["user"]


def test_a_folder_without_templates_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        open_prompts("hyde", "case", tmp_path / "nowhere")
    with pytest.raises(UserError, match="it has no templates"):
        open_prompts("hyde", "case", tmp_path)


def test_a_kind_without_a_template_is_one_line():
    with pytest.raises(UserError, match=r"no template hyde\.cases\.txt \(did you mean hyde\.case\?\)"):
        open_prompts("hyde", "cases")


def test_one_s_own_template_goes_before_ours_and_changes_the_hash(tmp_path):
    (tmp_path / "hyde.case.txt").write_text("Mine: {query}")
    ours, mine = open_prompts("hyde", "case"), open_prompts("hyde", "case", tmp_path)
    assert mine.ask.render({"query": "x"}) == "Mine: x"
    assert mine.system == ours.system
    assert mine.digest != ours.digest
    assert open_prompts("hyde", "post", tmp_path).digest == open_prompts("hyde", "post").digest


def test_a_plugin_s_folder_may_bring_templates_too(tmp_path, monkeypatch):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/hyde.news.txt").write_text("News: {query}")
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    assert open_prompts("hyde", "news").ask.text == "News: {query}"


def test_the_worked_examples_are_two_a_kind_and_none_of_the_demo_s_queries():
    words = {name: [query.text for query in load(name).queries] for name in names("demo")}
    for kind in KINDS:
        examples = open_prompts("query2doc", kind).examples
        asked = {"post": "Post:", "exam": "Question:", "case": "Case:", "similar-case": "Patient:"}[kind]
        assert examples.count(f"{asked}\n") == 2
        shingles = _shingles(examples)
        for name, texts in words.items():
            for text in texts:
                assert len(shingles & _shingles(text)) <= 2, (kind, name, text[:60])


def _shingles(text, size=6):
    words = text.lower().split()
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


@pytest.mark.parametrize(("method", "kind"), [*itertools.product(GENERATED, KINDS)])
def test_no_prompt_contains_relevance_judgments(tmp_path, method, kind):
    """Every field of the data but the query's text is marked; LameR and the rounds may show what a search found."""
    marked = Query("GOLDID", "swollen face", "GOLDANSWER", "GOLDSYSTEM", ("GOLDEXCLUDED",))
    documents = [
        ("GOLDDOC", "GOLDTEXT angioedema"),
        ("GOLDEXCLUDED", "swollen face GOLDSOURCE"),
        ("d", "a swollen knee"),
    ]
    card = cards()["MedQA-Diag"].model_copy(update={"kind": kind.replace("-", " ")})
    dataset = Dataset("GOLDNAME", (marked,), Corpus.of(documents), Qrels({"GOLDID": {"GOLDDOC": 1}}), card)
    llm = ScriptedChat(lambda request: "a knee was swollen")
    asked(method, llm, samples=2, rounds=2).expand(dataset, Store(tmp_path))
    assert len(llm.asked) == 6
    for request in llm.asked:
        for message in request.messages:
            assert "GOLD" not in message.content
    assert all("swollen face" in prompt for prompt in llm.prompts)
    assert ("a swollen knee" in llm.prompts[0]) == (method == "lamer")
    assert "a swollen knee" in llm.prompts[-1]
