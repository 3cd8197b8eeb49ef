"""A kernel that could not launch, or would crawl, is refused before it reaches a card."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amdflow.gpu.targets import target
from amdflow.kernels.budget import judge
from amdflow.kernels.code_object import Resources

LAUNCH = {"threads": [256, 1, 1], "dynamic_lds": 16384}
Takes = Callable[..., Resources]


def test_a_modest_kernel_is_within_budget(takes: Takes) -> None:
    verdict = judge(target("gfx942"), takes(), LAUNCH, matrix=True)
    assert (verdict.problems, verdict.remarks, verdict.lds) == ((), (), 16384)
    assert verdict.occupancy.waves_per_simd == 4


def test_dynamic_lds_counts_although_the_metadata_says_0(takes: Takes) -> None:
    launch = {**LAUNCH, "dynamic_lds": 67584}
    (problem,) = judge(target("gfx942"), takes(), launch, matrix=True).problems
    assert "67584 bytes of LDS (0 static + 67584 dynamic), gfx942 gives a workgroup 65536" in problem
    assert judge(target("gfx950"), takes(), launch, matrix=True).problems == ()


def test_static_and_dynamic_lds_add_up(takes: Takes) -> None:
    assert judge(target("gfx942"), takes(static_lds=60000), LAUNCH, matrix=False).problems


def test_spills_fail_on_cdna_and_are_remarked_on_rdna(takes: Takes) -> None:
    assert (
        "spills 12 registers"
        in judge(target("gfx942"), takes(vgpr_spills=12, scratch=48), LAUNCH, matrix=False).problems[0]
    )
    verdict = judge(target("gfx1100"), takes(vgpr_spills=12, scratch=48, wavefront=32), LAUNCH, matrix=False)
    assert (verdict.problems, len(verdict.remarks)) == ((), 1)


def test_scratch_without_spills_counts_as_spilling(takes: Takes) -> None:
    assert judge(target("gfx90a"), takes(scratch=352), LAUNCH, matrix=False).problems


@pytest.mark.parametrize("threads", [[512, 1, 1], [256, 2, 1], [2048, 1, 1]])
def test_more_work_items_than_it_was_compiled_for(takes: Takes, threads: list[int]) -> None:
    problems = judge(target("gfx942"), takes(), {**LAUNCH, "threads": threads}, matrix=False).problems
    assert any("work-items, it allows 256" in problem for problem in problems)


def test_the_wrong_wave_size(takes: Takes) -> None:
    assert "64-lane waves, gfx1100 has 32" in judge(target("gfx1100"), takes(), LAUNCH, matrix=False).problems[0]


def test_a_matrix_kernel_must_use_matrix_instructions(takes: Takes) -> None:
    assert judge(target("gfx942"), takes(matrix_instructions=0), LAUNCH, matrix=True).problems == (
        "has no mfma instruction",
    )
    assert judge(target("gfx942"), takes(matrix_instructions=0), LAUNCH, matrix=False).problems == ()


def test_a_workgroup_whose_registers_never_fit(takes: Takes) -> None:
    launch = {"threads": [1024, 1, 1], "dynamic_lds": 0}
    problems = judge(target("gfx942"), takes(vgprs=200, agprs=200, workgroup_max=1024), launch, matrix=False).problems
    assert any("does not fit on a compute unit" in problem for problem in problems)
