"""Tiny models with random weights and real tokenizers, saved as a hub would hold them."""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "A young woman with facial swelling after dental work, and an aunt who died of choking.",
    "Hereditary angioedema is caused by a deficiency of C1 esterase inhibitor.",
    "Represent the Medical paragraph for retrieval: heart attack is also called myocardial infarction.",
    "Instruct: Given a medical question, retrieve relevant passages that help answer the question\nQuery: why",
    "Represent this passage\npassage: tax law is not medicine, but doctors pay taxes too.",
    "Which bacteria live in the gut, and what do they eat?",
    "<|user|>\nGiven a post, retrieve similar cases\n<|embed|>\n",
]
"""What the tokenizers learn from."""

TEXTS = [
    "heart attack",
    "",
    "A young woman with facial swelling after dental work, and an aunt who died of choking. " * 4,
    "x",
    "tax law",
    "Which bacteria live in the gut, and what do they eat? Hereditary angioedema is caused by a deficiency.",
    "  spaces  around  ",
    "naïve café 心脏 🫀",
    "myocardial infarction",
    "the " * 200,
]
"""Texts of every length, for limits of 48 tokens or so."""

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


def _word_piece() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    tokenizer.decoder = decoders.WordPiece()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def _byte_level(template: str, side: str = "right", **special: str) -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = sorted(set(special.values()))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=names, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if template != "$A":
        ids = [(name, tokenizer.token_to_id(name)) for name in names if name in template]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, padding_side=side, **special)


def _unigram() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Replace("  ", " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    names = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=names, unk_token="<unk>")
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    inputs = ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, **special)


def _save(
    folder: Path,
    config: transformers.PretrainedConfig,
    tokenizer: transformers.PreTrainedTokenizerFast,
    kind: type = transformers.AutoModel,
) -> Path:
    torch.manual_seed(len(folder.name))
    model = kind.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _config(kind: type, tokenizer: transformers.PreTrainedTokenizerFast, **settings: object) -> object:
    # Weights far larger than a trained model's first ones: attention must matter for a test to notice its mask.
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "eos", "bos")}
    return kind(**{**SMALL, "vocab_size": len(tokenizer), "initializer_range": 0.3, **ids, **settings})


def bert(folder: Path, positions: int = 64, layers: int = 3) -> Path:
    """Save a BERT, as contriever, bge and either of MedCPT's encoders; engines take seconds to compile a layer."""
    tokenizer = _word_piece()
    settings = {"max_position_embeddings": positions, "num_hidden_layers": layers}
    return _save(folder, _config(transformers.BertConfig, tokenizer, **settings), tokenizer)


def gpt_neox(folder: Path, side: str = "right", positions: int = 128) -> Path:
    """Save a GPT-NeoX whose tokenizer adds nothing, as BMRetriever-410M."""
    tokenizer = _byte_level("$A", side, eos_token="<|endoftext|>", pad_token="<|padding|>")
    return _save(folder, _config(transformers.GPTNeoXConfig, tokenizer, max_position_embeddings=positions), tokenizer)


def gemma(folder: Path, side: str = "right", positions: int = 128) -> Path:
    """Save a Gemma whose tokenizer begins with <bos>, as BMRetriever-2B."""
    tokenizer = _byte_level("<bos> $A", side, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>")
    settings = {"num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": positions}
    return _save(folder, _config(transformers.GemmaConfig, tokenizer, **settings), tokenizer)


def mistral(
    folder: Path,
    side: str = "right",
    template: str = "<s> $A",
    window: int | None = None,
    positions: int = 128,
    layers: int = 3,
) -> Path:
    """Save a Mistral, as e5, sfr and GritLM; without a padding token, as theirs."""
    tokenizer = _byte_level(template, side, bos_token="<s>", eos_token="</s>")
    settings = {"num_key_value_heads": 2, "max_position_embeddings": positions, "sliding_window": window}
    settings["num_hidden_layers"] = layers
    return _save(folder, _config(transformers.MistralConfig, tokenizer, **settings), tokenizer)


def qwen3(folder: Path, side: str = "left") -> Path:
    """Save a Qwen3 whose tokenizer appends the token that is pooled, and pads on the left."""
    tokenizer = _byte_level("$A <|endoftext|>", side, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    settings = {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128}
    return _save(folder, _config(transformers.Qwen3Config, tokenizer, **settings), tokenizer)


def instructor(folder: Path, limit: int = 48) -> Path:
    """Save a T5 encoder with mean pooling, a dense layer and normalisation, as Instructor on the hub."""
    from safetensors.torch import save_file

    tokenizer = _unigram()
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        initializer_factor=3.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(7)
    transformers.T5EncoderModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    names = {
        "": "sentence_transformers.models.Transformer",
        "1_Pooling": "sentence_transformers.models.Pooling",
        "2_Dense": "sentence_transformers.models.Dense",
        "3_Normalize": "sentence_transformers.models.Normalize",
    }
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(names.items())]
    _json(folder / "modules.json", modules)
    _json(folder / "sentence_bert_config.json", {"max_seq_length": limit, "do_lower_case": False})
    _json(folder / "1_Pooling/config.json", {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    dense = {"in_features": 32, "out_features": 24, "bias": False}
    dense["activation_function"] = "torch.nn.modules.linear.Identity"
    _json(folder / "2_Dense/config.json", dense)
    save_file({"linear.weight": torch.randn(24, 32)}, folder / "2_Dense/model.safetensors")
    (folder / "3_Normalize").mkdir()
    return folder


def sentence_bert(folder: Path, layers: int = 3, **config: object) -> Path:
    """Save a BERT with mean pooling as sentence-transformers does, with prompts and the like in its config."""
    bert(folder, layers=layers)
    names = {"": "sentence_transformers.models.Transformer", "1_Pooling": "sentence_transformers.models.Pooling"}
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(names.items())]
    _json(folder / "modules.json", modules)
    _json(folder / "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False})
    _json(folder / "1_Pooling/config.json", {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    _json(folder / "config_sentence_transformers.json", config)
    return folder


REMOTE_CODE = '''
import torch
from transformers import AutoTokenizer, BertConfig, BertModel


class OddConfig(BertConfig):
    model_type = "odd"


class OddModel(BertModel):
    """Mean of all tokens but the instruction's, times two, as a tensor."""

    config_class = OddConfig

    def encode(self, prompts, instruction="", max_length=512, **kwargs):
        tokenizer = AutoTokenizer.from_pretrained(self.config._name_or_path)
        skip = len(tokenizer(instruction)["input_ids"]) - 1 if instruction else 0
        texts = [instruction + p for p in prompts]
        inputs = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=max_length)
        mask = inputs["attention_mask"].clone()
        hidden = self(input_ids=inputs["input_ids"], attention_mask=mask).last_hidden_state
        mask[:, :skip] = 0
        weights = mask[:, :, None].float()
        return 2 * (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
'''


def remote_code(folder: Path) -> Path:
    """Save a model whose code comes with its weights, as NV-Embed."""
    bert(folder)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "odd.OddConfig", "AutoModel": "odd.OddModel"}
    config["model_type"] = "odd"
    config["architectures"] = ["OddModel"]
    _json(folder / "config.json", config)
    (folder / "odd.py").write_text(REMOTE_CODE)
    return folder


OWN_ENCODE = '''
import torch
from transformers import AutoTokenizer, PretrainedConfig, PreTrainedModel


class OwnConfig(PretrainedConfig):
    model_type = "own-encode"

    def __init__(self, vocab_size=1, **settings):
        super().__init__(**settings)
        self.vocab_size = vocab_size


class OwnModel(PreTrainedModel):
    """A text is the mean of its tokens, each turned by how far behind the instruction it stands."""

    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.tokens = torch.nn.Embedding(config.vocab_size, 16)
        self.post_init()

    def encode(self, prompts, instruction="", max_length=4096, **kwargs):
        tokenizer = AutoTokenizer.from_pretrained(self.config._name_or_path)
        skip = len(tokenizer(instruction)["input_ids"]) if instruction else 0
        rows = []
        for prompt in prompts:
            ids = tokenizer(instruction + prompt, truncation=True, max_length=max_length)["input_ids"]
            states = self.tokens(torch.tensor(ids))
            turned = states * torch.cos(torch.arange(len(ids)) / 7)[:, None] + states.mean(0)
            rows.append(turned[min(skip, len(ids) - 1) :].mean(0))
        return torch.stack(rows)
'''


def own_encode(folder: Path) -> Path:
    """Save a model that reads texts of any length with code of its own, as NV-Embed, in no time."""
    from safetensors.torch import save_file

    tokenizer = _byte_level("<s> $A", bos_token="<s>", eos_token="</s>")
    tokenizer.save_pretrained(folder)
    auto = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    _json(folder / "config.json", {"model_type": "own-encode", "auto_map": auto, "vocab_size": len(tokenizer)})
    torch.manual_seed(3)
    weights = {"tokens.weight": torch.randn(len(tokenizer), 16)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "own.py").write_text(OWN_ENCODE)
    return folder


def _json(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
