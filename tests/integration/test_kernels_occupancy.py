"""Our waves per SIMD against what the HIP compiler says of the same kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.gpu.targets import TARGETS, occupancy

# The last register each kernel touches. One wave a workgroup, so that the compiler's count, which knows no whole
# workgroups, and ours can be compared.
REGISTERS = (20, 31, 63, 95, 96, 127, 128, 170, 255)
_REMARK = re.compile(
    r"Function Name: k(\d+).*?VGPRs: (\d+).*?(?:AGPRs: (\d+).*?)?Occupancy \[waves/SIMD\]: (\d+)", re.DOTALL
)


@pytest.mark.parametrize("name", list(TARGETS))
def test_registers_are_shared_out_as_the_compiler_says(tmp_path: Path, name: str) -> None:
    facts = TARGETS[name]
    wave = facts.wavefront
    kernel = 'extern "C" __attribute__((global, amdgpu_flat_work_group_size({w},{w}))) void k{n}() {{ asm volatile("v_mov_b32 v{n}, 0" ::: "v{n}"); }}\n'
    source = tmp_path / "registers.hip"
    source.write_text("".join(kernel.format(w=wave, n=last) for last in REGISTERS))
    clang = open_context(start=tmp_path).toolchain.rocm().clang
    flags = [
        "-x",
        "hip",
        "-nogpuinc",
        "-nogpulib",
        f"--offload-arch={name}",
        "-O1",
        "--cuda-device-only",
        "-S",
        "-o",
        "/dev/null",
    ]
    said = process.run([str(clang), *flags, "-Rpass-analysis=kernel-resource-usage", str(source)])
    found = _REMARK.findall(said.output)
    assert len(found) == len(REGISTERS), said.output
    for last, vgprs, agprs, waves in found:
        ours = occupancy(facts, vgprs=int(vgprs), agprs=int(agprs or 0), threads=wave)
        assert ours.waves_per_simd == int(waves), f"{name}: {last}"
