"""``amdflow report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amdflow.cli.options import ConfigFile, FindingsFormat
from amdflow.terminal import Format


def report(
    workdir: Annotated[
        Path | None,
        typer.Option(
            "--workdir", help="Folder with the stages' manifests; default: the project's.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the page here instead of <workdir>/report.html.", show_default=False
        ),
    ] = None,
    config: ConfigFile = None,
    format: FindingsFormat = Format.HUMAN,
) -> None:
    """Write one self-contained HTML page of the whole run and print its path.

    With `--format github` the migration's findings are printed as annotations instead of the path.

    Example: amdflow report --output run.html
    """
    from amdflow.cli.context import open_context
    from amdflow.errors import UsageError
    from amdflow.files import portable
    from amdflow.report import findings_file
    from amdflow.report.github import annotations_of
    from amdflow.report.run import summarise, write_run_report

    context = open_context(format=format, config=config)
    folder = workdir.absolute() if workdir else context.workdir
    if not folder.is_dir():
        raise UsageError(
            f"nothing has run here yet: there is no folder {folder}",
            hint="amdflow run-all, or name the folder with --workdir",
        )
    page = output.absolute() if output else folder / "report.html"
    if page.is_dir():
        raise UsageError(f"--output {output} is a folder", hint=f"name a file: --output {output}/report.html")
    write_run_report(folder, page)
    shown = portable(page, Path.cwd())
    context.terminal.print(shown)
    if format is Format.GITHUB:
        context.terminal.annotations(annotations_of(folder / "migrate" / findings_file.NAME))
    context.terminal.data({"report": shown, **summarise(folder)})
