"""``amdflow status``."""

from __future__ import annotations

from typing import Annotated

import typer

from amdflow.cli.options import ConfigFile, FormatOption
from amdflow.terminal import Format


def status(
    config: ConfigFile = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 4 when a stage is missing, failed or stale.")] = False,
    format: FormatOption = Format.HUMAN,
) -> None:
    """Show what each stage last did, and whether it would run again.

    Example: amdflow status --check
    """
    from amdflow.cli.context import open_context
    from amdflow.cli.standing import standing
    from amdflow.errors import ExitCode

    context = open_context(format=format, config=config)
    rows = standing(context)
    context.terminal.table(
        ("stage", "last result", "when", "took", "next run"),
        [(row.stage, row.result, row.ended, row.took, row.next_run) for row in rows],
    )
    for row in rows:
        if row.reports:
            context.terminal.say(f"  {row.stage}: {', '.join(row.reports)}")
    context.terminal.data([row.to_json() for row in rows])
    if check and not all(row.fresh for row in rows):
        raise typer.Exit(ExitCode.STALE)
