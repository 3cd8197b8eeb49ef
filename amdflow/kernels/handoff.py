"""What this stage reads from migrate's manifest, and what it publishes to the fine-tune."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from amdflow.errors import UsageError
from amdflow.findings import Effort, Finding, Severity
from amdflow.kernels.artifacts import INDEX
from amdflow.kernels.build import LAUNCH, OBJECT, SOURCE, Built
from amdflow.kernels.sources import Kernel
from amdflow.pipeline.manifest import Upstream


class Region(BaseModel):
    """A place in the migrated sources that is worth a kernel."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    path: str
    line: int = 0
    kind: str = ""
    op: str = ""


class MigrateHandoff(BaseModel):
    """What migrate hands over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    targets: tuple[str, ...] = ()
    regions: tuple[Region, ...] = ()


def from_migrate(upstream: Upstream | None) -> MigrateHandoff:
    """What migrate handed over; nothing when it did not run. Raises UsageError when it is not what it should be."""
    if upstream is None:
        return MigrateHandoff()
    try:
        return MigrateHandoff.model_validate(upstream.manifest.handoff)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(map(str, detail["loc"]))
        raise UsageError(
            f"{upstream.path}: handoff.{place}: {detail['msg']}", hint="amdflow migrate --force writes it again"
        ) from error


def stands_for(region: Region, kernels: Sequence[Kernel]) -> str:
    """The kernel that does a region's work, or nothing."""
    return next((kernel.op for kernel in kernels if region.op and region.op in kernel.declaration.replaces), "")


def region_findings(regions: Sequence[Region], kernels: Sequence[Kernel]) -> list[Finding]:
    """One note a region: which kernel stands for it, or that none does."""
    findings = []
    for region in regions:
        kernel = stands_for(region, kernels)
        work = f"{region.kind} ({region.op})" if region.op else region.kind
        message = (
            f"{work}: the kernel {kernel} does this work" if kernel else f"{work}: none of the kernels does this work"
        )
        findings.append(
            Finding(
                "AMF2003",
                Severity.NOTE,
                message,
                path=region.path,
                line=region.line,
                title="region worth a kernel",
                effort=Effort.HOURS,
                extra={"kernel": kernel},
            )
        )
    return findings


def published(
    built: Sequence[Built],
    *,
    targets: Sequence[str],
    payload: str,
    regions: Sequence[Region],
    kernels: Sequence[Kernel],
) -> dict[str, Any]:
    """The handoff: op -> target -> artifact. The first variant stands at the top, all of them are in ``variants``."""
    ops: dict[str, dict[str, Any]] = {}
    for one in built:
        item = one.item
        folder = f"{payload}/{item.name}"
        entry = {
            "code_object": f"{folder}/{OBJECT}",
            "source": f"{folder}/{SOURCE}",
            "launch": f"{folder}/{LAUNCH}",
            "symbol": one.launch["symbol"],
            "dtype": item.dtype,
            "sizes": dict(item.sizes),
        }
        place = ops.setdefault(item.kernel.op, {}).setdefault(item.target, {**entry, "variants": []})
        place["variants"].append(entry)
    return {
        "targets": list(targets),
        "ops": ops,
        "index": f"{payload}/{INDEX}",
        "regions": [{**region.model_dump(), "kernel": stands_for(region, kernels)} for region in regions],
    }
