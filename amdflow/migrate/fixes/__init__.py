"""Automatic fixes: changes that the translation needs to compile and that keep the meaning, each one recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from amdflow.migrate import lexer
from amdflow.migrate.compat import StandIn
from amdflow.migrate.text import line_ending


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes ``start`` to ``end`` of a file."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Applied:
    """One thing that was done. ``rule`` is the id of the rule that explains it; ``line`` counts from 1 in the text before the fix."""

    rule: str
    line: int
    message: str


@dataclass(frozen=True)
class FixContext:
    """What fixes may know besides the file.

    ``mask_names`` are constants of the tree that are only ever used as lane masks, ``values`` all
    named all-ones masks and how they are written, ``own_names`` names of library functions that the tree defines itself,
    ``stand_ins`` the names that compatibility headers have. ``native_warps`` leaves warps as wide as the hardware's waves
    everywhere, ``wave_aware`` in these files, which know waves of 64 lanes themselves. ``fragment_needs`` are compatibility
    headers that a file has to include because it includes fragments, maybe in the middle of a namespace, that need them.
    """

    mask_names: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    own_names: frozenset[str] = frozenset()
    stand_ins: Mapping[str, StandIn] = field(default_factory=dict)
    native_warps: bool = False
    wave_aware: frozenset[str] = frozenset()
    fragment_needs: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """A file on its way through the fixes. ``unit`` says whether it is a translation unit of its own.

    ``original`` is the text as it came, before hipify-clang renamed anything: what its author knew of HIP stands there.
    """

    name: str
    text: str
    unit: bool
    context: FixContext
    original: str = ""


@dataclass(frozen=True)
class Change:
    """What a fix made of a draft; ``compat`` are the compatibility headers that the new text includes."""

    text: str
    applied: Sequence[Applied] = ()
    compat: frozenset[str] = frozenset()


Fix = Callable[[Draft], Change]
"""Takes a draft, gives its change; lines of ``applied`` count in the draft's text."""


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """All edits at once; one that overlaps an earlier one is left out."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < at:
            continue
        parts += [data[at : edit.start], edit.text.encode()]
        at = edit.end
    return b"".join((*parts, data[at:]))


def insert_include(text: str, *directives: str, before: int | None = None) -> str:
    """Behind the last include that stands at the top level of the file (and ``before`` this offset), else at its start.

    Inside braces (a namespace, ``extern "C"``, a table) or a conditional is not the top level.
    """
    ending = line_ending(text)
    braces, at = 0, 0
    outside: list[int] = []
    masked = lexer.mask(text)
    includes = {
        text.rfind("\n", 0, found.start) + 1: text.find("\n", found.start) + 1 for found in lexer.includes(text)
    }
    offset = 0
    for line in masked.split("\n"):
        word = line.lstrip().lstrip("#").lstrip() if line.lstrip().startswith("#") else ""
        if word.startswith("if"):
            outside.append(braces)
        elif word.startswith("endif"):
            outside = outside[:-1]
        elif word.startswith("el"):
            braces = outside[-1] if outside else braces
        elif offset in includes and not outside and braces <= 0 and (before is None or offset < before):
            at = includes[offset] or len(text)
        braces += line.count("{") - line.count("}")
        offset += len(line) + 1
    block = "".join(f"{directive}{ending}" for directive in directives)
    if at == 0 and text.startswith("\ufeff"):
        return f"\ufeff{block}{text[1:]}"
    return text[:at] + block + text[at:]
