"""Measuring candidates in child processes that hang and crash. No GPU here, so the child is a stand-in that obeys orders."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.kernels.sources import Case, Kernel
from amdflow.kernels.tune_card import Card
from amdflow.kernels.tune_space import Outcome, Task
from amdflow.pipeline.stage import Run
from amdflow.terminal import Terminal
from amdflow.toolchain import Engine

CHILD = """\
#!{python}
import json, os, signal, sys
mode, orders = sys.argv[2], json.load(open(sys.argv[3]))
for job in orders["jobs"]:
    print(json.dumps({{"start": job["id"]}}), flush=True)
    threads = job["build"]["threads"]
    if threads == 1 and mode == "compile":
        os.kill(os.getpid(), signal.SIGSEGV)
    if threads == 2 and mode == "measure":
        sys.stderr.write("Timeout (0:02:00)!\\n")
        sys.exit(1)
    if threads == 3 and mode == "measure":
        print(json.dumps({{"id": job["id"], "error": "ValueError: wrong numbers: an error of 1.0"}}), flush=True)
        continue
    assert mode == "compile" or threads != 1
    print(json.dumps({{"id": job["id"], "ms": threads / 10, "worst": 0.001}}), flush=True)
"""


@pytest.fixture
def task(kernel: Kernel) -> Task:
    cases = (Case(build={"width": 77}, run={"rows": 3}), Case(build={"width": 8, "wide": True}, run={"rows": 5}))
    kernel = replace(kernel, cases=cases, defaults={"threads": 64}, space={"threads": (1, 2, 3, 64, 128)})
    return Task(kernel, "cuda", "bfloat16", {"width": 8}, {"rows": 4096}, {"block_m": 2})


def card(tmp_path: Path, child: str) -> Card:
    python = tmp_path / "python"
    python.write_text(child.format(python=sys.executable))
    python.chmod(0o755)
    engine = Engine("kernels", python, {}, "cuda")
    folders = [tmp_path / name for name in ("scratch", "payload", "logs", "cache")]
    for folder in folders:
        folder.mkdir()
    scratch, payload, logs, cache = folders
    run = Run(scratch, payload, "payload", logs, cache, tmp_path, tmp_path, Terminal(quiet=True))
    session: Any = SimpleNamespace(engine=engine, run=run, environment=dict)
    return Card(session, "A card", 2)


def test_those_that_crash_hang_or_compute_the_wrong_thing_are_out_and_the_rest_is_measured(
    tmp_path: Path, task: Task
) -> None:
    batch = [{"threads": threads} for threads in (1, 64, 2, 3, 128)]
    found = {one.settings["threads"]: one for one in card(tmp_path, CHILD).outcomes(task, batch)}
    assert found[1] == Outcome({"threads": 1}, None, "its process was ended by SIGSEGV")
    assert found[2] == Outcome({"threads": 2}, None, "took longer than 120 s")
    assert found[3].reason.startswith("ValueError: wrong numbers")
    assert (found[64].score, found[128].score) == (6.4, 12.8)
    assert found[64].facts == {"worst": 0.001}


def test_a_child_that_does_not_start_is_a_problem_of_the_environment(tmp_path: Path, task: Task) -> None:
    with pytest.raises(EnvironmentProblem, match="TileLang does not start"):
        card(tmp_path, "#!{python}\nraise SystemExit(3)\n").outcomes(task, [{"threads": 64}])


def test_an_order_names_all_that_is_built_run_and_checked(tmp_path: Path, task: Task) -> None:
    job = card(tmp_path, CHILD)._job(task, {"threads": 128}, "0")
    assert job["build"] == {"dtype": "bfloat16", "width": 8, "block_m": 2, "threads": 128}
    assert job["sizes"] == {"rows": 4096, "width": 8}
    assert job["cases"] == [{"rows": 3}]  # the other is of another mode
    assert job["allowed"] == 2.0**-7
