"""Children: what they say, how they end, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amdflow import process, watchdog
from amdflow.errors import Cancelled, EnvironmentProblem, ExitCode

PYTHON = sys.executable


def test_streams_are_kept_apart_logged_and_handed_on_line_by_line(tmp_path: Path) -> None:
    lines: list[str] = []
    code = "import sys; print('out'); print('err', file=sys.stderr); print('more')"
    done = process.run([PYTHON, "-c", code], log=tmp_path / "logs" / "x.log", on_line=lines.append)
    assert (done.stdout, done.stderr, done.returncode) == ("out\nmore\n", "err\n", 0)
    assert sorted(lines) == ["err", "more", "out"]
    log = (tmp_path / "logs" / "x.log").read_text()
    assert log.startswith("$ ")
    assert "out\n" in log
    assert "err\n" in log


def test_a_failing_child_raises_with_its_last_words() -> None:
    with pytest.raises(process.CommandFailed) as caught:
        process.run([PYTHON, "-c", "import sys; print('the reason', file=sys.stderr); sys.exit(7)"])
    assert "exit status 7" in caught.value.message
    assert "the reason" in caught.value.message
    assert process.run([PYTHON, "-c", "raise SystemExit(7)"], check=False).returncode == 7


def test_a_missing_program_and_a_missing_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="no-such-program does not exist"):
        process.run(["no-such-program"])
    with pytest.raises(EnvironmentProblem, match="folder .*gone does not exist"):
        process.run([PYTHON, "-c", ""], cwd=tmp_path / "gone")


def test_a_time_limit_ends_the_child_and_what_it_started() -> None:
    code = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); print(p.pid, flush=True); time.sleep(60)"
    done = process.run([PYTHON, "-c", code], timeout=4.0, check=False, grace=1.0)
    assert done.timed_out
    _until(lambda: not _alive(int(done.stdout)))


def test_descendants_that_left_the_group_are_swept() -> None:
    code = (
        "import subprocess, sys; "
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print(p.pid)"
    )
    done = process.run([PYTHON, "-c", code], sweep_descendants=True)
    _until(lambda: not _alive(int(done.stdout)))


def test_a_signal_becomes_cancelled_with_the_right_exit_code() -> None:
    for number, code in ((signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)):
        with process.interruptible(), pytest.raises(Cancelled) as caught:
            process.run(
                [PYTHON, "-c", f"import os, signal, time; os.kill({os.getpid()}, {int(number)}); time.sleep(60)"]
            )
        assert caught.value.exit_code is code
    assert not process.cancelled()


def test_a_killed_parent_leaves_no_orphan(tmp_path: Path) -> None:
    """SIGKILL to the process that called ``run``: the watchdog ends child and grandchildren.

    One grandchild has a session of its own but the marker, the other has lost the marker but stays in the group.
    """
    pids = tmp_path / "pids"
    grandchild = "import time; time.sleep(60)"
    child = (
        "import os, subprocess, sys, time; "
        f"p = subprocess.Popen([sys.executable, '-c', {grandchild!r}], start_new_session=True); "
        f"q = subprocess.Popen([sys.executable, '-c', {grandchild!r}], env={{}}); "
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{p.pid}} {{q.pid}}'); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [PYTHON, "-c", f"from amdflow import process; process.run([{PYTHON!r}, '-c', {child!r}])"]
    )
    _until(lambda: pids.is_file() and len(pids.read_text().split()) == 3)
    started = [int(pid) for pid in pids.read_text().split()]
    assert all(_alive(pid) for pid in started)
    parent.kill()
    parent.wait()
    _until(lambda: not any(_alive(pid) for pid in started))


def test_a_detached_child_carries_no_marker(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        child = process.Child([PYTHON, "-c", "import time; time.sleep(60)"], stdout=log, stderr=log, detached=True)
    try:
        assert child.pid not in watchdog.marked(process.marker())
    finally:
        child.stop(grace=1.0)
    _until(lambda: not _alive(child.pid))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(condition: object, seconds: float = 15.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
