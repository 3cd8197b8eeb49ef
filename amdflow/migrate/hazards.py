"""What a person should know about the original sources: rules of the catalogue, and CUDA names that HIP does not have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from amdflow.findings import Effort, Finding, Severity
from amdflow.migrate.api_map import ApiMap
from amdflow.migrate.fixes.compat_headers import defined_names
from amdflow.migrate.lexer import mask
from amdflow.migrate.rules.catalogue import Catalogue
from amdflow.migrate.rules.detect import Match
from amdflow.migrate.rules.model import Rule
from amdflow.migrate.syntax import Source
from amdflow.migrate.text import printable

UNSUPPORTED = "AMF1001"
_CUDA_NAME = re.compile(r"cu|CU|_|nv|NV|nccl|NCCL|hip")
_FFTW_NAME = re.compile(r"fftwf?_|FFTW_")
WHOLE_FILE = 0
_WORD = re.compile(r"[^\W\d]\w*")
_SNIPPET = 200
_LINES_KEPT = 50


def findings_of(name: str, matches: Iterable[Match], say: Callable[[int], str]) -> list[Finding]:
    """Matches as findings; a rule that reports once a file counts its lines."""
    found: list[Finding] = []
    counted: dict[str, list[Match]] = defaultdict(list)
    for match in matches:
        if match.rule.per == "file":
            counted[match.rule.id].append(match)
        else:
            found.append(_finding(name, [match], say(match.line)))
    found += [_finding(name, group, say(group[0].line)) for group in counted.values()]
    return sorted(found, key=lambda finding: (finding.line, finding.id))


def _finding(name: str, matches: Sequence[Match], line: str) -> Finding:
    first, rule = matches[0], matches[0].rule
    extra = (
        {"count": len(matches), "lines": [match.line for match in matches][:_LINES_KEPT]} if len(matches) > 1 else {}
    )
    more = f" ({len(matches)} lines in this file)" if len(matches) > 1 else ""
    message = rule.message.replace("{match}", printable(first.text)) + more
    return Finding(
        rule.id,
        rule.severity,
        message,
        name,
        first.line,
        first.column,
        rule.title,
        rule.fix.strip(),
        rule.effort,
        printable(line.strip())[:_SNIPPET],
        extra=extra,
    )


def unsupported_names(
    source: Source, api: ApiMap, rule: Rule, covered: Collection[int], settled: Collection[str] = ()
) -> list[Finding]:
    """CUDA names that the tool's tables know and HIP does not have, one finding for each name of a file.

    ``covered`` holds lines about which a rule says more already, ``settled`` names that amdflow's own map settles.
    """
    names = {name for name in _WORD.findall(source.masked) if name in api.unsupported and name not in settled}
    found = []
    for name in sorted(names):
        lines = sorted(
            {source.line_of(match.start()) for match in re.finditer(rf"\b{re.escape(name)}\b", source.masked)}
        )
        if set(lines) <= set(covered):
            continue
        extra = {"name": name, "count": len(lines), "lines": lines[:_LINES_KEPT]}
        more = f" ({len(lines)} lines in this file)" if len(lines) > 1 else ""
        found.append(
            Finding(
                rule.id,
                rule.severity,
                rule.message.replace("{match}", name) + more,
                source.name,
                lines[0],
                0,
                rule.title,
                rule.fix.strip(),
                rule.effort,
                printable(source.line(lines[0]).strip())[:_SNIPPET],
                extra=extra,
            )
        )
    return found


def without_own_names(findings: Iterable[Finding], texts: Mapping[str, str]) -> list[Finding]:
    """Findings without those about names that only look like CUDA's (``mulhi``, ``saturate``): the tree defines them itself.

    FFTW's names are cuFFT's only where its header is included.
    """
    findings = list(findings)
    asked = {str(found.extra["name"]) for found in findings if found.id == UNSUPPORTED and "name" in found.extra}
    common = {name for name in asked if not _CUDA_NAME.match(name)}
    own = defined_names((mask(text) for text in texts.values() if any(name in text for name in common)), common)
    if not any("cufftw.h" in text for text in texts.values()):
        own |= {name for name in common if _FFTW_NAME.match(name)}
    return [found for found in findings if found.id != UNSUPPORTED or found.extra.get("name") not in own]


def settle(
    findings: Iterable[Finding],
    catalogue: Catalogue,
    fixed: Collection[tuple[str, int, str]],
    compiled: Collection[str],
) -> list[Finding]:
    """Findings with what is known after the fact taken in.

    ``fixed`` holds (path, line, id of the automatic fix): a finding that this fix settles goes; the line WHOLE_FILE stands for
    all of them. ``compiled`` holds files
    all of whose units compile: what would block the compiler there does not, and becomes a note.
    """
    kept = []
    for finding in findings:
        rule = catalogue.rules.get(finding.id)
        if rule is not None and rule.fixed_by and (finding.path, finding.line, rule.fixed_by) in fixed:
            continue
        if rule is not None and rule.kept_by and (finding.path, WHOLE_FILE, rule.kept_by) in fixed:
            continue
        if (
            finding.severity is Severity.COMPILE
            and finding.path in compiled
            and rule is not None
            and rule.detect.kind != "stage"
        ):
            finding = _as_note(finding)
        kept.append(finding)
    return kept


def _as_note(finding: Finding) -> Finding:
    return Finding(
        finding.id,
        Severity.NOTE,
        f"{finding.message}; it does not stop the compiler here (a branch that is not compiled, or this ROCm has it)",
        finding.path,
        finding.line,
        finding.column,
        finding.title,
        finding.fix,
        Effort.MINUTES,
        finding.snippet,
        finding.targets,
        finding.extra | {"compiles": True},
    )
