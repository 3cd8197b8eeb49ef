"""Everything a migration leaves besides the tree: findings, figures, reports, what the next stage reads."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amdflow.files import write_json
from amdflow.findings import Effort, Finding, Severity, count_by_severity
from amdflow.migrate import compat
from amdflow.migrate.compile_check import FAILED, OK, UnitResult
from amdflow.migrate.diagnostics import read_problems, root_causes
from amdflow.migrate.finish import Finished
from amdflow.migrate.hazards import settle
from amdflow.migrate.inspect_sources import Inspection
from amdflow.migrate.scan import Kind
from amdflow.migrate.text import printable
from amdflow.migrate.translate import Method, Translation
from amdflow.pipeline.stage import Outcome, Output
from amdflow.report.migrated import FileResult, MigrationReport
from amdflow.report.migration import write_html, write_markdown

if TYPE_CHECKING:
    from amdflow.migrate.migration import Migration

AS_TEXT, NOT_READ, LEFT_OUT, RELOCATABLE, TOOL_SAYS = "AMF1003", "AMF1005", "AMF1006", "AMF1007", "AMF1008"
NOT_A_UNIT = "not a unit"
_CAUSES_SHOWN = 8


@dataclass
class Figures:
    """What the steps of a migration came to."""

    migration: Migration
    translations: Mapping[str, Translation]
    finished: Mapping[str, Finished]
    results: Mapping[str, UnitResult]
    inspection: Inspection
    processes: dict[str, int] = field(default_factory=dict)


def report(figures: Figures) -> Outcome:
    """Write the evidence into the run's scratch folder and sum up."""
    migration = figures.migration
    run, job = migration.run_context, migration.job
    findings = _all_findings(figures)
    files = _file_results(figures)
    metrics = _metrics(figures, files, findings)
    sources = {
        name: (printable(migration.texts[name]), printable(done.text)) for name, done in figures.finished.items()
    }
    document = MigrationReport(
        job.config.source,
        job.targets,
        migration.tools,
        files,
        findings,
        sources,
        round(time.monotonic() - migration.started, 1),
        metrics,
    )
    write_html(document, run.scratch / "report.html")
    write_markdown(document, run.scratch / "report.md")
    write_json(
        run.scratch / "findings.json",
        {"schema": "amdflow/findings", "version": "1.0", "findings": [finding.to_json() for finding in findings]},
    )
    outputs = [
        Output(
            run.payload / entry.name,
            "source" if entry.is_code else "build" if entry.kind is Kind.BUILD else "file",
            produced_by=str(_method(figures, entry.name)),
        )
        for entry in job.tree.entries
    ]
    outputs += [
        Output(run.payload / compat.FOLDER / name, "source", produced_by="amdflow")
        for name in migration.compat_headers(figures.finished)
    ]
    outputs += [Output(run.scratch / name, "report") for name in ("report.html", "report.md", "findings.json")]
    unproven = ["no migrated code was run: there is no GPU in a compile check"]
    if not job.config.compile:
        unproven.append("nothing was compiled (compile check switched off)")
    return Outcome(
        outputs,
        findings,
        metrics,
        {"targets": list(job.targets), "tree": run.payload.name, "regions": figures.inspection.regions},
        unproven,
        any(job.config.is_over_limit(finding.severity) for finding in findings),
    )


def _method(figures: Figures, name: str) -> Method:
    done = figures.translations.get(name)
    return done.method if done else Method.CARRIED


def _all_findings(figures: Figures) -> list[Finding]:
    catalogue = figures.migration.job.catalogue
    fixed = {(name, fix.line, fix.rule) for name, done in figures.finished.items() for fix in done.applied}
    found = settle(figures.inspection.findings, catalogue, fixed, _compiled_files(figures))
    found += _compile_findings(figures) + _conversion_findings(figures) + _fix_findings(figures)
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
    own = _own_names(figures)

    def original(path: str, line: int) -> int:
        done = figures.finished.get(path)
        return done.lines.original(line) if done else line

    found = root_causes(problems, original, own.__contains__)
    for result in figures.results.values():
        if result.relocatable and OK in result.states.values():
            found.append(_from_rule(figures, RELOCATABLE, result.name, 0, ""))
    return found


def _own_names(figures: Figures) -> set[str]:
    """Names of the tree's own files: they do not tell causes apart."""
    return set(figures.migration.texts)


def _conversion_findings(figures: Figures) -> list[Finding]:
    migration = figures.migration
    found = [
        _from_rule(figures, AS_TEXT, name, 0, done.reason)
        for name, done in figures.translations.items()
        if done.method is Method.TEXT
    ]
    found += [_from_rule(figures, NOT_READ, name, 0, why) for name, why in migration.skipped.items()]
    found += [_from_rule(figures, LEFT_OUT, name, 0, why) for name, why in migration.job.tree.left_out.items()]
    for name, done in figures.translations.items():
        found += _tool_messages(figures, name, done)
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
    lines: dict[str, list[int]] = defaultdict(list)
    for message in done.messages:
        if message.line not in said:
            lines[message.text].append(message.line)
    return [_from_rule(figures, TOOL_SAYS, name, where[0], text + _places(len(where))) for text, where in lines.items()]


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
    text = figures.migration.texts.get(path, "")
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


def _file_results(figures: Figures) -> list[FileResult]:
    job = figures.migration.job
    results = []
    for entry in job.tree.entries:
        method = _method(figures, entry.name)
        unit = figures.results.get(entry.name)
        states = (
            dict(unit.states)
            if unit
            else dict.fromkeys(job.targets, NOT_A_UNIT)
            if entry.is_code and job.config.compile
            else {}
        )
        done, translation = figures.finished.get(entry.name), figures.translations.get(entry.name)
        notes = [translation.reason] if translation and translation.reason else []
        notes += sorted({fix.message for fix in done.applied}) if done else []
        results.append(
            FileResult(
                entry.name, method.value, _STATES[method], states, entry.name, [printable(note) for note in notes]
            )
        )
    return results


_STATES = {
    Method.HIPIFY: "translated",
    Method.HIPIFY_PLAIN: "translated",
    Method.TEXT: "translated as text",
    Method.UNCHANGED: "unchanged",
    Method.CARRIED: "carried over",
}


def _metrics(figures: Figures, files: list[FileResult], findings: list[Finding]) -> dict[str, Any]:
    job = figures.migration.job
    states = [result.states for result in figures.results.values()]
    causes = [finding for finding in findings if finding.severity in (Severity.COMPILE, Severity.LINK, Severity.SILENT)]
    causes.sort(
        key=lambda finding: (
            -(len(finding.extra.get("units", ())) * 1000 + finding.extra.get("count", 1))
            if finding.severity is Severity.COMPILE
            else 0
        )
    )
    return {
        "files": len(files),
        "files_by_method": dict(sorted(Counter(file.method for file in files).items(), key=lambda item: -item[1])),
        "units": len(figures.migration.units),
        "units_compiled": {target: sum(state.get(target) == OK for state in states) for target in job.targets}
        if job.config.compile
        else {},
        "findings_by_rule": dict(Counter(finding.id for finding in findings)),
        "findings": count_by_severity(findings),
        "top_causes": [
            {
                "id": finding.id,
                "severity": finding.severity.value,
                "message": finding.message[:300],
                "path": finding.path,
                "line": finding.line,
            }
            for finding in causes[:_CAUSES_SHOWN]
        ],
        "effort": dict(
            Counter(
                finding.effort.value
                for finding in findings
                if finding.effort is not Effort.NONE and finding.severity is not Severity.NOTE
            )
        ),
        "processes": figures.processes,
        "regions": len(figures.inspection.regions),
        "seconds": round(time.monotonic() - figures.migration.started, 2),
    }
