"""Compiles lowered sources: to a code object for a gfx target, to a shared library for the CPU."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from amdflow.files import canonical_json, sha256_text
from amdflow.pipeline.stage import Run
from amdflow.process import CommandFailed
from amdflow.toolchain import Rocm

# TileLang's headers include rocWMMA but use only what it brings along; this stands in for that library.
_ROCWMMA_STAND_IN = "#pragma once\n#include <hip/hip_bfloat16.h>\n"
# Without -fuse-cuid=none a code object would hold a hash of its path: the same source must give the same file.
HIP_FLAGS = (
    *("-O3", "-std=c++17", "--cuda-device-only", "--no-gpu-bundle-output", "-fuse-cuid=none"),
    "-Wno-everything",
)
_WORTH_PRECOMPILING = 3
CPU_FLAGS = ("-O2", "-std=c++17", "-fPIC", "-shared", "-fno-strict-aliasing", "-w")


def stand_in_headers(folder: Path) -> Path:
    """Write the headers that need not be installed; returns the include folder."""
    header = folder / "rocwmma" / "rocwmma.hpp"
    header.parent.mkdir(parents=True, exist_ok=True)
    if not header.is_file() or header.read_text(encoding="utf-8") != _ROCWMMA_STAND_IN:
        header.write_text(_ROCWMMA_STAND_IN, encoding="utf-8")  # what was precompiled looks at its time
    return folder


@dataclass(frozen=True)
class HipCompiler:
    """Makes code objects for one target."""

    arch: str
    include: str
    """Folder of TileLang's headers."""
    headers: Path
    """From :func:`stand_in_headers`."""
    rocm: Rocm
    run: Run
    precompiled: Path | None = None
    """From :meth:`precompile`."""

    def precompile(self, sources: Sequence[Path], tools: Mapping[str, str]) -> Path | None:
        """Parse the includes that ``sources`` begin with once for all of them: half of a small kernel's compile time.

        The result is kept beside ``headers`` for the next build. None when it is not there and would not pay, or when it
        cannot be made, as each compile then says by itself.
        """
        lines = zip(*map(_includes, sources), strict=False)
        shared = [same[0] for same in takewhile(lambda line: len(set(line)) == 1, lines)]
        stamps = [path.stat().st_mtime_ns for path in sorted(Path(self.include).glob("tl_templates/hip/*"))]
        key = sha256_text(canonical_json([self._command(), dict(tools), shared, stamps]))[:32]
        result = self.headers / f"{self.arch}-{key}.pch"
        if result.is_file() or len(sources) < _WORTH_PRECOMPILING:
            return result if result.is_file() else None
        for old in self.headers.glob(f"{self.arch}-*"):
            old.unlink()
        text, scratch = result.with_suffix(".hip"), result.with_suffix(".tmp")
        text.write_text("\n".join(shared) + "\n", encoding="utf-8")
        options = ["-fsyntax-only", "-Xclang", "-emit-pch", "-Xclang", "-o", "-Xclang", str(scratch)]
        try:
            self.run.call([*self._command(), *options, str(text)], log=f"compile/{self.arch}-headers.log")
        except CommandFailed:
            return None
        return scratch.rename(result)

    def compile(self, source: Path, result: Path, *, log: str) -> None:
        """Make the code object ``result``. Raises CommandFailed."""
        given = ["-Xclang", "-include-pch", "-Xclang", str(self.precompiled)] if self.precompiled else []
        self.run.call([*self._command(), *given, "-c", str(source), "-o", str(result)], log=log)

    def _command(self) -> list[str]:
        target = f"--offload-arch={self.arch}"
        folders = [f"-I{self.headers}", f"-I{self.include}"]
        return [str(self.rocm.clang), *self.rocm.compile_flags(), target, *HIP_FLAGS, *folders]


def _includes(source: Path) -> list[str]:
    """The lines of ``#include`` at the top of a source."""
    lines: list[str] = []
    for line in source.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#include"):
            break
        lines.append(line)
    return lines


def host_compiler(rocm: Rocm | None) -> list[str]:
    """The machine's C++ compiler, else ROCm's clang as one; an empty list when there is neither."""
    for name in ("c++", "g++", "clang++"):
        if found := shutil.which(name):
            return [found]
    if rocm is None:
        return []
    sysroot = [f"--sysroot={rocm.sysroot}"] if rocm.sysroot else []
    return [str(rocm.clang), "--driver-mode=g++", "-fuse-ld=lld", *sysroot]


def compile_cpu(source: Path, result: Path, *, include: str, compiler: list[str], run: Run, log: str) -> None:
    """Make the shared library ``result``. Raises CommandFailed."""
    run.call([*compiler, *CPU_FLAGS, f"-I{include}", str(source), "-o", str(result), "-lm"], log=log)
