"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from amdflow import __version__
from amdflow.findings import Finding, Severity

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {
    Severity.SILENT: "error",
    Severity.COMPILE: "error",
    Severity.LINK: "error",
    Severity.SLOW: "warning",
    Severity.NOTE: "note",
}


_BASE = {"SRCROOT": {"description": {"text": "The top of the repository."}}}
_DOCS = "docs/reference/diagnostics.md"


def sarif(findings: Sequence[Finding], *, prefix: str = "") -> dict[str, Any]:
    """One SARIF log with one run.

    Paths stay relative to ``SRCROOT``; ``prefix`` is the scanned folder's path below the repository's root. A
    fingerprint depends on rule, file and code, not on the line, so that a result survives edits above it. Columns count
    characters.
    """
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.id, finding)
    index = {identity: number for number, identity in enumerate(first)}
    seen: Counter[str] = Counter()
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "amdflow",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(finding) for finding in first.values()],
                    }
                },
                "automationDetails": {"id": f"amdflow/migrate/{prefix}"},
                "originalUriBaseIds": _BASE,
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, index[finding.id], prefix, seen) for finding in findings],
            }
        ],
    }


def _rule(finding: Finding) -> dict[str, Any]:
    more = f"amdflow explain {finding.id}"
    fix = f"{finding.fix} " if finding.fix else ""
    return {
        "id": finding.id,
        "shortDescription": {"text": finding.title or finding.message},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "help": {
            "text": f"{fix}More: {more}",
            "markdown": f"{fix}\n\nMore: `{more}`, or {finding.id} in amdflow's {_DOCS}".strip(),
        },
        "properties": {
            "severity": finding.severity.value,
            "effort": finding.effort.value,
            "tags": ["migration", finding.severity.value],
        },
    }


def _result(finding: Finding, rule: int, prefix: str, seen: Counter[str]) -> dict[str, Any]:
    mark = hashlib.sha256(
        "\n".join((finding.id, finding.path, " ".join(finding.snippet.split()) or finding.message)).encode(
            errors="replace"
        )
    ).hexdigest()[:32]
    seen[mark] += 1
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message + (f" Fix: {finding.fix}" if finding.fix else "")},
        "partialFingerprints": {"amdflow/v1": f"{mark}:{seen[mark]}"},
    }
    if finding.path:
        uri = quote("/".join(filter(None, (prefix.strip("/"), finding.path))), errors="surrogateescape")
        place: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "SRCROOT"}}
        if finding.line:
            place["region"] = {"startLine": finding.line} | ({"startColumn": finding.column} if finding.column else {})
            if finding.snippet:
                place["region"]["snippet"] = {"text": finding.snippet}
        result["locations"] = [{"physicalLocation": place}]
    return result
