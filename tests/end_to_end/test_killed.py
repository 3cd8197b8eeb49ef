"""SIGKILL to the run, and to the program it waits for, in every stage: no orphan, nothing torn, and the next run ends right."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from amdflow.files import sha256_file
from amdflow.pipeline.manifest import Manifest, Status, find_manifest
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


@pytest.fixture
def unfinished(amdflow: CommandLine, exported: Path, request: pytest.FixtureRequest) -> CommandLine:
    """A project in which everything before the stage is done, and the stage and those after it never ran."""
    shutil.copytree(exported, amdflow.folder, dirs_exist_ok=True)
    for name in ORDER[ORDER.index(request.param) :]:
        shutil.rmtree(amdflow.folder / "out" / name, ignore_errors=True)
        shutil.rmtree(amdflow.folder / "out/.amdflow/cache" / name, ignore_errors=True)
    return amdflow


@pytest.mark.parametrize("victim", ["run", "child"])
@pytest.mark.parametrize(("unfinished", "stage"), [(name, name) for name in ORDER], indirect=["unfinished"])
def test_a_kill_in_any_stage_is_survived(unfinished: CommandLine, stage: str, victim: str) -> None:
    project, earlier = unfinished, ORDER[: ORDER.index(stage)]
    before = {name: manifest_of(project, name) for name in earlier}

    running = project.start("run-all", "--from", stage, "--until", stage)
    until(lambda: busy(project), seconds=60, what=f"a child process in {stage}")
    time.sleep(1.0)  # into the work
    children = busy(project)
    if victim == "run":
        running.kill()
        running.wait()
    else:
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # one file's translation or compile is tried again or reported by the stage itself; a killed engine ends it
        assert running.wait(timeout=120) in (0, 1, 5)
    until(lambda: all(_gone(pid) for pid in children), what="the end of the children")

    torn = manifest_of(project, stage)
    assert torn is None or torn.status is Status.FAILED or victim == "child"
    again = project("run-all", "--until", stage)
    assert again.code == 0, again.err
    assert {name: manifest_of(project, name) for name in earlier} == before
    manifest = manifest_of(project, stage)
    assert manifest is not None
    assert manifest.status.good
    for artifact in manifest.outputs:
        assert sha256_file(project.folder / "out" / stage / artifact.path) == artifact.sha256


def manifest_of(project: CommandLine, stage: str) -> Manifest | None:
    """What the stage left."""
    return find_manifest(project.folder / "out" / stage / "manifest.json")


def _gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or _zombie(pid)


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
