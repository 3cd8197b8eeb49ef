"""Puts CUDA's headers, and nothing else of CUDA, where hipify-clang finds them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath

from amdflow.errors import EnvironmentProblem
from amdflow.terminal import Terminal
from amdflow.toolchain import wheels
from amdflow.toolchain.find_cuda import read_version
from amdflow.toolchain.store import Artifact, Installed, Store

NEEDED_GB = 3.5
_WANTED = ("include", "nvvm")
_EXPECTED = (
    "include/cuda_runtime.h",
    "include/crt/host_config.h",
    "include/curand_mtgp32_kernel.h",
    "include/cublas_v2.h",
    "include/thrust/sort.h",
    "nvvm/libdevice/libdevice.10.bc",
)


def install_cuda(store: Store, terminal: Terminal) -> Installed:
    """Install; call it under the store's lock. Raises EnvironmentProblem when a wheel cannot be had."""
    store.require_space(NEEDED_GB, "fetching CUDA's headers")
    pins = wheels.read_pins("cuda-headers")
    downloads = store.downloads / "cuda"
    log = store.root / "cuda-headers" / "install.log"
    log.unlink(missing_ok=True)
    pip = wheels.pip_command(store.root / "pip")
    with (
        terminal.progress("downloading CUDA's headers", total=len(pins), unit="wheels") as bar,
        ThreadPoolExecutor(2) as pool,
    ):
        fetched = []
        for wheel in pool.map(lambda pin: wheels.fetch(pin, downloads, pip, log), pins):
            fetched.append(wheel)
            bar.update(1, note=wheel.name)
    build = store.new_build("cuda-headers")
    with terminal.progress("unpacking CUDA's headers", total=len(fetched), unit="wheels") as bar:
        for wheel in fetched:
            wheels.unpack(wheel, build, place)
            bar.update(1, note=wheel.name)
    for name in ("bin", "lib64"):  # clang takes a folder for a CUDA only when it has these
        (build / name).mkdir(exist_ok=True)
    missing = [name for name in _EXPECTED if not (build / name).is_file()]
    if missing:
        raise EnvironmentProblem(
            f"the wheels of CUDA brought no {missing[0]}", hint="amdflow toolchain install cuda-headers --force"
        )
    artifacts = tuple(Artifact(pin.name, pin.version, pin.sha256) for pin in pins)
    installed = store.publish(
        "cuda-headers", build, version=read_version(build), origin="wheels", artifacts=artifacts, facts={}
    )
    for wheel in fetched:  # 2.6 GB of libraries around 30 MB of headers
        wheel.unlink()
    return installed


def place(member: PurePosixPath) -> PurePosixPath | None:
    """Where a wheel's ``nvidia/<component>/include/...`` goes; None for what is not wanted (libraries, programs)."""
    parts = member.parts
    if len(parts) < 4 or parts[0] != "nvidia" or parts[2] not in _WANTED or parts[-1] == "__init__.py":
        return None
    return None if parts[2] == "nvvm" and parts[3] != "libdevice" else PurePosixPath(*parts[2:])
