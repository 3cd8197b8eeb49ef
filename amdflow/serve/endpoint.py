"""The record of a server, whether it still runs, and how it is ended.

A process id alone says little: ids are used again. So the record holds the leader's start time (clock ticks since boot)
and the boot's id too, and only a process that fits all three is ever signalled.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amdflow import process, watchdog
from amdflow.files import write_json

ENDPOINT_NAME = "endpoint.json"
SCHEMA = "amdflow/endpoint"
DRAIN_SECONDS = 60.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Endpoint:
    """A server that was started, and everything needed to find and end it. Paths are relative to the workspace where they lie inside it."""

    url: str
    pid: int
    pid_started: int
    boot: str
    marker: str
    engine: str
    engine_version: str
    device: str
    profile: str
    model: str
    served_name: str
    log: str
    command: tuple[str, ...]
    started: str
    container: str = ""
    stopped: str = ""

    def save(self, path: Path) -> None:
        """Write atomically."""
        write_json(path, {"schema": SCHEMA, "version": "1.0", **asdict(self)})

    @classmethod
    def load(cls, path: Path) -> Endpoint | None:
        """Read a record; None when there is none or it is damaged."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            known = {key: value for key, value in data.items() if key in cls.__dataclass_fields__}
            record = cls(**(known | {"command": tuple(known["command"])}))
            return record if data["schema"] == SCHEMA and isinstance(record.pid, int) and record.pid > 1 else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def alive(self) -> bool:
        """Whether the very process that was started still runs."""
        return not self.stopped and self.boot == boot_id() and start_ticks(self.pid) == self.pid_started

    def ended(self) -> Endpoint:
        """The record of a server that was stopped just now."""
        return replace(self, stopped=datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class Stopped:
    """How a server ended. ``status`` is known to its parent only; ``forced``: it was killed after the grace period."""

    status: int | None
    forced: bool
    seconds: float


def record_path(workdir: Path) -> Path:
    """Where a server left running is written down as soon as it answers; the copy in ``serve/`` comes when its stage is published."""
    return workdir / ".amdflow" / "cache" / "serve" / ENDPOINT_NAME


def find_endpoint(workdir: Path) -> Endpoint | None:
    """The server of a workdir: the one that runs, else the last one that did."""
    records = [Endpoint.load(path) for path in (record_path(workdir), workdir / "serve" / ENDPOINT_NAME)]
    known = [record for record in records if record is not None]
    return next((record for record in known if record.alive()), known[0] if known else None)


def stop(endpoint: Endpoint, *, grace: float = DRAIN_SECONDS, hurry: Callable[[], bool] = lambda: False) -> Stopped:
    """SIGTERM to the leader alone, so that requests in flight are finished; after ``grace`` seconds (or when ``hurry`` says so) SIGKILL to all.

    Only the leader gets SIGTERM: SGLang takes the end of a scheduler for a crash and drops every request.
    """
    began = time.monotonic()
    if not endpoint.alive():
        end_rest(endpoint)
        return Stopped(reap(endpoint.pid), forced=False, seconds=0.0)
    with suppress(ProcessLookupError):
        os.kill(endpoint.pid, signal.SIGTERM)
    while endpoint.alive() and time.monotonic() - began < grace and not hurry():
        time.sleep(_POLL_SECONDS)
    forced = endpoint.alive()
    # its group too: engines rename their workers, and with the name goes the marker in their environment
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(endpoint.pid, signal.SIGKILL)
    status = reap(endpoint.pid, wait=True)
    end_rest(endpoint)
    return Stopped(status, forced, time.monotonic() - began)


def end_rest(endpoint: Endpoint) -> None:
    """End what a server whose leader is gone has left behind."""
    watchdog.sweep(endpoint.marker, spare={os.getpid()}, grace=2.0)
    if endpoint.container:
        from amdflow.serve.container import removal_argv, runtime

        process.run(removal_argv(runtime(), endpoint.container), check=False, timeout=60)


def reap(pid: int, *, wait: bool = False) -> int | None:
    """The exit status of a child of this process that has ended; None when it is another's child or still runs."""
    try:
        found, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if found else None


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    """This boot of this machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
