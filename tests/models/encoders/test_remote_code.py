"""Models with their own code run only if the user allows it, and then as their authors intended."""

import json

import numpy as np
import pytest
import torch
import transformers

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import ModelCard, Side, resolve_card
from support import tiny_models
from support.tiny_models import TEXTS

PREFIX = "Given a medical question, retrieve: "


@pytest.fixture(autouse=True)
def modules_cache(tmp_path, monkeypatch):
    """Keep the copy that transformers makes of a model's code out of the user's cache."""
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))


def odd(folder, **options):
    card = ModelCard(
        name="odd",
        loader="remote-code",
        normalise=True,
        query=Side(prefix="Given a {kind}, retrieve: ", max_tokens=48),
        document=Side(max_tokens=20),
    )
    settings = {"device": "cpu", "trust_remote_code": True, **options}
    return open_encoder(card, ANY_DATASET, Runtime(model_paths=(("odd", folder),), **settings))


def plain(folder, prefix, limit):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=True)
    bert = transformers.BertModel.from_pretrained(folder, local_files_only=True).eval()
    skip = len(tokenizer(prefix)["input_ids"]) - 1 if prefix else 0
    rows = []
    for text in TEXTS:
        ids = tokenizer(prefix + text, truncation=True, max_length=limit)["input_ids"]
        with torch.no_grad():
            row = bert(input_ids=torch.tensor([ids])).last_hidden_state[0][skip:].mean(0)
        rows.append(row / row.norm())
    return torch.stack(rows).numpy()


def test_its_own_method_is_called_with_instruction_and_limit(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    found = odd(folder)
    np.testing.assert_allclose(found.encode(TEXTS, "query").vectors, plain(folder, PREFIX, 48), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(found.encode(TEXTS, "document").vectors, plain(folder, "", 20), rtol=2e-4, atol=2e-5)
    assert found.encode(TEXTS, "query").cost.texts == 10


def test_batches_and_order_do_not_matter(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    alone = odd(folder, tokens_per_batch=1).encode(TEXTS, "query").vectors
    together = odd(folder, tokens_per_batch=10_000).encode(TEXTS[::-1], "query").vectors
    np.testing.assert_allclose(alone[::-1], together, rtol=2e-4, atol=2e-5)


def test_nothing_runs_without_the_users_permission(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    (folder / "odd.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(UserError, match="--trust-remote-code"):
        odd(folder, trust_remote_code=False)
    found = open_encoder(resolve_card(f"path:{folder}"), ANY_DATASET, Runtime(device="cpu"))
    with pytest.raises(UserError, match="--trust-remote-code"):
        found.encode(["a"], "query")


def test_an_unknown_architecture_without_permission_gives_a_one_line_error(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    card = ModelCard(name="odd", loader="transformers", pooling="cls", query=Side(max_tokens=20))
    found = open_encoder(card, ANY_DATASET, Runtime(device="cpu", model_paths=(("odd", folder),)))
    with pytest.raises(UserError, match="--trust-remote-code"):
        found.encode(["a"], "query")


def test_code_in_another_repository_is_refused(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"]["AutoModel"] = "other/repo--odd.OddModel"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="other/repo, which no revision pins"):
        odd(folder).encode(["a"], "query")


def test_code_that_cannot_run_gives_a_one_line_error(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    code = (folder / "odd.py").read_text()
    (folder / "odd.py").write_text("import a_package_that_is_not_there\n" + code)
    with pytest.raises(UserError, match="a_package_that_is_not_there"):
        odd(folder).encode(["a"], "query")


BROKEN = "def encode(self, *_, **__):\n        self.gone\n\n    def old("


def test_code_that_fails_gives_a_one_line_error(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    (folder / "odd.py").write_text((folder / "odd.py").read_text().replace("def encode(", BROKEN))
    with pytest.raises(UserError, match="model odd: its own code failed: AttributeError") as caught:
        odd(folder).encode(["a"], "query")
    assert "pip install" not in str(caught.value)


def test_a_changed_line_of_code_gives_another_revision(tmp_path):
    folder = tiny_models.remote_code(tmp_path / "odd")
    before = odd(folder).key("query")["revision"]
    with (folder / "odd.py").open("a") as file:
        file.write("# changed\n")
    assert odd(folder).key("query")["revision"] != before
