"""``amdflow scaffold``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amdflow.cli.options import ConfigFile, FormatOption, FromManifest, Jobs, Quiet
from amdflow.terminal import Format


def scaffold(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[FINDING|FUNCTION|FILE[:LINE]]",
            help="A finding's number, a function's name, or a place; default: every function that needs a person.",
            show_default=False,
        ),
    ] = "",
    list_all: Annotated[
        bool, typer.Option("--list", help="List the functions that need a person; write nothing.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the scaffolds; default: scaffold.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite scaffolds that were edited.")] = False,
    jobs: Jobs = None,
    from_manifest: FromManifest = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Write a small test program for each function that needs a person, so that it can be ported and tested alone.

    Example:  amdflow scaffold

    Example:  amdflow scaffold AMF1107 --list; amdflow scaffold src/reduce.cu:30
    """
    from amdflow.cli.context import open_context
    from amdflow.migrate.scaffold import command

    context = open_context(format=format, quiet=quiet, config=config)
    manifest = (from_manifest or context.workdir / "migrate").absolute()
    root = context.project.root
    if list_all:
        command.list_flagged(manifest, root, what, context.terminal)
        return
    folder = (output or root / "scaffold").absolute()
    command.scaffold(manifest, root, what, folder, context.toolchain, context.terminal, jobs=jobs or 0, force=force)
