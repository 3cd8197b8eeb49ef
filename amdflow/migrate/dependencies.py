"""Which libraries a tree uses, by its includes, names and build files, and what stands for each on ROCm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from amdflow import process
from amdflow.config import Model
from amdflow.migrate import lexer
from amdflow.report.migrated import Dependency

_DATA = Path(__file__).with_name("dependencies.yaml")
_WORD = re.compile(r"[A-Za-z_]\w*(?:::\w+)*")
_FILES_KEPT, _GAPS_KEPT = 20, 40


class LibraryEntry(Model):
    """One library of the table."""

    name: str
    stands: str
    status: Literal["drop-in", "renamed", "partial", "none"]
    includes: tuple[str, ...] = ()
    """Patterns of whole include paths."""
    api: str = ""
    """Pattern of names in code."""
    link: tuple[str, ...] = ()
    """Names in build files."""
    note: str = ""


class _Table(Model):
    libraries: tuple[LibraryEntry, ...] = Field(min_length=1)


@dataclass
class _Use:
    files: dict[str, None] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)


@cache
def library_table() -> tuple[LibraryEntry, ...]:
    """The libraries that are known."""
    return _Table.model_validate(yaml.safe_load(_DATA.read_text(encoding="utf-8"))).libraries


def library_of_header(path: str) -> LibraryEntry | None:
    """The library whose header a path is, as it is written in an include; None for an unknown one."""
    match = _includes().fullmatch(path)
    return library_table()[_index(match)] if match is not None else None


def find_dependencies(
    texts: Mapping[str, str], build_files: Mapping[str, str], unsupported: Collection[str], settled: Collection[str]
) -> list[Dependency]:
    """Libraries that original sources and build files use, the hardest first.

    ``unsupported`` are CUDA names without a HIP one; those of them in ``settled`` are taken care of otherwise.
    """
    table = library_table()
    uses = [_Use() for _ in table]
    for name, text in texts.items():
        process.check_cancelled()
        _read_source(name, text, uses)
    for name, text in build_files.items():
        for index in {match.lastindex or 0 for match in _links().finditer(text)} - {0}:
            uses[index - 1].files[name] = None
    gaps = frozenset(unsupported).difference(settled)
    found = [_dependency(entry, use, gaps) for entry, use in zip(table, uses, strict=True) if use.files]
    order = ("none", "partial", "renamed", "drop-in")
    return sorted(found, key=lambda item: (order.index(item.status), -item.uses, item.name))


def _read_source(name: str, text: str, uses: list[_Use]) -> None:
    for include in lexer.includes(text):
        match = _includes().fullmatch(include.path)
        if match is not None:
            uses[_index(match)].files[name] = None
    for word, count in Counter(_WORD.findall(lexer.mask(text))).items():
        index = _library_of(word)
        if index >= 0:
            uses[index].files[name] = None
            uses[index].names[word] += count


@lru_cache(maxsize=200_000)
def _library_of(word: str) -> int:
    """The library that a name (with its namespaces) belongs to, -1 when it is none's."""
    match = _names().match(word)
    return -1 if match is None else _index(match)


def _index(match: re.Match[str]) -> int:
    """The library whose named group matched; groups inside it have no names."""
    return next(int(name[1:]) for name, text in match.groupdict().items() if text is not None)


def _dependency(entry: LibraryEntry, use: _Use, gaps: Collection[str]) -> Dependency:
    missing = {name: count for name, count in use.names.most_common() if name in gaps}
    return Dependency(
        entry.name,
        entry.stands,
        entry.status,
        entry.note,
        len(use.files),
        use.names.total(),
        tuple(sorted(use.files)[:_FILES_KEPT]),
        dict(list(missing.items())[:_GAPS_KEPT]),
    )


@cache
def _includes() -> re.Pattern[str]:
    groups = (
        f"(?P<l{index}>{'|'.join(entry.includes)})" for index, entry in enumerate(library_table()) if entry.includes
    )
    return re.compile("|".join(groups))


@cache
def _names() -> re.Pattern[str]:
    groups = (f"(?P<l{index}>{entry.api})" for index, entry in enumerate(library_table()) if entry.api)
    return re.compile(rf"(?:{'|'.join(groups)})\b")


@cache
def _links() -> re.Pattern[str]:
    """One numbered group a library, in the table's order."""
    groups = (f"({'|'.join(map(re.escape, entry.link)) or '(?!)'})" for entry in library_table())
    return re.compile(rf"(?:-l|\bCUDA::|find_package\s*\(\s*|\bimport\s+)(?:{'|'.join(groups)})(?![\w-])")
