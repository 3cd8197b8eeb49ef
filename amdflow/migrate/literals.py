"""String literals on their way through hipify-clang, which renames what looks like an API name inside them.

In a raw literal it even counts the place wrongly and destroys what stands there. So such names are disguised before the
tool reads the file, and the original literals are put back afterwards.
"""

from __future__ import annotations

import re

from amdflow.migrate import lexer

_LURE = re.compile(r"cu(?=[A-Za-z])")
_FILE_NAME = re.compile(r'[\w/]\.(?:h|hpp|hh|hxx|c|cc|cpp|cu|cuh|inl|inc)"$')


def protect(text: str) -> str:
    """The same text, same offsets, in which no string literal holds anything that the tool would rename.

    File names stay as they are: one may be included through a macro.
    """
    parts: list[str] = []
    at = 0
    for start, end in lexer.strings(text) if "cu" in text else ():
        literal = text[start:end]
        if _LURE.search(literal) and not _FILE_NAME.search(literal):
            parts += [text[at:start], _LURE.sub("cv", literal)]
            at = end
    return "".join((*parts, text[at:])) if parts else text


def restore(original: str, translated: str) -> str | None:
    """``translated`` with the literals of ``original``; None when there are more or fewer of them than before."""
    places = list(lexer.strings(translated))
    literals = [original[start:end] for start, end in lexer.strings(original)]
    if len(places) != len(literals):
        return None
    parts: list[str] = []
    at = 0
    for (start, end), literal in zip(places, literals, strict=True):
        parts += [translated[at:start], literal]
        at = end
    return "".join((*parts, translated[at:]))
