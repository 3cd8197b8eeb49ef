"""Small trees that look like the outside programs."""

from __future__ import annotations

import json
from pathlib import Path

from amdflow.toolchain.store import Store

CUDA_WRAPPERS = ("include/cuda_runtime.h", "include/curand_kernel.h", "include/crt/host_config.h")


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def amd_layout(root: Path, version: str = "7.1.0", *, hipify: bool = True) -> Path:
    """A ROCm as AMD's packages lay it out."""
    write(
        root,
        {
            ".info/version": f"{version}-43\n",
            "lib/llvm/bin/clang": "",
            "lib/llvm/bin/llvm-readelf": "",
            "lib/llvm/lib/clang/20/include/__clang_hip_runtime_wrapper.h": "",
            "amdgcn/bitcode/ockl.bc": "",
            "include/hip/hip_runtime.h": "",
            "bin/hipcc": "",
        },
    )
    if hipify:
        write(root, {"bin/hipify-clang": ""})
    return root


def debian_layout(root: Path) -> Path:
    """A prefix unpacked from Debian's packages, with two compilers; returns its ``usr``."""
    usr = root / "usr"
    for number in (21, 22):
        write(
            usr,
            {
                f"lib/llvm-{number}/bin/clang": "",
                f"lib/llvm-{number}/lib/clang/{number}/include/__clang_hip_runtime_wrapper.h": "",
            },
        )
    write(
        usr,
        {
            "lib/llvm-22/lib/clang/22/amdgcn/bitcode/ockl.bc": "",
            "include/hip/hip_runtime.h": "",
            "include/hip/hip_version.h": "#define HIP_VERSION_MAJOR 7\n#define HIP_VERSION_MINOR 2\n",
            "include/stdio.h": "",
            "bin/hipify-clang": "",
        },
    )
    return usr


def cuda(root: Path, version: int = 12090) -> Path:
    """CUDA headers."""
    write(root, dict.fromkeys(CUDA_WRAPPERS, "") | {"include/cuda.h": f"#define CUDA_VERSION {version}\n"})
    return root


def environment(root: Path, packages: dict[str, str], *, torch: str = "") -> Path:
    """A virtual environment with distributions; ``torch`` is the text of its ``version.py``. Returns the interpreter."""
    site = "lib/python3.11/site-packages"
    write(root, {"bin/python": "", "pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = false\n"})
    write(root, {f"{site}/{name}-{version}.dist-info/METADATA": "" for name, version in packages.items()})
    if torch:
        write(root, {f"{site}/torch/version.py": torch})
    return root / "bin/python"


def publish(store: Store, name: str, build: Path, version: str = "1", **facts: str) -> None:
    """Record a folder below ``store`` as installed."""
    store.publish(name, build, version=version, origin="test", artifacts=(), facts=facts)


def tear(path: Path) -> None:
    """Leave half of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()))[:40])
