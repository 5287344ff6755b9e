"""Check digits of the ids that people carry: a number with a wrong digit is not such an id."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CHINESE_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def is_nhs_number(text: str) -> bool:
    """Return True for a British NHS number: ten digits, weighted modulo 11."""
    digits = _digits(text)
    total = sum((10 - place) * digit for place, digit in enumerate(digits[:9]))
    return len(digits) == 10 and (11 - total % 11) % 11 == digits[9]


def is_chinese_id(text: str) -> bool:
    """Return True for a Chinese resident identity number: 17 digits and a check sign (GB 11643)."""
    digits = _digits(text[:17])
    total = sum(weight * digit for weight, digit in zip(_CHINESE_WEIGHTS, digits, strict=True))
    return "10X98765432"[total % 11] == text[-1].upper()


def is_nir(text: str) -> bool:
    """Return True for a French social security number: 13 digits and a key modulo 97. Corsica is 2A or 2B."""
    plain = re.sub(r"\s", "", text)
    number = int(plain[:-2].replace("2A", "19").replace("2B", "18"))
    return 97 - number % 97 == int(plain[-2:])


def is_dni(text: str) -> bool:
    """Return True for a Spanish DNI or NIE: a number and a letter modulo 23."""
    plain = re.sub(r"[.\s-]", "", text)
    number = int(plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2"))
    return _DNI_LETTERS[number % 23] == plain[-1]


def is_kvnr(text: str) -> bool:
    """Return True for a German health insurance number: a letter, eight digits and a check digit."""
    digits = _digits(f"{ord(text[0]) - ord('A') + 1:02d}{text[1:]}")
    return _digit_sum(digit * (1 + place % 2) for place, digit in enumerate(digits[:-1])) % 10 == digits[-1]


def is_card_number(text: str) -> bool:
    """Return True for a bank card number (Luhn)."""
    digits = _digits(text)
    return _digit_sum(digit * (1 + place % 2) for place, digit in enumerate(reversed(digits))) % 10 == 0


def is_iban(text: str) -> bool:
    """Return True for an international bank account number (ISO 13616)."""
    plain = re.sub(r"\s", "", text)
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def _digits(text: str) -> list[int]:
    return [int(sign) for sign in text if sign.isdigit()]


def _digit_sum(numbers: Iterable[int]) -> int:
    return sum(number // 10 + number % 10 for number in numbers)
