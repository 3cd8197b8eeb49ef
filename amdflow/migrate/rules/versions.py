"""Ranges of ROCm versions, as rules spell them: ``>=7.0``, ``<7.13``, ``>=6.4,<7.0``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from itertools import zip_longest

Version = tuple[int, ...]
_TERM = re.compile(r"\s*(>=|<=|==|<|>)\s*(\d+(?:\.\d+)*)\s*")
_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def parse_range(text: str) -> list[tuple[str, Version]]:
    """Comparisons that must all hold. Raises ValueError for anything else than ``>=7.0,<7.13``."""
    terms = []
    for part in text.split(","):
        match = _TERM.fullmatch(part)
        if match is None:
            raise ValueError("not a range of versions; write for example >=7.0 or >=6.4,<7.0")
        terms.append((match.group(1), _numbers(match.group(2))))
    return terms


def in_range(version: str, text: str) -> bool:
    """Whether a version such as ``7.2.4`` lies in the range. An empty range holds every version, an unknown version lies in all."""
    numbers = _numbers(version)
    if not text or not numbers:
        return True
    return all(_COMPARE[sign](*_same_length(numbers, bound)) for sign, bound in parse_range(text))


def _numbers(text: str) -> Version:
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _same_length(left: Version, right: Version) -> tuple[Version, Version]:
    pairs = list(zip_longest(left, right, fillvalue=0))
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
