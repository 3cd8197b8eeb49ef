"""Makes the programs of a private prefix start directly: their own loader and libraries instead of the machine's."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from amdflow import process

_X86_64 = 62
_EXECUTABLE, _SHARED = 2, 3
_DYNAMIC, _INTERPRETER = 2, 3
_BATCH = 100


def kind(path: Path) -> str:
    """``program`` (asks for a loader), ``library`` (dynamic, asks for none), or empty: not a dynamic x86-64 ELF file."""
    with path.open("rb") as stream:
        head = stream.read(4096)
    if len(head) < 64 or head[:5] != b"\x7fELF\x02" or head[18] != _X86_64:
        return ""
    if struct.unpack_from("<H", head, 16)[0] not in (_EXECUTABLE, _SHARED):
        return ""
    table = struct.unpack_from("<Q", head, 32)[0]
    size, count = struct.unpack_from("<HH", head, 54)
    types = {
        struct.unpack_from("<I", head, table + index * size)[0]
        for index in range(count)
        if table + index * size + 4 <= len(head)
    }
    if _DYNAMIC not in types:
        return ""
    # the C library can be started as a program too, and must keep its layout
    return "program" if _INTERPRETER in types and ".so" not in path.name else "library"


def dynamic_files(root: Path) -> tuple[list[Path], list[Path]]:
    """Programs and libraries below ``root``; links are not followed and hard links are named once."""
    seen: set[int] = set()
    found: dict[str, list[Path]] = {"program": [], "library": []}
    for base, _folders, files in os.walk(root):
        for name in files:
            path = Path(base, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_ino not in seen:
                seen.add(status.st_ino)
                found.get(kind(path), []).append(path)
    return found["program"], found["library"]


def relocate(root: Path, patchelf: Path, library_folders: Sequence[Path]) -> int:
    """Point every program below ``root`` at the loader there, and everything at ``library_folders``. Returns how many files were changed."""
    loader = root / "usr/lib64/ld-linux-x86-64.so.2"
    programs, libraries = dynamic_files(root)
    libraries = [path for path in libraries if path.name != loader.name]
    path = ":".join(map(str, library_folders))
    for batch in _batches(programs):
        process.run([str(patchelf), "--set-interpreter", str(loader), "--set-rpath", path, *map(str, batch)])
    for batch in _batches(libraries):
        process.run([str(patchelf), "--set-rpath", path, *map(str, batch)])
    return len(programs) + len(libraries)


def _batches(files: Sequence[Path]) -> Iterable[Sequence[Path]]:
    return (files[start : start + _BATCH] for start in range(0, len(files), _BATCH))
