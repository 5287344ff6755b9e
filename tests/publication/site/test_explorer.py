"""The explorer's data: rankings, cut texts, copies, generated texts and failures, by number."""

import json

import pytest

from r2med import run
from r2med.data import load
from r2med.evaluation.records.collection import collect
from r2med.foundation.core.errors import UserError
from r2med.foundation.text import english
from r2med.publication.site.explorer import DEPTH, RELEVANT_SHOWN, SHOWN, explorer_files
from support.datasets import r2med_folder
from support.hostile import COPIED, ENDLESS, GENERATED, QUERIES, hostile_folder

SYSTEMS = ["bm25", "bm25(scorer=lucene)", "hyde(author) → bm25"]


@pytest.fixture
def explored(tmp_path):
    """The dataset, the records, and a function that returns the explorer's files by name."""
    folder = hostile_folder(tmp_path / "hostile")
    run(SYSTEMS, folder, out=tmp_path / "results")
    collection = collect([tmp_path / "results"], max_failures=1)
    dataset = load(folder)
    return dataset, collection, lambda: dict(explorer_files(collection, ["other", "hostile"], {"hostile": dataset}))


def test_rankings_are_the_tops_of_the_runs(explored):
    _, collection, files = explored
    written = files()
    assert written["explorer/index"] == {"datasets": [{"dataset": 1, "systems": [0, 1, 2]}]}
    for number, system in enumerate(collection.systems):
        file = written[f"explorer/1/s{number}"]
        for position, query in enumerate(QUERIES):
            documents = written[f"explorer/1/q{position}"]["documents"]
            ids = [documents[at]["id"] for at in file["rankings"][position]]
            gold = collection.cell(system, "hostile").record.gold.get(query["id"], {})
            assert len(ids) == len(file["scores"][position]) <= DEPTH
            assert {d: ids.index(d) + 1 for d in gold if d in ids} == {d: r for d, r in gold.items() if r <= DEPTH}


def test_files_are_json_and_the_same_every_time(explored):
    _, _, files = explored
    assert json.dumps(files(), allow_nan=False) == json.dumps(files())


def test_relevant_documents_come_first_and_judgements_are_told_apart(explored):
    _, _, files = explored
    query = files()["explorer/1/q1"]
    grades = {document["id"]: document["grade"] for document in query["documents"]}
    assert query["gold"] == 1
    assert query["documents"][0]["id"] == "judged"
    assert (grades["judged"], grades["d3"], grades["copy"]) == (1, 0, None)


def test_a_copy_of_a_relevant_text_is_marked_and_counted_beside(explored):
    _, collection, files = explored
    written = files()
    documents = written["explorer/1/q1"]["documents"]
    copy = next(document for document in documents if document["id"] == "copy")
    assert copy["text"] == COPIED
    assert documents[copy["copy"]]["id"] == "judged"
    assert all(document["copy"] is None for document in documents if document["id"] != "copy")
    expanded = collection.systems.index("hyde(author) → bm25")
    own = collection.cell("hyde(author) → bm25", "hostile").record.gold["constructor"]["judged"]
    ranks = {each["query"]: each["ranks"] for each in written[f"explorer/1/s{expanded}"]["copies"]}
    ids = [documents[at]["id"] for at in written[f"explorer/1/s{expanded}"]["rankings"][1]]
    assert ranks.get(1, [own]) == [min(own, ids.index("copy") + 1)]


def test_long_texts_are_cut_around_the_best_window_and_the_cut_is_told(explored):
    dataset, _, files = explored
    texts = {document: text.strip() for document, text in dataset.corpus}
    cuts = {(n, d["id"]): d for n in range(4) for d in files()[f"explorer/1/q{n}"]["documents"]}
    for (_, document), cut in cuts.items():
        assert len(cut["text"]) <= (RELEVANT_SHOWN if cut["grade"] else SHOWN)
        assert texts[document][cut["before"] : len(texts[document]) - cut["after"]] == cut["text"]
    assert "Here are fever, rash and chills." in cuts[1, "long"]["text"]
    assert cuts[3, "endless"]["text"] == ENDLESS[:RELEVANT_SHOWN]


def test_forms_are_the_analysers(explored):
    _, _, files = explored
    for number, query in enumerate(QUERIES):
        file = files()[f"explorer/1/q{number}"]
        generated = [term for row in GENERATED if row["id"] == query["id"] for term in english(row["hy_doc"])]
        terms = [*sorted(set(english(query["text"]))), *sorted(set(generated) - set(english(query["text"])))]
        assert file["words"] == len(set(english(query["text"])))
        for chunk, form in file["forms"].items():
            pieces = [{"start": 0, "stop": len(chunk), "term": form}] if isinstance(form, int) else form
            found = [terms[piece["term"]] for piece in pieces]
            assert found == [t for t in english(chunk) if t in terms]
            assert found == [english(chunk[piece["start"] : piece["stop"]])[0] for piece in pieces]


def test_a_query_without_a_generated_text_is_a_failure_and_not_a_zero(explored):
    _, collection, files = explored
    written = files()
    expanded = collection.systems.index("hyde(author) → bm25")
    assert [each["query"] for each in written[f"explorer/1/s{expanded}"]["failures"]] == [2]
    assert written["explorer/1/s0"]["failures"] == []
    assert written["explorer/1/q0"]["generated"][0]["texts"] == (GENERATED[0]["hy_doc"],)
    assert written["explorer/1/q0"]["generated"][0]["systems"] == [expanded]
    assert written["explorer/1/q2"]["generated"] == []


def test_a_run_that_is_missing_is_left_out_and_one_that_was_changed_is_told(explored):
    _, collection, files = explored
    first = collection.cell("bm25", "hostile").run_file
    content = first.read_bytes()
    first.unlink()
    assert collection.systems.index("bm25") not in files()["explorer/1/index"]["systems"]
    first.write_bytes(content + b"\n")
    with pytest.raises(UserError, match=r"bm25-.*\.trec\.gz was changed after its record was written"):
        files()


def test_words_are_marked_in_the_language_that_was_searched(tmp_path):
    documents = [{"id": "a", "text": "Sturz, danach im Krankenhaus."}, {"id": "b", "text": "Die Impfung."}]
    queries = [{"id": "q", "text": "Welche Krankenhäuser?", "answer": ""}]
    folder = r2med_folder(tmp_path / "ward", documents, queries, [{"q_id": "q", "p_id": "a", "score": 1}])
    run(["bm25", "bm25(language=de)"], folder, out=tmp_path / "results")
    collection = collect([tmp_path / "results"])
    file = dict(explorer_files(collection, ["ward"], {"ward": load(folder)}))["explorer/0/q0"]
    assert file["words"] == 1 and file["common"] == []
    assert file["forms"] == {"krankenhaus": 0, "krankenhäuser": 0}
