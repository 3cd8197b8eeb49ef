"""The model that ranks: what it reads out of instructions, and which of two kernels it takes for the better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amdflow.gpu.targets import PEAKS, TARGETS
from amdflow.kernels.code_object import Resources
from amdflow.kernels.tune_model import Mix, estimate, last_round, read_mix, workgroups

CDNA = """\
<L0>:
	s_load_dwordx4 s[0:3], s[4:5], 0x0
	global_load_dwordx2 v[0:1], v2, s[0:1]
<L1>:
	global_load_dwordx4 v[0:3], v4, s[0:1]
	ds_write_b128 v5, v[0:3]
	ds_read2st64_b64 v[6:9], v10 offset1:1
	ds_read_b64_tr_b16 v[6:7], v10
	v_add_u32_e32 v1, v2, v3
	v_mfma_f32_32x32x8_bf16_1k a[0:15], v[6:7], v[8:9], a[0:15]
	s_cbranch_scc1 L1                                          // 000000001728: BF850005
	v_exp_f32_e32 v1, v1
	s_cbranch_execz L2
	global_store_dwordx4 v4, v[0:3], s[0:1]
<L2>:
	s_endpgm
"""
RDNA = """\
	global_load_b128 v[0:3], v4, s[0:1]
	global_load_d16_b16 v5, v4, s[0:1]
	ds_load_2addr_stride64_b64 v[6:9], v10
	ds_store_b32 v10, v6
	v_add_f32_e32 v0, v0, v1
	global_store_b64 v4, v[0:1], s[0:1]
"""
LAUNCH: dict[str, Any] = {
    "parameters": [
        {"name": "x", "kind": "tensor", "shape": [{"symbol": "m", "times": 1}, {"symbol": "k8", "times": 8}]},
        {"name": "m", "kind": "scalar"},
    ],
    "grid": ["(m + 127) // 128", "k8 // 16", "1"],
    "work": {"flop": 1e12, "bytes": 1e9},
}
SIZES = {"m": 4096, "k": 1024}
Takes = Callable[..., Resources]


def test_the_loop_with_the_matrix_instructions_counts_alone() -> None:
    assert read_mix(CDNA) == Mix(2.0 * 32 * 32 * 8, vector=1, lds_bytes=16 + 16 + 8, load_bytes=16, store_bytes=0)


def test_a_kernel_without_them_counts_whole() -> None:
    assert read_mix(RDNA) == Mix(0.0, vector=1, lds_bytes=16 + 4, load_bytes=18, store_bytes=8)


def cost(takes: Takes, mix: Mix, waves: int = 4, arch: str = "gfx942", **work: float) -> dict[str, Any]:
    launch = LAUNCH | {"work": {**LAUNCH["work"], **work}}
    found = estimate(arch, takes(), waves, launch, mix, SIZES)
    assert found is not None
    return found


def test_less_traffic_through_lds_for_the_same_products_is_better(takes: Takes) -> None:
    lean, fat = (cost(takes, Mix(262144.0, 10, lds, 64, 0)) for lds in (128, 1024))
    assert lean["seconds"] < fat["seconds"]
    assert (lean["bound"], fat["bound"]) == ("matrix", "lds")


def test_more_waves_hide_more_of_what_is_not_the_bottleneck(takes: Takes) -> None:
    mix = Mix(8192.0, 40, 64, 32, 0)
    assert cost(takes, mix, waves=8)["seconds"] < cost(takes, mix, waves=1)["seconds"]


def test_wide_loads_keep_more_in_flight(takes: Takes) -> None:
    narrow, wide = (cost(takes, Mix(0.0, 4, 0, size, size), waves=1, flop=1e6) for size in (2, 16))
    assert wide["seconds"] < narrow["seconds"]
    assert wide["bound"] == "memory"


def test_nothing_is_faster_than_the_published_peaks(takes: Takes) -> None:
    for arch, facts in TARGETS.items():
        found = cost(takes, Mix(8192.0 if facts.matrix else 0.0, 1, 1, 16, 0), arch=arch)
        floor = 1e9 / (PEAKS[arch].memory * 1e9)
        floor = max(floor, 1e12 / (PEAKS[arch].matrix * 1e12)) if facts.matrix else floor
        assert found["seconds"] >= floor


def test_a_kernel_that_does_not_say_what_work_it_does_is_not_ranked(takes: Takes) -> None:
    assert estimate("gfx942", takes(), 4, {"grid": ["1"], "parameters": []}, Mix(0.0, 1, 0, 4, 4), {}) is None


def test_the_grid_is_worked_out_at_the_sizes_asked_for() -> None:
    assert workgroups(LAUNCH, SIZES) == 32 * (128 // 16)
    assert workgroups(LAUNCH, {"m": 4096}) is None
    assert workgroups(LAUNCH | {"grid": ["T.max(m, 1)", "1", "1"]}, SIZES) is None


@pytest.mark.parametrize(("groups", "factor"), [(304, 1.0), (305, 608 / 305), (152, 2.0), (None, 1.0)])
def test_a_last_round_that_is_not_full_costs_a_whole_one(groups: int | None, factor: float) -> None:
    assert last_round(groups, 304) == pytest.approx(factor)
