"""Which original line a line of the translation came from.

Translation keeps lines and adds a few; so one walk over both with a short look-ahead is enough, and linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_INCLUDE = re.compile(r"\s*#\s*include\b")
_INCLUDED = "#include"
_LOOK_AHEAD = 12


class LineMap:
    """Lines count from 1."""

    def __init__(self, original: str, migrated: str) -> None:
        old, new = original.split("\n"), migrated.split("\n")
        self._to_original: Sequence[int] = (
            range(1, len(old) + 1)
            if len(old) == len(new)
            else _align([_skeleton(line) for line in old], [_skeleton(line) for line in new])
        )

    @classmethod
    def of(cls, lines: Sequence[int]) -> LineMap:
        """A map that is known already: the original line of each line, in order."""
        made = cls("", "")
        made._to_original = lines
        return made

    def original(self, line: int) -> int:
        """The original line for a line of the translation; the nearest one before it for a line that was added."""
        if not self._to_original:
            return line
        return self._to_original[min(max(line, 1), len(self._to_original)) - 1]


def _skeleton(line: str) -> str:
    """What translation leaves alone: everything but names, numbers and include paths."""
    return _INCLUDED if _INCLUDE.match(line) else _WORD.sub("w", line.strip())


def _align(old: list[str], new: list[str]) -> list[int]:
    result = []
    at = 0
    for index, line in enumerate(new):
        if at < len(old) and old[at] == line:
            at += 1
        elif line != _INCLUDED or _INCLUDED in old[at : at + _LOOK_AHEAD]:
            at = _resume(old, new, at, index)
        # else an include that was added: no line becomes one
        result.append(max(at, 1))
    return result


def _resume(old: list[str], new: list[str], at: int, index: int) -> int:
    """Position in ``old`` after taking in ``new[index]``, which does not equal ``old[at]``."""
    for skip in range(1, _LOOK_AHEAD):
        if old[at : at + 1] and new[index + skip : index + skip + 1] == old[at : at + 1] and len(old[at]) > 1:
            return at
        if new[index] and old[at + skip : at + skip + 1] == new[index : index + 1] and len(new[index]) > 1:
            return at + skip + 1
    return min(at + 1, len(old))
