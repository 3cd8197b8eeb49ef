"""``amdflow toolchain``: install and list the outside programs."""

from __future__ import annotations

from pathlib import Path
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


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    engine: Annotated[str, typer.Argument(help="kernels, finetune, serve or vllm.")],
    script: Annotated[Path, typer.Argument(help="A Python script.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="What the script gets.", show_default=False)] = None,
) -> None:
    """Run a script with an engine's Python and settings; it may reach the network.

    Example:  amdflow toolchain run finetune finetuning/models.py smollm2 models/smollm2
    """
    import os

    from amdflow import process
    from amdflow.cli.context import open_context
    from amdflow.errors import UsageError

    context = open_context()
    if not script.is_file():
        raise UsageError(f"there is no script {script}", hint="check the path")
    found = context.toolchain.engine(engine)
    done = process.run(
        [str(found.python), str(script), *(arguments or [])],
        env={**os.environ, **found.environment(offline=False), "PYTHONUNBUFFERED": "1"},
        on_line=context.terminal.say,
        check=False,
        sweep_descendants=True,
    )
    if done.returncode:
        raise typer.Exit(done.returncode if done.returncode > 0 else 128 - done.returncode)


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
