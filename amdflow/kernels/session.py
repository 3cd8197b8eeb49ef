"""What the commands that run kernels share: the workspace opened and locked, and the GPU that the engine's torch sees."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amdflow.config import nearest
from amdflow.errors import UsageError
from amdflow.kernels.config import KernelsConfig
from amdflow.kernels.item import SCRIPTS
from amdflow.kernels.sources import Folders, open_folders
from amdflow.kernels.stage import STAGE
from amdflow.pipeline.stage import Run
from amdflow.pipeline.workspace import locked
from amdflow.toolchain import Engine


@dataclass(frozen=True)
class Session:
    """An opened workspace, held for one command."""

    config: KernelsConfig
    source: Path
    """The user's folder of kernels; it need not exist."""
    folders: Folders
    engine: Engine
    run: Run

    def environment(self) -> dict[str, str]:
        """Variables for a child that calls the operators: it finds the user's kernels and tiles before the shipped ones."""
        return {
            **self.engine.environment(),
            "AMDFLOW_KERNELS": os.pathsep.join(map(str, self.folders.folders)),
        }

    def gpu(self) -> dict[str, str] | None:
        """``target`` (a gfx name, or ``cuda``) and ``name`` of the GPU that the engine's torch sees; None without one."""
        if self.engine.device == "cpu":
            return None
        argv = [str(self.engine.python), str(SCRIPTS / "check.py"), "probe"]
        done = self.run.call(argv, log="probe.log", extra_env=self.engine.environment())
        line = next((line for line in done.stdout.splitlines() if line.startswith('{"gpu"')), '{"gpu": null}')
        found: dict[str, str] | None = json.loads(line)["gpu"]
        return found


@contextmanager
def open_session(context: Any, flags: Mapping[str, Any], command: str) -> Iterator[Session]:
    """Resolve the ``kernels`` section, take the workspace's lock; the scratch folder goes when the command ends."""
    config = context.project.resolve("kernels", KernelsConfig, flags).value
    source = (context.project.root / Path(config.source).expanduser()).resolve()
    folders = open_folders(source, given=config.source)
    engine = context.toolchain.engine("kernels")
    destination = context.destination(STAGE)
    with locked(destination.private, f"kernels {command}"):
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        scratch = destination.private / "scratch" / f"kernels-{command}-{stamp}"
        logs = destination.private / "logs" / f"kernels-{command}" / stamp
        run = Run(
            scratch,
            scratch / "payload",
            "payload",
            logs,
            destination.cache,
            context.project.root,
            destination.private,
            context.terminal,
        )
        for folder in (run.payload, run.logs, run.cache):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            yield Session(config, source, folders, engine, run)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def check_names(names: Sequence[str], known: Sequence[str], what: str) -> None:
    """Raises UsageError that names the nearest known one for a name that is not known."""
    for name in names:
        if name not in known:
            raise UsageError(
                f"unknown {what} {name!r}{nearest(name, list(known))}", hint=f"{what}s: {', '.join(known)}"
            )
