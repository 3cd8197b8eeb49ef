"""The migration report: one HTML page and one Markdown file from the same figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from amdflow import __version__
from amdflow.files import write_atomic
from amdflow.findings import Finding, Severity
from amdflow.report.difference import segments
from amdflow.report.effort import BASIS, NOT_COUNTED
from amdflow.report.markdown import migration_markdown
from amdflow.report.migrated import FileResult, LazyTexts, MigrationReport
from amdflow.report.page import packed, write_page
from amdflow.report.readiness import LIBRARY_STATES, MEANING, NEEDS_A_PERSON, NOT_RUN, Readiness, Standing, standing

__all__ = ["FileResult", "LazyTexts", "MigrationReport", "write_html", "write_markdown"]

_WHOLE_FILES_UP_TO = 12_000_000
"""Characters of sources in all. Above it a page holds only the lines around changes and findings."""
_ROOM = 16_000_000
"""Characters of packed differences in a page; files beyond it are named without one."""
_ORDER = {severity: rank for rank, severity in enumerate(Severity)}


def write_html(report: MigrationReport, path: Path) -> None:
    """Write ``report.html``: self-contained, the same bytes for the same report."""
    figures = standing(report)
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_path[finding.path].append(finding)
    differences = _Differences(report, by_path)
    methods = Counter(file.method for file in report.files)
    write_page(
        path,
        "migration.html.j2",
        scripts=("diff.js", "migration.js"),
        version=__version__,
        report=report,
        standing=figures,
        states=list(Readiness),
        readiness_counts={state: list(figures.readiness.values()).count(state) for state in Readiness},
        meaning=MEANING,
        not_run=NOT_RUN,
        basis=BASIS,
        not_counted=NOT_COUNTED,
        library_states=LIBRARY_STATES,
        methods=sorted(methods.items(), key=lambda item: (-item[1], item[0])),
        metrics=scalars(report.metrics),
        differences=differences,
        data=lambda: _data(report, figures, by_path, differences.numbers),
    )


def write_markdown(report: MigrationReport, path: Path) -> None:
    """Write ``report.md``, fit for a pull request."""
    write_atomic(path, migration_markdown(report, standing(report)).encode("utf-8", errors="backslashreplace"))


def scalars(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The metrics that fit on a line, by name, with their underscores read as spaces."""
    return [
        (name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else str(value))
        for name, value in sorted(metrics.items())
        if isinstance(value, str | int | float)
    ]


class _Differences:
    """The files' differences, made one after the other while the page is written; ``numbers`` grows with them."""

    def __init__(self, report: MigrationReport, by_path: Mapping[str, list[Finding]]) -> None:
        self._report, self._by_path = report, by_path
        self.numbers: dict[str, int] = {}
        """Which element of the page holds a file's difference."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Element id and packed segments for files with a change or a finding, the worst files first, while there is room."""
        whole, room = self._is_small(), _ROOM
        for path in sorted(self._report.sources, key=self._rank):
            original, migrated = self._report.sources[path]
            if original == migrated and path not in self._by_path:
                continue
            marked = {finding.line for finding in self._by_path.get(path, ())}
            text = packed(segments(original, migrated, marked, whole=whole))
            if len(text) > room:
                continue
            room -= len(text)
            self.numbers[path] = len(self.numbers)
            yield f"d{self.numbers[path]}", text

    def _is_small(self) -> bool:
        total = 0
        for path in self._report.sources:
            total += sum(map(len, self._report.sources[path]))
            if total > _WHOLE_FILES_UP_TO:
                return False
        return True

    def _rank(self, path: str) -> tuple[int, str]:
        return min((_ORDER[finding.severity] for finding in self._by_path.get(path, ())), default=len(_ORDER)), path


def _data(
    report: MigrationReport, figures: Standing, by_path: Mapping[str, list[Finding]], numbers: Mapping[str, int]
) -> dict[str, Any]:
    """What the page's script reads, under short names: it may hold thousands of rows."""
    findings = sorted(
        report.findings, key=lambda item: (_ORDER[item.severity], item.path, item.line, item.column, item.id)
    )
    worst_first = {state: rank for rank, state in enumerate(Readiness)}
    files = sorted(report.files, key=lambda file: (worst_first[figures.readiness[file.path]], file.path))
    shared: dict[str, int] = {}
    rows = [_finding(finding, lambda text: shared.setdefault(text, len(shared))) for finding in findings]
    return {
        "targets": list(report.targets),
        "texts": list(shared),
        "findings": rows,
        "files": [
            {
                "p": file.path,
                "m": file.method,
                "r": figures.readiness[file.path],
                "t": [file.targets.get(target, "") for target in report.targets],
                "o": file.output,
                "n": list(file.notes),
                "c": sum(finding.severity in NEEDS_A_PERSON for finding in by_path.get(file.path, ())),
                "d": numbers.get(file.path, -1),
            }
            for file in files
        ],
    }


def _finding(finding: Finding, index_of: Callable[[str], int]) -> dict[str, Any]:
    """Texts that many findings share are kept once, ``t`` and ``f`` are their numbers."""
    return {
        "i": finding.id,
        "s": finding.severity,
        "t": index_of(finding.title),
        "m": finding.message,
        "p": finding.path,
        "l": finding.line,
        "e": finding.effort,
        "f": index_of(finding.fix),
        "c": finding.snippet,
        "g": list(finding.targets),
    }
