"""Which checkpoint a training can go on from. One that was cut off while being written is found out and removed."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from amdflow.errors import UsageError
from amdflow.files import write_atomic
from amdflow.weights import read_header

STATE_NAME = "trainer_state.json"
LOG_NAME = "trainer_log.jsonl"
_OPTIMIZERS = ("optimizer.pt", "optimizer.bin")  # the second is FSDP's with a full state
_NAME = re.compile(r"checkpoint-(\d+)")


def step_of(folder: Path) -> int:
    """The step in a checkpoint's name, -1 for other folders."""
    match = _NAME.fullmatch(folder.name)
    return int(match[1]) if match else -1


def is_complete(folder: Path) -> bool:
    """Whether a checkpoint was written to its end, with all that a resumed training needs.

    The trainer writes its state last, so a readable state of the right step comes first; then weights and optimizer
    are looked at too, since a crash of the machine may lose earlier files and keep later ones.
    """
    try:
        state = json.loads((folder / STATE_NAME).read_text(encoding="utf-8"))
        if state["global_step"] != step_of(folder):
            return False
        weights = list(folder.glob("*.safetensors"))
        for file in weights:
            read_header(file)
    except (OSError, ValueError, KeyError, TypeError, UsageError):
        return False
    sharded = (
        any(folder.glob("global_step*")) or any(folder.glob("pytorch_model_fsdp*")) or any(folder.glob("optimizer_*"))
    )
    if sharded:
        return True
    return (
        bool(weights)
        and any(zipfile.is_zipfile(folder / name) for name in _OPTIMIZERS)
        and (folder / "scheduler.pt").is_file()
    )


def last_complete(payload: Path) -> tuple[Path | None, list[Path]]:
    """(the newest complete checkpoint, the incomplete ones that were removed)."""
    removed = []
    best: Path | None = None
    for folder in sorted(_checkpoints(payload), key=step_of):
        if is_complete(folder):
            best = folder
        else:
            shutil.rmtree(folder)
            removed.append(folder)
    return best, removed


def _checkpoints(payload: Path) -> Iterator[Path]:
    return (folder for folder in payload.iterdir() if folder.is_dir() and step_of(folder) >= 0)


def trim_log(payload: Path, step: int) -> None:
    """Drop the log lines after ``step``: a resumed training writes them again."""
    log = payload / LOG_NAME
    if not log.is_file():
        return
    kept = []
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line).get("current_steps", 0) <= step:
                kept.append(line)
        except ValueError:
            continue
    write_atomic(log, "".join(f"{line}\n" for line in kept))
