"""Facts of gfx targets and the waves that fit on a SIMD."""

from __future__ import annotations

import pytest

from amdflow.errors import UsageError
from amdflow.gpu.targets import TARGETS, occupancy, target


def test_every_target_that_the_project_builds_for_is_known() -> None:
    assert {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201"} <= set(TARGETS)
    assert all(facts.name == name and facts.examples for name, facts in TARGETS.items())


def test_wave_size_and_matrix_instructions_follow_the_family() -> None:
    for facts in TARGETS.values():
        assert facts.wavefront == (64 if facts.cdna else 32)
        assert facts.matrix == ("mfma" if facts.cdna else None if facts.family == "RDNA2" else "wmma")


def test_only_gfx950_gives_a_workgroup_more_than_64_kib() -> None:
    assert {name for name, facts in TARGETS.items() if facts.lds_bytes != 65536} == {"gfx950"}
    assert target("gfx950").lds_bytes == 163840


@pytest.mark.parametrize("written", ["gfx942", " GFX942 "])
def test_a_name_is_taken_as_people_write_it(written: str) -> None:
    assert target(written).name == "gfx942"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="'gfx943'.*did you mean gfx94") as caught:
        target("gfx943")
    assert "gfx1100" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "vgprs", "agprs", "waves"),
    [
        ("gfx942", 64, 0, 8),
        ("gfx942", 65, 0, 7),
        ("gfx942", 128, 0, 4),
        ("gfx942", 128, 128, 2),  # one file: AGPRs count on top
        ("gfx90a", 126, 4, 3),  # VGPRs are rounded up to 4 before the AGPRs follow
        ("gfx908", 128, 128, 2),  # two files: the larger counts
        ("gfx1100", 96, 0, 16),
        ("gfx1100", 97, 0, 12),  # 120 registers, handed out by 24
        ("gfx1102", 97, 0, 8),  # 112 registers, handed out by 16: 9, of which whole workgroups make 8
        ("gfx1201", 256, 0, 4),
    ],
)
def test_registers_limit_the_waves(name: str, vgprs: int, agprs: int, waves: int) -> None:
    assert occupancy(target(name), vgprs=vgprs, agprs=agprs, threads=256).waves_per_simd == waves


@pytest.mark.parametrize(
    ("name", "lds", "threads", "waves"),
    [
        ("gfx942", 65536, 256, 1),
        ("gfx942", 32768, 256, 2),
        ("gfx942", 32769, 256, 1),
        ("gfx942", 65537, 256, 0),
        ("gfx950", 65537, 256, 2),
        ("gfx950", 163841, 256, 0),
        ("gfx1100", 32768, 256, 8),  # two compute units share 128 KiB
        ("gfx1100", 65536, 128, 2),
        ("gfx1100", 65537, 128, 0),
    ],
)
def test_lds_limits_the_waves(name: str, lds: int, threads: int, waves: int) -> None:
    found = occupancy(target(name), vgprs=16, threads=threads, lds=lds)
    assert (found.waves_per_simd, found.limited_by) == (waves, "lds")


def test_a_workgroup_that_never_fits_gives_no_waves() -> None:
    assert occupancy(target("gfx942"), vgprs=16, threads=2048).waves_per_simd == 0
    crowded = occupancy(target("gfx942"), vgprs=512, threads=1024)
    assert (crowded.waves_per_simd, crowded.limited_by) == (0, "registers")


def test_small_workgroups_are_limited_in_number() -> None:
    found = occupancy(target("gfx942"), vgprs=16, threads=65)
    assert found.waves_per_simd == 8
    assert occupancy(target("gfx1100"), vgprs=16, threads=33).waves_per_simd == 16
