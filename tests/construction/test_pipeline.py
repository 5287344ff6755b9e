import json
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from r2med.construction.build_plan import BuildPlan
from r2med.construction.pipeline import BuildFolder, drawn
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import listening
from r2med.foundation.store import Store
from r2med.models.llm.journal import answers_by_model
from support import chat_server as api
from support.builds import built, lines, plan_file
from support.by_day import some_by_day
from support.faults import signal_at
from support.processes import PATIENCE, started, wait_for

EXAM = lines(
    *(
        {"id": f"q{number}", "question": f"Case {number}.", "options": ["Flu", "Gout"], "answer": "Flu"}
        for number in range(12)
    )
)
KIND = {"kind": "DIA", "answer_kind": "disease"}
ANSWERS = [
    (["Case 3.", "EXM"], {"kind": "none", "answer_kind": ""}),
    (["EXM"], KIND),
    (["path of reasoning"], {"reasoning": "Because."}),
    (["body system"], {"body_system": "Nervous"}),
]
STEPS = ["read-exam(e.jsonl)", "label-kind", "label-body-system", "reason"]


def contents(out: Path) -> dict[str, bytes]:
    """Return what is in a folder, file by file."""
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}


def again(folder: Path) -> list[bool]:
    """Build once more, and return which steps used what was there."""
    plan = BuildPlan.read(folder / "plan.toml")
    return [step.reused for step in BuildFolder(plan, folder / "out").run(plan.setup(store=Store(folder / "store")))]


def test_a_folder_or_a_misspelled_file_in_place_of_a_plan_gets_the_right_path(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("")
    for typed in (tmp_path, tmp_path / "pln.toml"):
        with pytest.raises(UserError, match=rf"no plan {typed} \(did you mean {tmp_path / 'plan.toml'}\?\)"):
            BuildPlan.read(typed)


def test_two_builds_of_one_plan_write_the_same_bytes(tmp_path):
    first, second = (built(tmp_path / name, STEPS, {"e.jsonl": EXAM}, ANSWERS) for name in ("one", "two"))
    assert contents(first.out) == contents(second.out)
    assert [done.kept for done in first.status()] == [12, 11, 11, 11]
    assert first.status()[1].rejected == {"Other Kind": 1}


def test_only_the_owner_can_read_the_folders_of_a_build(tmp_path):
    out = built(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS).out
    assert {folder.stat().st_mode & 0o777 for folder in (out, *(out / "steps").iterdir())} == {0o700}


def test_what_was_built_is_used_again(tmp_path):
    built(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS)
    assert again(tmp_path) == [True] * 4


def test_an_llm_without_a_key_leaves_a_finished_build_as_it_is(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    before = contents(built(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS).out)
    plan = BuildPlan.read(tmp_path / "plan.toml")
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        BuildFolder(plan, tmp_path / "out").run(plan.setup(store=Store(tmp_path / "store"), llm="gpt4"))
    assert contents(tmp_path / "out") == before


def test_a_changed_prompt_repeats_its_step_and_what_depends_on_it(tmp_path):
    steps = [*STEPS[:2], "label-body-system(prompts=mine)", "read-table(t.csv)", "reason"]
    sources = {"e.jsonl": EXAM, "t.csv": "question,answer\nCase T?,Flu\n"}
    (tmp_path / "mine").mkdir()
    prompt = tmp_path / "mine" / "label-body-system.txt"
    prompt.write_text("The body system of {text}? {systems}")
    built(tmp_path, steps, sources, ANSWERS)
    assert again(tmp_path) == [True] * 5
    prompt.write_text("Which body system is {text} about? {systems}")
    assert again(tmp_path) == [True, True, False, False, False]
    prompt.write_text("body system {txt}")
    with pytest.raises(UserError, match=r"body-system\.txt: unknown field \{txt\}; known fields: \{text\}, \{answer\}"):
        again(tmp_path)


def test_a_changed_source_repeats_what_reads_its_stream_only(tmp_path):
    steps = ["read-case-pages(c.jsonl)", "read-exam(e.jsonl)", "label-kind", "chunk"]
    cases = lines(*({"id": f"c{number}", "text": "A case.", "diagnosis": "Flu"} for number in range(3)))
    built(tmp_path, steps, {"e.jsonl": EXAM, "c.jsonl": cases}, ANSWERS)
    (tmp_path / "e.jsonl").write_text(EXAM.replace("Gout", "Mumps"))
    assert again(tmp_path) == [True, False, False, True]


def test_steps_that_moved_within_the_plan_are_known_again(tmp_path):
    built(tmp_path, ["read-exam(e.jsonl)", "label-kind", "reason"], {"e.jsonl": EXAM}, ANSWERS)
    cases = lines(*({"id": f"c{number}", "text": "A case.", "diagnosis": "Flu"} for number in range(3)))
    plan_file(tmp_path, ["read-case-pages(c.jsonl)", *STEPS[:2], "reason"], {"c.jsonl": cases}, ANSWERS)
    assert again(tmp_path) == [False, True, True, True]
    assert sorted(folder.name for folder in (tmp_path / "out/steps").iterdir()) == [
        "01-read-case-pages",
        "02-read-exam",
        "03-label-kind",
        "04-reason",
    ]


@pytest.mark.parametrize("write", some_by_day([5, 2, 9], 3))
def test_a_build_that_is_killed_ends_as_if_it_had_not_been(tmp_path, r2med, write):
    whole = built(tmp_path / "whole", STEPS, {"e.jsonl": EXAM}, ANSWERS)
    plan = plan_file(tmp_path / "killed", STEPS, {"e.jsonl": EXAM}, ANSWERS)
    out = tmp_path / "killed/out"
    killed = r2med("build", "run", plan, "-o", out, fault=signal_at(write, signal.SIGKILL, out))
    assert killed.returncode == -signal.SIGKILL
    assert r2med("build", "run", plan, "-o", out).returncode == 0
    assert contents(out) == contents(whole.out)


@pytest.mark.slow
def test_a_killed_build_goes_on_at_the_record(tmp_path, chat_server, home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    plan = plan_file(tmp_path, STEPS[:2], {"e.jsonl": EXAM})
    begun = 0

    async def answer_four(exchange):
        nonlocal begun
        begun += 1
        await (api.answer(json.dumps(KIND)) if begun <= 4 else api.hang)(exchange)

    def stalled():
        """Return True if the server hangs, and all that it answered is in the journal: the kill can take nothing."""
        kept = sum(len(keys) for keys in answers_by_model(Store(home)).values())
        return kept == 4 and chat_server.at_once == 2

    chat_server.otherwise = answer_four
    words = [
        "-m",
        "r2med",
        "build",
        "run",
        plan,
        "-o",
        tmp_path / "out",
        "--llm",
        "any",
        "--base-url",
        chat_server.address,
    ]
    with started([*words, "--concurrency", "2"]) as first:
        wait_for(stalled)
        first.kill()
        first.communicate(timeout=PATIENCE)
    assert len(chat_server.served) == 4
    chat_server.otherwise = api.answer(json.dumps(KIND))
    with started(words) as second:
        _, errors = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, errors
    assert len(chat_server.served) == 12 and set(chat_server.served.values()) == {1}


def test_what_the_network_refused_is_asked_for_the_next_time(tmp_path, chat_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat_server.otherwise = api.answer(json.dumps(KIND))
    chat_server.script = [api.refuse(500)]
    steps = [STEPS[0], "label-kind(tries=1)"]
    made = BuildFolder(BuildPlan.read(plan_file(tmp_path, steps, {"e.jsonl": EXAM})), tmp_path / "out")
    settings = {"base_url": chat_server.address, "concurrency": 1, "store": Store(tmp_path / "store")}
    first = made.run(made.plan.setup("any", attempts=1, **settings))
    assert first[1].failures == {"server": 1}
    assert first[1].kept == 11
    second = made.run(made.plan.setup("any", **settings))
    assert [done.reused for done in second] == [True, False]
    assert second[1].kept == 12
    assert not second[1].failures


def test_a_budget_that_is_used_up_stops_the_build_and_what_was_paid_for_is_kept(tmp_path, chat_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat_server.otherwise = api.answer(json.dumps(KIND))
    made = BuildFolder(BuildPlan.read(plan_file(tmp_path, STEPS, {"e.jsonl": EXAM})), tmp_path / "out")
    settings = {"base_url": chat_server.address, "store": Store(tmp_path / "store")}
    with pytest.raises(UserError, match="the budget of"):
        made.run(made.plan.setup("gpt4", budget=0, **settings))
    assert [done is not None for done in made.status()] == [True, True, False, False]
    assert made.run(made.plan.setup("gpt4", **settings))[1].kept == 12


def test_a_plan_asks_nothing_and_counts_what_every_step_would(tmp_path):
    plan = BuildPlan.read(plan_file(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS))
    made = BuildFolder(plan, tmp_path / "out")
    setup = plan.setup(store=Store(tmp_path / "store"))
    counts = [(step.name, needs and needs.calls) for step, needs in made.calls(setup)]
    assert counts == [("read-exam", 0), ("label-kind", 12), ("label-body-system", 12), ("reason", 12)]
    assert not made.out.exists()
    made.run(setup)
    assert [needs and (needs.calls, needs.note) for _, needs in made.calls(setup)] == [(0, "built")] * 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name = "x"\nsteps = ["read-exm(e.jsonl)"]', r"no step of a build 'read-exm' \(did you mean read-exam\?\)"),
        ('name = "x"\nsteps = ["read-exam"]', "read-exam needs a file"),
        ('name = "x"\nsteps = ["reason(trys=3)"]', r"reason has no setting 'trys' \(did you mean tries\?\)"),
        ('name = "x"\nsteps = []', r"a plan needs steps = \["),
        ("", "a plan needs name = "),
        ('name = "a/b"\nsteps = ["reason"]', "name: "),
        (
            'name = "x"\nkind = "exma"\nsteps = ["reason"]',
            r"no kind 'exma' \(did you mean exam\?\): case, exam, post, sim",
        ),
        ('name = "steps"\nsteps = ["reason"]', "every build has a file or folder 'steps'"),
        ("steps = [", "not a TOML"),
    ],
)
def test_a_plan_that_cannot_be_read_is_one_line(tmp_path, text, why):
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(UserError, match=why):
        BuildPlan.read(tmp_path / "plan.toml")


def test_two_sources_with_one_id_are_refused_unless_one_has_a_prefix(tmp_path):
    other = EXAM.replace("Case ", "Another case ")
    sources = {"e.jsonl": EXAM, "f.jsonl": other}
    with pytest.raises(
        UserError, match=r"read-exam\(f\.jsonl\): the id 'q0' .* from e\.jsonl:1: .*f\.jsonl, prefix=b-\)"
    ):
        built(tmp_path, ["read-exam(e.jsonl)", "read-exam(f.jsonl)"], sources)
    made = built(tmp_path, ["read-exam(e.jsonl)", "read-exam(f.jsonl, prefix=b-)"], sources)
    assert len({question.id for question in made.streams().questions()}) == 24
    books = {name: lines({"id": "1", "title": name, "text": f"Text of {name}."}) for name in ("a.jsonl", "b.jsonl")}
    with pytest.raises(UserError, match="the id '1' already belongs to another item"):
        built(tmp_path / "pages", ["read-textbook(a.jsonl)", "read-textbook(b.jsonl)", "chunk"], books)
    steps = ["read-textbook(a.jsonl)", "read-textbook(b.jsonl, prefix=b-)", "chunk"]
    assert [done.kept for done in built(tmp_path / "pages", steps, books).status()] == [1, 1, 2]


def test_a_prefix_of_cases_reaches_the_positives_that_are_named_by_id(tmp_path):
    cases = lines(*({"id": f"c{number}", "text": f"Case {number}.", "diagnosis": "Flu"} for number in range(3)))
    steps = ["read-cases(c.jsonl, prefix=w-)", "read-case-pages(c.jsonl, prefix=w-)", "chunk"]
    made = built(tmp_path, steps, {"c.jsonl": cases})
    (question,) = made.streams().questions()
    assert question.positives == ("w-c1", "w-c2")
    assert [chunk.page for chunk in made.streams().chunks()] == ["w-c1", "w-c2"]


def test_a_question_that_repeats_another_is_left_out_with_its_id(tmp_path):
    rows = [{"id": "a", "question": "Which disease?", "options": ["Flu", "Gout"], "answer": "Flu"}]
    rows.append({**rows[0], "id": "b", "question": "which  DISEASE?"})
    rows.append({**rows[0], "id": "c", "answer": "Gout"})
    made = built(
        tmp_path,
        ["read-exam(e.jsonl)", "read-exam(f.jsonl)"],
        {"e.jsonl": lines(*rows[:2]), "f.jsonl": lines(*rows[2:], {**rows[0], "id": "d"})},
    )
    assert [question.id for question in made.streams().questions()] == ["a", "c"]
    assert [(each.key, each.reason, each.note) for number in (1, 2) for each in made.rejected(number)] == [
        ("b", "repeated question", "of a"),
        ("d", "repeated question", "of a"),
    ]


def test_progress_counts_all_items_of_a_step_and_goes_only_forward(tmp_path, monkeypatch):
    monkeypatch.setattr("r2med.construction.steps.asking.ITEMS_PER_BLOCK", 5)
    monkeypatch.setattr("r2med.construction.steps.easy_questions.ITEMS_PER_BLOCK", 5)
    answers = [(["Case 3.", "EXM"], "No JSON."), (["Case 7.", "EXM"], "No JSON."), *ANSWERS, ([], {"answer": "B"})]
    for step, total in (("label-kind", 12), ("drop-easy(llms=scripted)", 12)):
        reports = []
        with listening(reports.append):
            built(tmp_path / step[:5], ["read-exam(e.jsonl)", step], {"e.jsonl": EXAM}, answers)
        assert {report.total for report in reports} == {total}
        done = [report.done for report in reports]
        assert done == sorted(done)
        assert done[-1] in (total, total - 1)


def test_ids_that_one_source_repeats_are_told(tmp_path, caplog):
    twice = lines({"id": "1", "text": "One."}, {"id": "1", "text": "Two."})
    built(tmp_path, ["read-textbook(a.jsonl)"], {"a.jsonl": twice})
    assert "items left out because of a repeated id: 1" in caplog.text


@pytest.mark.parametrize("damage", [lambda text: text.replace("Case 5.", "Case V."), lambda text: text[:100], None])
def test_a_step_file_that_was_changed_is_reported_and_made_again(tmp_path, caplog, damage):
    made = built(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS)
    before = contents(made.out)
    file = made.folder(2) / "items.jsonl"
    if damage:
        file.write_text(damage(file.read_text()))
    else:
        file.unlink()
    assert again(tmp_path) == [True, False, True, True]
    (line,) = caplog.messages
    assert line == f"{file} was changed after its step wrote it: step 2, label-kind, is run again"
    assert contents(made.out) == before


def test_a_damaged_step_file_is_one_line_wherever_it_is_read(tmp_path, r2med):
    made = built(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS)
    file = made.folder(4) / "items.jsonl"
    file.write_text(file.read_text()[:-20])
    shown = r2med("build", "show", made.out, "-n", "5")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert (
        f"{file}, line 11, was changed after its step wrote it: r2med build run PLAN.toml -o {made.out}" in shown.stderr
    )


@pytest.mark.parametrize("name", ["/etc/passwd", "../e.jsonl", "sub/../../e.jsonl", "~/e.jsonl"])
def test_a_plan_reads_only_what_lies_beside_it(tmp_path, name):
    plan_file(tmp_path, STEPS, {"e.jsonl": EXAM})
    with pytest.raises(UserError, match="is not beside the plan: put it, or a link to it, into"):
        built(tmp_path / "plan", [f"read-exam({name})"])
    plan = plan_file(tmp_path / "plan", ["read-exam(e.jsonl)"])
    plan.write_text(plan.read_text().replace("answers.jsonl", name))
    with pytest.raises(UserError, match="is not beside the plan"):
        BuildPlan.read(plan).setup()


def test_an_item_is_traced_through_the_steps(tmp_path):
    made = built(tmp_path, STEPS, {"e.jsonl": EXAM}, ANSWERS)
    assert [(number, title) for number, _, (title, _) in made.trace("q3")] == [
        (1, "q3"),
        (2, "q3: left out, Other Kind (none)"),
    ]
    assert len(made.trace("q4")) == 4


def test_a_sample_is_uniform_and_in_order():
    draws = [drawn(range(20), 5, seed) for seed in range(400)]
    assert all(len(set(draw)) == 5 and draw == sorted(draw) for draw in draws)
    times = [sum(number in draw for draw in draws) for number in range(20)]
    assert min(times) > 50 and max(times) < 160
    assert drawn(range(3), 5, 0) == [0, 1, 2]


def test_it_is_said_before_texts_are_sent_to_others(tmp_path, chat_server, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    table = "question,answer\nMr. Jones was seen on 3 May 2021?,Flu\nA man coughs?,Flu\n"
    made = BuildFolder(
        BuildPlan.read(plan_file(tmp_path, ["read-table(t.csv)", "reason"], {"t.csv": table})), tmp_path / "out"
    )
    settings = {"store": Store(tmp_path / "store"), "attempts": 1, "deadline": 1}
    with suppress(UserError):  # nobody is at this address
        made.run(made.plan.setup("any", base_url="https://192.0.2.1/v1", **settings))
    assert caplog.text.count("texts are sent to any at 192.0.2.1, on another machine") == 1
    assert "Jones" not in caplog.text
    caplog.clear()
    chat_server.otherwise = api.answer('{"reasoning": "x"}')
    made.run(made.plan.setup("any", base_url=chat_server.address, **settings))
    assert "texts are sent" not in caplog.text


def test_a_step_without_an_llm_says_where_to_name_one(tmp_path):
    file = plan_file(tmp_path, STEPS[:2], {"e.jsonl": EXAM})
    file.write_text(f'name = "x"\nsteps = {json.dumps(STEPS[:2])}\n')
    plan = BuildPlan.read(file)
    with pytest.raises(UserError, match=r"label-kind asks an LLM: name one with llm \(--llm NAME\)"):
        BuildFolder(plan, tmp_path / "out").run(plan.setup())


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (
            ["chunk", "read-text(p.txt)"],
            "chunk needs pages, and no step before it writes any; move read-text before it",
        ),
        (
            ["read-text(p.txt)", "chunk", "read-text(q.txt)"],
            "read-text reads pages after chunk, which would not see them",
        ),
        (
            ["read-text(p.txt)", "drop-duplicates"],
            "drop-duplicates needs chunks, and no step before it writes any; add a",
        ),
    ],
)
def test_steps_in_a_wrong_order_are_one_line(tmp_path, steps, why):
    with pytest.raises(UserError) as error:
        BuildPlan.read(plan_file(tmp_path, steps))
    assert why in str(error.value) and "\n" not in str(error.value)


def test_the_same_step_twice_in_a_plan_is_built_twice(tmp_path):
    sources = {"p.txt": "Fever. Rash. Cough."}
    steps = ["read-text(p.txt)", "chunk", "chunk"]
    for _ in range(2):
        build = built(tmp_path, steps, sources)
        assert [done.kept for done in build.status()] == [1, 1, 1]
        assert [chunk.text for chunk in build.items(2)] == [chunk.text for chunk in build.items(3)]
