"""Closed sets of words: what lists a set names every word of it, so that a new word cannot be forgotten.

Chains over a set end in `assert_never`, which the type checker reads. These tests hold what it cannot see: tables, and
help texts.
"""

import ast
import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import r2med

PACKAGE = Path(r2med.__file__).parent
BOARD = PACKAGE / "publication/site"
PARTIAL = {
    ("models/llm/cleaning.py", "_MARKS"): "a plain answer has no mark",
    ("assessment/audit/copies.py", "PARTS"): "equal and near copies are found by another check",
    ("systems/rerank/llm_reranker.py", "ABILITIES"): "a seed is only wished for",
}
"""Tables that leave words out on purpose, and why."""


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def literal_words(path, name):
    """Return the words of a Literal that a module defines or imports; empty if the name is no such set."""
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            if not isinstance(node.value, ast.Subscript) or getattr(node.value.value, "id", "") != "Literal":
                return set()
            inside = node.value.slice
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            plain = {part.value for part in parts if isinstance(part, ast.Constant)}
            return plain.union(*(literal_words(path, part.id) for part in parts if isinstance(part, ast.Name)))
    for node in ast.walk(parsed(path)):
        named = isinstance(node, ast.ImportFrom) and name in (alias.name for alias in node.names)
        if named and (node.module or "").startswith("r2med."):
            return literal_words(PACKAGE.parent / f"{node.module.replace('.', '/')}.py", name)
    return set()


def tables():
    """Return (file, name, words of the table, words of the set) for each table with a closed set as keys."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if not re.search(r"^\w+: (Mapping|dict)\[", path.read_text(encoding="utf-8"), re.MULTILINE):
            continue  # to parse every file takes seconds
        for node in parsed(path).body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.value, ast.Dict):
                continue
            kind = node.annotation
            if not isinstance(kind, ast.Subscript) or getattr(kind.value, "id", "") not in ("Mapping", "dict"):
                continue
            keys = kind.slice.elts[0]
            words = literal_words(path, keys.id) if isinstance(keys, ast.Name) else set()
            if words and all(isinstance(key, ast.Constant) for key in node.value.keys):
                named = {key.value for key in node.value.keys}
                found.append((path.relative_to(PACKAGE).as_posix(), node.target.id, named, words))
    return found


def test_a_table_with_a_closed_set_as_keys_has_a_row_for_every_word():
    found = tables()
    assert len(found) > 15
    assert {(file, name) for file, name, named, words in found if named != words} == set(PARTIAL)


def test_every_form_of_an_llm_reranker_has_a_class_with_its_orders_and_every_kind_of_answer_a_form():
    from r2med.foundation.core.names import BUILT_IN_STAGES
    from r2med.systems.rerank.llm_reranker import LLMRerankerStage
    from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS, Answer

    forms = {name: resolve_name(path) for name, path in BUILT_IN_STAGES["rerank"].forms.items()}
    assert set(forms) <= set(LLM_RERANKERS), "the card of a form has its name"
    for form in forms.values():
        assert form.orders is not LLMRerankerStage.orders
    assert {answer for form in forms.values() for answer in form.answers} == set(get_args(Answer))


def test_every_rerank_api_of_own_servers_has_a_prefix():
    from r2med.foundation.core.names import BUILT_IN_STAGES
    from r2med.models.crossencoders.rerank_apis import own_servers
    from r2med.public.stage_help import FORMS

    served = {f"{name}:" for name in own_servers()}
    assert served <= set(BUILT_IN_STAGES["rerank"].prefixes)
    assert served <= set(FORMS)


def test_every_measure_from_qrels_is_computed_recorded_and_known_to_the_board():
    from r2med.evaluation.measure.measures import DEFAULT_MEASURES, FAMILIES
    from r2med.evaluation.measure.scores import _COMPUTE

    script = (BOARD / "assets/measure.js").read_text(encoding="utf-8")
    assert set(_COMPUTE) == set(FAMILIES) == {measure.family for measure in DEFAULT_MEASURES}
    assert set(re.findall(r"^    (\w+): \(ranks", script, re.MULTILINE)) == set(FAMILIES)


def test_the_board_knows_every_condition_and_status_of_answers():
    from r2med.evaluation.records.answer_words import AnswerStatus, Condition
    from r2med.publication.site.answer_labels import ABOUT_CONDITION, ABOUT_STATUS, READ_IN

    types = (BOARD / "data_files.d.ts").read_text(encoding="utf-8")
    assert quoted(re.search(r"type AnswerCondition = (.*);", types)[1]) == set(get_args(Condition))
    assert quoted(re.search(r"type AnswerStatus = (.*);", types)[1]) == set(get_args(AnswerStatus))
    assert set(READ_IN) == set(ABOUT_CONDITION) == set(get_args(Condition))
    assert set(ABOUT_STATUS) == set(get_args(AnswerStatus))


def test_the_board_has_a_title_for_every_kind_of_slices():
    from r2med.evaluation.measure.slices import KINDS
    from r2med.publication.site.system_pages import SLICE_TITLES

    assert tuple(SLICE_TITLES) == KINDS


def test_every_setting_of_runs_with_a_panel_is_a_flag_of_a_command():
    import typer

    from r2med.cli.app import app
    from r2med.foundation.runtime.setup import Setup, flag_of

    commands = [typer.main.get_command(app)]
    flags = set()
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        flags |= {parameter.name for parameter in command.params}
    assert {name for name in Setup.model_fields if flag_of(name).panel} <= flags


def quoted(text):
    """Return the words in double quotes."""
    return set(re.findall(r'"([^"]*)"', text))


def helped(command, option):
    """Return the help text of an option of a command."""
    import typer

    from r2med.cli.app import app

    found = typer.main.get_command(app)
    for name in command.split():
        found = found.commands[name]
    return next(each for each in found.params if option in (*each.opts, each.name)).help


def choices():
    from r2med.assessment.review.kinds import KINDS as REVIEWED
    from r2med.assessment.training.training_formats import FORMATS
    from r2med.evaluation.measure.slices import KINDS as SLICES
    from r2med.evaluation.records.answer_words import CONDITIONS
    from r2med.foundation.core.names import files_of
    from r2med.public.catalogue import MEANING
    from r2med.publication.bridges.data_export import FORMS

    return {
        ("answer", "--condition"): CONDITIONS,
        ("compare", "--condition"): CONDITIONS,
        ("compare", "--slice"): SLICES,
        ("data export", "--format"): FORMS,
        ("data training", "--format"): FORMATS,
        ("list", "kind"): MEANING,
        ("review serve", "--kind"): REVIEWED,
        ("run", "--suite"): files_of("suites"),
    }


def test_the_help_of_an_option_names_every_choice():
    for (command, option), words in choices().items():
        text = helped(command, option)
        assert not [word for word in words if word not in text], (command, option)
