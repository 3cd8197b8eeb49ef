"""``amdflow explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from amdflow.cli.options import FormatOption
from amdflow.terminal import Format


def explain(
    rule: Annotated[
        str | None, typer.Argument(help="Number of a diagnostic.", metavar="ID", show_default=False)
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List every diagnostic there is.")] = False,
    format: FormatOption = Format.HUMAN,
) -> None:
    """Say what a diagnostic means, why it matters on AMD GPUs, and how to fix it.

    Example:  amdflow explain AMF1102
    """
    from amdflow.cli.context import open_context
    from amdflow.migrate.explain import explain_rule, list_rules

    context = open_context(format=format)
    if rule is None or list_all:
        list_rules(context.project.root, context.terminal)
    else:
        explain_rule(rule, context.project.root, context.terminal)
