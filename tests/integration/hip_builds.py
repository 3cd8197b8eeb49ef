"""CMake and make with this machine's HIP compiler, as a user with ROCm in /opt/rocm would start them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from amdflow import process
from amdflow.toolchain import Rocm, Toolchain


def cmake() -> str:
    """CMake's own wheel beside this Python, else the system's."""
    own = Path(sys.executable).parent / "cmake"
    found = str(own) if own.is_file() else shutil.which("cmake")
    assert found, "the tests need cmake: pip install --group dev"
    return found


def configure(source: Path, build: Path, *options: str) -> None:
    """Configure a CMake project for the HIP compiler of the toolchain."""
    rocm = Toolchain().rocm()
    build.mkdir(parents=True)
    argv = [
        *(cmake(), "-S", str(source), "-B", str(build), *options),
        f"-DCMAKE_CXX_COMPILER={rocm.llvm_bin / 'clang++'}",
        f"-DCMAKE_CXX_FLAGS={' '.join(flag for flag in _plain(rocm) if not flag.startswith('--rocm'))}",
        f"-DCMAKE_HIP_COMPILER={rocm.llvm_bin / 'clang++'}",
        f"-DCMAKE_HIP_COMPILER_ROCM_ROOT={_cmake_root(rocm, build)}",
        f"-DCMAKE_PREFIX_PATH={rocm.root}",
        f"-DCMAKE_HIP_FLAGS={' '.join(_plain(rocm))} -O1",
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--unresolved-symbols=ignore-in-shared-libs",
    ]
    process.run(argv, timeout=300)


def hipcc_environment() -> dict[str, str]:
    """What hipcc of the toolchain needs to be found and to find its parts."""
    rocm = Toolchain().rocm()
    flags = " ".join(_plain(rocm))
    return {
        **os.environ,
        "PATH": f"{rocm.root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "ROCM_PATH": str(rocm.root),
        "HIP_PATH": str(rocm.root),
        "HIP_CLANG_PATH": str(rocm.llvm_bin),
        "HIPCC_COMPILE_FLAGS_APPEND": f"{flags} -O1",
        "HIPCC_LINK_FLAGS_APPEND": flags,
    }


def targets_of(file: Path) -> set[str]:
    """The GPU architectures in an object file."""
    return {found.decode() for found in re.findall(rb"amdgcn-amd-amdhsa-*(gfx\w+)", file.read_bytes())}


def _plain(rocm: Rocm) -> list[str]:
    """The compiler's flags without the language, which CMake and hipcc give themselves."""
    return [flag for flag in rocm.compile_flags() if flag not in ("-x", "hip")]


def _cmake_root(rocm: Rocm, build: Path) -> Path:
    """CMake 3.25 looks for HIP's package in ``lib`` only, and a distribution keeps it in a folder of the architecture."""
    package = Path("lib/cmake/hip-lang/hip-lang-config.cmake")
    if (rocm.root / package).is_file():
        return rocm.root
    real = next(rocm.root.glob("lib/*/cmake/hip-lang/hip-lang-config.cmake"))
    (build / "rocm" / package).parent.mkdir(parents=True)
    (build / "rocm" / package).write_text(f'include("{real}")\n')
    return build / "rocm"
