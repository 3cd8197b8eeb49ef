"""The one door to child processes.

argv lists only. Every child gets its own process group and carries a marker in its environment, so that whatever
it starts can be found and ended: on cancel, after its leader has gone, and (through ``watchdog.py``) even when this
process is killed with SIGKILL.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Self

from amdflow import watchdog
from amdflow.errors import AmdflowError, Cancelled, EnvironmentProblem

MARKER_VARIABLE = watchdog.MARKER_VARIABLE
_KEEP_TAIL = 400_000
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Completed:
    """A child that has ended. ``returncode`` is negative for a signal, as in :mod:`subprocess`."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False

    @property
    def output(self) -> str:
        """Both streams, stdout first."""
        return self.stdout + self.stderr


class CommandFailed(AmdflowError):
    """A child ended with a status other than 0, or ran past its time limit."""

    def __init__(self, completed: Completed, *, log: Path | None = None) -> None:
        self.completed = completed
        how = "ran past its time limit" if completed.timed_out else describe_status(completed.returncode)
        tail = [line for line in completed.output.splitlines() if line.strip()][-12:]
        message = f"{Path(completed.argv[0]).name} {how}" + "".join(f"\n    {line[:300]}" for line in tail)
        super().__init__(
            message, hint=f"the whole log: {log}" if log else f"the command was: {shlex.join(completed.argv)[:400]}"
        )


def describe_status(returncode: int) -> str:
    """Words for an exit status."""
    if returncode >= 0:
        return f"ended with exit status {returncode}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"was ended by signal {-returncode}"


class Child:
    """A running child and its process group.

    One that is ``detached`` has a marker and a guard of its own, so that :meth:`let_go` can leave it running when this
    process ends; until then it ends with this process like any other.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        detached: bool = False,
    ) -> None:
        _raise_if_cancelled()
        environment = dict(os.environ if env is None else env)
        self._guard = _Guard() if detached else _session.guard
        self._guard.start()
        self.marker = environment[MARKER_VARIABLE] = self._guard.marker
        self.argv = tuple(argv)
        self.started = time.monotonic()
        try:
            self.popen = subprocess.Popen(
                self.argv,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            missing = f"folder {cwd}" if cwd is not None and not cwd.is_dir() else argv[0]
            raise EnvironmentProblem(
                f"cannot start {argv[0]}: {missing} does not exist", hint="amdflow doctor"
            ) from error
        except PermissionError as error:
            raise EnvironmentProblem(
                f"cannot start {argv[0]}: permission denied", hint=f"chmod +x {argv[0]}"
            ) from error
        except OSError as error:
            raise EnvironmentProblem(f"cannot start {argv[0]}: {error.strerror}", hint="amdflow doctor") from error
        self._guard.tell(f"+{self.popen.pid}")
        _session.children.add(self)

    @property
    def pid(self) -> int:
        """Process id of the leader, which is the group's id too."""
        return self.popen.pid

    def poll(self) -> int | None:
        """Exit status, or None while it runs."""
        return self.popen.poll()

    def signal(self, number: int) -> None:
        """Send a signal to the whole process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def stop(self, grace: float = 10.0) -> int:
        """SIGTERM to the group, SIGKILL to what is left after ``grace`` seconds. Returns the leader's status."""
        self.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return self.sweep()

    def sweep(self) -> int:
        """End what is left of the group and reap the leader."""
        self.signal(signal.SIGKILL)
        status = self.popen.wait()
        self._guard.tell(f"-{self.pid}")
        _session.children.discard(self)
        if self._guard is not _session.guard:
            self._guard.dismiss()
        return status

    def let_go(self) -> None:
        """Leave a detached child running after this process has ended."""
        assert self._guard is not _session.guard
        self._guard.dismiss()
        _session.children.discard(self)


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    timeout: float | None = None,
    on_line: Callable[[str], None] | None = None,
    check: bool = True,
    grace: float = 10.0,
    sweep_descendants: bool = False,
) -> Completed:
    """Run a child to its end and return what it said.

    ``env`` replaces the environment (None inherits it). ``log`` receives both streams as they come. ``on_line`` is
    called with each line of either stream, without its newline, from a reader thread. ``timeout`` and ``grace`` are in
    seconds. ``sweep_descendants`` also ends processes that left the group (torchrun's workers do): use it for
    anything that starts processes of its own, one at a time.

    Raises :class:`CommandFailed` (if ``check``), :class:`~amdflow.errors.Cancelled`,
    :class:`~amdflow.errors.EnvironmentProblem` when the program cannot be started.
    """
    with _Tee(log, argv, on_line) as tee:
        child = Child(argv, cwd=cwd, env=env)
        tee.listen(child.popen)
        try:
            timed_out = not _wait(child, timeout)
            status = child.stop(grace) if timed_out else child.sweep()
        except BaseException:
            child.stop(grace)
            raise
        finally:
            if sweep_descendants:
                watchdog.sweep(_session.guard.marker, spare=_session.spared(), grace=grace)
            tee.finish()
    _raise_if_cancelled()
    seconds = time.monotonic() - child.started
    completed = Completed(child.argv, status, "".join(tee.stdout), "".join(tee.stderr), seconds, timed_out)
    if check and (status or timed_out):
        raise CommandFailed(completed, log=log)
    return completed


class _Tee:
    """Reads a child's two streams: keeps their tails, copies them to a log, hands each line on."""

    def __init__(self, log: Path | None, argv: Sequence[str], on_line: Callable[[str], None] | None) -> None:
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._on_line = on_line
        self._lock = threading.Lock()
        self._readers: list[threading.Thread] = []
        self._log: IO[str] | None = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = log.open("a", encoding="utf-8")
            self._log.write(f"$ {shlex.join(argv)}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._log is not None:
            self._log.close()

    def listen(self, popen: subprocess.Popen[bytes]) -> None:
        """Start reading."""
        for pair in ((popen.stdout, self.stdout), (popen.stderr, self.stderr)):
            reader = threading.Thread(target=self._read, args=pair, daemon=True)
            reader.start()
            self._readers.append(reader)

    def finish(self) -> None:
        """Wait until all that was said has been read."""
        for reader in self._readers:
            reader.join(timeout=5)

    def _read(self, source: IO[bytes], keep: list[str]) -> None:
        kept = 0
        for raw in source:
            text = raw.decode("utf-8", "replace")
            if self._log is not None:
                with self._lock:
                    self._log.write(text)
                    self._log.flush()
            keep.append(text)
            kept += len(text)
            while kept > _KEEP_TAIL and len(keep) > 1:
                kept -= len(keep.pop(0))
            if self._on_line is not None:
                self._on_line(text.rstrip("\r\n"))
        source.close()


def _wait(child: Child, timeout: float | None) -> bool:
    """Wait for the leader; False when time ran out. Raises Cancelled when a signal asked us to end."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        _raise_if_cancelled()
        with suppress(subprocess.TimeoutExpired):
            child.popen.wait(timeout=_POLL_SECONDS * 4)
            return True
        if deadline is not None and time.monotonic() > deadline:
            return False


class _Guard:
    """A marker, and the watchdog that ends all who carry it when this process is gone."""

    def __init__(self) -> None:
        self.marker = f"amdflow-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the watchdog (again, if somebody killed it)."""
        with self._lock:
            if self._watchdog is None or self._watchdog.poll() is not None:
                command = [sys.executable, "-I", "-S", watchdog.__file__, self.marker]
                self._watchdog = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def tell(self, line: str) -> None:
        """Name a process group to the watchdog: ``+ID`` when it starts, ``-ID`` when it has ended."""
        with self._lock, suppress(OSError):
            if self._watchdog is not None and self._watchdog.stdin is not None:
                self._watchdog.stdin.write(f"{line}\n".encode())
                self._watchdog.stdin.flush()

    def dismiss(self) -> None:
        """End the watchdog before this process ends: it does nothing then."""
        with self._lock:
            if self._watchdog is not None:
                self._watchdog.kill()
                self._watchdog.communicate()


class _Session:
    """What this process has started: the guard over its children, the children, the signal that came."""

    def __init__(self) -> None:
        self.guard = _Guard()
        self.children: set[Child] = set()
        self.signal_number = 0

    def spared(self) -> set[int]:
        """Processes that a sweep must leave alone: this one and children still wanted."""
        return {os.getpid(), *(child.pid for child in self.children)}


_session = _Session()


def marker() -> str:
    """The marker every child of this process carries in ``AMDFLOW_RUN_MARKER``."""
    return _session.guard.marker


def sweep_marker(stale: str) -> int:
    """End every process that carries another (dead) amdflow process's marker; returns how many there were."""
    return 0 if stale == _session.guard.marker else watchdog.sweep(stale, spare={os.getpid()}, grace=5.0)


def cancelled() -> bool:
    """Whether SIGINT or SIGTERM has asked this process to end."""
    return _session.signal_number != 0


def _raise_if_cancelled() -> None:
    if _session.signal_number:
        raise Cancelled(_session.signal_number)


check_cancelled = _raise_if_cancelled


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into :class:`~amdflow.errors.Cancelled`, raised where work waits.

    The handler only sets a flag and passes SIGTERM to the children: waiting inside a handler dead-locks. A second
    signal kills the children at once.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        again = _session.signal_number != 0
        _session.signal_number = number
        for child in tuple(_session.children):
            child.signal(signal.SIGKILL if again else signal.SIGTERM)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _session.signal_number = 0
