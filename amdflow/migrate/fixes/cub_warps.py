"""CUB's warp-wide classes mean 32 threads where no width is given, hipCUB's the whole wave: the width is written out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection

from amdflow.migrate.compat import include_path
from amdflow.migrate.fixes import Applied, Change, Draft, insert_include
from amdflow.migrate.fixes.logical_warps import RULE
from amdflow.migrate.lexer import mask
from amdflow.migrate.text import line_starts, splice

_WIDTH_AT = {
    "WarpReduce": ("32",),
    "WarpScan": ("32",),
    "WarpExchange": ("", "32"),
    "WarpMergeSort": ("", "32"),
    "WarpLoad": ("", "{0}::WARP_LOAD_DIRECT", "32"),
    "WarpStore": ("", "{0}::WARP_STORE_DIRECT", "32"),
}
"""Class -> its template arguments behind the first, up to the width; an empty text is one that has no default."""
_CLASS = re.compile(rf"\b(\w+)\s*::\s*({'|'.join(_WIDTH_AT)})\s*<")
_UNQUALIFIED = re.compile(rf"(?<![\w:.])({'|'.join(_WIDTH_AT)})\s*<")
_USING = re.compile(rf"\busing\s+(?:namespace\s+)?(?:::\s*)?(\w+)\s*(?:::\s*({'|'.join(_WIDTH_AT)})\s*)?;")
_ALIAS = re.compile(r"\bnamespace\s+(\w+)\s*=\s*(?:::\s*)?(?:hipcub|cub)\s*;")
_LANES = {
    "WarpId": "warp_id",
    "LaneId": "lane_id",
    "LaneMaskLt": "lanemask_lt",
    "LaneMaskLe": "lanemask_le",
    "LaneMaskGt": "lanemask_gt",
    "LaneMaskGe": "lanemask_ge",
}
_LANE_CALL = re.compile(rf"\b(\w+)\s*::\s*({'|'.join(_LANES)})\b")
_THREADS = re.compile(r"\b(?:HIPCUB_WARP_THREADS|CUB_PTX_WARP_THREADS)\b(?!\s*\()")


def write_out_warp_widths(draft: Draft) -> Change:
    """Give every warp-wide class of hipCUB its 32 threads, and take lane numbers from the logical warp."""
    context = draft.context
    if context.native_warps or draft.name in context.wave_aware or "cub" not in draft.text.lower():
        return Change(draft.text)
    masked = mask(draft.text)
    namespaces = {"hipcub", "cub", *_ALIAS.findall(masked)}
    edits = _class_edits(masked, namespaces)
    lanes = [
        (match.start(), match.end(), f"amdflow::{_LANES[match.group(2)]}")
        for match in _LANE_CALL.finditer(masked)
        if match.group(1) in namespaces
    ]
    edits += lanes
    edits += [
        (match.start(), match.end(), "32") for match in _THREADS.finditer(masked) if not _is_directive(masked, match)
    ]
    if not edits:
        return Change(draft.text)
    edits.sort()
    starts = line_starts(draft.text)
    text = splice(draft.text, edits)
    include = f'#include "{include_path(draft.name, "warp.h")}"'
    if lanes and include not in text:
        text = insert_include(text, include, before=lanes[0][0])
    applied = [
        Applied(RULE, bisect_right(starts, start), "hipCUB works on 32 lanes here, as CUB does")
        for start, _, _ in edits
    ]
    return Change(text, applied, frozenset({"warp.h"} if lanes else ()))


def _is_directive(masked: str, match: re.Match[str]) -> bool:
    line = masked[masked.rfind("\n", 0, match.start()) + 1 : match.start()]
    return bool(re.match(r"[ \t]*#[ \t]*(?:define[ \t]+$|undef|ifdef|ifndef)", line))


def _class_edits(masked: str, namespaces: Collection[str]) -> list[tuple[int, int, str]]:
    found = {
        match.end(): (match.group(1), match.group(2))
        for match in _CLASS.finditer(masked)
        if match.group(1) in namespaces
    }
    for using in _USING.finditer(masked):
        namespace, only = using.groups()
        if namespace in namespaces:
            found |= {
                match.end(): (namespace, match.group(1))
                for match in _UNQUALIFIED.finditer(masked, using.end())
                if only in (None, match.group(1))
            }
    edits = []
    for start, (namespace, name) in found.items():
        end, count = _template_arguments(masked, start)
        missing = _WIDTH_AT[name][max(count - 1, 0) :]
        if end and missing and all(missing):
            edits.append((end, end, "".join(f", {given.format(namespace)}" for given in missing)))
    return edits


def _template_arguments(masked: str, start: int) -> tuple[int, int]:
    """Where the list that starts behind ``<`` ends, and how many arguments it has; (0, 0) when it never ends or is empty."""
    angles, brackets, count = 1, 0, 1
    for at in range(start, min(len(masked), start + 2000)):
        character = masked[at]
        if character in "([{":
            brackets += 1
        elif character in ")]}":
            brackets -= 1
        elif brackets == 0 and character == "<":
            angles += 1
        elif brackets == 0 and character == ">" and masked[at - 1] != "-":
            angles -= 1
            if angles == 0:
                return (at, count) if masked[start:at].strip() else (0, 0)
        elif brackets == 0 and angles == 1 and character == ",":
            count += 1
        elif character == ";" or brackets < 0:
            break
    return 0, 0
