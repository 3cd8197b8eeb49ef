"""What the terminal shows after a migration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amdflow.errors import UsageError
from amdflow.files import portable
from amdflow.pipeline.runner import StageReport
from amdflow.report import findings_file
from amdflow.report.github import annotations_of
from amdflow.terminal import Format, Terminal

_MEANING = {
    "silent": "compile, compute the wrong thing",
    "compile": "block the compiler",
    "link": "block linking or loading",
    "slow": "right but slow",
    "note": "good to know",
}
_CAUSE_WIDTH = 110


def check_output(source: Path | None, output: Path | None) -> None:
    """Refuse an output folder that is the source folder, lies in it, or holds it. Raises UsageError."""
    if source is None or output is None:
        return
    inner, outer = source.resolve(), output.resolve()
    if inner == outer:
        raise UsageError(
            f"--output {output} is the source folder itself",
            hint="name a folder beside it: nothing of yours is changed in place",
        )
    if outer.is_relative_to(inner):
        raise UsageError(
            f"--output {output} lies inside the source folder {source}",
            hint="name a folder beside it, or the next run would read it as a source",
        )
    if inner.is_relative_to(outer):
        raise UsageError(f"--output {output} holds the source folder {source}", hint="name a folder of its own")


def show(report: StageReport, terminal: Terminal) -> None:
    """Tables on stdout: files by method, units by target, findings by severity, the worst causes; then where to read on."""
    manifest = report.manifest
    if manifest is None or not manifest.status.good:
        return
    metrics = manifest.metrics
    terminal.table(
        ("files", "how they were translated"),
        [(str(count), method) for method, count in metrics.get("files_by_method", {}).items()],
        right=(0,),
    )
    compiled: dict[str, int] = metrics.get("units_compiled", {})
    units = int(metrics.get("units", 0))
    if compiled and units:
        terminal.table(
            ("target", "units that compile", ""),
            [(target, f"{count} of {units}", _share(count, units)) for target, count in compiled.items()],
            right=(1, 2),
        )
    else:
        terminal.print(
            "no translation units, and headers alone are not compiled"
            if not units
            else f"{units} translation units, none compiled (--no-compile)"
        )
    found = {severity: count for severity, count in manifest.findings.items() if count}
    terminal.table(
        ("findings", "severity", "they"),
        [(str(count), severity, _MEANING.get(severity, "")) for severity, count in found.items()],
        right=(0,),
    )
    causes: list[dict[str, Any]] = metrics.get("top_causes", [])
    if causes:
        terminal.table(
            ("look first at", "where", "what"),
            [(cause["id"], _place(cause), cause["message"][:_CAUSE_WIDTH]) for cause in causes],
        )
    folder = report.manifest_path.parent
    if terminal.format is Format.GITHUB:
        terminal.annotations(annotations_of(folder / findings_file.NAME))
    terminal.print(standing(units, compiled, found))
    terminal.say(f"  report:   {portable(folder / 'report.html', Path.cwd())}")
    if causes:
        terminal.say(f"  next:     amdflow explain {causes[0]['id']}")


def _share(count: int, units: int) -> str:
    """A percentage that never rounds up to 100."""
    return "100 %" if count == units else f"{min(100 * count / units, 99.9):.1f} %"


def _place(cause: dict[str, Any]) -> str:
    return f"{cause['path']}:{cause['line']}" if cause["line"] else str(cause["path"])


def standing(units: int, compiled: dict[str, int], found: dict[str, int]) -> str:
    """Where a migration stands, in a sentence. ``compiled`` has units that compile by target, ``found`` findings by severity."""
    needs = sum(found.get(severity, 0) for severity in ("silent", "compile", "link"))
    failing = sum(units - count for count in compiled.values())
    if not compiled or not units:
        return (
            f"{needs} places need a person; nothing was compiled."
            if needs
            else "Nothing was found that needs a person, but nothing was compiled either."
        )
    if failing:
        return f"{needs} places need a person; {failing} compile checks failed."
    if needs:
        return f"Every unit compiles, and {needs} places still need a person: compiling is not the same as computing right."
    return "Every unit compiles and no finding is open. No code was run: test it on a GPU."
