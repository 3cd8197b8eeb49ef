"""A finding: one thing that a person should know about one place.

Every stage reports in this shape, so that terminal, HTML, Markdown, SARIF and JSON come from one list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """What happens if nobody acts, worst first."""

    SILENT = "silent"
    """Compiles and computes the wrong thing."""
    COMPILE = "compile"
    """Blocks the compiler, or blocks the stage."""
    LINK = "link"
    """Compiles, then fails to link or load."""
    SLOW = "slow"
    """Right, but slower than it should be."""
    NOTE = "note"
    """Good to know; nothing breaks."""


class Effort(StrEnum):
    """How long the fix takes a person who knows the code."""

    NONE = "none"
    MINUTES = "minutes"
    HOURS = "hours"
    REDESIGN = "redesign"


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic.

    ``id`` is stable (``AMF1042``); ``path`` is relative to the scanned root with ``/`` separators; ``line`` and
    ``column`` count from 1 in the *original* file, 0 means the whole file. ``extra`` holds JSON values only.
    """

    id: str
    severity: Severity
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    title: str = ""
    fix: str = ""
    effort: Effort = Effort.MINUTES
    snippet: str = ""
    targets: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, empty fields left out."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if value not in ("", (), {}, 0)
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Finding:
        """The reverse of :meth:`to_json`; unknown keys are ignored."""
        known = {key: value for key, value in data.items() if key in cls.__dataclass_fields__}
        known["severity"] = Severity(known["severity"])
        known["effort"] = Effort(known.get("effort", Effort.MINUTES))
        known["targets"] = tuple(known.get("targets", ()))
        return cls(**known)


def count_by_severity(findings: Iterable[Finding]) -> dict[str, int]:
    """Counts for every severity, worst first, zeros included."""
    counts = Counter(finding.severity for finding in findings)
    return {severity.value: counts[severity] for severity in Severity}
