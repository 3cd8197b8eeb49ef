"""The checks of ``amdflow doctor``: small functions that look at one thing and say what they saw and what mends it.

A :class:`Scene` stands for the machine; tests give one with a copied ``/sys`` and a made-up environment.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from amdflow.errors import EnvironmentProblem
from amdflow.gpu import machine
from amdflow.toolchain import find_cuda, find_rocm
from amdflow.toolchain.alternatives import SGLANG_ON_ROCM
from amdflow.toolchain.find_engine import ENGINES, how_to_install
from amdflow.toolchain.install import current
from amdflow.toolchain.inventory import NAMES, inspect
from amdflow.toolchain.model import Engine
from amdflow.toolchain.toolchain import Toolchain

OPTIONAL = ("vllm",)
_SPACE_GB = 10
_OLDEST_DRIVER_FOR_7 = (6, 8)
"""amdgpu 6.8 came with ROCm 6.2, the oldest driver that AMD supports beneath ROCm 7."""
_NVIDIA_ONLY = ("flashinfer-python", "flash-attn", "flash-attn-4", "nvidia-cublas-cu12", "nvidia-cublas")


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was seen, and the command that mends it."""

    name: str
    state: State
    detail: str
    fix: str = ""
    version: str = ""
    path: str = ""


@dataclass(frozen=True)
class Scene:
    """The machine that is looked at."""

    toolchain: Toolchain
    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def engines(self) -> Iterator[Engine]:
        """The environments that are there."""
        for name in ENGINES:
            try:
                yield self.toolchain.engine(name)
            except EnvironmentProblem:
                continue


def check_python(_scene: Scene) -> Iterator[Check]:
    """The interpreter amdflow runs in, and whether it can make environments."""
    import importlib.util

    version = sys.version.split()[0]
    if importlib.util.find_spec("ensurepip") is None:
        fix = f"apt-get install python{sys.version_info.major}.{sys.version_info.minor}-venv"
        yield Check(
            "python",
            State.WARNING,
            "it cannot make virtual environments, so engines cannot be installed",
            fix,
            version,
            sys.executable,
        )
    else:
        yield Check("python", State.OK, "", version=version, path=sys.executable)


def check_space(scene: Scene) -> Iterator[Check]:
    """Free space where tools are installed."""
    folder = scene.toolchain.store.root
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    free = shutil.disk_usage(there).free / (1 << 30)
    low = free < _SPACE_GB
    yield Check(
        "disk",
        State.WARNING if low else State.OK,
        f"{free:.0f} GiB free for tools",
        "export AMDFLOW_CACHE=DIR (on a larger disk)" if low else "",
        path=str(folder),
    )


def check_tools(scene: Scene) -> Iterator[Check]:
    """Every outside program: there, or the command that brings it."""
    for name in NAMES:
        tool = inspect(name, scene.toolchain)
        if tool.state == "ready":
            yield Check(name, State.OK, tool.origin, version=tool.version, path=tool.path)
        elif name in OPTIONAL:
            yield Check(name, State.NOTE, f"{tool.problem}; it is optional", tool.fix)
        else:
            left = " (an install was begun and is not finished)" if tool.state == "unfinished" else ""
            yield Check(name, State.MISSING, tool.problem + left, tool.fix)


def check_outdated(scene: Scene) -> Iterator[Check]:
    """Engines that were installed from another pinned set, or for another kind of machine."""
    for engine in scene.engines():
        installed = scene.toolchain.store.find(engine.name)
        if installed and engine.origin == "installed by amdflow" and not current(engine.name, installed, scene.root):
            yield Check(
                engine.name,
                State.WARNING,
                "it was installed by another version of amdflow or for another kind of GPU",
                how_to_install(engine.name),
            )


def check_gpu(scene: Scene) -> Iterator[Check]:
    """The AMD GPUs, or why there are none to use."""
    found = machine.gpus(scene.root)
    driver = machine.driver_version(scene.root)
    for gpu in found:
        yield Check(
            f"gpu {gpu.node}",
            State.OK,
            f"{gpu.gfx}, {gpu.name}, {gpu.memory_gb:g} GiB" + (f", VBIOS {gpu.vbios}" if gpu.vbios else ""),
            version=driver,
        )
    if found:
        return
    devices = machine.amd_devices(scene.root)
    if not devices:
        also = (
            "; the NVIDIA GPU here is used by the engines"
            if machine.has_nvidia(scene.root)
            else "; everything runs on the CPU"
        )
        yield Check("gpu", State.NOTE, "there is no AMD GPU" + also)
    elif driver:
        yield Check(
            "gpu",
            State.WARNING,
            f"the amdgpu driver {driver} offers none of {', '.join(devices)} for computing",
            "dmesg | grep -iE 'amdgpu|kfd'",
        )
    else:
        yield Check(
            "gpu",
            State.WARNING,
            f"AMD device {', '.join(devices)} has no driver loaded",
            "sudo modprobe amdgpu (or install amdgpu-dkms and reboot)",
        )


def check_access(scene: Scene) -> Iterator[Check]:
    """Whether this user may open the GPU's device files."""
    found = machine.gpus(scene.root)
    if not found:
        return
    kfd = scene.root / "dev/kfd"
    if not kfd.exists():
        yield Check(
            "/dev/kfd",
            State.WARNING,
            "the driver has a GPU, but its device file is not here: a container without it?",
            "docker run --device=/dev/kfd --device=/dev/dri --group-add video ...",
        )
        return
    files = [kfd, *(scene.root / f"dev/dri/renderD{gpu.render}" for gpu in found if gpu.render)]
    closed = [file for file in files if file.exists() and not os.access(file, os.R_OK | os.W_OK)]
    if closed:
        names = ", ".join(str(file) for file in closed)
        yield Check(
            "/dev/kfd",
            State.WARNING,
            f"this user may not open {names}: not in the groups render and video",
            "sudo usermod -aG render,video $USER, then log in again",
        )
    else:
        yield Check("/dev/kfd", State.OK, "this user may open it", path=str(kfd))


def check_wheels(scene: Scene) -> Iterator[Check]:
    """CUDA builds in environments on a machine with an AMD GPU."""
    if not machine.gpus(scene.root):
        return
    for engine in scene.engines():
        again = SGLANG_ON_ROCM if engine.name == "serve" else f"{how_to_install(engine.name)} --force"
        if engine.torch_build == "cuda":
            yield Check(
                engine.name,
                State.WARNING,
                f"its torch {engine.packages['torch']} is built for CUDA {engine.torch_runtime} and cannot use this AMD GPU",
                again,
                path=str(engine.python),
            )
        elif engine.torch_build == "cpu":
            yield Check(
                engine.name,
                State.WARNING,
                f"its torch {engine.packages['torch']} is built for CPUs and cannot use this AMD GPU",
                again,
                path=str(engine.python),
            )
        wrong = [name for name in _NVIDIA_ONLY if name in engine.packages]
        if "sglang" in engine.packages and wrong:
            yield Check(
                engine.name,
                State.WARNING,
                f"its sglang came with CUDA-only packages ({', '.join(wrong)}); on ROCm it stops with `libcuda.so.1` missing",
                again,
                path=str(engine.python),
            )


def check_hip_version(scene: Scene) -> Iterator[Check]:
    """The HIP that torch was built with, against the installed ROCm and the driver."""
    driver = (
        _numbers(machine.driver_version(scene.root))
        if not machine.driver_version(scene.root).startswith("in-kernel")
        else ()
    )
    try:
        rocm = scene.toolchain.rocm()
        installed = "" if rocm.origin == find_rocm.PRIVATE_ORIGIN else rocm.version
    except EnvironmentProblem:
        installed = ""
    for engine in scene.engines():
        hip = _numbers(engine.torch_runtime) if engine.torch_build == "rocm" else ()
        if not hip:
            continue
        if _numbers(installed) and _numbers(installed)[0] != hip[0]:
            yield Check(
                engine.name,
                State.WARNING,
                f"its torch is built for ROCm {hip[0]}, and ROCm {installed} is installed: libraries of both in one process crash",
                f"AMDFLOW_TORCH_INDEX=INDEX-FOR-ROCM-{_numbers(installed)[0]} {how_to_install(engine.name)} --force",
            )
        if driver and hip[0] >= 7 and driver[:2] < _OLDEST_DRIVER_FOR_7:
            yield Check(
                engine.name,
                State.WARNING,
                f"its torch is built for ROCm {hip[0]}, and the amdgpu driver {'.'.join(map(str, driver))} is older than ROCm 6.2's",
                "install a newer amdgpu-dkms and reboot",
            )


def check_cuda_headers(scene: Scene) -> Iterator[Check]:
    """CUDA headers too new for hipify-clang."""
    try:
        used = scene.toolchain.cuda_headers()
    except EnvironmentProblem:
        used = None
    if used and find_cuda.major(used.version) >= find_cuda.TOO_NEW:
        yield Check(
            "cuda-headers",
            State.WARNING,
            f"hipify-clang crashes on CUDA {used.version} ({used.root})",
            f"remove toolchain.cuda from the configuration; {find_cuda.INSTALL}",
        )
    for root, origin in find_cuda.installed_places(scene.environment):
        version = find_cuda.read_version(root)
        if find_cuda.major(version) >= find_cuda.TOO_NEW and (used is None or used.root != root):
            yield Check(
                "cuda-headers",
                State.NOTE,
                f"CUDA {version} in {root} ({origin}) is passed over: hipify-clang needs CUDA 12's headers",
            )


def check_variables(scene: Scene) -> Iterator[Check]:
    """Environment variables that send ROCm astray."""
    override = scene.environment.get("HSA_OVERRIDE_GFX_VERSION")
    if override:
        yield Check(
            "HSA_OVERRIDE_GFX_VERSION",
            State.WARNING,
            f"it is {override}: every GPU claims to be that target, and code built for the real one fails",
            "unset HSA_OVERRIDE_GFX_VERSION",
        )
    told = scene.environment.get("ROCM_PATH")
    if told:
        lacking = find_rocm.missing_part(Path(told))
        if lacking:
            yield Check(
                "ROCM_PATH",
                State.WARNING,
                f"{told} is passed over: it lacks {lacking}",
                "unset ROCM_PATH, or set it to a complete ROCm",
            )


def check_path(scene: Scene) -> Iterator[Check]:
    """More than one ROCm on PATH."""
    roots: dict[Path, str] = {}
    for folder in scene.environment.get("PATH", "").split(os.pathsep):
        for program in ("hipcc", "hipconfig", "rocminfo"):
            path = Path(folder, program)
            if folder and path.is_file():
                root = path.resolve().parent.parent
                roots.setdefault(root, find_rocm.read_version(root))
    if len(set(roots.values())) > 1:
        listed = ", ".join(f"{version} in {root}" for root, version in roots.items())
        yield Check(
            "PATH",
            State.WARNING,
            f"it holds more than one ROCm: {listed}",
            f"export ROCM_PATH={next(iter(roots))} and take the other out of PATH",
        )


ALL = (
    check_python,
    check_space,
    check_tools,
    check_outdated,
    check_gpu,
    check_access,
    check_wheels,
    check_hip_version,
    check_cuda_headers,
    check_variables,
    check_path,
)


def run_all(scene: Scene) -> list[Check]:
    """Every check, in order."""
    return [check for look in ALL for check in look(scene)]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("-")[0])[:3])
