"""Just enough of C++'s lexical rules to tell code from comments and strings, in one pass of a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_COMMENT = r"//(?:[^\\\n]|\\(?:\r\n|[\s\S]))*|/\*[\s\S]*?(?:\*/|\Z)"
_STRING = r'(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\([\s\S]*?\)(?P=delimiter)"|"(?:[^"\\\n]|\\[\s\S])*"?|\'(?:[^\'\\\n]|\\[\s\S])*\'?'
_NUMBER = r"\.?[0-9](?:[eEpP][+-]|'\w|[\w.])*"
_WORD = r"[^\W\d]\w*"
_INCLUDE = r'^(?P<lead>\ufeff?[ \t]*\#[ \t]*(?:include|import|include_next)[ \t]*)(?P<open>[<"])(?P<path>[^>"\n]+)[>"]'
_TOKEN = re.compile(
    rf"(?P<comment>{_COMMENT})|(?P<include>{_INCLUDE})|(?P<string>{_STRING})|(?P<number>{_NUMBER})|(?P<word>{_WORD})",
    re.MULTILINE,
)
_BLANKED = re.compile(
    rf"(?P<comment>{_COMMENT})|(?P<include>{_INCLUDE})|(?P<string>{_STRING})|{_NUMBER}|{_WORD}", re.MULTILINE
)
_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+([^\W\d]\w*)[ \t]*$", re.MULTILINE)
_MACRO_PATH = re.compile(r"^([ \t]*#[ \t]*define[ \t]+)([^\W\d]\w*)([ \t]+)([<\"])([^>\"\n]+)([>\"])", re.MULTILINE)
CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b((?:[^\\\n]|\\\r?\n)*)", re.MULTILINE)
"""A preprocessor conditional in masked text: its word, and the rest of it with continued lines."""
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Include:
    """One include directive: its path, whether in quotes, the offsets of the path in the text."""

    path: str
    quoted: bool
    start: int
    end: int


def rewrite(text: str, word: Callable[[str, re.Match[str]], str], include: Callable[[str, bool], str | None]) -> str:
    """Text with each identifier replaced by ``word(name, match)`` and each include path by ``include(path, quoted)``.

    ``include`` returns the new path, ``""`` to drop the directive, or None to leave it as it is. Comments, strings,
    numbers and everything else stay.
    """

    def replace(match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "word":
            return word(match.group(), match)
        if match.group("include"):
            quoted = match.group("open") == '"'
            new = include(match.group("path"), quoted)
            if new is None:
                return match.group()
            if not new:
                return ""
            close = '"' if quoted else ">"
            return f"{match.group('lead')}{match.group('open')}{new}{close}"
        return match.group()

    return _TOKEN.sub(replace, text)


def includes(text: str) -> tuple[Include, ...]:
    """Include directives outside comments."""
    return _includes(text) if "#" in text else ()


@lru_cache(maxsize=16)  # several steps ask for the same file's, one after the other
def _includes(text: str) -> tuple[Include, ...]:
    return tuple(
        Include(match.group("path").strip(), match.group("open") == '"', match.start("path"), match.end("path"))
        for match in _TOKEN.finditer(text)
        if match.group("include")
    )


def macro_includes(text: str) -> Iterator[tuple[str, int]]:
    """Name of the macro and offset of each ``#include NAME``."""
    for match in _BY_MACRO.finditer(text) if "include" in text else ():
        yield match.group(1), match.start()


def macro_paths(text: str) -> Iterator[tuple[str, str, bool]]:
    """Name, path, whether in quotes, of each macro that may be included: ``#define NAME <path>``."""
    for match in _MACRO_PATH.finditer(text) if "define" in text else ():
        yield match.group(2), match.group(5), match.group(4) == '"'


def rewrite_macro_paths(text: str, include: Callable[[str, bool], str | None]) -> str:
    """Like :func:`rewrite` for the paths of macros that the text itself includes, or that can be nothing but paths."""
    included = {name for name, _at in macro_includes(text)}

    def replace(match: re.Match[str]) -> str:
        head, name, space, opening, path, closing = match.groups()
        new = include(path, opening == '"') if opening == "<" or name in included else None
        return f"{head}{name}{space}{opening}{new}{closing}" if new else match.group()

    return _MACRO_PATH.sub(replace, text) if "define" in text else text


def comments(text: str) -> Iterator[re.Match[str]]:
    """Comments, as matches of the whole comment."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "comment":
            yield match


def comments_and_strings(text: str) -> Iterator[re.Match[str]]:
    """Comments and string or character literals, as matches of the whole of each."""
    for match in _TOKEN.finditer(text):
        if match.group("comment") is not None or match.group("string") is not None:
            yield match


def strings(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each string literal, its prefix (``u8``, ``R``) included; include paths are none."""
    for match in _TOKEN.finditer(text) if '"' in text else ():
        if match.group("string") and not match.group().startswith("'"):
            yield match.span()


def mask(text: str) -> str:
    """The same text, offsets unchanged, with comments, string contents and include paths blanked out."""

    def blank(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match.group()
        return _NOT_NEWLINE.sub(" ", match.group())

    return _BLANKED.sub(blank, text)
