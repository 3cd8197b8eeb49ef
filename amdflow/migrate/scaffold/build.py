"""Writes the scaffolds of flagged functions, compiles each, and leaves alone what a person has edited."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from amdflow import process
from amdflow.errors import UsageError
from amdflow.files import sha256_file, write_atomic, write_json
from amdflow.migrate.build_flags import DEFAULT_STANDARD
from amdflow.migrate.scaffold.check import Blocker, Checker, State, Verdict
from amdflow.migrate.scaffold.extract import ItemIndex, needed, written
from amdflow.migrate.scaffold.flagged import Flagged, places_of
from amdflow.migrate.scaffold.items import Part
from amdflow.migrate.scaffold.launches import find_launch
from amdflow.migrate.scaffold.papers import head, makefile, readme, relative_flags
from amdflow.migrate.scaffold.program import CODE_NAME, SUPPORT_NAME, program
from amdflow.migrate.scaffold.published import Published
from amdflow.migrate.scaffold.signature import Where, read_signature
from amdflow.migrate.text import encode, printable

_SUPPORT = Path(__file__).with_name(SUPPORT_NAME)
_RECORD = ".scaffold.json"
_OLD_STANDARDS = ("c++98", "c++03", "c++11", "c++0x", "c++14", "c++1y", "gnu++98", "gnu++11", "gnu++14")
_ROUNDS = 8


@dataclass(frozen=True)
class Scaffold:
    """One scaffold as it stands. ``kept`` tells that a person edited it, so that it was compiled but not written."""

    flagged: Flagged
    where: Where
    folder: Path
    state: State
    blockers: Sequence[Blocker]
    kept: bool = False


class Builder:
    """Writes and checks scaffolds below ``output``."""

    def __init__(
        self,
        published: Published,
        items: ItemIndex,
        checker: Checker,
        output: Path,
        *,
        targets: Sequence[str],
        force: bool = False,
    ) -> None:
        self._published, self._items, self._checker, self._output = published, items, checker, output
        self._targets, self._force = tuple(targets), force
        self._places = places_of(published.findings)

    def all(self, flagged: Sequence[Flagged], jobs: int, advance: Callable[[str], None]) -> list[Scaffold]:
        """One scaffold for each function, in the order given."""
        folders = _folders(self._output, flagged)

        def one(pair: tuple[Flagged, Path]) -> Scaffold:
            process.check_cancelled()
            done = self._one(*pair)
            advance(pair[0].name)
            return done

        with ThreadPoolExecutor(jobs, thread_name_prefix="scaffold") as pool:
            return list(pool.map(one, zip(flagged, folders, strict=True)))

    def _one(self, flagged: Flagged, folder: Path) -> Scaffold:
        draft = _Draft(self._published, self._items, flagged, folder, self._targets)
        kept = not self._force and _is_edited(folder)
        verdict = self._checker.check(folder / draft.program_name, draft.flags) if kept else self._write(draft)
        state = _state(verdict, self._is_flagged)
        return Scaffold(flagged, draft.signature.where, folder, state, verdict.blockers, kept)

    def _is_flagged(self, blocker: Blocker) -> bool:
        """Whether an error lies at a line, or in a function, that has a finding of its own."""
        if blocker.path not in self._published.texts:
            return False
        line = self._published.lines(blocker.path).original(blocker.line)
        places = self._places.get(blocker.path, ())
        if line in places:
            return True
        spans = [(target.item.line, target.function.last) for target in self._items.targets(blocker.path)]
        return any(
            first <= blocker.line <= last and self._has_place(blocker.path, first, last) for first, last in spans
        )

    def _rank(self, verdict: Verdict) -> tuple[int, int]:
        """The fewer errors in places that no finding speaks of, the better; then the fewer of all outside the function."""
        return sum(not self._is_flagged(blocker) for blocker in verdict.outside), len(verdict.outside)

    def _has_place(self, path: str, first: int, last: int) -> bool:
        original = self._published.lines(path).original
        return any(original(first) <= line <= original(last) for line in self._places[path])

    def _write(self, draft: _Draft) -> Verdict:
        """The function with its file's includes; where something else in those is broken, with single items of all of them."""
        first = draft.beside_includes()
        verdict, missing = self._attempt(draft, first)
        if not verdict.outside:
            return verdict
        again, _ = self._attempt(draft, draft.across_includes())
        if self._rank(again) < self._rank(verdict):
            return again
        draft.write(first, missing)
        return verdict

    def _attempt(self, draft: _Draft, parts: Sequence[Part]) -> tuple[Verdict, set[str]]:
        missing: set[str] = set()
        for _round in range(_ROUNDS):
            draft.write(parts, missing)
            verdict = self._checker.check(draft.folder / draft.program_name, draft.flags)
            if not set(verdict.missing) - missing:
                break
            missing |= set(verdict.missing)
        return verdict, missing


class _Draft:
    """One scaffold's files."""

    def __init__(
        self, published: Published, items: ItemIndex, flagged: Flagged, folder: Path, targets: Sequence[str]
    ) -> None:
        self._published, self._items, self._targets = published, items, targets
        self.flagged, self.folder = flagged, folder
        self.signature = read_signature(flagged.target.function)
        self.program_name = f"{folder.name}.hip"

    @cached_property
    def flags(self) -> list[str]:
        """Include folders relative to the scaffold, macros, standard."""
        flags = self._published.flags(self._items.unit_of(self.flagged.file))
        own = self._published.flags(self.flagged.file)
        standard = flags.standard if flags.standard not in ("", *_OLD_STANDARDS) else DEFAULT_STANDARD
        folders = tuple(dict.fromkeys((*own.folders, *flags.folders)))
        words = relative_flags(self.folder, folders, flags.macros, flags.forced, standard)
        return [*words, *map(str, self._published.manifest.config.get("extra_args", ()))]

    def beside_includes(self) -> list[Part]:
        """Items of the function's own file, its includes kept."""
        return needed(self._items.parts(self.flagged.file), self.flagged.target)

    def across_includes(self) -> list[Part]:
        """Items of every file of the tree that the function's unit includes."""
        return needed(self._items.flattened(self._items.unit_of(self.flagged.file)), self.flagged.target)

    def write(self, parts: Sequence[Part], missing: Iterable[str]) -> None:
        """All files of the scaffold around these parts; includes in ``missing`` are left out."""
        code = written(parts, self.flagged.target, missing)
        launch = (
            find_launch(self.signature.name, self._published.texts, self.flagged.file)
            if self.signature.where is Where.KERNEL
            else None
        )
        item = self.flagged.target.item
        text = program(self.signature, launch, _scopes(parts, self.flagged), head(self.flagged), item.text)
        files = {
            self.program_name: text,
            CODE_NAME: f"#pragma once\n#include <hip/hip_runtime.h>\n{code}",
            "README.md": readme(self.flagged, self.program_name, self._targets, self.flags),
            "Makefile": makefile(self.program_name, self._targets, self.flags),
            SUPPORT_NAME: _SUPPORT.read_text(encoding="utf-8"),
        }
        for name, content in files.items():
            write_atomic(self.folder / name, encode(content))
        write_json(self.folder / _RECORD, {name: sha256_file(self.folder / name) for name in files})


def _scopes(parts: Sequence[Part], flagged: Flagged) -> tuple[str, ...]:
    """The namespaces that the function stands in, those of a file that includes its file in the middle of one among them."""
    item = flagged.target.item
    return next((part.scopes for part in parts if (part.file, part.line) == (item.file, item.line)), item.scopes)


def _state(verdict: Verdict, is_flagged: Callable[[Blocker], bool]) -> State:
    if not verdict.blockers:
        return State.COMPILES
    if not verdict.outside:
        return State.BLOCKED
    return State.WAITS if all(map(is_flagged, verdict.outside)) else State.OUTSIDE


def _folders(output: Path, flagged: Sequence[Flagged]) -> list[Path]:
    """A folder for each; functions of one name in one file are told apart by their line."""
    base = [output / Path(function.file) / _slug(function.name) for function in flagged]
    return [
        path if base.count(path) == 1 else path.with_name(f"{path.name}_{function.first}")
        for path, function in zip(base, flagged, strict=True)
    ]


def _slug(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "operator"


def _is_edited(folder: Path) -> bool:
    """Whether a file of the scaffold is not as amdflow wrote it. Raises UsageError when the folder is something else."""
    if not folder.exists():
        return False
    try:
        record: dict[str, str] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        if any(folder.iterdir()):
            raise UsageError(
                f"{folder} is there and is not a scaffold of amdflow",
                hint="move it away, or write elsewhere: --output DIR",
            ) from None
        return False
    return any(not (folder / name).is_file() or sha256_file(folder / name) != digest for name, digest in record.items())


def to_json(scaffold: Scaffold, root: Path) -> dict[str, Any]:
    """One scaffold as JSON values; the folder relative to ``root`` where it lies inside."""
    flagged = scaffold.flagged
    return {
        **flagged_json(flagged),
        "kind": scaffold.where.value,
        "folder": scaffold.folder.relative_to(root).as_posix()
        if scaffold.folder.is_relative_to(root)
        else str(scaffold.folder),
        "state": scaffold.state.value,
        "edited": scaffold.kept,
        "errors": [
            {"path": item.path, "line": item.line, "in": item.name, "own": item.own, "message": printable(item.message)}
            for item in scaffold.blockers
        ],
    }


def flagged_json(flagged: Flagged) -> dict[str, Any]:
    """A flagged function as JSON values; lines are the original file's."""
    return {
        "function": flagged.name,
        "file": flagged.file,
        "line": flagged.first,
        "last_line": flagged.last,
        "findings": [
            {"id": finding.id, "severity": finding.severity.value, "effort": finding.effort.value, "line": finding.line}
            for finding in flagged.findings
        ],
    }
