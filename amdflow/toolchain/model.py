"""What the rest of amdflow knows of the outside programs: paths, versions, and the flags they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from amdflow.errors import EnvironmentProblem

_HOST_INCLUDES = ("/usr/local/include", "/usr/include/x86_64-linux-gnu", "/usr/include")


@dataclass(frozen=True)
class CudaHeaders:
    """A folder that serves as ``--cuda-path``: CUDA's headers and libdevice, no CUDA needed."""

    root: Path
    version: str
    """As 12.9."""
    origin: str = ""
    """Where it was found: config, an environment variable, a folder, installed by amdflow."""


@dataclass(frozen=True)
class Hipify:
    """A hipify-clang and the clang resource folder that belongs to it."""

    program: Path
    resource_dir: Path
    sysroot: Path | None
    version: str
    origin: str


@dataclass(frozen=True)
class Rocm:
    """A HIP compiler with its headers and device libraries, and hipify-clang where there is one."""

    root: Path
    """What ``--rocm-path`` gets."""
    version: str
    clang: Path
    hipify: Path | None
    llvm_bin: Path
    device_lib: Path
    resource_dir: Path
    origin: str
    sysroot: Path | None = None
    """Set for a private prefix, which has its own C and C++ library headers."""
    hipify_from: Hipify | None = None
    """hipify-clang may come from another place than the compiler."""

    def compile_flags(self) -> list[str]:
        """Flags for ``clang`` up to the architecture: language, ROCm, headers."""
        flags = ["-x", "hip", f"--rocm-path={self.root}", f"--rocm-device-lib-path={self.device_lib}"]
        return flags + _sysroot_flags(self.sysroot)

    def hipify_flags(self, cuda: CudaHeaders) -> list[str]:
        """Flags for ``hipify-clang``, to stand before any ``--``. Raises EnvironmentProblem when there is no hipify-clang."""
        hipify = self.needed_hipify()
        flags = [f"--cuda-path={cuda.root}", f"--clang-resource-directory={hipify.resource_dir}"]
        return flags + [f"--extra-arg={flag}" for flag in _sysroot_flags(hipify.sysroot)]

    def needed_hipify(self) -> Hipify:
        """The hipify-clang. Raises EnvironmentProblem when there is none."""
        if self.hipify_from is None:
            raise EnvironmentProblem(
                f"the ROCm in {self.root} ({self.origin}) has no hipify-clang", hint="amdflow toolchain install rocm"
            )
        return self.hipify_from

    def tool(self, name: str) -> Path:
        """A program of this LLVM (``llvm-readelf``, ``llvm-objdump``, ``clang-offload-bundler``). Raises EnvironmentProblem when it is not there."""
        path = self.llvm_bin / name
        if not path.is_file():
            raise EnvironmentProblem(
                f"{name} is not in {self.llvm_bin} ({self.origin})",
                hint="install ROCm's llvm package whole, or `amdflow toolchain install rocm --force`",
            )
        return path


@dataclass(frozen=True)
class Engine:
    """A Python environment in which an engine runs."""

    name: str
    python: Path
    packages: Mapping[str, str]
    """Distribution (lower case, ``-`` between words) to version, read from ``*.dist-info``."""
    device: str
    """What its torch can use on this machine: ``cpu``, ``rocm`` or ``cuda``."""
    torch_build: str = ""
    """What its torch was built for: ``cpu``, ``rocm`` or ``cuda``; empty without torch."""
    torch_runtime: str = ""
    """Version of HIP or CUDA that torch was built with."""
    origin: str = ""
    stand_ins: tuple[Path, ...] = field(default_factory=tuple)
    """Folders to put on its path: modules that have no build for this device."""

    def environment(self, *, offline: bool = True) -> dict[str, str]:
        """Variables a child should get beside the inherited ones. What the user has set already stays as it is.

        ``offline=False`` lets the engine reach a model hub.
        """
        wanted = {"HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
        if offline:
            wanted["HF_HUB_OFFLINE"] = "1"
        if self.device == "cpu":  # without PASSIVE, waiting threads spin and a busy machine is several times slower
            wanted |= {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))), "OMP_WAIT_POLICY": "PASSIVE"}
        variables = {name: value for name, value in wanted.items() if name not in os.environ}
        # empty means "do write": without byte code every start compiles tens of thousands of lines again
        variables["PYTHONDONTWRITEBYTECODE"] = ""
        if self.stand_ins:
            variables["PYTHONPATH"] = os.pathsep.join(
                [*map(str, self.stand_ins), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
        return variables


def _sysroot_flags(sysroot: Path | None) -> list[str]:
    """The prefix's own C and C++ headers first, so that results do not vary with the machine; its other libraries' headers after."""
    if sysroot is None:
        return []
    return [f"--sysroot={sysroot}", *(f"-idirafter{folder}" for folder in _HOST_INCLUDES if Path(folder).is_dir())]
