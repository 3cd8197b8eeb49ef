"""All findings of a migration: rules, compiler, conversion, fixes, each place once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from amdflow.findings import Finding, Severity
from amdflow.migrate.compile_check import FAILED, OK
from amdflow.migrate.diagnostics import COMPILE_ERROR, missing_in_translation, read_problems, root_causes
from amdflow.migrate.figures import Figures
from amdflow.migrate.hazards import WHOLE_FILE, settle
from amdflow.migrate.lexer import mask
from amdflow.migrate.records.apply import FOLDER as RECORDS
from amdflow.migrate.records.apply import ByHand, State
from amdflow.migrate.records.record import ENDING
from amdflow.migrate.rules.scope import narrow
from amdflow.migrate.text import printable
from amdflow.migrate.translate import Method, Translation

AS_TEXT, NOT_READ, LEFT_OUT, RELOCATABLE, TOOL_SAYS = "AMF1003", "AMF1005", "AMF1006", "AMF1007", "AMF1008"
_UNSUPPORTED_NAME = re.compile(r"'(\w+)' is unsupported in")
_DEPRECATED_IN_CUDA = re.compile(r"is deprecated in CUDA")
_RULE_OF = {
    State.APPLIED: "AMF1061",
    State.CONFLICT: "AMF1062",
    State.UNNEEDED: "AMF1063",
    State.ORPHAN: "AMF1064",
}
KEPT, STRAY_MARKER = "AMF1065", "AMF1066"


def all_findings(figures: Figures) -> list[Finding]:
    """Worst first, then by place."""
    job = figures.migration.job
    catalogue = job.catalogue
    fixed = {(name, fix.line, fix.rule) for name, done in figures.finished.items() for fix in done.applied}
    fixed |= {(name, WHOLE_FILE, rule) for name, done in figures.finished.items() for rule in done.kept}

    def matter(findings: Sequence[Finding]) -> list[Finding]:
        return narrow(findings, catalogue, job.targets, job.compiler.version)

    found = settle(matter(figures.inspection.findings), catalogue, fixed, _compiled_files(figures))
    found += _record_findings(figures)
    found = join(found, _compile_findings(figures)) + matter(_conversion_findings(figures) + _fix_findings(figures))
    found = [_if_touched(finding, figures.migration.by_hand) for finding in found]
    order = {severity: rank for rank, severity in enumerate(Severity)}
    return sorted(
        found, key=lambda finding: (order[finding.severity], finding.path, finding.line, finding.id, finding.message)
    )


def _compiled_files(figures: Figures) -> set[str]:
    """Files that units include (or are) and all of whose units compile for every target."""
    good: set[str] = set()
    bad: set[str] = set()
    for name, result in figures.results.items():
        (bad if FAILED in result.states.values() else good).update(figures.migration.graph.closure(name))
    return good - bad


def _compile_findings(figures: Figures) -> list[Finding]:
    payload = figures.migration.run_context.payload
    problems = [
        problem
        for result in figures.results.values()
        for target, output in result.outputs.items()
        for problem in read_problems(output, result.name, target, payload)
    ]
    own = set(figures.migration.texts)

    def original(path: str, line: int) -> int:
        done = figures.finished.get(path)
        return done.lines.original(line) if done else line

    found = root_causes(problems, original, own.__contains__)
    for result in figures.results.values():
        if result.relocatable and OK in result.states.values():
            found.append(_from_rule(figures, RELOCATABLE, result.name, 0, ""))
    return found


def join(found: Sequence[Finding], compiler: Sequence[Finding]) -> list[Finding]:
    """Rule findings and compiler errors together.

    An error all of whose places a blocking rule explains already is not said twice: the rule's findings take its targets.
    """
    explained = {
        (finding.path, line) for finding in found if finding.severity is Severity.COMPILE for line in _lines(finding)
    }
    targets: dict[tuple[str, int], set[str]] = defaultdict(set)
    kept = []
    for error in compiler:
        places = {
            (path, int(line))
            for path, _colon, line in (place.rpartition(":") for place in error.extra.get("places", ()))
        }
        whole = error.extra.get("count", 0) == len(places)
        if error.id == COMPILE_ERROR and whole and places and places <= explained:
            for place in places:
                targets[place].update(error.targets)
        else:
            kept.append(error)
    joined = [
        replace(
            finding,
            targets=tuple(sorted({target for line in _lines(finding) for target in targets[finding.path, line]}))
            or finding.targets,
        )
        if finding.severity is Severity.COMPILE
        else finding
        for finding in found
    ]
    return joined + kept


def _lines(finding: Finding) -> tuple[int, ...]:
    return (finding.line, *finding.extra.get("lines", ()))


def _if_touched(finding: Finding, by_hand: ByHand) -> Finding:
    """A finding at lines that a person replaced is a note: the rule speaks of code that is no longer there."""
    touched = by_hand.touched.get(finding.path, set())
    lines = set(_lines(finding))
    if (
        "compiler" in finding.extra
        or finding.severity is Severity.NOTE
        or not lines <= touched
        or len(lines) < finding.extra.get("count", 1)
    ):
        return finding
    message = f"{finding.message}; a person replaced this code in the migrated file (see its record)"
    return replace(finding, severity=Severity.NOTE, message=message, extra=finding.extra | {"by_hand": True})


def _record_findings(figures: Figures) -> list[Finding]:
    """What became of each record; a conflict is a finding at each of its places."""
    found = []
    by_hand = figures.migration.by_hand
    for effect in by_hand.effects:
        path = effect.record.path
        match = f"{effect.record.says()} ({RECORDS}/{path}{ENDING})"
        lines = [by_hand.origins[path].original(line) for line in effect.conflicts if path in by_hand.origins]
        if effect.state is State.APPLIED:
            lines = sorted(by_hand.touched.get(path, ()))[:1]
        if effect.state is State.CONFLICT and not effect.conflicts:
            match = f"a person removed this file, and what the tool makes of it changed since, so it was kept: {match}"
        elif effect.state is State.CONFLICT:
            match = f"both are in the file, between conflict markers: {match}"
        found += [_from_rule(figures, _RULE_OF[effect.state], path, line, match) for line in lines or [0]]
    return found


def _conversion_findings(figures: Figures) -> list[Finding]:
    migration = figures.migration
    found = [
        _from_rule(figures, AS_TEXT, name, 0, done.reason)
        for name, done in figures.translations.items()
        if done.method is Method.TEXT
    ]
    found += [_from_rule(figures, NOT_READ, name, 0, why) for name, why in migration.skipped.items()]
    found += [_from_rule(figures, LEFT_OUT, name, 0, why) for name, why in migration.job.tree.left_out.items()]
    for name, kept in figures.inspection.kept.items():
        found += [
            _from_rule(figures, KEPT, name, region.first_line, f"to line {region.last_line}") for region in kept.regions
        ]
        found += [_from_rule(figures, STRAY_MARKER, name, stray.line, stray.message) for stray in kept.strays]
    for name, done in figures.translations.items():
        found += _tool_messages(figures, name, done)
    if not figures.results:
        reasons = {name: done.reason for name, done in figures.translations.items() if done.method is Method.TEXT}
        found += missing_in_translation(reasons, {*migration.api.headers, *migration.job.catalogue.supplement.headers})
    return found


def _tool_messages(figures: Figures, name: str, done: Translation) -> list[Finding]:
    """What the tool warned about on lines that no finding speaks of: one finding for each message of a file."""
    if not done.messages:
        return []
    said = {
        line
        for finding in figures.inspection.findings
        if finding.path == name
        for line in (finding.line, *finding.extra.get("lines", ()))
    }
    kept = figures.inspection.kept.get(name)
    lines: dict[str, list[int]] = defaultdict(list)
    written = figures.finished[name].text if name in figures.finished else done.text
    for message in done.messages:
        if message.line not in said and not (kept and kept.covers(message.line)) and still_holds(message.text, written):
            lines[message.text].append(message.line)
    return [_from_rule(figures, TOOL_SAYS, name, where[0], text + _places(len(where))) for text, where in lines.items()]


def still_holds(message: str, written: str) -> bool:
    """Whether a warning of the tool says something about the text that was ``written`` in the end.

    A name that it calls unsupported may have been translated since, and what CUDA deprecates does not matter to HIP.
    """
    if _DEPRECATED_IN_CUDA.search(message):
        return False
    unsupported = _UNSUPPORTED_NAME.match(message)
    return unsupported is None or re.search(rf"\b{unsupported.group(1)}\b", mask(written)) is not None


def _places(count: int) -> str:
    return f" ({count} places)" if count > 1 else ""


def _fix_findings(figures: Figures) -> list[Finding]:
    """Fixes that a reader should see, one finding for each kind in a file; a fix that leaves a risk is one for each place."""
    found = []
    for name, done in figures.finished.items():
        by_rule: dict[str, list[Any]] = {}
        for fix in done.applied:
            by_rule.setdefault(fix.rule, []).append(fix)
        for rule_id, fixes in by_rule.items():
            rule = figures.migration.job.catalogue.rules.get(rule_id)
            if rule is not None and rule.per == "line":
                found += [_from_rule(figures, rule_id, name, fix.line, fix.message) for fix in fixes]
            elif rule is not None:
                found.append(_from_rule(figures, rule_id, name, fixes[0].line, fixes[0].message + _places(len(fixes))))
    return found


def _from_rule(figures: Figures, rule_id: str, path: str, line: int, match: str, column: int = 0) -> Finding:
    rule = figures.migration.job.catalogue.get(rule_id)
    text = figures.migration.original(path)
    snippet = printable(text.split("\n")[line - 1].strip())[:200] if 0 < line <= text.count("\n") + 1 and text else ""
    return Finding(
        rule.id,
        rule.severity,
        rule.message.replace("{match}", printable(match)).strip(),
        path,
        line,
        column,
        rule.title,
        rule.fix.strip(),
        rule.effort,
        snippet,
    )
