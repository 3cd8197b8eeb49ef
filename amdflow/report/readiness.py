"""How far a migration got, in words and figures that promise nothing the evidence does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from amdflow.findings import Finding, Severity, count_by_severity
from amdflow.report.effort import Estimate, estimate
from amdflow.report.migrated import FileResult, MigrationReport

OK, FAILED = "ok", "failed"
NEEDS_A_PERSON = (Severity.SILENT, Severity.COMPILE, Severity.LINK)
MEANING: dict[Severity, tuple[str, str]] = {
    Severity.SILENT: ("compiles but may compute the wrong thing", "compile but may compute the wrong thing"),
    Severity.COMPILE: ("blocks the compiler", "block the compiler"),
    Severity.LINK: ("fails at link or load time", "fail at link or load time"),
    Severity.SLOW: ("is right but slower than it should be", "are right but slower than they should be"),
    Severity.NOTE: ("is good to know", "are good to know"),
}
"""What a severity means, for one finding and for several."""
LIBRARY_STATES: dict[str, tuple[str, str]] = {
    "none": ("no counterpart", "nothing takes its place call by call: the part is written anew or left out"),
    "partial": ("partial", "a counterpart that lacks some of it, or differs"),
    "renamed": ("renamed", "the same calls under other names, which the migration has put in"),
    "drop-in": ("drop-in", "the same names: only the build changes"),
}
"""What a library's status means, in a word and in words."""
NOT_RUN = "Compiled is not the same as correct: no migrated code was run on a GPU for this report."


class Readiness(StrEnum):
    """What a file needs next, worst first."""

    BLOCKED = "blocked"
    CHECK = "to check"
    READY = "ready to test"
    ALONG = "not compiled alone"


@dataclass(frozen=True)
class TargetScore:
    """Translation units that compile for one target."""

    target: str
    compiled: int
    units: int


@dataclass(frozen=True)
class FolderScore:
    """Files of one folder, counted by readiness."""

    folder: str
    files: int
    by_readiness: Mapping[Readiness, int]
    needs: int
    """Findings in it that need a person."""


@dataclass(frozen=True)
class Standing:
    """The report's figures, worked out once."""

    scores: tuple[TargetScore, ...]
    counts: Mapping[str, int]
    needs: int
    """Findings that need a person."""
    needing_files: int
    readiness: Mapping[str, Readiness]
    folders: tuple[FolderScore, ...]
    estimate: Estimate

    @property
    def done(self) -> bool:
        """Whether every unit compiles for every target, with nothing left for a person."""
        return (
            not self.needs
            and all(score.compiled == score.units for score in self.scores)
            and any(score.units for score in self.scores)
        )

    def title(self) -> str:
        """``9 of 11 units compile for gfx942 and gfx90a, 8 of 11 for gfx1100``."""
        groups: dict[tuple[int, int], list[str]] = defaultdict(list)
        for score in self.scores:
            groups[score.compiled, score.units].append(score.target)
        parts: list[str] = []
        for (compiled, units), targets in groups.items():
            verb = "" if parts else (" unit compiles" if units == 1 else " units compile")
            parts.append(
                f"{compiled} of {units}{verb} for {join_words(targets)}"
                if units
                else f"no translation unit was compiled for {join_words(targets)}"
            )
        text = ", ".join(parts) or "no target was asked for, so nothing was compiled"
        return text[:1].upper() + text[1:]

    def lead(self) -> str:
        """The sentence under the title: what needs a person, and how long it may take."""
        if self.done:
            slow = self.counts[Severity.SLOW]
            return "No finding is open that needs a person." + (
                f" {slow} {'is' if slow == 1 else 'are'} about speed; estimated work: {self.estimate.words()}."
                if slow
                else ""
            )
        failed = sum(score.units - score.compiled for score in self.scores)
        if not self.needs:
            return (
                f"{failed:,} compile {'check' if failed == 1 else 'checks'} failed."
                if failed
                else "No finding needs a person, but nothing was compiled."
            )
        parts = [
            f"{self.counts[severity]} {MEANING[severity][self.counts[severity] != 1]}"
            for severity in NEEDS_A_PERSON
            if self.counts[severity]
        ]
        places = "1 place needs" if self.needs == 1 else f"{self.needs:,} places need"
        files = "1 file" if self.needing_files == 1 else f"{self.needing_files:,} files"
        return f"{places} a person, in {files}: {join_words(parts)}. Estimated work for everything open: {self.estimate.words()}."


def standing(report: MigrationReport) -> Standing:
    """Work out the figures of a report."""
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_path[finding.path].append(finding)
    readiness = {file.path: _readiness(file, by_path.get(file.path, ())) for file in report.files}
    needing = [finding for finding in report.findings if finding.severity in NEEDS_A_PERSON]
    return Standing(
        scores=tuple(_score(target, report.files) for target in report.targets),
        counts=count_by_severity(report.findings),
        needs=len(needing),
        needing_files=len({finding.path for finding in needing}),
        readiness=readiness,
        folders=_folders(readiness, needing),
        estimate=estimate(report.findings),
    )


def join_words(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def _score(target: str, files: Sequence[FileResult]) -> TargetScore:
    states = [file.targets.get(target) for file in files]
    return TargetScore(target, states.count(OK), states.count(OK) + states.count(FAILED))


def _readiness(file: FileResult, findings: Iterable[Finding]) -> Readiness:
    severities = {finding.severity for finding in findings}
    states = set(file.targets.values())
    if FAILED in states or severities & {Severity.COMPILE, Severity.LINK}:
        return Readiness.BLOCKED
    if Severity.SILENT in severities:
        return Readiness.CHECK
    return Readiness.READY if OK in states else Readiness.ALONG


def _folders(readiness: Mapping[str, Readiness], needing: Iterable[Finding]) -> tuple[FolderScore, ...]:
    inside: dict[str, list[Readiness]] = defaultdict(list)
    for path, state in readiness.items():
        inside[folder_of(path)].append(state)
    needs: dict[str, int] = defaultdict(int)
    for finding in needing:
        needs[folder_of(finding.path)] += 1
    return tuple(
        FolderScore(folder, len(states), {state: states.count(state) for state in Readiness}, needs[folder])
        for folder, states in sorted(inside.items())
    )


def folder_of(path: str) -> str:
    """The folder part of a ``/`` path, ``.`` at the root."""
    return path.rpartition("/")[0] or "."
