"""What is read from migrate's manifest and what is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import UsageError
from amdflow.kernels.build import LAUNCH, Built
from amdflow.kernels.handoff import Region, from_migrate, published, region_findings
from amdflow.kernels.item import Item
from amdflow.kernels.sources import Kernel
from amdflow.pipeline.manifest import Manifest, Status, Timing, Upstream


def upstream(handoff: dict[str, Any]) -> Upstream:
    timing = Timing(started="", ended="", seconds=0)
    manifest = Manifest(
        stage="migrate",
        stage_version=1,
        run_id="r",
        amdflow="0",
        status=Status.OK,
        exit_code=0,
        key="k",
        timing=timing,
        handoff=handoff,
    )
    return Upstream(Path("out/migrate/manifest.json"), manifest)


def test_targets_and_regions_are_read_and_unknown_keys_ignored() -> None:
    handed = from_migrate(
        upstream(
            {
                "targets": ["gfx90a"],
                "tree": "hip",
                "regions": [{"path": "a.hip", "line": 3, "kind": "wmma", "op": "gemm", "new": 1}],
            }
        )
    )
    assert handed.targets == ("gfx90a",)
    assert handed.regions == (Region(path="a.hip", line=3, kind="wmma", op="gemm"),)


def test_without_migrate_nothing_is_handed_over() -> None:
    assert from_migrate(None).targets == ()


def test_a_damaged_handoff_names_the_place() -> None:
    with pytest.raises(UsageError, match=r"handoff\.regions\.0\.path"):
        from_migrate(upstream({"regions": [{"line": 1}]}))


def test_each_region_is_reported_with_the_kernel_that_stands_for_it(kernel: Kernel) -> None:
    regions = [
        Region(path="a.hip", line=3, kind="cutlass", op="scale"),
        Region(path="b.hip", line=9, kind="tensor-core-ptx"),
    ]
    known, unknown = region_findings(regions, [kernel])
    assert (known.path, known.line, known.extra) == ("a.hip", 3, {"kernel": "scale"})
    assert "the kernel scale does this work" in known.message
    assert "none of the kernels" in unknown.message


def test_every_variant_is_published_and_the_first_stands_at_the_top(item: Item, kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / LAUNCH).write_text(json.dumps({"symbol": "scale_kernel"}))
    wide = Item(kernel, "gfx942", "bfloat16", {"width": 16}, {})
    built = [Built(one, tmp_path, False) for one in (item, wide)]
    found = published(built, targets=["gfx942"], payload="objects", regions=[], kernels=[kernel])
    place = found["ops"]["scale"]["gfx942"]
    assert place["code_object"] == "objects/gfx942/scale-width8-bf16/kernel.co"
    assert (place["symbol"], place["dtype"]) == ("scale_kernel", "bfloat16")
    assert [variant["sizes"] for variant in place["variants"]] == [{"width": 8}, {"width": 16}]
