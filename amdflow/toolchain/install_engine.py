"""Makes an engine's virtual environment out of its committed, fully pinned set."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amdflow import process
from amdflow.errors import AmdflowError, EnvironmentProblem
from amdflow.files import sha256_file
from amdflow.gpu.machine import accelerator
from amdflow.terminal import Bar, Terminal
from amdflow.toolchain import wheels
from amdflow.toolchain.alternatives import SGLANG_ON_ROCM
from amdflow.toolchain.find_engine import normalize, read_engine, site_folders
from amdflow.toolchain.model import Engine
from amdflow.toolchain.store import Artifact, Installed, Store

TORCH_INDEX_VARIABLE = "AMDFLOW_TORCH_INDEX"
TORCH_INDEX = "https://download.pytorch.org/whl/rocm7.2"
"""PyTorch's own index of wheels built for ROCm; AMDFLOW_TORCH_INDEX names another (an older ROCm, a mirror)."""
NEEDED_GB = {"cpu": 4.0, "cuda": 14.0, "rocm": 24.0}
_TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "triton")
_PROOF = {
    "kernels": "import torch, tilelang",
    "finetune": "import torch, peft, trl; from llamafactory.train.tuner import run_exp",
    "serve": "import torch, transformers, sglang; from sglang.srt.server_args import ServerArgs",
}
_CPU_PROOF = {"serve": "; import torchvision, sgl_kernel"}


@dataclass(frozen=True)
class Step:
    """One ``pip install``: options, and what it is for."""

    words: tuple[str, ...]
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()


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
        return [Step((), tuple(pin.requirement for pin in pins if pin.name == "sglang"))]
    torch = tuple(pin.requirement for pin in pins if pin.name == "torch")
    vision = ("torchvision", "torchaudio") if name == "finetune" and device != "cpu" else ()
    index = ("--index-url", os.environ.get(TORCH_INDEX_VARIABLE) or TORCH_INDEX) if device == "rocm" else ()
    apart = ("torch",) if device == "cpu" else _TORCH_FAMILY
    rest = tuple(pin.requirement for pin in pins if pin.name not in apart)
    constraints = () if device == "rocm" else tuple(pin.requirement for pin in pins if pin.name not in _TORCH_FAMILY)
    return [Step(index, (*torch, *vision), constraints), Step(("--no-deps",), rest)]


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
    artifacts: list[Artifact] = []
    with terminal.progress(
        f"installing {name}", total=sum(len(step.requirements) for step in steps), unit="packages"
    ) as bar:
        for step in steps:
            artifacts += _install(step, build, store.downloads / "pip", log, bar)
    python = build / "bin/python"
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


def _install(step: Step, build: Path, cache: Path, log: Path, bar: Bar) -> list[Artifact]:
    report = build / "pip-report.json"
    with tempfile.TemporaryDirectory() as folder:
        requirements = _write(Path(folder, "requirements.txt"), step.requirements)
        constraints = ["-c", _write(Path(folder, "constraints.txt"), step.constraints)] if step.constraints else []
        command = [
            str(build / "bin/python"),
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "--prefer-binary",
            "--no-compile",  # a minute of work for modules most of which are never imported
            "--cache-dir",
            str(cache),
            "--report",
            str(report),
            *step.words,
            *constraints,
            "-r",
            requirements,
        ]
        done = process.run(
            command,
            env=wheels.pip_environment(cache.parent),
            log=log,
            check=False,
            on_line=_Follower(bar, step.requirements),
        )
    if done.returncode:
        index = f"; {TORCH_INDEX_VARIABLE} chooses another index of torch wheels" if "--index-url" in step.words else ""
        raise EnvironmentProblem(
            f"pip could not install the environment: {wheels.pip_reason(done.output)}",
            hint=f"check the network and run the same command again: it goes on with what is downloaded{index}; log: {log}",
        )
    artifacts = _artifacts(json.loads(report.read_text(encoding="utf-8")))
    report.unlink()
    return artifacts


class _Follower:
    """Reads pip's lines and moves the bar on, once for each wanted package."""

    def __init__(self, bar: Bar, requirements: Sequence[str]) -> None:
        self.bar = bar
        self.wanted = {_named(requirement) for requirement in requirements}

    def __call__(self, line: str) -> None:
        found = re.match(r"(?:Collecting|Processing|Requirement already satisfied:) (\S+)", line)
        name = _named(found[1].rpartition("/")[2] if "/" in found[1] else found[1]) if found else ""
        if name in self.wanted:
            self.wanted.discard(name)
            self.bar.update(1, note=name)
        elif line.startswith("Installing collected"):
            self.bar.update(note="unpacking")


def _named(text: str) -> str:
    """The distribution in a requirement or a wheel's file name."""
    stem = text.partition("-")[0] if text.endswith(".whl") else re.split(r"[\[=<>!~;(@ ]", text)[0]
    return normalize(stem)


def _artifacts(report: dict[str, object]) -> list[Artifact]:
    entries = report.get("install")
    found = []
    for entry in entries if isinstance(entries, list) else ():
        hashes = entry.get("download_info", {}).get("archive_info", {}).get("hashes", {})
        found.append(
            Artifact(normalize(entry["metadata"]["name"]), entry["metadata"]["version"], hashes.get("sha256", ""))
        )
    return found


def _write(path: Path, lines: Sequence[str] | Iterable[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)
