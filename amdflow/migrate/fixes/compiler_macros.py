"""Conditions that ask "is this compiled as CUDA" or "is this the device pass" also hold for the HIP compiler.

Only questions of existence are extended. A comparison with a version or an architecture keeps its value, and is reported.
"""

from __future__ import annotations

import re

from amdflow.migrate import lexer
from amdflow.migrate.fixes import Applied, Change, Draft
from amdflow.migrate.fixes.wave_awareness import asks_for_hip
from amdflow.migrate.text import splice

RULE = "AMF1025"
_COUNTERPART = {"__CUDACC__": "__HIPCC__", "__NVCC__": "__HIPCC__", "__CUDA_ARCH__": "__HIP_DEVICE_COMPILE__"}
_NAMES = "|".join(_COUNTERPART)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:ifdef|ifndef|if|elif)\b(?:[^\\\n]|\\\r?\n)*", re.MULTILINE)
_SHORT = re.compile(rf"#([ \t]*)(ifdef|ifndef)([ \t]+)({_NAMES})\b")
_DEFINED = re.compile(rf"(!\s*)?\bdefined\s*(?:\(\s*({_NAMES})\s*\)|({_NAMES})\b)")


def extend_compiler_conditions(draft: Draft) -> Change:
    """The text with those conditions extended; a file that asks for HIP itself has its answers, and stays as it is."""
    text = draft.text
    if not any(name in text for name in _COUNTERPART):
        return Change(text)
    masked = lexer.mask(text)
    applied: list[Applied] = []
    pieces: list[tuple[int, int, str]] = []
    conditions = list(_CONDITION.finditer(masked))
    came = lexer.mask(draft.original) if draft.original else masked
    if any(asks_for_hip(match.group()) for match in _CONDITION.finditer(came)):
        return Change(text)
    for match in conditions:
        written = text[match.start() : match.end()]
        if "__HIP" in match.group() or "HIPCC" in match.group() or _is_guard(masked, match):
            continue
        new = _extend(written)
        if new != written:
            pieces.append((*match.span(), new))
            line = text.count("\n", 0, match.start()) + 1
            applied.append(
                Applied(RULE, line, f"{' '.join(match.group().split())} also holds for the HIP compiler now")
            )
    return Change(splice(text, pieces), applied)


def _extend(condition: str) -> str:
    short = _SHORT.search(condition)
    if short:
        name = short.group(4)
        if short.group(2) == "ifdef":
            new = f"#{short.group(1)}if{short.group(3)}defined({name}) || defined({_COUNTERPART[name]})"
        else:
            new = f"#{short.group(1)}if{short.group(3)}!defined({name}) && !defined({_COUNTERPART[name]})"
        return condition[: short.start()] + new + condition[short.end() :]
    compared = {name for name in _COUNTERPART if re.search(rf"\b{name}\b", _DEFINED.sub("", condition))}

    def both(match: re.Match[str]) -> str:
        name = match.group(2) or match.group(3)
        if name in compared:
            return match.group()
        negated = "!" if match.group(1) else ""
        return f"{negated}(defined({name}) || defined({_COUNTERPART[name]}))"

    return _DEFINED.sub(both, condition)


def _is_guard(masked: str, match: re.Match[str]) -> bool:
    """Whether the lines behind define the very name that is asked for: a stub for other compilers, not a question."""
    asked = _SHORT.search(match.group())
    return bool(
        asked and re.match(rf"\s*#[ \t]*define[ \t]+{asked.group(4)}\b", masked[match.end() : match.end() + 200])
    )
