"""Facts of each gfx target, and how many waves of a kernel fit on one of its SIMDs.

Sources: LLVM's "User Guide for AMDGPU Backend" (processors, register allocation granules, code object metadata) and
AMD's instruction set documents of CDNA 1 to 4 and RDNA 2 to 4 (register files, LDS, waves per SIMD, matrix
instructions). Registers are shared out as clang's own occupancy remark has it (an integration test compares); beyond
that, workgroups count whole here and LDS in the granules in which it is handed out.

Peaks are AMD's published figures of one product for each target, dense, at its highest clock: what the data sheets and
product pages give, and where those round, the compute units times the operations of one in a clock (CDNA 1 to 4 white
papers; RDNA 2 to 4 instruction set documents) times that clock:

- MI100 120 x 512 (bfloat16) at 1.502 GHz; MI210 104 x 1024 at 1.7 GHz; MI300X 304 x 2048 at 2.1 GHz; MI355X 256 x 4096
  at 2.4 GHz. Vector float32: 128 a unit and clock, 256 from CDNA 3. Memory from the same data sheets.
- RDNA 3 and 3.5: 512 WMMA and 256 vector operations a unit and clock: RX 7900 XTX 96 units at 2.5 GHz, RX 7800 XT 60 at
  2.43, RX 7600 32 at 2.655, Radeon 890M 16 at 2.9, Radeon 8060S 40 at 2.9. RDNA 4: 1024 and 256: RX 9070 XT 64 at 2.97,
  RX 9060 XT 32 at 3.13. RX 6900 XT: 128 vector operations a unit and clock, 80 at 2.25.
- Memory of Radeons: width of the bus times the data rate on the product pages; of the two APUs, LPDDR5X-7500 on 128 bits
  and LPDDR5X-8000 on 256 bits, shared with the processor.
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
class Peak:
    """What one product can do at most, as published (see the module)."""

    product: str
    matrix: float
    """bfloat16 matrix operations, TFLOP/s; 0 without matrix instructions."""
    vector: float
    """float32 vector operations, TFLOP/s."""
    memory: float
    """GB/s to and from memory."""


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

    @property
    def dialect(self) -> str:
        """Equal for targets that TileLang tells apart in nothing: of CDNA it knows gfx950 by name, of RDNA the generation."""
        if self.cdna:
            return self.name if self.name == "gfx950" else "CDNA"
        return self.family.partition(".")[0]

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


PEAKS: Mapping[str, Peak] = MappingProxyType(
    {
        "gfx908": Peak("Instinct MI100", 92.3, 23.1, 1228.8),
        "gfx90a": Peak("Instinct MI210", 181.0, 22.6, 1638.4),
        "gfx942": Peak("Instinct MI300X", 1307.4, 163.4, 5300.0),
        "gfx950": Peak("Instinct MI355X", 2516.6, 157.3, 8000.0),
        "gfx1030": Peak("Radeon RX 6900 XT", 0.0, 23.0, 512.0),
        "gfx1100": Peak("Radeon RX 7900 XTX", 122.9, 61.4, 960.0),
        "gfx1101": Peak("Radeon RX 7800 XT", 74.6, 37.3, 624.0),
        "gfx1102": Peak("Radeon RX 7600", 43.5, 21.8, 288.0),
        "gfx1150": Peak("Radeon 890M", 23.8, 11.9, 120.0),
        "gfx1151": Peak("Radeon 8060S", 59.4, 29.7, 256.0),
        "gfx1200": Peak("Radeon RX 9060 XT", 102.6, 25.6, 320.0),
        "gfx1201": Peak("Radeon RX 9070 XT", 194.6, 48.7, 640.0),
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
