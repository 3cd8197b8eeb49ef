"""``amdflow toolchain``: install and list the outside programs."""

from __future__ import annotations

from typing import Annotated

import typer

from amdflow.cli.options import ConfigFile, FormatOption, Quiet
from amdflow.terminal import Format

app = typer.Typer(
    no_args_is_help=True,
    help="Find, install and list the outside programs: ROCm's compilers, CUDA headers, engine environments.",
)


@app.command()
def install(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="rocm, cuda-headers, kernels, finetune, serve, or all (the default).", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Install anew what is there already.")] = False,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Install what is missing into the user's cache, without root.

    An installed ROCm or CUDA 12 is used as it is. An interrupted install goes on where it was.

    Example:  amdflow toolchain install rocm cuda-headers
    """
    from amdflow.cli.context import open_context
    from amdflow.toolchain.install import install as install_tools

    context = open_context(quiet=quiet, config=config)
    install_tools(names or [], context.toolchain.config, context.toolchain.store, context.terminal, force=force)


@app.command("list")
def list_tools(format: FormatOption = Format.HUMAN, config: ConfigFile = None) -> None:
    """Name every tool with its state, version, place, origin and size.

    Example:  amdflow toolchain list --format json
    """
    from amdflow.cli.context import open_context
    from amdflow.toolchain.inventory import inventory

    context = open_context(format=format, config=config)
    tools = inventory(context.toolchain)
    context.terminal.data({"tools": [tool.to_json() for tool in tools]})
    context.terminal.table(
        ("tool", "state", "version", "size", "origin", "path"),
        [(tool.name, tool.state, tool.version, tool.shown_size, tool.origin, tool.path) for tool in tools],
        right=(3,),
    )
