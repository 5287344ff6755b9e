"""What the benchmark's original does with a text, in plain torch and transformers: one text at a time, no batches.

Written from what is published about the original and from the libraries' documentation, and from nothing in `r2med`:
so that its encoders have something to agree with that they were not made from.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

from support import tiny_models

SHORT = ["heart attack", "A young woman with facial swelling.\nWhat is it?", 'naïve café 心脏, "and" its tax']
LONG = " ".join(np.random.default_rng(8).choice("heart tax of the gut a law and swelling infarction".split(), 5000))
"""Over every limit of the models that run here, and nowhere like itself."""

POSTS = {"Biology": "Biology", "Bioinformatics": "Bioinformatics", "Medical-Sciences": "Medical Science"}
EXAMS = ("MedXpertQA-Exam", "MedQA-Diag")
CASES = ("PMC-Clinical", "IIYi-Clinical")

TASKS = {
    **{
        name: f"Given a {field} post, retrieve relevant passages that help answer the post"
        for name, field in POSTS.items()
    },
    **dict.fromkeys(EXAMS, "Given a Medical Exam, retrieve relevant passages that help answer the exam"),
    "PMC-Treatment": "Given a Clinical Case, retrieve relevant passages that help answer the case",
    **dict.fromkeys(CASES, "Given a Clinical Case, retrieve similar cases that help diagnose the case"),
}
"""What instruction-tuned models are told before a query of each dataset."""

_EVIDENCE = "Represent the Medical paragraph for retrieval: "
_HELPS = "for retrieving relevant paragraphs that help answer the"

INSTRUCTOR_QUERY = {
    **{name: f"Represent the {field} post for retrieving relevant paragraphs: " for name, field in POSTS.items()},
    **dict.fromkeys(EXAMS, f"Represent the Medical Exam {_HELPS} exam: "),
    "PMC-Treatment": f"Represent the Clinical Case {_HELPS} case: ",
    **dict.fromkeys(CASES, "Represent the Clinical Case for retrieving similar cases that help diagnose the case: "),
}
INSTRUCTOR_DOCUMENT = {
    **{name: f"Represent the {field} paragraph for retrieval: " for name, field in POSTS.items()},
    **dict.fromkeys((*EXAMS, "PMC-Treatment"), _EVIDENCE),
    **dict.fromkeys(CASES, "Represent the Clinical Case for retrieval: "),
}


@dataclass(frozen=True)
class Treatment:
    """How one kind of text goes into a model."""

    prefix: str = ""
    limit: int = 512
    """Tokens, the special ones counted."""
    tower: str = ""
    """The folder of one of two encoders."""
    pair: bool = False
    """As the pair of an empty title and the text."""
    input_type: str = ""
    """What an API is told the text is."""
    quoted: bool = False
    """As JSON writes a string, with its line breaks made spaces."""


Vector = torch.Tensor
Embed = Callable[[Path, str, Treatment], Vector]


@dataclass(frozen=True)
class Original:
    """One of the benchmark's models: a tiny one of its architecture, and how it is used."""

    make: Callable[[Path], object]
    embed: Embed
    query: Callable[[str], Treatment]
    """Dataset -> how its queries are treated, by default."""
    document: Callable[[str], Treatment]
    similarity: str = "cosine"
    normalised: bool = True
    generated: str = "bare"
    """By default: bare (the query's limit and tower, no prefix), or as a document."""
    published_generated: str = "bare"
    """In the published rows: bare, or with the query's whole treatment."""
    published_query: Callable[[Treatment], Treatment] = lambda query: query
    """What the published rows did otherwise with queries."""
    published_text: Callable[[Treatment], Treatment] = lambda treatment: treatment
    """What the published rows did otherwise with all texts."""

    def treatment(self, role: str, dataset: str, published: bool) -> Treatment:
        """Return how a text is treated."""
        query, document = self.query(dataset), self.document(dataset)
        if published:
            query, document = self.published_text(self.published_query(query)), self.published_text(document)
        like = (self.published_generated if published else self.generated) if role == "generated" else role
        return {"query": query, "document": document, "bare": replace(query, prefix="")}[like]

    def vector(self, folder: Path, text: str, role: str, dataset: str, published: bool) -> Vector:
        """Return a text's vector."""
        vector = _embedded(self.embed, folder, text, self.treatment(role, dataset, published))
        return vector / vector.norm() if self.normalised else vector


@cache
def _embedded(embed: Embed, folder: Path, text: str, how: Treatment) -> Vector:
    return embed(folder, text, how)


@cache
def loaded(folder: Path, kind: type = transformers.AutoModel) -> tuple[Any, Any]:
    """Return a tokenizer and its model."""
    return transformers.AutoTokenizer.from_pretrained(folder), kind.from_pretrained(folder).eval()


def states(model: Any, **inputs: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        hidden: torch.Tensor = model(**inputs).last_hidden_state[0]
        return hidden


def _bert(folder: Path, text: str, how: Treatment) -> torch.Tensor:
    tokenizer, model = loaded(folder / how.tower)
    # Lists, since for a single text the library takes an empty one for none.
    texts = ([""], [how.prefix + text]) if how.pair else ([how.prefix + text],)
    inputs = tokenizer(*texts, truncation=True, max_length=how.limit, return_token_type_ids=True, return_tensors="pt")
    return states(model, **inputs)


def first_token(folder: Path, text: str, how: Treatment) -> Vector:
    return _bert(folder, text, how)[0]


def mean_of_tokens(folder: Path, text: str, how: Treatment) -> Vector:
    return _bert(folder, text, how).mean(0)


def last_token(folder: Path, text: str, how: Treatment) -> Vector:
    """Return the state of what the tokenizer ends a text with."""
    tokenizer, model = loaded(folder)
    inputs = tokenizer(how.prefix + text, truncation=True, max_length=how.limit, return_tensors="pt")
    assert inputs["input_ids"][0, -1] == tokenizer.eos_token_id
    return states(model, input_ids=inputs["input_ids"])[-1]


def appended_end(folder: Path, text: str, how: Treatment) -> Vector:
    """Return the state of the end-of-sequence token that is put behind a text, within the limit."""
    tokenizer, model = loaded(folder)
    ids = tokenizer(how.prefix + text, truncation=True, max_length=how.limit - 1)["input_ids"]
    return states(model, input_ids=torch.tensor([[*ids, tokenizer.eos_token_id]]))[-1]


def both_ways(folder: Path, text: str, how: Treatment) -> Vector:
    """Return the mean of a Mistral's states over a text without its prompt, where every token sees every other."""
    tokenizer, model = loaded(folder)
    ids = tokenizer(how.prefix + text, truncation=True, max_length=how.limit)["input_ids"]
    skip = len(tokenizer(how.prefix)["input_ids"]) if how.prefix else 0
    heads, groups, width = (
        getattr(model.config, name) for name in ("num_attention_heads", "num_key_value_heads", "hidden_size")
    )
    size, count = width // heads, len(ids)
    angles = torch.outer(torch.arange(count), 10_000.0 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)

    def split(rows: torch.Tensor, into: int) -> torch.Tensor:
        return rows.view(count, into, size).transpose(0, 1).repeat_interleave(heads // into, 0)

    def rotated(rows: torch.Tensor) -> torch.Tensor:
        first, second = rows.chunk(2, -1)
        return rows * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

    with torch.no_grad():
        rows = model.embed_tokens(torch.tensor(ids))
        for layer in model.layers:
            attention, normal = layer.self_attn, layer.input_layernorm(rows)
            queries = rotated(split(attention.q_proj(normal), heads))
            keys = rotated(split(attention.k_proj(normal), groups))
            weights = (queries @ keys.transpose(1, 2) / size**0.5).softmax(-1)
            mixed = (weights @ split(attention.v_proj(normal), groups)).transpose(0, 1).reshape(count, width)
            rows = rows + attention.o_proj(mixed)
            rows = rows + layer.mlp(layer.post_attention_layernorm(rows))
        mean: Vector = model.norm(rows)[skip:].mean(0)
        return mean


def instructor(folder: Path, text: str, how: Treatment) -> Vector:
    """Return the projected mean of a T5 encoder's states over the tokens that are not the instruction's."""
    tokenizer, model = loaded(folder, transformers.T5EncoderModel)
    settings = {"truncation": True, "max_length": how.limit, "return_offsets_mapping": True}
    inputs = tokenizer(how.prefix + text, **settings)
    hidden = states(model, input_ids=torch.tensor([inputs["input_ids"]]))
    # The blank that ends an instruction is part of the text's first token; what ends the text has no place in it.
    start = len(how.prefix.rstrip())
    own = [at >= start or at == end for at, end in inputs["offset_mapping"]]
    return hidden[torch.tensor(own)].mean(0) @ load_file(folder / "2_Dense/model.safetensors")["linear.weight"].T


def its_own_code(folder: Path, text: str, how: Treatment) -> Vector:
    """Return what the model's own `encode` says."""
    model = _with_code(folder)
    with torch.no_grad():
        vector: Vector = model.encode([text], instruction=how.prefix, max_length=how.limit)[0]
        return vector


@cache
def _with_code(folder: Path) -> Any:
    return transformers.AutoModel.from_pretrained(folder, trust_remote_code=True).eval()


def _two_towers(folder: Path) -> None:
    for tower in ("query", "document"):
        tiny_models.bert(folder / tower, positions=512)


def _nowhere(folder: Path) -> None:
    """API models have no weights here."""


def _no_embedding(folder: Path, text: str, how: Treatment) -> Vector:
    raise NotImplementedError


def _long_mistral(folder: Path, template: str = "<s> $A", positions: int = 2048) -> Path:
    # One layer: two thousand tokens take long enough in it.
    return tiny_models.mistral(folder, template=template, positions=positions, layers=1)


def _mistral(folder: Path) -> Path:
    # The tokenizers of e5 and sfr end every text themselves.
    return _long_mistral(folder, template="<s> $A </s>")


def _task(prefix: str, limit: int, suffix: str = "\nQuery: ") -> Callable[[str], Treatment]:
    return lambda dataset: Treatment(prefix + TASKS[dataset] + suffix, limit)


def _always(**settings: Any) -> Callable[[str], Treatment]:
    return lambda dataset: Treatment(**settings)


_INSTRUCTOR = Original(
    lambda folder: tiny_models.instructor(folder, limit=512),
    instructor,
    lambda dataset: Treatment(INSTRUCTOR_QUERY[dataset]),
    lambda dataset: Treatment(INSTRUCTOR_DOCUMENT[dataset]),
    published_generated="query",
)


def _bmr(make: Callable[..., Path], limit: int) -> Original:
    return Original(
        lambda folder: make(folder, positions=limit),
        appended_end,
        _task("", limit),
        _always(prefix="Represent this passage\npassage: ", limit=limit),
        similarity="dot",
        normalised=False,
    )


_LAST_TOKEN = Original(_mistral, last_token, _task("Instruct: ", 2048), _always(limit=2048))

ENCODERS = {
    "contriever": Original(
        lambda folder: tiny_models.bert(folder, positions=512),
        mean_of_tokens,
        _always(),
        _always(),
        similarity="dot",
        normalised=False,
    ),
    "medcpt": Original(
        _two_towers,
        first_token,
        _always(tower="query"),
        _always(tower="document", pair=True),
        similarity="dot",
        normalised=False,
        generated="document",
        published_generated="query",
        published_query=lambda query: replace(query, tower="document"),
    ),
    "inst-l": _INSTRUCTOR,
    "inst-xl": _INSTRUCTOR,
    "bmr-410m": _bmr(tiny_models.gpt_neox, 512),
    "bmr-2b": _bmr(tiny_models.gemma, 1024),
    "bmr-7b": _bmr(_long_mistral, 2048),
    "bge": Original(
        lambda folder: tiny_models.bert(folder, positions=512),
        first_token,
        _always(prefix="Represent this sentence for searching relevant passages: "),
        _always(),
    ),
    "e5": _LAST_TOKEN,
    "grit": Original(
        _long_mistral,
        both_ways,
        _task("<|user|>\n", 2048, "\n<|embed|>\n"),
        _always(prefix="<|embed|>\n", limit=2048),
        generated="document",
        published_generated="query",
        published_query=lambda query: replace(query, limit=512),
    ),
    "sfr": _LAST_TOKEN,
    "nv": Original(
        tiny_models.own_encode,
        its_own_code,
        _task("Instruct: ", 4096),
        _always(limit=4096),
        published_generated="query",
    ),
    "openai": Original(
        _nowhere,
        _no_embedding,
        _always(limit=6000),
        _always(limit=6000),
        published_text=lambda treatment: replace(treatment, quoted=True),
    ),
    "voyage": Original(
        _nowhere,
        _no_embedding,
        _always(limit=16_000, input_type="query"),
        _always(limit=16_000, input_type="document"),
        generated="document",
        published_generated="query",
        published_text=lambda treatment: replace(treatment, quoted=True),
    ),
}
"""Every model of the benchmark, by its name there."""
