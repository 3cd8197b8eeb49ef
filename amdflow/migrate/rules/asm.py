"""Inline assembly: its text, and whether it is meant for the GPU."""

from __future__ import annotations

import re

from tree_sitter import Node

from amdflow.migrate.ptx.statement import NotUnderstood, asm_statements
from amdflow.migrate.ptx.translate import UNKNOWN, translate
from amdflow.migrate.syntax import Place, enclosing_function, is_device, text_of

_PTX = re.compile(r"%(?:%|\d|\[)|\b[a-z][a-z0-9_]*(?:\.[a-z0-9_:]+)+\s|^\s*(?:trap|exit|brkpt)\s*;")


def asm_text(node: Node) -> str:
    """The assembly text of an ``asm`` statement, its string pieces joined."""
    code = node.child_by_field_name("assembly_code")
    if code is None:
        code = next(
            (
                child
                for child in node.children
                if child.type in ("string_literal", "concatenated_string", "raw_string_literal")
            ),
            None,
        )
    pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', text_of(code)) if code is not None else []
    return "".join(pieces).replace("\\n", "\n").replace("\\t", " ").strip()


def is_gpu_asm(place: Place) -> bool:
    """Inline assembly meant for the GPU: not empty, and in device code or unmistakably PTX."""
    text = asm_text(place.node)
    if not text:
        return False
    function = enclosing_function(place.node)
    if not place.offset and is_device(function):
        return True
    return bool(_PTX.search(text)) and not re.search(
        r"\b(?:rdtsc|rdtscp|cpuid|mfence|lfence|sfence|pause|nop|xchg[lq]?|mov[lq]|lock)\b", text
    )


def blocking(node: Node) -> str:
    """Opcode of the first instruction that has no known equivalent, and why where there is more to say; empty if there is none."""
    for statement in asm_statements(text_of(node)):
        try:
            translate(statement, in_kernel=lambda: True)
        except NotUnderstood as found:
            words = [word for word in found.instruction.split() if not word.startswith("@")]
            if not words:
                return ""
            opcode = re.split(r"[{\[;]", words[0])[0]
            return opcode if found.reason == UNKNOWN else f"{opcode} ({found.reason})"
    return ""
