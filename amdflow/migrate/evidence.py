"""Everything a migration leaves besides the tree: findings, figures, reports, what the next stage reads."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from typing import Any

from amdflow.files import write_json
from amdflow.findings import Effort, Finding, Severity, count_by_severity
from amdflow.migrate import compat
from amdflow.migrate.annotate import annotate_all
from amdflow.migrate.compile_check import OK
from amdflow.migrate.dependencies import find_dependencies
from amdflow.migrate.figures import Figures
from amdflow.migrate.gather import all_findings
from amdflow.migrate.records import produced
from amdflow.migrate.scan import Kind
from amdflow.migrate.text import encode, printable
from amdflow.migrate.translate import Method
from amdflow.pipeline.stage import Outcome, Output
from amdflow.report import findings_file
from amdflow.report.migrated import FileResult, LazyTexts, MigrationReport
from amdflow.report.migration import write_html, write_markdown
from amdflow.report.places import repository_prefix
from amdflow.report.sarif import sarif

NOT_A_UNIT = "not a unit"
_BLOCKING_SHOWN, _SILENT_SHOWN = 5, 4


def report(figures: Figures) -> Outcome:
    """Write the evidence into the run's scratch folder and sum up."""
    migration = figures.migration
    run, job = migration.run_context, migration.job
    findings = all_findings(figures)
    files = _file_results(figures)
    supplement = job.catalogue.supplement
    dependencies = find_dependencies(
        migration.texts,
        migration.scripts.originals,
        migration.api.unsupported,
        {*supplement.names, *supplement.stand_ins},
    )
    metrics = _metrics(figures, files, findings) | {
        "dependencies": [{key: value for key, value in asdict(item).items() if key != "where"} for item in dependencies]
    }
    sources = LazyTexts(
        figures.finished, lambda name: (printable(migration.original(name)), printable(figures.finished[name].text))
    )
    document = MigrationReport(
        job.config.source,
        job.targets,
        migration.tools,
        files,
        findings,
        sources,
        round(time.monotonic() - migration.started, 1),
        metrics,
        dependencies,
    )
    write_html(document, run.scratch / "report.html")
    write_markdown(document, run.scratch / "report.md")
    root = repository_prefix(job.tree.root, run.root)
    write_json(run.scratch / findings_file.NAME, findings_file.as_json(findings, root))
    write_json(run.scratch / "report.sarif", sarif(findings, prefix=root))
    if job.config.annotate:
        _annotate(figures, findings)
    outputs = [
        Output(
            run.payload / entry.name,
            "source" if entry.is_code else "build" if entry.kind is Kind.BUILD else "file",
            produced_by=str(_method(figures, entry.name)),
        )
        for entry in job.tree.entries
        if entry.name not in migration.by_hand.removed
    ]
    outputs += [
        Output(run.payload / compat.FOLDER / name, "source", produced_by="amdflow")
        for name in migration.compat_headers(figures.finished)
    ]
    outputs += [Output(run.payload / name, "source", produced_by="by hand") for name in migration.by_hand.added]
    reports = ("report.html", "report.md", findings_file.NAME, "report.sarif", produced.NAME)
    outputs += [Output(run.scratch / name, "report") for name in reports]
    unproven = ["no migrated code was run: there is no GPU in a compile check"]
    if not job.config.compile:
        unproven.append("nothing was compiled (compile check switched off)")
    return Outcome(
        outputs,
        findings,
        metrics,
        {"targets": list(job.targets), "tree": run.payload_path, "regions": figures.inspection.regions},
        unproven,
        any(job.config.is_over_limit(finding.severity) for finding in findings),
    )


def _annotate(figures: Figures, findings: list[Finding]) -> None:
    """Markers in the written sources; what was compiled and what records start from has none."""
    done = figures.finished
    texts = {
        name: (done[name].text, done[name].lines)
        for name in figures.migration.texts
        if name in done and name not in figures.migration.by_hand.removed
    }
    for name, text in annotate_all(texts, findings).items():
        (figures.migration.run_context.payload / name).write_bytes(encode(text))


def _method(figures: Figures, name: str) -> Method:
    done = figures.translations.get(name)
    if done is None and name in figures.finished:
        return Method.SCRIPT
    return done.method if done else Method.CARRIED


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
        notes = [note for note in (translation.reason, *translation.notes) if note] if translation else []
        notes += sorted({fix.message for fix in done.applied}) if done else []
        results.append(
            FileResult(
                entry.name, method.value, _STATES[method], states, entry.name, [printable(note) for note in notes]
            )
        )
    return results


_STATES = {
    Method.HIPIFY: "translated",
    Method.CONTEXT: "translated",
    Method.HIPIFY_PLAIN: "translated",
    Method.TEXT: "translated as text",
    Method.UNCHANGED: "unchanged",
    Method.CARRIED: "carried over",
    Method.SCRIPT: "converted",
}


def _metrics(figures: Figures, files: list[FileResult], findings: list[Finding]) -> dict[str, Any]:
    job = figures.migration.job
    states = [result.states for result in figures.results.values()]
    return {
        "files": len(files),
        "files_by_method": dict(sorted(Counter(file.method for file in files).items(), key=lambda item: -item[1])),
        "units": len(figures.migration.units),
        "units_compiled": {target: sum(state.get(target) == OK for state in states) for target in job.targets}
        if job.config.compile
        else {},
        "findings_by_rule": dict(Counter(finding.id for finding in findings)),
        "findings": count_by_severity(findings),
        "top_causes": look_first_at(findings),
        "effort": dict(
            Counter(
                finding.effort.value
                for finding in findings
                if finding.effort is not Effort.NONE and finding.severity is not Severity.NOTE
            )
        ),
        "processes": figures.processes,
        "regions": len(figures.inspection.regions),
        "records": dict(Counter(effect.state.value for effect in figures.migration.by_hand.effects)),
        "seconds": round(time.monotonic() - figures.migration.started, 2),
    }


def look_first_at(findings: list[Finding]) -> list[dict[str, Any]]:
    """What blocks the compiler, most far-reaching first, and what is silently wrong, one entry for each rule."""
    blocking = [finding for finding in findings if finding.severity is Severity.COMPILE]
    blocking.sort(key=lambda finding: (-len(finding.extra.get("units", ())), -finding.extra.get("count", 1)))
    silent: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.severity is Severity.SILENT:
            silent.setdefault(finding.id, []).append(finding)
    groups = sorted(silent.values(), key=lambda group: -len(group))[:_SILENT_SHOWN]
    shown = [(finding, finding.message) for finding in blocking[:_BLOCKING_SHOWN]]
    shown += [
        (group[0], f"{group[0].title} ({len(group)} places)" if len(group) > 1 else group[0].message)
        for group in groups
    ]
    return [
        {
            "id": finding.id,
            "severity": finding.severity.value,
            "message": message[:300],
            "path": finding.path,
            "line": finding.line,
        }
        for finding, message in shown
    ]
