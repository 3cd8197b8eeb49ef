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


def sarif(findings: Sequence[Finding], *, prefix: str = "") -> dict[str, Any]:
    """One SARIF log with one run.

    Paths stay relative to ``SRCROOT``; ``prefix`` is the scanned folder's path below the repository's root. A
    fingerprint depends on rule, file and code, not on the line, so that a result survives edits above it.
    """
    ids = list(dict.fromkeys(finding.id for finding in findings))
    first = {identity: next(finding for finding in findings if finding.id == identity) for identity in ids}
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
                        "rules": [_rule(first[identity]) for identity in ids],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, ids.index(finding.id), prefix, seen) for finding in findings],
            }
        ],
    }


def _rule(finding: Finding) -> dict[str, Any]:
    title = finding.title or finding.message
    rule: dict[str, Any] = {
        "id": finding.id,
        "shortDescription": {"text": title},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {"severity": finding.severity.value, "effort": finding.effort.value},
    }
    return rule | ({"help": {"text": finding.fix}} if finding.fix else {})


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
