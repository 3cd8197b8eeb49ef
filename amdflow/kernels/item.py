"""One build: a kernel with its value type, sizes and tile settings, for one target."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from amdflow.files import canonical_json, sha256_file, sha256_text
from amdflow.kernels.sources import Kernel

SCRIPTS = Path(__file__).resolve().parent / "inside"
SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, eq=False)
class Item:
    """What is built. ``build`` without the tile settings is what the user asked for; with them it is what ``build()`` gets."""

    kernel: Kernel
    target: str
    """A gfx name, or ``cpu``."""
    dtype: str
    sizes: Mapping[str, Any]
    tiles: Mapping[str, Any]

    @property
    def variant(self) -> str:
        """Kernel, sizes and value type in one word: ``rms_norm-hidden4096-bf16``."""
        return variant_name(self.kernel.op, self.sizes, self.dtype)

    @property
    def name(self) -> str:
        """Names it among all items: ``gfx942/rms_norm-hidden4096-bf16``."""
        return f"{self.target}/{self.variant}"

    @property
    def build(self) -> dict[str, Any]:
        """Keyword arguments of the kernel's ``build``."""
        return {"dtype": self.dtype, **self.sizes, **self.tiles}

    def key(self, tools: Mapping[str, str], flags: Iterable[str]) -> str:
        """What its result depends on, in 32 hex digits."""
        scripts = [sha256_file(SCRIPTS / name) for name in ("lower.py", "tilelang_ops/lowering.py")]
        return sha256_text(
            canonical_json([self.kernel.sha256, self.target, self.build, dict(tools), list(flags), scripts])
        )[:32]


def variant_name(op: str, sizes: Mapping[str, Any], dtype: str) -> str:
    """An operator with its sizes and value type in one word."""
    words = [
        name if value is True else f"no{name}" if value is False else f"{name}{value}" for name, value in sizes.items()
    ]
    return "-".join([op, *words, SHORT[dtype]])


@cache
def alone(path: Path) -> ModuleType:
    """A module of ``inside/`` that needs nothing but the standard library, without the package around it, which needs torch."""
    spec = importlib.util.spec_from_file_location(f"amdflow_inside_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def sizes_text(sizes: Mapping[str, Any]) -> str:
    """Sizes for people: ``head=64 causal``."""
    words = [
        name if value is True else f"not {name}" if value is False else f"{name}={value}"
        for name, value in sizes.items()
    ]
    return " ".join(words)


def core_count(jobs: int) -> int:
    """``jobs``, or one a core this process may use when it is 0."""
    return jobs or len(os.sched_getaffinity(0))


def in_parallel(work: Callable[[ItemT], ResultT], items: Iterable[ItemT], jobs: int) -> list[ResultT]:
    """``work`` over ``items``, ``jobs`` at a time, results in order; the first exception is raised."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(work, items))
