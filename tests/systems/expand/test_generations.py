"""Files of generated texts: names of LLMs as folders, readable, safe, and no two alike."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from r2med import UserError
from r2med.systems.expand.generations import folder_name, llm_name


@pytest.mark.parametrize(
    ("llm", "folder"),
    [
        ("o3-mini", "o3-mini"),
        ("o3_mini", "o3_mini"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama--Llama-3.1-8B-Instruct"),
        ("qwen2.5:7b", "qwen2.5++7b"),
        ("deepseek/deepseek-r1:free", "deepseek--deepseek-r1++free"),
        ("/models/x.gguf", "+2Fmodels--x.gguf"),
        ("..", "+2E."),
    ],
)
def test_usual_names_stay_readable(llm, folder):
    assert folder_name(llm) == folder


NAMES = st.text(st.sampled_from("ab-/:+_.2é@ "), min_size=1, max_size=8).filter(str.strip)


@given(NAMES)
@example("a-/b")
@example("a/-b")
@example("a--b")
@example("a+2Db")
def test_every_name_has_a_folder_of_its_own_that_tells_it(name):
    folder = folder_name(name)
    assert llm_name(folder) == name
    assert folder.replace("+", "").replace("-", "").replace("_", "").replace(".", "").isalnum()
    assert folder[0] not in ".-"


def test_names_that_differ_in_a_mark_do_not_share_a_folder():
    names = ["a/b", "a-b", "a:b", "a--b", "a_b", "a b", "a+b", "a++b", "a/-b", "a-/b"]
    assert len({folder_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m"])
def test_what_is_no_name_is_one_line(name):
    with pytest.raises(UserError, match="is not a name of a model"):
        folder_name(name)
