"""Finds CUDA headers that hipify-clang can read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain.model import CudaHeaders
from amdflow.toolchain.store import Store

INSTALL = "amdflow toolchain install cuda-headers"
TOO_NEW = 13
"""hipify-clang crashes on the headers of CUDA 13, which lack some that clang's CUDA wrapper includes."""
_NEEDED = ("include/cuda_runtime.h", "include/curand_kernel.h", "include/crt/host_config.h")


def find_cuda(configured: str, store: Store, environment: Mapping[str, str] | None = None) -> CudaHeaders:
    """The CUDA headers to use: the configured ones, an installed CUDA older than 13, or those amdflow installed.

    Raises EnvironmentProblem when there are none, or when the configured folder has none.
    """
    if configured:
        root = Path(configured).expanduser().absolute()
        missing = [name for name in _NEEDED if not (root / name).is_file()]
        if missing:
            raise EnvironmentProblem(
                f"toolchain.cuda: {root} lacks {missing[0]}", hint=f"remove the setting and run `{INSTALL}`"
            )
        return CudaHeaders(root, read_version(root), "config toolchain.cuda")
    for root, origin in installed_places(environment):
        version = read_version(root)
        if all((root / name).is_file() for name in _NEEDED) and major(version) < TOO_NEW:
            return CudaHeaders(root, version, origin)
    installed = store.find("cuda-headers")
    if installed is None:
        raise EnvironmentProblem(
            "hipify-clang needs CUDA 12 headers (CUDA itself is not needed), and none were found", hint=INSTALL
        )
    return CudaHeaders(installed.root, installed.version, "installed by amdflow")


def installed_places(environment: Mapping[str, str] | None = None) -> Iterator[tuple[Path, str]]:
    """Folders in which a CUDA may be installed, and how we came to look there."""
    variables = os.environ if environment is None else environment
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if variables.get(name):
            yield Path(variables[name]).expanduser().absolute(), name
    for folder in (Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-12*"), reverse=True)):
        if folder.is_dir():
            yield folder, str(folder)


def read_version(root: Path) -> str:
    """``12.9`` from ``include/cuda.h``; ``unknown`` when it does not say."""
    try:
        found = re.search(
            r"#define\s+CUDA_VERSION\s+(\d+)", (root / "include/cuda.h").read_text(encoding="utf-8", errors="replace")
        )
    except OSError:
        return "unknown"
    return f"{int(found.group(1)) // 1000}.{int(found.group(1)) % 1000 // 10}" if found else "unknown"


def major(version: str) -> int:
    """First number of a version; 0 for ``unknown``."""
    found = re.match(r"\d+", version)
    return int(found.group()) if found else 0
