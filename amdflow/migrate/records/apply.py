"""Merges records into what a run produced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from amdflow.files import resolve_inside
from amdflow.migrate.finish import Finished
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.records import patch
from amdflow.migrate.records.merge import merge
from amdflow.migrate.records.record import Record, digest
from amdflow.migrate.text import decode, encode

FOLDER = "migration/records"
"""Where a workspace keeps its records."""


class State(StrEnum):
    """How a record and what the tool produced stand to one another."""

    APPLIED = "applied"
    CONFLICT = "in conflict"
    UNNEEDED = "no longer needed"
    ORPHAN = "its file is gone"


@dataclass(frozen=True)
class Effect:
    """What a record came to. ``text`` is the file's new text, None when it is removed; ``conflicts`` are lines of ``text``."""

    record: Record
    state: State
    text: str | None
    conflicts: tuple[int, ...] = ()


def combine(record: Record, produced: str | None) -> Effect:
    """A record and the text that the tool produced for its file now (None: no such file)."""
    change = record.header.change
    if produced is None:
        missed = change == "edited"
        gone = change == "deleted"
        state = State.ORPHAN if missed else State.UNNEEDED if gone else State.APPLIED
        return Effect(record, state, None if missed or gone else record.edited)
    if change == "deleted":
        same = produced == record.base
        return Effect(record, State.APPLIED if same else State.CONFLICT, None if same else produced)
    merged = merge(record.base, produced, record.edited)
    if merged.conflicts:
        return Effect(record, State.CONFLICT, merged.text, merged.conflicts)
    return Effect(record, State.UNNEEDED if merged.text == produced else State.APPLIED, merged.text)


@dataclass
class ByHand:
    """The records of one run, and what they did."""

    records: Sequence[Record]
    effects: list[Effect] = field(default_factory=list)
    produced: dict[str, str] = field(default_factory=dict)
    """What the tool made of the files that records changed or removed."""
    touched: dict[str, set[int]] = field(default_factory=dict)
    """Original lines that a person replaced, by file."""
    origins: dict[str, LineMap] = field(default_factory=dict)
    """Lines of a merged file to original lines."""
    added: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)

    def merge_code(self, finished: Mapping[str, Finished]) -> dict[str, Finished]:
        """The translated files with the records' changes in them; those that a person removed are named in ``removed``."""
        result = dict(finished)
        for record in self.records:
            done = finished.get(record.path)
            if done is None:
                continue
            effect = self._take(combine(record, done.text), done.text)
            if effect.text is None:
                continue
            origins = [done.lines.original(line) for line in patch.line_origins(done.text, effect.text)]
            self.origins[record.path] = lines = LineMap.of(origins)
            if effect.state is State.APPLIED:
                changed = patch.changed_lines(done.text, effect.text)
                self.touched[record.path] = {done.lines.original(line) for line in changed}
            result[record.path] = replace(done, text=effect.text, lines=lines)
        return result

    def merge_files(self, payload: Path, code: Mapping[str, Finished]) -> None:
        """The same for all other files, in place, once they are written. Raises UsageError for a path that leads outside."""
        for record in self.records:
            if record.path in code:
                continue
            target = resolve_inside(payload, record.path, what="a record")
            produced = decode(target.read_bytes()) if target.is_file() else None
            effect = self._take(combine(record, produced), produced)
            if effect.text is None:
                target.unlink(missing_ok=True)
            elif effect.text != produced:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(encode(effect.text))
            if produced is None and effect.text is not None:
                self.added.append(record.path)

    def stamps(self, code: Mapping[str, Finished]) -> list[str]:
        """What compiling depends on besides the translated code: records of other files (headers that a person added)."""
        return [digest(record.edited) for record in self.records if record.path not in code]

    def _take(self, effect: Effect, produced: str | None) -> Effect:
        self.effects.append(effect)
        if produced is not None:
            self.produced[effect.record.path] = produced
        if effect.text is None and effect.state is State.APPLIED:
            self.removed.add(effect.record.path)
        return effect
