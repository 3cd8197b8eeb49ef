"""Checks on shared memory, atomics and waiting. Each yields byte offset and text of what it finds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from amdflow.migrate.syntax import Source, arguments, callee, enclosing_function, is_device, text_of

Found = Iterator[tuple[int, str]]
_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*|volatile\s+)*([\w:<>\s]*?[\w>])\s*(\w+)\s*\[\s*\]"
)
_TEMPLATE_TYPES = re.compile(r"\b(?:typename|class)\s+(\w+)")
_NARROW_FLOAT = re.compile(r"(?:__)?half2?|(?:__)?nv_bfloat162?|__hip_bfloat162?|bf16|bfloat16")
_FLOAT = re.compile(r"float|double")
_NARROW_MAKERS = re.compile(r"__(?:float|double|floats)2(?:half|bfloat16)\w*|__halves2half2")
_CALLS = re.compile(r"\b(?!while\b|sizeof\b)\w+\s*\(")


def shared_of_two_types(source: Source) -> Found:
    """An ``extern __shared__`` array whose name has another type elsewhere in the file, or the type of a template parameter."""
    first: dict[str, str] = {}
    parameters = set(_TEMPLATE_TYPES.findall(source.masked))
    for match in _SHARED.finditer(source.masked):
        kind, name = " ".join(match.group(1).split()), match.group(2)
        if kind in parameters or first.setdefault(name, kind) != kind:
            yield source.byte_of(match.start()), match.group()


def narrow_float_atomic(source: Source) -> Found:
    """``atomicAdd`` on 16-bit floating point, by the type of its pointer or of its value."""
    yield from _atomic_additions(source, _NARROW_FLOAT, _NARROW_MAKERS)


def float_atomic(source: Source) -> Found:
    """``atomicAdd`` on float or double."""
    yield from _atomic_additions(source, _FLOAT, None)


def _atomic_additions(source: Source, kinds: re.Pattern[str], makers: re.Pattern[str] | None) -> Found:
    if "atomicAdd" not in source.masked:
        return
    types: dict[tuple[int, str], str] = {}
    for place in source.of("call_expression"):
        given = arguments(place.node)
        if callee(place.node) != "atomicAdd" or len(given) < 2 or place.offset:
            continue
        function = enclosing_function(place.node)
        name = re.search(r"[A-Za-z_]\w*", re.sub(r"^\s*\(?\s*&?\s*\(*", "", text_of(given[0])))
        declared = ""
        if name and function is not None:
            key = (function.start_byte, name.group())
            declared = types[key] if key in types else types.setdefault(key, _declared_type(function, name.group()))
        made = makers is not None and makers.match(text_of(given[1]))
        if kinds.fullmatch(declared) or made:
            yield place.node.start_byte, text_of(place.node)


def _declared_type(function: Node, name: str) -> str:
    """Type word in the first declaration of ``name`` in a function (parameters included); empty when there is none."""
    match = re.search(
        rf"\b(\w+)\s*(?:const\b)?\s*[*&]*\s*(?:__restrict(?:__)?|const)?\s*\b{re.escape(name)}\b\s*(?:[,)\[;=]|$)",
        text_of(function),
    )
    return match.group(1) if match else ""


def spin_on_memory(source: Source) -> Found:
    """A loop in device code with an empty body that waits for memory to change; what a function reads is its own business."""
    for place in source.of("while_statement"):
        condition, body = place.node.child_by_field_name("condition"), place.node.child_by_field_name("body")
        if condition is None or body is None or place.offset or not is_device(enclosing_function(place.node)):
            continue
        text = text_of(condition)
        empty = not re.sub(r"[{};\s]|__threadfence\w*\s*\(\s*\)", "", text_of(body))
        reads = re.search(r"\*\s*\(?\s*[A-Za-z_]|\w\s*\[", text)
        if _is_last(place.node):
            continue
        if empty and reads and not _CALLS.search(text) and not re.search(r"\+\+|--|[^=!<>]=[^=]", text):
            yield place.node.start_byte, f"while {text}"


def device_pointer_arithmetic(source: Source) -> Found:
    """An offset added to a ``CUdeviceptr``."""
    names = set(re.findall(r"\bCUdeviceptr\s+(\w+)", source.masked))
    for kind, signs in (("binary_expression", ("+", "-")), ("assignment_expression", ("+=", "-="))):
        for place in source.of(kind) if names else ():
            left = text_of(place.node.child_by_field_name("left"))
            if left in names and text_of(place.node.child_by_field_name("operator")) in signs:
                yield place.node.start_byte + place.offset, text_of(place.node)


def _is_last(loop: Node) -> bool:
    """Whether nothing follows the loop in its function: then there is no data that the flag could stand for."""
    body = loop.parent
    last = loop.next_named_sibling is None or loop.next_named_sibling.type == "comment"
    return last and body is not None and body.parent is not None and body.parent.type == "function_definition"
