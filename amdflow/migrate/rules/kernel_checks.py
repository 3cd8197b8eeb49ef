"""Checks on kernels and types. Each yields byte offset and text of what it finds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from amdflow.migrate.syntax import Source, enclosing_function, is_device, text_of

Found = Iterator[tuple[int, str]]
_TAIL_STEP = re.compile(r"(\w+)\s*\[\s*(\w+)\s*\]\s*(?:\+=|=)[^;]*\1\s*\[\s*\2\s*\+\s*(\d+)\s*\]")
_VECTOR = r"\b(?:float|double|int|uint|short|ushort|char|uchar|long|ulong|longlong|ulonglong)[1234]\b"
_OPERATOR = re.compile(
    rf"\boperator\s*(?:[-+*/]=\s*\(\s*(?P<left>{_VECTOR})\s*&|[*/]\s*\(\s*(?:const\s+)?(?P<first>{_VECTOR})(?:\s*const)?\s*&?)"
    rf"\s*\w*\s*,\s*(?:const\s+)?(?P<right>{_VECTOR})[^)]*\)"
)
_USES_LANES = re.compile(r"__(?:shfl|ballot|any|all|activemask|syncwarp)|\bwarp_?reduce", re.IGNORECASE)
_VALUES = (
    re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]*)", re.MULTILINE),
    re.compile(r"\b(\w+)\s*=(?!=)\s*([^;,{}]+)(?=[;,}])"),
)
_DIM3 = re.compile(r"\bdim3\s+[^;]*;")
_MADE = re.compile(r"\b(\w+)\s*[({]([^(){};]*)[)}]")
_BLOCK_OF_WARP = re.compile(r"\bdim3\s+\w+\s*[({]\s*(?:32|k?_?WARP_?SIZE)\s*[,)}]", re.IGNORECASE)


def launch_bounds_minimum(source: Source) -> Found:
    """``__launch_bounds__`` with a second argument."""
    for place in source.of("launch_bounds"):
        if len(place.node.named_children) > 1:
            yield place.node.start_byte + place.offset, text_of(place.node)


def device_launch(source: Source) -> Found:
    """A kernel launched from device code."""
    for place in source.of("kernel_call_syntax"):
        if not place.offset and is_device(enclosing_function(place.node)):
            yield place.node.start_byte, text_of(place.node.parent) if place.node.parent is not None else ""


def warp_synchronous_tail(source: Source) -> Found:
    """The unrolled end of a reduction without a barrier: three or more steps in shared memory in a row."""
    for place in source.of("function_definition"):
        if not is_device(place.node) and "volatile" not in text_of(place.node):
            continue
        if place.offset:
            continue
        body = source.masked[source.offset_of_byte(place.node.start_byte) : source.offset_of_byte(place.node.end_byte)]
        run: list[re.Match[str]] = []
        for match in _TAIL_STEP.finditer(body):
            between = body[run[-1].end() : match.start()] if run else ""
            if "sync" in between or "fence" in between or between.count("\n") > 2:
                run = []
            run.append(match)
            if len(run) == 3:
                yield (
                    place.node.start_byte + len(body[: run[0].start()].encode("utf-8", "surrogateescape")),
                    run[0].group(),
                )


def vector_operator(source: Source) -> Found:
    """An operator on two values of one CUDA vector type that is ambiguous with HIP's own.

    HIP has all operators. A definition that is not for both host and device is preferred to them, and so is one with a scalar;
    what stays are the compound assignments, ``*`` and ``/``, whose HIP forms are no templates.
    """
    for match in _OPERATOR.finditer(source.masked):
        head = source.masked[max(source.masked.rfind(end, 0, match.start()) for end in ";}\n#") + 1 : match.start()]
        both = "__host__" in head if "__device__" in head else bool(re.search(r"\b[A-Z][A-Z_0-9]{4,}\b", head))
        if both and match.group("right") == (match.group("left") or match.group("first")):
            yield source.byte_of(match.start()), match.group()


def small_block(source: Source) -> Found:
    """A launch with blocks of 32 threads, written out or through a constant, a variable or a dim3 of this file."""
    named: set[str] | None = None
    for place in source.of("kernel_call_syntax"):
        given = [child for child in place.node.named_children if child.type != "comment"]
        if len(given) < 2:
            continue
        named = _names_of_32(source.masked) if named is None else named
        if _is_32(text_of(given[1]), named):
            yield place.node.start_byte + place.offset, text_of(place.node)


def _names_of_32(masked: str) -> set[str]:
    """Names that are 32 wherever this file gives them a value; a dim3 of 32 threads counts."""
    given = [found for pattern in _VALUES for found in pattern.findall(masked)]
    given += [found for statement in _DIM3.findall(masked) for found in _MADE.findall(statement)]
    found: set[str] = set()
    for _chain in range(3):
        values: dict[str, list[bool]] = {}
        for name, value in given:
            values.setdefault(name, []).append(_is_32(value.strip(), found))
        found = {name for name, known in values.items() if all(known)}
    return found


def _is_32(value: str, named: Collection[str]) -> bool:
    bare = re.sub(r"^dim3\s*[({]|(?:,\s*1[uU]?\s*)+\)?$|[(){}]", "", value).strip()
    return bare in named or bool(re.fullmatch(r"32[uU]?|0x20", bare))


def block_of_one_warp_wide(source: Source) -> Found:
    """A block 32 threads wide in a file that works across lanes: on 64 lanes one wave holds two rows."""
    if not _USES_LANES.search(source.masked):
        return
    for match in _BLOCK_OF_WARP.finditer(source.masked):
        if "warpSize" not in match.group():
            yield source.byte_of(match.start()), match.group()
