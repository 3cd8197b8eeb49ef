"""Workdirs with manifests to test with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amdflow.pipeline.freshness import outputs_digest
from amdflow.pipeline.manifest import Artifact, CommandRecord, ErrorRecord, Manifest, Status, Timing, UpstreamRecord

MACHINE = {"host": "build-7", "os": "Debian GNU/Linux 12", "cores": 2, "gpus": []}
KERNEL = {
    "kernel": "attention",
    "dtype": "float16",
    "target": "gfx942",
    "matrix_instructions": 128,
    "vgprs": 224,
    "agprs": 0,
    "sgprs": 24,
    "sizes": {"head": 128, "causal": True},
    "lds_static": 0,
    "lds_dynamic": 67584,
    "spills": 0,
    "waves_per_simd": 2,
}
METRICS: Mapping[str, Mapping[str, Any]] = {
    "migrate": {"files": 12, "files_by_method": {"hipify-clang": 10, "text map": 2}},
    "kernels": {"kernels": [KERNEL, {**KERNEL, "target": "gfx950"}]},
    "finetune": {"loss": [[1, 2.5], [2, None], [3, 1.5]], "eval_loss": [[3, 1.75]], "final_loss": 1.5},
    "export": {"checks": [{"check": "every tensor finite", "passed": True}, {"check": "logits", "passed": False}]},
    "serve": {"prompt": "Who are you? <i>", "answer": "A pirate & a friend.", "tokens_per_second": 11.4},
}


def manifest(stage: str, status: Status = Status.OK, *, upstream: Manifest | None = None, **fields: Any) -> Manifest:
    error = None if status.good else ErrorRecord(message=f"{stage} fell over", hint="stand up again")
    values: dict[str, Any] = {
        "metrics": dict(METRICS[stage]),
        "environment": MACHINE,
        "outputs": [Artifact(name=f"{stage}.bin", path=f"{stage}.bin", sha256="ab" * 32, size=1_234_567, role="model")],
        "commands": [CommandRecord(argv=["tool", "a b.cu"], exit_code=0, seconds=1.5, log="logs/a.log")],
        "config": {"jobs": 0, "nested": {"depth": 1}},
        "config_sources": {"jobs": "default", "nested": "amdflow.yaml"},
        "toolchain": {"clang": "22.1.0"},
    }
    if upstream:
        values["upstream"] = UpstreamRecord(
            stage=upstream.stage,
            path=f"../{upstream.stage}/manifest.json",
            sha256="0" * 64,
            outputs_digest=outputs_digest(upstream),
        )
    return Manifest(
        stage=stage,
        stage_version=1,
        run_id="r",
        amdflow="0.1.0",
        status=status,
        exit_code=0 if status.good else 1,
        error=error,
        key="cd" * 32,
        timing=Timing(started="2026-11-30T10:00:00+00:00", ended="2026-11-30T10:01:30+00:00", seconds=90.0),
        **(values | fields),
    )


def save(workdir: Path, item: Manifest, name: str = "manifest.json") -> Manifest:
    (workdir / item.stage).mkdir(parents=True, exist_ok=True)
    item.save(workdir / item.stage / name)
    return item


def whole_run(workdir: Path) -> dict[str, Manifest]:
    """Manifests of all five stages, each made from the one before."""
    made: dict[str, Manifest] = {}
    last: Manifest | None = None
    for stage in METRICS:
        last = made[stage] = save(workdir, manifest(stage, upstream=last))
    return made
