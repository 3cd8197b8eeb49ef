"""Checks on what the preprocessor leaves of a kernel on AMD targets. Each yields byte offset and text of what it finds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from amdflow.migrate.rules.conditions import Branch, branches
from amdflow.migrate.syntax import Source, function_name, is_device, text_of

Found = Iterator[tuple[int, str]]
_DIRECTIVE_LINE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\\r?\n)*", re.MULTILINE)
_HARMLESS_CALL = re.compile(
    r"\b(?:__syncthreads|__syncwarp|assert|printf|__trap|__builtin_trap|static_assert)\s*\((?:[^()]|\([^()]*\))*\)\s*;"
)
_ACTS = re.compile(
    r"\]\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)"  # an element is assigned
    r"|(?:^|[;{}()])\s*\*+\s*\(?\s*\w[^;=]*(?:[-+*/%&|^])?=(?!=)"  # what a pointer points to
    r"|(?:->|\.)\s*\w+\s*(?:[-+*/%&|^])?=(?!=)"  # a member
    r"|\+\+|--"
    r"|(?:^|[;{}])\s*(?:[\w:]+(?:<[^;{}]*>)?|[\w.]+)\s*\([^;]*\)\s*;"  # a call for its effect
    r"|\breturn\s+[^;\s]|\batomic\w+\s*\(|\basm\b",
    re.MULTILINE,
)


def kernel_gone(source: Source) -> Found:
    """A kernel or device function of which nothing that has an effect is left for AMD: it lies under ``#if __CUDA_ARCH__ >= N``."""
    if "__CUDA" not in source.masked and "CUDA_VERSION" not in source.masked and "CUDART" not in source.masked:
        return
    everywhere = branches(source.masked)
    gone = [branch for branch in everywhere if branch.by_cuda]
    if not gone:
        return
    names: dict[str, int] = {}
    functions = []
    for place in source.of("function_definition"):
        if not place.offset and is_device(place.node):
            span = (source.offset_of_byte(place.node.start_byte), source.offset_of_byte(place.node.end_byte))
            functions.append((place.node, span))
            names[function_name(place.node)] = names.get(function_name(place.node), 0) + 1
    for node, (start, end) in functions:
        around = [branch for branch in gone if branch.start <= start and end <= branch.end]
        if around:
            if "__global__" in text_of(node).partition("{")[0] and names[function_name(node)] == 1:
                yield source.byte_of(around[0].directive), _words(function_name(node), around[0])
            continue
        inside = [branch for branch in gone if start <= branch.directive and branch.end <= end]
        body = source.masked.find("{", start, end)
        never = [branch for branch in everywhere if branch.dead and not branch.by_cuda]
        if inside and _acts(source.masked, body, end, never) and not _acts(source.masked, body, end, [*never, *inside]):
            yield source.byte_of(inside[0].directive), _words(function_name(node), inside[0])


def _words(name: str, branch: Branch) -> str:
    return f"{name}, under {branch.condition or '#else'}"


def _acts(masked: str, start: int, end: int, without: list[Branch]) -> bool:
    """Whether code from ``start`` to ``end``, without these branches, writes, calls or returns anything."""
    characters = list(masked[start + 1 : end])
    for branch in without:
        for index in range(max(branch.start - start - 1, 0), min(branch.end - start - 1, len(characters))):
            if characters[index] != "\n":
                characters[index] = " "
    left = _HARMLESS_CALL.sub(" ", _DIRECTIVE_LINE.sub("", "".join(characters)))
    return bool(_ACTS.search(left))
