"""Which functions need a person: those with findings in them, by the lines they have in the original file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from amdflow.errors import UsageError
from amdflow.findings import Effort, Finding, Severity
from amdflow.migrate.scaffold.extract import ItemIndex, Target
from amdflow.migrate.scaffold.published import Published

_LONG = (Effort.HOURS, Effort.REDESIGN)


@dataclass(frozen=True)
class Flagged:
    """A function that needs a person, its lines in the original file, and what was found in it."""

    target: Target
    first: int
    last: int
    findings: tuple[Finding, ...]

    @property
    def file(self) -> str:
        """Path in the tree."""
        return self.target.file

    @property
    def name(self) -> str:
        """As it is written in its file."""
        return self.target.function.name


def needs_a_person(finding: Finding) -> bool:
    """Whether a finding makes the function around it one to work on."""
    return finding.severity in (Severity.COMPILE, Severity.SILENT) or (
        finding.severity is Severity.LINK and finding.effort in _LONG
    )


def find_flagged(published: Published, items: ItemIndex, wanted: str = "") -> list[Flagged]:
    """Functions with findings, by file and line.

    ``wanted`` narrows them to a rule (``AMF1107``), a function's name, a file or ``file:line``; a function, file or line
    named so is taken even when nothing was found in it. Raises UsageError when nothing fits.
    """
    places = places_of(published.findings)
    narrowed = _Wanted(wanted, published.texts)
    files = [
        name
        for name in published.texts
        if narrowed.file in ("", name) and (name in places or narrowed.asks_for(name, published.texts))
    ]
    found = [flagged for name in files for flagged in _in_file(published, items, name, places.get(name, {}), narrowed)]
    if wanted and not found:
        raise UsageError(
            f"no function fits {wanted!r}",
            hint="amdflow scaffold --list shows the functions with findings; a finding's number, a function's name or FILE:LINE is taken",
        )
    return found


class _Wanted:
    """What the user asked for."""

    def __init__(self, text: str, files: Iterable[str]) -> None:
        self.text = text
        path, _, line = text.rpartition(":")
        names = set(files)
        self.file = next(
            (name for name in sorted(names) if any(f"/{given}".endswith(f"/{name}") for given in (text, path))), ""
        )
        self.line = int(line) if self.file and line.isdigit() else 0
        self.rule = text if re.fullmatch(r"[A-Z]{3}\d{4}", text) else ""
        self.function = "" if self.rule or self.file else text

    def asks_for(self, name: str, texts: Mapping[str, str]) -> bool:
        """Whether a file without findings may hold what was asked for."""
        return name == self.file or (bool(self.function) and self.function.split("::")[-1] in texts[name])

    def fits(self, flagged: Flagged) -> bool:
        """Whether a function is one that was asked for."""
        if self.rule:
            return any(finding.id == self.rule for finding in flagged.findings)
        if self.line:
            return flagged.first <= self.line <= flagged.last
        if self.function:
            return self.function in (flagged.name, flagged.name.split("::")[-1])
        return bool(flagged.findings or self.file)


def places_of(findings: Iterable[Finding]) -> dict[str, dict[int, list[Finding]]]:
    """Findings that need a person, by file and original line: each place of one that stands for several."""
    found: dict[str, dict[int, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for finding in filter(needs_a_person, findings):
        for path, line in dict.fromkeys(_all_places(finding)):
            found[path][line].append(finding)
    return found


def _all_places(finding: Finding) -> Iterator[tuple[str, int]]:
    yield finding.path, finding.line
    for line in finding.extra.get("lines", ()):
        yield finding.path, int(line)
    for place in finding.extra.get("places", ()):
        path, _, line = str(place).rpartition(":")
        if line.isdigit():
            yield path, int(line)


def _in_file(
    published: Published, items: ItemIndex, name: str, places: Mapping[int, list[Finding]], wanted: _Wanted
) -> Iterator[Flagged]:
    lines = published.lines(name)
    spans = [
        (target, lines.original(_head(target)), lines.original(target.function.last)) for target in items.targets(name)
    ]
    inside: dict[int, list[Finding]] = defaultdict(list)
    for line, findings in places.items():
        around = [index for index, (_, first, last) in enumerate(spans) if first <= line <= last]
        if around:
            inside[min(around, key=lambda index: spans[index][2] - spans[index][1])] += findings
    for index, (target, first, last) in enumerate(spans):
        flagged = Flagged(target, first, last, tuple(_unique(inside[index])))
        if wanted.fits(flagged):
            yield flagged


def _head(target: Target) -> int:
    """The first line with the template head, where the item is the function alone."""
    return min(target.item.line, target.function.first) if len(target.item.functions) == 1 else target.function.first


def _unique(findings: Iterable[Finding]) -> list[Finding]:
    seen: dict[tuple[str, int, int, str], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.id, finding.line, finding.column, finding.message), finding)
    return sorted(seen.values(), key=lambda finding: (finding.line, finding.id))
