"""``amdflow kernels export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amdflow.cli.kernel_options import KernelNames, words
from amdflow.cli.options import Arch, ConfigFile, FormatOption, FromManifest, Quiet
from amdflow.terminal import Format


def export(
    kernel: KernelNames = None,
    arch: Arch = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the export; default: <workdir>/kernel-objects.", show_default=False
        ),
    ] = None,
    from_manifest: FromManifest = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Put what was built into a folder that a process without TileLang can load kernels from on ROCm.

    Example:  amdflow kernels export --arch gfx942 --output kernel-objects
    """
    from amdflow.cli.context import open_context
    from amdflow.files import portable
    from amdflow.gpu.targets import target_names
    from amdflow.kernels.export import STAGE, export_objects

    context = open_context(format=format, quiet=quiet, config=config)
    targets = target_names(words(arch) or ()) if arch is not None else ()
    exported = export_objects(
        (from_manifest or context.workdir / STAGE).absolute(),
        (output or context.workdir / "kernel-objects").absolute(),
        targets=targets,
        kernels=words(kernel) or (),
    )
    place = portable(exported.folder, Path.cwd())
    context.terminal.data(
        {
            "schema": "amdflow/kernel-export",
            "version": "1.0",
            "folder": place,
            "bytes": exported.size,
            "kernels": list(exported.entries),
        }
    )
    context.terminal.success(f"{len(exported.entries)} code objects, {exported.size / 1024:.0f} KiB, in {place}")
    context.terminal.say(f"  a training takes them from there: AMDFLOW_KERNEL_OBJECTS={place}")
