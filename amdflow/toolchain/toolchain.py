"""The one object through which stages reach the outside programs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from amdflow.config import ToolchainConfig
from amdflow.errors import AmdflowError
from amdflow.toolchain.find_cuda import find_cuda
from amdflow.toolchain.find_engine import find_engine
from amdflow.toolchain.find_rocm import find_rocm
from amdflow.toolchain.model import CudaHeaders, Engine, Rocm
from amdflow.toolchain.store import Store

ToolT = TypeVar("ToolT")


class Toolchain:
    """Finds each program when it is first asked for, and remembers it. Safe to share between threads.

    Every method raises EnvironmentProblem, with the command that mends it, when the tool is missing or unusable.
    """

    def __init__(
        self, config: ToolchainConfig | None = None, store: Store | None = None, machine: Path = Path("/")
    ) -> None:
        self.config = config or ToolchainConfig()
        self._given_store, self._machine = store, machine
        self._known: dict[str, object] = {}
        self._lock = threading.Lock()

    @property
    def store(self) -> Store:
        """Where amdflow keeps what it installs."""
        return self._given_store or Store.default()

    def rocm(self) -> Rocm:
        """HIP compiler and hipify-clang."""
        return self._once("rocm", lambda: find_rocm(self.config.rocm, self.store))

    def cuda_headers(self) -> CudaHeaders:
        """CUDA 12 headers."""
        return self._once("cuda-headers", lambda: find_cuda(self.config.cuda, self.store))

    def engine(self, name: str) -> Engine:
        """The environment of ``kernels``, ``finetune``, ``serve`` or ``vllm``."""
        return self._once(
            f"engine {name}", lambda: find_engine(name, getattr(self.config, name, ""), self.store, self._machine)
        )

    def _once(self, key: str, find: Callable[[], ToolT]) -> ToolT:
        with self._lock:
            known = self._known.get(key)
            if known is None:
                try:
                    known = find()
                except AmdflowError as error:
                    known = error
                self._known[key] = known
        if isinstance(known, AmdflowError):
            raise known
        return cast("ToolT", known)
