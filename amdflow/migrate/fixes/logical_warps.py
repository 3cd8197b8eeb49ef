"""CUDA's warp functions go to logical warps of 32 lanes (``compat/warp.h``): masks and lane numbers stay right as they are."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from amdflow.migrate.compat import FOLDER, include_path
from amdflow.migrate.fixes import Applied, Change, Draft, FixContext, insert_include
from amdflow.migrate.fixes.compat_headers import defined_names
from amdflow.migrate.fixes.warp_size import (
    SIZE,
    declares_warp_size,
    is_device_property,
    is_shadowed,
    is_unclear,
    properties,
)
from amdflow.migrate.lexer import mask
from amdflow.migrate.syntax import Source
from amdflow.migrate.text import line_starts, splice

RULE, LEFT_ALONE, HARDWARE_WIDTH = "AMF1026", "AMF1027", "AMF1028"
OWN_MEMBER = f".{SIZE}"
"""Stands among the names that a tree defines itself for a variable or member of its own called ``warpSize``.

``NAME.warpSize`` then stands there for each NAME that holds a device's properties somewhere in the tree.
"""
_HEADER, _SIZE_HEADER = "warp.h", "warp_size.h"
_GROUPS, _GROUPS_HEADER = "coalesced_threads", "cooperative_groups_coalesced.h"
_OPERATIONS = ("shfl", "shfl_up", "shfl_down", "shfl_xor", "ballot", "any", "all")
FUNCTIONS = frozenset(
    f"__{name}"
    for name in (
        *_OPERATIONS,
        *(f"{name}_sync" for name in (*_OPERATIONS, "uni", "match_any", "match_all")),
        *(f"reduce_{name}_sync" for name in ("add", "min", "max", "and", "or", "xor")),
        "activemask",
        "syncwarp",
    )
)
"""Functions that work across the lanes of a warp, as CUDA calls them."""
_TOKEN = re.compile(rf"\b(?:{'|'.join(sorted(FUNCTIONS))}|{SIZE}|{_GROUPS})\b")
_PASTED = re.compile(
    r"\b(?P<start>__(?:shfl|ballot|match|reduce)\w*)(?=\s*##)|\b__\s*##\s*(?P<middle>\w+)(?=\s*##\s*_sync\b)"
)
"""Names that a macro puts together: ``__shfl_##how##_sync``, ``__##what##_sync``."""
_HINTS = (
    *("__shfl", "__ballot", "__any", "__all", "__uni", "__match", "__reduce", "__activemask", "__syncwarp", "_sync"),
    SIZE,
    _GROUPS,
)
"""Parts of those names, for a first look that costs little."""
_ASKED_OR_DEFINED = re.compile(r"#[ \t]*(?:(?:define|undef|ifdef|ifndef)[ \t]+|(?:if|elif)\b.*)$")
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<name>__\w+)\((?P<parameters>[^)]*)\)(?P<body>(?:[^\\\n]|\\\r?\n)*)", re.MULTILINE
)
_CALL = re.compile(r"\(*\s*(__\w+?)(_sync)?\s*\((.*)\)\s*\)*", re.DOTALL)
_ALL_LANES = re.compile(r"(?i:0xf{8}u?|~0u?|-1|\w*full\w*|__activemask\(\)|\w*all\w*)")
_TILE_OF_32 = re.compile(r"\b(?:tiled_partition|thread_block_tile)\s*<\s*32\b")
_MEMBER = re.compile(rf"(?:\.|->)\s*({SIZE})\b")
_ATTRIBUTE = re.compile(r"\bhipDeviceAttributeWarpSize\b")
_QUERY = re.compile(r"\bhipDeviceGetAttribute(?=\s*\(\s*[^;{}()]*,\s*hipDeviceAttributeWarpSize\s*,)")


@dataclass(frozen=True)
class _Use:
    """A name that is replaced, and the header that has what replaces it."""

    start: int
    end: int
    name: str
    new: str
    header: str


def own_warp_functions(texts: Iterable[str]) -> frozenset[str]:
    """Warp functions that the tree defines itself. A macro that only spells one by another is none: it changes nothing."""
    masked = [mask(text) for text in texts if "DeviceProp" in text or _names_warps(text)]
    own = defined_names((_without_plain_macros(text) for text in masked), (*FUNCTIONS, SIZE, _GROUPS))
    if not any(map(declares_warp_size, masked)):
        return own
    devices = frozenset(name for text in masked for name in properties(text))
    return own | {OWN_MEMBER} | {name + OWN_MEMBER for name in devices}


def _without_plain_macros(text: str) -> str:
    return _MACRO.sub(lambda macro: "" if _is_plain(macro) else macro.group(), text)


def _is_plain(macro: re.Match[str]) -> bool:
    """Whether a macro spells a function with a mask by the one without, or the reverse, and hands its parameters on as they are."""
    parameters = [name.strip() for name in macro.group("parameters").split(",") if name.strip()]
    body = macro.group("body").replace("\\\n", " ").strip()
    if macro.group("name") == "__syncwarp":
        return not body
    call = _CALL.fullmatch(body)
    if call is None or call.group(1) != macro.group("name").removesuffix("_sync"):
        return False
    given = [argument.strip(" ()") for argument in call.group(3).split(",")]
    if call.group(2) and _ALL_LANES.fullmatch(given[0]):
        given = given[1:]
    return given == parameters[1 if macro.group("name").endswith("_sync") else 0 :]


def _names_warps(text: str) -> bool:
    return any(hint in text for hint in _HINTS) and bool(_TOKEN.search(text) or _PASTED.search(text))


def use_logical_warps(draft: Draft) -> Change:
    """Send warp functions and the warp size to the compatibility library."""
    if draft.context.native_warps or not (_names_warps(draft.text) or _ATTRIBUTE.search(draft.text)):
        return Change(draft.text)
    masked = mask(draft.text)
    if draft.name in draft.context.wave_aware:
        return _left_alone(draft, masked)
    uses = sorted(_uses(draft, masked), key=lambda use: use.start)
    starts = line_starts(draft.text)
    applied = [Applied(RULE, bisect_right(starts, use.start), _said(use)) for use in uses]
    applied += [
        Applied(HARDWARE_WIDTH, bisect_right(starts, at), "hipDeviceAttributeWarpSize") for at in _open_queries(masked)
    ]
    applied += [Applied(HARDWARE_WIDTH, bisect_right(starts, at), SIZE) for at in _unclear_reads(draft, masked)]
    if not uses:
        return Change(draft.text, applied)
    text = splice(draft.text, ((use.start, use.end, use.new) for use in uses))
    headers = {use.header for use in uses}
    headers -= {_SIZE_HEADER} if _HEADER in headers else set()
    text = insert_include(
        text, *(f'#include "{include_path(draft.name, name)}"' for name in sorted(headers)), before=uses[0].start
    )
    return Change(text, applied, frozenset(headers))


def _said(use: _Use) -> str:
    if use.name.endswith(SIZE):
        return f"{use.name} is 32: the width that CUDA code counts in"
    return f"{use.name} works in warps of 32 lanes ({FOLDER}/{use.header})"


def keeps_warps(name: str, text: str, context: FixContext) -> bool:
    """Whether all of a finished file works in logical warps of 32 lanes, the library's or cooperative groups' tiles."""
    if context.native_warps:
        masked = mask(text) if _TILE_OF_32.search(text) else ""
        return bool(_TILE_OF_32.search(masked)) and not _TOKEN.search(masked)
    if name in context.wave_aware:
        return False
    return not any(own in text for own in context.own_names & FUNCTIONS)


def _left_alone(draft: Draft, masked: str) -> Change:
    first = _TOKEN.search(masked)
    if first is None:
        return Change(draft.text)
    line = draft.text.count("\n", 0, first.start()) + 1
    return Change(draft.text, [Applied(LEFT_ALONE, line, f"{first.group()} and its kin stay as they are")])


def _uses(draft: Draft, masked: str) -> Iterator[_Use]:
    own = draft.context.own_names
    source = Source(draft.name, draft.text)
    devices = _devices(masked, own)
    for match in _TOKEN.finditer(masked):
        name, start, end = match.group(), match.start(), match.end()
        line = masked[masked.rfind("\n", 0, start) + 1 : start]
        before = masked[max(start - 80, 0) : start].rstrip()
        if name in own or _ASKED_OR_DEFINED.search(line):
            continue
        if before.endswith((".", "->")):
            read = is_device_property(masked, start, end, devices) if name == SIZE else None
            if read is not None:
                yield _Use(read, end, masked[read:end], "amdflow::warp_size", _SIZE_HEADER)
        elif name == _GROUPS:
            yield _Use(start, end, name, "coalesced_warp_threads", _GROUPS_HEADER)
        elif re.search(r"\w::$", before):
            continue
        elif name != SIZE:
            yield _Use(start, end, name, f"amdflow::{name.removeprefix('__')}", _HEADER)
        elif not is_shadowed(source, start):
            yield _Use(start, end, name, "amdflow::warp_size", _SIZE_HEADER)
    yield from _pasted_uses(masked, own)
    for match in _QUERY.finditer(masked):
        yield _Use(match.start(), match.end(), match.group(), "amdflow::device_attribute", "warp_size_query.h")


def _pasted_uses(masked: str, own: Collection[str]) -> Iterator[_Use]:
    for match in _PASTED.finditer(masked) if "##" in masked else ():
        name = match["start"] or "__"
        if name not in FUNCTIONS and not any(defined.startswith(name) for defined in own):
            new = f"amdflow::{match['middle'] or name.removeprefix('__')}"
            yield _Use(match.start(), match.end(), " ".join(match.group().split()), new, _HEADER)


def _devices(masked: str, own: Collection[str]) -> frozenset[str] | None:
    """Names that hold a device's properties; None where whatever has a member ``warpSize`` does."""
    if OWN_MEMBER not in own:
        return None
    return properties(masked) | {name.removesuffix(OWN_MEMBER) for name in own if name.endswith(OWN_MEMBER)} - {""}


def _unclear_reads(draft: Draft, masked: str) -> Iterator[int]:
    """Where a member ``warpSize`` is read that can only be a device's, in a way that cannot be followed."""
    if OWN_MEMBER in draft.context.own_names or SIZE in draft.context.own_names:
        return
    for match in _MEMBER.finditer(masked) if SIZE in masked else ():
        if is_unclear(masked, match.start(1)):
            yield match.start(1)


def _open_queries(masked: str) -> Iterator[int]:
    """Where the hardware's warp size is asked for in a way that cannot be followed."""
    for match in _ATTRIBUTE.finditer(masked):
        statement = max(masked.rfind(stop, 0, match.start()) for stop in ";{}") + 1
        if not _QUERY.search(masked[statement : match.end() + 80]):
            yield match.start()
