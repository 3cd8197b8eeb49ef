"""Writes a winner into the user's tile file: one line for each entry, everything else in the file as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from amdflow.config import read_yaml_mapping
from amdflow.errors import UsageError
from amdflow.files import write_atomic
from amdflow.kernels.tune_space import Settings, Task

_LINE = re.compile(r"^(?P<key>[a-z_]\w*(?: \w+=\w+)*):[ \t]*(?P<body>\{[^}]*\})[ \t]*(?P<comment>#.*)?$")


def entry_key(task: Task) -> str:
    """The operator with the sizes and the value type that the winner holds for: ``attention head=128 dtype=bfloat16``."""
    conditions = {**task.sizes, "dtype": task.dtype}
    return " ".join([task.kernel.op, *(f"{name}={str(value).lower()}" for name, value in conditions.items())])


def write_entry(path: Path, key: str, settings: Settings, comment: str) -> None:
    """Put ``settings`` under ``key`` in the tile file at ``path``, which need not exist, with ``comment`` behind them.

    An entry of the same key (its conditions in any order) keeps its place and the settings that are not named here.
    Raises UsageError when that entry does not stand on one line, or the file is no mapping.
    """
    before = read_yaml_mapping(path) if path.is_file() else {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    place = next((index for index, line in enumerate(lines) if _same(_key(line), key)), None)
    if place is None:
        expected, written = {**before, key: dict(settings)}, key
        lines.append(_line(key, settings, comment))
    else:
        written = _key(lines[place])
        merged = {**before[written], **settings}
        expected = {**before, written: merged}
        lines[place] = _line(written, merged, comment)
    text = "\n".join(lines) + "\n"
    hidden = place is None and any(_normal(other) == _normal(key) for other in before)
    if hidden or yaml.safe_load(text) != expected:
        raise UsageError(
            f"{path}: the entry {written!r} does not stand on one line of its own, so nothing was changed",
            hint=f"write it as: {_line(written, settings, '')}",
        )
    write_atomic(path, text)


def _line(key: str, settings: Mapping[str, Any], comment: str) -> str:
    words = ", ".join(f"{name}: {str(value).lower()}" for name, value in settings.items())
    return f"{key}: {{{words}}}" + (f"  # {comment}" if comment else "")


def _key(line: str) -> str:
    match = _LINE.match(line)
    return match["key"] if match else ""


def _same(one: str, other: str) -> bool:
    return bool(one) and _normal(one) == _normal(other)


def _normal(key: object) -> tuple[str, ...]:
    op, *conditions = str(key).lower().split() or [""]
    return op, *sorted(conditions)
