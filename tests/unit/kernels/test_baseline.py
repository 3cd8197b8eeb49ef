"""A kernel that got much worse is named, with both figures; everything else passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import UsageError
from amdflow.kernels.baseline import NAME, Baseline, name_of, read_baseline, write_baseline

TOOLS = {"tilelang": "0.1.15", "rocm": "7.2.4", "torch": "2.13.0"}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "target": "gfx942",
        "kernel": "attention",
        "dtype": "bfloat16",
        "sizes": {"head": 128, "causal": True},
        "vgprs": 120,
        "agprs": 0,
        "spills": 0,
        "lds_static": 512,
        "lds_dynamic": 1024,
        "waves_per_simd": 4,
        "matrix_instructions": 32,
        **changes,
    }


@pytest.fixture
def baseline(tmp_path: Path) -> Baseline:
    write_baseline(tmp_path, [row()], TOOLS)
    found = read_baseline(tmp_path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"spills": 3}, "spills 3 registers, 0 before"),
        ({"waves_per_simd": 2}, "2 waves a SIMD, 4 before"),
        ({"matrix_instructions": 0}, "no matrix instructions, 32 before"),
    ],
)
def test_what_got_much_worse_is_named_with_both_figures(
    baseline: Baseline, change: dict[str, int], complaint: str
) -> None:
    assert baseline.regressions([row(**change)]) == {"gfx942/attention-head128-causal-bf16": [complaint]}


@pytest.mark.parametrize(
    "change",
    [{}, {"waves_per_simd": 3}, {"vgprs": 250}, {"matrix_instructions": 16}, {"sizes": {"head": 64}, "spills": 9}],
)
def test_what_changed_little_or_was_never_seen_passes(baseline: Baseline, change: dict[str, Any]) -> None:
    assert baseline.regressions([row(**change)]) == {}


def test_spills_that_were_there_may_not_grow(tmp_path: Path) -> None:
    write_baseline(tmp_path, [row(spills=5)], TOOLS)
    found = read_baseline(tmp_path)
    assert found is not None
    assert found.regressions([row(spills=5)]) == {}
    assert found.regressions([row(spills=6)])


def test_tools_other_than_those_it_was_taken_with(baseline: Baseline) -> None:
    assert baseline.other_tools(TOOLS | {"torch": "3"}) == ""
    assert baseline.other_tools(TOOLS | {"rocm": "7.3.0"}) == "rocm 7.2.4, not 7.3.0"


def test_accepting_keeps_what_was_not_built_and_drops_what_is_gone(tmp_path: Path) -> None:
    other = row(target="gfx90a")
    gone = row(sizes={"head": 32})
    write_baseline(tmp_path, [row(), other, gone], TOOLS)
    write_baseline(tmp_path, [row(vgprs=100)], TOOLS)
    found = read_baseline(tmp_path)
    assert found is not None
    assert set(found.kernels) == {name_of(row()), name_of(other)}
    assert found.kernels[name_of(row())]["vgprs"] == 100
    assert found.kernels[name_of(row())]["lds"] == 1536
    lines = (tmp_path / NAME).read_text().splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:-1]] == sorted(json.dumps(name) for name in found.kernels)


def test_no_baseline_and_a_broken_one(tmp_path: Path) -> None:
    assert read_baseline(tmp_path) is None
    for text in ("{", "{}", '{"schema": "amdflow/kernel-baseline", "version": "2.0"}'):
        (tmp_path / NAME).write_text(text)
        with pytest.raises(UsageError, match="no baseline of kernels") as caught:
            read_baseline(tmp_path)
        assert "--update-baseline" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [{"tools": []}, {"kernels": []}, {"kernels": {"gfx942/x-bf16": 7}}, {"kernels": {"gfx942/x-bf16": {"vgprs": 3}}}],
)
def test_a_file_that_is_no_baseline_is_refused_with_the_way_out(tmp_path: Path, change: dict[str, Any]) -> None:
    write_baseline(tmp_path, [row()], TOOLS)
    path = tmp_path / NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UsageError, match="is no baseline of kernels") as caught:
        read_baseline(tmp_path)
    assert "remove the file" in caught.value.hint


def test_figures_of_other_tools_are_not_kept_under_the_names_of_todays(tmp_path: Path) -> None:
    write_baseline(tmp_path, [row(), row(target="gfx90a")], TOOLS)
    write_baseline(tmp_path, [row()], TOOLS | {"rocm": "8.0"})
    found = read_baseline(tmp_path)
    assert found is not None
    assert list(found.kernels) == ["gfx942/attention-head128-causal-bf16"]
