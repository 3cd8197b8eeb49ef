"""Parses the text of an asm statement: scopes, register declarations, predicates, instructions, operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from amdflow.migrate.ptx.statement import NotUnderstood

_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/")
_PLACEHOLDER = re.compile(r"%(?:(%)|(\d+)|\[(\w+)\])")
_DECLARATION = re.compile(r"\.reg\s*\.(?P<type>\w+)\s+(?P<names>.+)", re.DOTALL)
_COUNTED = re.compile(r"(?P<stem>[\w$%]+)<(?P<count>\d{1,3})>")
_NAME = re.compile(r"[A-Za-z_$%][\w$]*")
_GUARD = re.compile(r"@\s*(?P<not>!?)\s*(?P<name>[\w$%]+)\s+(?P<rest>.+)", re.DOTALL)
_BEHIND_OPCODE = re.compile(r"(?=[^\w.:$])")
_OFFSET = re.compile(r"\s*\+?\s*(?=-)|\s*\+\s*")
_LABEL = re.compile(r"[\w$%]+\s*:(?!:)")
_WHOLE = re.compile(r"(?P<sign>-?)\s*(?P<digits>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")
_SUM = re.compile(r"\(?\d+(?:\s*[-+*]\s*\d+)+\)?")
_REAL = re.compile(r"-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)")
_BITS = re.compile(r"0[fF](?P<single>[0-9a-fA-F]{8})|0[dD](?P<double>[0-9a-fA-F]{16})")


@dataclass(frozen=True, slots=True)
class Register:
    """A register that the text declares, by its unique name."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """``%n`` or ``%[name]``: an operand of the asm statement."""

    key: str


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A special register such as ``%laneid``, without the percent sign."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """An immediate: C++ text, and whether it is a floating-point number."""

    text: str
    real: bool = False


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``: a result nobody wants."""


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``."""

    base: Operand
    offset: Operand | None = None


@dataclass(frozen=True, slots=True)
class Both:
    """``p|q``: two results."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """``!p``."""

    operand: Operand


Operand = Register | Reference | SpecialRegister | Number | Sink | Vector | Address | Both | Negated


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``guard`` is its predicate. ``text`` is how it is written."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Operand | None
    text: str


@dataclass
class Block:
    """Instructions in order, and the type of each declared register by unique name."""

    instructions: list[Instruction] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)


def parse(template: str) -> Block:
    """Raises NotUnderstood naming the first thing that is not plain straight-line code."""
    block = Block()
    scopes: list[dict[str, str]] = [{}]
    for statement in _statements(_COMMENT.sub(" ", template)):
        if statement == "{":
            scopes.append({})
        elif statement == "}":
            if len(scopes) == 1:
                raise NotUnderstood("}", "braces that do not match")
            scopes.pop()
        elif statement.startswith("."):
            _declare(statement, block, scopes)
        else:
            block.instructions.append(_instruction(statement, scopes))
    return block


def _statements(text: str) -> Iterator[str]:
    """Statements without their semicolons; braces of scopes by themselves."""
    at, depth = 0, 0
    for offset, letter in enumerate(text):
        fresh = not text[at:offset].strip()
        if letter == ";" and depth == 0:
            if not fresh:
                yield text[at:offset].strip()
            at = offset + 1
        elif letter in "{}" and depth == 0 and fresh:
            yield letter
            at = offset + 1
        elif letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
    if text[at:].strip():
        yield text[at:].strip()


def _declare(statement: str, block: Block, scopes: list[dict[str, str]]) -> None:
    match = _DECLARATION.fullmatch(statement)
    if match is None:
        raise NotUnderstood(statement, "a directive other than .reg")
    for written in match.group("names").split(","):
        name = _PLACEHOLDER.sub(lambda found: "%" if found.group(1) else found.group(), written.strip())
        counted = _COUNTED.fullmatch(name)
        names = (
            [f"{counted.group('stem')}{index}" for index in range(int(counted.group("count")))] if counted else [name]
        )
        for one in names:
            if not _NAME.fullmatch(one):
                raise NotUnderstood(statement, "a register with a strange name")
            unique = "ptx_" + re.sub(r"\W", "_", one).strip("_")
            while unique in block.registers:
                unique += "_"
            block.registers[unique] = match.group("type")
            scopes[-1][one] = unique


def _instruction(statement: str, scopes: list[dict[str, str]]) -> Instruction:
    guard: Operand | None = None
    rest = statement
    guarded = _GUARD.fullmatch(statement)
    if guarded:
        name = _operand(guarded.group("name"), scopes, statement)
        guard = Negated(name) if guarded.group("not") else name
        rest = guarded.group("rest")
    if _LABEL.match(rest):
        raise NotUnderstood(statement, "a label: only straight-line code is understood")
    opcode, *behind = _BEHIND_OPCODE.split(rest.strip(), maxsplit=1)
    written = behind[0].strip() if behind else ""
    shown = _PLACEHOLDER.sub(lambda found: "%" if found.group(1) else found.group(), statement)
    operands = tuple(_operand(part, scopes, shown) for part in _split(written)) if written else ()
    return Instruction(opcode, operands, guard, shown)


def _split(text: str) -> list[str]:
    parts, depth, at = [], 0, 0
    for offset, letter in enumerate(text):
        if letter in "{[(":
            depth += 1
        elif letter in "}])":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[at:offset].strip())
            at = offset + 1
    return [*parts, text[at:].strip()]


def _operand(text: str, scopes: list[dict[str, str]], statement: str) -> Operand:
    if text.startswith("{") and text.endswith("}"):
        return Vector(tuple(_operand(part, scopes, statement) for part in _split(text[1:-1])))
    if text.startswith("[") and text.endswith("]"):
        base, *offset = (_operand(part, scopes, statement) for part in _OFFSET.split(text[1:-1].strip(), maxsplit=1))
        return Address(base, *offset)
    if "|" in text:
        first, _bar, second = text.partition("|")
        return Both(_operand(first.strip(), scopes, statement), _operand(second.strip(), scopes, statement))
    if text.startswith("!"):
        return Negated(_operand(text[1:].strip(), scopes, statement))
    return _simple(text, scopes, statement)


def _simple(text: str, scopes: list[dict[str, str]], statement: str) -> Operand:
    placeholder = _PLACEHOLDER.fullmatch(text)
    if placeholder:
        return Reference(placeholder.group(2) or placeholder.group(3))
    if text == "_":
        return Sink()
    number = _number(text)
    if number:
        return number
    name = text.replace("%%", "%")
    for scope in reversed(scopes):
        if name in scope:
            return Register(scope[name])
    if name.startswith("%") or name == "WARP_SZ":
        return SpecialRegister(name.removeprefix("%"))
    raise NotUnderstood(statement, f"the operand {name or 'that is missing'}")


def _number(text: str) -> Number | None:
    bits = _BITS.fullmatch(text)
    if bits and bits.group("single"):
        return Number(f"amdflow::ptx::as<float>(0x{bits.group('single')}u)", real=True)
    if bits:
        return Number(f"amdflow::ptx::as<double>(0x{bits.group('double')}ull)", real=True)
    if _REAL.fullmatch(text):
        return Number(text, real=True)
    if _SUM.fullmatch(text) and text.startswith("(") == text.endswith(")"):
        return Number(f"({text})")
    whole = _WHOLE.fullmatch(text)
    return Number(whole.group("sign") + whole.group("digits")) if whole else None
