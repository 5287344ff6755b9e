"""Recorded generations: found in folders and hub clones, matched with the queries, cleaned; and written to be read."""

import json
from dataclasses import replace

import pytest

from r2med import UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query, names
from r2med.foundation.core.spec import Call
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.models.llm.cleaning import VERSION
from r2med.systems.expand.expansion import Expansion
from r2med.systems.expand.generations import NotWrittenError, write_generations
from r2med.systems.retrieve.retriever import SearchQuery
from support.datasets import hub_files, write_jsonl, write_parquet
from support.ready import Ready

QUERIES = (Query("0", "Tired after bread?", excluded=("x",)), Query("1", "Why is she pale?"))


def dataset_in(folder):
    return Dataset("set", QUERIES, Corpus.of([("a", "gluten")]), Qrels({"0": {"a": 1}}), None, folder)


def row(number, text, **more):
    return {"id": str(number), "text": QUERIES[number].text, "hy_doc": text, **more}


METHODS = ("hyde", "query2doc", "lamer", "search-r1", "search-o1")


def opened(method, llm, folder=None, **settings):
    expander = stage_of(Call(method, (llm,), tuple(settings.items())), "expand")
    return Ready(expander, Runtime(recorded=True, generations=folder))


def read(method, llm, dataset, folder=None, **settings):
    return opened(method, llm, folder, **settings).expand(dataset)


def recorded(folder, rows, method="hyde", llm="gpt4", **settings):
    write_jsonl(folder / method / llm / "query_with_hydoc.jsonl", rows)
    return read(method, llm, dataset_in(folder), **settings)


@pytest.mark.parametrize("method", METHODS)
def test_texts_of_every_method_are_read_from_a_folder(tmp_path, method):
    expansion = recorded(tmp_path, [row(0, "coeliac"), row(1, ["anaemia", "iron"])], method)
    assert [query.generated for query in expansion.queries] == [("coeliac",), ("anaemia", "iron")]
    assert (expansion.failures, expansion.notices) == (0, ())


@pytest.mark.parametrize("method", ["search-r1", "search-o1"])
def test_an_agent_s_answer_is_searched_alone(tmp_path, method):
    assert recorded(tmp_path, [row(0, "coeliac")], method).queries[0].lexical_text == "coeliac"


def test_the_original_query_can_be_kept(tmp_path):
    expansion = recorded(tmp_path, [row(0, "coeliac")], query="keep")
    assert expansion.queries[0].lexical_text == "Tired after bread? coeliac"
    assert opened("hyde", "gpt4", query="keep").name == "hyde(gpt4, query=keep)"


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    ("method", "split", "llm"),
    [("hyde", "o3_mini", "o3-mini"), ("lamer", "gpt4", "gpt4"), ("search-r1", "qwen_7b_ins", "qwen-7b-ins")],
)
def test_a_hub_clone_s_configs_are_read_one_split_an_llm(tmp_path, kind, method, split, llm):
    root = hub_files(tmp_path / "Clone")
    rows = [row(0, "coeliac"), row(1, "iron")]
    if kind == "parquet":
        write_parquet(root / method / f"{split}-00000-of-00002.parquet", rows[:1])
        write_parquet(root / method / f"{split}-00001-of-00002.parquet", rows[1:])
    else:
        write_jsonl(root / method / f"{split}.jsonl", rows)
    expansion = read(method, llm, load(root))
    assert [query.generated for query in expansion.queries] == [("coeliac",), ("iron",)]


def test_a_clone_s_card_may_say_where_the_files_are(tmp_path):
    root = hub_files(tmp_path / "Clone")
    write_parquet(root / "generations/hyde/o3_mini/part.parquet", [row(0, "coeliac"), row(1, "iron")])
    (root / "README.md").write_text(
        "---\nconfigs:\n- config_name: hyde\n  data_files:\n  - split: o3_mini\n"
        "    path: generations/hyde/o3_mini/*.parquet\n---\n"
    )
    assert read("hyde", "o3-mini", load(root)).queries[0].generated == ("coeliac",)


def test_half_a_download_is_one_line(tmp_path):
    root = hub_files(tmp_path / "Clone")
    write_parquet(root / "hyde/gpt4-00000-of-00002.parquet", [row(0, "coeliac")])
    with pytest.raises(UserError, match="1 of 2 files for config 'hyde', split 'gpt4'"):
        read("hyde", "gpt4", load(root))


@pytest.mark.parametrize("file", ["hyde.jsonl", "data/qwen-00000-of-00001.parquet", "hyde/qwen-7b.jsonl"])
def test_files_that_may_be_another_llm_s_are_not_taken(tmp_path, file):
    root = hub_files(tmp_path / "Clone")
    write = write_parquet if file.endswith("parquet") else write_jsonl
    write(root / file, [row(0, "coeliac"), row(1, "iron")])
    with pytest.raises(UserError, match="has no recorded hyde texts of 'qwen'"):
        read("hyde", "qwen", load(root))


@pytest.mark.parametrize(
    ("written", "typed"), [("qwen_72b", "qwen-72b"), ("r1-qwen-32b", "r1_qwen_32b"), ("r1_qwen-32b",) * 2]
)
def test_hyphens_and_underscores_in_a_name_are_alike(tmp_path, written, typed):
    write_jsonl(tmp_path / "hyde" / written / "query_with_hydoc.jsonl", [row(0, "coeliac")])
    assert read("hyde", typed, dataset_in(tmp_path)).queries[0].generated == ("coeliac",)


def test_an_llm_without_texts_is_one_line_with_those_there_are(tmp_path):
    root = hub_files(tmp_path / "Clone")
    write_jsonl(root / "hyde/o3_mini.jsonl", [row(0, "coeliac")])
    write_jsonl(root / "hyde/author/query_with_hydoc.jsonl", [row(0, "coeliac")])
    with pytest.raises(UserError, match=r"did you mean o3_mini\?\): it has author, o3_mini"):
        read("hyde", "o3-mni", load(root))
    with pytest.raises(UserError, match="come with the demo and R2MED only"):
        read("lamer", "gpt4", dataset_in(None))
    with pytest.raises(UserError, match=f"'gpt4' in {tmp_path}: it has no file lamer/LLM/query_with"):
        read("lamer", "gpt4", dataset_in(None), tmp_path)


def test_texts_that_are_missing_for_any_dataset_are_told_beforehand(tmp_path):
    write_jsonl(tmp_path / "one/hyde/gpt4/query_with_hydoc.jsonl", [row(0, "coeliac")])
    one, two = (replace(dataset_in(None), name=name) for name in ("one", "two"))
    opened("hyde", "gpt4", tmp_path).check([one])
    with pytest.raises(UserError, match="two has no recorded hyde texts"):
        opened("hyde", "gpt4", tmp_path).check([one, two])


def test_queries_without_a_text_are_counted_and_told(tmp_path):
    expansion = recorded(tmp_path, [row(0, None)])
    assert expansion.queries == tuple(SearchQuery(query) for query in QUERIES)
    assert (expansion.failures, expansion.failure_kinds) == (2, {"empty": 1, "missing": 1})
    assert sorted(expansion.failed.values()) == ["empty", "missing"]
    assert "2 of 2 queries have no text and are searched as they are (1 empty, 1 missing)" in expansion.notices[0]


def test_texts_for_unknown_ids_are_a_notice(tmp_path):
    expansion = recorded(tmp_path, [row(0, "coeliac"), row(1, "iron"), {"id": "77", "hy_doc": "z"}])
    assert expansion.failures == 0
    assert "1 texts for ids that set does not have, such as ['77']" in expansion.notices[0]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [row(0, "coeliac"), {**row(1, "iron"), "text": "Another question"}],
            r"jsonl:2: id '1' has another text than query",
        ),
        ([row(0, "coeliac"), row(0, "gluten")], "jsonl:2: id '0' was used before with another hy_doc"),
        ([{"id": "7", "hy_doc": "z"}, {"id": "8", "hy_doc": "z"}], "none of its 2 ids is a query of set"),
        ([row(0, [1])], "must be a string or a list of strings"),
        ([row(0, 1)], "'hy_doc' must be a string"),
        ([{"id": "0"}], "missing field 'hy_doc'"),
        ([{"id": "0"}, {"id": "1"}], r"jsonl:1: missing field 'hy_doc' \(rows have id\) \(and 1 more lines\)$"),
        ([], "jsonl: the file is empty"),
    ],
)
def test_texts_of_other_queries_and_bad_rows_are_one_line(tmp_path, rows, says):
    with pytest.raises(UserError, match=says) as error:
        recorded(tmp_path, rows)
    assert "\n" not in str(error.value)


def test_white_space_in_a_query_s_text_is_no_difference(tmp_path):
    assert recorded(tmp_path, [{**row(0, "coeliac"), "text": " Tired  after\nbread?"}]).failures == 1


HUATUO = "## Thinking\n\nhm\n\n## Final Response\n\n"


@pytest.mark.parametrize(
    ("method", "llm", "texts", "answers"),
    [
        # Thoughts without their heading are thoughts all the same.
        ("hyde", "huatuo-o1-70b", ["hm, so\n## Final Response\ncoeliac", f"{HUATUO}iron"], ["coeliac", "iron"]),
        (
            "hyde",
            "huatuo_o1_70b",
            ["so\n## Final Response\ncoeliac", "a\n## Final Response\niron"],
            ["coeliac", "iron"],
        ),
        ("hyde", "nobody", [f"{HUATUO}coeliac", f"{HUATUO}iron"], ["coeliac", "iron"]),
        # Nothing of a plain text is changed, whatever tags it talks about.
        ("hyde", "gpt4", ["write <answer>this</answer>", "use <search>fever</search>"], None),
        ("search-r1", "any", ["hm <answer>old</answer> <answer>coeliac</answer>", "<search>x"], ["coeliac", None]),
        ("search-r1", "any", ["coeliac", "iron"], None),
        ("search-o1", "any", ["hm</think>coeliac", "x</think>iron"], ["coeliac", "iron"]),
    ],
)
def test_the_answer_is_found_as_the_llm_and_the_method_mark_it(tmp_path, method, llm, texts, answers):
    expansion = recorded(tmp_path, [row(number, text) for number, text in enumerate(texts)], method, llm)
    assert [query.generated for query in expansion.queries] == [(text,) if text else () for text in answers or texts]


def test_a_cut_off_text_is_a_failure(tmp_path):
    expansion = recorded(tmp_path, [row(0, "<think>hm</think>coeliac"), row(1, "<think>never")])
    assert [query.generated for query in expansion.queries] == [("coeliac",), ()]
    assert expansion.failure_kinds == {"no_marker": 1}


def test_in_a_file_of_reasoning_a_text_without_its_mark_is_cut_off(tmp_path):
    queries = tuple(Query(str(i), f"q{i}") for i in range(3))
    rows = [{"id": "0", "hy_doc": "hm</think>a"}, {"id": "1", "hy_doc": "hm</think>b"}, {"id": "2", "hy_doc": "hm, so"}]
    write_jsonl(tmp_path / "hyde/r1/query_with_hydoc.jsonl", rows)
    dataset = Dataset("set", queries, Corpus.of([]), Qrels({}), None, tmp_path)
    assert [query.generated for query in read("hyde", "r1", dataset).queries] == [("a",), ("b",), ()]


@pytest.mark.parametrize(("method", "generated"), [("search-r1", [("b",), ()]), ("hyde", None)])
def test_tags_are_marks_of_search_r1_alone(tmp_path, method, generated):
    written = ["<answer>a</answer> <answer>b</answer>", "<search>x"]
    expansion = recorded(tmp_path, [row(number, text) for number, text in enumerate(written)], method, "any")
    assert [query.generated for query in expansion.queries] == (generated or [(text,) for text in written])


def test_the_published_way_takes_the_first_mark_and_thoughts_without_one(tmp_path):
    rows = [row(0, "a</think>b</think>c"), row(1, "only thoughts")]
    expansion = recorded(tmp_path, rows, llm="r1", cleaning="published")
    assert [query.generated for query in expansion.queries] == [("b</think>c",), ("only thoughts",)]
    assert opened("hyde", "r1", cleaning="published").name == "hyde(r1, cleaning=published)"


def test_what_is_written_reads_back(tmp_path):
    written = ('a "quoted"\nline   α 漢', "second")
    queries = (SearchQuery(QUERIES[0], written), SearchQuery(QUERIES[1]))
    path = write_generations(Expansion.of(queries), dataset_in(None), tmp_path, "hyde", "org/some:model")
    assert path == tmp_path / "set/hyde/org--some++model/query_with_hydoc.jsonl"
    again = read("hyde", "org/some:model", dataset_in(None), tmp_path)
    assert again.queries == queries
    assert again.digest == Expansion.of(queries).digest
    beside = read("hyde", path.parent.name, dataset_in(tmp_path / "set"))  # a folder's name may be typed
    assert beside.queries == queries
    with pytest.raises(UserError, match=r"did you mean org/some:model\?\): it has org/some:model"):
        read("hyde", "org-some-model", dataset_in(None), tmp_path)


def one_text(text="coeliac"):
    return Expansion.of([SearchQuery(QUERIES[0], (text,)), SearchQuery(QUERIES[1])])


def test_one_text_is_written_as_the_original_reads_it(tmp_path):
    queries = (SearchQuery(QUERIES[0], ("coeliac",), "hyde"), SearchQuery(QUERIES[1]))
    path = write_generations(Expansion.of(queries), dataset_in(None), tmp_path, "hyde", "gpt4")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"id": "0", "text": "Tired after bread?", "hy_doc": "coeliac", "excluded_ids": ["x"]},
        {"id": "1", "text": "Why is she pale?", "hy_doc": ""},
    ]


def test_a_file_with_more_texts_is_replaced_only_if_told_to(tmp_path):
    both = Expansion.of(SearchQuery(query, ("good",), "hyde") for query in QUERIES)
    path = write_generations(both, dataset_in(None), tmp_path, "hyde", "gpt4")
    before = path.read_bytes()
    with pytest.raises(
        NotWrittenError,
        match=r"there are 1 now: it was not changed; overwrite \(--overwrite\) replaces it",
    ):
        write_generations(one_text(), dataset_in(None), tmp_path, "hyde", "gpt4")
    assert path.read_bytes() == before
    write_generations(one_text(), dataset_in(None), tmp_path, "hyde", "gpt4", overwrite=True)
    assert read("hyde", "gpt4", dataset_in(None), tmp_path).failures == 1
    write_generations(one_text("other"), dataset_in(None), tmp_path, "hyde", "gpt4")  # as many: replaced
    write_generations(both, dataset_in(None), tmp_path, "hyde", "gpt4")
    assert path.read_bytes() == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_no_texts_are_never_written(tmp_path, overwrite):
    path = write_generations(one_text(), dataset_in(None), tmp_path, "hyde", "gpt4")
    before = path.read_bytes()
    none = Expansion.of(SearchQuery(query) for query in QUERIES)
    for llm in ("gpt4", "other"):
        with pytest.raises(NotWrittenError, match="was not written: none of 2 queries got a text"):
            write_generations(none, dataset_in(None), tmp_path, "hyde", llm, overwrite=overwrite)
    assert path.read_bytes() == before
    assert [entry.name for entry in (tmp_path / "set/hyde").iterdir()] == ["gpt4"]


@pytest.mark.parametrize("other", [{"id": "77"}, {"id": "0", "text": "Another question?"}])
def test_texts_of_another_dataset_of_the_same_name_are_not_lost(tmp_path, other):
    file = tmp_path / "set/hyde/gpt4/query_with_hydoc.jsonl"
    write_jsonl(file, [{**other, "hy_doc": "z"}])
    with pytest.raises(NotWrittenError, match="has 1 texts of other queries"):
        write_generations(one_text(), dataset_in(None), tmp_path, "hyde", "gpt4")
    write_generations(one_text(), dataset_in(None), tmp_path, "hyde", "gpt4", overwrite=True)
    assert read("hyde", "gpt4", dataset_in(None), tmp_path).failures == 1


def test_a_file_that_cannot_be_read_does_not_stand_in_the_way(tmp_path):
    file = tmp_path / "set/hyde/gpt4/query_with_hydoc.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"id": "0", "hy_doc": "cut o')
    assert write_generations(one_text(), dataset_in(None), tmp_path, "hyde", "gpt4") == file


def test_a_failed_write_leaves_what_was_there(tmp_path):
    first = Expansion.of([SearchQuery(QUERIES[0], ("coeliac",), "hyde")])
    path = write_generations(first, dataset_in(None), tmp_path, "hyde", "gpt4")
    before = path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        bad = Expansion.of([SearchQuery(QUERIES[0], ("\ud800",), "hyde")])
        write_generations(bad, dataset_in(None), tmp_path, "hyde", "gpt4")
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_demo_s_texts_go_through_the_same_reader(tmp_path):
    author = opened("hyde", "author")
    for name in names("demo"):
        dataset = load(name)
        expansion = author.expand(dataset, Store(tmp_path))
        assert (expansion.failures, expansion.notices) == (0, ())
        key = {"stage": "hyde", "llm": "author", "source": "recorded"}
        assert author.key(dataset) == key | {"cleaning": f"strict plain {VERSION}"}
