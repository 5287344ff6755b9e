"""Model cards contain the facts of the benchmark, and an invalid card gives a one-line error."""

import pytest

from r2med.data.dataset_cards import cards
from r2med.foundation.core.errors import UserError
from r2med.models.encoders.model_cards import MODELS, resolve_card
from r2med.models.llm.llm_cards import LLMS

TASK = "Instruct: Given a Medical Exam, retrieve relevant passages that help answer the exam\nQuery: "
EXAM = cards()["MedQA-Diag"].instruction

# name: model, pooling, normalised, most tokens of a document, similarity
FACTS = {
    "contriever": ("facebook/contriever-msmarco", "mean", False, 512, "dot"),
    "inst-l": ("hkunlp/instructor-large", "mean", True, 512, "cosine"),
    "inst-xl": ("hkunlp/instructor-xl", "mean", True, 512, "cosine"),
    "bmr-410m": ("BMRetriever/BMRetriever-410M", "last", False, 512, "dot"),
    "bmr-2b": ("BMRetriever/BMRetriever-2B", "last", False, 1024, "dot"),
    "bmr-7b": ("BMRetriever/BMRetriever-7B", "last", False, 2048, "dot"),
    "bge": ("BAAI/bge-large-en-v1.5", "cls", True, 512, "cosine"),
    "e5": ("intfloat/e5-mistral-7b-instruct", "last", True, 2048, "cosine"),
    "grit": ("GritLM/GritLM-7B", "mean", True, 2048, "cosine"),
    "sfr": ("Salesforce/SFR-Embedding-Mistral", "last", True, 2048, "cosine"),
    "nv": ("nvidia/NV-Embed-v2", "", True, 4096, "cosine"),
    "openai": ("text-embedding-3-large", "", False, 6000, "cosine"),
    "voyage": ("voyage-3", "", False, 16000, "cosine"),
}


@pytest.mark.parametrize("name", FACTS)
def test_every_retriever_of_the_benchmark_has_the_published_facts(name):
    card = MODELS.card(name)
    facts = (card.repository, card.pooling, card.normalise, card.document.max_tokens, card.similarity)
    assert facts == FACTS[name]


def test_medcpt_has_two_towers_and_pairs():
    card = MODELS.card("medcpt")
    assert card.side("query").repository == "ncbi/MedCPT-Query-Encoder"
    assert card.side("document").repository == card.side("generated").repository == "ncbi/MedCPT-Article-Encoder"
    assert card.document.pair_with_empty


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("e5", TASK),
        ("sfr", TASK),
        ("nv", TASK),
        ("bmr-2b", TASK.removeprefix("Instruct: ")),
        ("grit", "<|user|>\nGiven a Medical Exam, retrieve relevant passages that help answer the exam\n<|embed|>\n"),
        ("bge", "Represent this sentence for searching relevant passages: "),
        ("inst-l", "Represent the Medical Exam for retrieving relevant paragraphs that help answer the exam: "),
        ("contriever", ""),
    ],
)
def test_prefixes_contain_the_words_of_the_dataset(name, prefix):
    assert MODELS.card(name).query.prefix_for(EXAM) == prefix


AS_REASONEMBED_RAN = "reasonembed reasonembed-4b reasonembed-llama reasonembed-basic-4b reasonembed-basic-8b " + (
    "reasonembed-basic-llama rader diver gte-qwen2 qwen3-4b qwen3-8b"
)


@pytest.mark.parametrize("name", AS_REASONEMBED_RAN.split())
def test_reasonembed_s_instructions_end_with_a_full_stop_and_its_texts_at_512_tokens(name):
    card = MODELS.card(f"{name}:512")
    assert card.query.prefix_for(EXAM) == TASK.replace("exam\n", "exam.\n")
    assert (card.query.max_tokens, card.document.max_tokens, card.document.prefix) == (512, 512, "")
    assert (card.pooling, card.normalise) == ("last", True)


def test_reasonir_as_reasonembed_ran_it_keeps_its_own_marks():
    card = MODELS.card("reasonir:512")
    words = "Given a Medical Exam, retrieve relevant passages that help answer the exam."
    assert card.query.prefix_for(EXAM) == f"<|user|>\n{words}\n<|embed|>\n"


@pytest.mark.parametrize("name", ["diver", "diver-1020", "diver-1.7b", "diver-0.6b"])
def test_diver_as_published_has_one_instruction_for_all_datasets(name):
    card = MODELS.card(f"{name}:published")
    instruction = "Given a web search query, retrieve relevant passages that answer the query"
    assert card.query.prefix_for(EXAM) == f"Instruct: {instruction}\nQuery:"
    assert (card.query.max_tokens, card.document.max_tokens) == (16384, 16384)


INSTRUCTOR = {
    "Biology": ("Biology post for retrieving relevant paragraphs", "Biology paragraph"),
    "Bioinformatics": ("Bioinformatics post for retrieving relevant paragraphs", "Bioinformatics paragraph"),
    "Medical-Sciences": ("Medical Science post for retrieving relevant paragraphs", "Medical Science paragraph"),
    "MedXpertQA-Exam": (
        "Medical Exam for retrieving relevant paragraphs that help answer the exam",
        "Medical paragraph",
    ),
    "MedQA-Diag": ("Medical Exam for retrieving relevant paragraphs that help answer the exam", "Medical paragraph"),
    "PMC-Treatment": (
        "Clinical Case for retrieving relevant paragraphs that help answer the case",
        "Medical paragraph",
    ),
    "PMC-Clinical": ("Clinical Case for retrieving similar cases that help diagnose the case", "Clinical Case"),
    "IIYi-Clinical": ("Clinical Case for retrieving similar cases that help diagnose the case", "Clinical Case"),
}


@pytest.mark.parametrize("dataset", INSTRUCTOR)
@pytest.mark.parametrize("model", ["inst-l", "inst-xl", "inst-l:published"])
def test_instructor_gets_the_instructions_of_the_benchmark(model, dataset):
    instruction, (query, document) = cards()[dataset].instruction, INSTRUCTOR[dataset]
    card = MODELS.card(model)
    assert card.query.prefix_for(instruction) == f"Represent the {query}: "
    assert card.document.prefix_for(instruction) == f"Represent the {document} for retrieval: "


# name: max tokens and prefix of a query, and those of generated text: by default, and as published
GENERATED = {
    "nv": ((4096, ""), (4096, TASK)),
    "inst-l": ((512, ""), (512, INSTRUCTOR["MedQA-Diag"][0])),
    "inst-xl": ((512, ""), (512, INSTRUCTOR["MedQA-Diag"][0])),
    "grit": ((2048, "<|embed|>"), (512, "<|user|>\nGiven a Medical Exam")),
    "medcpt": ((512, ""), (512, "")),
    "voyage": ((16000, ""), (16000, "")),
}


@pytest.mark.parametrize("name", GENERATED)
def test_published_variants_encode_generated_text_like_a_query(name):
    for card, (limit, prefix) in zip((MODELS[name], MODELS[f"{name}:published"]), GENERATED[name], strict=True):
        side = card.side("generated")
        assert side.max_tokens == limit
        assert prefix in side.prefix_for(EXAM) if prefix else not side.prefix
    published = MODELS[f"{name}:published"]
    assert published.side("generated") == published.side("query") != MODELS[name].side("generated")


def test_published_medcpt_encodes_generated_text_alone_and_not_as_a_pair():
    assert MODELS["medcpt"].side("generated").pair_with_empty
    side = MODELS["medcpt:published"].side("generated")
    assert (side.repository, side.pair_with_empty) == ("ncbi/MedCPT-Article-Encoder", False)


def test_published_variants_exist_beside_the_correct_defaults():
    assert MODELS.card("medcpt:published").query.repository == "ncbi/MedCPT-Article-Encoder"
    assert MODELS.card("medcpt:published").similarity == "cosine"
    assert (MODELS.card("grit").query.max_tokens, MODELS.card("grit:published").query.max_tokens) == (2048, 512)
    assert MODELS.card("contriever:published").similarity == "cosine"


def test_generated_text_gets_no_prefix_unless_the_card_says_so():
    assert MODELS.card("e5").side("generated").prefix == ""
    assert MODELS.card("e5").side("generated").max_tokens == MODELS.card("e5").query.max_tokens
    assert MODELS.card("grit").side("generated").prefix == "<|embed|>\n"


def test_models_with_published_records_have_cards():
    for name in (
        "qwen3-0.6b",
        "qwen3-4b",
        "qwen3-8b",
        "reasonir",
        "reasonembed",
        "diver",
        "gte-qwen2",
        "inf",
        "minilm",
    ):
        assert MODELS.card(name).licence


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('loader = "transformers"\npoling = "cls"\n', "poling"),
        ('loader = "transfomers"\n', "loader"),
        ("loader = \n", "not a TOML card"),
        ('loader = "transformers"\n[query]\nmax_tokens = "many"\n', "query.max_tokens"),
        ('loader = "transformers"\n[variants.x]\nsimilarity = "close"\n', "similarity"),
    ],
)
def test_an_invalid_card_gives_a_one_line_error_with_file_and_field(tmp_path, content, says):
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(UserError) as error:
        MODELS.read_file(tmp_path / "mine.toml", "mine")
    assert "mine.toml" in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_every_llm_of_the_benchmark_has_a_card():
    names = "qwen-7b qwen-32b qwen-72b llama-70b gpt4 o3-mini r1-qwen-32b r1-llama-70b huatuo-o1-70b qwq-32b qwen3-32b"
    assert set(names.split()) <= set(LLMS)
    assert LLMS.card("o3-mini").api_style == "reasoning"
    assert (LLMS.card("qwq-32b").answer, LLMS.card("huatuo-o1-70b").answer) == ("think", "final-response")
    assert LLMS.card("qwen3-32b").thinking is True
    assert (LLMS.card("gpt4").temperature, LLMS.card("gpt4").top_p) == (0.8, 0.8)
    assert (LLMS.card("qwen-7b").temperature, LLMS.card("qwen-7b").max_tokens) == (0.7, 10240)


def test_unknown_names_offer_the_nearest():
    with pytest.raises(UserError, match="did you mean bge"):
        MODELS.card("bgee")
    assert "medcpt:published" in MODELS


def test_the_error_for_a_model_without_a_card_shows_other_ways_to_run_it():
    with pytest.raises(UserError, match=r"hf:ORG/NAME and mteb:ORG/NAME run others"):
        resolve_card("jina-v3")
