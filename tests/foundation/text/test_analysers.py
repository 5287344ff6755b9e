"""Analysers of languages other than English give the stems of Snowball and the words of jieba."""

import random
from importlib import import_module
from pathlib import Path
from threading import Thread

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.text.analysers import analyser, chinese_words, installed_language
from r2med.foundation.text.english import english
from r2med.foundation.text.search_languages import search_language, search_languages

HERE = Path(__file__).parent
STEMMED = [code for code, language in search_languages().items() if language.stemmer]


def reference(code):
    """Return Snowball's stemmer as its authors translate it to Python. The analysers use the translation to C."""
    name = search_language(code).stemmer
    module = pytest.importorskip(f"snowballstemmer.{name}_stemmer")
    return getattr(module, f"{name.capitalize()}Stemmer")().stemWord


def without_accents(word):
    return word.translate(str.maketrans("àâäçéèêëîïíìóòôöõùûüúáã", "aaaceeeeiiiiooooouuuuaa")).replace("œ", "oe")


@pytest.mark.parametrize("code", ["de", "fr", "es"])
def test_a_thousand_words_have_the_stems_of_the_library(code):
    stem = reference(code)
    rows = [line.split("\t") for line in (HERE / f"stems_{code}.tsv").read_text(encoding="utf-8").splitlines()]
    words = [word for word, _ in rows]
    assert len(set(words)) == 1000
    assert [stem(word) for word in words] == [kept for _, kept in rows]  # fails if an update changes stems
    expected = [without_accents(kept) if code == "fr" else kept for _, kept in rows]
    assert [analyser(code).terms(word.upper() if word.isascii() else word) for word in words] == [
        [term] for term in expected
    ]


@pytest.mark.parametrize("code", STEMMED)
def test_every_stemmer_is_the_one_of_its_language(code):
    stem = reference(code)
    language = search_language(code)
    words = [f"{word}{word}" for word in sorted(language.stop_words)[:60] if "'" not in word]
    expected = [stem(word) for word in words if word not in language.stop_words]
    if language.folds_accents:
        expected = [without_accents(word) for word in expected]
    assert analyser(code).terms(" ".join(words)) == expected


@pytest.mark.parametrize("code", STEMMED)
def test_stop_words_are_left_out(code):
    assert analyser(code).terms(" ".join(search_language(code).stop_words)) == []


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        ("de", "Krankenhäuser", "KRANKENHAUS"),
        ("de", "Gefäße", "Gefaesse"),
        ("fr", "l'hôpital", "HOPITAL"),
        ("fr", "L’artère", "d'artères"),
        ("fr", "œsophage", "OESOPHAGE"),
        ("es", "articulaciones", "articulación"),
        ("it", "dell'infezione", "infezioni"),
        ("pl", "zapalenia", "zapalenie"),
        ("ru", "болезни", "болезнь"),
        ("de", "Entzu\u0308ndung", "Entzündungen"),  # an accent of its own, as in files from a Mac
    ],
)
def test_forms_of_a_word_have_one_term(code, one, other):
    assert analyser(code).terms(one) == analyser(code).terms(other) != []


def test_english_is_lucene_s_analysis():
    assert analyser("en").key == "lucene-english"
    assert analyser("en").terms is english


def test_chinese_words_are_those_of_jieba():
    jieba = pytest.importorskip("jieba")
    known = jieba.Tokenizer()
    known.FREQ, known.total = known.gen_pfdict(known.get_dict_file())  # without its file in the temporary folder
    known.initialized = True
    chance, words = (
        random.Random(0),
        [word for word in sorted(known.FREQ) if all("\u4e00" <= c <= "\u9fd5" for c in word)],
    )
    rare = [(0x3005, 0x3008), (0x3400, 0x4E00), (0x9FD6, 0xA000), (0xF900, 0xFB00), (0x20000, 0x323B0)]
    texts = ["糖尿病患者需要控制血糖今晨起胸痛向左臂放射", "面色㿠白口眼㖞斜", "㕮㕮咀"]
    for _ in range(500):
        signs = [chr(chance.randrange(*chance.choice(rare))) for _ in range(6)]
        signs += chance.choices(words, k=8) + [chr(chance.randrange(0x4E00, 0x9FD6)) for _ in range(4)]
        texts.append("".join(chance.sample(signs, len(signs))))
    assert [chinese_words(text) for text in texts] == [known.lcut(text) for text in texts]


def test_chinese_text_may_contain_other_scripts():
    text = "2型糖尿病，COVID-19的症状"
    located = analyser("zh").located_terms(text)
    assert [term for _, _, term in located] == ["2", "型", "糖尿病", "covid", "19", "症状"]
    assert all(text[start:stop].lower() == term for start, stop, term in located)


def test_korean_words_are_pairs_of_syllables_that_match_without_the_particle():
    assert analyser("ko").terms("당뇨병의 MRI검사") == ["당뇨", "뇨병", "병의", "mri", "검사"]
    assert {*analyser("ko").terms("당뇨병은")} & {*analyser("ko").terms("당뇨병의")} == {"당뇨", "뇨병"}
    decomposed = "\u1103\u1161\u11bc\u1102\u116d"  # 당뇨 as single letters
    assert analyser("ko").located_terms(decomposed) == ((0, len(decomposed), "당뇨"),)


def test_terms_are_located_where_they_are_written():
    chunk = "(L’hôpital-Entzu\u0308ndung"
    spans = analyser("fr").located_terms(chunk)
    assert [chunk[start:stop] for start, stop, _ in spans] == ["L’hôpital", "Entzu\u0308ndung"]


def test_threads_share_a_stemmer():
    words = [f"entzündung{number}en schmerz{number}lich" for number in range(500)]
    expected = [analyser("de").terms(word) for word in words]
    analyser.cache_clear()
    found = {}

    def analyse(number):
        found[number] = [analyser("de").terms(word) for word in words]

    threads = [Thread(target=analyse, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [expected] * 4


def test_a_language_without_an_analysis_names_those_that_there_are():
    with pytest.raises(UserError, match=r"no analysis for the language 'xx'.*: en English, ar Arabic"):
        analyser("xx")
    with pytest.raises(UserError, match="de German"):
        analyser("German")
    assert installed_language("xx") == "en"


def test_all_stemmers_exist_in_the_library():
    assert {search_language(code).stemmer for code in STEMMED} <= {*import_module("Stemmer").algorithms()}
