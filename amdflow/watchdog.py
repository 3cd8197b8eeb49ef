"""Ends the processes an amdflow run started, when the run itself can no longer do it.

Run as ``python watchdog.py MARKER`` with a pipe on standard input whose other end the amdflow process holds. When that
end closes, for whatever reason, every process of this user that carries MARKER in its environment is ended, and so is
every member of the process groups that the pipe named: a program that renames itself (setproctitle) overwrites its
environment, and with it the marker.
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


def members(groups: Collection[int], spare: Collection[int] = ()) -> list[int]:
    """Ids of the living processes in these process groups, but for ``spare``."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in spare:
            with suppress(OSError), open(f"/proc/{entry}/stat", "rb") as stream:
                state, _parent, group = stream.read().rpartition(b")")[2].split()[:3]
                if state != b"Z" and int(group) in groups:
                    found.append(int(entry))
    return found


def sweep(marker: str, *, groups: Collection[int] = (), spare: Collection[int] = (), grace: float = 5.0) -> int:
    """SIGTERM to every marked process and every member of ``groups``, SIGKILL to those left after ``grace`` seconds.

    Returns how many there were.
    """

    def left() -> set[int]:
        return {*marked(marker, spare), *(members(groups, spare) if groups else ())}

    victims = left()
    count = len(victims)
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 2.0)):
        for pid in victims:
            with suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + patience
        while victims and time.monotonic() < deadline:
            time.sleep(0.05)
            victims = left()
        if not victims:
            break
    return count


def main() -> None:
    """Note the groups that the pipe names (``+ID`` when one starts, ``-ID`` when it has ended) until it closes, then sweep."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    with open(0, "rb", buffering=0) as pipe:
        for line in pipe:
            change = groups.add if line.startswith(b"+") else groups.discard
            change(int(line[1:]))
    sweep(sys.argv[1], groups=groups, spare={os.getpid()})


if __name__ == "__main__":
    main()
