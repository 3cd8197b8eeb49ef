"""``amdflow record``: compares the published output with what the tool had produced, and keeps the difference."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from amdflow.errors import UsageError
from amdflow.files import sha256_file, write_json
from amdflow.migrate import annotate
from amdflow.migrate.records import patch, produced, record
from amdflow.migrate.records.apply import FOLDER, combine
from amdflow.migrate.records.merge import has_conflict
from amdflow.migrate.records.record import Header, Kind, Record
from amdflow.migrate.text import decode, is_binary
from amdflow.pipeline.freshness import check_outputs
from amdflow.pipeline.manifest import REPORT_FOLDER, Manifest, read_manifest
from amdflow.pipeline.workspace import Destination

_ATTRIBUTES = f"# patches hold the line ends of the files they change\n*{record.ENDING} -text\n"

_NOT_YET = "not applied yet"


@dataclass(frozen=True)
class Output:
    """The published output of a migration, as it is now. Names are relative to the migrated tree."""

    manifest: Manifest
    destination: Destination
    edited: frozenset[str]
    missing: frozenset[str]
    added: frozenset[str]

    @classmethod
    def read(cls, destination: Destination) -> Output:
        """Raises UsageError when nothing was migrated there."""
        manifest = read_manifest(destination.manifest) if destination.manifest.is_file() else None
        if manifest is None or not manifest.status.good:
            raise UsageError(
                f"there is no migrated output in {destination.payload}",
                hint="amdflow migrate ./cuda_src, or name its folder with --output",
            )
        names = {artifact.path: destination.name_in_payload(artifact.path) for artifact in manifest.outputs}
        state = check_outputs(manifest, destination.evidence)
        known = frozenset(filter(None, names.values()))
        return cls(
            manifest,
            destination,
            frozenset(filter(None, (names[path] for path in state.edited))),
            frozenset(filter(None, (names[path] for path in state.missing))),
            frozenset(_files(destination.payload)) - known,
        )

    def text(self, name: str) -> str:
        """A file's text as it is now, without the markers of ``--annotate``. Raises UsageError for binary data."""
        data = (self.destination.payload / name).read_bytes()
        if is_binary(data):
            raise UsageError(f"{name} is not a text, so it cannot be kept as a patch", hint="keep it elsewhere")
        return annotate.strip(decode(data))

    def produced(self, names: Sequence[str]) -> dict[str, str]:
        """What the tool had made of these files."""
        return produced.unpack(self.destination.evidence / produced.NAME, names)


@dataclass(frozen=True)
class Reason:
    """Why a change was made, and who made it; a new record that names nobody is ``login``'s."""

    why: str = ""
    who: str = ""
    login: str = ""
    named: bool = False
    """Whether the files were named, so that the reason is also meant for changes that have one."""


@dataclass(frozen=True)
class Entry:
    """One record, for showing. ``plus`` and ``minus`` count changed lines."""

    path: str
    change: str
    state: str
    why: str
    who: str
    date: str
    file: str
    plus: int
    minus: int


@dataclass
class Recorded:
    """What recording came to; the names are relative to the migrated tree."""

    written: list[Entry] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    """Files that are as the tool makes them again, and whose record went."""
    left_added: list[str] = field(default_factory=list)
    """New files that were not asked for."""
    left_missing: list[str] = field(default_factory=list)
    """Files that are gone and were not asked for."""


def keep_changes(output: Output, folder: Path, wanted: Sequence[str], reason: Reason) -> Recorded:
    """Write a record for each changed file below ``folder``.

    ``wanted`` names files or folders; without it every edited file is taken, and new and removed files are only told.
    The reason may be empty for files that have a record; those are renewed when the tool's output has moved on. Raises
    UsageError, before anything is written, when a reason is missing, a conflict is left in a file, or what the tool
    produced is not known.
    """
    existing = {kept.path: kept for kept in record.read_all(folder).values()}
    chosen = _choose(output, existing, wanted)
    originals = output.produced(sorted(chosen))
    noted = _Noted(output, folder)
    result, fresh = Recorded(), []
    for name, kind in sorted(chosen.items()):
        old = existing.get(name)
        touched = name in output.edited | output.added | output.missing
        if not touched and not noted.applied(name):
            continue
        given = reason if touched or wanted else Reason()
        made = _make(output, name, kind, originals.get(name), old, replace(given, named=bool(wanted)))
        if old is not None and touched and not noted.known(name) and (made is None or made.edited != old.edited):
            raise UsageError(
                f"the record of {name} changed since the last run, and the file was edited here too",
                hint="keep a copy of your file, run `amdflow migrate --force`, make your change again and record it",
            )
        if made is None:
            result.dropped += [name] if old is not None and touched else []
        elif made != old:
            fresh.append(made)
    for name in result.dropped:
        record.file_of(folder, name).unlink(missing_ok=True)
    result.written = [_entry(made, record.write(folder, made), "recorded") for made in fresh]
    if fresh and not (folder / ".gitattributes").exists():
        (folder / ".gitattributes").write_text(_ATTRIBUTES, encoding="utf-8")
    noted.note([made.path for made in fresh])
    if not wanted:
        result.left_added = sorted(output.added - existing.keys())
        result.left_missing = sorted(output.missing)
    return result


def listing(output: Output | None, folder: Path) -> list[Entry]:
    """Every record, with what it would come to in the last run's output."""
    records = record.read_all(folder)
    originals = output.produced([kept.path for kept in records.values()]) if output else {}
    noted = _Noted(output, folder) if output else None
    return [
        _entry(
            kept,
            file,
            combine(kept, originals.get(kept.path)).state.value if noted and noted.applied(kept.path) else _NOT_YET,
        )
        for file, kept in records.items()
    ]


class _Noted:
    """Which records the last run applied, and which were written here since: others came from elsewhere."""

    def __init__(self, output: Output, folder: Path) -> None:
        self._folder = folder
        self._file = output.destination.private / "recorded.json"
        self._applied = {item.name: item.sha256 for item in output.manifest.inputs if item.role == "record"}
        try:
            self._written: dict[str, str] = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._written = {}

    def applied(self, name: str) -> bool:
        return self._digest(name) == self._applied.get(f"{FOLDER}/{name}{record.ENDING}")

    def known(self, name: str) -> bool:
        return self.applied(name) or self._digest(name) == self._written.get(name)

    def note(self, names: Sequence[str]) -> None:
        if names:
            write_json(self._file, self._written | {name: self._digest(name) for name in names})

    def _digest(self, name: str) -> str:
        return sha256_file(record.file_of(self._folder, name))


def _choose(output: Output, existing: Mapping[str, Record], wanted: Sequence[str]) -> dict[str, Kind]:
    """The files to look at. Without ``wanted``: those edited, and those that have a record and are free of conflicts."""
    payload = output.destination.payload
    with_record = [name for name in existing if (payload / name).is_file()]
    chosen: dict[str, Kind] = dict.fromkeys(output.edited, "edited")
    if not wanted:
        chosen |= dict.fromkeys(
            (name for name in with_record if name not in chosen and not has_conflict(output.text(name))), "edited"
        )
        return chosen
    chosen |= dict.fromkeys(with_record, "edited")
    chosen |= dict.fromkeys(output.added, "added")
    chosen |= dict.fromkeys(output.missing, "deleted")
    found: dict[str, Kind] = {}
    for text in wanted:
        name = _relative(payload, text)
        below = {path: kind for path, kind in chosen.items() if path == name or path.startswith(f"{name}/")}
        if not below:
            raise UsageError(
                f"nothing was changed at {text}",
                hint=f"name a file or folder below {payload} that you edited, added or removed",
            )
        found |= below
    return found


def _make(output: Output, name: str, kind: Kind, base: str | None, old: Record | None, reason: Reason) -> Record | None:
    """The record of one file; None when it is as the tool makes it (or was added by hand and is gone again)."""
    by_hand = base is None and (kind == "added" or (old is not None and old.header.change == "added"))
    if by_hand and kind == "deleted":
        return None
    if not by_hand and base is None:
        raise UsageError(
            f"what amdflow had produced for {name} is not known: it is very large, no text, or {produced.NAME} is gone",
            hint="keep a copy of your file, run `amdflow migrate --force`, make the change again and record it",
        )
    if kind != "deleted":
        kind = "added" if by_hand else "edited"
    base = base or ""
    edited = "" if kind == "deleted" else output.text(name)
    if has_conflict(edited):
        raise UsageError(
            f"{name} still holds conflict markers (<<<<<<<, >>>>>>>)",
            hint="resolve them, then run `amdflow record` again",
        )
    if kind == "edited" and edited == base:
        return None
    return _describe(output, name, kind, base, edited, old, reason)


def _describe(
    output: Output, name: str, kind: Kind, base: str, edited: str, old: Record | None, reason: Reason
) -> Record:
    why, who = reason.why, reason.who or reason.login
    if old is not None:
        same = (old.edited, old.header.change) == (edited, kind)
        given = reason if reason.named or not same else Reason()
        why, who = given.why or old.header.why, given.who or old.header.who
    if not why:
        raise UsageError(
            f"a record needs a reason, and {name} has none yet",
            hint='amdflow record --why "what was wrong, and who needs the change"',
        )
    if old is not None and (old.base, old.edited, old.header.change) == (base, edited, kind):
        return Record(old.header.model_copy(update={"why": why, "who": who}), base, edited)
    header = Header(
        path=name,
        change=kind,
        why=why,
        who=who,
        date=datetime.now(UTC).date().isoformat(),
        source=str(output.manifest.config.get("source", "")),
        amdflow=output.manifest.amdflow,
        base=record.digest(base),
    )
    return Record(header, base, edited)


def _entry(kept: Record, file: Path, state: str) -> Entry:
    lines = patch.split_lines(kept.diff)[2:]
    return Entry(
        kept.path,
        kept.header.change,
        state,
        kept.header.why,
        kept.header.who,
        kept.header.date,
        str(file),
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
    )


def _relative(payload: Path, text: str) -> str:
    """A path as a person types it: from where they are, or from the top of the migrated tree."""
    here = Path(os.path.normpath(Path.cwd() / text))
    inside = here.is_relative_to(payload) and here != payload
    return here.relative_to(payload).as_posix() if inside else Path(os.path.normpath(text)).as_posix()


def _files(payload: Path) -> Iterator[str]:
    """Every regular file of the migrated tree."""
    for folder, folders, files in os.walk(payload):
        if Path(folder) == payload and REPORT_FOLDER in folders:
            folders.remove(REPORT_FOLDER)
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                yield path.relative_to(payload).as_posix()
