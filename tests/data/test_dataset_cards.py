"""Cards: the facts of the eight datasets, the groups that follow, and a ninth that is one file more."""

from pathlib import Path

import pytest

from r2med.data import load
from r2med.data.dataset_cards import Instruction, cards, groups, home_group, read_card
from support.datasets import r2med_folder
from support.facts import error_states
from support.processes import python

ORDER = (
    "Biology",
    "Bioinformatics",
    "Medical-Sciences",
    "MedXpertQA-Exam",
    "MedQA-Diag",
    "PMC-Treatment",
    "PMC-Clinical",
    "IIYi-Clinical",
)

# name: queries, documents, positives, most positives of a query, revision
FACTS = {
    "Biology": (103, 57_359, 374, 19, "8b9fec2db9eda4b5742d03732213fbaee8169556"),
    "Bioinformatics": (77, 47_473, 227, 8, "6021fce366892cbfd7837fa85a4128ea93315e18"),
    "Medical-Sciences": (88, 34_810, 244, 8, "1b48911514c80bf9182222d99752ad75e23b4b47"),
    "MedXpertQA-Exam": (97, 61_379, 292, 8, "b457ea43db9ae5db74c3a3e5be0a213d0f85ac3a"),
    "MedQA-Diag": (118, 56_250, 522, 8, "78b585990279cc01a493f876c1b0cf09557fba57"),
    "PMC-Treatment": (150, 28_954, 315, 5, "53c489a44a3664ba352c07550b72b4525a5968d5"),
    "PMC-Clinical": (114, 60_406, 248, 4, "812829522f7eaa407ef82b96717be85788a50f7e"),
    "IIYi-Clinical": (129, 10_449, 457, 6, "974abbc9bc281c3169180a6aa5d7586cfd2f5877"),
}

INSTRUCTIONS = {
    "Biology": ("Biology post", "relevant passages that help answer the post"),
    "Bioinformatics": ("Bioinformatics post", "relevant passages that help answer the post"),
    "Medical-Sciences": ("Medical Science post", "relevant passages that help answer the post"),
    "MedXpertQA-Exam": ("Medical Exam", "relevant passages that help answer the exam"),
    "MedQA-Diag": ("Medical Exam", "relevant passages that help answer the exam"),
    "PMC-Treatment": ("Clinical Case", "relevant passages that help answer the case"),
    "PMC-Clinical": ("Clinical Case", "similar cases that help diagnose the case"),
    "IIYi-Clinical": ("Clinical Case", "similar cases that help diagnose the case"),
}

_POST = "Represent the {} post for retrieving relevant paragraphs: "
_PARAGRAPH = "Represent the {} paragraph for retrieval: "
_EXAM = "Represent the Medical Exam for retrieving relevant paragraphs that help answer the exam: "
_CASE = "Represent the Clinical Case for retrieving relevant paragraphs that help answer the case: "
_SIMILAR = "Represent the Clinical Case for retrieving similar cases that help diagnose the case: "
INSTRUCTOR = {
    "Biology": (_POST.format("Biology"), _PARAGRAPH.format("Biology")),
    "Bioinformatics": (_POST.format("Bioinformatics"), _PARAGRAPH.format("Bioinformatics")),
    "Medical-Sciences": (_POST.format("Medical Science"), _PARAGRAPH.format("Medical Science")),
    "MedXpertQA-Exam": (_EXAM, _PARAGRAPH.format("Medical")),
    "MedQA-Diag": (_EXAM, _PARAGRAPH.format("Medical")),
    "PMC-Treatment": (_CASE, _PARAGRAPH.format("Medical")),
    "PMC-Clinical": (_SIMILAR, "Represent the Clinical Case for retrieval: "),
    "IIYi-Clinical": (_SIMILAR, "Represent the Clinical Case for retrieval: "),
}


@pytest.mark.parametrize("name", ORDER)
def test_a_card_has_the_prompts_that_the_original_gave_instructor(name: str) -> None:
    instruction = cards()[name].instruction
    assert instruction is not None
    assert (instruction.fill("{inst_query}"), instruction.fill("{inst_document}")) == INSTRUCTOR[name]


def test_an_instruction_fills_only_the_names_it_knows_and_each_once() -> None:
    words = Instruction(kind="{what} post", what="passages", domain="Oncology")
    assert words.fill("Given a {kind}, retrieve {what}{query}") == "Given a {what} post, retrieve passages{query}"
    assert words.fill("{inst_document}") == "Represent the Oncology paragraph for retrieval: "
    assert words.fill("{inst_query}") == "Represent the {what} post for retrieving relevant paragraphs: "


def test_the_eight_cards_of_the_benchmark_come_first_and_in_its_order() -> None:
    assert tuple(cards())[:8] == ORDER
    assert sum(card.counts.queries for name, card in cards().items() if name in ORDER and card.counts) == 876


@pytest.mark.parametrize("name", ORDER)
def test_a_card_has_the_facts_of_its_dataset(name: str) -> None:
    card = cards()[name]
    assert card.counts and card.hub and card.instruction
    assert (*card.counts.model_dump().values(), card.hub.revision) == FACTS[name]
    assert card.hub.repository == f"R2MED/{name}"
    assert (card.instruction.kind, card.instruction.what) == INSTRUCTIONS[name]
    assert "CC-BY" in card.licence
    assert card.short


def test_groups_are_the_benchmark_the_demo_one_per_task_and_those_of_other_benchmarks() -> None:
    known = dict(groups())
    assert {group: len(known.pop(group)) for group in list(known)[5:]} == {
        "medical": 19,
        "bright": 12,
        "bright-long": 8,
        "bright-pro": 7,
        "nano": 10,
    }
    assert known == {
        "R2MED": ORDER,
        "demo": tuple(f"demo/{name}" for name in ORDER),
        "Q&A-reference": ORDER[:3],
        "clinical-evidence": ORDER[3:6],
        "clinical-case": ORDER[6:],
    }


# name: repository, config, split, queries, documents, positives (facts of the repositories and of MTEB)
OTHER_FACTS = {
    "NFCorpus": ("mteb/nfcorpus", "", "test", 323, 3_633, 12_334),
    "TREC-COVID": ("mteb/trec-covid", "", "test", 50, 171_332, 24_675),
    "SciFact": ("mteb/scifact", "", "test", 300, 5_183, 339),
    "CUREv1-fr": ("clinia/CUREv1", "fr", "all", 2_000, 244_600, 80_716),
    "CMedQA": ("mteb/CmedqaRetrieval", "", "dev", 3_999, 100_001, 7_449),
    "BRIGHT-leetcode": ("xlangai/BRIGHT", "", "leetcode", 142, 413_932, 262),
    "BRIGHT-long-pony": ("xlangai/BRIGHT", "long_documents", "pony", 112, 577, 769),
    "BRIGHT-Pro-economics": ("yale-nlp/Bright-Pro", "", "economics", 99, 52_240, 773),
    "NanoR2MED-MedQA-Diag": ("hakari-bench/NanoR2MED", "", "NanoR2MEDMedQADiag", 118, 10_000, 522),
    "NanoSciFact": ("mteb/NanoSciFactRetrieval", "", "train", 50, 2_919, 56),
}


@pytest.mark.parametrize("name", OTHER_FACTS)
def test_a_card_of_another_benchmark_has_the_facts_of_its_dataset(name: str) -> None:
    card = cards()[name]
    assert card.counts and card.hub
    counts = (card.counts.queries, card.counts.documents, card.counts.positives)
    assert (card.hub.repository, card.hub.config, card.hub.split, *counts) == OTHER_FACTS[name]


def test_other_benchmarks_have_the_sizes_of_their_papers() -> None:
    def total(group: str, field: str) -> int:
        return sum(getattr(cards()[name].counts, field) for name in groups()[group])

    assert total("bright", "queries") == 1_384
    assert (total("bright-pro", "queries"), total("bright-pro", "documents")) == (739, 526_319)
    assert total("bright-pro", "positives") == 5_272
    of_r2med = [name for name in groups()["nano"] if name.startswith("NanoR2MED")]
    assert sum(cards()[name].counts.positives for name in of_r2med) == 2_678  # type: ignore[union-attr]


def test_every_card_of_the_package_can_be_had_somewhere() -> None:
    for card in cards().values():
        assert card.hub is not None or card.by_hand
        assert card.short
        assert len(card.groups) == (0 if card.by_hand else 1)


def test_a_dataset_is_averaged_in_the_first_group_of_its_card() -> None:
    homes = ("Biology", "demo/Biology", "SciFact", "BRIGHT-pony", "own/SciFact", "mine", "BioASQ")
    assert [home_group(name) for name in homes] == ["R2MED", "demo", "medical", "bright", *["own data"] * 3]


def test_only_biology_is_also_left_out_of_an_average() -> None:
    assert [card.name for card in cards().values() if card.also_averaged_without] == ["Biology"]


def test_scenarios_are_those_of_the_benchmark() -> None:
    scenarios = [cards()[name].scenario for name in ORDER]
    assert scenarios == ["Q&A", "Q&A", "Q&A", "examination", "diagnosis", "treatment", "case", "case"]


def plugin(root: Path, name: str, card: str) -> Path:
    (root / "datasets").mkdir(parents=True, exist_ok=True)
    (root / "datasets" / f"{name}.toml").write_text(card)
    return root


def test_a_plugins_card_may_be_like_another(tmp_path: Path) -> None:
    folder = plugin(tmp_path / "mine", "Ninth", 'like = "MedQA-Diag"\nscenario = "prognosis"\ngroups = ["mine"]\n')
    plugin(folder, "Tenth", 'like = "Ninth"\n')
    told = python(
        "from r2med.data.dataset_cards import Instruction, cards, groups\n"
        "for name in ('Ninth', 'Tenth'):\n"
        "    card = cards()[name]\n"
        "    print(card.task, card.scenario, card.instruction.kind, card.counts, card.hub, sep='|')\n"
        "print(len(groups()['R2MED']), len(groups()['clinical-evidence']), groups()['mine'])",
        R2MED_PLUGINS=folder,
    )
    assert told.stderr == ""
    assert told.stdout.splitlines() == [
        "clinical evidence|prognosis|Medical Exam|None|None",
        "clinical evidence|prognosis|Medical Exam|None|None",
        "8 3 ('Ninth',)",
    ]


def test_a_card_may_name_a_folder_from_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r2med_folder(tmp_path / "mine" / "data" / "ninth")
    monkeypatch.setenv("R2MED_PLUGINS", str(plugin(tmp_path / "mine", "Ninth", 'folder = "../data/ninth"\n')))
    dataset = load("Ninth")
    assert (dataset.name, len(dataset.corpus), dataset.source) == ("Ninth", 3, "")
    plugin(tmp_path / "other", "Tenth", f'folder = "{tmp_path}/nowhere"\n')
    plugin(tmp_path / "other", "Eleventh", 'folder = "~nobody-of-this-name/x"\n')
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "other"))
    with error_states("~nobody-of-this-name/x", "home folder"):
        load("Tenth")
    (tmp_path / "other" / "datasets" / "Eleventh.toml").unlink()
    monkeypatch.setenv("R2MED_PLUGINS", f"{tmp_path}/other/")
    with error_states("card of Tenth", tmp_path / "nowhere"):
        load("Tenth")


def test_a_plugin_folder_of_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MED_PLUGINS", "~nobody-of-this-name/mine")
    with error_states("R2MED_PLUGINS", "~nobody-of-this-name/mine", "home folder"):
        list(cards())


@pytest.mark.parametrize(
    ("card", "facts"),
    [
        ('like = "Nothing"\n', ["like = 'Nothing'"]),
        ('like = ["Biology"]\n', ["like = \"['Biology']\""]),
        ("like = 3\n", ["like = '3'"]),
        ("task = " + "[" * 5000 + "]" * 5000 + "\n", ["TOML"]),
        ("order = " + "9" * 5000 + "\n", ["TOML"]),
        ("task = '\\ud800'\n".replace("'", '"'), ["TOML"]),
        ("task = 3\n", ["task", "quotes", "not 3"]),
        ("colour = 'red'\n", ["colour", "field"]),
        ("task = \n", ["TOML"]),
        ("[counts]\nqueries = 3\n", ["counts.documents", "needed"]),
    ],
)
def test_a_faulty_card_is_one_line_that_names_it(tmp_path: Path, card: str, facts: list[str]) -> None:
    folder = r2med_folder(tmp_path / "set")
    (folder / "card.toml").write_text(card)
    with error_states(folder / "card.toml", *facts):
        load(folder)


def test_like_takes_over_the_task_but_not_the_facts_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_text('like = "Biology"\nkind = "question"\n')
    card = read_card(path, "Mine")
    model = cards()["Biology"]
    assert (card.name, card.kind) == ("Mine", "question")
    assert (card.task, card.scenario, card.instruction) == (model.task, model.scenario, model.instruction)
    assert (card.counts, card.hub, card.groups, card.notes, card.also_averaged_without) == (None, None, (), (), False)


def test_a_folders_own_card_comes_before_that_of_its_name(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "Biology")
    (folder / "card.toml").write_text('task = "mine"\n')
    card = load(folder).card
    assert card is not None
    assert (card.name, card.task, card.counts) == ("Biology", "mine", None)


def test_the_card_of_pmc_treatment_claims_nothing_of_repeated_rows_that_was_not_looked_at() -> None:
    note = next(note for note in cards()["PMC-Treatment"].notes if "distinct ids" in note)
    assert "identical" not in note
    assert "the last counts" in note
