"""The command line as a whole: help, unknown words, exit codes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import typer
from typer.main import get_command

from amdflow.cli import app as module

HEAVY = ("torch", "pydantic", "httpx", "psutil", "jinja2", "rich.console", "tree_sitter", "filelock", "yaml")


def commands() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Every command with its full name, groups left out."""
    todo = [("amdflow", get_command(module.app))]
    while todo:
        name, command = todo.pop()
        children = getattr(command, "commands", None)
        if children is None:
            assert isinstance(command, typer.core.TyperCommand)
            yield name, command
        else:
            todo += [(f"{name} {child}", item) for child, item in children.items()]


def test_every_command_has_help_with_an_example() -> None:
    found = dict(commands())
    assert {"amdflow migrate", "amdflow run-all", "amdflow kernels build", "amdflow endpoint stop"} <= set(found)
    for name, command in found.items():
        assert command.help, name
        assert f"Example: {name}" in " ".join(command.help.split()), name
        for parameter in command.params:
            assert getattr(parameter, "help", ""), f"{name} {parameter.name}"


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    from amdflow import process

    code = f"import sys, amdflow.cli.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert process.run([sys.executable, "-c", code]).stdout == "[]\n"


def test_an_unknown_command_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        module.app(["migrat"])
    assert caught.value.code == 2
    assert "migrat" in capsys.readouterr().err
