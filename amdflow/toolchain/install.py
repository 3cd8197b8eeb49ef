"""Installs tools by name: looks first, locks, builds, publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from amdflow.config import ToolchainConfig, nearest
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.gpu.machine import accelerator
from amdflow.terminal import Terminal
from amdflow.toolchain.find_cuda import find_cuda
from amdflow.toolchain.find_rocm import installed_places, read_rocm
from amdflow.toolchain.install_cuda import install_cuda
from amdflow.toolchain.install_engine import install_engine, pins_digest
from amdflow.toolchain.install_rocm import install_rocm
from amdflow.toolchain.store import Installed, Store

ENGINES = ("kernels", "finetune", "serve")
NAMES = ("rocm", "cuda-headers", *ENGINES)
ALL = "all"


def expand(names: Sequence[str]) -> list[str]:
    """The tools that ``names`` mean, in order, each once. Raises UsageError for an unknown one."""
    valid = (*NAMES, ALL)
    for name in names:
        if name == "vllm":
            raise UsageError(
                "vllm is not installed by amdflow: its builds differ too much between machines",
                hint="install it in an environment of its own and set `toolchain: {vllm: PYTHON}` in amdflow.yaml",
            )
        if name not in valid:
            raise UsageError(
                f"there is no tool {name!r}{nearest(name, valid)}", hint=f"one or more of: {', '.join(valid)}"
            )
    wanted = [tool for name in names or (ALL,) for tool in (NAMES if name == ALL else (name,))]
    return list(dict.fromkeys(wanted))


def install(
    names: Sequence[str],
    config: ToolchainConfig,
    store: Store,
    terminal: Terminal,
    *,
    force: bool = False,
    machine: Path = Path("/"),
) -> None:
    """Install what is not there yet; ``force`` installs anew what is.

    One that cannot be installed does not keep the others from it: EnvironmentProblem is raised at the end.
    """
    wanted = expand(names)
    problems: list[tuple[str, EnvironmentProblem]] = []
    for name in wanted:
        terminal.heading(name)
        try:
            _install_one(name, config, store, terminal, force=force, machine=machine)
        except EnvironmentProblem as problem:
            if len(wanted) == 1:
                raise
            terminal.error(problem)
            problems.append((name, problem))
    if problems:
        raise EnvironmentProblem(
            f"not installed: {', '.join(name for name, _problem in problems)} (the reasons are above)",
            hint=f"amdflow toolchain install {' '.join(name for name, _problem in problems)}",
        )


def _install_one(
    name: str, config: ToolchainConfig, store: Store, terminal: Terminal, *, force: bool, machine: Path
) -> None:
    there = "" if force else already(name, config, store, machine)
    if there:
        terminal.success(f"{name}: {there}")
        return
    before = store.find(name)
    with store.lock(name, lambda: terminal.say(f"  another amdflow is installing {name}; waiting for it")):
        now = store.find(name)
        if now is not None and now != before and current(name, now, machine):
            terminal.success(f"{name}: {now.version} has just been installed in {now.root}")
            return
        installed = _builders(machine)[name](store, terminal)
    terminal.success(f"{name}: {installed.version} in {installed.root} ({installed.size / 1e9:.1f} GB)")


def _builders(machine: Path) -> Mapping[str, Callable[[Store, Terminal], Installed]]:
    def engine(name: str) -> Callable[[Store, Terminal], Installed]:
        return lambda store, terminal: install_engine(name, store, terminal, machine)

    return {"rocm": install_rocm, "cuda-headers": install_cuda, **{name: engine(name) for name in ENGINES}}


def already(name: str, config: ToolchainConfig, store: Store, machine: Path = Path("/")) -> str:
    """Why nothing is to be installed, in words; empty when something is."""
    configured = getattr(config, "cuda" if name == "cuda-headers" else name)
    if configured:
        return f"the one in your configuration is used: {configured}"
    if name == "rocm":
        found = next((rocm for rocm in map(read_rocm, installed_places()) if rocm is not None), None)
        if found is not None and found.hipify is not None:
            return f"ROCm {found.version} with hipify-clang is on this machine: {found.root} ({found.origin})"
    installed = store.find(name)
    if installed is not None and current(name, installed, machine):
        return f"{installed.version} is installed in {installed.root}"
    if name == "cuda-headers" and installed is None:
        return _cuda_elsewhere(store)
    return ""


def current(name: str, installed: Installed, machine: Path = Path("/")) -> bool:
    """Whether an installation is what would be installed now: an engine's pinned set and this machine's kind may have changed."""
    if name not in ENGINES:
        return True
    return installed.facts.get("pins") == pins_digest(name) and installed.facts.get("device") == accelerator(machine)


def _cuda_elsewhere(store: Store) -> str:
    try:
        found = find_cuda("", store)
    except EnvironmentProblem:
        return ""
    return f"CUDA {found.version} is on this machine: {found.root} ({found.origin})"
