"""``amdflow endpoint``: the server that ``amdflow serve --detach`` left running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amdflow.cli.options import ConfigFile, FormatOption
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.cli.context import Context
    from amdflow.serve.endpoint import Endpoint

app = typer.Typer(no_args_is_help=True, help="The running server: status, stop, logs. Example: amdflow endpoint status")


@app.command()
def status(config: ConfigFile = None, format: FormatOption = Format.HUMAN) -> None:
    """Say what is served and whether it answers; exit 1 when nothing does.

    Example: amdflow endpoint status --format json
    """
    from amdflow.serve.inspection import inspect_endpoint

    context, endpoint = _open(config, format)
    state = inspect_endpoint(endpoint)
    context.terminal.data({"state": state, **_public(endpoint)})
    context.terminal.print(
        f"{state}: {endpoint.served_name} at {endpoint.url} ({endpoint.engine} {endpoint.engine_version} on {endpoint.device}, pid {endpoint.pid})"
    )
    if state != "ready":
        raise typer.Exit(1)


@app.command()
def stop(
    grace: Annotated[
        float,
        typer.Option("--grace", min=0.0, help="Seconds that requests in flight may take before everything is killed."),
    ] = 60.0,
    config: ConfigFile = None,
    format: FormatOption = Format.HUMAN,
) -> None:
    """Let requests in flight finish, then end the server and everything it started.

    Example: amdflow endpoint stop --grace 120
    """
    from amdflow import process
    from amdflow.serve.endpoint import record_path
    from amdflow.serve.endpoint import stop as end

    context, endpoint = _open(config, format)
    running = endpoint.alive()
    stopped = end(endpoint, grace=grace, hurry=process.cancelled)
    if running:
        endpoint.ended().save(record_path(context.workdir))
    context.terminal.data(
        {"was_running": running, "forced": stopped.forced, "seconds": round(stopped.seconds, 1), **_public(endpoint)}
    )
    how = (
        f"stopped after {stopped.seconds:.1f} s{', by force' if stopped.forced else ''}"
        if running
        else "was not running any more"
    )
    context.terminal.print(f"{endpoint.served_name} at {endpoint.url} {how}")


@app.command()
def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the server ends or Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines.")] = 100,
    config: ConfigFile = None,
) -> None:
    """Print the server's log.

    Example: amdflow endpoint logs -f
    """
    from amdflow import process
    from amdflow.serve.inspection import read_log

    context, endpoint = _open(config, Format.HUMAN)
    for line in read_log(
        context.project.root / endpoint.log,
        lines=lines,
        more=lambda: follow and endpoint.alive() and not process.cancelled(),
    ):
        typer.echo(line)


def _open(config: Any, format: Format) -> tuple[Context, Endpoint]:
    from amdflow.cli.context import open_context
    from amdflow.errors import AmdflowError
    from amdflow.serve.endpoint import find_endpoint

    context = open_context(format=format, config=config)
    endpoint = find_endpoint(context.workdir)
    if endpoint is None:
        raise AmdflowError(f"nothing has been served from {context.workdir}", hint="amdflow serve --model DIR --detach")
    return context, endpoint


def _public(endpoint: Endpoint) -> dict[str, Any]:
    from dataclasses import asdict

    return {key: value for key, value in asdict(endpoint).items() if key not in ("marker", "boot", "pid_started")}
