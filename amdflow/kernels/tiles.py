"""Tile settings and build shapes: which numbers a kernel is built with for a target.

``tiles/wave64.yaml`` or ``wave32.yaml`` holds for every target of that wave size, ``tiles/<target>.yaml`` goes over it.
A key is an operator, or an operator with conditions: ``attention head=128`` holds only for that build.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amdflow.config import nearest, read_yaml_mapping
from amdflow.errors import UsageError
from amdflow.gpu.targets import TARGETS
from amdflow.kernels.sources import Folders, Kernel

Setting = int | bool


def tile_names(target: str) -> tuple[str, ...]:
    """Tile files that count for ``target`` (a gfx name, ``cpu`` or ``cuda``), the most special last."""
    facts = TARGETS.get(target)
    return (f"wave{facts.wavefront}", target) if facts else (target,)


def tile_files(folders: Folders, target: str) -> list[Path]:
    """The tile files there are for ``target``, the most special last."""
    return [path for name in tile_names(target) for path in folders.find(f"tiles/{name}.yaml")]


def tiles_for(folders: Folders, kernel: Kernel, target: str, build: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings of ``kernel`` built with ``build`` (dtype and sizes) for ``target``. Raises UsageError for an unknown setting."""
    settings: dict[str, Setting] = {}
    for path in tile_files(folders, target):
        entries = [(key.split(), value) for key, value in read_yaml_mapping(path).items()]
        matching = [
            (words, value) for words, value in entries if words[:1] == [kernel.op] and _holds(words[1:], build, path)
        ]
        for _words, value in sorted(matching, key=lambda entry: len(entry[0])):
            settings |= _checked(value, kernel, path)
    return settings


def shapes_for(folders: Folders, kernel: Kernel) -> list[dict[str, Any]]:
    """The sizes ``kernel`` is built with by default, from ``shapes.yaml``. Raises UsageError for an unknown size."""
    shapes: Any = [{}]
    for path in folders.find("shapes.yaml"):
        shapes = read_yaml_mapping(path).get(kernel.op, shapes)
        if not isinstance(shapes, list) or not shapes or not all(isinstance(shape, dict) for shape in shapes):
            raise UsageError(f"{path}: {kernel.op} must be a list of mappings", hint="for example: [{hidden: 4096}]")
        for name in {name for shape in shapes for name in shape}:
            if name not in kernel.declaration.sizes:
                raise UsageError(
                    f"{path}: {kernel.op} has no size {name!r}{nearest(str(name), list(kernel.declaration.sizes))}",
                    hint=f"sizes: {', '.join(kernel.declaration.sizes) or 'none'}",
                )
    return [dict(shape) for index, shape in enumerate(shapes) if shape not in shapes[:index]]


def _holds(conditions: list[str], build: Mapping[str, Any], path: Path) -> bool:
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise UsageError(
                f"{path}: condition {condition!r} is not of the form size=value",
                hint="for example: attention head=128:",
            )
        if str(build.get(name)).lower() != value.lower():
            return False
    return True


def _checked(value: Any, kernel: Kernel, path: Path) -> dict[str, Setting]:
    if not isinstance(value, dict):
        raise UsageError(
            f"{path}: {kernel.op} must be a mapping of settings", hint=f"settings: {', '.join(kernel.settings)}"
        )
    for name, setting in value.items():
        if name not in kernel.settings:
            raise UsageError(
                f"{path}: {kernel.op} has no setting {name!r}{nearest(str(name), list(kernel.settings))}",
                hint=f"settings: {', '.join(kernel.settings)}",
            )
        if not isinstance(setting, int) or setting < 0:
            raise UsageError(
                f"{path}: {kernel.op}.{name} must be a whole number or true/false, not {setting!r}",
                hint="fix that line",
            )
    return value
