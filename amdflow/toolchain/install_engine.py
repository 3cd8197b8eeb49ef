"""Makes an engine's virtual environment out of its committed, fully pinned set."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from amdflow import process
from amdflow.errors import AmdflowError, EnvironmentProblem
from amdflow.files import sha256_file
from amdflow.gpu.machine import accelerator
from amdflow.terminal import Terminal
from amdflow.toolchain import wheels
from amdflow.toolchain.alternatives import SGLANG_ON_ROCM
from amdflow.toolchain.find_engine import read_engine, site_folders
from amdflow.toolchain.model import Engine
from amdflow.toolchain.pip_steps import TORCH_INDEX_VARIABLE, Pip, Step
from amdflow.toolchain.store import Installed, Store

TORCH_INDEX = "https://download.pytorch.org/whl/rocm7.2"
"""PyTorch's own index of wheels built for ROCm; AMDFLOW_TORCH_INDEX names another (an older ROCm, a mirror)."""
NEEDED_GB = {"cpu": 5.0, "cuda": 14.0, "rocm": 24.0}
_TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "triton")
_PROOF = {
    "kernels": "import torch, tilelang",
    "finetune": "import torch, peft, trl, tilelang; from llamafactory.train.tuner import run_exp",
    "serve": "import torch, transformers, sglang; from sglang.srt.server_args import ServerArgs",
}
_CPU_PROOF = {"serve": "; import torchvision, sgl_kernel"}


def plan(name: str, device: str) -> list[Step]:
    """The pip installs that make ``name`` for ``cpu``, ``cuda`` or ``rocm``.

    torch comes first, with what that build of it needs; then the rest exactly as pinned, without resolving. Raises
    EnvironmentProblem where the engine has no wheels for the device.
    """
    pins = wheels.read_pins(name)
    if name == "serve" and device == "rocm":
        raise EnvironmentProblem(
            "SGLang publishes no ROCm wheels, so its environment cannot be installed with pip on this machine",
            hint=SGLANG_ON_ROCM,
        )
    if name == "serve" and device == "cuda":  # its CUDA dependencies are its own choice; the pinned set is the CPU's
        return [Step(requirements=tuple(pin.requirement for pin in pins if pin.name == "sglang"))]
    torch = tuple(pin.requirement for pin in pins if pin.name == "torch")
    vision = ("torchvision", "torchaudio") if name == "finetune" and device != "cpu" else ()
    index = (os.environ.get(TORCH_INDEX_VARIABLE) or TORCH_INDEX) if device == "rocm" else ""
    apart = ("torch",) if device == "cpu" else _TORCH_FAMILY
    rest = tuple(pin.requirement for pin in pins if pin.name not in apart)
    constraints = () if device == "rocm" else tuple(pin.requirement for pin in pins if pin.name not in _TORCH_FAMILY)
    return [Step((*torch, *vision), constraints, index=index), Step(rest, alone=True)]


def pins_digest(name: str) -> str:
    """SHA-256 of an engine's pinned set: an environment made from another one is out of date."""
    return sha256_file(wheels.PINS / f"{name}.txt")


def install_engine(name: str, store: Store, terminal: Terminal, machine: Path = Path("/")) -> Installed:
    """Install; call it under the store's lock. Raises EnvironmentProblem when pip fails or the engine does not start."""
    device = accelerator(machine)
    steps = plan(name, device)
    wheels.require_venv()
    store.require_space(NEEDED_GB[device], f"the environment for {name}")
    log = store.root / name / "install.log"
    log.unlink(missing_ok=True)
    build = store.new_build(name)
    process.run([sys.executable, "-m", "venv", str(build)], log=log)
    python = build / "bin/python"
    pip = Pip(python, store.downloads / "engines", log)
    total = sum(len(step.requirements) for step in steps)
    with terminal.progress(f"downloading {name}", total=total, unit="packages") as bar:
        for step in steps:
            pip.download(step, bar)
    terminal.say(f"  unpacking {name}")
    artifacts = [artifact for step in steps for artifact in pip.install(step)]
    terminal.say(f"  trying {name}")
    if name == "finetune" and device == "cpu":
        strip_torchaudio(python)
    engine = read_engine(name, python, "installed by amdflow", machine)
    prove(engine, device, log)
    main = {"kernels": "tilelang", "finetune": "llamafactory", "serve": "sglang"}[name]
    return store.publish(
        name,
        build,
        version=f"{main} {engine.packages[main]}",
        origin=f"virtual environment ({device})",
        artifacts=tuple(artifacts),
        facts={
            "pins": pins_digest(name),
            "device": device,
            "torch": engine.packages["torch"],
            "python": sys.version.split()[0],
        },
    )


def strip_torchaudio(python: Path) -> None:
    """Remove torchaudio's compiled part, which wants CUDA libraries; the engine imports the package and calls nothing in it for text."""
    for folder in site_folders(python):
        shutil.rmtree(folder / "torchaudio/lib", ignore_errors=True)


def prove(engine: Engine, device: str, log: Path) -> None:
    """Start the interpreter and import what the engine stands on. Raises EnvironmentProblem with the reason."""
    extra = {"SGLANG_USE_CPU_ENGINE": "1"} if device == "cpu" else {}
    environment = {**os.environ, **engine.environment(), **extra}
    with (
        tempfile.TemporaryDirectory() as empty
    ):  # a folder in the working directory named like a package would shadow it
        code = _PROOF[engine.name] + (_CPU_PROOF.get(engine.name, "") if device == "cpu" else "")
        try:
            process.run([str(engine.python), "-c", code], cwd=Path(empty), env=environment, log=log, timeout=900)
        except AmdflowError as error:
            raise EnvironmentProblem(
                f"the new environment for {engine.name} does not work: {error.message}", hint=f"the whole log: {log}"
            ) from error
