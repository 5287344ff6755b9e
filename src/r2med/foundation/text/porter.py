"""Porter's English stemmer, with the departures of its author's own later code, exactly as Lucene runs it."""

import re

# Porter's measure of a word counts its vowel-consonant pairs. `y` is a vowel only after a consonant, so it
# may open a run of either kind and never continue one. Possessive quantifiers, so that no run is ever split.
_CONSONANTS = "[^aeiou][^aeiouy]*+"
_VOWELS = "[aeiouy][aeiou]*+"
_PAIR = f"{_VOWELS}{_CONSONANTS}"
_has_vowel = re.compile(f"(?:{_CONSONANTS})?+[aeiouy]").match
_measure_over_0 = re.compile(f"(?:{_CONSONANTS})?+{_PAIR}").match
_measure_over_1 = re.compile(f"(?:{_CONSONANTS})?+{_PAIR}{_PAIR}").match
# Measure 1 and ending consonant-vowel-consonant, the last not w, x or y: `hop`, `fil`. Such stems carry an e.
_SHORT = f"{_CONSONANTS}[aeiouy][^aeiouwxy]"
_is_short = re.compile(_SHORT).fullmatch
_keeps_e = re.compile(f"(?:{_CONSONANTS})?+(?:{_VOWELS})?+|{_SHORT}").fullmatch  # measure 0, or short
_ends_in_y_consonant = re.compile(f"(?:(?:{_CONSONANTS})?+{_VOWELS})*+y").fullmatch

# The keys of all rules below are the last two letters of the word. Of the suffixes that share them, the first one
# that fits decides, even if the measure of the part before it does not allow the change.
Rules = dict[str, tuple[tuple[str, str], ...]]

# Steps 2 and 3: suffix and replacement, where the measure before the suffix is over 0.
_STEP_2: Rules = {
    "al": (("ational", "ate"), ("tional", "tion")),
    "ci": (("enci", "ence"), ("anci", "ance")),
    "er": (("izer", "ize"),),
    "li": (("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    "on": (("ization", "ize"), ("ation", "ate")),
    "or": (("ator", "ate"),),
    "sm": (("alism", "al"),),
    "ss": (("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    "ti": (("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
    "gi": (("logi", "log"),),
}
_STEP_3: Rules = {
    "te": (("icate", "ic"),),
    "ve": (("ative", ""),),
    "ze": (("alize", "al"),),
    "ti": (("iciti", "ic"),),
    "al": (("ical", "ic"),),
    "ul": (("ful", ""),),
    "ss": (("ness", ""),),
}
# Step 4: suffix and replacement, where the measure before the suffix is over 1.
_STEP_4: Rules = {
    "al": (("al", ""),),
    "ce": (("ance", ""), ("ence", "")),
    "er": (("er", ""),),
    "ic": (("ic", ""),),
    "le": (("able", ""), ("ible", "")),
    "nt": (("ant", ""), ("ement", ""), ("ment", ""), ("ent", "")),
    "on": (("sion", "s"), ("tion", "t")),
    "ou": (("ou", ""),),
    "sm": (("ism", ""),),
    "te": (("ate", ""),),
    "ti": (("iti", ""),),
    "us": (("ous", ""),),
    "ve": (("ive", ""),),
    "ze": (("ize", ""),),
}
_SUFFIXED = frozenset(_STEP_2) | frozenset(_STEP_3) | frozenset(_STEP_4)
_CHANGING = frozenset("degyl").union(ending[-1] for ending in _SUFFIXED)  # words with other endings do not change


def stem(word: str) -> str:
    """Return the stem of a lower-case word. Characters other than a, e, i, o, u and y count as consonants."""
    if len(word) < 3:
        return word
    last = word[-1]
    if last == "s" and word[-2] != "s":  # step 1a
        word = word[:-2] if word[-3:] == "ies" or word[-4:] == "sses" else word[:-1]
        last = word[-1]
    if last not in _CHANGING:
        return word
    if last == "d" or last == "g":
        word = _without_participle(word)
        last = word[-1]
    if last == "y" and _has_vowel(word, 0, len(word) - 1):  # step 1c
        word = word[:-1] + "i"
    if word[-2:] in _SUFFIXED:
        word = _without_suffix(word)
    last = word[-1]
    if last == "e" and not _keeps_e(word, 0, len(word) - 1):  # step 5
        word = word[:-1]
        last = word[-1]
    if last == "l" and word[-2:] == "ll" and _measure_over_1(word):
        word = word[:-1]
    return word


def _without_participle(word: str) -> str:
    """Step 1b."""
    if word[-2:] == "ed":
        if word[-3:] == "eed":
            return word[:-1] if _measure_over_0(word, 0, len(word) - 3) else word
        end = len(word) - 2
    elif word[-3:] == "ing":
        end = len(word) - 3
    else:
        return word
    if not _has_vowel(word, 0, end):
        return word
    word = word[:end]
    if word[-2:] in ("at", "bl", "iz"):
        return word + "e"
    if word[-1] == word[-2:-1]:
        is_consonant = word[-1] not in "aeiouy" or (word[-1] == "y" and _ends_in_y_consonant(word))
        return word[:-1] if is_consonant and word[-1] not in "lsz" else word
    return word + "e" if _is_short(word) else word


def _without_suffix(word: str) -> str:
    """Return the word after steps 2 to 4 of the algorithm."""
    for suffix, replacement in _STEP_2.get(word[-2:], ()):
        if word.endswith(suffix):
            end = len(word) - len(suffix)
            if _measure_over_0(word, 0, end):
                word = word[:end] + replacement
            break
    for suffix, replacement in _STEP_3.get(word[-2:], ()):
        if word.endswith(suffix):
            end = len(word) - len(suffix)
            if _measure_over_0(word, 0, end):
                word = word[:end] + replacement
            break
    for suffix, replacement in _STEP_4.get(word[-2:], ()):
        if word.endswith(suffix):
            end = len(word) - len(suffix) + len(replacement)
            return word[:end] if _measure_over_1(word, 0, end) else word
    return word
