"""Finds ``asm`` statements in a source and takes them apart: text, operands, clobbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from amdflow.migrate import lexer

_START = re.compile(
    r"(?<![\w#])(?:asm|__asm__|__asm)\b(?P<words>(?:\s|\\\r?\n|\b(?:volatile|__volatile__|__volatile|inline|goto)\b)*)\("
)
_PIECE = re.compile(
    r'(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)|R"(?P<mark>[^()\\\s]{0,16})\((?P<raw>[\s\S]*?)\)(?P=mark)"'
    r'|"(?P<string>(?:[^"\\]|\\[\s\S])*)"|(?P<splice>\\\r?\n)|(?P<other>[\s\S])'
)
_HEAD = re.compile(r"[\s,]*(?:\[\s*(?P<name>\w+)\s*\]\s*)?\x00(?P<constraint>[^\x00]*)\x00\s*\(")
_ESCAPE = re.compile(r"\\(?:\r?\n|([\s\S]))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": " ", "f": " ", "0": ""}
_OPENING, _CLOSING = "([{", ")]}"


class NotUnderstood(Exception):
    """An asm statement that is left alone. ``instruction`` is what stands in the way, ``reason`` why."""

    def __init__(self, instruction: str, reason: str) -> None:
        super().__init__(f"{instruction}: {reason}" if instruction else reason)
        self.instruction, self.reason = " ".join(instruction.split()), reason


@dataclass(frozen=True, slots=True)
class AsmOperand:
    """``[name] "constraint" (expression)``; ``output`` tells on which side of the colon it stands."""

    constraint: str
    expression: str
    output: bool
    name: str = ""

    @property
    def letter(self) -> str:
        """The constraint without ``=``, ``+`` and ``&``."""
        return self.constraint.lstrip("=+&% ").strip()


@dataclass(frozen=True, slots=True)
class AsmStatement:
    """One statement, from its first letter (``start``) to behind its last parenthesis (``end``), as offsets in the text."""

    start: int
    end: int
    template: str
    operands: tuple[AsmOperand, ...]
    clobbers_memory: bool
    problem: str = ""
    """Why it cannot be taken apart; everything but the place is empty then."""


def asm_statements(text: str) -> Iterator[AsmStatement]:
    """Every asm statement outside comments and strings, also in macro bodies and in branches nobody compiles."""
    if "asm" not in text:
        return
    masked = lexer.mask(text)
    for match in _START.finditer(masked):
        end = _closing(masked, match.end())
        if end:
            inside = text[match.end() : end - 1]
            yield _take_apart(inside, match.start(), end, goto="goto" in match.group("words"))


def _closing(masked: str, at: int) -> int:
    """Offset behind the parenthesis that closes the one before ``at``; 0 where there is none."""
    depth = 1
    for offset in range(at, len(masked)):
        if masked[offset] == "(":
            depth += 1
        elif masked[offset] == ")":
            depth -= 1
            if depth == 0:
                return offset + 1
    return 0


def _take_apart(inside: str, start: int, end: int, *, goto: bool) -> AsmStatement:
    def broken(problem: str) -> AsmStatement:
        return AsmStatement(start, end, "", (), False, problem)

    if goto:
        return broken("it jumps to labels of the program")
    if re.search(r"^[ \t]*#", inside, re.MULTILINE):
        return broken("it holds preprocessor lines")
    sections = _split(_plain(inside), ":")
    template = "".join(re.findall(r"\x00([^\x00]*)\x00", sections[0]))
    if re.sub(r"\x00[^\x00]*\x00", "", sections[0]).strip():
        return broken("its text is put together from macros")
    operands: list[AsmOperand] = []
    for section, output in zip(sections[1:3], (True, False), strict=False):
        found = _operands(section, output=output)
        if found is None:
            return broken("an operand of it cannot be read")
        operands += found
    clobbers = sections[3] if len(sections) > 3 else ""
    return AsmStatement(start, end, template, tuple(operands), "memory" in clobbers)


def _operands(section: str, *, output: bool) -> list[AsmOperand] | None:
    """Operands in order; nvcc takes them with and without commas between. None where something else stands there."""
    found, at = [], 0
    while section[at:].strip(" ,\t\r\n"):
        head = _HEAD.match(section, at)
        end = _closing(section, head.end()) if head else 0
        if head is None or not end:
            return None
        expression = " ".join(section[head.end() : end - 1].replace("\x00", '"').split())
        found.append(AsmOperand(head.group("constraint"), expression, output, head.group("name") or ""))
        at = end
    return found


def _plain(inside: str) -> str:
    """Comments and spliced lines gone, each string between two NUL characters, its escapes resolved."""

    def piece(match: re.Match[str]) -> str:
        if match.group("string") is not None:
            return f"\x00{_ESCAPE.sub(lambda found: _ESCAPES.get(found.group(1) or '0', found.group(1)), match.group('string'))}\x00"
        if match.group("raw") is not None:
            return f"\x00{match.group('raw')}\x00"
        return " " if match.group("comment") or match.group("splice") else match.group()

    return _PIECE.sub(piece, inside)


def _split(text: str, mark: str) -> list[str]:
    """At each ``mark`` outside brackets and strings."""
    parts, depth, quoted, at = [], 0, False, 0
    for offset, letter in enumerate(text):
        if letter == "\x00":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == mark and depth == 0:
            parts.append(text[at:offset])
            at = offset + 1
    return [*parts, text[at:]]
