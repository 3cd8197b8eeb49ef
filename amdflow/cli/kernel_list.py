"""``amdflow kernels list``."""

from __future__ import annotations

from pathlib import Path

from amdflow.cli.kernel_options import KernelNames, words
from amdflow.cli.options import Arch, ConfigFile, FormatOption, Quiet
from amdflow.terminal import Format


def list_all(
    kernel: KernelNames = None,
    arch: Arch = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Show the kernels: what each does, for which value types, sizes and targets, and which classes of models use it.

    Example:  amdflow kernels list --kernel rms_norm,rope
    """
    from amdflow.cli.context import open_context
    from amdflow.kernels import listing
    from amdflow.kernels.config import KernelsConfig
    from amdflow.kernels.sources import open_folders

    context = open_context(format=format, quiet=quiet, config=config, arch=arch)
    settings = context.project.resolve("kernels", KernelsConfig, {}).value
    folders = open_folders((context.project.root / Path(settings.source).expanduser()).resolve(), given=settings.source)
    targets = context.settings.targets if arch is not None else settings.targets or context.settings.targets
    found = listing.list_kernels(folders, targets, words(kernel) or settings.kernels)
    used = listing.operators(found)
    context.terminal.table(listing.COLUMNS, [one.cells() for one in found])
    if used:
        context.terminal.table(listing.OPERATOR_COLUMNS, [listing.operator_cells(entry) for entry in used])
    context.terminal.data(
        {
            "schema": "amdflow/kernel-list",
            "version": "1.0",
            "kernels": [one.to_json() for one in found],
            "operators": used,
        }
    )
