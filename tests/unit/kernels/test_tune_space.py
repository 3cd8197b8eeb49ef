"""In which order settings are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amdflow.kernels.sources import Kernel
from amdflow.kernels.tune_space import Outcome, Task, best_of, next_batch


@pytest.fixture
def task(kernel: Kernel) -> Task:
    kernel = replace(
        kernel,
        defaults={"block_m": 1, "threads": 64, "wide": False},
        space={"block_m": (1, 2, 4), "threads": (64, 128), "wide": (False, True)},
    )
    return Task(kernel, "gfx942", "bfloat16", {"width": 8}, {"rows": 2}, {"block_m": 2})


def outcome(score: float | None, **settings: int) -> Outcome:
    return Outcome(settings, score, "" if score else "does not fit")


def test_todays_settings_are_the_tile_files_over_the_kernels_own(task: Task) -> None:
    assert task.today == {"block_m": 2, "threads": 64, "wide": False}
    assert task.size == 12
    assert task.title == "scale bf16 width=8 rows=2 for gfx942"


def test_todays_come_first_then_those_that_differ_least(task: Task) -> None:
    batch = next_batch(task, [], 12)
    assert batch[0] == task.today
    changes = [sum(settings[name] != task.today[name] for name in task.today) for settings in batch]
    assert changes == sorted(changes)
    assert len({str(settings) for settings in batch}) == task.size


def test_a_value_of_today_that_is_in_no_list_is_tried_too(task: Task) -> None:
    assert replace(task, tiles={"block_m": 3}).values("block_m") == (1, 2, 4, 3)


def test_the_search_moves_to_the_best_so_far_and_tries_nothing_twice(task: Task) -> None:
    tried = [outcome(5.0, **task.today), outcome(3.0, block_m=4, threads=64, wide=False)]
    batch = next_batch(task, tried, 3)
    assert all(settings not in [one.settings for one in tried] for settings in batch)
    assert {"block_m": 4, "threads": 128, "wide": False} in batch
    assert {"block_m": 2, "threads": 128, "wide": False} not in batch


def test_a_value_that_has_only_failed_comes_last(task: Task) -> None:
    tried = [outcome(5.0, **task.today), outcome(None, **{**task.today, "wide": True})]
    batch = next_batch(task, tried, 12)
    assert [settings["wide"] for settings in batch] == [False] * 5 + [True] * 5
    saved = [*tried, outcome(7.0, block_m=1, threads=64, wide=True)]
    assert [settings["wide"] for settings in next_batch(task, saved, 12)] != [False] * 5 + [True] * 4


def test_nothing_is_left_when_all_is_known(task: Task) -> None:
    assert not next_batch(task, [outcome(1.0, **settings) for settings in next_batch(task, [], 12)], 5)


def test_the_best_is_the_lowest_score_of_those_in_the_race() -> None:
    assert best_of([]) is None
    assert best_of([outcome(None, a=1)]) is None
    found = best_of([outcome(None, a=1), outcome(2.0, a=2), outcome(1.0, a=3)])
    assert found is not None
    assert found.settings == {"a": 3}
