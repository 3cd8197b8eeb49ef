"""What llvm-readelf prints of a code object's metadata."""

from __future__ import annotations

import pytest

from amdflow.errors import AmdflowError
from amdflow.gpu.targets import target
from amdflow.kernels.code_object import parse_notes

NOTES = """Displaying notes found in: .note
  Owner                Data size \tDescription
  AMDGPU               0x000003c1\tNT_AMDGPU_METADATA (AMDGPU Metadata)
    AMDGPU Metadata:
        ---
amdhsa.kernels:
  - .agpr_count:     {agprs}
    .args:
      - .offset:         0
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 512
    .max_flat_workgroup_size: 256
    .name:           scale_kernel
    .private_segment_fixed_size: 16
    .sgpr_count:     80
    .sgpr_spill_count: 0
    .symbol:         scale_kernel.kd
    .vgpr_count:     {vgprs}
    .vgpr_spill_count: 3
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
...

"""


def test_the_numbers_are_read() -> None:
    found = parse_notes(NOTES.format(vgprs=126, agprs=0), target("gfx942"), matrix_instructions=7)
    assert (found.symbol, found.vgprs, found.agprs, found.sgprs) == ("scale_kernel", 126, 0, 80)
    assert (found.static_lds, found.scratch, found.vgpr_spills) == (512, 16, 3)
    assert (found.wavefront, found.workgroup_max, found.matrix_instructions) == (64, 256, 7)


def test_one_register_file_means_that_the_count_holds_the_agprs() -> None:
    notes = NOTES.format(vgprs=192, agprs=64)
    assert parse_notes(notes, target("gfx942"), matrix_instructions=0).vgprs == 128
    assert parse_notes(notes.replace("--gfx942", "--gfx908"), target("gfx908"), matrix_instructions=0).vgprs == 192


@pytest.mark.parametrize(
    "text", ["", "no notes here", NOTES.format(vgprs=1, agprs=0).replace("amdhsa.kernels:", "amdhsa.other:")]
)
def test_a_file_that_is_no_code_object(text: str) -> None:
    with pytest.raises(AmdflowError, match="no metadata of exactly one kernel"):
        parse_notes(text, target("gfx942"), matrix_instructions=0)


def test_a_code_object_for_another_target_is_refused() -> None:
    with pytest.raises(AmdflowError, match="is for gfx942, not for gfx90a"):
        parse_notes(NOTES.format(vgprs=1, agprs=0), target("gfx90a"), matrix_instructions=0)
