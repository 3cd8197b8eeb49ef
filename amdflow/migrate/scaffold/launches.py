"""Where a tree launches a kernel, and with what grid, block and template arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from amdflow.migrate.lexer import mask

_FIGURES = re.compile(r"[\d\s+*/()%,<>-]+")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Launch:
    """One launch. ``grid``, ``block`` and ``shared`` are as written; ``figures`` the same where they come to numbers, else empty."""

    path: str
    line: int
    grid: str
    block: str
    shared: str = "0"
    templates: tuple[str, ...] = ()
    figures: tuple[str, str, str] = ("", "", "0")


def find_launch(kernel: str, texts: Mapping[str, str], first: str) -> Launch | None:
    """The launch that tells most, the file ``first`` looked at before the others."""
    found: list[Launch] = []
    for path in sorted(texts, key=lambda name: (name != first, name)):
        if kernel in texts[path]:
            found += _in_text(kernel, path, texts[path])
    return max(found, key=lambda launch: sum(map(bool, launch.figures)), default=None)


def _in_text(kernel: str, path: str, text: str) -> list[Launch]:
    masked = mask(text)
    found = []
    for match in re.finditer(rf"\b{re.escape(kernel)}\b", masked):
        templates, at = _template_arguments(masked, match.end())
        words = _chevrons(masked, at) or _wrapped(masked, match.start(), at)
        if len(words) >= 2:
            line = masked.count("\n", 0, match.start()) + 1
            shared = words[2] if len(words) > 2 else "0"
            before = masked[: match.start()]
            figures = (_figure(words[0], before), _figure(words[1], before), _figure(shared, before))
            found.append(Launch(path, line, words[0], words[1], shared, templates, figures))
    return found


def _template_arguments(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """What stands between < and > after a name, and where it ends; nothing where a launch begins at once."""
    rest = text[at : at + 2000]
    match = re.match(r"\s*<(?!<)", rest)
    if not match:
        return (), at
    depth = 0
    for index in range(match.end() - 1, len(rest)):
        depth += {"<": 1, ">": -1}.get(rest[index], 0)
        if rest[index] in ";{}" or depth == 0:
            return (tuple(_split(rest[match.end() : index])), at + index + 1) if depth == 0 else ((), at)
    return (), at


def _chevrons(text: str, at: int) -> list[str]:
    match = re.compile(r"\s*\)?\s*<<<([^;{}]*?)>>>", re.DOTALL).match(text, at)
    return _split(match[1]) if match else []


def _wrapped(text: str, start: int, at: int) -> list[str]:
    """Grid, block and shared memory after the kernel's name as the first argument of a launch call or macro."""
    before = text[:start].rstrip()
    before = before[: -len("HIP_KERNEL_NAME(")].rstrip() if before.endswith("HIP_KERNEL_NAME(") else before
    call = re.search(r"(\w+)\s*\($", before)
    if call is None or not re.search(r"launch", call[1], re.IGNORECASE):
        return []
    rest = re.match(r"\s*\)?\s*,([^;]*)", text[at:])
    words = _split(rest[1]) if rest else []
    return words[:3] if len(words) >= 4 else []


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth < 0:
            break
        if character == "," and not depth:
            parts.append(" ".join(current.split()))
            current = ""
        else:
            current += character
    return [*parts, " ".join(current.split())] if current.strip() or parts else []


def _figure(text: str, before: str, depth: int = 0) -> str:
    """The expression with constants in place of names that are set to numbers above it; empty when it does not come to numbers."""
    if depth > 4:
        return ""

    def value(match: re.Match[str]) -> str:
        name = match.group()
        if name in ("dim3", "sizeof", "int", "float", "size_t", "unsigned"):
            return name if name == "dim3" else "?"
        patterns = (
            rf"#[ \t]*define[ \t]+{name}[ \t]+([^\n]+)",
            rf"\b{name}\s*=\s*([^;,{{}}]+)[;,]",
            rf"\bdim3\s+{name}\s*[({{]([^;{{}}]+)[)}}]\s*;",
        )
        for pattern in patterns:
            found = re.findall(pattern, before)
            if found:
                inner = _figure(found[-1].strip(), before, depth + 1)
                return ("dim3" if "dim3" in pattern else "") + f"({inner})" if inner else "?"
        return "?"

    replaced = _WORD.sub(value, text)
    return replaced if _FIGURES.fullmatch(replaced.replace("dim3", "")) else ""
