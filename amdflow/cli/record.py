"""``amdflow record``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.options import ConfigFile, FormatOption
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.migrate.records.recorder import Entry, Recorded
    from amdflow.terminal import Terminal


def record(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATHS]...",
            help="Files or folders of the migrated tree; default: every file that was edited. New and removed files must be named.",
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        str, typer.Option("--why", help="What was wrong, and who needs the change.", show_default=False)
    ] = "",
    who: Annotated[str, typer.Option("--who", help="Who made the change.", show_default="the login name")] = "",
    list_all: Annotated[bool, typer.Option("--list", help="List the records and what each comes to now.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder that `amdflow migrate --output` wrote to.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    format: FormatOption = Format.HUMAN,
) -> None:
    """Keep what was changed by hand in the migrated output: as patches in migration/records, merged into every later run.

    Example:  amdflow record --why "wave64: the reduction needs 64 lanes"

    Example:  amdflow record src/reduce.cu include/amd.h --why "tuned for MI300X" --who "Ann, kernels team"
    """
    from amdflow import stages
    from amdflow.cli.context import open_context
    from amdflow.migrate.records.apply import FOLDER
    from amdflow.migrate.records.recorder import Output, Reason, keep_changes, listing
    from amdflow.pipeline.workspace import locked

    context = open_context(format=format, config=config)
    destination = context.destination(stages.load("migrate"), output)
    folder = context.project.root / FOLDER
    if list_all:
        published = Output.read(destination) if destination.manifest.is_file() else None
        _show(listing(published, folder), context.terminal)
        return
    published = Output.read(destination)
    with locked(destination.private, "record"):
        result = keep_changes(published, folder, paths or (), Reason(why, who, _login()))
    _show(result.written, context.terminal, result)


def _show(entries: list[Entry], terminal: Terminal, result: Recorded | None = None) -> None:
    from dataclasses import asdict

    if entries:
        terminal.table(
            ("file", "change", "lines", "state", "who", "why"),
            [
                (entry.path, entry.change, f"+{entry.plus} -{entry.minus}", entry.state, entry.who, entry.why)
                for entry in entries
            ],
        )
    elif result is None or not result.dropped:
        terminal.print("nothing to record" if result else "no records")
    if result is None:
        terminal.data([asdict(entry) for entry in entries])
        return
    for name in result.dropped:
        terminal.print(f"{name} is as amdflow makes it again: its record was removed")
    for names, what in ((result.left_added, "new"), (result.left_missing, "removed")):
        if names:
            terminal.say(
                f"  {len(names)} {what} files were not recorded; name those to record: {', '.join(names[:5])}"
                + (" ..." if len(names) > 5 else "")
            )
    terminal.data(asdict(result))


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return ""
