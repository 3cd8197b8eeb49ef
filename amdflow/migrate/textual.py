"""Translation as text: the tool's own map applied to identifiers and include paths, never inside strings or comments.

The fallback for files hipify-clang will not parse, and the last word on all others: dead ``#if`` branches, macros nobody
expands, headers that have moved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from amdflow.migrate import lexer
from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.compat import StandIn

_NAMESPACE = re.compile(r"\bnamespace\s+(?:\w+\s*=\s*)?(?:::\s*)?$")
_MOVABLE = re.compile(r"^(hip|roc|rccl|miopen)", re.IGNORECASE)


class HeaderPlaces:
    """Where the installed ROCm keeps its headers: ``hipblas.h`` now lies in ``hipblas/``."""

    def __init__(self, include: Path) -> None:
        self._include = include
        self._moved: dict[str, str] = {}
        for folder in (
            sorted(path for path in include.iterdir() if path.is_dir() and _MOVABLE.match(path.name))
            if include.is_dir()
            else ()
        ):
            for header in folder.iterdir():
                self._moved.setdefault(header.name, f"{folder.name}/{header.name}")

    def settle(self, path: str) -> str:
        """The path that finds this ROCm header today; the path itself for any other header."""
        if "/" in path or not _MOVABLE.match(path) or (self._include / path).exists():
            return path
        return self._moved.get(path, path)

    def has(self, path: str) -> bool:
        """Whether it is a header of this ROCm."""
        return (self._include / path).is_file()


@dataclass(frozen=True)
class Supplement:
    """What the tool's map lacks, read from the rule files: plain renames that keep the meaning."""

    names: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, StandIn] = field(default_factory=dict)
    """Names that a compatibility header has; see :mod:`amdflow.migrate.fixes.compat_headers`."""


@dataclass(frozen=True)
class TextMap:
    """The textual pass, ready to run on any number of files."""

    api: ApiMap
    supplement: Supplement
    places: HeaderPlaces

    def translate(self, text: str, own_headers: Collection[str] = ()) -> str:
        """The text with CUDA names and headers replaced. ``own_headers`` are include paths that mean files of the tree: they stay."""
        names = self.supplement.names
        api_names = self.api.names
        namespaces = self.supplement.namespaces

        def word(name: str, match: re.Match[str]) -> str:
            new = names.get(name) or api_names.get(name)
            if new:
                return new
            if name in namespaces and _names_a_namespace(match):
                return namespaces[name]
            return name

        def include(path: str, _quoted: bool) -> str | None:
            if path in own_headers:
                return None
            new = self.supplement.headers.get(path, self.api.headers.get(path, path))
            settled = self.places.settle(new) if new else new
            return None if settled == path else settled

        return lexer.rewrite_macro_paths(lexer.rewrite(text, word, include), include)


def _names_a_namespace(match: re.Match[str]) -> bool:
    after = match.string[match.end() : match.end() + 8].lstrip()
    before = match.string[max(match.start() - 80, 0) : match.start()]
    return after.startswith("::") or bool(_NAMESPACE.search(before))


def restore_own_headers(
    original: str, translated: str, own_headers: Collection[str], headers: Mapping[str, str]
) -> str:
    """Undo what hipify-clang does to the tree's own headers that are called like CUDA's (helper_cuda.h, vector_types.h).

    ``headers`` is the tool's map: each original include is looked for, in order, under its own name and its mapped one.
    """
    if not any(path in headers for path in own_headers):
        return translated
    new = list(lexer.includes(translated))
    parts: list[str] = []
    at = position = 0
    for old in lexer.includes(original):
        wanted = (old.path, headers.get(old.path))
        found = next((index for index in range(position, len(new)) if new[index].path in wanted), None)
        if found is None:
            continue
        position = found + 1
        if old.path in own_headers and new[found].path != old.path:
            parts += [translated[at : new[found].start], old.path]
            at = new[found].end
    return "".join((*parts, translated[at:]))
