"""The search as a whole: within its time, resumable, and careful with what it writes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from amdflow.cli.kernel_tune import sizes_of
from amdflow.errors import AmdflowError, UsageError
from amdflow.kernels.sources import Folders, Kernel, find_kernels, open_folders, read_kernel
from amdflow.kernels.tune import Tuned, Wanted, conclude, search, shapes_of, tasks_for
from amdflow.kernels.tune_space import Outcome, Settings, Task
from amdflow.kernels.tune_static import fitting_cases
from amdflow.kernels.tune_store import Store
from amdflow.kernels.tune_table import remarks, table
from amdflow.terminal import Terminal
from tests.unit.kernels.conftest import SCALE

TUNE = 'TUNE = {"block_m": [1, 2, 4, 8], "threads": [64, 128]}\n'


@dataclass
class Judge:
    """Knows the cost of settings by a formula, and takes its time."""

    cost: Callable[[Settings], float | None] = lambda settings: 8.0 / settings["block_m"] + settings["threads"] / 64
    seconds: float = 0.0
    measures: bool = True
    how: str = "measured on a card"
    batch: int = 2
    tools: Mapping[str, Any] = field(default_factory=dict)
    asked: list[Settings] = field(default_factory=list)

    def outcomes(self, task: Task, batch: Sequence[Settings]) -> list[Outcome]:
        time.sleep(self.seconds)
        self.asked += batch
        costs = [self.cost(settings) for settings in batch]
        return [
            Outcome(one, cost, "" if cost else "takes 70000 bytes of LDS", {"worst": 0.001, "waves": 4})
            for one, cost in zip(batch, costs, strict=True)
        ]


@pytest.fixture
def kernel(folder: Path) -> Kernel:
    text = SCALE.replace('"sizes"', '"typical": {"rows": 4096}, "sizes"')
    (folder / "scale.py").write_text(text + TUNE)
    found = read_kernel(folder / "scale.py")
    assert found is not None
    return found


@pytest.fixture
def task(kernel: Kernel) -> Task:
    return Task(kernel, "gfx942", "bfloat16", {"width": 8}, {"rows": 4096}, {"threads": 128})


@pytest.fixture
def session(folder: Path) -> Any:
    return SimpleNamespace(
        source=folder, folders=Folders((folder,)), run=SimpleNamespace(terminal=Terminal(quiet=True))
    )


def test_everything_is_tried_when_there_is_time(tmp_path: Path, task: Task) -> None:
    judge, store = Judge(), Store(tmp_path, task, {})
    search(task, judge, store, 60.0)
    assert len(store.outcomes) == len(judge.asked) == task.size == 8
    assert judge.asked[0] == {"block_m": 1, "threads": 128}


def test_it_ends_in_time_and_goes_on_where_it_was(tmp_path: Path, task: Task) -> None:
    judge = Judge(seconds=0.05)
    search(task, judge, Store(tmp_path, task, {}), 0.0)
    assert len(judge.asked) == judge.batch
    again = Judge()
    store = Store(tmp_path, task, {})
    search(task, again, store, 60.0)
    assert len(again.asked) == task.size - judge.batch
    assert all(settings not in judge.asked for settings in again.asked)


def test_what_is_known_when_it_is_interrupted_is_kept(tmp_path: Path, task: Task) -> None:
    class Interrupted(Judge):
        def outcomes(self, task: Task, batch: Sequence[Settings]) -> list[Outcome]:
            if self.asked:
                raise KeyboardInterrupt
            return super().outcomes(task, batch)

    with pytest.raises(KeyboardInterrupt):
        search(task, Interrupted(), Store(tmp_path, task, {}), 60.0)
    assert len(Store(tmp_path, task, {}).outcomes) == 2


def test_a_batch_that_comes_to_nothing_does_not_go_round_for_ever(tmp_path: Path, task: Task) -> None:
    class Mute(Judge):
        def outcomes(self, task: Task, batch: Sequence[Settings]) -> list[Outcome]:
            return []

    with pytest.raises(AmdflowError, match="none of 2 settings could be tried"):
        search(task, Mute(), Store(tmp_path, task, {}), 60.0)


def tuned(tmp_path: Path, task: Task, judge: Judge) -> Tuned:
    store = Store(tmp_path / "store", task, {})
    search(task, judge, store, 60.0)
    return Tuned(task, store.outcomes, judge.measures, judge.how, 1.0)


def test_what_was_measured_is_written_with_where_and_when(tmp_path: Path, task: Task, session: Any) -> None:
    judge = Judge()
    result = conclude(session, judge, tuned(tmp_path, task, judge), Wanted())
    path: Path = session.source / "tiles" / "gfx942.yaml"
    assert result.written == path
    line = path.read_text()
    assert line.startswith("scale width=8 dtype=bfloat16: {block_m: 8, threads: 64}  # measured on a card, ")
    assert line.endswith(": 2 ms, before 10\n")


@pytest.mark.parametrize(
    ("judge", "wanted", "note"),
    [
        (Judge(), Wanted(write=False), "not written: --no-write"),
        (Judge(measures=False, how="ranked by a model, not measured"), Wanted(), "not written: --write"),
        (Judge(cost=lambda settings: 1.0 - settings["block_m"] / 1000), Wanted(), "nothing tried is better"),
        (Judge(cost=lambda _settings: None), Wanted(write=True), "none of the settings"),
    ],
)
def test_nothing_is_written_without_leave_or_reason(
    tmp_path: Path, task: Task, session: Any, judge: Judge, wanted: Wanted, note: str
) -> None:
    result = conclude(session, judge, tuned(tmp_path, task, judge), wanted)
    assert result.written is None
    assert result.note.startswith(note)
    assert not (session.source / "tiles" / "gfx942.yaml").exists()


def test_the_table_shows_the_best_and_todays_and_no_time_of_what_was_only_ranked(
    tmp_path: Path, task: Task, session: Any
) -> None:
    judge = Judge(measures=False, how="ranked by a model, not measured")
    result = conclude(session, judge, tuned(tmp_path, task, judge), Wanted())
    columns, rows, _right = table(result, 2)
    assert "ms" not in columns
    assert [row[:4] for row in rows] == [
        ["8", "64", "1", "20 %"],
        ["4", "64", "2", "30 %"],
        ["1", "128", "8", "100 %"],
    ]
    assert [row[-1] for row in rows] == ["best", "", "today"]
    assert remarks(result)[0] == "ranked by a model, not measured; 8 of 8 settings tried, 0 of them out of the race"
    measured = replace(result, measured=True)
    assert table(measured, 1)[1][0][:4] == ["8", "64", "2", "20 %"]


def test_reasons_are_counted_without_their_numbers(tmp_path: Path, task: Task) -> None:
    result = tuned(tmp_path, task, Judge(cost=lambda settings: None if settings["block_m"] > 2 else 1.0))
    assert "out: 4 x takes N bytes of LDS" in remarks(result)


def test_shapes_are_those_of_the_file_or_the_ones_asked_for(folder: Path, kernel: Kernel, session: Any) -> None:
    (folder / "shapes.yaml").write_text("scale: [{width: 16}, {width: 32}]\n")
    assert shapes_of(session, kernel, None) == [({"width": 16}, {"rows": 4096}), ({"width": 32}, {"rows": 4096})]
    assert shapes_of(session, kernel, {"rows": 7})[1] == ({"width": 32}, {"rows": 7})
    assert shapes_of(session, kernel, {"width": 64}) == [({"width": 64}, {"rows": 4096})]
    with pytest.raises(UsageError, match=re.escape("scale has no size 'widht' (did you mean width?)")):
        shapes_of(session, kernel, {"widht": 1})


def test_another_launch_is_another_task_in_the_cache(session: Any, kernel: Kernel) -> None:
    usual, asked = (tasks_for(session, Wanted(("scale",), shape=shape), "gfx942")[0] for shape in (None, {"rows": 7}))
    assert usual.kernel.sha256 == kernel.sha256 != asked.kernel.sha256
    assert asked.kernel.declaration.typical == {"rows": 7}


def test_a_kernel_that_names_nothing_to_try_is_refused_by_name(folder: Path, session: Any) -> None:
    (folder / "scale.py").write_text(SCALE)
    with pytest.raises(UsageError, match="does not say what there is to try"):
        tasks_for(session, Wanted(("scale",)), "gfx942")
    with pytest.raises(UsageError, match="nothing to tune for gfx942"):
        tasks_for(session, Wanted(), "gfx942")
    with pytest.raises(UsageError, match="--shape needs one kernel"):
        tasks_for(session, Wanted(shape={"rows": 7}), "gfx942")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            'TUNE = {"blok_m": [1]}',
            r"TUNE names 'blok_m', which is no tile setting of build \(did you mean block_m\?\)",
        ),
        ('TUNE = {"block_m": 1}', "TUNE.block_m must be a list"),
        ('TUNE = {"block_m": []}', "TUNE.block_m must be a list"),
        ('TUNE = {"block_m": ["big"]}', "TUNE.block_m must be a list"),
    ],
)
def test_a_bad_list_of_what_to_try_is_one_clear_line(folder: Path, line: str, complaint: str) -> None:
    (folder / "scale.py").write_text(f"{SCALE}{line}\n")
    with pytest.raises(UsageError, match=complaint):
        read_kernel(folder / "scale.py")


def test_shipped_kernels_say_what_to_try_and_their_cases_fit_what_is_tuned(tmp_path: Path) -> None:
    source = tmp_path / "kernels"
    opened = SimpleNamespace(folders=open_folders(source, given="kernels"))
    names = {kernel.op for kernel in find_kernels(opened.folders) if kernel.space}
    assert {"gemm", "attention", "rms_norm", "swiglu", "rope", "cross_entropy"} <= names
    found: Sequence[Task] = tasks_for(opened, Wanted(), "gfx942")  # type: ignore[arg-type]
    assert names == {one.kernel.op for one in found}
    assert all(fitting_cases(one) for one in found)


@pytest.mark.parametrize("text", ["hidden=-5", "hidden=0", "hidden", "hidden=", "=5"])
def test_a_size_that_can_not_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not of the form size=value"):
        sizes_of(text)


def test_sizes_are_numbers_yes_or_no_and_words() -> None:
    assert sizes_of("hidden=5120,causal=true,act=gelu") == {"hidden": 5120, "causal": True, "act": "gelu"}
