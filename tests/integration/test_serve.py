"""The serve stage with the real SGLang (and transformers) on the CPU, and a random Llama of 0.7 million parameters."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from amdflow.pipeline.manifest import Status, read_manifest
from tests.conftest import CommandLine, Said, marked_children, until
from tests.models import make_tiny_model

START_SECONDS = 600.0


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models"))


@pytest.fixture
def folder(amdflow: CommandLine, tiny_model: Path) -> CommandLine:
    """The command line in a folder that holds the model."""
    shutil.copytree(tiny_model, amdflow.folder / "model")
    return amdflow


class Detached:
    """A workspace whose server was left running, and what the command that started it said."""

    def __init__(self, run: CommandLine, said: Said, port: int) -> None:
        self.run, self.said = run, said
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.endpoint: dict[str, Any] = json.loads((run.folder / "out/serve/endpoint.json").read_text())


@pytest.fixture(scope="module")
def detached(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Detached]:
    """One server for all tests that only look at it; the last of them stops it."""
    root = tmp_path_factory.mktemp("workspace")
    shutil.copytree(tiny_model, root / "model")
    run = CommandLine(root, {"XDG_CONFIG_HOME": str(root / "config-home")})
    port = free_port()
    said = run(
        "serve", "--model", "model", "--port", str(port), "--served-name", "tiny", "--detach", "--format", "json"
    )
    try:
        assert said.code == 0, said.err
        yield Detached(run, said, port)
    finally:
        run("endpoint", "stop", "--grace", "1")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def ask(url: str, *, model: str = "tiny", words: str = "hello", **more: Any) -> httpx.Response:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": words}],
        "temperature": 0,
        "max_tokens": 16,
        **more,
    }
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120, trust_env=False)


def ask_long(url: str, *, model: str = "tiny") -> httpx.Response:
    """A request that takes seconds."""
    return ask(url, model=model, max_tokens=300, ignore_eos=True)


def group(leader: int) -> list[int]:
    """Living members of a process group: an engine's workers rename themselves, and only the group still knows them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[2] == str(leader) and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def nothing_left(leader: int) -> None:
    until(lambda: not group(leader), seconds=20, what="the end of every process of the server")


def test_a_detached_server_leaves_its_evidence(detached: Detached) -> None:
    manifest = detached.said.json
    assert manifest["status"] in (Status.OK, Status.OK_WITH_FINDINGS)
    assert manifest["metrics"]["engine"] == "sglang"
    assert manifest["metrics"]["completion_tokens"] > 0
    assert manifest["metrics"]["ready_seconds"] > 0
    assert any("no HIP" in line for line in manifest["not_exercised"])
    root = detached.run.folder
    assert str(root) not in (root / "out/serve/manifest.json").read_text(), "no absolute path of the workspace"
    roles = {artifact.role for artifact in read_manifest(root / "out/serve/manifest.json").outputs}
    assert roles == {"endpoint", "transcript"}
    smoke = json.loads((root / "out/serve/smoke.json").read_text())
    assert smoke["prompt"]
    assert smoke["text"] == manifest["metrics"]["answer"]
    assert detached.endpoint["url"] == detached.url
    assert (detached.endpoint["engine"], detached.endpoint["served_name"], detached.endpoint["model"]) == (
        "sglang",
        "tiny",
        "model",
    )
    assert (root / detached.endpoint["log"]).is_file()


def test_its_phases_and_address_were_told(detached: Detached) -> None:
    assert "sglang on the CPU: this machine has no AMD GPU" in detached.said.err
    # a small model on a quick machine passes through several between two looks at the log
    phases = ("starting the scheduler", "loading weights", "allocating the KV cache", "warming up")
    assert any(phase in detached.said.err for phase in phases)
    assert f"serving tiny at {detached.url}/v1" in detached.said.err


def test_its_status_and_log_can_be_asked_for(detached: Detached) -> None:
    said = detached.run("endpoint", "status", "--format", "json")
    assert said.code == 0, said.err
    assert said.json["state"] == "ready"
    assert said.json["pid"] == detached.endpoint["pid"]
    assert "fired up" in detached.run("endpoint", "logs").out


def test_it_answers_many_at_once(detached: Detached) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: ask(detached.url, words=f"number {number}", ignore_eos=True), range(16)))
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json()["usage"]["completion_tokens"] == 16 for answer in answers)
    assert ask(detached.url).json()["choices"] == ask(detached.url).json()["choices"], "temperature 0 repeats itself"


def test_a_second_server_and_a_taken_port_are_refused(detached: Detached, folder: CommandLine) -> None:
    again = detached.run("serve", "--model", "model")
    assert again.code == 1
    assert f"already serves tiny at {detached.url}" in again.err
    assert "amdflow endpoint stop" in again.err
    taken = folder("serve", "--model", "model", "--port", str(detached.port))
    assert taken.code == 2
    assert f"port {detached.port} on 127.0.0.1 is taken by" in taken.err
    assert f"pid {detached.endpoint['pid']}" in taken.err


def test_stopping_it_lets_the_request_in_flight_finish(detached: Detached) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask_long, detached.url)
        until(lambda: running_requests(detached.url) >= 1, what="the request's start")
        said = detached.run("endpoint", "stop")
        assert said.code == 0, said.err
        assert answer.result().status_code == 200
    assert "by force" not in said.out
    nothing_left(detached.endpoint["pid"])
    after = detached.run("endpoint", "status")
    assert after.code == 1
    assert after.out.startswith("stopped: tiny")
    assert "was not running any more" in detached.run("endpoint", "stop").out


def running_requests(url: str) -> float:
    for line in httpx.get(f"{url}/metrics", timeout=10, trust_env=False, follow_redirects=True).text.splitlines():
        if line.startswith("sglang:num_running_reqs{"):
            return float(line.rpartition(" ")[2])
    return 0.0


def started_log(run: CommandLine) -> str:
    return (run.folder / "started.log").read_text()


def test_in_the_foreground_sigterm_drains_and_exits_0(folder: CommandLine) -> None:
    port = free_port()
    running = folder.start("serve", "--model", "model", "--port", str(port))
    until(
        lambda: "Ctrl-C stops it" in started_log(folder) or running.poll() is not None,
        seconds=START_SECONDS,
        what="the server's readiness",
    )
    assert running.poll() is None, started_log(folder)
    leader = json.loads((folder.folder / "out/serve/endpoint.json").read_text())["pid"]
    url = f"http://127.0.0.1:{port}"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask_long, url, model="model")
        until(lambda: running_requests(url) >= 1, what="the request's start")
        os.kill(running.pid, signal.SIGTERM)
        assert answer.result().status_code == 200
    assert running.wait(timeout=60) == 0, started_log(folder)
    assert "Traceback" not in started_log(folder)
    assert "stopped after" in started_log(folder)
    nothing_left(leader)


def test_sigkill_while_a_detached_server_starts_leaves_no_orphan(folder: CommandLine) -> None:
    running = folder.start("serve", "--model", "model", "--port", str(free_port()), "--detach")
    logs = folder.folder / "out/.amdflow/logs/serve"
    until(
        lambda: [log for log in logs.glob("*/server.log") if "server_args=" in log.read_text()],
        seconds=START_SECONDS,
        what="the scheduler's start",
    )
    children = [
        pid
        for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
        if parent_of(pid) == running.pid and "watchdog.py" not in command_of(pid)
    ]
    assert len(children) == 1
    running.kill()
    running.wait()
    nothing_left(children[0])
    assert not marked_children(folder.folder / "out/.amdflow/holder.json")
    assert folder("endpoint", "status").code == 1


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def test_transformers_serves_too_and_sigkill_of_amdflow_ends_it(folder: CommandLine) -> None:
    port = free_port()
    running = folder.start(
        "serve", "--model", "model", "--engine", "transformers", "--served-name", "tiny", "--port", str(port)
    )
    until(
        lambda: "Ctrl-C stops it" in started_log(folder) or running.poll() is not None,
        seconds=START_SECONDS,
        what="the server's readiness",
    )
    assert running.poll() is None, started_log(folder)
    leader = json.loads((folder.folder / "out/serve/endpoint.json").read_text())["pid"]
    assert ask(f"http://127.0.0.1:{port}").status_code == 200
    running.kill()
    running.wait()
    nothing_left(leader)
    said = folder("endpoint", "status")
    assert said.code == 1
    assert said.out.startswith("gone: tiny")


def test_an_engine_that_fails_to_start_is_explained(folder: CommandLine) -> None:
    said = folder(
        "serve",
        "--model",
        "model",
        "--engine",
        "transformers",
        "--engine-arg",
        "no-such-thing=1",
        "--port",
        str(free_port()),
    )
    assert said.code == 1
    assert "transformers ended with exit status 2" in said.err
    assert "known trouble: this version of the engine does not know one of the options" in said.err
    assert "server.log" in said.err


def test_bad_input_is_refused_before_anything_starts(folder: CommandLine) -> None:
    weights = folder.folder / "model/model.safetensors"
    for arguments, code, message in (
        (["--model", "nowhere"], 2, "no such model directory"),
        (["--model", "model", "--profile", "mi300"], 2, "did you mean mi300x?"),
        (["--model", "model", "--port", "99999"], 2, "port (from flag)"),
        (["--model", "model", "--engine", "sglnag"], 2, "engine (from flag)"),
        (["--model", "model", "--engine-arg", "port=1"], 2, "use --port"),
        (["--model", "model", "--engine", "vllm"], 5, "vllm is not installed"),
        (["--model", "model", "--image", "rocm/sgl-dev"], 2, "needs an AMD GPU"),
        ([], 2, "no model to serve"),
    ):
        said = folder("serve", *arguments)
        assert said.code == code, said.err
        assert message in said.err
    weights.write_bytes(weights.read_bytes()[:-100])
    said = folder("serve", "--model", "model")
    assert said.code == 2
    assert "model.safetensors is truncated" in said.err
    assert not (folder.folder / "out/.amdflow/logs").exists(), "nothing was started"
    assert folder("endpoint", "status").code == 1
