"""``kernels export``: code objects, their descriptions, the index and the loader, in a folder that stands alone."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import AmdflowError, UsageError
from amdflow.files import sha256_file, write_json
from amdflow.kernels.artifacts import INDEX, LOADER, SCHEMA
from amdflow.pipeline.manifest import MANIFEST_NAME, Upstream

STAGE = "kernels"
_ROLES = ("index", "code-object", "launch")


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
    choice, or ``folder`` holds anything else; AmdflowError when a file is not what was built.
    """
    path = manifest / MANIFEST_NAME if manifest.is_dir() else manifest
    if not path.is_file():
        raise UsageError(f"no kernels were built: {path} is not there", hint="amdflow kernels build")
    built = Upstream.read(path, stage=STAGE)
    whole = {built.file(output): output.sha256 for role in _ROLES for output in built.outputs(role)}
    source = built.handed(built.manifest.handoff.get("index", INDEX))
    _check(source, whole)
    index = json.loads(source.read_text(encoding="utf-8"))
    index["kernels"] = _chosen(index["kernels"], "target", targets)
    index["kernels"] = _chosen(index["kernels"], "op", kernels)
    index["defaults"] = {
        op: sizes for op, sizes in index["defaults"].items() if any(entry["op"] == op for entry in index["kernels"])
    }
    folder = folder.resolve()  # a link stays, what it leads to is replaced
    _refuse_foreign(folder, source.parent)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        new = Path(scratch) / "new"
        for entry in index["kernels"]:
            for key in ("code_object", "launch"):
                origin, goal = source.parent / entry[key], new / entry[key]
                _check(origin, whole)
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(origin, goal)
        shutil.copyfile(LOADER, new / LOADER.name)
        write_json(new / INDEX, index)
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        new.rename(folder)
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


def _check(path: Path, whole: Mapping[Path, str]) -> None:
    """Refuse a file that is not, byte for byte, what the manifest says was built."""
    if whole.get(path.resolve()) != sha256_file(path):
        raise AmdflowError(
            f"{path} is not what kernels build left there, so nothing was exported",
            hint="amdflow kernels build --force",
        )


def _refuse_foreign(folder: Path, source: Path) -> None:
    """Refuse a place that holds what an export would not, or the build itself."""
    if source.is_relative_to(folder) or folder.is_relative_to(source):
        raise UsageError(f"{folder} holds the build that is exported", hint="name another place with --output")
    if not folder.exists():
        return
    foreign = _foreign(folder)
    if foreign:
        raise UsageError(f"{folder} is there and {foreign}", hint="name another place with --output")


def _foreign(folder: Path) -> str:
    """What in ``folder`` is of no export, in words; nothing for an export of ours and for an empty folder."""
    if not folder.is_dir():
        return "is no folder"
    names = {path.name for path in folder.iterdir()}
    if not names:
        return ""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        ours = {INDEX, LOADER.name, "__pycache__", *(entry["target"] for entry in index["kernels"])}
    except (OSError, ValueError, KeyError, TypeError):
        return "holds no export"
    others = sorted(names - ours)
    if index.get("schema") != SCHEMA or others:
        return f"holds no export{f', but {others[0]}' if others else ''}"
    return ""
