"""The one door to the screen: data on stdout, talk on stderr; human, json or quiet.

rich is imported where it is used, so that ``--help`` stays fast.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from amdflow.errors import AmdflowError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_QUIET_TTY_WIDTH = 120
_LINE_EVERY_SECONDS = 15.0


class Format(StrEnum):
    """What stdout carries."""

    HUMAN = "human"
    JSON = "json"
    GITHUB = "github"
    """Annotations of GitHub Actions, of commands that have findings."""


class Bar:
    """One progress bar. ``update`` may be called from any thread."""

    def __init__(
        self,
        write: Callable[[str], None],
        description: str,
        total: float | None,
        progress: Progress | None,
        task: TaskID | None,
    ) -> None:
        self._write, self._description, self._progress, self._task = write, description, progress, task
        self._total, self._done, self._note = total, 0.0, ""
        self._started = self._spoke = time.monotonic()
        self._began_at = 0.0

    def update(
        self, advance: float = 0.0, *, done: float | None = None, total: float | None = None, note: str | None = None
    ) -> None:
        """Move on by ``advance`` or to ``done``; ``note`` is shown beside the bar (loss, file name).

        Rate and time left count from when the total is known: loading a model says nothing of a training's speed.
        """
        self._done = self._done + advance if done is None else done
        if self._total is None and total is not None:
            self._started, self._began_at = time.monotonic(), self._done
            if self._progress is not None and self._task is not None:
                self._progress.reset(self._task, total=total, completed=int(self._done))
        self._total = self._total if total is None else total
        self._note = self._note if note is None else note
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done, total=self._total, note=self._note)
        elif time.monotonic() - self._spoke >= _LINE_EVERY_SECONDS:
            self._spoke = time.monotonic()
            rate = (self._done - self._began_at) / max(self._spoke - self._started, 1e-9)
            left = f", {(self._total - self._done) / rate:.0f} s left" if self._total and rate else ""
            of = f"/{self._total:g}" if self._total else ""
            self._write(f"  {self._description}: {self._done:g}{of} ({rate:.2g}/s{left}) {self._note}".rstrip())


class Terminal:
    """What a command may say.

    ``format`` picks what stdout carries, ``quiet`` silences everything on stderr but warnings and errors.
    """

    def __init__(self, format: Format = Format.HUMAN, *, quiet: bool = False, verbose: bool = False) -> None:
        self.format, self.quiet, self.verbose = format, quiet, verbose
        self._out: Console | None = None
        self._err: Console | None = None

    @property
    def out(self) -> Console:
        """stdout, for data."""
        if self._out is None:
            self._out = _console(stderr=False)
        return self._out

    @property
    def err(self) -> Console:
        """stderr, for talk."""
        if self._err is None:
            self._err = _console(stderr=True)
        return self._err

    def say(self, message: str, style: str = "") -> None:
        """Talk: what is going on."""
        if not self.quiet:
            self.err.print(message, style=style or None, markup=False, highlight=False, soft_wrap=True)

    def detail(self, message: str) -> None:
        """Talk that only ``--verbose`` shows."""
        if self.verbose:
            self.say(f"  {message}", style="dim")

    def heading(self, message: str) -> None:
        """The start of a stage or a section."""
        self.say(message, style="bold cyan")

    def success(self, message: str) -> None:
        """Something ended well."""
        self.say(f"✓ {message}", style="green")

    def warn(self, message: str) -> None:
        """Something a person should look at; shown even when quiet."""
        self.err.print(f"warning: {message}", style="yellow", markup=False, highlight=False, soft_wrap=True)

    def error(self, error: AmdflowError) -> None:
        """What went wrong and what to do, shown always."""
        self.err.print(f"error: {error.message}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        if error.hint:
            self.err.print(f"  → {error.hint}", markup=False, highlight=False, soft_wrap=True)

    def data(self, value: Any) -> None:
        """A JSON value on stdout, when the format is JSON."""
        if self.format is Format.JSON:
            print(json.dumps(value, indent=2, ensure_ascii=False, default=str), flush=True)

    def print(self, text: str) -> None:
        """Plain text data on stdout, when the format is human."""
        if self.format is Format.HUMAN:
            self.out.print(text, markup=False, highlight=False, soft_wrap=True)

    def annotations(self, lines: Iterable[str]) -> None:
        """Workflow commands on stdout, when the format is GitHub's."""
        if self.format is Format.GITHUB:
            for line in lines:
                print(line, flush=True)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", right: Sequence[int] = ()
    ) -> None:
        """A table on stdout, when the format is human. ``right`` holds indexes of right-aligned columns."""
        if self.format is not Format.HUMAN:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False
        )
        for index, column in enumerate(columns):
            table.add_column(column, justify="right" if index in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self.out.print(table)

    @contextmanager
    def progress(self, description: str, total: float | None = None, unit: str = "") -> Iterator[Bar]:
        """A bar with count, rate and time left; on a pipe, a plain line now and then."""
        if self.quiet or not self.err.is_terminal or os.environ.get("CI"):
            yield Bar(self.say if not self.quiet else lambda _line: None, description, total, None, None)
            return
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
        )
        with Progress(*columns, console=self.err, transient=True) as progress:
            yield Bar(self.say, description, total, progress, progress.add_task(description, total=total, note=""))


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else int(os.environ.get("COLUMNS", _QUIET_TTY_WIDTH))
    return Console(file=stream, width=width, highlight=False)
