"""What is searched with a generated text, against a plain computation: the mean of two vectors, or one string."""

import gzip
import json

import numpy as np
import pytest

from support.original import ENCODERS, LONG, SHORT

QUERY, WRITTEN = SHORT[1:]
DOCUMENTS = {f"d{place}": text for place, text in enumerate([*SHORT, LONG[:300]])}
SPECS = ("contriever", "medcpt:published", "grit:published")
EXPANSIONS = {"": "", "hyde(author) → ": "hyde", "lamer(author) → ": "lamer", "query2doc(author) → ": "query2doc"}


@pytest.fixture
def folder(tmp_path):
    """A dataset of one exam question, with texts that an LLM is said to have written for it."""
    folder = tmp_path / "exam"
    folder.mkdir()
    (folder / "query.jsonl").write_text(json.dumps({"id": "q", "text": QUERY}))
    (folder / "qrels.jsonl").write_text(json.dumps({"q_id": "q", "p_id": "d1", "score": 1}))
    documents = [json.dumps({"id": name, "text": text}) for name, text in DOCUMENTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(documents))
    (folder / "card.toml").write_text('like = "MedQA-Diag"\n')
    for method in filter(None, EXPANSIONS.values()):
        (folder / method / "author").mkdir(parents=True)
        row = {"id": "q", "text": QUERY, "hy_doc": WRITTEN}
        (folder / method / "author" / "query_with_hydoc.jsonl").write_text(json.dumps(row))
    return folder


def searched(vector, method):
    """Return the vector that the original searches with; `vector` embeds a text in a role."""
    if method == "query2doc":
        return vector(f"{QUERY}[SEP]{WRITTEN}", "query")
    query = vector(QUERY, "query")
    return (query + vector(WRITTEN, "generated")) / 2 if method else query


def test_scores_with_generated_texts_are_the_original_s(folder, encoder_weights, r2med, tmp_path):
    systems = [f"{typed}{spec}" for spec in SPECS for typed in EXPANSIONS]
    names = [spec.partition(":")[0] for spec in SPECS]
    paths = [word for name in names for word in ("--model-path", f"{name}={encoder_weights(name)}")]
    done = r2med("run", *systems, "--data", folder, "--device", "cpu", *paths, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    scores = scores_of_systems(tmp_path / "out")
    for spec, name in zip(SPECS, names, strict=True):
        vector = embedding(name, spec.endswith(":published"), encoder_weights(name))
        for typed, method in EXPANSIONS.items():
            wanted = wanted_scores(vector, method, cosine=spec != "contriever")
            agree(scores[f"{typed}{spec}"], wanted)


def embedding(name, published, folder):
    return lambda text, role: ENCODERS[name].vector(folder, text, role, "MedQA-Diag", published)


def wanted_scores(vector, method, cosine):
    query = searched(vector, method)
    documents = {document: vector(text, "document") for document, text in DOCUMENTS.items()}
    lengths = {document: query.norm() * row.norm() if cosine else 1 for document, row in documents.items()}
    return {document: float(query @ row / lengths[document]) for document, row in documents.items()}


def agree(scores, wanted):
    """Compare scores but for a factor that all of a query's have in common, which nothing depends on."""
    assert scores.keys() == wanted.keys()
    ours, theirs = (np.array([one[document] for document in DOCUMENTS]) for one in (scores, wanted))
    np.testing.assert_allclose(ours / np.linalg.norm(ours), theirs / np.linalg.norm(theirs), rtol=2e-4, atol=3e-5)


def scores_of_systems(out):
    """Return the scores of each system's only query, by document."""
    found = {}
    for file in out.rglob("*.json"):
        record = json.loads(file.read_text())
        run = gzip.decompress((file.parent / record["run"]["file"]).read_bytes()).decode()
        found[record["system"]] = {
            row.split()[2]: float(row.split()[4]) for row in run.splitlines() if not row.startswith("#")
        }
    return found
