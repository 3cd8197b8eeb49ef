"""Compiler output as findings: each error at its original line, one finding for each root cause."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amdflow.findings import Effort, Finding, Severity
from amdflow.migrate.text import counted
from amdflow.migrate.third_party import owner

COMPILE_ERROR, MISSING_HEADER = "AMF1002", "AMF1004"
_ERROR = re.compile(
    r"^(?P<path>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<kind>fatal error|error|note): (?P<text>.*)$"
)
_INCLUDED = re.compile(r"^In file included from (?P<path>[^:\n]+):(?P<line>\d+):")
_BARE = re.compile(r"^(?:[\w.+/-]+: )?(?P<kind>fatal error|error): (?P<text>.*)$")
_MISSING = re.compile(r"'(?P<header>[^']+)' file not found")
_FOLLOWS = re.compile(
    r"too many errors emitted|(?:device|host) compilation|linker command failed|\d+ errors? generated"
)
_QUOTED = re.compile(r"'([^']*)'")
_NUMBER = re.compile(r"\b\d+\b")
_PLACES_KEPT = 25


@dataclass(frozen=True)
class Problem:
    """One error of one unit. ``path`` is relative to the migrated tree, or empty when the error lies in none of its files."""

    text: str
    path: str
    line: int
    column: int
    unit: str
    target: str


@dataclass
class _Cause:
    text: str
    problems: list[Problem] = field(default_factory=list)


def read_problems(output: str, unit: str, target: str, payload: Path) -> list[Problem]:
    """Errors in a compiler's output. An error inside a system header counts for the line of the tree that led there."""
    found: list[Problem] = []
    included: tuple[str, int] = ("", 0)
    pending: str | None = None
    for line in output.splitlines():
        if (match := _INCLUDED.match(line)) is not None:
            name = _inside(match["path"], payload)
            included = (name, int(match["line"])) if name else included
        elif (match := _ERROR.match(line)) is not None:
            name = _inside(match["path"], payload)
            if match["kind"] == "note":
                if pending and name and found:
                    found[-1] = Problem(pending, name, int(match["line"]), int(match["column"]), unit, target)
                    pending = None
                continue
            if _FOLLOWS.search(match["text"]):
                continue
            pending = None if name else match["text"]
            place = (name, int(match["line"]), int(match["column"])) if name else (*included, 0)
            found.append(Problem(match["text"], *place, unit, target))
            included = ("", 0)
        elif (match := _BARE.match(line)) is not None and not _FOLLOWS.search(match["text"]):
            found.append(Problem(match["text"], "", 0, 0, unit, target))
    if not found:
        tail = [line for line in output.splitlines() if line.strip()][-1:] or ["the compiler failed without a word"]
        found.append(Problem(tail[0][:300], "", 0, 0, unit, target))
    return found


def _inside(path: str, payload: Path) -> str:
    normal, prefix = os.path.normpath(path), f"{payload}{os.sep}"
    return normal.removeprefix(prefix) if normal.startswith(prefix) else ""


def root_causes(
    problems: Iterable[Problem], original_line: Callable[[str, int], int], own_names: Callable[[str], bool]
) -> list[Finding]:
    """One finding for each cause, the most far-reaching first. ``original_line`` maps a migrated line, ``own_names`` tells names of the tree."""
    causes: dict[str, _Cause] = {}
    for problem in problems:
        causes.setdefault(_key(problem.text, own_names), _Cause(problem.text)).problems.append(problem)
    ordered = sorted(
        causes.values(),
        key=lambda cause: (-len({problem.unit for problem in cause.problems}), -len(cause.problems), cause.text),
    )
    return [_finding(cause, original_line) for cause in ordered]


def _key(text: str, own_names: Callable[[str], bool]) -> str:
    """Errors with the same key have the same cause: names of the tree's own do not tell causes apart, names of libraries do."""
    missing = _MISSING.search(text)
    if missing:
        return f"missing {missing['header']}"
    return _NUMBER.sub("0", _QUOTED.sub(lambda match: "''" if own_names(match.group(1)) else match.group(), text))


def _finding(cause: _Cause, original_line: Callable[[str, int], int]) -> Finding:
    places: dict[tuple[str, int], None] = {}
    for problem in cause.problems:
        places[problem.path or problem.unit, original_line(problem.path, problem.line) if problem.path else 0] = None
    first_path, first_line = next(iter(places))
    units = sorted({problem.unit for problem in cause.problems})
    targets = tuple(sorted({problem.target for problem in cause.problems}))
    missing = _MISSING.search(cause.text)
    extra = {
        "count": len(places),
        "units": units[:_PLACES_KEPT],
        "places": [f"{path}:{line}" for path, line in list(places)[:_PLACES_KEPT]],
        "compiler": cause.text,
    }
    also = (
        f" ({counted(len(places), 'place')}, {counted(len(units), 'unit')})"
        if len(places) > 1 or len(units) > 1
        else ""
    )
    if missing:
        return _missing(missing["header"], also, first_path, first_line, targets, extra)
    column = cause.problems[0].column
    return Finding(
        COMPILE_ERROR,
        Severity.COMPILE,
        f"{cause.text}{also}",
        first_path,
        first_line,
        column,
        title="Compile error",
        effort=Effort.HOURS,
        targets=targets,
        extra=extra,
    )


def _missing(header: str, also: str, path: str, line: int, targets: tuple[str, ...], extra: dict[str, Any]) -> Finding:
    library = owner(header)
    whose = f", of {library.name}," if library else ""
    advice = (
        library.advice
        if library
        else f"Install the ROCm build of the library that holds {header}, name its folder with --extra-arg=-I<folder>, or replace what is used of it."
    )
    return Finding(
        MISSING_HEADER,
        Severity.COMPILE,
        f"header {header}{whose} is not found{also}",
        path,
        line,
        title="Header not found",
        effort=Effort.HOURS,
        targets=targets,
        fix=advice,
        extra=extra | {"header": header},
    )


def missing_in_translation(reasons: Mapping[str, str], settled: Collection[str]) -> list[Finding]:
    """Headers that hipify-clang did not find, one finding each, for a run that compiles nothing.

    ``reasons`` says by file why it was translated as text; ``settled`` are headers that the translation replaces.
    """
    files: dict[str, list[str]] = {}
    for name, reason in sorted(reasons.items()):
        for match in _MISSING.finditer(reason):
            if match["header"] not in settled:
                files.setdefault(match["header"], []).append(name)
    found = []
    for header, names in sorted(files.items(), key=lambda item: (-len(item[1]), item[0])):
        also = f" ({counted(len(names), 'file')})" if len(names) > 1 else ""
        extra = {"count": len(names), "units": [], "places": [f"{name}:0" for name in names[:_PLACES_KEPT]]}
        found.append(_missing(header, also, names[0], 0, (), extra))
    return found
