"""Files written so that a reader never sees half of one, and paths that stay where they belong."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from amdflow.errors import UsageError

_CHUNK = 1 << 20


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_text(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: temporary file beside it, fsync, rename."""
    write_atomic_parts(path, [content.encode() if isinstance(content, str) else content])


def write_atomic_parts(path: Path, parts: Iterable[bytes]) -> None:
    """:func:`write_atomic` for a file that is made piece by piece and need not fit in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            for part in parts:
                stream.write(part)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """:func:`write_atomic` for a JSON value, indented for people."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def sync_folder(folder: Path) -> None:
    """Make the renames done in a folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def resolve_inside(root: Path, relative: str, *, what: str) -> Path:
    """``root / relative``, refused when it is absolute or leaves ``root`` (symbolic links followed)."""
    candidate = (root / relative).resolve()
    if os.path.isabs(relative) or not candidate.is_relative_to(root.resolve()):
        raise UsageError(
            f"{what} names {relative!r}, which leaves {root}",
            hint="only paths inside the workspace are read; fix or regenerate the file",
        )
    return candidate


def portable(path: Path, root: Path) -> str:
    """``path`` relative to ``root`` where it lies inside it, else as it is; ``/`` separators."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.as_posix()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
