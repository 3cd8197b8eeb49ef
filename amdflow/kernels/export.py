"""``kernels export``: code objects, their descriptions, the index and the loader, in a folder that stands alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import UsageError
from amdflow.files import write_json
from amdflow.kernels.artifacts import INDEX, LOADER
from amdflow.pipeline.manifest import MANIFEST_NAME, Upstream

STAGE = "kernels"


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    entries: tuple[dict[str, Any], ...]
    """Of the index."""
    rows: tuple[dict[str, Any], ...]
    """Of the build's table, for the same kernels."""

    @property
    def size(self) -> int:
        """Bytes of all code objects."""
        return sum((self.folder / entry["code_object"]).stat().st_size for entry in self.entries)


def export_objects(
    manifest: Path, folder: Path, *, targets: Sequence[str] = (), kernels: Sequence[str] = ()
) -> Exported:
    """Write ``folder`` from what ``kernels build`` left beside ``manifest``; an export that lies there is replaced.

    ``targets`` and ``kernels`` choose; empty means all. Raises UsageError when nothing was built, nothing fits the
    choice, or ``folder`` holds anything else.
    """
    path = manifest / MANIFEST_NAME if manifest.is_dir() else manifest
    if not path.is_file():
        raise UsageError(f"no kernels were built: {path} is not there", hint="amdflow kernels build")
    built = Upstream.read(path, stage=STAGE)
    source = built.handed(built.manifest.handoff.get("index", INDEX))
    index = json.loads(source.read_text(encoding="utf-8"))
    index["kernels"] = _chosen(index["kernels"], "target", targets)
    index["kernels"] = _chosen(index["kernels"], "op", kernels)
    index["defaults"] = {
        op: sizes for op, sizes in index["defaults"].items() if any(entry["op"] == op for entry in index["kernels"])
    }
    scratch = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    _refuse_foreign(folder)
    for entry in index["kernels"]:
        for key in ("code_object", "launch"):
            goal = scratch / entry[key]
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.parent / entry[key], goal)
    shutil.copyfile(LOADER, scratch / LOADER.name)
    write_json(scratch / INDEX, index)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)
    pairs = {(entry["op"], entry["target"]) for entry in index["kernels"]}
    rows = [row for row in built.manifest.metrics["kernels"] if (row["kernel"], row["target"]) in pairs]
    return Exported(folder, tuple(index["kernels"]), tuple(rows))


def _chosen(entries: list[dict[str, Any]], key: str, names: Sequence[str]) -> list[dict[str, Any]]:
    there = list(dict.fromkeys(entry[key] for entry in entries))
    for name in names:
        if name not in there:
            option = "arch" if key == "target" else "kernel"
            raise UsageError(
                f"nothing was built for {key} {name!r}, only for {', '.join(there)}",
                hint=f"amdflow kernels build --{option} {name}",
            )
    return [entry for entry in entries if not names or entry[key] in names]


def _refuse_foreign(folder: Path) -> None:
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / INDEX).is_file()):
        raise UsageError(f"{folder} is there and holds no export", hint="name another place with --output")
