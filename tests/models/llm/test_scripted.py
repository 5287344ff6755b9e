import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatRequest, Failure, Message
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import resolve_llm


def chat(folder, text):
    (folder / "answers.jsonl").write_text(text)
    runtime = Runtime(model_paths=(("author", folder / "answers.jsonl"),), store=Store(folder / "store"))
    return open_chat(resolve_llm("author", runtime.setup), runtime)


def ask(llm, *words):
    return llm.complete([ChatRequest((Message("system", "s"), Message("user", word))) for word in words])


def test_the_first_rule_whose_texts_all_occur_answers(tmp_path):
    rules = '{"when": ["cough", "fever"], "answer": "flu"}\n{"when": ["cough"], "answer": "cold"}\n'
    flu, cold, none = ask(chat(tmp_path, rules), "fever and cough", "a cough", "a limp")
    assert (flu.text, cold.text) == ("flu", "cold")
    assert isinstance(none, Failure)
    assert "answers.jsonl has no answer for a prompt that ends" in none.message


def test_a_changed_rule_is_used_immediately(tmp_path):
    assert ask(chat(tmp_path, '{"when": [], "answer": "one"}\n'), "x")[0].text == "one"
    assert ask(chat(tmp_path, '{"when": [], "answer": "two"}\n'), "x")[0].text == "two"


def test_a_script_that_cannot_be_read_gives_a_one_line_error(tmp_path):
    with pytest.raises(UserError, match=r"answers\.jsonl:1: missing field 'when'"):
        ask(chat(tmp_path, '{"answer": "x"}\n'), "x")
