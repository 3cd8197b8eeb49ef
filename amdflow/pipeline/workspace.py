"""Where a stage writes, and the lock that keeps two runs out of each other's way."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from amdflow import process
from amdflow.errors import AmdflowError, UsageError
from amdflow.pipeline.manifest import ATTEMPT_NAME, MANIFEST_NAME, REPORT_FOLDER

_KEPT_LOGS = 5


@dataclass(frozen=True)
class Destination:
    """The folders of one stage's result.

    Below a workdir, ``evidence`` is ``<workdir>/<stage>`` and the payload lies inside it. With ``--output DIR`` the
    payload *is* DIR and ``evidence`` is ``DIR/amdflow-report``.
    """

    stage: str
    evidence: Path
    payload: Path
    private: Path
    """Scratch, logs, cache and lock; may not be shared by two runs."""

    @classmethod
    def in_workdir(cls, workdir: Path, stage: str, payload: str) -> Destination:
        """The usual place."""
        return cls(stage, workdir / stage, workdir / stage / payload, workdir / ".amdflow")

    @classmethod
    def at_output(cls, output: Path, stage: str) -> Destination:
        """``--output``."""
        evidence = output / REPORT_FOLDER
        return cls(stage, evidence, output, evidence / ".amdflow")

    @property
    def delivered(self) -> bool:
        """Whether the payload lies outside the evidence folder."""
        return self.payload == self.evidence.parent

    @property
    def manifest(self) -> Path:
        """The last good manifest; or that of the last attempt, when none was good yet."""
        return self.evidence / MANIFEST_NAME

    @property
    def attempt(self) -> Path:
        """The last attempt's manifest, when it was not good and a good one is kept."""
        return self.evidence / ATTEMPT_NAME

    def name_in_payload(self, path: str) -> str:
        """The name below the payload of an output with this path in the manifest; empty for evidence."""
        place = Path(os.path.normpath(self.evidence / path))
        if not place.is_relative_to(self.payload) or (self.delivered and place.is_relative_to(self.evidence)):
            return ""
        return place.relative_to(self.payload).as_posix()

    def scratch(self, key: str) -> Path:
        """Where an attempt with this key works."""
        return self.private / "scratch" / f"{self.stage}-{key[:16]}"

    def logs(self, run_id: str) -> Path:
        """Where an attempt's logs stay."""
        return self.private / "logs" / self.stage / run_id

    @property
    def cache(self) -> Path:
        """Kept across runs."""
        return self.private / "cache" / self.stage

    def drop_other_scratch(self, key: str) -> None:
        """Remove what attempts with other keys left behind."""
        for folder in self.private.joinpath("scratch").glob(f"{self.stage}-*"):
            if folder != self.scratch(key):
                shutil.rmtree(folder)

    def drop_old_logs(self) -> None:
        """Keep the logs of the last few attempts."""
        runs = sorted(self.private.joinpath("logs", self.stage).glob("*"))
        for folder in runs[:-_KEPT_LOGS]:
            shutil.rmtree(folder)


@contextmanager
def locked(private: Path, what: str) -> Iterator[None]:
    """Hold the workspace. Raises AmdflowError naming the holder when another run has it.

    The lock goes with its process, however that ends; what a dead holder's children still do is ended first.
    """
    private.mkdir(parents=True, exist_ok=True)
    holder = private / "holder.json"
    lock = FileLock(private / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise AmdflowError(
            f"another amdflow run is at work here: {_describe(holder)}",
            hint=f"wait for it, stop it, or write elsewhere (this place: {private.parent})",
        ) from error
    try:
        _end_leftovers(holder)
        holder.write_text(
            json.dumps(
                {
                    "pid": os.getpid(),
                    "command": " ".join(["amdflow", *sys.argv[1:]]),
                    "what": what,
                    "since": time.strftime("%H:%M:%S"),
                    "marker": process.marker(),
                }
            ),
            encoding="utf-8",
        )
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _end_leftovers(holder: Path) -> None:
    try:
        marker = json.loads(holder.read_text(encoding="utf-8"))["marker"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    process.sweep_marker(str(marker))


def _describe(holder: Path) -> str:
    try:
        data = json.loads(holder.read_text(encoding="utf-8"))
        return f"`{data['command']}` (process {data['pid']}, since {data['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "its holder has not said who it is yet"


def check_writable(folder: Path) -> None:
    """Raise early, naming the folder, when nothing can be written there."""
    probe = folder
    while not probe.exists():
        probe = probe.parent
    if not probe.is_dir():
        raise UsageError(f"{folder}: {probe} is a file, not a folder", hint="choose another --output or workdir")
    read_only = os.statvfs(probe).f_flag & os.ST_RDONLY
    if read_only or not os.access(probe, os.W_OK | os.X_OK):
        why = "lies on a read-only file system" if read_only else "is not writable"
        raise AmdflowError(
            f"cannot write to {folder}: {probe} {why}",
            hint="choose a writable folder with --output or `workdir:` in amdflow.yaml",
        )
