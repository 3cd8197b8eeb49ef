"""What translation changed in a file, as segments a page can draw side by side."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher
from typing import Any

CONTEXT = 5
"""Unchanged lines kept around an edit or a finding when whole files would make the page too large."""
_MOSTLY_SAME = 0.5

Edit = tuple[int, int, int, int]
"""Lines ``[a1, a2)`` of the original became lines ``[b1, b2)``; counted from 0."""


def split_lines(text: str) -> list[str]:
    """Lines as a compiler counts them: by newline only, a carriage return before it dropped (form feeds and the like stay inside a line)."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    return lines


def edits(original: list[str], migrated: list[str]) -> list[Edit]:
    """The changed line ranges, in order. Most translations keep the line count, which is seen without a search."""
    if len(original) == len(migrated):
        found = _in_place(original, migrated)
        if sum(a2 - a1 for a1, a2, _, _ in found) <= _MOSTLY_SAME * len(original):
            return found
    return [
        (a1, a2, b1, b2)
        for tag, a1, a2, b1, b2 in SequenceMatcher(None, original, migrated).get_opcodes()
        if tag != "equal"
    ]


def segments(original: str, migrated: str, marked: Collection[int] = (), *, whole: bool = True) -> list[dict[str, Any]]:
    """The file as JSON segments in order.

    ``{"k": "=", "a": 1, "b": 1, "t": [...]}`` equal lines, ``{"k": "~", "a", "b", "o": [...], "n": [...]}`` edited ones,
    ``{"k": "-", "a", "b", "c": 40}`` equal lines left out; ``a`` and ``b`` are first line numbers, from 1. ``marked`` holds
    original line numbers that must be shown. With ``whole`` nothing is left out.
    """
    before, after = split_lines(original), split_lines(migrated)
    changes = edits(before, after)
    result: list[dict[str, Any]] = []
    a = b = 0
    for a1, a2, b1, b2 in [*changes, (len(before), len(before), len(after), len(after))]:
        if a1 > a:
            result += _equal(
                before, a, a1, b - a, marked, whole=whole, edges=(bool(result), a1 < len(before) or a2 > a1 or b2 > b1)
            )
        if a2 > a1 or b2 > b1:
            result.append({"k": "~", "a": a1 + 1, "b": b1 + 1, "o": before[a1:a2], "n": after[b1:b2]})
        a, b = a2, b2
    return result


def _in_place(original: list[str], migrated: list[str]) -> list[Edit]:
    found: list[Edit] = []
    for index, (old, new) in enumerate(zip(original, migrated, strict=True)):
        if old == new:
            continue
        if found and found[-1][1] == index:
            found[-1] = (found[-1][0], index + 1, found[-1][2], index + 1)
        else:
            found.append((index, index + 1, index, index + 1))
    return found


def _equal(
    lines: list[str],
    start: int,
    stop: int,
    shift: int,
    marked: Collection[int],
    *,
    whole: bool,
    edges: tuple[bool, bool],
) -> list[dict[str, Any]]:
    """Lines ``[start, stop)``, cut to what is near an edit (``edges``: is there one before, after) or a marked line."""
    if whole:
        return [{"k": "=", "a": start + 1, "b": start + shift + 1, "t": lines[start:stop]}]
    keep = {line - 1 + near for line in marked for near in range(-CONTEXT, CONTEXT + 1)}
    if edges[0]:
        keep.update(range(start, start + CONTEXT))
    if edges[1]:
        keep.update(range(stop - CONTEXT, stop))
    parts: list[dict[str, Any]] = []
    for index in range(start, stop):
        kind = "=" if index in keep else "-"
        if not parts or parts[-1]["k"] != kind:
            content: dict[str, Any] = {"t": []} if kind == "=" else {"c": 0}
            parts.append({"k": kind, "a": index + 1, "b": index + shift + 1, **content})
        if kind == "=":
            parts[-1]["t"].append(lines[index])
        else:
            parts[-1]["c"] += 1
    return parts
