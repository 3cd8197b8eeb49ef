"""Holds a kernel's appetite against its target: what cannot launch or would crawl is found here, not on the card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amdflow.gpu.targets import Occupancy, Target, occupancy
from amdflow.kernels.code_object import Resources


@dataclass(frozen=True)
class Verdict:
    """``problems`` fail the build; ``remarks`` are for a person to weigh."""

    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    occupancy: Occupancy
    lds: int
    """Static and dynamic together, bytes."""


def judge(facts: Target, resources: Resources, launch: Mapping[str, Any], *, matrix: bool) -> Verdict:
    """Judge one compiled kernel; ``launch`` is its launch description, ``matrix`` says that it should use matrix instructions."""
    x, y, z = launch["threads"]
    threads = x * y * z
    lds = resources.static_lds + launch["dynamic_lds"]
    fit = occupancy(facts, vgprs=resources.vgprs, agprs=resources.agprs, threads=threads, lds=lds)
    problems: list[str] = []
    remarks: list[str] = []
    if lds > facts.lds_bytes:
        problems.append(
            f"takes {lds} bytes of LDS ({resources.static_lds} static + {launch['dynamic_lds']} dynamic), {facts.name} gives a workgroup {facts.lds_bytes}"
        )
    if threads > min(facts.workgroup_max, resources.workgroup_max):
        problems.append(
            f"is launched with {threads} work-items, it allows {min(facts.workgroup_max, resources.workgroup_max)}"
        )
    if resources.wavefront != facts.wavefront:
        problems.append(f"was compiled for {resources.wavefront}-lane waves, {facts.name} has {facts.wavefront}")
    if fit.waves_per_simd == 0 and fit.limited_by == "registers":
        problems.append(
            f"a workgroup of {threads} work-items with {facts.registers(resources.vgprs, resources.agprs)} registers each does not fit on a compute unit"
        )
    if resources.vgpr_spills or resources.scratch:
        spilled = f"spills {resources.vgpr_spills} registers, {resources.scratch} bytes of scratch a lane"
        (problems if facts.cdna else remarks).append(spilled)
    if matrix and not resources.matrix_instructions:
        problems.append(f"has no {facts.matrix or 'matrix'} instruction")
    return Verdict(tuple(problems), tuple(remarks), fit, lds)
