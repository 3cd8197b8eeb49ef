"""Outcomes on disk, one line each as soon as it is known: a search that was interrupted goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from amdflow.files import canonical_json, sha256_text
from amdflow.kernels.tune_space import Outcome, Task


class Store:
    """What is known of one task, in the file that its key names."""

    def __init__(self, folder: Path, task: Task, tools: Mapping[str, Any]) -> None:
        """``tools`` is what results depend on beside the task: versions, the card, the model's version."""
        self.path = folder / f"{task.kernel.op}-{task.target}-{store_key(task, tools)}.jsonl"
        self.outcomes: list[Outcome] = _read(self.path)

    def add(self, outcome: Outcome) -> None:
        """Remember one outcome."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(outcome.to_json()) + "\n")
        self.outcomes.append(outcome)


def store_key(task: Task, tools: Mapping[str, Any]) -> str:
    """16 hex digits that change with the kernel's text, target, value type, sizes, settings that are not searched, ``tools``."""
    fixed = {name: value for name, value in task.tiles.items() if name not in task.kernel.space}
    parts = [task.kernel.sha256, task.target, task.dtype, dict(task.sizes), dict(task.run), fixed, dict(tools)]
    return sha256_text(canonical_json(parts))[:16]


def _read(path: Path) -> list[Outcome]:
    """Every whole line; the last may have been cut off when the process ended. Lines that are no outcome are passed over."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    whole, _newline, torn = text.rpartition("\n")
    if torn:
        path.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
    found = []
    for line in whole.splitlines():
        with suppress(ValueError, TypeError):
            found.append(Outcome(**json.loads(line)))
    return found
