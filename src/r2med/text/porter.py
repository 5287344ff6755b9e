"""Porter's English stemmer, with the departures of its author's own later code, exactly as Lucene runs it."""

import re

# Porter's measure of a word counts its vowel-consonant pairs. `y` is a vowel only after a consonant, so it may
# open a run of either kind and never continue one. Possessive quantifiers, so that no run is ever split.
_CONSONANTS = "[^aeiou][^aeiouy]*+"
_VOWELS = "[aeiouy][aeiou]*+"
_PAIR = f"{_VOWELS}{_CONSONANTS}"
_has_vowel = re.compile(f"(?:{_CONSONANTS})?+[aeiouy]").match
_measure_over_0 = re.compile(f"(?:{_CONSONANTS})?+{_PAIR}").match
_measure_over_1 = re.compile(f"(?:{_CONSONANTS})?+{_PAIR}{_PAIR}").match
# Measure 1 and ending consonant-vowel-consonant, the last not w, x or y: `hop`, `fil`. Such stems keep their e.
_is_short = re.compile(f"{_CONSONANTS}[aeiouy][^aeiouwxy]").fullmatch
_ends_in_y_consonant = re.compile(f"(?:(?:{_CONSONANTS})?+{_VOWELS})*+y").fullmatch

Rules = dict[str, tuple[tuple[str, str], ...]]

# Steps 2 and 3: suffix -> replacement where the measure before the suffix is over 0. Keyed by the last three
# letters; of the suffixes that share them the first that fits decides, whether or not the measure allows it.
_STEP_2: Rules = {
    "nal": (("ational", "ate"), ("tional", "tion")),
    "nci": (("enci", "ence"), ("anci", "ance")),
    "zer": (("izer", "ize"),),
    "bli": (("bli", "ble"),),
    "lli": (("alli", "al"),),
    "tli": (("entli", "ent"),),
    "eli": (("eli", "e"),),
    "sli": (("ousli", "ous"),),
    "ion": (("ization", "ize"), ("ation", "ate")),
    "tor": (("ator", "ate"),),
    "ism": (("alism", "al"),),
    "ess": (("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    "iti": (("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
    "ogi": (("logi", "log"),),
}
_STEP_3: Rules = {
    "ate": (("icate", "ic"),),
    "ive": (("ative", ""),),
    "ize": (("alize", "al"),),
    "iti": (("iciti", "ic"),),
    "cal": (("ical", "ic"),),
    "ful": (("ful", ""),),
    "ess": (("ness", ""),),
}
# Step 4: suffixes cut where the measure before them is over 1, keyed by the last two letters.
_STEP_4: dict[str, tuple[str, ...]] = {
    "al": ("al",),
    "ce": ("ance", "ence"),
    "er": ("er",),
    "ic": ("ic",),
    "le": ("able", "ible"),
    "nt": ("ant", "ement", "ment", "ent"),
    "on": ("sion", "tion"),
    "ou": ("ou",),
    "sm": ("ism",),
    "te": ("ate",),
    "ti": ("iti",),
    "us": ("ous",),
    "ve": ("ive",),
    "ze": ("ize",),
}
# After step 1 a word that ends otherwise is left as it is.
_LATER_ENDINGS = frozenset(_STEP_4) | {ending[1:] for rules in (_STEP_2, _STEP_3) for ending in rules} | {"ll"}


def stem(word: str) -> str:
    """The stem of a lower-case word. Characters other than a, e, i, o, u and y count as consonants."""
    if len(word) < 3:
        return word
    last = word[-1]
    if last == "s":
        word = _without_plural(word)
        last = word[-1]
    if last == "d" or last == "g":
        word = _without_participle(word)
        last = word[-1]
    if last == "y" and _has_vowel(word, 0, len(word) - 1):
        word = word[:-1] + "i"
    if word[-1] == "e" or word[-2:] in _LATER_ENDINGS:
        return _without_suffixes(word)
    return word


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word[-2] == "s":
        return word
    if word.endswith("ies") or word.endswith("sses"):
        return word[:-2]
    return word[:-1]


def _without_participle(word: str) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if _measure_over_0(word, 0, len(word) - 3) else word
    if word.endswith("ed"):
        end = len(word) - 2
    elif word.endswith("ing"):
        end = len(word) - 3
    else:
        return word
    if not _has_vowel(word, 0, end):
        return word
    word = word[:end]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-1] == word[-2:-1]:
        return word if word[-1] in "aeioulsz" or not _ends_in_consonant(word) else word[:-1]
    return word + "e" if _is_short(word) else word


def _ends_in_consonant(word: str) -> bool:
    return word[-1] != "y" or bool(_ends_in_y_consonant(word))


def _replaced(word: str, rules: Rules) -> str:
    """Steps 2 and 3."""
    for suffix, replacement in rules.get(word[-3:], ()):
        if word.endswith(suffix):
            end = len(word) - len(suffix)
            return word[:end] + replacement if _measure_over_0(word, 0, end) else word
    return word


def _without_suffixes(word: str) -> str:
    """Steps 2 to 5."""
    if word[-3:] in _STEP_2:
        word = _replaced(word, _STEP_2)
    if word[-3:] in _STEP_3:
        word = _replaced(word, _STEP_3)
    for suffix in _STEP_4.get(word[-2:], ()):
        if word.endswith(suffix):
            end = len(word) - (3 if suffix.endswith("ion") else len(suffix))  # of -sion and -tion only -ion goes
            if _measure_over_1(word, 0, end):
                word = word[:end]
            break
    if word[-1] == "e":
        end = len(word) - 1
        if _measure_over_1(word, 0, end) or (_measure_over_0(word, 0, end) and not _is_short(word, 0, end)):
            word = word[:end]
    if word[-2:] == "ll" and _measure_over_1(word):
        word = word[:-1]
    return word
