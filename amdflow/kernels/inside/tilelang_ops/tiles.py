"""Where kernels and their tile settings are found in an engine's process, which has no YAML reader for certain."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDERS = "AMDFLOW_KERNELS"
"""Environment variable: the folders of kernels, the user's own first, separated as PATH is."""
_ENTRY = re.compile(r"([a-z][a-z0-9_]*)((?: +\w+=\w+)*): *(\{[^{}]*\})")


@cache
def folders() -> tuple[Path, ...]:
    """The folders of kernels, the most important first."""
    named = [Path(name) for name in os.environ.get(FOLDERS, "").split(os.pathsep) if name]
    package = Path(__file__).resolve().parents[3]
    shipped = [package / "shipped" / "kernels", package.parent / "kernels"]
    return tuple(folder for folder in (*named, *shipped) if folder.is_dir())


def kernel_file(op: str) -> Path:
    """The file of the kernel called ``op``. Raises FileNotFoundError."""
    for folder in folders():
        if (folder / f"{op}.py").is_file():
            return folder / f"{op}.py"
    raise FileNotFoundError(f"no {op}.py in {', '.join(map(str, folders())) or 'any folder of kernels'}")


def tiles_of(target: str, op: str, build: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for ``target`` (a gfx name, ``cuda``, ``cpu``) over those for its wave size; the user's over the shipped ones.

    Reads the lines ``op [size=value]: {name: value, ...}`` of ``tiles/*.yaml``.
    """
    wave = [f"wave{32 if target.startswith('gfx1') else 64}"] if target.startswith("gfx") else []
    found: dict[str, Any] = {}
    for name in (*wave, target):
        for folder in reversed(folders()):
            for conditions, settings in _entries(folder / "tiles" / f"{name}.yaml", op):
                if all(str(build.get(size)).lower() == value for size, value in conditions):
                    found |= settings
    return found


@cache
def _entries(path: Path, op: str) -> list[tuple[list[tuple[str, str]], dict[str, Any]]]:
    """Conditions and settings of ``op`` in one file, the most general first."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = []
    for line in lines:
        match = _ENTRY.match(line)
        if match and match[1] == op:
            conditions = [(word.partition("=")[0], word.partition("=")[2].lower()) for word in match[2].split()]
            try:
                found.append((conditions, json.loads(re.sub(r"(\w+):", r'"\1":', match[3]))))
            except ValueError as error:
                raise ValueError(f"{path}: {line!r} is not of the form op size=value: {{name: value, ...}}") from error
    return sorted(found, key=lambda entry: len(entry[0]))
