"""String literals on their way through hipify-clang, which renames what looks like an API name inside them.

In a raw literal it even counts the place wrongly and destroys what stands there. So such names are disguised before the
tool reads the file, and the original literals are put back afterwards.
"""

from __future__ import annotations

import re

from amdflow.migrate import lexer
from amdflow.migrate.text import splice

_LURE = re.compile(r"cu(?=[A-Za-z])")
_FILE_NAME = re.compile(r'[\w/]\.(?:h|hpp|hh|hxx|c|cc|cpp|cu|cuh|inl|inc)"$')


def protect(text: str) -> str:
    """The same text, same offsets, in which no string literal holds anything that the tool would rename.

    File names stay as they are: one may be included through a macro.
    """
    if "cu" not in text:
        return text
    literals = ((start, end, text[start:end]) for start, end in lexer.strings(text))
    return splice(
        text, ((start, end, _LURE.sub("cv", old)) for start, end, old in literals if not _FILE_NAME.search(old))
    )


def restore(original: str, translated: str) -> str | None:
    """``translated`` with the literals of ``original``; None when there are more or fewer of them than before."""
    places = list(lexer.strings(translated))
    literals = [original[start:end] for start, end in lexer.strings(original)]
    if len(places) != len(literals):
        return None
    return splice(translated, ((start, end, old) for (start, end), old in zip(places, literals, strict=True)))
