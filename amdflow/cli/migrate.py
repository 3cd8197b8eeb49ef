"""``amdflow migrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.options import Arch, ConfigFile, DryRun, FindingsFormat, Force, Jobs, Output, Quiet, Verify
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.pipeline.runner import StageReport
    from amdflow.terminal import Terminal


def _folder(text: str) -> Path:
    """An empty name (an unset shell variable) must not mean the current folder."""
    if not text.strip():
        raise typer.BadParameter("the folder's name is empty")
    return Path(text)


Source = Annotated[
    Path | None,
    typer.Argument(
        parser=_folder,
        metavar="PATH",
        help="Folder with the CUDA sources; default: migrate.source in amdflow.yaml.",
        show_default=False,
    ),
]
NoCompile = Annotated[bool, typer.Option("--no-compile", help="Translate and report only; compile nothing.")]
NativeWarp = Annotated[
    bool,
    typer.Option(
        "--native-warp",
        help="Leave warp functions as wide as the hardware's waves, for code that is ported to 64 lanes by hand.",
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        help="Exit 3 on findings this bad or worse: silent, compile, link, slow, note; none never does.",
        show_default=False,
    ),
]
Annotate = Annotated[
    bool, typer.Option("--annotate", help="Put a comment at the line of each finding into the migrated sources.")
]
ExtraArg = Annotated[
    list[str] | None,
    typer.Option(
        help="A compiler flag for every file, in translation and compile checks; may be repeated.",
        show_default=False,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Leave out paths that match this glob pattern; may be repeated.", show_default=False),
]


def migrate(
    path: Source = None,
    output: Output = None,
    arch: Arch = None,
    jobs: Jobs = None,
    no_compile: NoCompile = False,
    native_warp: NativeWarp = False,
    fail_on: FailOn = None,
    annotate: Annotate = False,
    extra_arg: ExtraArg = None,
    exclude: Exclude = None,
    force: Force = False,
    dry_run: DryRun = False,
    verify: Verify = False,
    format: FindingsFormat = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Turn a CUDA source tree into a HIP one, compile it for AMD targets, and report what needs a person.

    Example:  amdflow migrate ./cuda_src --arch gfx942,gfx1100

    Example:  amdflow migrate ./cuda_src --output ./hip_src --fail-on compile --extra-arg=-Ithird_party/include
    """
    from amdflow.cli.context import run_stage
    from amdflow.migrate.summary import check_output

    check_output(path, output)
    flags = {
        "source": str(path.absolute()) if path else None,
        "jobs": jobs,
        "compile": False if no_compile else None,
        "native_warp": True if native_warp else None,
        "annotate": True if annotate else None,
        "fail_on": fail_on,
        "extra_args": extra_arg,
        "exclude": exclude,
    }
    run_stage(
        "migrate",
        flags,
        output=output,
        force=force,
        dry_run=dry_run,
        verify=verify,
        format=format,
        quiet=quiet,
        config=config,
        arch=arch,
    )


def render(report: StageReport, terminal: Terminal) -> None:
    """Show what the stage did."""
    from amdflow.migrate.summary import show

    show(report, terminal)
