"""Checks on code that works across the lanes of a warp. Each yields byte offset and text of what it finds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from amdflow.migrate.syntax import Source, arguments, callee, enclosing_function, function_start, text_of

Found = Iterator[tuple[int, str]]
_SHUFFLE = re.compile(r"__shfl\w*")
_LANE_MASK_CALL = re.compile(r"__(?:ballot|activemask|match_any|match_all)(?:_sync)?")
_NARROW_TYPE = re.compile(r"(?:const\s+)?(?:unsigned(?:\s+int)?|int|uint32_t|int32_t|uint|u32)(?:\s+const)?")
_BIT_SCAN = re.compile(r"__(?:popc|ffs|clz|brev|fns)")
_MASK_WORD = re.compile(
    r"__ballot|__activemask|__match|ballot|lane_?mask|warp_?mask|active_?mask|\bmask\b", re.IGNORECASE
)
_WARP_WORK = re.compile(
    r"__shfl|__ballot|>>\s*5\b|/\s*(?:32|WARP_?SIZE|warpSize)\b|%\s*32\b|&\s*(?:31|0x1[fF])\b|\bwarp_?(?:id|idx|sums?)\b|\bwid\b",
    re.IGNORECASE,
)
_HALF_OF_32 = re.compile(r"=\s*(?:16|\(?\s*(?:32|k?_?WARP_?SIZE)\s*(?:/\s*2|>>\s*1)\s*\)?)\s*;", re.IGNORECASE)
_UP_TO_32 = re.compile(r"=\s*1\s*;[^;]*<=?\s*(?:16|31|32|k?_?WARP_?SIZE)\s*;", re.IGNORECASE)
_FOR_32_LANES = re.compile(
    r"(?i:\bk?_?warp_?size)\s*(?:=|\{)?\s*32\b|threadIdx\s*\.\s*x\s*(?:&\s*(?:31|0x1[fF])|%\s*32|>>\s*5|/\s*32)\b"
    r"|=\s*16\s*;[^;]*;[^;)]*(?:>>=\s*1|/=\s*2)"
)
_LANE_CONDITION = re.compile(
    r"(?i:\blane(?:_?id|_?idx)?\b)|threadIdx\s*\.\s*x\s*(?:&\s*(?:31|0x1[fF])|%\s*(?:32|warpSize|\w*WARP_?SIZE))"
)
_WAITS = re.compile(r"__(?:shfl\w*|ballot|any|all|match_\w+|reduce_\w+)_sync|__syncwarp")
_ALL_LANES = re.compile(r"(?i:0xf{8}u?l*|~0u?l*|-1|\w*full\w*mask\w*|\w*all\w*(?:lanes|mask)\w*|FULL)")


def shuffle_tree(source: Source) -> Found:
    """A loop that halves from 16 (or doubles up to 32) around a shuffle without a width."""
    for place in source.of("for_statement"):
        body = place.node.child_by_field_name("body")
        if body is None:
            continue
        header = text_of(place.node).partition(text_of(body))[0]
        down = _HALF_OF_32.search(header) and re.search(r">>=\s*1|/=\s*2|>>\s*1|/\s*2\b", header)
        up = _UP_TO_32.search(header) and re.search(r"<<=\s*1|\*=\s*2", header)
        if (down or up) and "warpSize" not in header and any(_is_wide_shuffle(call) for call in _calls(body)):
            yield place.node.start_byte + place.offset, header.strip()


def _calls(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type == "call_expression":
            yield current
        pending += current.named_children


def _is_wide_shuffle(call: Node) -> bool:
    """A shuffle whose width is left to default to the whole wave."""
    name = callee(call)
    return bool(_SHUFFLE.fullmatch(name)) and len(arguments(call)) < (4 if name.endswith("_sync") else 3)


def broadcast_without_width(source: Source) -> Found:
    """A shuffle from a given lane without a width, in a file written for 32 lanes."""
    if not _FOR_32_LANES.search(source.masked):
        return
    for place in source.of("call_expression"):
        if callee(place.node) in ("__shfl_sync", "__shfl") and _is_wide_shuffle(place.node):
            yield place.node.start_byte + place.offset, text_of(place.node)


def narrow_mask(source: Source) -> Found:
    """A lane mask kept in 32 bits."""
    for place in source.of("init_declarator"):
        node = place.node
        kind = node.parent.child_by_field_name("type") if node.parent is not None else None
        value = node.child_by_field_name("value")
        if (
            kind is not None
            and value is not None
            and value.type == "call_expression"
            and _LANE_MASK_CALL.fullmatch(callee(value))
            and _NARROW_TYPE.fullmatch(text_of(kind))
        ):
            yield node.start_byte + place.offset, f"{text_of(kind)} {text_of(node)}"
    narrow = _narrow_variables(source)
    for place in source.of("assignment_expression"):
        node = place.node
        value = node.child_by_field_name("right")
        if value is not None and value.type == "call_expression" and _LANE_MASK_CALL.fullmatch(callee(value)):
            function = enclosing_function(node)
            if function is not None and (function.start_byte, text_of(node.child_by_field_name("left"))) in narrow:
                yield node.start_byte + place.offset, text_of(node)


def _narrow_variables(source: Source) -> set[tuple[int, str]]:
    found = set()
    for place in source.of("declaration"):
        kind = place.node.child_by_field_name("type")
        function = enclosing_function(place.node)
        if kind is not None and function is not None and _NARROW_TYPE.fullmatch(text_of(kind)):
            found |= {
                (function.start_byte, text_of(name).partition("=")[0].strip())
                for name in place.node.children_by_field_name("declarator")
            }
    return found


def narrow_scan(source: Source) -> Found:
    """A 32-bit bit count or bit search on a lane mask."""
    masks = set(_mask_variables(source))
    for place in source.of("call_expression"):
        given = arguments(place.node)
        if not given or not _BIT_SCAN.fullmatch(callee(place.node)):
            continue
        key = function_start(place.node)
        inner = text_of(given[0])
        if _MASK_WORD.search(inner) or any((key, name) in masks for name in re.findall(r"\b[A-Za-z_]\w*\b", inner)):
            yield place.node.start_byte + place.offset, text_of(place.node)


def _mask_variables(source: Source) -> Iterator[tuple[int, str]]:
    """(start of the function, name) of variables that are given a lane mask."""
    for kind, left, right in (("init_declarator", "declarator", "value"), ("assignment_expression", "left", "right")):
        for place in source.of(kind):
            value = place.node.child_by_field_name(right)
            if value is not None and _LANE_MASK_CALL.search(text_of(value)):
                yield function_start(place.node), text_of(place.node.child_by_field_name(left))


def shared_per_warp(source: Source) -> Found:
    """A shared array of 32 in a function that works by warps: one slot for each of 32 warps of 32."""
    for place in source.of("declaration"):
        text = text_of(place.node)
        function = enclosing_function(place.node)
        if (
            "__shared__" in text
            and function is not None
            and re.search(r"\w\s*\[\s*(?:32|WARP_?SIZE|warpSize)\s*\]\s*;", text)
            and not re.search(r"\]\s*\[", text)
            and _WARP_WORK.search(text_of(function))
        ):
            yield place.node.start_byte + place.offset, text


def warp_size_constant(source: Source) -> Found:
    """``warpSize`` where the language wants a constant: array bound, template argument, constexpr, static_assert."""
    pattern = re.compile(
        r"\[[^\]\n;]*\bwarpSize\b[^\]\n]*\]\s*(?:;|=|\[|,)|(?:<|,)\s*warpSize\s*(?:>|,)|\bconstexpr\b[^;=\n]*=[^;\n]*\bwarpSize\b|static_assert\s*\([^;\n]*\bwarpSize\b"
    )
    for match in pattern.finditer(source.masked):
        if match.group().startswith("[") and not _declares_array(source, match.start()):
            continue
        yield source.byte_of(match.start()), match.group()


def _declares_array(source: Source, at: int) -> bool:
    """Whether the line up to the bracket looks like a declaration (type, then name)."""
    head = source.masked[source.masked.rfind("\n", 0, at) + 1 : at]
    return bool(
        re.search(r"\b(?:__shared__|static|float|double|int|unsigned|char|bool|half|T|\w+_t)\s+[\w\s*]*\w+\s*$", head)
    )


def lanes_meet_at_two_places(source: Source) -> Found:
    """An if on the lane number, both of whose branches hold a ``*_sync`` call for all lanes: they wait for each other on CUDA."""
    for place in source.of("if_statement"):
        condition = text_of(place.node.child_by_field_name("condition"))
        then, otherwise = place.node.child_by_field_name("consequence"), place.node.child_by_field_name("alternative")
        if then is None or otherwise is None or not _LANE_CONDITION.search(condition):
            continue
        if any(map(_is_for_all_lanes, _calls(then))) and any(map(_is_for_all_lanes, _calls(otherwise))):
            yield place.node.start_byte + place.offset, f"if {condition}"


def _is_for_all_lanes(call: Node) -> bool:
    given = arguments(call)
    if not _WAITS.fullmatch(callee(call)):
        return False
    return not given or bool(_ALL_LANES.fullmatch(text_of(given[0])))
