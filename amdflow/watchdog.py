"""Ends the processes an amdflow run started, when the run itself can no longer do it.

Run as ``python watchdog.py MARKER`` with a pipe on standard input whose other end the amdflow process holds. When that
end closes, for whatever reason, every process of this user that carries MARKER in its environment is ended.
Standard library only: it is started with ``-I -S``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress

MARKER_VARIABLE = "AMDFLOW_RUN_MARKER"


def marked(marker: str, spare: Collection[int] = ()) -> list[int]:
    """Ids of the living processes whose environment carries ``marker``, but for ``spare`` (Linux ``/proc``)."""
    needle = f"{MARKER_VARIABLE}={marker}".encode()
    return [pid for pid, environment in _environments() if pid not in spare and needle in environment]


def marked_any() -> list[int]:
    """Ids of the living processes that carry any marker at all."""
    prefix = f"{MARKER_VARIABLE}=".encode()
    return [pid for pid, environment in _environments() if any(entry.startswith(prefix) for entry in environment)]


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open(f"/proc/{entry}/environ", "rb") as stream:
                yield int(entry), stream.read().split(b"\0")


def sweep(marker: str, *, spare: Collection[int] = (), grace: float = 5.0) -> int:
    """SIGTERM to every marked process, SIGKILL to those left after ``grace`` seconds. Returns how many there were."""
    first = victims = marked(marker, spare)
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 2.0)):
        for pid in victims:
            with suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + patience
        while victims and time.monotonic() < deadline:
            time.sleep(0.05)
            victims = marked(marker, spare)
        if not victims:
            break
    return len(first)


def main() -> None:
    """Wait for the pipe to close, then sweep."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1024):
        pass
    sweep(sys.argv[1], spare={os.getpid()})


if __name__ == "__main__":
    main()
