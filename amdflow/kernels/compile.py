"""Compiles lowered sources: to a code object for a gfx target, to a shared library for the CPU."""

from __future__ import annotations

import shutil
from pathlib import Path

from amdflow.pipeline.stage import Run
from amdflow.toolchain import Rocm

# TileLang's headers include rocWMMA but use only what it brings along; this stands in for that library.
_ROCWMMA_STAND_IN = "#pragma once\n#include <hip/hip_bfloat16.h>\n"
HIP_FLAGS = ("-O3", "-std=c++17", "--cuda-device-only", "--no-gpu-bundle-output", "-Wno-everything")
CPU_FLAGS = ("-O2", "-std=c++17", "-fPIC", "-shared", "-fno-strict-aliasing", "-w")


def stand_in_headers(folder: Path) -> Path:
    """Write the headers that need not be installed; returns the include folder."""
    header = folder / "rocwmma" / "rocwmma.hpp"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(_ROCWMMA_STAND_IN, encoding="utf-8")
    return folder


def compile_hip(
    source: Path, result: Path, *, arch: str, include: str, headers: Path, rocm: Rocm, run: Run, log: str
) -> None:
    """Make the code object ``result`` for ``arch``. Raises CommandFailed."""
    argv = [
        str(rocm.clang),
        *rocm.compile_flags(),
        f"--offload-arch={arch}",
        *HIP_FLAGS,
        f"-I{headers}",
        f"-I{include}",
        "-c",
        str(source),
        "-o",
        str(result),
    ]
    run.call(argv, log=log)


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
