"""``amdflow doctor``: what this machine has, what is missing, what does not fit together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from amdflow.cli.options import ConfigFile, FormatOption
from amdflow.terminal import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amdflow.terminal import Terminal
    from amdflow.toolchain.checks import Check

_MARKS = {"ok": "✓", "note": "·", "warning": "!", "missing": "✗"}


def doctor(format: FormatOption = Format.HUMAN, config: ConfigFile = None) -> None:
    """Check tools, GPU and settings, and print the command that mends each problem.

    Exit status 5 when a needed tool is missing. A machine without a GPU is fine.

    Example:  amdflow doctor --format json
    """
    from dataclasses import asdict

    from amdflow.cli.context import open_context
    from amdflow.errors import ExitCode
    from amdflow.gpu.machine import describe_machine
    from amdflow.toolchain.checks import Scene, State, run_all

    context = open_context(format=format, config=config)
    checks = run_all(Scene(context.toolchain))
    missing = [check.name for check in checks if check.state is State.MISSING]
    facts = describe_machine()
    context.terminal.data({"ok": not missing, "machine": facts, "checks": [asdict(check) for check in checks]})
    _render(checks, facts["os"], context.terminal)
    if missing:
        raise typer.Exit(ExitCode.ENVIRONMENT)


def _short(path: str) -> str:
    home = str(Path.home())
    return path.replace(home, "~", 1) if path.startswith(f"{home}/") else path


def _render(checks: Sequence[Check], system: str, terminal: Terminal) -> None:
    rows = [
        (_MARKS[check.state], check.name, check.version, "\n".join(filter(None, (check.detail, _short(check.path)))))
        for check in checks
    ]
    terminal.table(("", "what", "version", f"on this {system}"), rows)
    mends = list(dict.fromkeys((check.name, check.fix) for check in checks if check.fix and check.state != "note"))
    if mends:
        terminal.print("What to do:")
        for name, fix in mends:
            terminal.print(f"  {name}: {fix}")
    else:
        terminal.print("Everything amdflow needs is here.")
