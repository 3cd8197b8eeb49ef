"""Changes to a build script, as replacements of pieces of its text: what no edit names is not touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from amdflow.migrate.fixes import Applied
from amdflow.migrate.linemap import LineMap
from amdflow.migrate.text import splice


@dataclass(frozen=True, slots=True)
class ScriptEdit:
    """Replace the characters ``start`` to ``end``. ``rule`` is the id of the rule that explains it."""

    start: int
    end: int
    text: str
    rule: str
    message: str

    def moved(self, offset: int) -> ScriptEdit:
        """The same edit in a text that this one's text starts at ``offset`` of."""
        return ScriptEdit(self.start + offset, self.end + offset, self.text, self.rule, self.message)


@dataclass(frozen=True)
class Converted:
    """A converted build script; lines of ``applied`` count in the original, ``lines`` leads back to it."""

    text: str
    applied: Sequence[Applied]
    lines: LineMap


def disjoint(edits: Iterable[ScriptEdit]) -> list[ScriptEdit]:
    """In order; of two that overlap, the one that starts first and, then, reaches further. Insertions at one place are all kept."""
    kept: list[ScriptEdit] = []
    end = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end > edit.start, -edit.end)):
        if not edit.text and edit.start < end < edit.end:  # two in a row share the blanks between them
            edit = replace(edit, start=end)
        if edit.start >= end:
            kept.append(edit)
            end = max(end, edit.end)
    return kept


def rewritten(text: str, edits: Iterable[ScriptEdit]) -> str:
    """The text with the edits made."""
    return splice(text, ((edit.start, edit.end, edit.text) for edit in disjoint(edits)))


def convert_with(text: str, edits: Iterable[ScriptEdit]) -> Converted:
    """Make the edits, and keep account of the lines."""
    parts: list[str] = []
    lines, line, at = [1], 1, 0
    applied = []
    for edit in disjoint(edits):
        kept = text[at : edit.start]
        lines += range(line + 1, line + 1 + kept.count("\n"))
        line += kept.count("\n")
        if edit.message:
            applied.append(Applied(edit.rule, line, edit.message))
        lines += [line] * edit.text.count("\n")
        line += text.count("\n", edit.start, edit.end)
        parts += [kept, edit.text]
        at = edit.end
    rest = text[at:]
    lines += range(line + 1, line + 1 + rest.count("\n"))
    return Converted("".join((*parts, rest)), applied, LineMap.of(lines))
