"""Regions that their author wants left alone: ``// amdflow: keep`` ... ``// amdflow: end``, with ``#`` in build files.

Translators and fixes work on a text whose regions are blanked (:meth:`Kept.blanked`), and the original regions are put
back at the end (:func:`restore`). Markers are comments, so every translator leaves them where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from amdflow.migrate import lexer
from amdflow.migrate.text import line_starts, splice

_WORD = "amdflow:"
_MARKER = re.compile(r"(?://|/\*|#)[ \t]*amdflow:[ \t]*(?P<word>keep|end)\b")
_HASH_COMMENT = re.compile(r"^[ \t]*#[^\r\n]*", re.MULTILINE)
_INK = re.compile(r"\\(?!\r?\n)|[^\s\\]")
"""All but white space and the backslash that continues a line."""


@dataclass(frozen=True, slots=True)
class Region:
    """What lies between two markers: offsets behind the opening and before the closing one, lines from 1, both inclusive."""

    start: int
    end: int
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A marker without a partner, or one inside a region, in words."""

    line: int
    message: str


@dataclass(frozen=True)
class Kept:
    """The regions of one text, in order."""

    text: str
    regions: tuple[Region, ...] = ()
    strays: tuple[Stray, ...] = ()

    def covers(self, line: int) -> bool:
        """Whether a line (from 1) lies in a region."""
        return any(region.first_line <= line <= region.last_line for region in self.regions)

    @cached_property
    def blanked(self) -> str:
        """The same text, offsets and lines unchanged, with spaces in the regions."""
        spans = ((region.start, region.end) for region in self.regions)
        return splice(self.text, ((start, end, _INK.sub(" ", self.text[start:end])) for start, end in spans))


def find(text: str, *, build_file: bool = False) -> Kept:
    """The regions of a source, or of a build file (``#`` comments on lines of their own).

    A marker counts in a comment only, never in a string. An opening marker that is never closed keeps nothing.
    """
    if _WORD not in text:
        return Kept(text)
    starts = line_starts(text)
    regions: list[Region] = []
    strays: list[Stray] = []
    opened: re.Match[str] | None = None
    line = first_line = 0
    for word, comment in _markers(text, build_file=build_file):
        while line < len(starts) and starts[line] <= comment.start():
            line += 1
        if word == "keep" and opened is not None:
            strays.append(Stray(line, f"`amdflow: keep` inside the region that line {first_line} opens"))
        elif word == "keep":
            opened, first_line = comment, line
        elif opened is None:
            strays.append(Stray(line, "`amdflow: end` without an `amdflow: keep` before it"))
        else:
            leading = text[starts[first_line - 1] : opened.start()].strip()
            regions.append(Region(opened.end(), comment.start(), min(first_line + bool(leading), line), line))
            opened = None
    if opened is not None:
        strays.append(Stray(first_line, "`amdflow: keep` without an `amdflow: end` after it, so nothing is kept"))
    return Kept(text, tuple(regions), tuple(strays))


def restore(original: Kept, changed: str, *, build_file: bool = False) -> str | None:
    """``changed`` with each region as ``original`` has it; None when the markers in it are not the same."""
    if not original.regions:
        return changed
    found = find(changed, build_file=build_file)
    if len(found.regions) != len(original.regions):
        return None
    pairs = zip(original.regions, found.regions, strict=True)
    return splice(changed, ((new.start, new.end, original.text[old.start : old.end]) for old, new in pairs))


def _markers(text: str, *, build_file: bool) -> Iterator[tuple[str, re.Match[str]]]:
    comments = _HASH_COMMENT.finditer(text) if build_file else lexer.comments(text)
    for comment in comments:
        found = _MARKER.match(comment.group().lstrip())
        if found:
            yield found["word"], comment
