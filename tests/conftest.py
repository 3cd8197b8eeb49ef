"""What every level of the tests shares: running the real command line, and looking for processes left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amdflow import watchdog

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as JSON."""
        return json.loads(self.out)


class CommandLine:
    """The ``amdflow`` command, run as a person runs it: its own process, a folder, a plain environment."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "NO_COLOR": "1",
            "COLUMNS": "160",
            **environment,
        }

    def __call__(self, *arguments: str | Path, timeout: float = 600, env: Mapping[str, str] | None = None) -> Said:
        done = subprocess.run(
            self.argv(*arguments),
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    def argv(self, *arguments: str | Path) -> list[str]:
        """The command as a list."""
        return [sys.executable, "-m", "amdflow", *map(str, arguments)]

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start it and go on."""
        log = self.folder / "started.log"
        with log.open("a") as stream:
            return subprocess.Popen(
                self.argv(*arguments),
                cwd=self.folder,
                env=self.environment,
                stdout=stream,
                stderr=stream,
                text=True,
                start_new_session=True,
            )


@pytest.fixture
def amdflow(tmp_path: Path) -> CommandLine:
    """The command line in an empty folder, deaf to the user's own config."""
    home = tmp_path / "config-home"
    return CommandLine(tmp_path, {"XDG_CONFIG_HOME": str(home)})


def until(condition: Callable[[], object], *, seconds: float = 30.0, what: str = "it") -> None:
    """Wait for a condition; fail naming ``what`` when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.05)


def marked_children(holder: Path) -> list[int]:
    """Processes that the run described in ``holder.json`` has started."""
    try:
        data = json.loads(holder.read_text())
    except (OSError, ValueError):
        return []
    return watchdog.marked(data["marker"], spare={int(data["pid"])})


@pytest.fixture
def no_orphans(tmp_path: Path) -> Iterator[None]:
    """Fail when a process that carries an amdflow marker and works in the test's folder is left."""
    yield
    until(lambda: not _left(tmp_path), seconds=20, what="the end of every child process")


def _left(folder: Path) -> list[int]:
    found = []
    for pid in watchdog.marked_any():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/cwd").readlink().as_posix().encode()
        except OSError:
            continue
        if str(folder).encode() in words:
            found.append(pid)
    return found
