"""The ``amdflow`` command: registers the commands, and is the one place where an error becomes words and an exit status."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from amdflow import __version__
from amdflow.cli import (
    config,
    doctor,
    endpoint,
    explain,
    export,
    finetune,
    init,
    kernels,
    lookup,
    migrate,
    record,
    report,
    run_all,
    scaffold,
    serve,
    status,
    toolchain,
)
from amdflow.errors import AmdflowError, Cancelled, ExitCode, from_os_error

app = typer.Typer(
    name="amdflow",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
    epilog="Start with: amdflow doctor; amdflow init my-project. "
    "Exit status: 0 ok, 1 failed, 2 bad input, 3 findings above the limit, 4 stale, 5 environment, 130/143 cancelled.",
)

for command in (
    init.init,
    doctor.doctor,
    migrate.migrate,
    record.record,
    explain.explain,
    lookup.lookup,
    scaffold.scaffold,
    finetune.finetune,
    export.export,
    serve.serve,
    run_all.run_all,
    status.status,
    report.report,
):
    app.command()(command)
for name, group in (
    ("toolchain", toolchain.app),
    ("kernels", kernels.app),
    ("endpoint", endpoint.app),
    ("config", config.app),
):
    app.add_typer(group, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"amdflow {__version__}")  # noqa: T201 - the one line of data of this option
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """CUDA to ROCm, end to end: migrate sources, build TileLang kernels, fine-tune, export, serve."""


def main() -> None:
    """Run the command line; never show a traceback unless AMDFLOW_DEBUG is set."""
    from amdflow.process import interruptible

    try:
        with interruptible():
            app()
    except AmdflowError as error:
        _fail(error)
    except KeyboardInterrupt:
        _fail(Cancelled(2))
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except OSError as error:
        _fail(from_os_error(error))
    except Exception as error:  # the last resort: a defect of ours must still end in words
        _fail(
            AmdflowError(
                f"internal error: {type(error).__name__}: {error}",
                hint="this is a defect in amdflow: please report it with what AMDFLOW_DEBUG=1 shows",
            ),
            cause=error,
        )


def _fail(error: AmdflowError, *, cause: Exception | None = None) -> None:
    from amdflow.terminal import Terminal

    if os.environ.get("AMDFLOW_DEBUG"):
        raise cause or error
    Terminal().error(error)
    sys.exit(int(error.exit_code))
