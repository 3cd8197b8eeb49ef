"""The production line: lower, compile, read the code object; what was made before comes from the cache."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amdflow.errors import AmdflowError
from amdflow.files import portable, write_json
from amdflow.gpu.targets import target
from amdflow.kernels.code_object import Resources, read_resources
from amdflow.kernels.compile import CPU_FLAGS, HIP_FLAGS, HipCompiler, compile_cpu, stand_in_headers
from amdflow.kernels.item import Item, in_parallel
from amdflow.kernels.lower import Failure, lower
from amdflow.pipeline.stage import Run
from amdflow.process import CommandFailed
from amdflow.terminal import Bar
from amdflow.toolchain import Engine, Rocm

SOURCE, OBJECT, LAUNCH, RESOURCES = "source.hip", "kernel.co", "launch.json", "resources.json"
CPU_SOURCE, CPU_LIBRARY = "source.cpp", "kernel.so"


@dataclass(frozen=True)
class Built:
    """One item and the folder that holds what was made of it."""

    item: Item
    folder: Path
    cached: bool

    @property
    def launch(self) -> dict[str, Any]:
        """Symbol, parameters, grid, threads, dynamic LDS."""
        data: dict[str, Any] = json.loads((self.folder / LAUNCH).read_text(encoding="utf-8"))
        return data

    @property
    def resources(self) -> Resources:
        """What the code object takes (GPU items only)."""
        return Resources.from_json(json.loads((self.folder / RESOURCES).read_text(encoding="utf-8")))


def tool_versions(engine: Engine, rocm: Rocm | None) -> dict[str, str]:
    """Versions that results depend on."""
    versions = {name: engine.packages.get(name, "unknown") for name in ("tilelang", "torch")}
    return versions | ({"rocm": rocm.version} if rocm else {})


@dataclass
class Line:
    """The tools of one production line and what could not be made."""

    run: Run
    engine: Engine
    jobs: int
    rocm: Rocm | None
    """None builds for the CPU only."""
    compiler: Sequence[str] = ()
    """For the CPU."""
    failures: list[Failure] = field(default_factory=list)

    def make(self, items: Sequence[Item], *, title: str = "kernels") -> list[Built]:
        """Build every item; those that fail are in ``failures`` and left out."""
        folders = {item: self._folder(item) for item in items}
        wanted = {folder: item for item, folder in folders.items() if not (folder / self._product(item)).is_file()}
        with self.run.terminal.progress(title, total=2 * len(wanted), unit="steps") as bar:
            if wanted:
                self._produce(wanted, bar)
        failed = {failure.item for failure in self.failures}
        return [
            Built(item, folder, folder not in wanted)
            for item, folder in folders.items()
            if item not in failed and (folder / self._product(item)).is_file()
        ]

    def _produce(self, wanted: Mapping[Path, Item], bar: Bar) -> None:
        for folder in wanted:
            shutil.rmtree(folder, ignore_errors=True)

        def step(item: Item) -> None:
            bar.update(1, note=item.name)

        lowered = lower(wanted, self.run, self.engine, self.jobs, done=step)
        self.failures += lowered.failures
        ready = [(folder, item) for folder, item in wanted.items() if (folder / LAUNCH).is_file()]
        headers = stand_in_headers(self.run.cache / "headers")
        compilers = self._compilers(ready, lowered.include, headers)
        failures = in_parallel(
            lambda pair: self._compile(*pair, include=lowered.include, compilers=compilers, done=step), ready, self.jobs
        )
        self.failures += [failure for failure in failures if failure]

    def _compilers(self, ready: Sequence[tuple[Path, Item]], include: str, headers: Path) -> dict[str, HipCompiler]:
        sources: dict[str, list[Path]] = {}
        for folder, item in ready:
            if item.target != "cpu":
                sources.setdefault(item.target, []).append(folder / SOURCE)

        def prepare(arch: str) -> HipCompiler:
            assert self.rocm is not None
            plain = HipCompiler(arch, include, headers, self.rocm, self.run)
            return replace(plain, precompiled=plain.precompile(sources[arch], tool_versions(self.engine, self.rocm)))

        return dict(zip(sources, in_parallel(prepare, sources, self.jobs), strict=True))

    def _compile(
        self,
        folder: Path,
        item: Item,
        *,
        include: str,
        compilers: Mapping[str, HipCompiler],
        done: Callable[[Item], None],
    ) -> Failure | None:
        log = f"compile/{item.name}.log"
        try:
            if item.target == "cpu":
                compile_cpu(
                    folder / CPU_SOURCE,
                    folder / "kernel.tmp",
                    include=include,
                    compiler=list(self.compiler),
                    run=self.run,
                    log=log,
                )
                (folder / "kernel.tmp").rename(folder / CPU_LIBRARY)
            else:
                assert self.rocm is not None
                compilers[item.target].compile(folder / SOURCE, folder / OBJECT, log=log)
                resources = read_resources(folder / OBJECT, target(item.target), self.rocm, self.run)
                write_json(folder / RESOURCES, resources.to_json())
        except CommandFailed as error:
            return Failure(item, "compile", _first_error(error), portable(self.run.logs / log, self.run.root))
        except AmdflowError as error:
            return Failure(item, "compile", error.message, portable(self.run.logs / log, self.run.root))
        done(item)
        return None

    def _folder(self, item: Item) -> Path:
        flags = [*CPU_FLAGS, *self.compiler] if item.target == "cpu" else HIP_FLAGS
        return self.run.cache / item.key(tool_versions(self.engine, self.rocm), flags)

    @staticmethod
    def _product(item: Item) -> str:
        return CPU_LIBRARY if item.target == "cpu" else RESOURCES  # each is what is written last


def _first_error(error: CommandFailed) -> str:
    """The compiler's first error, which is the one that matters."""
    for line in error.completed.output.splitlines():
        if "error:" in line:
            return line.strip()
    return error.message
