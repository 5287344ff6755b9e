"""Every kind of cross-encoder agrees with a plain computation: one pair at a time, no padding, no batches."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.crossencoders import pair_model
from r2med.models.crossencoders.pair_scorer import TransformerScorer, cost_of, open_scorer
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard, resolve_reranker
from support import tiny_rerankers
from support.tiny_rerankers import LONG, PAIRS

LIMIT = 48
LONG_PAIRS = [
    ("Which drug? " + LONG + "What is the diagnosis?", LONG),
    (LONG + "Which bacteria live in the gut?", "Doctors pay taxes too."),
    (LONG, "Hereditary angioedema " * 12),
]
"""Pairs whose queries are too long too."""
RANKLLAMA = {"query": "query: {query}", "document": "document: {document}", "join": "bos", "base": "org/base"}


def card(**settings):
    return RerankerCard(**{"name": "tiny", "loader": "classifier", "max_tokens": LIMIT, **settings})


def scorer(folder, *, tokens=0, device="cpu", paths=(), **settings):
    options = Runtime(device=device, model_paths=(("tiny", folder), *paths), tokens_per_batch=tokens)
    return TransformerScorer(card(**settings), ANY_DATASET, options)


def values(found):
    return [scored.score for scored in found]


def agree(found, wanted):
    np.testing.assert_allclose(values(found), wanted, rtol=2e-4, atol=2e-5)


def plain(folder, pairs, column, limit=LIMIT):
    """Return the logits of pairs as in the library's documentation, which cuts the longest text first."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    found = []
    for query, document in pairs:
        # Lists, since for one text the library takes an empty document for none.
        inputs = tokenizer([query], [document], truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            found.append(float(model(**inputs).logits[0, column]))
    return found


def test_bert_with_two_labels_scores_by_the_second(tmp_path):
    folder = tiny_rerankers.bert(tmp_path / "bert")
    found = scorer(folder, logit="second").score(PAIRS)
    agree(found, plain(folder, PAIRS, 1))
    assert len(set(values(found))) == len(PAIRS)
    assert "token_type_ids" in transformers.AutoTokenizer.from_pretrained(folder)("a", "b")


def test_xlm_roberta_with_one_label(tmp_path):
    folder = tiny_rerankers.xlm_roberta(tmp_path / "xlm")
    agree(scorer(folder, logit="only").score(PAIRS), plain(folder, PAIRS, 0))


@pytest.mark.parametrize(("kind", "logit", "column"), [("bert", "second", 1), ("xlm_roberta", "only", 0)])
def test_published_variants_cut_both_texts_at_their_ends_the_longest_first(tmp_path, kind, logit, column):
    folder = getattr(tiny_rerankers, kind)(tmp_path / kind)
    pairs = [*PAIRS, *LONG_PAIRS]
    agree(scorer(folder, logit=logit, cut_query="end").score(pairs), plain(folder, pairs, column))
    by_default = values(scorer(folder, logit=logit).score(LONG_PAIRS))
    assert not np.allclose(by_default, plain(folder, LONG_PAIRS, column), rtol=2e-4)


def rankllama(base, adapter, pairs, limit):
    """Return the scores of a Llama whose adapter is a second path beside each layer and not merged."""
    from safetensors.torch import load_file

    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").eval().model
    config, tensors = json.loads((adapter / "adapter_config.json").read_text()), {}
    tensors = load_file(adapter / "adapter_model.safetensors")
    scale = config["lora_alpha"] / config["r"]

    def beside(first, second):
        return lambda _, inputs, output: output + scale * (inputs[0] @ first.T) @ second.T

    for name, module in model.named_modules():
        if (key := f"base_model.model.model.{name}.lora_A.weight") in tensors:
            module.register_forward_hook(beside(tensors[key], tensors[key.replace("lora_A", "lora_B")]))
    found = []
    for query, document in pairs:
        first, second = (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in (f"query: {query}", f"document: {document}")
        )
        while len(first) + len(second) > limit - 2:  # the longest first
            (first if len(first) > len(second) else second).pop()
        start = [tokenizer.bos_token_id]
        ids = start + first + start + second
        with torch.no_grad():
            last = model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
        found.append(float(last @ tensors["base_model.model.score.weight"][0]))
    return found


@pytest.mark.parametrize("side", ["left", "right"])
def test_llama_with_an_adapter_scores_by_its_last_token(tmp_path, side):
    base = tiny_rerankers.llama(tmp_path / "base", side)
    adapter = tiny_rerankers.lora(tmp_path / "lora", base)
    # Of an odd room one token more is the longer text's, the last of a tie; the sum below leaves it to the query.
    settings = {"paths": (("tiny.base", base),), "logit": "only", "max_tokens": 80, "cut_query": "end", **RANKLLAMA}
    pairs = [*PAIRS, *LONG_PAIRS]
    agree(scorer(adapter, **settings).score(pairs), rankllama(base, adapter, pairs, limit=80))


@pytest.mark.parametrize("side", ["left", "right"])
def test_qwen3_scores_by_yes_minus_no(tmp_path, side):
    folder = tiny_rerankers.qwen3(tmp_path / "qwen3", side)
    shipped = RERANKERS["qwen3-reranker-0.6b"]
    tiny = shipped.model_copy(update={"name": "tiny", "max_tokens": 500})
    found = TransformerScorer(tiny, ANY_DATASET, Runtime(device="cpu", model_paths=(("tiny", folder),)))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    yes, no = tokenizer.convert_tokens_to_ids("yes"), tokenizer.convert_tokens_to_ids("no")
    assert yes is not None and no is not None and yes != no
    instruction = "Given a medical question, retrieve relevant passages that help answer the question"
    wanted = []
    for query, document in PAIRS:
        body = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
        ids = [i for text in (shipped.before, body, shipped.after) for i in tokenizer.encode(text)]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
        wanted.append(float(logits[yes] - logits[no]))
    agree(found.score(PAIRS), wanted)


def rankt5(folder, pairs):
    """Return the score of each pair as transformers computes it for the whole text."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    token = tokenizer.convert_tokens_to_ids("<extra_id_10>")
    found = []
    for query, document in pairs:
        inputs = tokenizer(f"Query: {query} Document: {document}", return_tensors="pt")
        start = torch.tensor([[model.config.decoder_start_token_id]])
        with torch.no_grad():
            found.append(float(model(**inputs, decoder_input_ids=start).logits[0, 0, token]))
    return found


def tiny_rankt5(folder, **changes):
    shipped = RERANKERS["rankt5-3b"].model_copy(update={"name": "tiny", **changes})
    return TransformerScorer(shipped, ANY_DATASET, Runtime(device="cpu", model_paths=(("tiny", folder),)))


def test_rankt5_scores_by_the_first_step_of_its_decoder(tmp_path):
    folder = tiny_rerankers.t5(tmp_path / "t5")
    pairs = [(" ".join(query.split()), " ".join(document.split())) for query, document in PAIRS if query and document]
    found = tiny_rankt5(folder).score(pairs)
    wanted = rankt5(folder, pairs)
    assert len({round(value, 3) for value in wanted}) == len(wanted), "the scores differ, so that an error would show"
    agree(found, wanted)
    assert not any(scored.cut for scored in found)


def test_a_long_pair_of_rankt5_has_512_tokens_with_both_words_and_the_end(tmp_path):
    folder = tiny_rerankers.t5(tmp_path / "t5")
    [scored] = tiny_rankt5(folder, max_tokens=60).score([(LONG, LONG)])
    assert (scored.tokens, scored.cut) == (60, True)
    assert RERANKERS["rankt5-3b"].max_tokens == 512


def test_a_t5_without_the_token_is_refused(tmp_path):
    folder = tiny_rerankers.t5(tmp_path / "t5")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    names = (folder / "tokenizer.json").read_text().replace("<extra_id_10>", "<other_10>")
    assert tokenizer.convert_tokens_to_ids("<extra_id_10>") is not None
    (folder / "tokenizer.json").write_text(names)
    config = folder / "tokenizer_config.json"
    config.write_text(config.read_text().replace("<extra_id_10>", "<other_10>"))
    with pytest.raises(UserError, match=r"'<extra_id_10>' has .* tokens in its tokenizer; it must have exactly one"):
        tiny_rankt5(folder).score(PAIRS[:1])


def test_the_prompt_of_qwen3_begins_and_ends_as_its_authors_wrote_it():
    shipped = RERANKERS["qwen3-reranker-8b"]
    assert shipped.before.startswith("<|im_start|>system\nJudge whether the Document meets")
    assert shipped.before.endswith('"yes" or "no".<|im_end|>\n<|im_start|>user\n')
    assert shipped.after == "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@pytest.mark.parametrize("kind", ["bert", "xlm_roberta"])
def test_batches_and_order_do_not_change_a_score(tmp_path, kind):
    folder = getattr(tiny_rerankers, kind)(tmp_path / "model")
    one_by_one = values(scorer(folder, tokens=1).score(PAIRS))
    np.testing.assert_allclose(values(scorer(folder, tokens=10_000).score(PAIRS)), one_by_one, rtol=2e-4, atol=2e-5)
    backwards = values(scorer(folder, tokens=200).score(PAIRS[::-1]))[::-1]
    np.testing.assert_allclose(backwards, one_by_one, rtol=2e-4, atol=2e-5)
    two = values(scorer(folder, tokens=100, device="cpu,cpu").score(PAIRS))
    np.testing.assert_allclose(two, one_by_one, rtol=2e-4, atol=2e-5)


def test_a_tokenizer_that_pads_on_the_left_gives_the_same_scores(tmp_path):
    left = tiny_rerankers.xlm_roberta(tmp_path / "left", "left")
    right = Path(shutil.copytree(left, tmp_path / "right"))
    config = right / "tokenizer_config.json"
    config.write_text(config.read_text().replace('"padding_side": "left"', '"padding_side": "right"'))
    assert scorer(left).key()["revision"] != scorer(right).key()["revision"]
    np.testing.assert_array_equal(values(scorer(left).score(PAIRS)), values(scorer(right).score(PAIRS)))


def test_the_cost_of_a_pair_is_reported(tmp_path):
    folder = tiny_rerankers.bert(tmp_path / "bert")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    whole = [len(tokenizer([query], [document])["input_ids"][0]) for query, document in PAIRS]
    found = scorer(folder).score(PAIRS)
    assert [scored.tokens for scored in found] == [min(LIMIT, length) for length in whole]
    assert [scored.cut for scored in found] == [length > LIMIT for length in whole]
    assert all(scored.seconds > 0 for scored in found)
    cost = cost_of(found)
    assert (cost.texts, cost.tokens) == (len(PAIRS), sum(scored.tokens for scored in found))
    assert (cost.cut, cost.calls) == (sum(length > LIMIT for length in whole), 0)
    assert cost.seconds == cost.encoder_seconds == pytest.approx(sum(scored.seconds for scored in found))


def test_a_document_is_cut_and_its_query_kept(tmp_path):
    query = "facial swelling after dental work"
    found = scorer(tiny_rerankers.bert(tmp_path / "bert"))
    swollen, healthy = found.score([(query, LONG), (query.replace("swelling", "taxes"), LONG)])
    assert swollen.score != healthy.score and swollen.tokens == healthy.tokens == LIMIT
    (same,) = found.score([(query, LONG + "And more.")])
    assert same.score == pytest.approx(swollen.score, abs=1e-5)


@pytest.mark.parametrize(
    ("labels", "logit", "message"),
    [(3, "", "returns 3 logits for a pair instead of one or two"), (2, "only", "2 logits .* instead of one")],
)
def test_a_model_with_other_labels_gives_a_one_line_error(tmp_path, labels, logit, message):
    folder = tiny_rerankers.bert(tmp_path / "bert", labels)
    with pytest.raises(UserError, match=message):
        scorer(folder, logit=logit).score(PAIRS)


@pytest.mark.parametrize("labels", [1, 2])
def test_any_classifier_by_its_folder(tmp_path, labels):
    folder = tiny_rerankers.bert(tmp_path / "bert", labels)
    found = open_scorer(resolve_reranker(f"path:{folder}"), ANY_DATASET, Runtime(device="cpu"))
    agree(found.score(PAIRS), plain(folder, PAIRS, labels - 1, limit=64))
    assert max(scored.tokens for scored in found.score(PAIRS)) == 64
    assert str(tmp_path) not in json.dumps(found.key())


@pytest.mark.parametrize(("told", "limit"), [(None, 64), (40, 40), (1_000, 64)])
def test_the_limit_is_that_of_the_tokenizer_or_of_the_positions(tmp_path, told, limit):
    folder = tiny_rerankers.xlm_roberta(tmp_path / "xlm", limit=told)
    found = open_scorer(resolve_reranker(f"path:{folder}"), ANY_DATASET, Runtime(device="cpu"))
    agree(found.score(PAIRS), plain(folder, PAIRS, 0, limit=limit))
    assert max(scored.tokens for scored in found.score(PAIRS)) == limit


def test_a_card_with_more_tokens_than_positions_gives_a_one_line_error(tmp_path):
    with pytest.raises(UserError, match="allows 65 tokens, its weights have 64 positions"):
        scorer(tiny_rerankers.xlm_roberta(tmp_path / "xlm"), max_tokens=65).score(PAIRS)


def test_the_card_gives_the_architecture_that_an_old_configuration_lacks(tmp_path):
    folder = tiny_rerankers.bert(tmp_path / "no-hint-in-this-name")
    wanted = plain(folder, PAIRS, 1)
    config = json.loads((folder / "config.json").read_text())
    for key in ("model_type", "architectures"):
        del config[key]
    (folder / "config.json").write_text(json.dumps(config))
    tokens = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, **tokens}))
    agree(scorer(folder, architecture="bert").score(PAIRS), wanted)


def test_an_embedding_model_is_not_accepted_as_a_cross_encoder(tmp_path):
    from support import tiny_models

    with pytest.raises(
        UserError, match=r"lacks \d weights of BertForSequenceClassification.*it may not be a cross-encoder"
    ):
        scorer(tiny_models.bert(tmp_path / "bert")).score(PAIRS)


def test_the_description_contains_everything_that_a_score_depends_on(tmp_path):
    folder = tiny_rerankers.bert(tmp_path / "bert")
    before = scorer(folder).key()
    assert before["dtype"] == "float32" and before["max_tokens"] == LIMIT and before["backend"] == "torch"
    changes = {
        "query": "q: {query}",
        "document": "d: {document}",
        "logit": "second",
        "max_tokens": 47,
        "cut_query": "end",
    }
    for name, value in changes.items():
        assert scorer(folder, **{name: value}).key() != before
    other = tiny_rerankers.bert(tmp_path / "another")
    assert scorer(other).key()["revision"] != before["revision"]


def test_weights_are_loaded_with_the_first_pair(tmp_path, monkeypatch):
    folder = tiny_rerankers.bert(tmp_path / "bert")
    loads = []
    load = pair_model.load_model
    monkeypatch.setattr(pair_model, "load_model", lambda *args: loads.append(args) or load(*args))
    found = scorer(folder)
    found.key()
    assert found.score([]) == [] and not loads
    found.score(PAIRS)
    found.score(PAIRS)
    assert len(loads) == 1


def test_running_out_of_memory_halves_the_batch(tmp_path, monkeypatch):
    folder = tiny_rerankers.bert(tmp_path / "bert")
    wanted = values(scorer(folder).score(PAIRS))
    found, whole = scorer(folder, tokens=5_000), pair_model.Classifier.__call__
    sizes = []

    def small(self, ids, lengths, types):
        sizes.append(len(ids))
        if len(ids) > 3:
            raise MemoryError
        return whole(self, ids, lengths, types)

    monkeypatch.setattr(pair_model.Classifier, "__call__", small)
    np.testing.assert_allclose(values(found.score(PAIRS)), wanted, rtol=2e-4, atol=2e-5)
    assert sizes[0] == len(PAIRS)


def test_another_engine_is_refused_and_not_ignored(tmp_path):
    with pytest.raises(UserError, match=r"backend \(--backend openvino\): reranker tiny runs only on torch"):
        TransformerScorer(card(), ANY_DATASET, Runtime(backend="openvino"))


def test_describing_imports_no_torch(tmp_path):
    folder = tiny_rerankers.bert(tmp_path / "bert")
    code = (
        "import sys; from r2med.models.crossencoders.pair_scorer import open_scorer;"
        "from r2med.models.crossencoders.reranker_cards import resolve_reranker;"
        "from r2med.data.dataset_cards import ANY_DATASET; from r2med.foundation.runtime.runtime import Runtime;"
        f"open_scorer(resolve_reranker('path:{folder}'), ANY_DATASET, Runtime(device='cpu')).key();"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
