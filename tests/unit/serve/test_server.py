"""Starting, waiting, ending: with a small Python server in the place of an engine, for what a real one cannot be made to do at will."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from amdflow import process, watchdog
from amdflow.errors import AmdflowError, Cancelled, ExitCode, UsageError
from amdflow.pipeline.runner import Runner
from amdflow.pipeline.workspace import Destination
from amdflow.serve.checks import pick_port
from amdflow.serve.endpoint import Endpoint, boot_id, find_endpoint, record_path, start_ticks, stop
from amdflow.serve.engines.base import Order, Place, ServingEngine
from amdflow.serve.foreground import attend
from amdflow.serve.inspection import inspect_endpoint, read_log
from amdflow.serve.model import Location, inspect
from amdflow.serve.profiles import EngineSettings
from amdflow.serve.server import Server, start, wait_ready
from amdflow.serve.trouble import Trouble
from amdflow.terminal import Terminal

SERVER = """
import http.server, signal, subprocess, sys, threading, time
print('Load weight begin', flush=True)
worker = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
print('worker', worker.pid, flush=True)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *a): pass
port = int(sys.argv[sys.argv.index('--port') + 1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', port), H)
def end(*a):
    print('draining', flush=True)
    threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, end if 'stubborn' not in sys.argv else signal.SIG_IGN)
server.serve_forever()
time.sleep(0.5)
print('drained', flush=True)
worker.kill()
"""


class Stand(ServingEngine):
    """Runs Python code in the place of an engine."""

    name = "stand-in"
    packages = ("x",)
    environments = ("serve",)
    phases = (("Load weight begin", "loading weights"),)

    def __init__(self, code: str, *words: str) -> None:
        self.code, self.words = code, words

    def command(self, order: Order, place: Place) -> list[str]:
        return ["-c", self.code, "--port", str(place.port), *self.words]

    def variables(self, order: Order) -> dict[str, str]:
        return order.variables

    def prepare(self, order: Order, work: Path) -> None:
        return


def launch(
    tmp_path: Path, model: Path, engine: Stand, *, detached: bool = False, trouble: tuple[Trouble, ...] = ()
) -> Server:
    port, _ = pick_port("127.0.0.1", None)
    order = Order(
        inspect(Location(model, "m")), "m", "127.0.0.1", port, Path(sys.executable), "cpu", "1", EngineSettings()
    )
    return start(
        engine, order, folder=tmp_path / "logs", root=tmp_path, profile="cpu", detached=detached, trouble=trouble
    )


def worker_of(server: Server) -> int:
    line = next(line for line in server.log.read_text().splitlines() if line.startswith("worker"))
    return int(line.split()[1])


def gone(*pids: int) -> bool:
    deadline = time.monotonic() + 10
    while any(start_ticks(pid) is not None for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_ready_then_drained_with_everything_it_started(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = launch(tmp_path, model, Stand(SERVER))
    seconds = wait_ready(server, timeout=60, terminal=Terminal(), key="")
    assert seconds > 0
    assert "loading weights" in capsys.readouterr().err
    assert server.endpoint.alive()
    assert not any(server.launch.work.iterdir()), "started in an empty folder"
    assert inspect_endpoint(server.endpoint) == "ready"
    assert server.endpoint.log == "logs/server.log", "relative to the workspace"
    worker = worker_of(server)
    assert server.stop(grace=20) == 0
    assert "drained" in server.log.read_text()
    assert gone(server.child.pid, worker)
    assert inspect_endpoint(server.endpoint) == "gone"
    assert inspect_endpoint(server.endpoint.ended()) == "stopped"


def test_a_server_deaf_to_sigterm_is_killed_after_the_grace_period(tmp_path: Path, model: Path) -> None:
    server = launch(tmp_path, model, Stand(SERVER, "stubborn"))
    wait_ready(server, timeout=60, terminal=Terminal(quiet=True), key="")
    worker = worker_of(server)
    stopped = stop(server.endpoint, grace=0.5)
    server.child.sweep()
    assert stopped.forced
    assert gone(server.child.pid, worker)


def test_an_early_exit_tells_the_engines_own_error_and_the_remedy(tmp_path: Path, model: Path) -> None:
    code = "print('Load weight begin', flush=True); raise ValueError('hipErrorX happened')"
    trouble = (Trouble(pattern="hipErrorX", symptom="X is broken", remedy="mend X", source="x#1"),)
    server = launch(tmp_path, model, Stand(code), trouble=trouble)
    with pytest.raises(AmdflowError) as caught:
        wait_ready(server, timeout=60, terminal=Terminal(quiet=True), key="")
    server.stop(1)
    message = caught.value.message
    assert "stand-in ended with exit status 1" in message
    assert "while loading weights" in message
    assert "ValueError: hipErrorX happened" in message
    assert "known trouble: X is broken (x#1)" in message
    assert "mend X" in message
    assert str(server.log) in caught.value.hint


def test_a_server_that_never_gets_ready_runs_into_its_time_limit(tmp_path: Path, model: Path) -> None:
    server = launch(tmp_path, model, Stand("import time; print('hm', flush=True); time.sleep(60)"))
    with pytest.raises(AmdflowError, match=r"not ready within 1\.5 s, while importing its libraries") as caught:
        wait_ready(server, timeout=1.5, terminal=Terminal(quiet=True), key="")
    assert "ready_timeout" in caught.value.hint
    server.stop(1)
    assert gone(server.child.pid)


def test_a_signal_while_it_starts_is_a_cancellation(tmp_path: Path, model: Path) -> None:
    with process.interruptible():
        server = launch(tmp_path, model, Stand("import time; time.sleep(60)"), detached=True)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Cancelled) as caught:
            wait_ready(server, timeout=60, terminal=Terminal(quiet=True), key="")
        server.stop(1)
    assert caught.value.exit_code is ExitCode.TERMINATED
    assert gone(server.child.pid)


def test_a_record_is_stale_when_start_time_or_boot_differ(tmp_path: Path, model: Path) -> None:
    server = launch(tmp_path, model, Stand("import time; time.sleep(60)"))
    path = record_path(tmp_path)
    server.endpoint.save(path)
    again = Endpoint.load(path)
    assert again == server.endpoint
    assert again.alive()
    other = replace(again, pid_started=again.pid_started + 1)
    assert not other.alive()
    assert not replace(again, boot="another").alive()
    # a process that merely has the same number is never signalled
    stop(replace(other, marker="amdflow-none"), grace=0)
    assert again.alive()
    server.stop(1)


def test_the_record_of_a_running_server_wins_over_the_published_one(tmp_path: Path) -> None:
    def endpoint(pid: int, ticks: int) -> Endpoint:
        return Endpoint(
            "http://x",
            pid,
            ticks,
            boot_id(),
            "m",
            "sglang",
            "1",
            "cpu",
            "cpu",
            "model",
            f"name-{pid}",
            "log",
            (),
            "now",
        )

    assert find_endpoint(tmp_path) is None
    (tmp_path / "serve").mkdir()
    (tmp_path / "serve/endpoint.json").write_text('{"schema": "amdflow/endpoint", "pid"')
    assert find_endpoint(tmp_path) is None, "a torn file counts as none"
    endpoint(99999999, 1).save(tmp_path / "serve/endpoint.json")
    found = find_endpoint(tmp_path)
    assert found is not None
    assert found.pid == 99999999
    endpoint(os.getpid(), start_ticks(os.getpid()) or 0).save(record_path(tmp_path))
    found = find_endpoint(tmp_path)
    assert found is not None
    assert found.pid == os.getpid()


@pytest.mark.parametrize("damage", [{"pid": "1"}, {"pid": 0}, {"command": 3}, {"schema": "other"}])
def test_damaged_records_count_as_none(tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "endpoint.json"
    Endpoint("u", 2, 1, "b", "m", "e", "1", "cpu", "cpu", "m", "n", "l", ("a",), "now").save(path)
    assert Endpoint.load(path) is not None
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    assert Endpoint.load(path) is None


def test_attending_ends_with_the_server_and_says_so_when_it_crashed(tmp_path: Path, model: Path) -> None:
    server = launch(tmp_path, model, Stand("print('RuntimeError: the GPU fell off'); raise SystemExit(9)"))
    with pytest.raises(AmdflowError, match="the server ended with exit status 9") as caught:
        attend(server.endpoint, root=tmp_path, record=record_path(tmp_path), terminal=Terminal(quiet=True))
    assert "the GPU fell off" in caught.value.message
    server.child.sweep()


def test_a_log_is_followed_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1\n2\n3\n")
    assert list(read_log(log, lines=2, more=lambda: False)) == ["2", "3"]
    going = iter([True, False])

    def more() -> bool:
        with log.open("a") as stream:
            stream.write("4\n")
        return next(going)

    assert list(read_log(log, lines=1, more=more)) == ["3", "4", "4"]
    with pytest.raises(AmdflowError, match="is gone"):
        list(read_log(tmp_path / "none", lines=1, more=lambda: False))


def test_a_detached_child_outlives_its_parent_only_once_let_go(tmp_path: Path) -> None:
    program = (
        "import sys, time; from amdflow import process; log = open(sys.argv[1], 'wb'); "
        "child = process.Child([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=log, stderr=log, detached=True); "
        "sys.argv[2] == 'go' and child.let_go(); print(child.pid, child.marker)"
    )
    pids = {}
    for word in ("stay", "go"):
        done = process.run([sys.executable, "-W", "ignore", "-c", program, str(tmp_path / word), word])
        pids[word] = done.stdout.split()
    assert gone(int(pids["stay"][0]))
    assert start_ticks(int(pids["go"][0])) is not None
    assert watchdog.sweep(pids["go"][1]) == 1
    assert gone(int(pids["go"][0]))


def test_a_second_server_of_a_workdir_is_refused(tmp_path: Path, model: Path, request_for: object) -> None:
    from amdflow.config import Project
    from amdflow.serve.config import ServeConfig
    from amdflow.serve.stage import STAGE

    running = launch(tmp_path, model, Stand("import time; time.sleep(60)"))
    running.endpoint.save(record_path(tmp_path / "out"))
    request = request_for(model=str(model))  # type: ignore[operator]
    runner = Runner(tmp_path, Terminal(quiet=True), request.toolchain, dict)
    resolved = Project(tmp_path).resolve("serve", ServeConfig, {"model": str(model)})
    with pytest.raises(AmdflowError, match="already serves m at") as caught:
        runner.run(
            STAGE, resolved, Destination.in_workdir(tmp_path / "out", "serve", STAGE.payload), targets=(), upstream=None
        )
    assert caught.value.hint == "amdflow endpoint stop"
    running.stop(1)
    with pytest.raises(UsageError, match="no model to serve"):
        STAGE.plan(request_for())  # type: ignore[operator]
