"""Reads a code object: the registers, LDS and scratch its kernel takes, and the matrix instructions in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from amdflow import process
from amdflow.errors import AmdflowError
from amdflow.gpu.targets import Target
from amdflow.pipeline.stage import Run
from amdflow.toolchain import Rocm

_MATRIX = re.compile(r"^\s*v_(?:smfmac|mfma|wmma|swmmac)_\S+")


@dataclass(frozen=True)
class Resources:
    """What one kernel takes. Registers are 32-bit registers of a lane, sizes bytes."""

    symbol: str
    vgprs: int
    """Without AGPRs."""
    agprs: int
    sgprs: int
    static_lds: int
    scratch: int
    """Private memory of a lane: spilled registers and arrays that did not fit into registers."""
    vgpr_spills: int
    sgpr_spills: int
    wavefront: int
    workgroup_max: int
    """The largest workgroup it was compiled for."""
    matrix_instructions: int
    arguments: tuple[tuple[str, int, int], ...] = ()
    """(value kind, offset, size) of each argument in the block that a launch hands over, without the runtime's own."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Resources:
        """The reverse of :meth:`to_json`."""
        return cls(**{**data, "arguments": tuple((*entry,) for entry in data.get("arguments", ()))})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def read_resources(path: Path, facts: Target, rocm: Rocm, run: Run) -> Resources:
    """Read the code object at ``path`` with LLVM's own tools. Raises AmdflowError when it holds no or several kernels."""
    notes = process.run([str(rocm.tool("llvm-readelf")), "--notes", str(path)])
    run.record(notes)
    count = [0]

    def see(line: str) -> None:
        count[0] += _MATRIX.match(line) is not None

    run.record(
        process.run(
            [str(rocm.tool("llvm-objdump")), "--disassemble", "--no-show-raw-insn", "--no-leading-addr", str(path)],
            on_line=see,
        )
    )
    return parse_notes(notes.stdout, facts, matrix_instructions=count[0])


def parse_notes(text: str, facts: Target, *, matrix_instructions: int) -> Resources:
    """The metadata that ``llvm-readelf --notes`` prints. On targets with one register file ``.vgpr_count`` holds the AGPRs too."""
    document = text.partition("---\n")[2].partition("\n...")[0]
    try:
        metadata = yaml.safe_load(document)
        (kernel,) = metadata["amdhsa.kernels"]
        arch = metadata["amdhsa.target"].rpartition("-")[2].partition(":")[0]
    except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
        raise AmdflowError(
            "the code object has no metadata of exactly one kernel", hint="a kernel's build must return one prim_func"
        ) from error
    if arch != facts.name:
        raise AmdflowError(f"the code object is for {arch}, not for {facts.name}", hint="amdflow doctor")
    agprs = kernel.get(".agpr_count", 0)
    total = kernel[".vgpr_count"]
    return Resources(
        symbol=kernel[".name"],
        vgprs=total - agprs if facts.unified_registers else total,
        agprs=agprs,
        sgprs=kernel[".sgpr_count"],
        static_lds=kernel[".group_segment_fixed_size"],
        scratch=kernel[".private_segment_fixed_size"],
        vgpr_spills=kernel.get(".vgpr_spill_count", 0),
        sgpr_spills=kernel.get(".sgpr_spill_count", 0),
        wavefront=kernel[".wavefront_size"],
        workgroup_max=kernel[".max_flat_workgroup_size"],
        matrix_instructions=matrix_instructions,
        arguments=tuple(
            (entry[".value_kind"], entry[".offset"], entry[".size"])
            for entry in kernel.get(".args", ())
            if not entry[".value_kind"].startswith("hidden_")
        ),
    )
