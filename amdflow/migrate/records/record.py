"""One record: a patch file with a small YAML header for people, the diff, and the packed base text for the merge."""

from __future__ import annotations

import base64
import hashlib
import textwrap
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import yaml
from pydantic import Field, field_validator

from amdflow.config import Model, validate
from amdflow.errors import UsageError
from amdflow.files import write_atomic
from amdflow.migrate.records import patch
from amdflow.migrate.text import decode, encode

ENDING = ".patch"
_PACKED = "amdflow-base zlib base64\n"
_HEAD = "# A change made by hand in the migrated output; `amdflow migrate` merges it into every run. Edit why and who freely.\n"
_GIVE_UP = "restore the file from version control, or make the change again and run `amdflow record`"

Kind = Literal["edited", "added", "deleted"]


class Header(Model):
    """What a person reads first."""

    path: str
    """Of the changed file, relative to the migrated tree."""
    change: Kind
    why: str = Field(min_length=1)
    who: str = ""
    date: str
    """Day of the recording, ISO 8601."""
    source: str = ""
    """The source folder, as in ``migrate.source``."""
    amdflow: str
    """Version that produced the base text."""
    base: str
    """SHA-256 of the base text's bytes: what the tool had produced when the change was made."""

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts:
            raise ValueError("must be a path inside the migrated tree")
        return path


@dataclass(frozen=True)
class Record:
    """A manual change: what the tool had produced (``base``) and what a person made of it (``edited``; empty when deleted)."""

    header: Header
    base: str
    edited: str

    @property
    def path(self) -> str:
        """The changed file, relative to the migrated tree."""
        return self.header.path

    @property
    def deleted(self) -> bool:
        """Whether the person removed the file."""
        return self.header.change == "deleted"

    def says(self) -> str:
        """Who and why, on one line."""
        why = " ".join(self.header.why.split())
        return f"{self.header.who}: {why}" if self.header.who else why

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return patch.make(self.base, self.edited, self.path, added=self.header.change == "added", deleted=self.deleted)


def digest(text: str) -> str:
    """SHA-256 of a text's bytes, as the header's ``base`` has it."""
    return hashlib.sha256(encode(text)).hexdigest()


def file_of(folder: Path, path: str) -> Path:
    """Where the record of a file lies."""
    return folder / f"{path}{ENDING}"


def write(folder: Path, record: Record) -> Path:
    """Write a record below the records folder; its path."""
    file = file_of(folder, record.path)
    head = yaml.safe_dump(record.header.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)
    packed = base64.b64encode(zlib.compress(encode(record.base), 9)).decode()
    body = "\n".join(textwrap.wrap(packed, 76))
    write_atomic(file, encode(f"{_HEAD}{head}{record.diff}{_PACKED}{body}\n"))
    return file


def read(file: Path) -> Record:
    """Read a record. Raises UsageError naming the file and what is wrong with it."""
    text = decode(file.read_bytes())
    lines = patch.split_lines(text)
    starts = [index for index, line in enumerate(lines) if line.startswith("--- ")]
    packed = [index for index, line in enumerate(lines) if line == _PACKED]
    if not packed:
        raise UsageError(f"{file} is not a record of amdflow: its packed base text is missing", hint=_GIVE_UP)
    start = min([*starts, packed[-1]])
    try:
        data = yaml.safe_load("".join(lines[:start]))
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: its header is not YAML: {error}", hint=_GIVE_UP) from error
    header = validate(Header, data if isinstance(data, dict) else {}, where=str(file))
    try:
        base = decode(zlib.decompress(base64.b64decode("".join(lines[packed[-1] + 1 :]))))
        if digest(base) != header.base:
            raise ValueError("the packed base text is not the one that `base` names")
        edited = patch.apply(base, "".join(lines[start : packed[-1]]))
    except (ValueError, zlib.error) as error:
        raise UsageError(f"{file} is damaged: {error}", hint=_GIVE_UP) from error
    return Record(header, base, edited)


def read_all(folder: Path) -> dict[Path, Record]:
    """Every record below a folder, in path order. Raises UsageError for one that does not lie where its ``path`` says."""
    found = {file: read(file) for file in sorted(folder.rglob(f"*{ENDING}")) if file.is_file()}
    for file, kept in found.items():
        if file != file_of(folder, kept.path):
            raise UsageError(
                f"{file} is the record of {kept.path}, but that lies at {file_of(folder, kept.path)}",
                hint="rename the record, or correct the `path` in it",
            )
    return found
