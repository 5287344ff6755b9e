"""`r2med generate`, `--plan` and the flags of expansion, as typed: against an endpoint on loopback."""

import json

import pytest

from support.chat_server import answer, refuse, serve
from support.facts import some_states, states

OFFENDED = '{"error": {"message": "the prompt offends a policy"}}'
HYDE = ("generate", "hyde", "--llm", "org/m:free")
BIOLOGY = ("--data", "demo/Biology")
TEXTS = "demo/Biology/hyde/org--m++free/query_with_hydoc.jsonl"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def assert_one_line(done, *facts):
    assert done.returncode == 2, done
    states(done.messages[-1], *facts)
    assert "Traceback" not in done.stderr


def lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_texts_of_an_llm_with_a_slash_in_its_name_are_written_and_searched_without_it(chat_server, tmp_path, r2med):
    done = r2med(*HYDE, "--base-url", chat_server.address, "--data", "demo/Biology,demo/MedQA-Diag")
    assert done.returncode == 0, done.stderr
    assert f"generations/{TEXTS}: 8 of 8 queries" in done.stdout
    assert all(row["hy_doc"] for row in lines(tmp_path / "generations" / TEXTS))
    assert (tmp_path / "generations" / TEXTS.replace("Biology", "MedQA-Diag")).is_file()
    expand = ("run", "bm25", "--expand", "hyde", "--llm", "org/m:free", "--generations", "generations")
    [row] = json.loads(r2med(*expand, *BIOLOGY, "--format", "json").stdout)
    assert row["system"] == "hyde(org/m:free) → bm25"
    assert len(chat_server.requests) == 16


def test_the_llm_may_stand_in_parentheses_as_in_a_system(chat_server, tmp_path, r2med):
    done = r2med("generate", "hyde(org/m:free)", "--base-url", chat_server.address, *BIOLOGY)
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path / "generations" / TEXTS)) == 8


def test_an_agent_s_answers_are_texts_like_any_other(tmp_path, r2med):
    with serve(answer("<answer>coeliac disease</answer>")) as server:
        made = r2med("generate", "search-r1", "--llm", "m", "--base-url", server.address, *BIOLOGY)
    assert made.returncode == 0, made.stderr
    rows = lines(tmp_path / "generations/demo/Biology/search-r1/m/query_with_hydoc.jsonl")
    assert {row["hy_doc"] for row in rows} == {"coeliac disease"}
    done = r2med("run", "search-r1(m) → bm25", "--generations", "generations", *BIOLOGY, "--format", "json")
    assert json.loads(done.stdout)[0]["failures"] == 0


def test_a_dataset_that_gets_no_texts_is_told_with_the_reason_and_keeps_those_it_had(tmp_path, r2med):
    with serve(refuse(400, OFFENDED)) as bad:
        assert r2med(*HYDE, "--base-url", bad.address, *BIOLOGY).returncode == 1
        assert not (tmp_path / "generations").joinpath("demo").exists()
        with serve() as good:
            assert r2med(*HYDE, "--base-url", good.address, *BIOLOGY).returncode == 0
        before = (tmp_path / "generations" / TEXTS).read_bytes()
        done = r2med(*HYDE, "--base-url", bad.address, *BIOLOGY, "--overwrite")
    assert done.returncode == 1
    assert (tmp_path / "generations" / TEXTS).read_bytes() == before
    some_states(done.messages, TEXTS, "not written", "8 queries")
    some_states(done.messages, "8 of 8 queries", "no text")
    some_states(done.messages, "offends a policy")


def test_fewer_texts_do_not_replace_more_unless_told_to(chat_server, tmp_path, r2med):
    asked = (*HYDE, "--base-url", chat_server.address, *BIOLOGY)
    file = tmp_path / "generations" / TEXTS
    assert r2med(asked[0], "hyde(samples=2)", *asked[2:]).returncode == 0
    done = r2med(*asked)
    assert done.returncode == 1
    some_states(done.messages, "16 texts", 8)
    assert isinstance(lines(file)[0]["hy_doc"], list)
    assert r2med(*asked, "--overwrite").returncode == 0
    assert isinstance(lines(file)[0]["hy_doc"], str)
    assert len(chat_server.requests) == 16  # samples of the first time are used again


def test_a_budget_that_ends_is_told_with_what_to_do(chat_server, r2med):
    done = r2med(*HYDE, "--base-url", chat_server.address, *BIOLOGY, "--budget", "0")
    assert done.returncode == 1
    some_states(done.messages, "8 of 8 queries", "no text", "8 budget")
    some_states(done.messages, "budget", "$0", "larger budget")
    assert not chat_server.requests


@pytest.mark.parametrize("verb", [HYDE, ("run", "bm25", "--expand", "hyde", "--llm", "org/m:free")])
def test_a_template_of_the_last_dataset_is_checked_before_the_first_is_asked_about(chat_server, tmp_path, verb, r2med):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/hyde.case.txt").write_text("{query} {answer}")
    asked = (*verb, "--base-url", chat_server.address, "--prompts", "mine", "--data", "demo")
    assert_one_line(r2med(*asked), "hyde.case.txt: unknown field {answer}")
    (tmp_path / "mine/hyde.case.txt").rename(tmp_path / "mine/hyde.trial.txt")
    (tmp_path / "mine/hyde.trial.txt").write_text("{query}")
    assert_one_line(r2med(*asked), "no dataset has the kind 'trial'")
    assert not chat_server.requests


def test_recorded_texts_that_lack_one_dataset_are_told_before_any_is_evaluated(chat_server, tmp_path, r2med):
    r2med(*HYDE, "--base-url", chat_server.address, *BIOLOGY)
    expand = ("run", "bm25", "--expand", "hyde", "--llm", "org/m:free", "--generations", "generations")
    done = r2med(*expand, "--data", "demo/Biology,demo/MedQA-Diag")
    assert_one_line(done, "demo/MedQA-Diag has no recorded hyde texts")
    assert not list(tmp_path.glob("results/**/*.json"))


def test_a_dry_run_of_generate_asks_and_writes_nothing(chat_server, tmp_path, r2med):
    asked = (*HYDE, "--base-url", chat_server.address, *BIOLOGY)
    done = r2med(*asked, "--plan")
    assert done.returncode == 0, done.stderr
    some_states(done.stdout.splitlines(), "hyde(org/m:free)", "asks an LLM 8 times")
    assert done.stdout.count("prompt of hyde(org/m:free)") == 1
    assert not chat_server.requests
    assert not (tmp_path / "generations").exists()
    r2med(*asked)
    assert "Answers that are kept already are not subtracted" in " ".join(r2med(*asked, "--plan").stdout.split())


@pytest.mark.parametrize(
    ("agent", "calls", "shows"),
    [
        ("search-r1", 5, "[system]"),
        ("search-r1(turns=2, via=completion)", 3, "<|im_start|>system"),
        ("search-o1", 25, "[system]"),
        ("search-o1(turns=2)", 3, "[system]"),
    ],
)
def test_a_dry_run_of_an_agent_shows_how_conversations_begin(r2med, agent, calls, shows):
    told = r2med("run", "bm25", "--expand", agent, "--llm", "gpt4", *BIOLOGY, "--plan").stdout
    some_states(told.splitlines(), agent.partition("(")[0], f"at most {8 * calls} times")
    assert told.count("prompt of") == told.count(shows) == 1


def test_a_dry_run_does_not_call_stages_that_ask_as_they_go_free(r2med):
    done = r2med("run", "bm25", "--expand", "rm3", "--rerank", "listwise", "--llm", "gpt4", *BIOLOGY, "--plan")
    some_states(done.stdout.splitlines(), "listwise(gpt4)@100", "48 times")


def test_expansions_with_settings_run_from_their_flag(r2med):
    [row] = json.loads(r2med("run", "bm25", "--expand", "rm3(documents=3)", *BIOLOGY, "--format", "json").stdout)
    assert row["system"] == "rm3(documents=3) → bm25"
    done = r2med("run", "bm25", "--expand", "hyde(samples=2)", "--llm", "gpt4", *BIOLOGY, "--plan")
    assert "hyde(gpt4, samples=2): asks an LLM 16 times" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "bm25", "--expand", "hyde", "--llm", "gtp4", *BIOLOGY, "--plan"], ["gtp4", "gpt4?"]),
        (["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--recorded", *BIOLOGY, "--plan"], ["gpt4", "author"]),
        (["run", "bm25", "--expand", "rm3", "--llm", "gpt4"], ["rm3", "no LLM"]),
        (
            ["run", "bm25", "--expand", "hyde(samples=2)", "--llm", "author"],
            ["hyde(author, samples=2)", "recorded"],
        ),
        (["run", "bm25(k1=1, k1=2)", *BIOLOGY], ["bm25(k1=1, k1=2)", "k1", "twice"]),
        (["run", "bm25", "--data", " , "], ["--data", "no dataset"]),
        (["generate", "hyd", "--llm", "gpt4"], ["hyd", "hyde?"]),
        (["generate", "hyde(gpt4)", "--llm", "o3-mini"], ["gpt4", "o3-mini", "two LLMs"]),
        (["generate", "hyde"], ["no LLM", "'hyde(o3-mini)'"]),
        (["generate", "hyde(rounds=1, rounds=2)", "--llm", "gpt4"], ["rounds", "twice"]),
        (["generate", "hyde", "--llm", "author"], ["'author'", "no LLM"]),
        (["generate", "hyde", "--llm", "gpt4,o3-mini"], ["gpt4,o3-mini", "one LLM"]),
        (["generate", "hyde(query=keep)", "--llm", "gpt4"], ["query", "search"]),
        (["generate", "hyde", "--llm", "gpt4", "--data", "demo/Biology,demo/Nowhere"], ["demo/Nowhere", "no dataset"]),
    ],
)
def test_what_cannot_be_followed_is_one_line(arguments, facts, r2med):
    assert_one_line(r2med(*arguments), *facts)


def test_two_datasets_of_one_name_are_not_written_into_one_folder(tmp_path, r2med):
    for parent in ("a", "b"):
        folder = tmp_path / parent / "set"
        folder.mkdir(parents=True)
        (folder / "query.jsonl").write_text(json.dumps({"id": "0", "text": "Why?"}) + "\n")
        (folder / "corpus.jsonl").write_text(json.dumps({"id": "d", "text": parent}) + "\n")
        (folder / "qrels.jsonl").write_text(json.dumps({"q_id": "0", "p_id": "d", "score": 1}) + "\n")
    done = r2med(*HYDE, "--base-url", "http://127.0.0.1:9/v1", "--data", "a/set,b/set")
    assert_one_line(done, "2 datasets are named set")


def test_a_plan_needs_neither_the_data_nor_a_network(r2med, home):
    planned = r2med("generate", "hyde", "--llm", "gpt4", "--data", "Biology", "--plan", "--offline")
    assert planned.returncode == 0, planned.stderr
    some_states(planned.stdout.splitlines(), "hyde(gpt4)", "103 times")
    some_states(planned.stdout.splitlines(), "r2med data fetch Biology")
    agent = r2med("generate", "search-r1", "--llm", "gpt4", "--data", "R2MED", "--plan", "--offline")
    assert agent.returncode == 0, agent.stderr
    some_states(agent.stdout.splitlines(), "search-r1(gpt4)", "at most")
    some_states(agent.stdout.splitlines(), "r2med data fetch R2MED")
    assert not (home / "corpus").exists()
    assert_one_line(r2med("generate", "hyde", "--llm", "gpt4", "--data", "Biology", "--offline"), "Biology", "offline")
