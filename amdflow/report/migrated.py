"""What a migration hands to its reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amdflow.findings import Finding


@dataclass(frozen=True)
class FileResult:
    """How one source file fared.

    ``path`` is relative to the scanned root, ``output`` to the migrated tree; ``method`` says how it was translated;
    ``state`` is the translator's own word; ``targets`` maps gfx target to ``ok``, ``failed`` or ``not a unit``.
    """

    path: str
    method: str
    state: str
    targets: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class MigrationReport:
    """Everything the migration report shows. ``sources`` maps path to (original text, migrated text)."""

    source: str
    targets: Sequence[str]
    tools: Mapping[str, str]
    files: Sequence[FileResult]
    findings: Sequence[Finding]
    sources: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    seconds: float = 0.0
    metrics: Mapping[str, Any] = field(default_factory=dict)
