"""The one funnel of errors: what a person is told, and the exit code a script sees.

Raise an :class:`AmdflowError` anywhere; ``amdflow.cli.app.main`` is the only place that prints one and exits.
"""

from __future__ import annotations

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """What a process exit status means, for every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FINDINGS = 3
    STALE = 4
    ENVIRONMENT = 5
    INTERRUPTED = 130
    TERMINATED = 143


class AmdflowError(Exception):
    """A failure a person can act on.

    ``message`` says what happened and where, ``hint`` what to type or change next.
    """

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "", exit_code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(AmdflowError):
    """Bad input: a flag, a path, a config value."""

    exit_code = ExitCode.USAGE


class EnvironmentProblem(AmdflowError):
    """Something the machine should have is missing or does not fit."""

    exit_code = ExitCode.ENVIRONMENT


class Cancelled(AmdflowError):
    """SIGINT or SIGTERM ended the work on request."""

    def __init__(self, signal_number: int) -> None:
        interrupted = signal_number == 2
        super().__init__(
            "cancelled by Ctrl-C" if interrupted else f"cancelled by signal {signal_number}",
            hint="every child process was ended; run the same command again to go on",
            exit_code=ExitCode.INTERRUPTED if interrupted else ExitCode.TERMINATED,
        )


_OS_ADVICE = {
    errno.ENOSPC: ("the disk is full", "free some space (df -h shows where), then run the same command again"),
    errno.EDQUOT: ("your disk quota is used up", "free some space, then run the same command again"),
    errno.EROFS: (
        "the file system is read-only",
        "choose a writable folder with --output or `workdir:` in amdflow.yaml",
    ),
    errno.EACCES: ("permission denied", "check the owner and mode with `ls -ld`, or choose another folder"),
    errno.EPERM: ("operation not permitted", "check the owner and mode with `ls -ld`, or choose another folder"),
    errno.ENAMETOOLONG: ("the file name is too long for this file system", "shorten the path"),
    errno.EMFILE: ("too many open files", "raise the limit with `ulimit -n 4096` or lower --jobs"),
}


def from_os_error(error: OSError, *, where: object = None) -> AmdflowError:
    """The clear form of an :class:`OSError` that nobody handled closer to its cause.

    ``where`` is named when the error names no file of its own. Of a copy's two files the second is named: it is the
    one that was being written.
    """
    place = error.filename2 or error.filename or where
    prefix = f"{place}: " if place else ""
    said, hint = _OS_ADVICE.get(error.errno or 0, (error.strerror or str(error), "check the path and try again"))
    return AmdflowError(f"{prefix}{said}", hint=hint)
