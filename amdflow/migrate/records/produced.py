"""What the tool itself produced, before manual changes and annotations: kept with the evidence, so that later changes can be told."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from amdflow.migrate.text import decode, encode, is_binary

NAME = "produced.zip"
LIMIT_BYTES = 4_000_000
"""Larger files are no sources that a person edits, and are not kept."""
_LEVEL = 1
_SAME_DATE = (1980, 1, 1, 0, 0, 0)


def pack(archive: Path, payload: Path, names: Iterable[str], instead: Mapping[str, str]) -> None:
    """Write the archive of the payload's text files; ``instead`` holds texts to take in place of a file's own.

    The same files give the same bytes.
    """
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as stream:
        for name in sorted(names):
            if name in instead:
                data = encode(instead[name])
            elif (payload / name).stat().st_size <= LIMIT_BYTES:
                data = (payload / name).read_bytes()
            else:
                continue
            if not is_binary(data):
                stream.writestr(zipfile.ZipInfo(name, _SAME_DATE), data, zipfile.ZIP_DEFLATED, _LEVEL)


def unpack(archive: Path, names: Iterable[str]) -> dict[str, str]:
    """The texts that the archive holds of ``names``; none when there is no archive."""
    try:
        with zipfile.ZipFile(archive) as stream:
            held = set(stream.namelist())
            return {name: decode(stream.read(name)) for name in names if name in held}
    except (FileNotFoundError, zipfile.BadZipFile):
        return {}
