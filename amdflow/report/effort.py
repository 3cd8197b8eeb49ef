"""What the open findings would cost a person, as a range, with the basis said beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from amdflow.findings import Effort, Finding, Severity

HOURS: dict[Effort, tuple[float, float]] = {
    Effort.MINUTES: (0.1, 0.5),
    Effort.HOURS: (1.0, 6.0),
    Effort.REDESIGN: (16.0, 40.0),
}
"""Lowest and highest hours for the first finding of a rule in a file."""
REPEAT_SHARE = 0.2
"""A further finding of the same rule in the same file costs this share of the first: the thinking is done."""
NOT_COUNTED = (
    "Running and comparing on a GPU, tuning for speed, what the rules cannot see (algorithms that rely on 32 lanes in ways no pattern shows), "
    "review, and getting to know the code."
)
"""What a reader must add to the estimate."""
BASIS = (
    "Every rule says what its fix takes a person who knows the code: minutes (6 to 30 min), hours (1 to 6 h) or redesign (16 to 40 h). "
    "The first finding of a rule in a file counts in full, each further one a fifth of that. Notes count nothing. Testing on the GPU is not in it."
)
"""How the figures come about, in words; a test keeps it true to the constants above."""


@dataclass(frozen=True)
class EffortLine:
    """One category's share of the estimate."""

    effort: Effort
    findings: int
    low: float
    """Hours."""
    high: float
    """Hours."""


@dataclass(frozen=True)
class RuleEffort:
    """One rule's share: ``first`` findings count in full, one for each file, ``repeats`` a fifth. Hours."""

    id: str
    title: str
    effort: Effort
    first: int
    repeats: int
    low: float
    high: float

    def words(self) -> str:
        """``2 to 12 hours``."""
        return words(self.low, self.high)


@dataclass(frozen=True)
class Estimate:
    """The whole estimate, in hours; ``rules`` are its parts, the largest first."""

    lines: tuple[EffortLine, ...]
    low: float
    high: float
    rules: tuple[RuleEffort, ...] = ()

    def words(self) -> str:
        """``about 20 to 90 minutes``, ``3 to 14 hours``, ``6 to 21 working days``."""
        return words(self.low, self.high)


def estimate(findings: Iterable[Finding]) -> Estimate:
    """Add up the findings that a person would work on."""
    counted = [
        finding for finding in findings if finding.severity is not Severity.NOTE and finding.effort is not Effort.NONE
    ]
    groups = Counter((finding.effort, finding.id, finding.path) for finding in counted)
    lines = []
    for effort, (low, high) in HOURS.items():
        counts = [count for (of, _, _), count in groups.items() if of is effort]
        weight = sum(1 + (count - 1) * REPEAT_SHARE for count in counts)
        lines.append(EffortLine(effort, sum(counts), weight * low, weight * high))
    return Estimate(
        tuple(lines), sum(line.low for line in lines), sum(line.high for line in lines), _by_rule(counted, groups)
    )


def _by_rule(counted: Iterable[Finding], groups: Mapping[tuple[Effort, str, str], int]) -> tuple[RuleEffort, ...]:
    titles = {finding.id: finding.title or finding.message for finding in reversed(list(counted))}
    files: Counter[tuple[Effort, str]] = Counter()
    findings: Counter[tuple[Effort, str]] = Counter()
    for (effort, rule, _path), count in groups.items():
        files[effort, rule] += 1
        findings[effort, rule] += count
    rows = []
    for (effort, rule), first in files.items():
        repeats = findings[effort, rule] - first
        weight = first + repeats * REPEAT_SHARE
        low, high = HOURS[effort]
        rows.append(RuleEffort(rule, titles[rule], effort, first, repeats, weight * low, weight * high))
    return tuple(sorted(rows, key=lambda row: (-row.high, row.id)))


def words(low: float, high: float) -> str:
    """A range of hours in the unit that fits it."""
    if high == 0:
        return "none"
    if high < 1.5:
        return _range(low * 60, high * 60, "minutes")
    if high <= 40:
        return _range(low, high, "hours")
    return _range(low / 8, high / 8, "working days")


def _range(low: float, high: float, unit: str) -> str:
    first, last = max(1, round(low)), max(1, round(high))
    return f"{first} {unit.removesuffix('s') if first == 1 else unit}" if first == last else f"{first} to {last} {unit}"
