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
    """Say what a CUDA name is called in HIP, as the installed hipify-clang knows it.

    Example:  amdflow lookup cudaMallocAsync
    """
    from amdflow.cli.context import open_context
    from amdflow.migrate.explain import lookup_name

    context = open_context(format=format)
    lookup_name(name, context.project.root, context.toolchain.rocm(), context.terminal)
