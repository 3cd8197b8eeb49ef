"""``amdflow lookup``."""

from __future__ import annotations

from typing import Annotated

import typer

from amdflow.cli.options import FormatOption
from amdflow.terminal import Format


def lookup(
    name: Annotated[str, typer.Argument(help="A CUDA name: function, type, constant or header.")],
    format: FormatOption = Format.HUMAN,
) -> None:
    """Say what a CUDA name is called in HIP: by the installed hipify-clang's tables, and by amdflow's own rules and headers.

    Example:  amdflow lookup cudaMallocAsync

    Example:  amdflow lookup cublas_v2.h --format json
    """
    from amdflow.cli.context import open_context
    from amdflow.migrate.lookup import lookup_name

    context = open_context(format=format)
    lookup_name(name, context.project.root, context.toolchain.rocm(), context.terminal)
