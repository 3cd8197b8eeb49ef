"""Finds, checks and installs the outside programs: HIP compiler, hipify-clang, CUDA headers, engine environments."""

from __future__ import annotations

from amdflow.toolchain.model import CudaHeaders, Engine, Rocm
from amdflow.toolchain.toolchain import Toolchain

__all__ = ["CudaHeaders", "Engine", "Rocm", "Toolchain"]
