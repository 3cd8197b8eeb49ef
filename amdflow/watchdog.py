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
from collections.abc import Collection
from contextlib import suppress

MARKER_VARIABLE = "AMDFLOW_RUN_MARKER"


def marked(marker: str, spare: Collection[int] = ()) -> list[int]:
    """Ids of the living processes whose environment carries ``marker``, but for ``spare`` (Linux ``/proc``)."""
    needle = f"{MARKER_VARIABLE}={marker}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in spare:
            with suppress(OSError), open(f"/proc/{entry}/environ", "rb") as stream:
                if needle in stream.read().split(b"\0"):
                    found.append(int(entry))
    return found


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
