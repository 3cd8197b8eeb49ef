"""nvcc includes the runtime before line 1 of every .cu file; the HIP compiler does not."""

from __future__ import annotations

import re

from amdflow.migrate import lexer
from amdflow.migrate.fixes import Applied, Change, Draft, insert_include
from amdflow.migrate.text import line_ending

RULE = "AMF1021"
_HEADER = "hip/hip_runtime.h"
_MATH = "math.h"
_C_MATH = ("isfinite", "isnan", "isinf", "signbit", "isnormal")
_C_MATH_CALL = re.compile(rf"(?<![\w:.>])(?:{'|'.join(_C_MATH)})\s*\(")
_LEADING = re.compile(r"(?:\ufeff|\s+|//(?:[^\\\n]|\\[\s\S])*|/\*[\s\S]*?\*/)*")


def add_runtime_header(draft: Draft) -> Change:
    """For a translation unit: include the runtime header before any header of the program's own, unless it is there already."""
    text = draft.text
    if not draft.unit or draft.name.endswith(".c"):
        return Change(text)
    for include in lexer.includes(text):
        if include.path == _HEADER:
            return Change(text)
        if include.quoted:
            break
    match = _LEADING.match(text)
    at = text.rfind("\n", 0, match.end() if match else 0) + 1
    at = max(at, 1 if text.startswith("\ufeff") else 0)
    line = text.count("\n", 0, at) + 1
    return Change(
        f"{text[:at]}#include <{_HEADER}>{line_ending(text)}{text[at:]}",
        [Applied(RULE, line, "added the runtime header that nvcc includes by itself")],
    )


def add_math_header(draft: Draft) -> Change:
    """Include math.h where ``isfinite`` and its kin are called by their C names: only it declares those for the host."""
    text = draft.text
    if not any(name in text for name in _C_MATH) or any(found.path == _MATH for found in lexer.includes(text)):
        return Change(text)
    call = _C_MATH_CALL.search(lexer.mask(text))
    if call is None:
        return Change(text)
    line = text.count("\n", 0, call.start()) + 1
    return Change(
        insert_include(text, f"#include <{_MATH}>", before=call.start()),
        [Applied(RULE, line, "added math.h, which nvcc includes by itself")],
    )
