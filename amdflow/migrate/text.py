"""Bytes of a source file as text and back, without losing one; its lines; small words."""

from __future__ import annotations

from collections.abc import Iterable

_SNIFF_BYTES = 8192


def decode(data: bytes) -> str:
    """UTF-8 where it is UTF-8; other bytes survive as surrogates, so that :func:`encode` gives back the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The reverse of :func:`decode`."""
    return text.encode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Text that can go into JSON and HTML: bytes that are not UTF-8 are read as Latin-1."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    return text


def is_binary(data: bytes) -> bool:
    """Whether it holds NUL bytes near its start (object code, UTF-16)."""
    return b"\0" in data[:_SNIFF_BYTES]


def counted(number: int, word: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def line_ending(text: str) -> str:
    """The line ending that most lines have."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def with_line_ending(text: str, ending: str) -> str:
    """Lines that a tool added with a bare newline get the file's own ending."""
    return text if ending == "\n" else text.replace("\r\n", "\n").replace("\n", "\r\n")


def splice(text: str, pieces: Iterable[tuple[int, int, str]]) -> str:
    """The text with new text in place of pieces of it (start, end, new), which are in order and do not overlap."""
    parts, at = [], 0
    for start, end, new in pieces:
        parts += [text[at:start], new]
        at = end
    return "".join((*parts, text[at:]))


def line_starts(text: str) -> list[int]:
    """Offset of each line's first character; only newlines count, as for compilers and editors."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts
