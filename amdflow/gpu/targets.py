"""Facts of each gfx target, and how many waves of a kernel fit on one of its SIMDs.

Sources: LLVM's "User Guide for AMDGPU Backend" (processors, register allocation granules, code object metadata) and
AMD's instruction set documents of CDNA 1 to 4 and RDNA 2 to 4 (register files, LDS, waves per SIMD, matrix
instructions). Registers are shared out as clang's own occupancy remark has it (an integration test compares); beyond
that, workgroups count whole here and LDS in the granules in which it is handed out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from amdflow.errors import UsageError

KIB = 1024
Matrix = Literal["mfma", "wmma"]


@dataclass(frozen=True, slots=True)
class Target:
    """One gfx target. Register counts are 32-bit registers of one lane; sizes are bytes."""

    name: str
    family: str
    """``CDNA3``, ``RDNA3.5``..."""
    examples: tuple[str, ...]
    """Products that carry it."""
    wavefront: int
    """Lanes of a wave as HIP compiles for it: 64 or 32."""
    matrix: Matrix | None
    """The matrix instructions it has."""
    lds_bytes: int
    """The most LDS one workgroup may use, static and dynamic together."""
    lds_pool_bytes: int
    """LDS shared by the workgroups of one compute unit (CDNA) or one workgroup processor (RDNA)."""
    lds_granule: int
    """LDS is handed out in multiples of this."""
    vgprs: int
    """The most vector registers a lane can address, accumulation registers included where they are one file."""
    vgpr_file: int
    """Vector registers a SIMD has for each lane position, shared by its waves."""
    vgpr_granule: int
    """Vector registers are handed out in multiples of this."""
    waves_per_simd_max: int
    simds_per_cu: int
    simds_per_pool: int = 4
    """SIMDs that share ``lds_pool_bytes``."""
    workgroups_per_pool: int = 16
    """The most workgroups of more than one wave that run there at a time."""
    workgroup_max: int = 1024
    """The most work-items of a workgroup."""

    @property
    def unified_registers(self) -> bool:
        """Whether VGPRs and AGPRs come out of one file (gfx90a and later CDNA)."""
        return self.matrix == "mfma" and self.vgprs == 512

    @property
    def cdna(self) -> bool:
        """Whether it is a data-centre target with 64-lane waves."""
        return self.family.startswith("CDNA")

    def registers(self, vgprs: int, agprs: int = 0) -> int:
        """Vector registers a lane takes: AGPRs come behind the VGPRs in one file, or lie in a file of their own."""
        return _round_up(vgprs, 4) + agprs if self.unified_registers and agprs else max(vgprs, agprs)


def _cdna(
    name: str, family: str, *examples: str, lds: int = 64 * KIB, granule: int = 512, vgprs: int = 512, waves: int = 8
) -> Target:
    return Target(
        name,
        family,
        examples,
        wavefront=64,
        matrix="mfma",
        lds_bytes=lds,
        lds_pool_bytes=lds,
        lds_granule=granule,
        vgprs=vgprs,
        vgpr_file=vgprs,
        vgpr_granule=8 if vgprs == 512 else 4,
        waves_per_simd_max=waves,
        simds_per_cu=4,
    )


def _rdna(name: str, family: str, *examples: str, file: int, matrix: Matrix | None = "wmma") -> Target:
    return Target(
        name,
        family,
        examples,
        wavefront=32,
        matrix=matrix,
        lds_bytes=64 * KIB,
        lds_pool_bytes=128 * KIB,
        lds_granule=512,
        vgprs=256,
        vgpr_file=file,
        vgpr_granule=24 if file == 1536 else 16,
        waves_per_simd_max=16,
        simds_per_cu=2,
        workgroups_per_pool=32,
    )


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            _cdna("gfx908", "CDNA1", "Instinct MI100", vgprs=256, waves=10),
            _cdna("gfx90a", "CDNA2", "Instinct MI210", "Instinct MI250", "Instinct MI250X"),
            _cdna("gfx942", "CDNA3", "Instinct MI300A", "Instinct MI300X", "Instinct MI325X"),
            _cdna("gfx950", "CDNA4", "Instinct MI350X", "Instinct MI355X", lds=160 * KIB, granule=1280),
            _rdna(
                "gfx1030", "RDNA2", "Radeon RX 6800", "Radeon RX 6900 XT", "Radeon PRO W6800", file=1024, matrix=None
            ),
            _rdna("gfx1100", "RDNA3", "Radeon RX 7900 XTX", "Radeon PRO W7900", file=1536),
            _rdna("gfx1101", "RDNA3", "Radeon RX 7800 XT", "Radeon PRO W7700", file=1536),
            _rdna("gfx1102", "RDNA3", "Radeon RX 7600", file=1024),
            _rdna("gfx1150", "RDNA3.5", "Ryzen AI 9 HX 370 (Radeon 890M)", file=1024),
            _rdna("gfx1151", "RDNA3.5", "Ryzen AI Max+ 395 (Radeon 8060S)", file=1536),
            _rdna("gfx1200", "RDNA4", "Radeon RX 9060 XT", file=1536),
            _rdna("gfx1201", "RDNA4", "Radeon RX 9070 XT", "Radeon AI PRO R9700", file=1536),
        )
    }
)


def target(name: str) -> Target:
    """Look up the facts of ``name``. Raises UsageError that names the nearest target when there is none."""
    found = TARGETS.get(name.strip().lower())
    if found is None:
        from amdflow.config import nearest

        raise UsageError(
            f"unknown gfx target {name!r}{nearest(name, list(TARGETS))}", hint=f"known targets: {', '.join(TARGETS)}"
        )
    return found


def target_names(names: Sequence[str]) -> tuple[str, ...]:
    """The targets' proper names, each once, in order. Raises UsageError for an unknown one, or when there is none."""
    found = tuple(dict.fromkeys(target(name).name for name in names))
    if not found:
        raise UsageError("no gfx target is named", hint=f"known targets: {', '.join(TARGETS)}")
    return found


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full a SIMD can get with one kernel."""

    waves_per_simd: int
    """0 when a workgroup does not fit at all."""
    limited_by: Literal["waves", "registers", "lds", "workgroups"]
    """What keeps it from more; ``waves`` is the target's own maximum."""


def occupancy(facts: Target, *, vgprs: int, threads: int, agprs: int = 0, lds: int = 0) -> Occupancy:
    """Waves per SIMD of a kernel of ``threads`` work-items, its registers for each lane and its LDS in bytes.

    ``vgprs`` are without ``agprs``. ``lds`` counts static and dynamic together. Every workgroup that runs counts whole.
    """
    waves = -(-threads // facts.wavefront)
    registers = facts.registers(vgprs, agprs)
    by_registers = facts.vgpr_file // _round_up(max(registers, 1), facts.vgpr_granule)
    groups = {
        "waves": facts.waves_per_simd_max * facts.simds_per_pool // waves,
        "registers": min(by_registers, facts.waves_per_simd_max) * facts.simds_per_pool // waves
        if registers <= facts.vgprs
        else 0,
        "lds": facts.lds_pool_bytes // _round_up(lds, facts.lds_granule) if lds else 1 << 20,
        "workgroups": facts.workgroups_per_pool if waves > 1 else 1 << 20,
    }
    if threads > facts.workgroup_max:
        groups["workgroups"] = 0
    if lds > facts.lds_bytes:
        groups["lds"] = 0
    limit = min(groups, key=groups.__getitem__)
    # Waves are spread over the SIMDs; the fullest one is what counts, and it never holds more than its registers allow.
    fullest = min(-(-groups[limit] * waves // facts.simds_per_pool), by_registers, facts.waves_per_simd_max)
    return Occupancy(fullest, limit)  # type: ignore[arg-type]


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
