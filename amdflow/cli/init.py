"""``amdflow init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amdflow.cli.options import FormatOption
from amdflow.terminal import Format, Terminal


def init(
    folder: Annotated[Path, typer.Argument(help="Where the project goes; made when it does not exist.")] = Path(),
    format: FormatOption = Format.HUMAN,
) -> None:
    """Start a project: amdflow.yaml, the four content folders, a CI workflow.

    Example: amdflow init my-port
    """
    from amdflow.project import create_project

    terminal = Terminal(format)
    created = create_project(folder)
    terminal.success(f"{folder}: wrote {', '.join(created.written)}")
    if created.kept:
        terminal.say(f"  already there, left as it is: {', '.join(created.kept)}")
    terminal.say("next:")
    if folder != Path():
        terminal.say(f"  cd {folder}")
    terminal.say("  amdflow doctor                                  # what is missing, and how to get it")
    terminal.say("  edit amdflow.yaml: migrate.source, targets\n  amdflow run-all --until kernels")
    terminal.data({"folder": str(folder), "written": created.written, "kept": created.kept})
