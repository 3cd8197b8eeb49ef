"""The migration report as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from amdflow.findings import Finding, Severity
from amdflow.report.effort import BASIS, NOT_COUNTED
from amdflow.report.migrated import MigrationReport
from amdflow.report.readiness import LIBRARY_STATES, MEANING, NOT_RUN, Readiness, Standing

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_BACKTICKS = re.compile(r"`+")


def migration_markdown(report: MigrationReport, standing: Standing) -> str:
    """The whole report; findings are listed file by file, every one of them."""
    parts = [
        f"# Migration of {code(report.source)}",
        f"**{escape(standing.title())}.** {escape(standing.lead())}",
        NOT_RUN,
        "## Targets",
        table(
            ["Target", "Units that compile", "Units"],
            [[score.target, f"{score.compiled:,}", f"{score.units:,}"] for score in standing.scores],
            right=(1, 2),
        ),
        "## Effort",
        table(
            ["A fix takes", "Findings", "At least, hours", "At most, hours"],
            [
                [line.effort, f"{line.findings:,}", f"{line.low:,.1f}", f"{line.high:,.1f}"]
                for line in standing.estimate.lines
            ],
            right=(1, 2, 3),
        ),
        BASIS,
        f"Not counted: {NOT_COUNTED}",
        *_effort_by_rule(standing),
        *_libraries(report),
        "## Readiness",
        _folders(standing),
        "## Findings",
        *_findings(report.findings),
        "## How each file was translated",
        _files(report, standing),
        "## Tools",
        table(["Tool", "Version"], [[escape(tool), escape(version)] for tool, version in sorted(report.tools.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A code span that holds backticks, too; pipes are kept from splitting a table cell."""
    flat = " ".join(text.split("\n")).replace("\r", " ").replace("|", "\\|")
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(flat)), default=0) + 1)
    pad = " " if not flat or flat[0] in " `" or flat[-1] in " `" else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table; cells are Markdown already."""
    rule = ["---:" if index in right else "---" for index in range(len(columns))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, rule, *rows])


def _effort_by_rule(standing: Standing) -> Iterator[str]:
    rows = [
        [escape(row.id), escape(row.title), row.effort, f"{row.first:,}", f"{row.repeats:,}", row.words()]
        for row in standing.estimate.rules
    ]
    if rows:
        yield table(["Rule", "What", "A fix takes", "First in a file", "Repeats", "Estimate"], rows, right=(3, 4, 5))


def _libraries(report: MigrationReport) -> Iterator[str]:
    if not report.dependencies:
        return
    yield "## Libraries"
    yield table(
        ["Library", "On ROCm", "Status", "Files", "Uses", "Names that HIP lacks"],
        [
            [
                escape(item.name),
                escape(f"{item.stands}. {item.note}" if item.note else item.stands),
                LIBRARY_STATES[item.status][0],
                f"{item.files:,}",
                f"{item.uses:,}",
                ", ".join(map(code, item.gaps)) or "none that is used",
            ]
            for item in report.dependencies
        ],
        right=(3, 4),
    )


def _folders(standing: Standing) -> str:
    rows = [
        [
            code(folder.folder),
            str(folder.files),
            *(str(folder.by_readiness[state]) for state in Readiness),
            str(folder.needs),
        ]
        for folder in standing.folders
    ]
    return table(["Folder", "Files", *Readiness, "Needs a person"], rows, right=range(1, 7))


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        yield "None."
        return
    rules = Counter((finding.id, finding.severity, finding.title or finding.message) for finding in findings)
    order = list(Severity)
    rows = [
        [severity, escape(identity), escape(title), f"{count:,}"]
        for (identity, severity, title), count in sorted(
            rules.items(), key=lambda item: (order.index(item[0][1]), -item[1], item[0])
        )
    ]
    yield table(["Severity", "Rule", "What", "Findings"], rows, right=(3,))
    yield "; ".join(f"**{severity}**: {meaning}" for severity, (meaning, _) in MEANING.items()) + "."
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    for path, found in sorted(by_path.items()):
        yield f"### {code(path) if path else 'The whole tree'}"
        yield "\n".join(
            _line(finding)
            for finding in sorted(found, key=lambda item: (item.line, item.column, order.index(item.severity), item.id))
        )


def _line(finding: Finding) -> str:
    where = f"line {finding.line}: " if finding.line else ""
    title = f"{escape(finding.title)}: " if finding.title and finding.title != finding.message else ""
    fix = f" *Fix ({finding.effort}):* {escape(finding.fix)}" if finding.fix else ""
    return f"- {where}**{finding.severity}** {escape(finding.id)} {title}{escape(finding.message)}{fix}"


def _files(report: MigrationReport, standing: Standing) -> str:
    rows = [
        [
            code(file.path),
            escape(file.method),
            standing.readiness[file.path],
            *(file.targets.get(target, "") for target in report.targets),
            escape("; ".join(file.notes)),
        ]
        for file in sorted(report.files, key=lambda file: file.path)
    ]
    return table(["File", "Translated by", "Readiness", *report.targets, "Notes"], rows)
