"""Which ``warpSize`` is CUDA's: not a variable of the program's that is called the same, not a member of its own structures."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from amdflow.migrate.lexer import mask
from amdflow.migrate.syntax import Source, text_of

SIZE = "warpSize"
_DECLARED = re.compile(
    r"\b(?:unsigned|signed|int|long|short|auto|size_t|\w+_t|uint|ulong|const|constexpr|dim3|typename|class)\b"
    rf"\s*[*&]*\s*{SIZE}\b|\b(?:unsigned|int|size_t|\w+_t|uint)\b[^;(){{}}]*,\s*{SIZE}\s*[;,=]"
)
_PROPERTIES = re.compile(r"\b(?:cudaDeviceProp|hipDeviceProp_t)\b[\s*&]*(?:const\b[\s*&]*)?(\w+)")
_MORE = re.compile(r"\b(?:cudaDeviceProp|hipDeviceProp_t)\s+\w+\s*(?:,\s*\w+\s*)+;")
_KEYWORD = r"(?:return|if|while|for|switch|case|else|throw|sizeof|not|and|or|co_return|co_yield|new|delete)\b"
_OBJECT = re.compile(
    r"(?:(?:\w+(?:\[[^\[\]]*\])?(?:\.|->))*(?P<name>\w+)(?:\[[^\[\]]*\])?"
    r"|\(\s*\*\s*(?P<pointer>\w+)\s*\)"
    rf"|(?<!\w)(?!{_KEYWORD})(?:\w+\s*(?:::|\.|->)\s*)*(?P<call>\w+)\s*\([^()]*\))\s*(?:\.|->)\s*$"
)
_PRINTED = re.compile(
    r"printf|\bcout\b|\bcerr\b|<<\s*$|\bstream\s*<<(?!<)|\bprint\w*\s*\(|\blog(?:_\w+|ger\w*)\s*\(", re.IGNORECASE
)


def properties(masked: str) -> frozenset[str]:
    """Names of variables, parameters and members that hold a device's properties."""
    names = {match.group(1) for match in _PROPERTIES.finditer(masked)}
    for match in _MORE.finditer(masked):
        names.update(re.findall(r"\w+", match.group())[1:])
    return frozenset(names)


def declares_warp_size(masked: str) -> bool:
    """Whether a variable or member of the program's own is called ``warpSize``."""
    return bool(_DECLARED.search(masked))


def is_device_property(masked: str, start: int, end: int, devices: Collection[str] | None) -> int | None:
    """Where the expression begins that reads the warp size from a device's properties; None if this is something else.

    What is only printed stays: there the hardware's number is wanted. ``start`` and ``end`` are those of ``warpSize``;
    ``devices`` are the names that may stand before it, None for any.
    """
    statement, head = _statement(masked, start)
    found = _OBJECT.search(head)
    if found is None or not _may_hold_properties(found, devices):
        return None
    before, after = head[: found.start()].rstrip(), masked[end : end + 4].lstrip()
    if before.endswith("&") or re.match(r"=[^=]", after) or _PRINTED.search(head):
        return None
    return statement + found.start()


def is_unclear(masked: str, start: int) -> bool:
    """Whether the ``warpSize`` at this offset is a member of something that cannot be made out, and is not only printed."""
    _statement_start, head = _statement(masked, start)
    return _OBJECT.search(head) is None and not _PRINTED.search(head)


def _statement(masked: str, at: int) -> tuple[int, str]:
    """Where the statement around an offset begins, and its text up to there."""
    begin = max(masked.rfind(stop, 0, at) for stop in ";{}") + 1
    return begin, masked[begin:at]


def _may_hold_properties(found: re.Match[str], devices: Collection[str] | None) -> bool:
    name, pointer, call = found.group("name", "pointer", "call")
    return devices is None or (name or pointer or call) in devices or "DeviceProp" in (call or "")


def is_shadowed(source: Source, at: int) -> bool:
    """Whether the ``warpSize`` at this character offset is a local variable, parameter or member of the program's own."""
    begin = source.byte_of(at)
    node: Node | None = source.tree.root_node.descendant_for_byte_range(begin, begin + len(SIZE))
    return any(
        _DECLARED.search(text) and _DECLARED.search(mask(text))
        for around in _ancestors(node)
        for text in _scope(around)
    )


def _ancestors(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.parent


def _scope(node: Node) -> Iterator[str]:
    """What declares names for the code inside a node: a whole function, template parameters, members, a file's declarations."""
    if node.type in ("function_definition", "lambda_expression", "field_declaration"):
        yield text_of(node)
    elif node.type == "template_declaration":
        yield text_of(node.child_by_field_name("parameters"))
    elif node.type == "field_declaration_list":
        yield from (text_of(child) for child in node.named_children if child.type == "field_declaration")
    elif node.type in ("declaration_list", "translation_unit"):  # a namespace's, or the whole file
        yield from (text_of(child) for child in node.named_children if child.type == "declaration")
