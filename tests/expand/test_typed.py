"""Flags about expansion: every method with every LLM, and no flag that changes nothing."""

import pytest

from r2med import UserError
from r2med.expand.typed import expansions


def typed(methods, llms=(), samples=1, **more):
    return [str(call) for call in expansions(methods, llms, samples, **more)]


@pytest.mark.parametrize(
    ("methods", "llms", "samples", "calls"),
    [
        (["hyde"], ["a"], 1, ["hyde(a)"]),
        (["hyde", "rm3", "lamer"], ["a", "b"], 1, ["hyde(a)", "hyde(b)", "rm3", "lamer(a)", "lamer(b)"]),
        (["hyde,lamer(rounds=2)"], ["a,b"], 1, ["hyde(a)", "hyde(b)", "lamer(a, rounds=2)", "lamer(b, rounds=2)"]),
        (["rm3(documents=3, terms=5)"], [], 1, ["rm3(documents=3, terms=5)"]),
        (["hyde(samples=2)"], ["org/x:free"], 1, ["hyde(org/x:free, samples=2)"]),
        (["hyde(query=keep)"], ["a"], 3, ["hyde(a, samples=3, query=keep)"]),
        (["hyde(a)"], [], 2, ["hyde(a, samples=2)"]),
        (["hyde(a)", "lamer"], ["b"], 1, ["hyde(a)", "lamer(b)"]),
        (["hyde"], ["a", "a"], 1, ["hyde(a)"]),
    ],
)
def test_methods_and_llms_become_calls(methods, llms, samples, calls):
    assert typed(methods, llms, samples) == calls


@pytest.mark.parametrize(
    ("methods", "llms", "samples", "says"),
    [
        (["hyde"], [], 1, "--expand hyde needs an LLM: --llm NAME"),
        (["hyd"], ["a"], 1, "no expansion 'hyd' (did you mean hyde?)"),
        (["hyd"], [], 1, "no expansion 'hyd' (did you mean hyde?)"),
        (["rm3"], ["a"], 1, "--llm a: --expand rm3 asks no LLM"),
        (["rm3", "rocchio"], [], 2, "--samples is for texts of an LLM, and rm3, rocchio asks none"),
        (["hyde(a)"], ["b"], 1, "--expand hyde(a) names its LLM already"),
        (["hyde(samples=2)"], ["a"], 3, "--samples 3 beside --expand hyde(samples=2)"),
        (["hyde+lamer"], ["a"], 1, "expansions are not fused"),
        (["hyde"], ["a(b)"], 1, "--llm 'a(b)'"),
        (["hyde"], ["a,"], 1, "--llm ''"),
    ],
)
def test_a_flag_that_cannot_be_followed_is_one_line(methods, llms, samples, says):
    with pytest.raises(UserError) as error:
        typed(methods, llms, samples)
    assert says in str(error.value)


def test_llms_that_a_later_stage_takes_are_no_mistake_beside_feedback():
    assert typed(["rm3"], ["a"], llms_used=True) == ["rm3"]
