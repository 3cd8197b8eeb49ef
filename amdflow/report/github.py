"""Findings as GitHub Actions annotations: one workflow command a line, which the runner turns into a note on the changed file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amdflow.findings import Finding, Severity
from amdflow.report import findings_file

_COMMANDS = {
    Severity.SILENT: "error",
    Severity.COMPILE: "error",
    Severity.LINK: "error",
    Severity.SLOW: "warning",
    Severity.NOTE: "notice",
}


def workflow_commands(findings: Sequence[Finding], *, prefix: str = "") -> list[str]:
    """``::error file=src/a.cu,line=3,title=AMF1001 Inline PTX::message``, worst first (GitHub shows only some of each kind).

    ``prefix`` is the scanned folder's path below the repository's root.
    """
    order = list(Severity)
    return [_line(finding, prefix) for finding in sorted(findings, key=lambda item: order.index(item.severity))]


def annotations_of(file: Path) -> list[str]:
    """Workflow commands for a ``findings.json``. Raises UsageError when there is none."""
    findings, root = findings_file.read(file)
    return workflow_commands(findings, prefix=root)


def _line(finding: Finding, prefix: str) -> str:
    properties = {
        "file": "/".join(filter(None, (prefix.strip("/"), finding.path))) if finding.path else "",
        "line": finding.line,
        "col": finding.column if finding.line else 0,
    }
    named = {**properties, "title": f"{finding.id} {finding.title}".strip()}
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in named.items() if value)
    text = finding.message + (f"\nFix: {finding.fix}" if finding.fix else "")
    return f"::{_COMMANDS[finding.severity]} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
