"""Checks on what programs do with a GPU's compute capability. Each yields byte offset and text of what it finds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from amdflow.migrate.syntax import Source, arguments, callee, function_start, text_of

Found = Iterator[tuple[int, str]]
_PROPERTIES = re.compile(r"\bcudaDeviceProp\s*(?:&|\*|const|\s)*(\w+)")
_TELLING = re.compile(r"\b(?:compute_?capability|sm_?version|sm_?arch|cc_?major|sm_?major)\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"cudaDevAttrComputeCapability|COMPUTE_CAPABILITY_M(?:AJOR|INOR)")
_ASKS = re.compile(r"cu(?:da)?DeviceGetAttribute|cuDeviceComputeCapability")
_FEATURE_OF_NVIDIA = re.compile(r"(?:[7-9]|1[0-9]|[7-9][0-9]|1[0-2][0-9])[uU]?")
"""Numbers from Volta on, as major or as two digits. What earlier ones stand for AMD GPUs have too."""
_COMPUTED = re.compile(r"\bmajor\s*\)?\s*\*\s*10\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


def capability_decides(source: Source) -> Found:
    """A choice, by major or by a number made of both, of what only GPUs from Volta on have; not a test that turns old ones away."""
    yield from _uses(source, (">", ">=", "==", "!=", "*"))


def capability_refuses(source: Source) -> Found:
    """A test that turns away what is older."""
    yield from _uses(source, ("<", "<="))


def _uses(source: Source, operators: Collection[str]) -> Found:
    objects = set(_PROPERTIES.findall(source.masked))
    members = (
        re.compile(
            rf"\b(?:{'|'.join(map(re.escape, sorted(objects)))})\b\s*(?:\[[^\]]*\])?\s*(?:\.|->)\s*(?:major|minor)\b"
        )
        if objects
        else None
    )
    variables = _variables(source)
    for place in source.of("binary_expression"):
        sign = text_of(place.node.child_by_field_name("operator"))
        if sign not in operators:
            continue
        left = text_of(place.node.child_by_field_name("left"))
        right = text_of(place.node.child_by_field_name("right"))
        if sign == "*" and not _decides(place.node):
            continue
        if sign not in ("*", "<", "<=") and not _FEATURE_OF_NVIDIA.fullmatch(right):
            continue
        known = (function_start(place.node), left.strip("()&* ")) in variables
        if known or _TELLING.fullmatch(left) or (members is not None and members.fullmatch(left.strip("()"))):
            yield place.node.start_byte + place.offset, text_of(place.node)


def _decides(node: Node) -> bool:
    """Whether the number made of major and minor is compared, there and then, with one of Volta or later."""
    while node.parent is not None and node.parent.type in ("binary_expression", "parenthesized_expression"):
        node = node.parent
        if text_of(node.child_by_field_name("operator")) in (">", ">=", "==", "!="):
            return bool(_FEATURE_OF_NVIDIA.fullmatch(text_of(node.child_by_field_name("right"))))
    return False


def _variables(source: Source) -> set[tuple[int, str]]:
    """(start of the function, name) of variables that a call fills with the numbers, or that are computed from them."""
    found: set[tuple[int, str]] = set()
    for kind, left, right in (("init_declarator", "declarator", "value"), ("assignment_expression", "left", "right")):
        for place in source.of(kind):
            if _COMPUTED.search(text_of(place.node.child_by_field_name(right))):
                found.add((function_start(place.node), text_of(place.node.child_by_field_name(left))))
    if not _ASKS.search(source.masked):
        return found
    for place in source.of("call_expression"):
        if not _ASKS.fullmatch(callee(place.node)):
            continue
        given = [text_of(argument) for argument in arguments(place.node)]
        both = callee(place.node) == "cuDeviceComputeCapability"
        if both or any(_ATTRIBUTE.search(text) for text in given):
            for text in given[: 2 if both else 1]:
                name = _NAME.search(text)
                if name:
                    found.add((function_start(place.node), name.group()))
    return found
