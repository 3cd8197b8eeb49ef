"""``amdflow serve`` without ``--detach``: stay with the server until it ends or somebody asks for its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from amdflow import process
from amdflow.serve.endpoint import DRAIN_SECONDS, Endpoint, end_rest, reap, stop
from amdflow.serve.server import log_failure
from amdflow.serve.trouble import load_trouble
from amdflow.terminal import Terminal


def attend(endpoint: Endpoint, *, root: Path, record: Path, terminal: Terminal) -> None:
    """Wait for the server's end, or for SIGINT or SIGTERM and then drain it; a second signal cuts the draining short.

    Returns when it ended in an orderly way. Raises AmdflowError when it went down by itself.
    """
    with _signals() as asked:
        while endpoint.alive() and not asked():
            time.sleep(0.2)
        if asked() and endpoint.alive():
            terminal.say(f"draining: requests in flight get up to {DRAIN_SECONDS:.0f} s (again to stop at once)")
            stopped = stop(endpoint, hurry=lambda: asked() > 1)
            endpoint.ended().save(record)
            terminal.success(f"stopped after {stopped.seconds:.1f} s{', by force' if stopped.forced else ''}")
            return
    status = reap(endpoint.pid)
    # what is left of its processes goes with it
    end_rest(endpoint)
    if status not in (0, None, -signal.SIGTERM, 128 + signal.SIGTERM):
        raise log_failure(
            root / endpoint.log, endpoint.engine, load_trouble(root), f"the server {process.describe_status(status)}"
        )
    terminal.say("the server was stopped from outside" if not asked() else "the server has ended")


@contextmanager
def _signals() -> Iterator[_Asked]:
    """Count SIGINT and SIGTERM instead of passing them on: the server's leader alone is told, by :func:`stop`."""
    asked = _Asked(1 if process.cancelled() else 0)
    previous = {number: signal.signal(number, asked.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Asked:
    def __init__(self, count: int) -> None:
        self._count = count

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1

    def __call__(self) -> int:
        return self._count
