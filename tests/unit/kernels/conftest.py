"""Kernels on paper: a folder with a small kernel, and items and resources made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amdflow.kernels.code_object import Resources
from amdflow.kernels.item import Item
from amdflow.kernels.sources import Folders, Kernel, read_kernel

SCALE = '''"""y = 2 x."""
KERNEL = {"op": "scale", "summary": "y = 2 x", "matrix": False, "dtypes": ["float32", "bfloat16"], "sizes": {"width": "columns"}, "replaces": ["scale"]}
CASES = [{"build": {"width": 8}, "run": {"rows": 2}}]


def build(tl, *, dtype, width, block_m=1, threads=64):
    raise AssertionError("this file must not be run")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's kernels folder with the kernel ``scale``."""
    found = tmp_path / "kernels"
    (found / "tiles").mkdir(parents=True)
    (found / "scale.py").write_text(SCALE)
    return found


@pytest.fixture
def folders(folder: Path) -> Folders:
    return Folders((folder,))


@pytest.fixture
def kernel(folder: Path) -> Kernel:
    found = read_kernel(folder / "scale.py")
    assert found is not None
    return found


@pytest.fixture
def item(kernel: Kernel) -> Item:
    return Item(kernel, "gfx942", "bfloat16", {"width": 8}, {"block_m": 64, "threads": 256})


@pytest.fixture
def takes() -> Callable[..., Resources]:
    """Resources of a modest kernel, with changes."""
    modest = Resources("scale_kernel", 64, 0, 20, 0, 0, 0, 0, 64, 256, 16)

    def make(**changes: Any) -> Resources:
        return replace(modest, **changes)

    return make
