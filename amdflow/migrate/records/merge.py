"""Three-way merge by GNU diff3 (diffutils, which every Debian, RHEL and Arch system has)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amdflow import process
from amdflow.errors import AmdflowError, EnvironmentProblem
from amdflow.migrate.records.patch import split_lines
from amdflow.migrate.text import line_ending

OPENING, CLOSING = "<<<<<<< produced", ">>>>>>> recorded"


@dataclass(frozen=True)
class Merged:
    """The merged text, and the lines (from 1) at which conflicts open in it."""

    text: str
    conflicts: tuple[int, ...] = ()


def check_available() -> str:
    """The path of diff3. Raises EnvironmentProblem when there is none."""
    program = shutil.which("diff3")
    if program is None:
        raise EnvironmentProblem(
            "records of manual changes are merged with diff3, which is not installed",
            hint="install diffutils (apt-get install diffutils, or your system's package of that name)",
        )
    return program


def has_conflict(text: str) -> bool:
    """Whether a text holds a conflict that this module left in it."""
    return any(line.startswith((OPENING, CLOSING)) for line in split_lines(text))


def merge(base: str, produced: str, recorded: str) -> Merged:
    """What the tool produced now, with the changes that led from ``base`` to ``recorded``.

    Where both changed the same lines, both stay, between conflict markers. Texts may hold any bytes: diff3 sees a
    number for each distinct line.
    """
    if produced in (base, recorded):
        return Merged(recorded)
    if recorded == base:
        return Merged(produced)
    table: dict[str, int] = {}
    texts = [split_lines(text) for text in (produced, base, recorded)]
    with tempfile.TemporaryDirectory(prefix="amdflow-merge-") as folder:
        names = [Path(folder, name) for name in ("produced", "base", "recorded")]
        for name, lines in zip(names, texts, strict=True):
            numbers = (table.setdefault(line, len(table)) for line in lines)
            name.write_text("".join(f"{number}\n" for number in numbers), encoding="ascii")
        said: list[str] = []
        labels = ("-L", OPENING.split()[1], "-L", "base", "-L", CLOSING.split()[1])
        # -E: the same change on both sides is no conflict
        argv = [check_available(), "--merge", "-E", *labels, *map(str, names)]
        done = process.run(argv, check=False, on_line=said.append)
    if done.returncode not in (0, 1):
        raise AmdflowError(f"diff3 failed: {done.stderr.strip()}", hint="is diffutils installed whole? diff3 --version")
    return _assemble(said, tuple(table), line_ending(produced))


def _assemble(said: Iterable[str], lines: Sequence[str], ending: str) -> Merged:
    out: list[str] = []
    conflicts: list[int] = []
    for word in said:
        if word.isdigit():
            line = lines[int(word)]
        else:
            line = f"{word}{ending}"
            if word == OPENING:
                conflicts.append(len(out) + 1)
        if out and not out[-1].endswith("\n"):
            out[-1] += ending
        out.append(line)
    return Merged("".join(out), tuple(conflicts))
