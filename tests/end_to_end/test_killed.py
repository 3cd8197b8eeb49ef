"""SIGKILL to the run, and to the program it waits for, in every stage: no orphan, nothing torn, and the next run ends right."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from amdflow.pipeline.manifest import Status, find_manifest
from amdflow.stages import ORDER
from tests.conftest import CommandLine, marked_children, until

pytestmark = pytest.mark.usefixtures("no_orphans")


def holder(project: CommandLine) -> Path:
    return project.folder / "out/.amdflow/holder.json"


def busy(project: CommandLine) -> list[int]:
    """Children that have got past their start."""
    return [pid for pid in marked_children(holder(project)) if not _is_watchdog(pid)]


def _is_watchdog(pid: int) -> bool:
    try:
        return b"watchdog.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


@pytest.mark.parametrize("victim", ["run", "child"])
@pytest.mark.parametrize("stage", ORDER)
def test_a_kill_in_any_stage_is_survived(project: CommandLine, stage: str, victim: str) -> None:
    earlier = ORDER[: ORDER.index(stage)]
    if earlier:
        done = project("run-all", "--until", earlier[-1])
        assert done.code == 0, done.err
    before = {name: find_manifest(project.folder / "out" / name / "manifest.json") for name in earlier}

    running = project.start("run-all", "--from", stage, "--until", stage, "--force")
    until(lambda: busy(project), seconds=60, what=f"a child process in {stage}")
    children = busy(project)
    if victim == "run":
        running.kill()
        running.wait()
    else:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        # a killed compile or translation of one file may be made good by the stage itself; a killed engine may not
        assert running.wait(timeout=120) in (0, 1)
    until(
        lambda: not any(Path(f"/proc/{pid}").exists() and not _zombie(pid) for pid in children),
        what="the end of the children",
    )

    for name, manifest in before.items():
        assert find_manifest(project.folder / "out" / name / "manifest.json") == manifest
    again = project("run-all", "--until", stage)
    assert again.code == 0, again.err
    for name in (*earlier, stage):
        manifest = find_manifest(project.folder / "out" / name / "manifest.json")
        assert manifest is not None
        assert manifest.status in (Status.OK, Status.OK_WITH_FINDINGS)


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
