"""Every tool in one list: found or missing, which version, where, whose."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain.find_engine import ENGINES
from amdflow.toolchain.toolchain import Toolchain

_MAIN = {"kernels": "tilelang", "finetune": "llamafactory", "serve": "sglang", "vllm": "vllm"}
NAMES = ("rocm", "hipify-clang", "cuda-headers", *ENGINES)


@dataclass(frozen=True)
class Tool:
    """One outside program as this machine has it."""

    name: str
    state: str
    """``ready``, ``unfinished`` (an install was interrupted) or ``missing``."""
    version: str = ""
    path: str = ""
    origin: str = ""
    size: int | None = None
    """Bytes, where amdflow installed it."""
    problem: str = ""
    fix: str = ""

    @property
    def shown_size(self) -> str:
        """The size for a table."""
        return (
            ""
            if self.size is None
            else f"{self.size / 1e9:.1f} GB"
            if self.size >= 1e9
            else f"{self.size / 1e6:.0f} MB"
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def inventory(toolchain: Toolchain) -> list[Tool]:
    """All tools, in the order of the pipeline."""
    return [inspect(name, toolchain) for name in NAMES]


def inspect(name: str, toolchain: Toolchain) -> Tool:
    """One tool; what is missing is told in the result, not raised."""
    key = "rocm" if name == "hipify-clang" else name
    try:
        version, path, origin = _look(name, toolchain)
    except EnvironmentProblem as problem:
        state = "unfinished" if toolchain.store.begun(key) else "missing"
        return Tool(name, state, problem=problem.message, fix=problem.hint)
    installed = toolchain.store.find(key)
    ours = installed is not None and name == key and path.startswith(str(installed.root))
    return Tool(name, "ready", version, path, origin, installed.size if installed is not None and ours else None)


def _look(name: str, toolchain: Toolchain) -> tuple[str, str, str]:
    """Version, path and origin. Raises EnvironmentProblem."""
    if name == "rocm":
        rocm = toolchain.rocm()
        return rocm.version, str(rocm.root), rocm.origin
    if name == "hipify-clang":
        hipify = toolchain.rocm().needed_hipify()
        return hipify.version, str(hipify.program), hipify.origin
    if name == "cuda-headers":
        cuda = toolchain.cuda_headers()
        return cuda.version, str(cuda.root), cuda.origin
    engine = toolchain.engine(name)
    main = next(
        package for package in (_MAIN[name], f"{_MAIN[name]}-cpu", f"{_MAIN[name]}-rocm") if package in engine.packages
    )
    return (
        f"{main} {engine.packages[main]}, torch {engine.packages.get('torch', '?')} ({engine.device})",
        str(engine.python),
        engine.origin,
    )
