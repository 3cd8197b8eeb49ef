"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amdflow.terminal import Format


def _plain_format(text: str) -> Format:
    if text not in (Format.HUMAN, Format.JSON):
        raise typer.BadParameter(f"{text!r} is not one of 'human', 'json'.")
    return Format(text)


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Put the result here instead of <workdir>/<stage>; the evidence goes to DIR/amdflow-report.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Run even if nothing changed; overwrite outputs edited by hand.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and why; do nothing.")]
Verify = Annotated[bool, typer.Option("--verify", help="Re-hash earlier outputs instead of trusting size and time.")]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        parser=_plain_format,
        metavar="[human|json]",
        help="What stdout carries: tables for people, or JSON.",
    ),
]
FindingsFormat = Annotated[
    Format,
    typer.Option("--format", help="What stdout carries: tables for people, JSON, or annotations for GitHub Actions."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Use this amdflow.yaml instead of the nearest one.", show_default=False)
]
FromManifest = Annotated[
    Path | None,
    typer.Option(
        "--from-manifest",
        help="Take the input from this manifest of the stage before, made elsewhere.",
        show_default=False,
    ),
]
Arch = Annotated[
    str | None, typer.Option("--arch", help="gfx targets, separated by commas (gfx942,gfx1100).", show_default=False)
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="How many processes at once; default: one for each core.", show_default=False),
]
