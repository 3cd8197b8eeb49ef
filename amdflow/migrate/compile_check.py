"""Whether each translation unit compiles, for each target, device and host."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from amdflow import process
from amdflow.files import write_atomic
from amdflow.migrate.build_flags import DEFAULT_STANDARD, Flags
from amdflow.pipeline.stage import Run

_TIME_LIMIT_SECONDS = 600.0
_NEEDS_RDC = ("undefined hidden symbol", "undefined symbol:")
OK, FAILED = "ok", "failed"


@dataclass(frozen=True)
class Compiler:
    """The HIP compiler: ``program`` and the flags every call needs."""

    program: Path
    flags: tuple[str, ...]
    c_flags: tuple[str, ...]
    """Instead of ``flags`` for C sources, which have no device code."""
    version: str


@dataclass(frozen=True)
class Unit:
    """One translation unit of the migrated tree. ``digest`` stands for its text and everything of the tree that it includes."""

    name: str
    path: Path
    flags: Flags
    digest: str
    outside: tuple[Path, ...] = ()
    """Original folders from which includes that leave the tree are found; searched last."""


@dataclass
class UnitResult:
    """``states`` maps target to ok or failed; ``outputs`` holds what the compiler said for each target that failed."""

    name: str
    states: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    relocatable: bool = False
    """Compiles only with -fgpu-rdc: its device code needs another unit's."""


class CompileCheck:
    """Compiles units in parallel; remembers those that compiled."""

    def __init__(
        self, compiler: Compiler, source: Path, payload: Path, run: Run, targets: Sequence[str], extra: Sequence[str]
    ) -> None:
        self._compiler, self._source, self._payload, self._run = compiler, source, payload, run
        self._targets, self._extra = tuple(targets), tuple(extra)
        self._cache = run.cache / "compiled"
        self.processes = 0
        self.reused = 0

    def all(self, units: Sequence[Unit], jobs: int, advance: Callable[[str], None]) -> dict[str, UnitResult]:
        """Results by name."""
        self._cache.mkdir(parents=True, exist_ok=True)

        def one(unit: Unit) -> UnitResult:
            result = self._check(unit)
            advance(unit.name)
            return result

        with ThreadPoolExecutor(jobs, thread_name_prefix="compile") as pool:
            return {result.name: result for result in pool.map(one, units)}

    def command(self, unit: Unit, targets: Sequence[str], *, relocatable: bool = False) -> list[str]:
        """The argv: device code for every target and host code, thrown away."""
        is_c = unit.name.endswith(".c")
        words = [str(self._compiler.program), *(self._compiler.c_flags if is_c else self._compiler.flags)]
        if not is_c:
            words += [f"--offload-arch={target}" for target in targets] + [
                f"-std={unit.flags.standard or DEFAULT_STANDARD}"
            ]
            words += ["-fgpu-rdc"] if relocatable else []
        words += [
            "-O1",
            "-w",
            "-ferror-limit=60",
            "-fno-caret-diagnostics",
            "-fno-color-diagnostics",
            "-fdiagnostics-absolute-paths",
        ]
        words += [f"-idirafter{folder}" for folder in unit.outside]
        words += [f"-I{folder}" for folder in self._folders(unit)] + [f"-D{macro}" for macro in unit.flags.macros]
        words += [word for name in unit.flags.forced for word in ("-include", name)]
        return [*words, *self._extra, "-c", str(unit.path), "-o", os.devnull]

    def _folders(self, unit: Unit) -> list[Path]:
        """Migrated folders in place of the original ones; folders outside the tree as they are."""
        moved = [
            self._payload / folder.relative_to(self._source) if folder.is_relative_to(self._source) else folder
            for folder in unit.flags.folders
        ]
        return list(dict.fromkeys(moved))

    def _check(self, unit: Unit) -> UnitResult:
        kept = self._cache / f"{unit.digest}"
        if kept.is_file():
            self.reused += 1
            kept.touch()
            return UnitResult(
                unit.name, dict.fromkeys(self._targets, OK), relocatable=kept.read_text(encoding="utf-8") == "rdc"
            )
        result = self._compile(unit, relocatable=False)
        if any(word in output for output in result.outputs.values() for word in _NEEDS_RDC):
            again = self._compile(unit, relocatable=True)
            result = again if OK in again.states.values() or not result.outputs else result
        if FAILED not in result.states.values():
            write_atomic(kept, "rdc" if result.relocatable else "")
        return result

    def _compile(self, unit: Unit, *, relocatable: bool) -> UnitResult:
        """All targets in one process; one by one only when that fails, to tell which ones."""
        result = UnitResult(unit.name, relocatable=relocatable)
        done = self._call(unit, self._targets, relocatable=relocatable)
        if done.returncode == 0:
            result.states = dict.fromkeys(self._targets, OK)
            return result
        for target in self._targets:
            alone = (
                done
                if len(self._targets) == 1 or unit.name.endswith(".c")
                else self._call(unit, (target,), relocatable=relocatable)
            )
            result.states[target] = FAILED if alone.returncode else OK
            if alone.returncode:
                result.outputs[target] = (
                    alone.output
                    if not alone.timed_out
                    else f"{alone.output}\nerror: the compiler took longer than {_TIME_LIMIT_SECONDS:.0f} s"
                )
        return result

    def _call(self, unit: Unit, targets: Sequence[str], *, relocatable: bool) -> process.Completed:
        self.processes += 1
        done = process.run(
            self.command(unit, targets, relocatable=relocatable),
            cwd=unit.path.parent,
            timeout=_TIME_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode or self.processes == 1:
            log = self._run.logs / "compile.log"
            with log.open("a", encoding="utf-8", errors="replace") as stream:
                stream.write(f"== {unit.name} ({', '.join(targets)})\n{done.output}\n")
            self._run.record(done, cwd=unit.path.parent, log=log)
        return done


def depends_on(compiler: Compiler, targets: Sequence[str], flags: Flags, extra: Sequence[str]) -> list[str]:
    """What a compile result depends on besides the sources."""
    return [
        compiler.version,
        *compiler.flags,
        *targets,
        *map(str, flags.folders),
        *flags.macros,
        *flags.forced,
        flags.standard,
        *extra,
    ]
