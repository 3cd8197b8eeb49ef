"""Start a server and wait until it is ready: phases from its log, early exits explained, a time limit kept."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from amdflow import process
from amdflow.errors import AmdflowError
from amdflow.files import portable
from amdflow.serve.checks import url_of
from amdflow.serve.endpoint import Endpoint, boot_id, start_ticks, stop
from amdflow.serve.engines.base import KEY_FILE, Order, ServingEngine
from amdflow.serve.launch import Launch, assemble
from amdflow.serve.trouble import Trouble, diagnose
from amdflow.terminal import Terminal

if TYPE_CHECKING:
    import httpx

_POLL_SECONDS = 0.4
_SPEAK_SECONDS = 15.0
_TAIL_BYTES = 200_000


@dataclass(frozen=True)
class Server:
    """A started server."""

    engine: ServingEngine
    child: process.Child
    launch: Launch
    log: Path
    endpoint: Endpoint
    trouble: tuple[Trouble, ...]

    def stop(self, grace: float) -> int | None:
        """Drain and end it, with everything it started. Returns its exit status."""
        stopped = stop(self.endpoint, grace=grace)
        self.child.sweep()
        self.forget_key()
        return stopped.status

    def forget_key(self) -> None:
        """Remove the file with the key: the engine reads it once, when it starts."""
        (self.launch.work / KEY_FILE).unlink(missing_ok=True)


def start(
    engine: ServingEngine,
    order: Order,
    *,
    folder: Path,
    root: Path,
    profile: str,
    detached: bool,
    trouble: tuple[Trouble, ...],
) -> Server:
    """Start ``order`` with its log and working directory below ``folder``. ``detached``: it may be let go of later."""
    launch = assemble(engine, order, folder / "work")
    log = folder / "server.log"
    # engines log prompts, and some of them the key they were given
    log.touch(mode=0o600)
    with log.open("ab") as stream:
        child = process.Child(
            launch.argv,
            cwd=launch.work,
            env={**os.environ, **launch.variables},
            stdout=stream,
            stderr=stream,
            detached=detached,
        )
    endpoint = Endpoint(
        url=url_of(order.host, order.port),
        pid=child.pid,
        pid_started=start_ticks(child.pid) or 0,
        boot=boot_id(),
        marker=child.marker,
        engine=engine.name,
        engine_version=order.version,
        device=order.device,
        profile=profile,
        model=portable(order.model.folder, root),
        served_name=order.served_name,
        log=portable(log, root),
        command=tuple(launch.argv),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        container=launch.container,
    )
    return Server(engine, child, launch, log, endpoint, trouble)


def wait_ready(server: Server, *, timeout: float, terminal: Terminal, key: str) -> float:
    """Wait until the health check passes; returns the seconds since its start.

    Raises AmdflowError with the engine's own error lines and the known trouble they match, or Cancelled.
    """
    import httpx

    began = server.child.started
    tail = _Tail(server.log)
    watch = _Phases(server.engine, terminal, began)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # proxies of the environment are for the world outside, not for a server on this machine
    with httpx.Client(trust_env=False, timeout=5.0, headers=headers) as client:
        while True:
            process.check_cancelled()
            watch.read(tail.lines())
            status = server.child.poll()
            seconds = time.monotonic() - began
            if status is not None:
                process.check_cancelled()
                raise failure(
                    server,
                    f"{server.engine.name} {process.describe_status(status)} after {seconds:.0f} s, {watch.doing}",
                )
            if _healthy(client, f"{server.endpoint.url}{server.engine.health}"):
                server.forget_key()
                return seconds
            if seconds > timeout:
                raise failure(
                    server, f"{server.engine.name} was not ready within {timeout:g} s, {watch.doing}", slow=True
                )
            time.sleep(_POLL_SECONDS)


def failure(server: Server, what: str, *, slow: bool = False) -> AmdflowError:
    """An error that says what the log tells."""
    return log_failure(server.log, server.engine.name, server.trouble, what, slow=slow)


def log_failure(log: Path, engine: str, trouble: tuple[Trouble, ...], what: str, *, slow: bool = False) -> AmdflowError:
    """``what``, the engine's own error lines, and known trouble with its remedies."""
    found = diagnose(read_tail(log).splitlines(), engine, trouble)
    message = what + "".join(f"\n    {line}" for line in found.lines)
    for entry in found.known:
        message += f"\n  known trouble: {entry.symptom}{f' ({entry.source})' if entry.source else ''}\n    what helps: {entry.remedy}"
    return AmdflowError(
        message, hint=f"give it more time with ready_timeout; the whole log: {log}" if slow else f"the whole log: {log}"
    )


def read_tail(log: Path) -> str:
    """The end of a log."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _healthy(client: httpx.Client, url: str) -> bool:
    import httpx

    try:
        return client.get(url).status_code == 200
    except httpx.HTTPError:
        return False


class _Tail:
    """New whole lines of a growing file."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset, self._rest = path, 0, b""

    def lines(self) -> list[str]:
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = self._rest + stream.read()
            self._offset = stream.tell()
        *whole, self._rest = data.split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]


class _Phases:
    """What a starting server is doing: told when it changes, and now and then in between."""

    def __init__(self, engine: ServingEngine, terminal: Terminal, began: float) -> None:
        self._phases = list(engine.phases)
        self._terminal, self._began = terminal, began
        self._spoke = began
        self._words = "importing its libraries"

    @property
    def doing(self) -> str:
        """For a sentence."""
        return f"while {self._words}"

    def read(self, lines: list[str]) -> None:
        """Look for the next phases in new log lines."""
        before = self._words
        for line in lines:
            found = next((index for index, (text, _words) in enumerate(self._phases) if text in line), None)
            if found is not None:
                self._words = self._phases[found][1]
                del self._phases[: found + 1]
        now = time.monotonic()
        if self._words != before or now - self._spoke > _SPEAK_SECONDS:
            self._spoke = now
            self._terminal.say(f"  {now - self._began:5.1f} s  {self._words}", style="dim")
