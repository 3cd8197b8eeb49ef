"""What build scripts get for CUDA's libraries and nvcc's options, as the rule files spell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Library:
    """What stands for a CUDA library: name behind ``-l``, CMake target, the CMake package that has it. All empty: nothing is needed."""

    link: str = ""
    target: str = ""
    package: str = ""


@dataclass(frozen=True)
class BuildTables:
    """Keys are names without ``-l``, ``CUDA::`` and the dashes of options."""

    libraries: Mapping[str, Library] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    """An option, with ``=value`` where the value matters, and what it becomes; empty drops it."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Options with any value, likewise; ``{value}`` stands for it."""
