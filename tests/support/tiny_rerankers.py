"""Tiny cross-encoders with random weights and real tokenizers, saved as a hub would hold them."""

import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from support.tiny_models import SENTENCES, _config, _save, _word_piece

LONG = "Hereditary angioedema is caused by a deficiency of C1 esterase inhibitor. " * 4

PAIRS = [
    ("heart attack", "myocardial infarction"),
    ("", "tax law is not medicine"),
    ("why", ""),
    ("Which bacteria live in the gut?", LONG),
    ("swelling", "x"),
    ("facial swelling after dental work", "Hereditary angioedema is caused by a deficiency."),
    ("naïve café 心脏 🫀", "  spaces  around  "),
    ("heart attack", "doctors pay taxes too"),
    ("heart attack", LONG),
]
"""Pairs of every length, for limits of 48 tokens or so; all queries are short enough to be kept."""


def bert(folder: Path, labels: int = 2, positions: int = 64, layers: int = 3) -> Path:
    """Save a BERT with a classification head, as monoBERT (two labels) and MedCPT's (one)."""
    # As BERT's own tokenizer, it tells the model which of the two texts a token belongs to.
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    backend = _word_piece()
    names = {f"{name}_token": getattr(backend, f"{name}_token") for name in ("pad", "unk", "cls", "sep", "mask")}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend.backend_tokenizer, model_input_names=inputs, **names
    )
    settings = {"max_position_embeddings": positions, "num_labels": labels, "num_hidden_layers": layers}
    config = _config(transformers.BertConfig, tokenizer, **settings)
    return _save(folder, config, tokenizer, transformers.AutoModelForSequenceClassification)


def xlm_roberta(
    folder: Path, side: str = "right", limit: int | None = None, positions: int = 64, layers: int = 3
) -> Path:
    """Save an XLM-RoBERTa with one logit, as bge-reranker: two positions more than it reads, for its padding."""
    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.Replace("  ", " ")
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=names, unk_token="<unk>")
    backend.train_from_iterator(SENTENCES, trainer)
    ids = [(name, backend.token_to_id(name)) for name in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=ids
    )
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    limits = {} if limit is None else {"model_max_length": limit}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        padding_side=side,
        model_input_names=["input_ids", "attention_mask"],
        **special,
        **limits,
    )
    settings = {"max_position_embeddings": positions + 2, "type_vocab_size": 1, "num_labels": 1}
    settings["num_hidden_layers"] = layers
    config = _config(transformers.XLMRobertaConfig, tokenizer, **settings)
    return _save(folder, config, tokenizer, transformers.AutoModelForSequenceClassification)


def _byte_level(side: str, pair: str = "", **special: str) -> transformers.PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    names = sorted(set(special.values()))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=names, initial_alphabet=alphabet)
    backend.train_from_iterator([*SENTENCES, "yes\n" * 50, "no\n" * 50], trainer)
    if pair:
        ids = [(name, backend.token_to_id(name)) for name in names if name in pair]
        single = pair.partition("$A")[0] + "$A"
        backend.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, padding_side=side, **special)


def llama(folder: Path, side: str = "right", positions: int = 128) -> Path:
    """Save a Llama as a language model, without a padding token and without a head for scores, as Llama-2."""
    tokenizer = _byte_level(side, "<s> $A <s>:1 $B:1", bos_token="<s>", eos_token="</s>")
    config = _config(transformers.LlamaConfig, tokenizer, max_position_embeddings=positions, num_key_value_heads=2)
    return _save(folder, config, tokenizer, transformers.AutoModelForCausalLM)


def lora(folder: Path, base: Path, suffix: str = "safetensors", **settings: object) -> Path:
    """Save an adapter for a base model as peft does: factors of some layers, and the head in whole."""
    torch.manual_seed(5)
    weights = transformers.AutoModelForCausalLM.from_pretrained(base).state_dict()
    config = {"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 4, "lora_alpha": 8, "modules_to_save": None, **settings}
    tensors = {}
    for name, weight in weights.items():
        module = name.removesuffix(".weight")
        if module.split(".")[-1] in ("q_proj", "v_proj", "down_proj"):
            outward, inward = weight.shape
            tensors[f"base_model.model.{module}.lora_A.weight"] = torch.randn(4, inward) / 4
            tensors[f"base_model.model.{module}.lora_B.weight"] = torch.randn(outward, 4) / 4
    width = weights["model.embed_tokens.weight"].shape[1]
    tensors["base_model.model.score.weight"] = torch.randn(1, width)
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    file = folder / f"adapter_model.{suffix}"
    save_file(tensors, file) if suffix == "safetensors" else torch.save(tensors, file)
    return folder


def qwen3(folder: Path, side: str = "left") -> Path:
    """Save a Qwen3 as a language model with tied embeddings, whose tokenizer knows yes and no, as Qwen3-Reranker."""
    tokenizer = _byte_level(side, eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token="<|im_start|>")
    heads = {"num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": True}
    config = _config(transformers.Qwen3Config, tokenizer, max_position_embeddings=512, **heads)
    return _save(folder, config, tokenizer, transformers.AutoModelForCausalLM)


def t5(folder: Path) -> Path:
    """Save a T5 with its sentinel tokens and a tokenizer of pieces that ends every text, as RankT5."""
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    sentinels = [f"<extra_id_{number}>" for number in range(12)]
    names = ["<pad>", "</s>", "<unk>", *sentinels]
    texts = [*SENTENCES, *(f"Query: {text} Document: {text}" for text in SENTENCES)]
    backend.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=160, special_tokens=names, unk_token="<unk>"))
    end = [("</s>", backend.token_to_id("</s>"))]
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=end)
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "additional_special_tokens": sentinels}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=["input_ids", "attention_mask"], **special
    )
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        initializer_factor=3.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    return _save(folder, config, tokenizer, transformers.AutoModelForSeq2SeqLM)
