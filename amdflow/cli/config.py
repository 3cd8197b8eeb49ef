"""``amdflow config show``."""

from __future__ import annotations

from typing import Annotated

import typer

from amdflow.cli.options import ConfigFile, FormatOption
from amdflow.terminal import Format

app = typer.Typer(help="Show the settings in force.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Keep `show` a subcommand although it is the only one."""


@app.command()
def show(
    sources: Annotated[bool, typer.Option("--sources", help="Say where each value comes from.")] = False,
    config: ConfigFile = None,
    format: FormatOption = Format.HUMAN,
) -> None:
    """Print every setting, defaults included.

    Example: amdflow config show --sources
    """
    from amdflow import stages
    from amdflow.cli.context import open_context
    from amdflow.config import ProjectConfig
    from amdflow.pipeline.freshness import flatten

    context = open_context(format=format, config=config)
    sections = {"": context.project.resolve("", ProjectConfig)}
    sections |= {name: context.project.resolve(name, stages.load(name).config_type) for name in stages.ORDER}
    rows, data = [], {}
    for name, resolved in sections.items():
        for key, value in flatten(resolved.value.model_dump(mode="json")).items():
            full = f"{name}.{key}" if name else key
            origin = resolved.sources.get(key.partition(".")[0], "default")
            data[full] = {"value": value, "source": origin}
            rows.append((full, str(value), origin))
    context.terminal.table(
        ("key", "value", "source") if sources else ("key", "value"), [row if sources else row[:2] for row in rows]
    )
    context.terminal.data(data if sources else {key: item["value"] for key, item in data.items()})
