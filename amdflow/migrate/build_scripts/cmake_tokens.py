"""Reads a CMake file into its commands: comments, quoted and bracket arguments, nested parentheses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK = re.compile(r"(?:\ufeff|\s|#\[(=*)\[[\s\S]*?\]\1\]|#[^\n]*)*")
_COMMAND = re.compile(r"([A-Za-z_]\w*)[ \t]*\(")
_BRACKET = re.compile(r"\[(=*)\[")
_ARGUMENT = re.compile(
    r"\[(?P<level>=*)\[[\s\S]*?\](?P=level)\]"
    r"|\"(?:[^\"\\]|\\[\s\S])*\""
    r"|[()]"
    r"|(?:[^\s()#\"\\]|\\[\s\S]|(?<=[^\s()])\"(?:[^\"\\]|\\[\s\S])*\"|\$\([^()\s]*\))+"
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument and where it stands. A parenthesis within the arguments is one by itself."""

    start: int
    end: int
    text: str
    """As it is written, quotes and all."""

    @property
    def value(self) -> str:
        """Without quotes or brackets."""
        if self.text.startswith('"'):
            return self.text[1:-1]
        bracket = _BRACKET.match(self.text)
        return self.text[bracket.end() : -bracket.end()] if bracket else self.text


@dataclass(frozen=True, slots=True)
class Command:
    """A command: ``start`` is where its name starts, ``opened`` behind its parenthesis, ``closed`` at the one that ends it."""

    name: str
    """In lower case."""
    start: int
    opened: int
    closed: int
    arguments: tuple[Argument, ...]

    @property
    def end(self) -> int:
        """Behind the last parenthesis."""
        return self.closed + 1

    @property
    def values(self) -> list[str]:
        """The arguments' values."""
        return [argument.value for argument in self.arguments]

    @property
    def first(self) -> str:
        """The first argument's value, empty without any."""
        return self.arguments[0].value if self.arguments else ""


def read_commands(text: str) -> list[Command] | None:
    """All commands in order; None when the file cannot be read as CMake."""
    found = []
    at = _skip(text, 0)
    while at < len(text):
        match = _COMMAND.match(text, at)
        read = _read_arguments(text, match.end()) if match else None
        if match is None or read is None:
            return None
        arguments, closed = read
        found.append(Command(match.group(1).lower(), at, match.end(), closed, tuple(arguments)))
        at = _skip(text, closed + 1)
    return found


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _read_arguments(text: str, at: int) -> tuple[list[Argument], int] | None:
    arguments: list[Argument] = []
    depth = 1
    while True:
        at = _skip(text, at)
        match = _ARGUMENT.match(text, at)
        if match is None:
            return None
        at = match.end()
        depth += (match.group() == "(") - (match.group() == ")")
        if depth == 0:
            return arguments, match.start()
        arguments.append(Argument(match.start(), at, match.group()))


def evaluated(text: str, command: Command) -> str:
    """The text between a command's parentheses, comments and bracket arguments (text taken as it is) blanked out, nothing moved."""
    parts, at = [], command.opened
    for argument in command.arguments:
        literal = _BRACKET.match(argument.text)
        parts += [_blanked(text[at : argument.start]), _blanked(argument.text) if literal else argument.text]
        at = argument.end
    return "".join((*parts, _blanked(text[at : command.closed])))


def _blanked(text: str) -> str:
    return "".join(character if character in "\n\r\t" else " " for character in text)


def properties(arguments: tuple[Argument, ...]) -> Iterator[tuple[Argument, Argument]]:
    """The pairs behind PROPERTIES."""
    values = [argument.value for argument in arguments]
    if "PROPERTIES" in values:
        pairs = arguments[values.index("PROPERTIES") + 1 :]
        yield from zip(pairs[::2], pairs[1::2], strict=False)
