"""Finds a ROCm installation: AMD's packages, the rocm-sdk wheels, a distribution's packages, or amdflow's private prefix."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain.model import Hipify, Rocm
from amdflow.toolchain.store import Store

_PROGRAMS = ("hipify-clang", "amdclang", "hipcc", "hipconfig")
_INSTALL = "amdflow toolchain install rocm"
PRIVATE_ORIGIN = "installed by amdflow"


@dataclass(frozen=True)
class Place:
    """A folder in which a ROCm may be, and how we came to look there."""

    root: Path
    origin: str
    sysroot: Path | None = None
    version: str = ""


def find_rocm(configured: str, store: Store, environment: Mapping[str, str] | None = None) -> Rocm:
    """The ROCm to use, with a hipify-clang from the private prefix when its own is missing.

    Raises EnvironmentProblem when there is none, or when the configured folder is not one.
    """
    found: Rocm | None = None
    if configured:
        place = Place(Path(configured).expanduser().absolute(), "config toolchain.rocm")
        found = read_rocm(place)
        if found is None:
            raise EnvironmentProblem(
                f"toolchain.rocm: {place.root} is not a ROCm with a HIP compiler: it lacks {missing_part(place.root)}",
                hint="name the folder that holds bin/ and include/hip/, or remove the setting",
            )
    else:
        found = next(filter(None, map(read_rocm, installed_places(environment))), None)
    private = private_rocm(store)
    if found is None:
        if private is None:
            raise EnvironmentProblem("no ROCm (HIP compiler and hipify-clang) was found on this machine", hint=_INSTALL)
        return private
    if found.hipify is None and private is not None and private.hipify is not None:
        return replace(found, hipify=private.hipify, hipify_from=private.hipify_from)
    return found


def private_rocm(store: Store) -> Rocm | None:
    """The ROCm that amdflow itself installed, if it did."""
    installed = store.find("rocm")
    return (
        read_rocm(Place(installed.root / "usr", PRIVATE_ORIGIN, installed.root, installed.version))
        if installed
        else None
    )


def installed_places(environment: Mapping[str, str] | None = None) -> Iterator[Place]:
    """Where an installed ROCm may be, most specific first; the same folder once."""
    seen: set[Path] = set()
    for place in _all_places(os.environ if environment is None else environment):
        resolved = place.root.resolve()
        if resolved not in seen and place.root.is_dir():
            seen.add(resolved)
            yield place


def _all_places(environment: Mapping[str, str]) -> Iterator[Place]:
    for variable in ("ROCM_PATH", "ROCM_HOME", "HIP_PATH"):
        if environment.get(variable):
            root = Path(environment[variable]).expanduser().absolute()
            yield Place(root, variable, sysroot_of(root))
    yield Place(Path("/opt/rocm"), "/opt/rocm")
    for folder in sorted(Path("/opt").glob("rocm-*"), reverse=True):
        yield Place(folder, str(folder))
    for entry in sys.path:
        for package in ("_rocm_sdk_devel", "_rocm_sdk_core"):
            yield Place(Path(entry) / package, "rocm-sdk wheels")
    for program in _PROGRAMS:
        path = shutil.which(program, path=environment.get("PATH"))
        if path:
            yield Place(Path(path).resolve().parent.parent, f"{program} on PATH")


def sysroot_of(root: Path) -> Path | None:
    """The prefix that ``root`` is the ``usr`` of, when it holds a C library's headers of its own."""
    own = root.name == "usr" and root != Path("/usr") and (root / "include/stdio.h").is_file()
    return root.parent if own else None


def read_rocm(place: Place) -> Rocm | None:
    """The ROCm in a folder, or None when it has no HIP compiler with headers and device libraries."""
    llvm = _llvm_of(place.root)
    if llvm is None or missing_part(place.root):
        return None
    device_lib = _device_lib(place.root, llvm)
    resource_dir = _resource_dir(llvm)
    assert device_lib is not None
    assert resource_dir is not None
    version = place.version or read_version(place.root)
    hipify = place.root / "bin/hipify-clang"
    own = Hipify(hipify, resource_dir, place.sysroot, version, place.origin) if hipify.is_file() else None
    return Rocm(
        root=place.root,
        version=version,
        clang=llvm / "bin/clang",
        hipify=own.program if own else None,
        llvm_bin=llvm / "bin",
        device_lib=device_lib,
        resource_dir=resource_dir,
        origin=place.origin,
        sysroot=place.sysroot,
        hipify_from=own,
    )


def missing_part(root: Path) -> str:
    """What keeps a folder from being a usable ROCm, in words; empty when nothing does."""
    llvm = _llvm_of(root)
    if llvm is None:
        return "a clang (llvm/bin/clang, lib/llvm/bin/clang)"
    if not (root / "include/hip/hip_runtime.h").is_file():
        return "HIP's headers (include/hip/hip_runtime.h)"
    if _device_lib(root, llvm) is None:
        return "the device libraries (amdgcn/bitcode)"
    if _resource_dir(llvm) is None:
        return f"clang's own headers ({llvm}/lib/clang)"
    return ""


def read_version(root: Path) -> str:
    """The version a ROCm tells of itself, as ``7.2.0``; ``unknown`` when it tells none."""
    told = _text(root / ".info/version").strip()
    if told:
        return told.split("-")[0]
    header = _text(root / "include/rocm-core/rocm_version.h") or _text(root / "include/rocm_version.h")
    numbers = [re.search(rf"#define\s+ROCM_VERSION_{part}\s+(\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
    if all(numbers):
        return ".".join(number.group(1) for number in numbers if number)
    header = _text(root / "include/hip/hip_version.h")
    numbers = [re.search(rf"#define\s+HIP_VERSION_{part}\s+(\d+)", header) for part in ("MAJOR", "MINOR")]
    return ".".join(number.group(1) for number in numbers if number) if all(numbers) else "unknown"


def _llvm_of(root: Path) -> Path | None:
    """The LLVM of a ROCm: its own folder, or a distribution's numbered one that has the AMD device libraries; newest first."""
    numbered = sorted((root / "lib").glob("llvm-*"), key=lambda path: _trailing_number(path.name), reverse=True)
    candidates = [
        root / "lib/llvm",
        root / "llvm",
        *(path for path in numbered if list(path.glob("lib/clang/*/amdgcn/bitcode"))),
    ]
    return next((path for path in candidates if (path / "bin/clang").is_file()), None)


def _device_lib(root: Path, llvm: Path) -> Path | None:
    candidates = [
        root / "amdgcn/bitcode",
        llvm / "amdgcn/bitcode",
        root / "lib/llvm/amdgcn/bitcode",
        *_newest_first(llvm, "lib/clang/*/amdgcn/bitcode"),
        *_newest_first(llvm, "lib/clang/*/lib/amdgcn/bitcode"),
    ]
    return next((path for path in candidates if path.is_dir() and next(path.glob("*.bc"), None)), None)


def _resource_dir(llvm: Path) -> Path | None:
    headers = _newest_first(llvm, "lib/clang/*/include/__clang_hip_runtime_wrapper.h")
    return headers[0].parent.parent if headers else None


def _newest_first(llvm: Path, pattern: str) -> list[Path]:
    return sorted(llvm.glob(pattern), key=lambda path: _trailing_number(path.relative_to(llvm).parts[2]), reverse=True)


def _trailing_number(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
