"""Whether each translation unit compiles, for each target, device and host."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from amdflow import process
from amdflow.files import write_atomic
from amdflow.migrate.build_flags import DEFAULT_STANDARD, Flags
from amdflow.migrate.workers import in_parallel
from amdflow.pipeline.stage import Run

_TIME_LIMIT_SECONDS = 600.0
_NEEDS_RDC = ("undefined hidden symbol", "undefined symbol:")
_DEVICE, _HOST = "--cuda-device-only", "--cuda-host-only"
_PAYLOAD = "<payload>"
OK, FAILED = "ok", "failed"


@dataclass(frozen=True)
class Compiler:
    """The HIP compiler: ``program`` and the flags every call needs."""

    program: Path
    flags: tuple[str, ...]
    c_flags: tuple[str, ...]
    """Instead of ``flags`` for C sources, which have no device code."""
    version: str
    headers: tuple[Path, ...] = ()
    """Folders in which installed libraries keep their headers."""


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
    """Compiles units in parallel; remembers what became of them."""

    def __init__(
        self, compiler: Compiler, source: Path, payload: Path, run: Run, targets: Sequence[str], extra: Sequence[str]
    ) -> None:
        self._compiler, self._source, self._payload, self._run = compiler, source, payload, run
        self._targets, self._extra = tuple(targets), tuple(extra)
        self._cache = run.cache / "compiled"
        self.processes = 0
        self.reused = 0

    def all(self, units: Sequence[Unit], jobs: int) -> dict[str, UnitResult]:
        """Results by name."""
        self._cache.mkdir(parents=True, exist_ok=True)
        with self._run.terminal.progress("compile", len(units), "units") as bar:
            results = in_parallel(self._check, units, jobs, bar, "compile", lambda unit: unit.name)
        return {result.name: result for result in results}

    def command(self, unit: Unit, targets: Sequence[str], *, relocatable: bool = False, only: str = "") -> list[str]:
        """The argv: device code for every target and host code, or one of them ``only``; thrown away."""
        is_c = unit.name.endswith(".c")
        words = [str(self._compiler.program), *(self._compiler.c_flags if is_c else self._compiler.flags)]
        if not is_c:
            words += [f"--offload-arch={target}" for target in targets] + [
                f"-std={unit.flags.standard or DEFAULT_STANDARD}"
            ]
            words += ["-fgpu-rdc"] if relocatable else []
            words += [only] if only else []
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
        kept = self._cache / f"{unit.digest}.json"
        known = self._recall(kept, unit)
        if known is not None:
            self.reused += 1
            return known
        result, settled = self._compile(unit, relocatable=False)
        if any(word in output for output in result.outputs.values() for word in _NEEDS_RDC):
            again, settled_too = self._compile(unit, relocatable=True)
            if OK in again.states.values():
                result, settled = again, settled_too
        if settled:
            self._keep(kept, unit, result)
        return result

    def _recall(self, kept: Path, unit: Unit) -> UnitResult | None:
        """What is known of a unit with this digest. A failure counts only while no folder outside the tree has changed."""
        try:
            known = json.loads(kept.read_text(encoding="utf-8"))
            result = UnitResult(unit.name, known["states"], known["outputs"], known["relocatable"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if result.outputs and known["surroundings"] != self._surroundings(unit):
            return None
        kept.touch()
        result.outputs = {target: text.replace(_PAYLOAD, str(self._payload)) for target, text in result.outputs.items()}
        return result

    def _keep(self, kept: Path, unit: Unit, result: UnitResult) -> None:
        outputs = {target: text.replace(str(self._payload), _PAYLOAD) for target, text in result.outputs.items()}
        known = asdict(replace(result, outputs=outputs)) | {"surroundings": self._surroundings(unit)}
        write_atomic(kept, json.dumps(known))

    def _surroundings(self, unit: Unit) -> list[int]:
        """When folders that headers come from were last changed: a library installed since may mend a failure."""
        folders = (folder for folder in (*unit.flags.folders, *unit.outside) if not folder.is_relative_to(self._source))
        return [_changed(folder) for folder in (*self._compiler.headers, *folders)]

    def _compile(self, unit: Unit, *, relocatable: bool) -> tuple[UnitResult, bool]:
        """All targets in one process; only when that fails, each target's device code and once the host code.

        The second value is False when a time limit ended one of them.
        """
        done = self._call(unit, self._targets, relocatable=relocatable)
        if done.returncode == 0:
            return UnitResult(unit.name, dict.fromkeys(self._targets, OK), relocatable=relocatable), True
        if len(self._targets) == 1 or unit.name.endswith(".c"):
            passes = {target: [done] for target in self._targets}
        else:
            host = self._call(unit, self._targets[:1], relocatable=relocatable, only=_HOST)
            passes = {
                target: [self._call(unit, (target,), relocatable=relocatable, only=_DEVICE), host]
                for target in self._targets
            }
        result = UnitResult(unit.name, relocatable=relocatable)
        for target, parts in passes.items():
            failed = [part for part in parts if part.returncode]
            result.states[target] = FAILED if failed else OK
            if failed:
                result.outputs[target] = "".join(map(_said, failed))
        return result, not any(part.timed_out for parts in passes.values() for part in parts)

    def _call(self, unit: Unit, targets: Sequence[str], *, relocatable: bool, only: str = "") -> process.Completed:
        self.processes += 1
        done = process.run(
            self.command(unit, targets, relocatable=relocatable, only=only),
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


def _said(done: process.Completed) -> str:
    late = f"\nerror: the compiler took longer than {_TIME_LIMIT_SECONDS:.0f} s\n" if done.timed_out else ""
    return f"{done.output}{late}"


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


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
