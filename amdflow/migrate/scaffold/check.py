"""Whether a scaffold compiles, and if not, whether what blocks it lies in the function that it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from amdflow import process
from amdflow.migrate.diagnostics import Problem, read_problems
from amdflow.migrate.scaffold.extract import Origin, origins
from amdflow.migrate.scaffold.program import CODE_NAME
from amdflow.toolchain import Rocm

_TIME_LIMIT_SECONDS = 300.0
_MISSING = re.compile(r"'([^']+)' file not found")


class State(StrEnum):
    """How a scaffold stands."""

    COMPILES = "compiles"
    BLOCKED = "blocked in the function"
    WAITS = "waits for another flagged place"
    OUTSIDE = "blocked outside the function"


@dataclass(frozen=True)
class Blocker:
    """One error. ``path`` and ``line`` are the migrated file's; ``name`` is the item it lies in; empty in the test program itself."""

    message: str
    path: str
    line: int
    name: str
    own: bool


@dataclass(frozen=True)
class Verdict:
    """What the compiler said; ``missing`` are headers that it did not find."""

    blockers: tuple[Blocker, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def outside(self) -> list[Blocker]:
        """Errors that lie anywhere but in the function."""
        return [blocker for blocker in self.blockers if not blocker.own]


class Checker:
    """Compiles test programs for every target, device and host, and reads the errors."""

    def __init__(self, rocm: Rocm, targets: Sequence[str]) -> None:
        self._rocm, self._targets = rocm, tuple(targets)

    def check(self, program: Path, flags: Sequence[str]) -> Verdict:
        """Compile ``program`` to nothing."""
        words = [
            str(self._rocm.clang),
            *self._rocm.compile_flags(),
            *(f"--offload-arch={target}" for target in self._targets),
        ]
        words += [
            "-O1",
            "-w",
            "-ferror-limit=0",
            "-fno-caret-diagnostics",
            "-fno-color-diagnostics",
            "-fdiagnostics-absolute-paths",
        ]
        done = process.run(
            [*words, *flags, "-c", program.name, "-o", "/dev/null"],
            cwd=program.parent,
            timeout=_TIME_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            return Verdict()
        problems = read_problems(done.output, program.name, "", program.parent.resolve())
        where = origins((program.parent / CODE_NAME).read_text(encoding="utf-8", errors="surrogateescape"))
        blockers = dict.fromkeys(_blocker(problem, where) for problem in problems)
        return Verdict(tuple(blockers), tuple(dict.fromkeys(_MISSING.findall(done.output))))


def _blocker(problem: Problem, where: Sequence[Origin | None]) -> Blocker:
    origin = where[problem.line - 1] if problem.path == CODE_NAME and 0 < problem.line <= len(where) else None
    if origin is not None:
        return Blocker(problem.text, origin.path, origin.line, origin.name, origin.own)
    return Blocker(problem.text, problem.path, problem.line, "", own=False)
