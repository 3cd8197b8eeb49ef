"""Outcomes on disk: what they belong to, and what an interrupted search finds again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from amdflow.kernels.sources import Kernel
from amdflow.kernels.tune_space import Outcome, Task
from amdflow.kernels.tune_store import Store, store_key

TOOLS = {"tilelang": "0.1.15", "rocm": "7.2.4"}


@pytest.fixture
def task(kernel: Kernel) -> Task:
    kernel = replace(kernel, defaults={"block_m": 1, "threads": 64}, space={"block_m": (1, 2)})
    return Task(kernel, "gfx942", "bfloat16", {"width": 8}, {"rows": 2}, {})


def test_what_was_known_is_known_again(tmp_path: Path, task: Task) -> None:
    first = Store(tmp_path, task, TOOLS)
    first.add(Outcome({"block_m": 2, "wide": True}, 1.5, "", {"waves": 4}))
    first.add(Outcome({"block_m": 4}, None, "takes 70000 bytes of LDS"))
    assert Store(tmp_path, task, TOOLS).outcomes == first.outcomes


def test_lines_that_are_no_outcome_are_passed_over(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path, task, TOOLS)
    store.add(Outcome({"block_m": 2}, 1.5))
    with store.path.open("a") as stream:
        stream.write('{"settings": \n[]\n{"other": 1}\n')
    assert Store(tmp_path, task, TOOLS).outcomes == store.outcomes


def test_a_line_cut_off_by_the_end_of_its_process_is_left_out(tmp_path: Path, task: Task) -> None:
    store = Store(tmp_path, task, TOOLS)
    store.add(Outcome({"block_m": 2}, 1.5))
    with store.path.open("a") as stream:
        stream.write('{"settings": {"block_m": 4}, "sco')
    again = Store(tmp_path, task, TOOLS)
    assert [one.settings for one in again.outcomes] == [{"block_m": 2}]
    again.add(Outcome({"block_m": 8}, 1.0))
    assert [one.settings["block_m"] for one in Store(tmp_path, task, TOOLS).outcomes] == [2, 8]


@pytest.mark.parametrize(
    "change",
    [
        lambda task: replace(task, target="gfx90a"),
        lambda task: replace(task, dtype="float32"),
        lambda task: replace(task, sizes={"width": 16}),
        lambda task: replace(task, run={"rows": 3}),
        lambda task: replace(task, kernel=replace(task.kernel, sha256="0" * 64)),
    ],
)
def test_outcomes_belong_to_one_kernel_target_type_and_shape(task: Task, change: Callable[[Task], Task]) -> None:
    assert store_key(change(task), TOOLS) != store_key(task, TOOLS)


def test_they_depend_on_the_tools_and_on_tiles_that_are_not_searched(task: Task) -> None:
    assert store_key(task, {**TOOLS, "rocm": "7.3"}) != store_key(task, TOOLS)
    assert store_key(task, {**TOOLS, "card": "a GPU"}) != store_key(task, TOOLS)
    assert store_key(replace(task, tiles={"block_m": 2}), TOOLS) == store_key(task, TOOLS)
    assert store_key(replace(task, tiles={"threads": 128}), TOOLS) != store_key(task, TOOLS)
