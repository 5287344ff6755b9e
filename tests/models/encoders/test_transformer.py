"""Every architecture of the benchmark agrees with a plain computation: one text at a time, no padding, no batches."""

import numpy as np
import pytest
import torch
import transformers

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import ModelCard, Side
from r2med.models.encoders.transformer import Tower
from support import tiny_models
from support.tiny_models import TEXTS

LIMIT = 48
QUERY_PREFIX = "Given a {kind}, retrieve\nQuery: "
PREFIX = "Given a medical question, retrieve\nQuery: "


def card(**settings):
    sides = {"query": Side(prefix=QUERY_PREFIX, max_tokens=LIMIT), "document": Side(max_tokens=LIMIT)}
    return ModelCard(**{"name": "tiny", "loader": "transformers", **sides, **settings})


def encoder(folder, *, tokens=0, device="cpu", **settings):
    options = Runtime(device=device, model_paths=(("tiny", folder),), tokens_per_batch=tokens)
    return open_encoder(card(**settings), ANY_DATASET, options)


def plain(folder):
    """Return the tokenizer and the model, with attention written out in plain torch."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return tokenizer, transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", local_files_only=True
    ).eval()


def hidden_states(model, ids, **inputs):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), **inputs).last_hidden_state[0]


def last_token(folder, texts, eos=None):
    """Return the last token's state of each text. `eos` is appended after a cut at one token less."""
    tokenizer, model = plain(folder)
    rows = []
    for text in texts:
        ids = tokenizer(text, truncation=True, max_length=LIMIT - (eos is not None))["input_ids"]
        ids = ids if eos is None else [*ids, eos]
        rows.append(hidden_states(model, ids)[-1])
    return torch.stack(rows)


def unit(rows):
    return rows / rows.norm(dim=1, keepdim=True)


def agree(found, wanted):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted.numpy(), rtol=2e-4, atol=2e-5)


def test_bert_pools_its_first_token(tmp_path):
    folder = tiny_models.bert(tmp_path / "bert")
    tokenizer, model = plain(folder)
    wanted = [
        hidden_states(model, tokenizer(PREFIX + text, truncation=True, max_length=LIMIT)["input_ids"])[0]
        for text in TEXTS
    ]
    found = encoder(folder, pooling="cls", normalise=True).encode(TEXTS, "query").vectors
    agree(found, unit(torch.stack(wanted)))


def test_bert_pools_the_mean_of_its_tokens(tmp_path):
    folder = tiny_models.bert(tmp_path / "bert")
    tokenizer, model = plain(folder)
    wanted = [
        hidden_states(model, tokenizer(text, truncation=True, max_length=LIMIT)["input_ids"]).mean(0) for text in TEXTS
    ]
    agree(encoder(folder, pooling="mean").encode(TEXTS, "document").vectors, torch.stack(wanted))


def test_two_towers_and_documents_as_pairs_with_an_empty_title(tmp_path):
    folders = {"query": tiny_models.bert(tmp_path / "query"), "document": tiny_models.bert(tmp_path / "document")}
    found = encoder(
        tmp_path,
        pooling="cls",
        query=Side(max_tokens=LIMIT, repository="org/Query"),
        document=Side(max_tokens=LIMIT, repository="org/Article", pair_with_empty=True),
    )
    tokenizer, model = plain(folders["query"])
    queries = [
        hidden_states(model, tokenizer(text, truncation=True, max_length=LIMIT)["input_ids"])[0] for text in TEXTS
    ]
    agree(found.encode(TEXTS, "query").vectors, torch.stack(queries))
    tokenizer, model = plain(folders["document"])
    documents = []
    for text in TEXTS:
        body = tokenizer(text, add_special_tokens=False)["input_ids"][: LIMIT - 3]
        ids = [tokenizer.cls_token_id, tokenizer.sep_token_id, *body, tokenizer.sep_token_id]
        types = torch.tensor([[0, 0] + [1] * (len(body) + 1)])
        documents.append(hidden_states(model, ids, token_type_ids=types)[0])
    agree(found.encode(TEXTS, "document").vectors, torch.stack(documents))
    assert found.key("query")["revision"] != found.key("document")["revision"]


def test_a_variant_may_encode_queries_with_the_encoder_of_documents(tmp_path):
    tiny_models.bert(tmp_path / "query"), tiny_models.bert(tmp_path / "document")
    side = Side(max_tokens=LIMIT, repository="org/Article")
    found = encoder(tmp_path, pooling="cls", query=side, document=side)
    assert np.array_equal(found.encode(TEXTS, "query").vectors, found.encode(TEXTS, "document").vectors)
    assert found.key("query") == found.key("document")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["gpt_neox", "gemma", "mistral"])
def test_a_decoder_pools_its_last_token_after_an_end_of_sequence(kind, side, tmp_path):
    folder = getattr(tiny_models, kind)(tmp_path / kind, side)
    eos = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True).eos_token_id
    found = encoder(folder, pooling="last", append_eos=True)
    agree(found.encode(TEXTS, "query").vectors, last_token(folder, [PREFIX + text for text in TEXTS], eos))
    agree(found.encode(TEXTS, "document").vectors, last_token(folder, TEXTS, eos))


def test_an_end_of_sequence_that_the_tokenizer_adds_is_not_added_twice(tmp_path):
    folder = tiny_models.mistral(tmp_path / "mistral", template="<s> $A </s>")
    agree(encoder(folder, pooling="last", append_eos=True).encode(TEXTS, "document").vectors, last_token(folder, TEXTS))


def test_a_text_that_ends_in_the_end_of_sequence_gets_no_second_one(tmp_path):
    folder = tiny_models.mistral(tmp_path / "mistral")
    found = encoder(folder, pooling="last", append_eos=True).encode(["heart</s>", "heart"], "document").vectors
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_qwen3_pools_the_token_that_its_tokenizer_appends(side, tmp_path):
    folder = tiny_models.qwen3(tmp_path / "qwen3", side)
    found = encoder(folder, pooling="last", normalise=True)
    agree(found.encode(TEXTS, "query").vectors, unit(last_token(folder, [PREFIX + text for text in TEXTS])))


def test_a_sliding_window_is_kept(tmp_path):
    folder = tiny_models.mistral(tmp_path / "mistral", window=8)
    eos = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True).eos_token_id
    agree(
        encoder(folder, pooling="last", append_eos=True).encode(TEXTS, "document").vectors,
        last_token(folder, TEXTS, eos),
    )


def both_ways(model, ids):
    """Return a Mistral's last states with attention in both directions, layer by layer, in plain torch."""
    heads, groups = model.config.num_attention_heads, model.config.num_key_value_heads
    with torch.no_grad():
        x = model.embed_tokens(torch.tensor(ids))
        speeds = 10_000.0 ** -torch.arange(0, 1, 2 * heads / model.config.hidden_size)
        angles = (torch.arange(len(ids))[:, None] * speeds).repeat(1, 2)
        cos, sin = angles.cos(), angles.sin()

        def turned(part):
            half = part.shape[-1] // 2
            return part * cos + torch.cat([-part[..., half:], part[..., :half]], dim=-1) * sin

        for layer in model.layers:
            y, attention = layer.input_layernorm(x), layer.self_attn
            q = turned(attention.q_proj(y).view(len(ids), heads, -1).transpose(0, 1))
            k = turned(attention.k_proj(y).view(len(ids), groups, -1).transpose(0, 1)).repeat_interleave(
                heads // groups, 0
            )
            v = attention.v_proj(y).view(len(ids), groups, -1).transpose(0, 1).repeat_interleave(heads // groups, 0)
            scores = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)
            x = x + attention.o_proj((scores @ v).transpose(0, 1).reshape(len(ids), -1))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return model.norm(x)


@pytest.mark.parametrize("side", ["left", "right"])
def test_gritlm_attends_both_ways_and_leaves_its_prompt_out_of_the_mean(side, tmp_path):
    folder = tiny_models.mistral(tmp_path / "grit", side)
    tokenizer, model = plain(folder)
    prompt = "<|user|>\nmedical question\n<|embed|>\n"
    skip = len(tokenizer(prompt)["input_ids"])
    wanted = []
    for text in TEXTS:
        ids = tokenizer(prompt + text, truncation=True, max_length=LIMIT)["input_ids"]
        states = both_ways(model, ids)
        wanted.append(states[skip:].mean(0) if len(ids) > skip else states.mean(0))
    sides = {"query": Side(prefix="<|user|>\n{kind}\n<|embed|>\n", max_tokens=LIMIT)}
    found = encoder(folder, pooling="mean", pool_prompt=False, bidirectional=True, normalise=True, **sides)
    agree(found.encode(TEXTS, "query").vectors, unit(torch.stack(wanted)))


def test_every_layer_of_a_bidirectional_decoder_looks_ahead(tmp_path):
    from r2med.models.encoders.transformer import Forward

    model = transformers.AutoModel.from_pretrained(tiny_models.mistral(tmp_path / "m"), attn_implementation="eager")
    model.config.output_attentions, seen = True, []  # older releases keep them only if asked
    for layer in model.layers:
        layer.self_attn.register_forward_hook(lambda module, inputs, output: seen.append(output[1]))
    forward = Forward(model.eval(), "cpu", bidirectional=True)
    seen.clear()
    with torch.inference_mode():
        forward.model(**forward.inputs(np.array([[5, 6, 7, 8, 9], [5, 6, 7, 1, 1]]), np.array([5, 3])))
    assert len(seen) == 3
    for attention in seen:  # texts × heads × from × to
        assert (attention[0] > 0).all()
        assert (attention[1, :, :3, :3] > 0).all()
        assert (attention[1, :, :3, 3:] == 0).all()


ARCHITECTURES = {
    "bert": {"pooling": "mean"},
    "gemma": {"pooling": "last", "append_eos": True},
    "mistral": {"pooling": "mean", "bidirectional": True, "pool_prompt": False},
}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_budget_order_and_number_of_devices_do_not_matter(kind, tmp_path):
    folder = getattr(tiny_models, kind)(tmp_path / kind)
    settings = ARCHITECTURES[kind]
    alone = encoder(folder, tokens=1, **settings).encode(TEXTS, "query").vectors
    together = encoder(folder, tokens=100_000, **settings).encode(TEXTS, "query").vectors
    np.testing.assert_allclose(alone, together, rtol=2e-4, atol=2e-5)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    other = encoder(folder, tokens=300, device="cpu,cpu", **settings)
    shuffled = other.encode([TEXTS[i] for i in order], "query").vectors
    np.testing.assert_allclose(alone[order], shuffled, rtol=2e-4, atol=2e-5)


def test_tokens_and_cut_texts_are_counted(tmp_path):
    found = encoder(tiny_models.bert(tmp_path / "bert"), pooling="cls")
    cost = found.encode(TEXTS, "document").cost
    assert (cost.texts, cost.cut) == (10, 2)
    assert 2 * LIMIT < cost.tokens < 10 * LIMIT


def test_no_texts_give_no_rows(tmp_path):
    assert encoder(tiny_models.bert(tmp_path / "bert"), pooling="cls").encode([], "query").vectors.shape == (0, 32)


def test_generated_text_is_encoded_as_the_card_says(tmp_path):
    folder = tiny_models.bert(tmp_path / "bert")
    bare = encoder(folder, pooling="cls", document=Side(prefix="passage: ", max_tokens=LIMIT))
    like_documents = encoder(folder, pooling="cls", generated="document", document=bare._card.document)
    assert bare.key("generated")["prefix"] == ""
    assert np.array_equal(like_documents.encode(TEXTS, "generated").vectors, bare.encode(TEXTS, "document").vectors)


def test_the_query_prefix_is_not_part_of_the_description_of_documents(tmp_path):
    folder = tiny_models.bert(tmp_path / "bert")
    one = encoder(folder, pooling="cls")
    other = encoder(folder, pooling="cls", query=Side(prefix="other: ", max_tokens=9))
    assert one.key("document") == other.key("document")
    assert one.key("query") != other.key("query")


def test_describing_loads_no_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(Tower, "__init__", None)
    assert encoder(tiny_models.bert(tmp_path / "bert"), pooling="cls").key("query")["pooling"] == "cls"


def test_weights_are_loaded_once_for_all_datasets(tmp_path, monkeypatch):
    folder, loads = tiny_models.bert(tmp_path / "bert"), []
    monkeypatch.setattr(Tower, "__init__", lambda *a, whole=Tower.__init__: (loads.append(1), whole(*a))[1])
    with Runtime(device="cpu", model_paths={"tiny": folder}) as runtime:
        for _ in range(3):
            open_encoder(card(pooling="cls"), ANY_DATASET, runtime).encode(["a"], "query")
    assert len(loads) == 1
    encoder(folder, pooling="cls").encode(["a"], "query")
    assert len(loads) == 2  # another runtime sees nothing of the first


def test_a_limit_beyond_the_positions_of_the_model_gives_a_one_line_error(tmp_path):
    found = encoder(tiny_models.bert(tmp_path / "bert"), pooling="cls", query=Side(max_tokens=512))
    with pytest.raises(UserError, match=r"allows 512 tokens.* 64 positions"):
        found.encode(["a"], "query")


def test_running_out_of_memory_once_makes_smaller_batches(tmp_path, monkeypatch):
    from r2med.models.encoders.transformer import Forward

    folder = tiny_models.bert(tmp_path / "bert")
    whole, call, sizes = Forward.inputs, encoder(folder, pooling="mean").encode(TEXTS, "query").vectors, []

    def limited(self, ids, lengths, types=None):
        sizes.append(ids.size)
        if ids.size > 120:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory")
        return whole(self, ids, lengths, types)

    monkeypatch.setattr(Forward, "inputs", limited)
    found = encoder(folder, pooling="mean")
    np.testing.assert_allclose(found.encode(TEXTS, "query").vectors, call, rtol=2e-4, atol=2e-5)
    sizes.clear()
    found.encode(TEXTS, "query")
    assert max(sizes) <= 120  # what did not fit is not tried again


def test_the_error_for_an_overflow_names_the_text(tmp_path):
    from safetensors.torch import load_file, save_file

    from r2med.models.encoders.encoder import NotFiniteError

    folder = tiny_models.bert(tmp_path / "bert")
    tensors = load_file(folder / "model.safetensors")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tensors["embeddings.word_embeddings.weight"][tokenizer("tax")["input_ids"][1]] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NotFiniteError) as caught:
        encoder(folder, pooling="mean").encode(["heart", "attack", "tax law", "gut"], "document")
    assert caught.value.index == 2
