"""nvcc includes the runtime before line 1 of every .cu file; the HIP compiler does not."""

from __future__ import annotations

import re

from amdflow.migrate import lexer
from amdflow.migrate.fixes import Applied
from amdflow.migrate.text import line_ending

RULE = "AMF1021"
_HEADER = "hip/hip_runtime.h"
_LEADING = re.compile(r"(?:\ufeff|\s+|//(?:[^\\\n]|\\[\s\S])*|/\*[\s\S]*?\*/)*")


def add_runtime_header(text: str) -> tuple[str, list[Applied]]:
    """For a translation unit: include the runtime header before any header of the program's own, unless it is there already."""
    for include in lexer.includes(text):
        if include.path == _HEADER:
            return text, []
        if include.quoted:
            break
    match = _LEADING.match(text)
    at = text.rfind("\n", 0, match.end() if match else 0) + 1
    at = max(at, 1 if text.startswith("\ufeff") else 0)
    line = text.count("\n", 0, at) + 1
    return f"{text[:at]}#include <{_HEADER}>{line_ending(text)}{text[at:]}", [
        Applied(RULE, line, "added the runtime header that nvcc includes by itself")
    ]
