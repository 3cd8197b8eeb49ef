"""``amdflow kernels export``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amdflow.cli.kernel_options import KernelNames, words
from amdflow.cli.options import Arch, ConfigFile, FormatOption, FromManifest, Quiet
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.cli.context import Context


def export(
    kernel: KernelNames = None,
    arch: Arch = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the export; default: <workdir>/kernel-objects.", show_default=False
        ),
    ] = None,
    jit_cache: Annotated[
        Path | None,
        typer.Option("--jit-cache", help="Also fill TileLang's own cache in this folder.", show_default=False),
    ] = None,
    from_manifest: FromManifest = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Put what was built into a folder that a process without TileLang can load kernels from on ROCm.

    Example:  amdflow kernels export --arch gfx942 --output kernel-objects

    Example:  amdflow kernels export --arch gfx942 --jit-cache tilelang-cache
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
    filled = _prefill(context, exported.rows, jit_cache) if jit_cache is not None else 0
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
    if jit_cache is not None:
        shown = portable(jit_cache.absolute(), Path.cwd())
        context.terminal.say(f"  {filled} kernels in TileLang's cache: TILELANG_CACHE_DIR={shown}")


def _prefill(context: Context, rows: Sequence[dict[str, Any]], cache: Path) -> int:
    from amdflow.kernels.config import KernelsConfig
    from amdflow.kernels.prefill import prefill
    from amdflow.kernels.sources import open_folders

    source = context.project.resolve("kernels", KernelsConfig, {}).value.source
    folders = open_folders((context.project.root / Path(source).expanduser()).resolve(), given=source)
    engine, rocm = context.toolchain.engine("kernels"), context.toolchain.rocm()
    return prefill(rows, folders, cache.absolute(), engine=engine, rocm=rocm, terminal=context.terminal)
