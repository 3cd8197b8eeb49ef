"""Where every stage stands, read from its manifests: also when one is missing, torn, failed or from a newer amdflow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from amdflow.config import STAGES
from amdflow.errors import UsageError
from amdflow.findings import Finding, Severity
from amdflow.pipeline.freshness import outputs_digest
from amdflow.pipeline.manifest import ATTEMPT_NAME, MANIFEST_NAME, Manifest, Status, read_manifest

REPORTS = ("report.html", "report.md", "report.sarif")
NOT_RUN, UNREADABLE = "not run", "unreadable"
_WORST_FIRST = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True)
class StageView:
    """One stage as its manifests tell it."""

    name: str
    folder: Path
    state: str
    """The last attempt's status in words, ``not run`` or ``unreadable``."""
    manifest: Manifest | None = None
    """The result that is there: the last good one, or the last attempt's when none was good."""
    attempt: Manifest | None = None
    """A later attempt that did not end well; the good result before it is kept."""
    problem: str = ""
    """Why the manifest cannot be read."""
    outdated: bool = False
    """Whether the stage before has handed over something else since."""
    findings: tuple[Finding, ...] = ()
    """Worst first, where the stage left a findings.json."""

    @property
    def last(self) -> Manifest | None:
        """The manifest of the last attempt, good or not."""
        return self.attempt or self.manifest

    @property
    def good(self) -> bool:
        """Whether the last attempt ended well."""
        return self.last is not None and self.last.status.good


def report_names(folder: Path) -> list[str]:
    """The reports that a stage left in its folder, the one for people first."""
    return [name for name in REPORTS if (folder / name).is_file()]


def read_stages(workdir: Path) -> list[StageView]:
    """Every stage of the chain, in order."""
    views: list[StageView] = []
    for name in STAGES:
        before = next((view.manifest for view in reversed(views) if view.manifest), None)
        views.append(_read(name, workdir / name, before))
    return views


def _read(name: str, folder: Path, before: Manifest | None) -> StageView:
    path = folder / MANIFEST_NAME
    attempt = _attempt(folder)
    if not path.exists():
        return StageView(name, folder, _words(attempt.status) if attempt else NOT_RUN, manifest=attempt)
    try:
        manifest = read_manifest(path)
    except (UsageError, OSError) as error:
        return StageView(name, folder, UNREADABLE, problem=str(error))
    upstream = manifest.upstream
    outdated = (
        upstream is not None
        and before is not None
        and before.stage == upstream.stage
        and before.status.good
        and not upstream.taken_digest
        and outputs_digest(before) != upstream.outputs_digest
    )
    return StageView(
        name,
        folder,
        _words((attempt or manifest).status),
        manifest,
        attempt,
        outdated=outdated,
        findings=_findings(folder),
    )


def _attempt(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder / ATTEMPT_NAME)
    except (UsageError, OSError):
        return None


def _words(status: Status) -> str:
    return status.value.replace("_", " ")


def _findings(folder: Path) -> tuple[Finding, ...]:
    """What ``findings.json`` holds; nothing when there is none or it is damaged (the manifest's counts are shown all the same)."""
    try:
        data = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
        found = [Finding.from_json(item) for item in data["findings"]]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return tuple(sorted(found, key=lambda item: (_WORST_FIRST[item.severity], item.path, item.line, item.id)))
